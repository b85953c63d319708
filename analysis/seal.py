"""Integrity check of a file before HDF5 code reads it, since damaged files may hang or crash that
code; and the seal of packed results."""

from __future__ import annotations

import os
import re
import stat
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from .errors import InputError

_SEAL = b"\nHARDGRAD-SEAL "
_PACKED = b"packed"  # note of results that Python packed: their seal has no second hash
_LONGEST = 512
SEALED = "hardgrad_seal"  # the attribute of the root, 1
_SUPERBLOCK_END = {
    0: 40,
    1: 44,
    2: 28,
    3: 28,
}  # by version, where the superblock stores the end of the file


def verify(path: Path, unverified: bool = False) -> str:
    """The trust level of the file, in words: "by its seal" or "unverified: ...". Raises InputError
    if its seal does not match, or if a former seal is missing; with `unverified`, a missing seal is
    accepted. The file is read in blocks."""
    try:
        mode = os.stat(path).st_mode
        if stat.S_ISDIR(mode):
            raise InputError(f"{path}: is a folder, not a file")
        if not stat.S_ISREG(mode):
            raise InputError(f"{path}: is not a regular file")
        with open(path, "rb") as file:
            return _verified(path, file, unverified)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    except ValueError as error:  # a NUL in a name
        raise InputError(f"{path}: cannot be read: {error}") from error


def sealed(content: bytes) -> bytes:
    """A packed result with its seal. It must have the attribute SEALED of the root."""
    words = content + _SEAL + _PACKED
    return words + b" crc32:%08x\n" % zlib.crc32(words)


def _verified(path: Path, file: BinaryIO, unverified: bool) -> str:
    start = file.read(64)
    if not start:
        raise InputError(f"{path}: is empty")
    if start.startswith(b"HARDGRAD-CELL "):
        raise InputError(f"{path}: holds a sweep's cells; merge them first")
    if not start.startswith(b"\x89HDF\r\n\x1a\n"):
        raise InputError(f"{path}: is not an HDF5 file")
    size = file.seek(0, os.SEEK_END)
    last = file.seek(max(0, size - _LONGEST))
    tail = file.read()
    mark = tail.rfind(_SEAL)
    if mark < 0:
        return _unsealed(path, file, start, size, unverified)
    end = re.search(rb" crc32:([0-9a-f]{8}) xxh3:[0-9a-f]{16}\n\Z", tail[mark:]) or re.search(
        rb"(?<=\A" + _SEAL + _PACKED + rb") crc32:([0-9a-f]{8})\n\Z", tail[mark:]
    )
    if not end:
        raise InputError(f"{path}: truncated: its seal is incomplete")
    crc = 0
    for block in _blocks(file, last + mark + end.start()):
        crc = zlib.crc32(block, crc)
    if crc != int(end.group(1), 16):
        raise InputError(f"{path}: damaged: its bytes do not match the checksum in its seal")
    return "by its seal"


def _unsealed(path: Path, file: BinaryIO, start: bytes, size: int, unverified: bool) -> str:
    at = _SUPERBLOCK_END.get(start[8] if len(start) > 8 else -1)
    if at is not None and int.from_bytes(start[at : at + 8], "little") != size:
        raise InputError(
            f"{path}: truncated or damaged: it has no seal, and its length does not match "
            "its HDF5 header"
        )
    before = b""
    for block in _blocks(file, size):
        if SEALED.encode() in before + block:
            break
        before = block[-len(SEALED) :]
    else:
        return "unverified: it has no seal, so another program wrote it"
    if unverified:
        return "unverified: its seal is missing, so another program has changed it"
    raise InputError(
        f"{path}: damaged, or changed by another program: its seal is missing; to read it "
        "anyway, use --unverified "
        "(in Python: unverified=True)"
    )


def _blocks(file: BinaryIO, end: int) -> Iterator[bytes]:
    """The file's first `end` bytes."""
    file.seek(0)
    while block := file.read(min(1 << 22, end - file.tell())):
        yield block
