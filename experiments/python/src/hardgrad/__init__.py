"""Gradient estimators for discrete choices, with exact moments: Hardgrad's registry for a loss of
your own.

    z_d ~ Cat(softmax(logits_d)), d = 1..D;   estimated is the gradient of E[f(z)] at the logits

- `estimators()`, `describe(name)`: the registered estimators.
- `moments(logits, f, estimator)`: an estimator's exact mean, bias and covariance on your loss,
  without sampling.
- `gradient(logits, f, estimator, seed)`: one estimate, with its samples.
- `Estimator(spec)`: an estimator that keeps its learned state between calls.
- `written(function)`: an estimator of your own, used like all others; `test(function)`: checks its
  claims.
- `tempered`, `top_k`, `top_p`: the laws of samplers, as behaviour policies.
- `measure(task, model, estimators)`, `run(config)`: the program's verbs for the networks of the
  field; results as xarray. `hardgrad.analysis` tabulates and draws them.
- `hardgrad.torch`, `hardgrad.jax`: differentiable expected losses for PyTorch and JAX (separate
  imports, so that these are not required).

Estimators have the program's names: `rloo`, or with settings `rloo[samples=4]`. Errors carry the
program's messages: `UsageError` (a ValueError: invalid arguments; `NotExact`: no exact result),
`NotFinite` (an ArithmeticError), `Bug`. Exceptions of your own functions are passed through.
"""

from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

# Without the compiled module, a sentence says what to build.
_FOLDER = Path(__file__).parent
if not any((_FOLDER / f"_core{suffix}").exists() for suffix in EXTENSION_SUFFIXES):
    _others = sorted(path.name for path in _FOLDER.glob("_core.*.so"))
    raise ImportError(
        "hardgrad is not built for this "
        f"Python{f' (found {_others[0]}, which it cannot load)' if _others else ''}: in "
        "Hardgrad's tree, "
        "`python -m pip install .` builds it for the calling Python, and `cmake --build "
        "--preset release --target hardgrad_python` "
        "for Debian's, in build/release/python"
    )

from ._core import Bug, Error, Estimator, InputError, NotExact, NotFinite, UsageError
from ._core import __version__ as __version__
from .estimates import Gradient, Moments, Samples, gradient, moments
from .estimators import Check, Drawn, Verdict, describe, estimators, test, written
from .policies import tempered, top_k, top_p
from .program import measure, run

__all__ = [
    "Bug",
    "Check",
    "Drawn",
    "Error",
    "Estimator",
    "Gradient",
    "InputError",
    "Moments",
    "NotExact",
    "NotFinite",
    "Samples",
    "UsageError",
    "Verdict",
    "describe",
    "estimators",
    "gradient",
    "measure",
    "moments",
    "run",
    "tempered",
    "test",
    "top_k",
    "top_p",
    "written",
]
