"""Messages and files of the command. An unwritable stream affects neither the files nor the exit
status of a failure."""

from __future__ import annotations

import errno
import os
import re
import secrets
import sys
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .errors import OutputError


def file_name(label: str) -> str:
    """A file's name made of a label: other characters than letters, digits, "_", "." and "-", and a
    dot in front, become "-". A hash follows where that changed the label or cut it (at 80
    characters), so that other labels have other names."""
    name = re.sub(r"[^A-Za-z0-9_.-]|^\.", "-", label)[:80]
    return name if name == label and name else f"{name}-{zlib.crc32(label.encode()):08x}"


def complain(message: str) -> None:
    """Prints `analysis: <message>` on stderr: one line, with control characters escaped."""
    text = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in message)
    try:
        if sys.stderr is not None:  # None if the program was started without it
            print(f"analysis: {text}", file=sys.stderr, flush=True)
    except OSError:
        pass


def finish(status: int, lost: OSError | None = None) -> int:
    """The exit status: `status`, or 2 (with a message) if `status` is 0 and stdout could not be
    written. `lost`: an earlier error of writing to stdout."""
    try:
        if lost is not None:
            raise lost
        if sys.stdout is None:  # None if the program was started without it
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        sys.stdout.flush()
        return status
    except OSError as error:
        if sys.stdout is not None:  # prevents another attempt at exit
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):  # the reader closed the pipe
            return status
        complain(f"standard output cannot be written: {error.strerror}")
        return status or 2


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turns system errors within this context into OutputErrors for `path`."""
    try:
        yield
    except OSError as error:
        raise OutputError(f"{path}: cannot be written: {error.strerror}") from error


def require_place(path: Path) -> None:
    """Checks an output path before the work, with the errors of `write`."""
    with writing(path), tempfile.TemporaryFile(dir=path.parent):
        pass


def write(path: Path, content: bytes) -> None:
    """Writes the whole file or nothing. Raises OutputError."""
    temporary = path.with_name(f".{path.name[:100]}.{secrets.token_hex(8)}.partial")
    with writing(path):
        try:
            with open(temporary, "xb") as file:  # a unique name, also across machines
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
