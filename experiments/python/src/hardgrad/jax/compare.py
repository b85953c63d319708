"""`hardgrad.jax.compare`."""

from __future__ import annotations

import time
from contextlib import nullcontext
from typing import Any, Callable, ContextManager, Literal, Optional, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import (
    DictKey,
    GetAttrKey,
    keystr,
    tree_flatten_with_path,
    tree_leaves,
    tree_structure,
    tree_unflatten,
)

from .._core import Mixture, UsageError
from ..compare import Estimators, Options, entries_of, measured
from ..comparison import Comparison
from ..gradients import Counted, EstimatorCache, Evaluated, Parameters
from .draws import counted

Step = Callable[[Any, Any, Any], Any]


class Tree(Parameters):
    """A pytree of arrays. A loss is a function of the tree and a seed that returns a scalar, or the
    gradient as such a tree."""

    framework, held = "jax", ()
    advice = "Take noise from the seed, and data that are the same at each call"

    def __init__(self, tree: Any):
        flat, self._structure = tree_flatten_with_path(tree)
        self._all = [_array(leaf, path) for path, leaf in flat]
        self._wanted = [
            place for place, leaf in enumerate(self._all) if jnp.issubdtype(leaf.dtype, jnp.inexact)
        ]
        paths = [flat[place][0] for place in self._wanted]
        self.leaves = [self._all[place] for place in self._wanted]
        if not self.leaves:
            raise UsageError("parameters hold no array of real numbers")
        if complex_ := [x for x in self.leaves if jnp.iscomplexobj(x)]:
            raise UsageError(
                f"parameters hold an array of {complex_[0].dtype}, expected real numbers"
            )
        super().__init__(
            [x.shape for x in self.leaves],
            [f"parameter {keystr(path)}".rstrip() for path in paths],
            _labels(paths),
            len(flat) - len(paths),
            all(jnp.finfo(x.dtype).eps > 1e-9 for x in self.leaves),
        )

    def stopwatch(self) -> Callable[[], float]:
        if jax.default_backend() == "cpu":
            return super().stopwatch()
        begin = time.perf_counter()
        return lambda: time.perf_counter() - begin

    @staticmethod
    def asking(step: Any, estimator: Any) -> Callable[[Any, Any], Any]:
        return lambda tree, seed: step(tree, estimator, seed)

    def evaluated(self, loss: Callable[[Any, Any], Any]) -> Evaluated:
        def of_leaves(leaves: Sequence[Any], seed: Any) -> Any:
            return loss(self._tree(leaves), seed)

        compiled: Any = None

        def of(seed: int) -> Any:
            nonlocal compiled
            number = np.uint32(seed & 0xFFFFFFFF)
            if compiled is None:
                compiled = self._compiled(of_leaves, number)
            value, gradients = compiled(self.leaves, number)
            arrays = [np.asarray(x) for x in gradients]
            return [x if x.any() else None for x in arrays], np.asarray(
                value
            )  # autodiff in JAX does not tell 0 from no gradient

        return of

    def _compiled(self, of_leaves: Any, seed: Any) -> Any:
        """A compiled function of leaves and a seed that returns the loss (0 if it is not known) and
        the gradients."""
        found = jax.eval_shape(of_leaves, self.leaves, seed)
        shapes = [getattr(x, "shape", None) for x in tree_leaves(found)]
        if shapes == [()]:
            return jax.jit(jax.value_and_grad(of_leaves))
        if tree_structure(found) == self._structure and shapes == [x.shape for x in self._all]:

            def gradient(leaves: Sequence[Any], seed: Any) -> Any:
                each = tree_leaves(of_leaves(leaves, seed))
                return 0.0, [each[place] for place in self._wanted]

            return jax.jit(gradient)
        what = (
            f"an array of shape {list(shapes[0])}"
            if len(shapes) == 1 and shapes[0] is not None
            else f"an object of type {type(found).__name__}"
        )
        raise UsageError(
            f"the step returned {what}, expected a scalar loss, or a gradient in the "
            "structure of the parameters"
        )

    def _tree(self, leaves: Sequence[Any]) -> Any:
        whole = list(self._all)
        for place, leaf in zip(self._wanted, leaves):
            whole[place] = leaf
        return tree_unflatten(self._structure, whole)

    def counting(
        self, kept: EstimatorCache, learning: bool, mixture: Optional[Mixture]
    ) -> ContextManager[Counted]:
        return counted(mixture)

    def own_noise(self) -> ContextManager[Any]:
        return nullcontext()


