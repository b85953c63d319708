"""What the command says and writes. A stream that cannot be written changes neither the files nor the exit status of a failure."""

from __future__ import annotations

import errno
import os
import secrets
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .errors import OutputError


def complain(message: str) -> None:
    """`analysis: <message>` on stderr: one line that does nothing to a terminal."""
    text = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in message)
    try:
        if sys.stderr is not None:  # as it is if the program was started without
            print(f"analysis: {text}", file=sys.stderr, flush=True)
    except OSError:
        pass


def finish(status: int, lost: OSError | None = None) -> int:
    """The exit status: `status`, or 2 (and a message) if that is 0 and what was printed could not be written. `lost`: the error of
    a print."""
    try:
        if lost is not None:
            raise lost
        if sys.stdout is None:  # as it is if the program was started without
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        sys.stdout.flush()
        return status
    except OSError as error:
        if sys.stdout is not None:  # so that leaving does not try again
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):  # whoever read it has had enough
            return status
        complain(f"standard output cannot be written: {error.strerror}")
        return status or 2


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Errors of the system within are OutputErrors of `path`."""
    try:
        yield
    except OSError as error:
        raise OutputError(f"{path}: cannot be written: {error.strerror}") from error


def require_place(path: Path) -> None:
    """Complains before the work of what `write` would complain of after it."""
    with writing(path), tempfile.TemporaryFile(dir=path.parent):
        pass


def write(path: Path, content: bytes) -> None:
    """Writes a whole file or none. Raises OutputError."""
    temporary = path.with_name(f".{path.name[:100]}.{secrets.token_hex(8)}.partial")
    with writing(path):
        try:
            with open(temporary, "xb") as file:  # a name that no other process has, on whatever machine
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
