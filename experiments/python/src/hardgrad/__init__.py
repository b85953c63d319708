"""Gradient estimators for discrete choices, exactly judged: Hardgrad's registry on a loss of your own.

    z_d ~ Cat(softmax(logits_d)), d = 1..D;   wanted is the gradient of E[f(z)] at the logits

- `estimators()`, `describe(name)`: what there is.
- `moments(logits, f, estimator)`: an estimator's exact mean, bias and covariance on your loss, without sampling.
- `gradient(logits, f, estimator, seed)`: one estimate, with its samples.
- `Estimator(spec)`: one that keeps what it learns from call to call.
- `written(function)`: one of your own, to be judged like all others; `test(function)`: is it what it claims to be?
- `measure(task, model, estimators)`, `run(config)`: what the program does with the field's networks; results as xarray. `hardgrad.analysis`
  tabulates and draws them.
- `hardgrad.torch`: differentiable expected losses for PyTorch (imported by itself, so that PyTorch is not needed here).

An estimator is named as in the program: `rloo`, or with settings `rloo[samples=4]`. Errors carry the program's own sentence:
`UsageError` (a ValueError: what was asked for cannot be; `NotExact`: not exactly), `NotFinite` (an ArithmeticError), `Bug`. What
your own functions raise comes out as it is.
"""
from . import _built
from ._core import Bug, Error, Estimator, InputError, NotExact, NotFinite, UsageError
from ._estimates import Gradient, Moments, Samples, gradient, moments
from ._registry import describe, estimators
from ._sweeps import measure, run
from ._verdict import Check, Verdict, test
from ._written import Drawn, written

__all__ = ["Bug", "Check", "Drawn", "Error", "Estimator", "Gradient", "InputError", "Moments", "NotExact", "NotFinite", "Samples", "UsageError", "Verdict",
           "describe", "estimators", "gradient", "measure", "moments", "run", "test", "written"]
