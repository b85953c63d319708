"""The compiled part. Arrays are [E, D, S], C-contiguous; `rank` is that of the logits as the user
gave them, for messages.

A loss is called as loss(choice, example, differentiable). choice: options [R, D] (int64; of subsets
[R, D, picks]) or, where the estimator relaxes, weights [R, D, S], which are refused without
takes_weights; example: [R]. It returns losses [R] and, if differentiable, None or a function from a
cotangent [R] to the derivative [R, D, S] in the weights. picks: options of each subset; 0: one
option each.
"""

from typing import Any, Callable, Optional

import numpy as np
from numpy.typing import NDArray

__version__: str

class Error(Exception):
    """The base class of all exceptions of Hardgrad."""

class UsageError(Error, ValueError):
    """Invalid arguments: an unknown name, a setting out of range, a wrong shape."""

class NotExact(UsageError):
    """There is no exact result, or it takes more terms than the cap allows."""

class InputError(Error, OSError):
    """A file is missing, damaged or invalid."""

class NotFinite(Error, ArithmeticError):
    """A loss, an estimate or a moment is infinite or not a number."""

class Bug(Error, RuntimeError):
    """An error inside Hardgrad itself."""

_Loss = Callable[[Any, Any, bool], tuple[Any, Optional[Callable[[Any], Any]]]]
#: Options, weights, examples, losses, shares; ratios, with options and off policy.
_Run = tuple[
    Optional[NDArray[Any]],
    Optional[NDArray[Any]],
    NDArray[np.int64],
    NDArray[Any],
    NDArray[Any],
    Optional[NDArray[Any]],
]

class Estimator:
    """An estimator that keeps its learned state between calls (averages, baselines, control
    variates).

    spec: e.g. "nvil[samples=4]". UsageError if there is none of this name, or its settings are
        wrong.
    seed: for the initial values of its own parameters.
    learning_rate: of Adam, which trains these; None: they stay as they are.

    It is made for the columns and options of the first logits; an estimator that learns keeps them.
    Threads may share it.
    """
    def __init__(self, spec: str, seed: int = 0, learning_rate: Optional[float] = 1e-3) -> None: ...
    @property
    def spec(self) -> str:
        """The spec as given; for an estimator written in Python, its name."""
    @property
    def learns(self) -> bool:
        """Whether it has a state to learn (known after its first use; False before)."""
    @property
    def _registered(self) -> bool:
        """Whether it is not written in Python."""
    @staticmethod
    def _written(
        function: Callable[[Any, Any, Any, Any, int], Any],
        samples: int,
        derivatives: bool,
        name: str,
    ) -> Estimator: ...
    def _lock(self) -> None:
        """Waits until no other thread uses an estimator that learns; from now on none can. The same
        thread can, again."""
    def _unlock(self) -> None: ...
    # double: whether in double precision.
    def _make(self, sites: _Sites, posterior: bool, double: bool) -> None: ...
    def _made_for(self, double: bool) -> Any:
        """The arguments of `_make`; None before it is made."""
    def _learned(
        self, double: bool
    ) -> tuple[list[tuple[str, NDArray[np.float64]]], NDArray[np.float64], NDArray[np.float64]]:
        """Its parameters with their names, the averages, the state of their optimiser."""
    def _restore(
        self,
        double: bool,
        parameters: list[NDArray[np.float64]],
        averages: NDArray[np.float64],
        optimizer: NDArray[np.float64],
    ) -> None: ...
    def _average(self, double: bool, averages: list[NDArray[np.float64]]) -> None:
        """Takes the mean of the averages of several, made for the same sites."""

class DrawnFloat:
    """An estimate that is kept for the backward pass into its weights."""
    def through_weights(self, run: int, slope: NDArray[Any]) -> NDArray[Any]:
        """[E D, S] the gradient at the logits of a constant slope [R, D, S] times the weights of a
        run."""
    @property
    def ratios(self) -> Ratios:
        """Of the samples of a behaviour policy; else empty."""
    @property
    def own_gradient(self) -> NDArray[Any]:
        """Of the estimator's own loss at its parameters, if it learned and has no learning rate;
        else empty."""

class DrawnDouble(DrawnFloat):
    """The same in double precision."""

class Ratios:
    """Ratios R of samples that a behaviour policy draws (experiments/measurement/paths.hpp)."""
    def __init__(self) -> None: ...
    def join(self, other: Ratios, weight: float) -> None: ...
    @property
    def effective_share(self) -> float:
        """(E R)^2 / E R^2; NaN if there are none."""
    @property
    def largest(self) -> float:
        """NaN if there are none."""

