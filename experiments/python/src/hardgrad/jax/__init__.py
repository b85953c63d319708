"""Expected losses of discrete choices in JAX, differentiable by Hardgrad's estimators, inside
`jax.jit`.

    def loss(parameters, seed):
        return hardgrad.jax.expectation(logits(parameters), f, "rloo[samples=4]", seed=seed).mean()

    gradient = jax.jit(jax.grad(loss))(parameters, seed)

Estimators with a formula are operations of JAX; options and weights of the others come from
callbacks with static shapes. f is traced by JAX. The same seed draws the same numbers as in
`hardgrad.torch`. `sample` draws choices that are differentiable themselves; `compare` measures
estimators on a network of your own. Inside `jax.jit` an error of a callback ends in a
JaxRuntimeError that quotes it; `own_errors` raises the package's own.
"""

from ..comparison import Comparison, Measured
from .compare import compare
from .errors import own_errors
from .expectation import expectation
from .sample import sample

__all__ = ["Comparison", "Measured", "compare", "expectation", "own_errors", "sample"]
