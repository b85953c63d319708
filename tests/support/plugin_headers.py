"""The headers for plugins: core/package/headers.txt, and their includes."""

import re
from pathlib import Path

TREE = Path(__file__).resolve().parents[2]


def named():
    return [line for line in (TREE / "core/package/headers.txt").read_text().splitlines() if line and not line.startswith("#")]


def included(header):
    return set(re.findall(r'^#include "((?:core|experiments)/[^"]+)"', header.read_text(), re.MULTILINE)) - {"core/abi.hpp"}


def closure():
    found, unread = set(), set(named()) | included(TREE / "core/plugin.hpp")
    while unread:
        found |= unread
        unread = set().union(*(included(TREE / header) for header in unread)) - found
    return found
