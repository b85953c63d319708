"""Kinds of faults. Each is a function of the sandbox, a random generator and n, the index of the operation at which it acts."""

import time
from dataclasses import dataclass
from typing import Callable

from sandbox import PYTHON, arrays, must


@dataclass
class Kind:
    """`operations` counts the operations of a command; the fault occurs at the n-th. Without it, the fault occurs at any time."""

    strike: Callable
    operations: Callable | None = None


def of_run(box):
    box.fresh()
    return box.operations("run", *box.what())


def of_merge(box):
    box.fresh()
    box.well("run", *box.what())
    return box.operations("merge", box.out, "--out", box.merged)


def struck_run(fault):
    def strike(box, dice, n):
        box.fresh(half=dice.random() < 0.5)
        before = box.whole()
        box.run("run", *box.what(), **fault(dice, n))
        box.settles(before)

    return strike


def struck_merge(fault):
    def strike(box, dice, n):
        """The merged file is either the old one or the new one."""
        box.fresh(half=True)
        box.well("merge", box.out, "--partial", "--out", box.merged)
        old = arrays(box.merged)
        box.well("run", *box.what())
        status = box.run("merge", box.out, "--out", box.merged, **fault(dice, n))
        box.well("check", box.merged) if status == 0 else None
        must(
            arrays(box.merged) in ([box.reference] if status == 0 else [old, box.reference]),
            "the merged file is neither old nor new",
        )
        box.merges()

    return strike


def killed(dice, n):
    return {"kill": n}


def powerless(dice, n):
    return {"lose": n, "seed": dice.choice([0, dice.randrange(1, 10**9)])}


def full(dice, n):
    return {"fail": n, "on": dice.randrange(2)}


def kill_any_moment(box, dice, n):
    """Kills at a random time: during a cell's training, a start or an end."""
    box.fresh(half=dice.random() < 0.5)
    before = box.whole()
    process = box.start("run", *box.what())
    time.sleep(dice.random() * box.seconds)
    process.kill()
    box.ended(process, killed=True)
    box.settles(before)


def kill_report(box, dice, n):
    """A killed report can be made again, and has the files of an undisturbed one."""
    box.fresh()
    box.well("run", *box.what())
    box.well("merge", box.out, "--out", box.merged)
    target, undisturbed = box.out.parent / "report", box.out.parent / "undisturbed"
    make = [*PYTHON, "-m", "analysis", "report", box.merged, "--out"]
    started = time.monotonic()
    must(box.ended(box.start(undisturbed, command=make))[0] == 0, "a report cannot be made")
    process = box.start(target, command=make)
    time.sleep(dice.random() * (time.monotonic() - started))
    process.kill()
    box.ended(process, killed=True)
    must(box.ended(box.start(target, command=make))[0] == 0, "a report cannot be made after a killed one")
    names = [sorted(str(p.relative_to(d)) for p in d.rglob("*")) for d in (target, undisturbed)]
    must(names[0] == names[1], "the report has other files:", set(names[0]) ^ set(names[1]))


def crowd(box, dice, n):
    """Two runs, a merge and a status on one folder at once, half of the time under a clock that jumps."""
    clock = {"clock": dice.choice([40, 4000, 10**6])} if dice.random() < 0.5 else {}
    box.fresh()
    runs = [box.start("run", *box.what(), **clock) for _ in range(2)]
    for command in ("status", box.out), ("merge", box.out, "--partial", "--out", box.merged):
        box.ended(box.start(*command, **clock))
    for process in runs:
        must(box.ended(process)[0] == 0, "a concurrent run fails")
    must(set(box.computed().values()) == {1} and len(box.computed()) == 4, "cells computed", box.computed())
    box.settles({})


def claims(box, dice, n):
    """A run killed before any file change of its first cell leaves no claim without its holder's name. Such a claim would block the
    cell for ten minutes, because other runs could not determine that its holder is dead."""
    last, seen = of_run(box), 0
    for at in range(1, last // 2):
        box.fresh()
        box.run("run", *box.what(), kill=at)
        found = list(box.out.rglob("*.claim"))
        seen += len(found)
        must(all(claim.stat().st_size for claim in found), "killed at", at, "of", last, "it leaves an empty claim")
    must(seen > 0, "no claim was seen")


def shards(box, dice, n):
    box.fresh()
    for process in [box.start("run", *box.what(), "--shard", f"{k}/3") for k in (1, 2, 3)]:
        must(box.ended(process)[0] == 0, "a concurrent shard fails")
    must(set(box.computed().values()) == {1} and len(box.computed()) == 4, "cells computed", box.computed())
    box.settles({})


def killed_among_others(box, dice, n):
    """One of three runs on a folder is killed; the others complete its work."""
    box.fresh()
    runs = [box.start("run", *box.what(), **({"kill": n} if i == 0 else {})) for i in range(3)]
    for i, process in enumerate(runs):
        status = box.ended(process, killed=i == 0)[0]
        must(i == 0 or status == 0, "a run beside a killed one ends with", status)
    must(len(box.whole()) == 4, "cells are missing though two runs continued")
    box.settles({})


KINDS = {
    "kill run": Kind(struck_run(killed), of_run),
    "kill merge": Kind(struck_merge(killed), of_merge),
    "kill any moment": Kind(kill_any_moment),
    "kill among others": Kind(killed_among_others, of_run),
    "kill report": Kind(kill_report),
    "power run": Kind(struck_run(powerless), of_run),
    "power merge": Kind(struck_merge(powerless), of_merge),
    "full run": Kind(struck_run(full), of_run),
    "full merge": Kind(struck_merge(full), of_merge),
    "claims": Kind(claims),
    "crowd": Kind(crowd),
    "shards": Kind(shards),
}