def _array(leaf: Any, path: Any) -> Any:
    try:
        return jnp.asarray(leaf)
    except TypeError as error:
        raise UsageError(
            f"parameters{keystr(path)} is of type {type(leaf).__name__}, expected an array"
        ) from error


def _labels(paths: Sequence[Any]) -> list[Optional[str]]:
    """The group of each leaf: its branch where the tree's named branches part, if it has some."""
    depth = 0
    while (
        all(len(path) > depth + 1 for path in paths) and len({path[depth] for path in paths}) == 1
    ):
        depth += 1
    keys = [path[depth] if len(path) > depth else None for path in paths]
    if len(set(keys)) == 1 or not all(isinstance(key, (DictKey, GetAttrKey)) for key in keys):
        return [None] * len(paths)
    return [str(key.key if isinstance(key, DictKey) else key.name) for key in keys]


def compare(
    step: Optional[Step],
    parameters: Any,
    estimators: Estimators,
    *,
    reference: Any = "auto",
    replicates: Optional[int] = None,
    seconds: Optional[float] = None,
    by: Literal["auto", "rows", "seconds"] = "auto",
    seed: int = 0,
    cap: float = 1e5,
    coordinates: bool = False,
) -> Comparison:
    """Bias, variance and cost of gradient estimators at the parameters of your own network, as they
    are now.

        print(hardgrad.jax.compare(loss, parameters, ["rloo[samples=4]", "disarm"], seconds=30))

    step: a function of parameters, estimator and seed that returns the scalar loss, made of
        `expectation` or anything else whose gradient is an estimate; or that gradient, in the
        structure of the parameters. All noise must come from the seed, a traced uint32, e.g. by
        `jax.random.key(seed)`. It is compiled by `jax.jit`, once for each estimator. None if all
        estimators are functions.
    parameters: a pytree. Its named branches are groups with figures of their own: {"encoder": ...,
        "decoder": ...}. Arrays that hold no real numbers are left out.
    estimators: specs such as "rloo[samples=4]"; or a dictionary from names to these, to any other
        object for `step`, or to a function of parameters and seed that returns a loss or gradient
        (code of your own, or of another library).
    reference: the true gradient. "auto": that of "exact", if it takes at most `cap` rows; else a
        long run of "rloo[samples=4]". A spec or the name of an entry: this one, as a long run
        unless it has no noise. A long run takes at most a third of all gradients and of the time;
        its noise is part of every interval and p. None: no bias is measured.
    replicates: gradients drawn for each estimator; by default 256, or as many as fit in `seconds`,
        the time for the whole call.
    by: the cost that ranks: "rows" of the network, "seconds" of an estimate once it is compiled, or
        "auto": rows, if they are known for all.
    coordinates: also keep mean and variance of every coordinate.

    Returns a `Comparison`; print it. An estimator that fails has its reason there, and the others
    are kept. UsageError if all fail, or the arguments are invalid. Rare options are sought as in
    PyTorch, in versions of JAX with `jax.make_user_context`. With the same seed its moments are
    those of `hardgrad.torch.compare`, if steps draw from the same 32 bits.
    """
    options = Options(
        reference=reference,
        replicates=replicates,
        seconds=seconds,
        by=by,
        seed=seed,
        cap=cap,
        coordinates=coordinates,
    )
    return measured(entries_of(step, estimators, Tree), step, Tree(parameters), options)
