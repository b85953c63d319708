"""The program `hardgrad`, which is part of the package, and its verbs `measure` and `run` for the
networks of the field. Long computations run in its process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, Optional, Union

from ._core import Bug, Error, InputError, UsageError

if TYPE_CHECKING:
    import xarray

#: Within the package, so that both have the same version.
PROGRAM = Path(__file__).parent / "bin" / "hardgrad"
_OWN = "hardgrad: "  # prefix of its messages; other lines are progress


@dataclass(frozen=True)
class Said:
    """The program's result: exit status (0; 1 if a requested part failed; 4 if it waits for the
    other shards) and standard output."""

    status: int
    output: str

    def json(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.output)
        return found


def call(arguments: Sequence[str], progress: bool) -> Said:
    """Runs `hardgrad ARGUMENTS`. Its warnings and, with `progress`, its progress go to sys.stderr,
    also if that is redirected. Raises its errors by exit status, with the program's message.

    Ctrl-C reaches the program as in a terminal: the first one lets it save cells at work, and
    KeyboardInterrupt follows; the second one kills it.
    """
    relay = _Relay(progress)
    interrupts = 0
    with tempfile.TemporaryFile("w+", encoding="utf-8") as output:
        # In a separate session, so that a terminal's Ctrl-C reaches it only through this process,
        # and only once.
        with subprocess.Popen(
            [str(PROGRAM), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,
        ) as process:
            assert process.stderr is not None
            try:
                while True:
                    try:
                        for line in process.stderr:
                            relay.tell(line)
                        process.wait()
                        break
                    except KeyboardInterrupt:
                        interrupts += 1
                        relay.hold = False
                        process.send_signal(signal.SIGINT if interrupts == 1 else signal.SIGKILL)
            except BaseException:  # its output is no longer read
                process.kill()
                raise
        if process.returncode not in (0, 1, 4) and not interrupts:
            _fail(process.returncode, relay.last)
        relay.end()
        if interrupts:
            raise KeyboardInterrupt
        output.seek(0)
        return Said(process.returncode, output.read())


class _Relay:
    """Copies the program's stderr to ours. The last message is held back: if the program fails, the
    exception carries it. After an interrupt no message is held back."""

    def __init__(self, progress: bool):
        self.hold = True
        self.last = ""
        self._progress, self._behind = progress, False

    def tell(self, line: str) -> None:
        if line.startswith(_OWN):
            self.end()
            self.last = line.removeprefix(_OWN).strip()
            if not self.hold:
                self.end()
        elif self._progress and line.strip():
            live = sys.stderr is not None and sys.stderr.isatty()
            self._put(
                f"\r\x1b[K{line.strip()}" if live else line
            )  # on a terminal it stays on one line
            self._behind = live

    def end(self) -> None:
        if self._behind:
            self._put("\n")
        if self.last:
            self._put(f"{_OWN}{self.last}\n")
        self.last, self._behind = "", False

    @staticmethod
    def _put(text: str) -> None:
        if sys.stderr is not None:
            sys.stderr.write(text)
            sys.stderr.flush()


def _fail(status: int, sentence: str) -> NoReturn:
    if status < 0:
        raise Error(f"the program was ended by signal {-status} ({signal.Signals(-status).name})")
    raise {2: UsageError, 3: InputError, 70: Bug}.get(status, Error)(
        sentence or f"the program ended with status {status}"
    )


def main() -> NoReturn:
    """The command `hardgrad` of an installation by pip."""
    os.execv(PROGRAM, ["hardgrad", *sys.argv[1:]])


_Path = Union[str, os.PathLike[str]]
_Texts = Union[str, Iterable[str]]


def measure(
    task: Optional[str] = None,
    model: Optional[str] = None,
    estimators: _Texts = (),
    *,
    exact: bool = False,
    sampled: bool = False,
    replicates: Optional[int] = None,
    most_replicates: Optional[int] = None,
    batch: Optional[int] = None,
    seed: Optional[int] = None,
    precision: Optional[str] = None,
    checkpoint: Optional[_Path] = None,
    adapt: Optional[int] = None,
    adapt_rate: Optional[float] = None,
    estimand: Optional[str] = None,
    leaf_cap: Optional[float] = None,
    outcome_cap: Optional[float] = None,
    jobs: Optional[int] = None,
    plugins: Iterable[_Path] = (),
    out: Optional[_Path] = None,
) -> xarray.Dataset:
    """Bias, variance and cost of estimators on one of the program's networks: `hardgrad measure`,
    with its options. (For a loss of your own: `moments`.)

    task, model: e.g. "translation[examples=1000]", "translator[heads=4]"; by default the task's
        model.
    estimators: one name, or several; by default all that fit.
    exact: visit every outcome with its probability. sampled: always draw gradients. By default the
        cheaper of both.
    replicates, most_replicates: gradients drawn for each estimator, and the most if these do not
        support their intervals.
    batch: number of examples, the first of the training split.
    seed: for data, parameters and noise. precision: "float" or "double".
    checkpoint: source of the parameters (and of task and model).
    adapt, adapt_rate: steps, and learning rate, in which an estimator learns (baselines, control
        variates) beforehand.
    estimand: the true gradient: "any" (a long run if it cannot be enumerated), "enumerated",
        "none".
    leaf_cap, outcome_cap: most leaves for the exact gradient, and most outcomes for exact moments.
    jobs: threads; by default one per core.
    plugins: shared libraries with estimators, models or tasks of your own.
    out: a file (.h5) for the result.

    Returns the dataset of `hardgrad.analysis.load`: a run for each estimator, with squared_bias,
    variance, relative_bias, rows, ...; results/README.md describes them all. If an estimator could
    not be measured, its status and reason say why.
    """
    given: dict[str, Any] = {
        "task": task,
        "model": model,
        "checkpoint": checkpoint,
        "seed": seed,
        "batch": batch,
        "precision": precision,
        "replicates": replicates,
        "most-replicates": most_replicates,
        "adapt": adapt,
        "adapt-rate": adapt_rate,
        "estimand": estimand,
        "leaf-cap": leaf_cap,
        "outcome-cap": outcome_cap,
        "jobs": jobs,
    }
    options = _options({**given, "estimator": _texts(estimators), "plugin": plugins})
    load = _loader("measure")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "measured.h5" if out is None else Path(out)
        call(
            [
                "measure",
                *options,
                *(["--exact"] if exact else []),
                *(["--sampled"] if sampled else []),
                "--out",
                str(path),
            ],
            progress=False,
        )
        data = load(path)
    if out is None:
        data.attrs["path"] = "measure"
    return data


def run(
    config: Union[_Path, Mapping[str, Any]],
    *,
    out: Optional[_Path] = None,
    overrides: Optional[Mapping[str, Any]] = None,
    only: _Texts = (),
    shard: Optional[str] = None,
    jobs: Optional[int] = None,
    fail_fast: bool = False,
    force: bool = False,
    plugins: Iterable[_Path] = (),
    progress: bool = True,
) -> xarray.Dataset:
    """Runs a sweep, or continues it: `hardgrad run`, then `hardgrad merge`. Completed cells are not
    run again.

    config: a TOML file, or its content as a dictionary (experiments/configs/README.md).
    out: the folder of its cells; by default the one in the configuration, below the working
        directory.
    overrides: e.g. {"train.steps": 100}.
    only: cells that match "estimator=rloo*", or a pattern; of several patterns, all must match.
        shard: "k/n", the k-th of n parts.
    jobs: cells at a time; by default one per core. The results do not depend on it.
    fail_fast: stop at the first cell that fails. force: continue in a folder that holds another
        plan.
    plugins: shared libraries with estimators, models or tasks of your own.
    progress: report progress on sys.stderr.

    Returns the dataset of `hardgrad.analysis.load` for the merged file, which is kept beside the
    folder, named after the sweep. Cells that are still to run are missing (`data.attrs["status"]`).
    Failed cells give a warning. Error if a search for settings waits for the other shards. Ctrl-C
    saves the cells at work and raises KeyboardInterrupt: the same call continues from there.
    """
    load = _loader("run")
    sets = [f"{name}={_value(value)}" for name, value in (overrides or {}).items()]
    options = _options(
        {
            "out": out,
            "jobs": jobs,
            "shard": shard,
            "set": sets,
            "only": _texts(only),
            "plugin": plugins,
        }
    )
    flags = [flag for flag, wanted in (("--fail-fast", fail_fast), ("--force", force)) if wanted]
    with tempfile.TemporaryDirectory() as folder:
        file = _written(config, Path(folder)) if isinstance(config, Mapping) else Path(config)
        try:
            said = call(
                [
                    "run",
                    str(file),
                    *options,
                    *flags,
                    "--json",
                    "--progress",
                    "plain" if progress else "none",
                ],
                progress,
            ).json()
        except Error as error:
            raise type(error)(str(error).removeprefix(f"{folder}/")) from None
    if said["waiting"]:
        raise Error(
            f"{said['waiting']} trials of the search for settings belong to other shards "
            "(shard, only), and no run is at work on "
            "them: repeat this call when they are done"
        )
    failures = [str(failure) for failure in said["failures"]]
    if failures:
        rest = f"; and {len(failures) - 3} more" if len(failures) > 3 else ""
        warnings.warn(
            f"{len(failures)} of {said['cells']} cells failed: {'; '.join(failures[:3])}{rest}",
            RuntimeWarning,
            stacklevel=2,
        )
    merged = Path(said["out"]).parent / f"{said['name']}.h5"
    call(["merge", said["out"], "--out", str(merged), "--partial"], progress=False)
    return load(merged)


def _loader(what: str) -> Callable[[Path], xarray.Dataset]:
    try:
        from .analysis import load

        found: Callable[[Path], xarray.Dataset] = load
    except ModuleNotFoundError as missing:
        raise UsageError(
            f"{what}: reading results needs {missing.name}, which is not installed: "
            'install "hardgrad[analysis]"'
        ) from missing
    return found


def _options(given: Mapping[str, Any]) -> list[str]:
    """--name=value for each entry, repeated for lists; None is omitted."""
    found = []
    for name, value in given.items():
        several = (
            value
            if not isinstance(value, (str, os.PathLike)) and isinstance(value, Iterable)
            else []
            if value is None
            else [value]
        )
        found += [f"--{name}={one}" for one in several]
    return found


def _texts(given: _Texts) -> list[str]:
    return [given] if isinstance(given, str) else list(given)


def _value(value: Any) -> str:
    """In TOML's notation, which equals JSON's for numbers, strings, booleans and lists of these."""
    if isinstance(value, Mapping):
        raise UsageError(
            "run: an override is a number, a string, a boolean or a list; name an entry "
            'within a table by its path ("train.steps")'
        )
    try:
        return json.dumps(value, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise UsageError(f"run: {value!r} is not valid in a configuration: {error}") from error


def _written(config: Mapping[str, Any], folder: Path) -> Path:
    try:
        import tomli_w
    except ModuleNotFoundError as missing:
        raise UsageError(
            "run: a dictionary as configuration needs tomli_w, which is not installed: "
            "install it, or pass a TOML file"
        ) from missing
    path = folder / "configuration.toml"
    try:
        path.write_text(tomli_w.dumps(dict(config)), encoding="utf-8")
    except TypeError as error:
        raise UsageError(f"run: the configuration cannot be written as TOML: {error}") from error
    return path