def formula(spec: str) -> Optional[dict[str, Any]]:
    """The arguments of `formulas.Formula`; None if the estimator has none. UsageError if there
    is none of this name, or its settings are wrong."""

def noise_double(
    logits: NDArray[Any],
    rank: int,
    ids: Optional[NDArray[np.uint32]],
    seed: int,
    law: str,
    samples: int,
    temperature: float,
    form: str,
    threads: int,
) -> tuple[Optional[NDArray[Any]], Optional[NDArray[Any]]]:
    """The rows and the noise that are drawn with logits [E, D, S], or of bits [E, D]; see
    torch/noise.py. They are the same for any number of threads."""

noise_float = noise_double

def noise_key(seed: int) -> int:
    """The key of the noise of a draw with this seed."""

def uniforms(
    seed: int, ids: NDArray[Any], samples: int, columns: int, index: int
) -> NDArray[np.float64]:
    """[E, K, D] the uniform numbers at an index of the noise."""

class Mixture:
    """The noise of a step's draws, which seeks rare options. index: the replicate's place among
    those of this seed; examples, draws: how many have a rare option, and how many draws an example
    at most. Without arguments: draws from the law, to count these."""
    def __init__(
        self, seed: int = ..., index: int = ..., examples: int = ..., draws: int = ...
    ) -> None: ...
    def knows(self, seed: int) -> bool:
        """Whether a call with this seed was made; another one is the same call again."""
    @property
    def seeds(self) -> list[int]:
        """Of the calls so far."""
    @property
    def coupled(self) -> bool:
        """Whether calls or examples share their noise: then the weight is wrong."""
    @property
    def seen(self) -> tuple[int, int]:
        """The examples and draws so far."""
    @property
    def weight(self) -> float:
        """The ratio of the law to the mixture at the draws so far."""

class Replicates:
    """Gradients [P] added one after another, around a reference [P]; intervals are from the scatter
    of at most `most_blocks` blocks.
    parts: ranges of the parameters for `part`."""
    def __init__(
        self, reference: NDArray[np.float64], most_blocks: int, parts: list[tuple[int, int]]
    ) -> None: ...
    def add(self, gradient: NDArray[np.float64], weight: float = 1.0) -> bool:
        """False, and nothing is added, if an entry is not finite."""
    def finish(self) -> None:
        """Before what follows. UsageError for fewer than two gradients."""
    def part(self, index: int) -> Replicates:
        """Of a part of the parameters, finished: slices of the sums. Without cosines, tail and
        bias_p_value, which are NaN."""
    @property
    def count(self) -> int: ...
    def mean(self) -> NDArray[np.float64]: ...
    def variances(self) -> NDArray[np.float64]: ...
    def variance_interval(self, level: float) -> tuple[float, float]: ...
    def summary(
        self, long_run: Optional[Replicates], known: bool, single: bool, rows: float, level: float
    ) -> dict[str, Any]:
        """numbers, intervals, unsupported: quantities of experiments/measurement/quantities.hpp.
        known: whether the reference (the mean of long_run, if there is one) is the true gradient;
        single: in single precision."""

def quantities() -> dict[str, dict[str, Any]]:
    """By name of a quantity of a measurement: units, long_name and other attributes of its variable
    (experiments/measurement/quantities.hpp)."""

def policy_terms() -> dict[str, Any]:
    """Of policy_gradient's settings advantage, ratio, bound and aggregation: words by name; of
    divergence: the names of those of a token (core/estimator/score_function/policy_terms.hpp)."""

def policy_advantages(
    name: str,
    rewards: NDArray[np.float64],
    lengths: NDArray[np.float64],
    log_p: NDArray[np.float64],
    log_q: NDArray[np.float64],
    epsilon: float,
) -> NDArray[np.float64]:
    """[n, K], of groups [n, K]; log_p, log_q: of whole sequences."""

def policy_weights(
    ratio: str,
    bound: str,
    limits: tuple[float, ...],
    top_entropy: float,
    advantage: NDArray[np.float64],
    log_ratio: NDArray[np.float64],
    log_p: NDArray[np.float64],
    entropy: NDArray[np.float64],
    lengths: NDArray[np.float64],
) -> NDArray[np.float64]:
    """[n, K, T] W of tokens [n, K, T]. limits: low, high, dual; the shapes for samples that are
    better than the baseline and for others; their rates."""

