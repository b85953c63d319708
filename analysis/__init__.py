"""Reading, tabulating and drawing the results of Hardgrad.

Three lines give a labelled table::

    from analysis import load, table
    result = load("results/quickstart.h5")
    print(table(result))
"""

import sys
from importlib.util import find_spec

_NEEDED = ("numpy", "scipy", "pandas", "xarray", "h5py", "h5netcdf", "matplotlib")
if _missing := [name for name in _NEEDED if find_spec(name) is None]:
    _words = (
        f"{sys.executable} lacks {', '.join(_missing)}: use a Python that has them, such as "
        "Debian's /usr/bin/python3, "
        f"or install them: {sys.executable} -m pip install {' '.join(_missing)}"
    )
    if sys.argv[:1] != ["-m"]:  # imported, not run
        raise ModuleNotFoundError(_words, name=_missing[0])
    print(f"analysis: {_words}", file=sys.stderr)
    sys.exit(2)

from .answer import answer
from .curves import loss_curves, metric_curves, variance_over_training
from .errors import InputError, Unverified
from .figures import FIGURES
from .frames import select, tidy
from .inference import aggregates, bias_tests, improvement_probabilities, pareto
from .load import load, load_tuning
from .moments import bias_variance
from .restarts import restart_table, restarts
from .result import Result
from .table import format_table, table
from .tried import tried

__all__ = [
    "FIGURES",
    "InputError",
    "Result",
    "Unverified",
    "aggregates",
    "answer",
    "bias_tests",
    "bias_variance",
    "format_table",
    "improvement_probabilities",
    "load",
    "load_tuning",
    "loss_curves",
    "metric_curves",
    "pareto",
    "restart_table",
    "restarts",
    "select",
    "table",
    "tidy",
    "tried",
    "variance_over_training",
]
