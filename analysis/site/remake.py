"""Makes the committed results again, and the tables and figures of the pages from them: `python3 -m
analysis remake`. `results/reference/studies.toml` lists the studies."""

from __future__ import annotations

import json
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import InputError, OutputError
from ..figures import draw_all
from ..load import load
from ..output import write
from ..program import TREE, asked
from ..result import tomllib
from ..saving import saved
from .claims import claimed
from .packing import MOST_BYTES, packed
from .studies import committed, opened
from .tables import rewritten, specified

CONFIGS = TREE / "experiments/configs"


class Declared(NamedTuple):
    """A study of `studies.toml`. Its configuration has its name."""

    name: str
    hours: float | None  # of one core: those of its file, else as planned; None: unknown
    made: bool  # whether there is a file
    feeds: tuple[str, ...]  # tables, numbers, figures and claims, with their page
    also: tuple[str, ...]  # variables that its figures read, beside those always kept
    only: tuple[str, ...] | None  # the moments that its file keeps; None: all
    most: int  # bytes of its file
    figures: tuple[tuple[str, str], ...]  # script with its options, and picture
    adds: str | None = None  # script that measures the saved networks: further numbers of the runs


def listed(reference: Path) -> dict[str, Any]:
    """`studies.toml`. InputError if it cannot be read."""
    path = reference / "studies.toml"
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise InputError(f"{path}: cannot be read: {error}") from error


def declared(reference: Path) -> list[Declared]:
    """The studies, those that decide most per core-hour first: by the number of places that a study
    feeds, over its price; of an unknown price, last. InputError as above."""
    pages = {path.name: path.read_text("utf-8") for path in sorted(reference.glob("*.md"))}
    tables, claims = specified(reference / "tables.toml"), claimed(reference / "claims.toml")
    found = []
    for one in listed(reference).get("study", []):
        name, figures = str(one["name"]), one.get("figures", {})
        feeds = [
            f"{page}: {kind} {place}"
            for kind, known in tables._asdict().items()
            for place, entry in known.items()
            if entry["study"] == name
            for page, text in pages.items()
            if f"<!-- {kind} {place} -->" in text
        ]
        feeds += [f"{page}: {file}" for file in figures for page in pages if file in pages[page]]
        feeds += [f"claim {claim['name']}" for claim in claims if claim["study"] == name]
        file = reference / "data" / f"{name}.h5.gz"
        hours = float(one["hours"]) if "hours" in one else None
        if file.exists():
            costs = opened(file).result.data
            hours = float(costs["cost_cpu_seconds"].sum()) / 3600
        found.append(
            Declared(
                name,
                hours,
                file.exists(),
                tuple(feeds),
                tuple(one.get("also", [])),
                tuple(one["only"]) if "only" in one else None,
                int(one.get("most_bytes", MOST_BYTES)),
                tuple((str(script), str(file)) for file, script in figures.items()),
                str(one["adds"]) if "adds" in one else None,
            )
        )
    return sorted(
        found,
        key=lambda one: -len(one.feeds) / max(one.hours, 1e-3) if one.hours is not None else 1.0,
    )


def chosen(studies: Sequence[Declared], only: Sequence[str]) -> list[Declared]:
    """The studies with these names, in the order of the list; without names: all. InputError for an
    unknown name."""
    names = [one.name for one in studies]
    if missing := [name for name in only if name not in names]:
        raise InputError(
            f"studies.toml has no study {', '.join(missing)} (there are: {', '.join(names)})"
        )
    return [one for one in studies if not only or one.name in only]


def overview(studies: Sequence[Declared]) -> str:
    """The studies with price, state and the places that they feed, as text."""
    lines = [
        f"{one.name:24} {'unknown' if one.hours is None else f'{one.hours:7.3f}'} core-hours  "
        f"{'file' if one.made else 'none'}  {'; '.join(one.feeds) or 'feeds no page'}"
        for one in studies
    ]
    return "\n".join(lines)


def remake(
    studies: Sequence[Declared],
    hours: float | None,
    jobs: int,
    hardgrad: str,
    reference: Path,
    again: bool,
    runs: Path = TREE / "results",
) -> Iterator[str]:
    """Runs each study in its folder below `runs`, from where it stopped, packs it into
    `reference`/data, and redraws its figures; then rewrites the tables of all pages. Yields a line
    for each. `hours`: of `jobs` cores together, after which the run in progress is stopped; the
    same call goes on. `again`: also studies whose file is of the same plan. InputError if the
    program or a script fails, OutputError if a file cannot be written or is too large."""
    left = None if hours is None else hours * 3600 / jobs
    for one in studies:
        config = CONFIGS / f"{one.name}.toml"
        file = reference / "data" / f"{one.name}.h5.gz"
        if not again and one.made and _plan(hardgrad, config) == _plan_of(file):
            yield f"{one.name}: its file is of this plan"
        elif left is not None and left <= 0:
            yield f"{one.name}: not run: the {hours:g} core-hours are spent"
            continue
        else:
            start = time.monotonic()
            done = _run(hardgrad, config, runs / f"{one.name}-run", jobs, left)
            left = None if left is None else left - (time.monotonic() - start)
            if not done:
                yield f"{one.name}: stopped: the {hours:g} core-hours are spent; run it again"
                continue
            size = _pack(hardgrad, one, runs, file, reference)
            yield f"{one.name}: {size} bytes in {file}"
        for script, picture in one.figures:
            _draw(script, file, reference / picture)
            yield f"{one.name}: {reference / picture}"
    yield from redrawn(reference)


