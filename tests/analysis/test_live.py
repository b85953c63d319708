"""The page of a running sweep's curves, made from the program's JSON and redrawn until no cell is running."""
import json

import numpy as np
import pytest

from analysis.errors import InputError
from analysis.live import dataset, follow, redrawn, told


def cell(estimator, seed, points, state="at work"):
    return {"axes": {"task": "t", "model": "m", "estimator": estimator, "seed": str(seed)}, "state": state,
            "training": [{"step": s, "rows": 2.0 * s, "cpu_seconds": None, "loss": loss} for s, loss in points]}


def sweep(running=1, left=90.0):
    return {"name": "x<y", "running": running, "seconds_left": left, "cells": [
        cell("a", 1, [(10, 3.0), (20, 2.0)], "ok"), cell("a", 2, [(10, 4.0)]), cell("b", 1, [], "pending"), cell("c", 1, [(15, 9.0)], "failed")]}


def test_losses_stand_at_their_steps_and_what_is_not_known_is_missing():
    data = dataset(sweep())
    assert data["step"].values.tolist() == [10, 15, 20] and data["estimator"].values.tolist() == ["a", "a", "c"]
    np.testing.assert_array_equal(data["train_loss"].values, [[3, np.nan, 2], [4, np.nan, np.nan], [np.nan, 9, np.nan]])
    assert data["train_rows"].values[0, 2] == 40 and np.isnan(data["train_cpu_seconds"].values).all()


def test_the_page_says_how_far_it_is_and_loads_itself_again_until_the_end():
    text = redrawn(sweep(), "steps", 5)
    assert '<meta http-equiv="refresh" content="5">' in text and "<h1>x&lt;y</h1>" in text
    assert "1 of 4 cells done, 1 running, 1 failed; about 1:30 of work left" in text
    assert "<td>3</td><td>20</td><td>2</td>" in text  # the mean of both seeds' last losses
    assert "refresh" not in redrawn(sweep(0, None), "steps", None)
    assert "No cell has logged a loss yet" in redrawn({**sweep(), "cells": [cell("a", 1, [], "pending")]}, "rows", 5)


def test_it_ends_when_nobody_is_at_work_twice_in_a_row():
    looks, pages = iter([1, 0, 1, 0, 0, 1]), []
    follow(lambda: sweep(next(looks)), pages.append, "steps", 0.0)
    assert len(pages) == 5 and "refresh" not in pages[-1] and "no cell is running" in pages[-1]


def test_refusals_are_the_programs_own_words(tmp_path):
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\necho 'hardgrad: here: no sweep' >&2\nexit 3\n")
    program.chmod(0o755)
    with pytest.raises(InputError, match="^here: no sweep$"):
        told(str(program), "here")
    with pytest.raises(InputError, match="cannot be run.*--hardgrad"):
        told(str(tmp_path / "nothing"), "here")
    program.write_text(f"#!/bin/sh\ncat <<'END'\n{json.dumps(sweep())}\nEND\n")
    assert told(str(program), "here") == sweep()
