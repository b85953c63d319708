"""Errors that a user can act on, each with a one-line message."""


class InputError(Exception):
    """A result is missing or damaged, or does not hold the requested data."""


class Unverified(UserWarning):
    """A file is read although its integrity cannot be checked."""


class OutputError(Exception):
    """An output path cannot be written."""


class NotApplicable(InputError):
    """The request does not apply to this result, such as a figure of a parameter that the sweep
    does not vary."""