def redrawn(reference: Path) -> Iterator[str]:
    """Rewrites the tables and numbers of the pages; yields the pages that changed."""
    there = any((reference / "data").glob("*.h5.gz"))
    tables = specified(reference / "tables.toml")
    studies = committed(reference / "data") if there else []
    for path in sorted(reference.glob("*.md")):
        before = path.read_text("utf-8")
        after = rewritten(before, tables, studies)
        if after != before:
            write(path, after.encode())
            yield str(path)


def _plan(hardgrad: str, config: Path) -> str:
    """The identity of a configuration, with every setting."""
    return str(json.loads(asked(hardgrad, "plan", str(config), "--quick", "--json"))["hash"])


def _plan_of(file: Path) -> str:
    return str(opened(file).result.data.attrs.get("plan_hash", ""))


def _run(hardgrad: str, config: Path, folder: Path, jobs: int, seconds: float | None) -> bool:
    """Whether the sweep is finished; it is interrupted after so many seconds."""
    command = [hardgrad, "run", str(config), "--out", str(folder), "--jobs", str(jobs)]
    command += ["--progress", "none"]
    try:
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as run:
            try:
                _, said = run.communicate(timeout=seconds)
            except subprocess.TimeoutExpired:
                run.send_signal(signal.SIGINT)
                run.communicate()
                return False
            except BaseException:
                run.send_signal(signal.SIGINT)
                raise
    except OSError as error:
        raise InputError(
            f"{hardgrad}: cannot be run: {error.strerror}; build it, or name it with --hardgrad"
        ) from error
    if run.returncode:
        lines = said.decode(errors="replace").strip().splitlines()
        words = [line for line in lines if line.startswith("hardgrad: ")] or lines[-1:]
        raise InputError(
            f"{config.stem}: "
            + ("; ".join(words).replace("hardgrad: ", "") or f"status {run.returncode}")
        )
    return True


def _pack(hardgrad: str, one: Declared, runs: Path, file: Path, reference: Path) -> int:
    """Merges the study's folder and writes its file, with what its script `adds`; returns its
    size."""
    with tempfile.TemporaryDirectory() as folder:
        merged = Path(folder) / f"{one.name}.h5"
        asked(hardgrad, "merge", str(runs / f"{one.name}-run"), "--out", str(merged))
        data = load(merged)
        if one.adds is not None:
            words = [str(runs / f"{one.name}-run"), str(merged), "--hardgrad", hardgrad]
            added = _numbers(one, _script(reference / one.adds, words), data.sizes["run"])
            data = data.assign({name: ("run", numbers) for name, numbers in added.items()})
        try:
            content = packed(data, one.also, one.only, one.most)
        except OutputError as error:
            raise OutputError(f"{one.name}: {error}") from error
    write(file, content)
    return len(content)


def _numbers(one: Declared, printed: str, runs: int) -> dict[str, list[float]]:
    """The output of the script of a study: by name, a number of each run. InputError if it is
    something else."""
    what = f"{one.name}: {one.adds} must print one JSON object, of lists of {runs} numbers"
    try:
        found = json.loads(printed)
    except ValueError as error:
        raise InputError(f"{what}: it is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise InputError(f"{what}: it is {type(found).__name__}")
    for name, numbers in found.items():
        if not isinstance(numbers, list) or not all(type(x) in (int, float) for x in numbers):
            raise InputError(f"{what}: {name} is no list of numbers")
        if len(numbers) != runs:
            raise InputError(f"{what}: {name} has {len(numbers)}")
    return found


def _draw(script: str, file: Path, picture: Path) -> None:
    """Draws a figure of `analysis draw` ("draw NAME"), or runs a script of the reference pages,
    with its options: SCRIPT FILE --figure PICTURE."""
    name, *options = shlex.split(script)
    if name == "draw":
        ((_, figure),) = draw_all(opened(file).result, names=options, most=100)
        if isinstance(figure, InputError):
            raise figure
        write(picture, saved(figure, "png"))
        return
    _script(picture.parent / name, [str(file), "--figure", str(picture), *options])


def _script(path: Path, words: Sequence[str]) -> str:
    """The output of a script of the reference pages. InputError with its last line if it fails."""
    done = subprocess.run(
        [sys.executable, str(path), *words],
        capture_output=True,
        text=True,
        check=False,
        cwd=TREE,
    )
    if done.returncode:
        last = re.sub(r"^[\w.]+Error: ", "", (done.stderr.strip().splitlines() or ["failed"])[-1])
        raise InputError(f"{path.name}: {last}")
    return done.stdout
