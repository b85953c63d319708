"""The container recipes of experiments/install as shell commands, for a machine without a container engine."""

import re
from pathlib import Path
from typing import NamedTuple

INSTALL = Path(__file__).resolve().parents[2] / "experiments" / "install"


class Recipe(NamedTuple):
    base: str  # an image, such as debian:13
    folder: str  # of the image, to which the tree is copied and in which the commands run
    environment: dict[str, str]
    commands: list[str]  # for bash -e, in order


def assignments(lines: list[str]) -> dict[str, str]:
    return dict(line.split("=", 1) for line in lines)


def docker() -> Recipe:
    text = (INSTALL / "Dockerfile").read_text().replace("\\\n", " ")
    parts: dict[str, list[str]] = {}
    for line in text.splitlines():
        if line and not line.startswith("#"):
            instruction, rest = line.split(maxsplit=1)
            parts.setdefault(instruction, []).append(rest)
    assert parts.keys() == {"FROM", "COPY", "WORKDIR", "ENV", "RUN"}, parts.keys()
    (base,), (copied,), (folder,) = parts["FROM"], parts["COPY"], parts["WORKDIR"]
    assert copied == f". {folder}"
    return Recipe(
        base, folder, assignments(parts["ENV"]), [command.strip() for run in parts["RUN"] for command in run.split("&&")]
    )


def apptainer() -> Recipe:
    head, *sections = re.split(r"^%", (INSTALL / "hardgrad.def").read_text(), flags=re.M)
    parts = {
        section.split("\n", 1)[0]: [line.strip() for line in section.split("\n")[1:] if line.strip()] for section in sections
    }
    assert parts.keys() == {"files", "environment", "post", "runscript"}, parts.keys()
    (base,) = re.findall(r"^From: (\S+)$", head, re.M)
    (copied,), (stops, enters, *commands) = parts["files"], parts["post"]
    folder = copied.removeprefix(". ")
    assert (stops, enters) == ("set -e", f"cd {folder}"), "a RUN of Docker stops at an error, and has a folder"
    return Recipe(base, folder, assignments([line.removeprefix("export ") for line in parts["environment"]]), commands)
