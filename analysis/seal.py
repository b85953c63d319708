"""Integrity check of a file before HDF5 code reads it, since damaged files may hang or crash that code."""

from __future__ import annotations

import os
import re
import stat
import zlib
from pathlib import Path

from .errors import InputError

_SEAL = b"\nHARDGRAD-SEAL "
_LONGEST = 512
_ONCE_SEALED = b"hardgrad_seal"  # an attribute of the root
_SUPERBLOCK_END = {0: 40, 1: 44, 2: 28, 3: 28}  # by version, where the superblock stores the end of the file


def verify(path: Path, unverified: bool = False) -> str:
    """The trust level of the file, in words: "by its seal" or "unverified: ...". Raises InputError if its seal does not match, or if a
    former seal is missing; with `unverified`, a missing seal is accepted."""
    content = _bytes_of(path)
    if not content:
        raise InputError(f"{path}: is empty")
    if content.startswith(b"HARDGRAD-CELL "):
        raise InputError(f"{path}: holds a sweep's cells; merge them first")
    if not content.startswith(b"\x89HDF\r\n\x1a\n"):
        raise InputError(f"{path}: is not an HDF5 file")
    mark = content.rfind(_SEAL, max(0, len(content) - _LONGEST))
    if mark < 0:
        return _unsealed(path, content, unverified)
    end = re.search(rb" crc32:([0-9a-f]{8}) xxh3:[0-9a-f]{16}\n\Z", content[mark:])
    if not end:
        raise InputError(f"{path}: truncated: its seal is incomplete")
    if zlib.crc32(content[: mark + end.start()]) != int(end.group(1), 16):
        raise InputError(f"{path}: damaged: its bytes do not match the checksum in its seal")
    return "by its seal"


def _unsealed(path: Path, content: bytes, unverified: bool) -> str:
    at = _SUPERBLOCK_END.get(content[8] if len(content) > 8 else -1)
    if at is not None and int.from_bytes(content[at:at + 8], "little") != len(content):
        raise InputError(f"{path}: truncated or damaged: it has no seal, and its length does not match its HDF5 header")
    if _ONCE_SEALED not in content:
        return "unverified: it has no seal, so another program wrote it"
    if unverified:
        return "unverified: its seal is missing, so another program has changed it"
    raise InputError(f"{path}: damaged, or changed by another program: its seal is missing; to read it anyway, use --unverified "
                     "(in Python: unverified=True)")


def _bytes_of(path: Path) -> bytes:
    try:
        mode = os.stat(path).st_mode
        if stat.S_ISDIR(mode):
            raise InputError(f"{path}: is a folder, not a file")
        if not stat.S_ISREG(mode):
            raise InputError(f"{path}: is not a regular file")
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    except ValueError as error:  # a NUL in a name
        raise InputError(f"{path}: cannot be read: {error}") from error
