"""The restart with the best training loss is reported, whatever the held-out results of the others."""

import json
import subprocess

import numpy as np
import pytest

from analysis import InputError, restart_table, restarts
from made_up import made_up, stated


def trained():
    """Two estimators, two seeds: rloo's second seed trains best but is worse on held-out data; one seed of soft was never trained."""
    losses = np.full((4, 20), 5.0)
    losses[0, -1], losses[1, -2:] = 0, 1  # one batch with a low loss does not decide
    losses[2] = np.nan
    return made_up(
        train_loss=(("run", "step"), losses),
        metric_accuracy=(("run", "evaluation_step"), [[0, 0.9], [0, 0.4], [0, 1.0], [0, 0.5]]),
    )


def test_training_chooses():
    best = restarts(trained())
    assert best["estimator"].values.tolist() == ["rloo", "soft"] and best["seed"].values.tolist() == [2, 2]
    assert best["restarts"].values.tolist() == [2, 1]
    table = restart_table(trained())
    assert table["train_loss"].tolist() == [1, 5] and table["metric_accuracy"].tolist() == [0.4, 0.5]
    assert table["metric_accuracy_mean"].tolist() == [0.65, 0.5] and table["heldout_expected_loss"].iloc[0] == 4


def test_other_quantities_choose_by_what_is_better():
    assert restarts(trained(), "metric_accuracy")["seed"].values.tolist() == [1, 1]
    assert restarts(trained(), "heldout_expected_loss")["seed"].values.tolist() == [1, 1]
    with pytest.raises(InputError, match=r"no quantity train_los \(did you mean train_loss\?\)"):
        restarts(trained(), "train_los")
    with pytest.raises(InputError, match="no run has a value of train_loss"):
        restarts(stated(trained().assign(train_loss=trained()["train_loss"] * np.nan)))


def test_as_a_command(sample):
    command = ["/usr/bin/python3", "-m", "analysis", "restarts", str(sample / "result.h5")]
    record = json.loads(subprocess.run([*command, "--json"], capture_output=True, text=True, check=True).stdout)
    assert len(record) == 23 and all(row["restarts"] in (2, 3) for row in record)
    assert "restarts" in subprocess.run(command, capture_output=True, text=True, check=True).stdout
    said = subprocess.run([*command, "--by", "metric_acuracy"], capture_output=True, text=True)
    assert said.returncode == 3 and "did you mean metric_accuracy?" in said.stderr
