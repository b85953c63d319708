"""Gradient estimators for discrete choices, with exact moments: Hardgrad's registry for a loss of your own.

    z_d ~ Cat(softmax(logits_d)), d = 1..D;   estimated is the gradient of E[f(z)] at the logits

- `estimators()`, `describe(name)`: the registered estimators.
- `moments(logits, f, estimator)`: an estimator's exact mean, bias and covariance on your loss, without sampling.
- `gradient(logits, f, estimator, seed)`: one estimate, with its samples.
- `Estimator(spec)`: an estimator that keeps its learned state between calls.
- `written(function)`: an estimator of your own, used like all others; `test(function)`: checks its claims.
- `measure(task, model, estimators)`, `run(config)`: the program's verbs for the networks of the field; results as xarray.
  `hardgrad.analysis` tabulates and draws them.
- `hardgrad.torch`, `hardgrad.jax`: differentiable expected losses for PyTorch and JAX (separate imports, so that these are not
  required).

Estimators have the program's names: `rloo`, or with settings `rloo[samples=4]`. Errors carry the program's messages:
`UsageError` (a ValueError: invalid arguments; `NotExact`: no exact result), `NotFinite` (an ArithmeticError), `Bug`. Exceptions
of your own functions are passed through.
"""
from . import _built
from ._core import Bug, Error, Estimator, InputError, NotExact, NotFinite, UsageError, __version__ as __version__
from ._estimates import Gradient, Moments, Samples, gradient, moments
from ._registry import describe, estimators
from ._sweeps import measure, run
from ._verdict import Check, Verdict, test
from ._written import Drawn, written

__all__ = ["Bug", "Check", "Drawn", "Error", "Estimator", "Gradient", "InputError", "Moments", "NotExact", "NotFinite", "Samples", "UsageError", "Verdict",
           "describe", "estimators", "gradient", "measure", "moments", "run", "test", "written"]
