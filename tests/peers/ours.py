"""Times of Hardgrad: gradients, replicates, training steps, sweeps."""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import time

from peers import Failed

TRAINING = """name = "training"
[grid]
task = ["{task}"]
model = ["{model}"]
estimator = ["{estimator}"]
[train]
batch = {batch}
log_every = 1000000
save_seconds = 0
[measure]
at = []
"""

SWEEP = """name = "cells"
[grid]
task = ["translation[examples=200,max_length=8]"]
model = ["translator[embedding={width},hidden={width},feed=sampled]"]
estimator = ["reinforce", "rloo[samples=2]"]
seed = [1, 2, 3, 4, 5, 6, 7, 8]
[train]
steps = 0
[measure]
at = ["start"]
batch = 32
replicates = {replicates}
estimand = "none"
"""


class Hardgrad:
    def __init__(self, program, row, environment):
        self.command = [
            program,
            "gradient",
            "--task",
            row.task,
            "--model",
            row.model,
            "--estimator",
            row.spec(),
            "--batch",
            str(row.batch),
            "--seed",
            "3",
            "--json",
        ]
        self.environment = environment

    def run(self, *more):
        done = subprocess.run(self.command + list(more), capture_output=True, text=True, env=self.environment)
        if done.returncode:
            raise Failed(f"{' '.join(self.command)}: {done.stderr.strip()}")
        return json.loads(done.stdout)

    def time(self, n):
        return self.run("--repeat", str(n + 2))["timing"]  # the first ones warm up

    def spent(self, command):
        """Processor seconds of a command."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(command, capture_output=True, text=True, env=self.environment)
        if done.returncode:
            raise Failed(f"{' '.join(command)}: {done.stderr.strip()}")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    def replicates(self, of, once, M=64):
        """Processor seconds of M gradients of `hardgrad measure`. `once`: the seconds of a single gradient."""
        scale = max(1, min(8, int(0.5 / (M * once))))  # small ones are short compared with the start of the process
        command = [self.command[0], "measure", *self.command[2:], "--estimand", "none", "--jobs", "1"]
        command += ["--at-logits"] if of == "logits" else []
        many, few = (self.spent([*command, "--replicates", str(count)]) for count in ((1 + scale) * M, M))
        return (many - few) / scale

    def training(self, row, once, folder):
        """Processor seconds of one training step: the difference of two runs, per step."""
        config, steps, used = folder / "training.toml", max(20, min(400, int(1 / once))), []
        config.write_text(TRAINING.format(task=row.task, model=row.model, estimator=row.spec(), batch=row.batch))
        for count in (2 * steps, steps):
            used.append(
                self.spent(
                    [
                        self.command[0],
                        "run",
                        str(config),
                        "--out",
                        str(folder / "trained"),
                        "--jobs",
                        "1",
                        "--progress",
                        "none",
                        "--set",
                        f"train.steps={count}",
                    ]
                )
            )
            shutil.rmtree(folder / "trained")
        return (used[0] - used[1]) / steps


def sweep_seconds(program, environment, folder, cores, quick):
    """Wall seconds of a sweep of 16 cells on one thread and on two."""
    config, seconds = folder / "cells.toml", []
    config.write_text(SWEEP.format(width=4 if quick else 32, replicates=8 if quick else 256))
    for jobs in (1, 2):
        start = time.monotonic()
        done = subprocess.run(
            [program, "run", str(config), "--out", str(folder / f"run{jobs}"), "--jobs", str(jobs), "--progress", "none"],
            capture_output=True,
            text=True,
            env=environment,
            preexec_fn=lambda: os.sched_setaffinity(0, cores),
        )
        seconds.append(time.monotonic() - start)
        if done.returncode:
            raise Failed(f"hardgrad run: {done.stderr.strip()}")
        shutil.rmtree(folder / f"run{jobs}")
    return seconds
