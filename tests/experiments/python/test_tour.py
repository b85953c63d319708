"""The notebooks run from their first cells to their last, and reproduce their recorded results."""

import re
from itertools import groupby
from pathlib import Path

import pytest

nbclient = pytest.importorskip("nbclient")
nbformat = pytest.importorskip("nbformat")
pytest.importorskip("ipykernel")
pytest.importorskip("torch")

FOLDER = Path(__file__).resolve().parents[3] / "experiments/python"


def texts(cell):
    for output in cell.outputs:
        if output.output_type == "stream":
            yield output.text
        elif "image/png" not in output.data:
            yield output.data["text/plain"]


def kinds(cell):
    """Of its outputs. A stream may come in one part or several."""
    return [kind for kind, _ in groupby(output.output_type for output in cell.outputs if output.get("name") != "stderr")]


def numbers(text):
    return [float(number) for number in re.findall(r"-?\d+\.?\d*(?:e[-+]\d+)?", text)]


@pytest.mark.parametrize("name, least_pictures, least_numbers", [("tour", 4, 60), ("grpo", 1, 80)])
def test_a_notebook(name, least_pictures, least_numbers):
    written = nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)
    run = nbformat.from_dict(written)
    for cell in run.cells:
        if cell.cell_type == "code":
            cell.outputs = []
    nbclient.NotebookClient(run, timeout=3000, resources={"metadata": {"path": str(FOLDER)}}).execute()
    pictures = compared = 0
    for old, new in zip(written.cells, run.cells):
        if old.cell_type != "code":
            continue
        assert kinds(new) == kinds(old)
        pictures += sum("image/png" in output.get("data", {}) for output in new.outputs)
        if "trained" not in old.metadata.get("tags", []):  # in these, rounding grows with the steps
            assert numbers(" ".join(texts(new))) == pytest.approx(numbers(" ".join(texts(old))), rel=1e-2, abs=2e-3)
            compared += len(numbers(" ".join(texts(old))))
    assert pictures >= least_pictures and compared >= least_numbers
