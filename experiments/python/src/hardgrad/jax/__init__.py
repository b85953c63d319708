"""Expected losses of discrete choices in JAX, differentiable by Hardgrad's estimators with hard
choices, inside `jax.jit`.

    def loss(parameters, seed):
        return hardgrad.jax.expectation(logits(parameters), f, "rloo[samples=4]", seed=seed).mean()

    gradient = jax.jit(jax.grad(loss))(parameters, seed)

Options and weights of the samples come from callbacks with static shapes; f is traced by JAX. The
same seed draws the same numbers as in `hardgrad.torch`. `compare` measures estimators on a network
of your own. Inside `jax.jit` an error ends in a JaxRuntimeError that quotes it; `own_errors` raises
the package's own.
"""

from ..comparison import Comparison, Measured
from .compare import compare
from .errors import own_errors
from .expectation import expectation

__all__ = ["Comparison", "Measured", "compare", "expectation", "own_errors"]