def policy_shares(
    aggregation: str, lengths: NDArray[np.float64], longest: float
) -> NDArray[np.float64]: ...
def policy_divergence(
    name: str, weighted: bool, m: NDArray[np.float64], log_ratio: NDArray[np.float64]
) -> NDArray[np.float64]:
    """[S, T] slopes in log p, of m = log p - log r; weighted: with the ratio."""

def precision(single: bool) -> dict[str, Any]:
    """The attributes of a result that follow from its precision."""

def estimators() -> list[str]: ...
def claims_unbiased(spec: str) -> bool: ...
def describe(name: str) -> str: ...
def count_options(logits: NDArray[np.float64], rank: int) -> NDArray[np.int64]: ...
def draw_double(
    estimator: Estimator,
    logits: NDArray[Any],
    rank: int,
    picks: int,
    state: Optional[NDArray[Any]],
    ids: Optional[NDArray[np.uint32]],
    tables: Optional[NDArray[np.float64]],
    loss: Optional[_Loss],
    takes_weights: bool,
    seed: int,
    learning: bool,
    with_options: bool,
    later: bool,
    mixture: Optional[Mixture],
    behaviour: Optional[NDArray[Any]],
    reference: Optional[NDArray[Any]],
    threads: int,
) -> Any:
    """threads: 0: one per core. The numbers are the same for any number of threads; the loss is
    called by the caller's."""

draw_float = draw_double

def moments(
    estimator: Estimator,
    logits: NDArray[np.float64],
    rank: int,
    table: NDArray[np.float64],
    multilinear: bool,
    loss: Optional[_Loss],
    cap: float,
    covariance: bool,
    behaviour: Optional[NDArray[np.float64]],
    reference: Optional[NDArray[np.float64]],
    of_batch: bool,
) -> dict[str, Any]: ...
def test(
    spec: str, to_the_first_failure: bool, quick: bool
) -> tuple[bool, bool, list[tuple[str, str, str, str]]]: ...
def test_written(
    function: Callable[[Any, Any, Any, Any, int], Any],
    samples: int,
    derivatives: bool,
    unbiased: bool,
    to_the_first_failure: bool,
    quick: bool,
) -> tuple[bool, bool, list[tuple[str, str, str, str]]]: ...

class RunHandleFloat:
    """One run of a network, during its lifetime: see experiments/python/episode.cpp. pull: from a
    cotangent to the derivatives in the weights of all relaxed choices so far, each an array or
    None; None if there are none."""
    def choose(
        self,
        name: str,
        logits: NDArray[Any],
        posterior: Optional[NDArray[Any]],
        behaviour: Optional[NDArray[Any]],
        reference: Optional[NDArray[Any]],
        state: Optional[NDArray[Any]],
        place: int,
        pull: Optional[_Pull],
        pull_posterior: Optional[_Pull],
        pull_reference: Optional[_Pull],
    ) -> tuple[Any, Any, NDArray[np.int64], NDArray[np.int64]]: ...
    def cost(self, losses: NDArray[Any], place: int, pull: Optional[_Pull]) -> None: ...

class RunHandleDouble(RunHandleFloat):
    """The same in double precision."""

_Pull = Callable[[Any], list[Any]]
_Sites = list[tuple[str, int, int, int, int, int, int]]
#: Whether every choice has a posterior, a behaviour policy, a reference policy.
_Laws = tuple[bool, bool, bool]
#: The value [E]; the slope of each input of the runs, in order; the number of rows; the gradient of
#: the estimator's own loss; the ratios of its samples.
_Found = tuple[NDArray[Any], list[NDArray[Any]], float, NDArray[Any], Ratios]

class BlockFloat:
    """An episode whose network is a `with` block."""
    def __init__(
        self,
        estimator: Estimator,
        sites: _Sites,
        laws: _Laws,
        examples: int,
        ids: Optional[NDArray[np.uint32]],
        seed: int,
        learning: bool,
        mixture: Optional[Mixture],
    ) -> None: ...
    @property
    def asking(self) -> RunHandleFloat: ...
    def end(self) -> _Found: ...
    def drop(self) -> None: ...

class BlockDouble(BlockFloat):
    """The same in double precision."""

def run_episode_float(
    estimator: Estimator,
    sites: _Sites,
    laws: _Laws,
    examples: int,
    ids: Optional[NDArray[np.uint32]],
    seed: int,
    learning: bool,
    mixture: Optional[Mixture],
    network: Callable[[Any], Any],
) -> _Found: ...

run_episode_double = run_episode_float
