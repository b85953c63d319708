"""The identity of a run: its settings, which files record with their defaults, and not the text of
a sweep, which may leave defaults out or name them in another order."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from typing import Any, NamedTuple

from .groups import Group, Network
from .result import Result

Pair = tuple[Group, Group]
_NAMED = ("task", "model", "estimator")  # an axis, with the variable NAME_settings
_PARTS = (*_NAMED, "target", "run")  # all with such a variable
NETWORK_SETTINGS = ("task_settings", "model_settings")
_OF_FILES = ("data", "precision")
_NO_EFFECT = frozenset(
    f"train.{name}" for name in ("threads", "log_every", "save_every", "save_seconds", "checkpoint")
)  # on any number
#: Without effect on the last network unless an evaluation chooses it or ends the training; and
#: the settings by which one does, with their values if it does not.
_OF_CHOICE = ("train.evaluate_every", "train.monitor")
_NO_CHOICE = {"train.keep_best": False, "train.patience": 0, "train.target_loss": -1e300}
_MEASURE = "measure."
_OF_RUNS = ("train.", _MEASURE)
_MOMENTS = ("measure.at", "measure.batch", "measure.adapt", "measure.estimand")


class Differences(NamedTuple):
    """Settings of the matched groups of two results, by path such as "model.hidden"."""

    differ: dict[str, tuple[str, str]]  # both values; those of several groups divided by "/"
    #: That one result did not record, and have no known value; "model settings": that one
    #: or both did not record at all.
    unknown: list[str]

    def of_training(self, but: Collection[str] = ()) -> dict[str, tuple[str, str]]:
        """Those that decide scores, except `but` (paths, or the first words of paths)."""
        return {
            path: two
            for path, two in self.differ.items()
            if not path.startswith(_MEASURE) and not _among(path, but)
        }

    def unknown_but(self, but: Collection[str]) -> list[str]:
        """The unknown ones, except `but`."""
        return [path for path in self.unknown if not _among(path, but)]

    def of_moments(self) -> dict[str, tuple[str, str]]:
        """Those of measurements that decide variance and bias, and not only how precise they
        are."""
        return {path: two for path, two in self.differ.items() if path in _MOMENTS}


def _among(path: str, some: Collection[str]) -> bool:
    """Whether a path, or its first word, is one of some."""
    return not {path, path.replace(" ", ".").split(".")[0]}.isdisjoint(some)


def bare(spec: str) -> str:
    """The name in a specification: "rloo" of "rloo[samples=4]"."""
    return spec.split("[")[0]


def _filled(
    owner: str, recorded: Mapping[str, Any], absent: Mapping[str, object]
) -> dict[str, object]:
    """The parameters of an owner ("model.translator"), with those that its program did not have."""
    start = f"{owner}."
    added = {path[len(start) :]: value for path, value in absent.items() if path.startswith(start)}
    return {**added, **recorded}


def network_key(
    specs: Sequence[str],
    settings: Sequence[Mapping[str, object]],
    absent: Mapping[str, object] = {},
) -> tuple[object, ...]:
    """Task and model with their settings: equal for two spellings of one network. `absent`: as in
    `differences`."""
    return tuple(
        (
            bare(spec),
            json.dumps(_filled(f"{kind}.{bare(spec)}", recorded, absent), sort_keys=True),
        )
        for kind, spec, recorded in zip(("task", "model"), specs, settings)
    )


def same_network(
    network: Network, of: Result, other: Result, absent: Mapping[str, object] = {}
) -> Network | None:
    """The network of `other` with these settings, however it is spelled; else that of this name,
    whose settings may differ; None if there is neither. `absent`: as in `differences`."""
    wanted, keys = network_keys(of, absent).get(network), network_keys(other, absent)
    same = [panel for panel, key in keys.items() if wanted and key == wanted]
    if network in same or not same and network in other.panels:
        return network
    return next(iter(same), None)


def network_keys(
    result: Result, absent: Mapping[str, object] = {}
) -> dict[Network, tuple[object, ...]]:
    """The key of each network; empty if the file has no settings of tasks and models."""
    if not all(name in result for name in NETWORK_SETTINGS):
        return {}
    parts = [result.objects(name) for name in NETWORK_SETTINGS]
    return {
        panel: network_key(panel, [part[members[0].runs[0]] for part in parts], absent)
        for panel, members in result.panels.items()
    }


def _matters(path: str, one: Mapping[str, object]) -> bool:
    """Whether a setting has an effect, beside the others of a run; also if that is unknown."""
    return path not in _OF_CHOICE or any(one.get(path) != off for path, off in _NO_CHOICE.items())


def settings(
    result: Result, recorded: Sequence[str] = _PARTS, absent: Mapping[str, object] = {}
) -> list[dict[str, Any]]:
    """[run] Every setting by path: "model" is the name, "model.hidden" a parameter of it; "data", a
    hash of the data's files, and "precision"; "train.steps" and the like. `recorded`: the parts
    whose parameters are listed one by one; of the other axes, the specification is the name. What
    the result did not record is left out, unless `absent` has its value (as in `differences`)."""

    def make() -> list[dict[str, Any]]:
        parts = {part: result.objects(f"{part}_settings") for part in recorded}
        specs: dict[str, list[str]] = {name: list(map(str, result.values(name))) for name in _NAMED}
        owners = {**specs, "target": list(map(str, result.targets))}
        of_runs = {path: value for path, value in absent.items() if path.startswith(_OF_RUNS)}
        known = result.data.attrs
        found = []
        for run in range(result.count):
            one: dict[str, Any] = {
                name: bare(spec[run]) if name in recorded else spec[run]
                for name, spec in specs.items()
            }
            for part, objects in parts.items():
                if part == "run":
                    one |= {**of_runs, **objects[run]}
                    continue
                every = _filled(f"{part}.{bare(owners[part][run])}", objects[run], absent)
                one |= {f"{part}.{path}": value for path, value in every.items()}
            one |= {"data": str(result.values("data_hash")[run])} if "data_hash" in result else {}
            one |= {"precision": known["precision"]} if "precision" in known else {}
            found.append({path: value for path, value in one.items() if path not in _NO_EFFECT})
        return found

    return result.once(("settings", *recorded, repr(absent)), make)


def _recorded(*results: Result) -> tuple[str, ...]:
    """The parts whose parameters all results have recorded."""
    return tuple(part for part in _PARTS if all(f"{part}_settings" in one for one in results))


def matched(first: Result, second: Result, absent: Mapping[str, object] = {}) -> list[Pair]:
    """Groups of both results that are the same: first by every setting of training, then by those
    of task, model and estimator with the axes of the grid, then by their labels. `absent`: as in
    `differences`."""
    recorded = _recorded(first, second)
    of_files = [{*_OF_FILES} & {*settings(one, recorded, absent)[0]} for one in (first, second)]
    lacking = of_files[0] ^ of_files[1]  # in one of them

    def but(result: Result, group: Group, *starts: str) -> Hashable:
        one = settings(result, recorded, absent)[group.runs[0]]
        return frozenset(
            (path, repr(value))
            for path, value in one.items()
            if not path.startswith(starts) and path not in lacking and _matters(path, one)
        )

    def everything(result: Result, group: Group) -> Hashable:
        return but(result, group, _MEASURE)

    def network_and_estimator(result: Result, group: Group) -> Hashable:
        return but(result, group, _MEASURE, "train."), frozenset(group.others.items())

    def label(_: Result, group: Group) -> Hashable:
        return group.panel, group.label

    pairs: list[Pair] = []
    left = [list(one.groups) for one in (first, second)]
    for key in (everything, network_and_estimator, label):
        pairs += _paired((first, second), left, key)
    order = {id(group): place for place, group in enumerate(first.groups)}
    return sorted(pairs, key=lambda pair: order[id(pair[0])])


def _paired(
    results: tuple[Result, Result],
    left: list[list[Group]],
    key: Callable[[Result, Group], Hashable],
) -> list[Pair]:
    """Pairs whose key no other group of their result has; they leave `left`."""
    by: list[dict[Hashable, list[Group]]] = [{}, {}]
    for side, groups, found in zip(results, left, by):
        for group in groups:
            found.setdefault(key(side, group), []).append(group)
    pairs = [
        (one[0], by[1][name][0])
        for name, one in by[0].items()
        if len(one) == 1 and len(by[1].get(name, ())) == 1
    ]
    for place, groups in enumerate(left):
        gone = {id(pair[place]) for pair in pairs}
        groups[:] = [group for group in groups if id(group) not in gone]
    return pairs


def differences(
    first: Result, second: Result, pairs: Sequence[Pair], absent: Mapping[str, object] = {}
) -> Differences:
    """How the settings of matched groups differ. `absent`: the values that programs without a
    setting had, by path, of a parameter with the name, such as "model.translator.hidden"
    (`program.absent_values`); a setting that a result did not record had this value, and is unknown
    if it has none."""
    recorded = _recorded(first, second)
    found = Differences({}, [f"{part} settings" for part in _PARTS if part not in recorded])
    told: dict[str, tuple[set[str], set[str]]] = {}
    for pair in pairs:
        sides = [
            [settings(side, recorded, absent)[run] for run in group.runs]
            for side, group in zip((first, second), pair)
        ]
        for path in sorted({*_OF_FILES, *(path for side in sides for one in side for path in one)}):
            if not any(_matters(path, one) for side in sides for one in side):
                continue
            values = [{str(one[path]) if path in one else None for one in side} for side in sides]
            if any(None in one for one in values):
                if path not in found.unknown:
                    found.unknown.append(path)
            elif values[0] != values[1]:
                both = told.setdefault(path, (set(), set()))
                for all_of_them, here in zip(both, values):
                    all_of_them.update(map(str, here))
    found.differ.update(
        {path: ("/".join(sorted(a)), "/".join(sorted(b))) for path, (a, b) in sorted(told.items())}
    )
    return found


def in_words(differ: Mapping[str, tuple[str, str]]) -> str:
    """ "train.steps 600 | 300; model.hidden 16 | 32"."""
    return "; ".join(f"{path} {a or '–'} | {b or '–'}" for path, (a, b) in differ.items())
