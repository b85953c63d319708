"""Errors that a user can act on: one clear line each."""


class InputError(Exception):
    """A result is missing, damaged, or does not hold what was asked for."""


class Unverified(UserWarning):
    """A file is read that nothing shows to be as it was written."""


class OutputError(Exception):
    """A place cannot be written."""


class NotApplicable(InputError):
    """What is asked for is of no concern to this result: a figure of a parameter that the sweep does not vary."""
