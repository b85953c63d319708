"""`hardgrad.torch.compare`, and `Monitor`: comparisons along training."""

from __future__ import annotations

import os
import time
from contextlib import contextmanager
from typing import (
    TYPE_CHECKING,
    Any,
    Callable,
    ContextManager,
    Iterable,
    Iterator,
    Literal,
    Mapping,
    Optional,
    Union,
)

import torch
from torch import Tensor

from .._core import Mixture, UsageError
from ..compare import Estimators, Options, entries_of, measured
from ..comparison import Comparison, written
from ..gradients import Counted, EstimatorCache, Evaluated, Parameters
from .draws import HELD, metered
from .tensors import fetched

if TYPE_CHECKING:
    import xarray

Given = Union[Iterable[Tensor], Mapping[str, Union[Tensor, Iterable[Tensor]]]]
Step = Callable[[Any], Any]


class Tensors(Parameters):
    """Tensors of PyTorch. A loss is a function without arguments that returns a scalar."""

    framework, held = "torch", HELD
    advice = (
        "Take noise from PyTorch's generator, data that are the same at each call, and no state "
        "that changes"
    )

    def __init__(self, given: Given):
        named = (
            {
                name: [value] if isinstance(value, Tensor) else list(value)
                for name, value in given.items()
            }
            if isinstance(given, Mapping)
            else None
        )
        several: list[tuple[Optional[str], Any]] = (
            [(None, x) for x in given]
            if named is None
            else [(name, x) for name, tensors in named.items() for x in tensors]
        )
        if wrong := [x for _, x in several if not isinstance(x, Tensor)]:
            raise UsageError(
                f"parameters hold an object of type {type(wrong[0]).__name__}, expected tensors"
            )
        if len({id(x) for _, x in several}) < len(several):
            raise UsageError("parameters hold the same tensor twice")
        trained = [(name, x) for name, x in several if x.requires_grad]
        self.tensors = [x for _, x in trained]
        if not trained:
            raise UsageError("parameters hold no tensor that requires a gradient")
        if complex_ := [x for x in self.tensors if x.is_complex()]:
            raise UsageError(
                f"parameters hold a tensor of {complex_[0].dtype}, expected real numbers"
            )
        super().__init__(
            [tuple(x.shape) for x in self.tensors],
            [f"parameter {place}" for place in range(len(trained))],
            [name for name, _ in trained],
            len(several) - len(trained),
            all(torch.finfo(x.dtype).eps > 1e-9 for x in self.tensors),
        )
        self._devices = sorted({x.device.index or 0 for x in self.tensors if x.is_cuda})
        self._on_host = all(x.device.type == "cpu" for x in self.tensors)
        self._seeded = False
        self._seen = self._versions()
        self._copies = [x.detach().clone() for x in self.tensors]

    @staticmethod
    def asking(step: Any, estimator: Any) -> Callable[[], Any]:
        return lambda: step(estimator)

    def evaluated(self, loss: Callable[[], Any]) -> Evaluated:
        dtype = torch.float32 if self.single else torch.float64

        def of(seed: int) -> Any:
            self._seed(seed)
            value = loss()
            gradients = self._gradients(value)
            there = [x.to_dense() if x.is_sparse else x for x in gradients if x is not None]
            *found, number = fetched([*there, value], dtype)
            numbers = iter(found)
            return [None if x is None else next(numbers) for x in gradients], number

        return of

    def _gradients(self, loss: Any) -> Any:
        if not isinstance(loss, Tensor) or loss.numel() != 1:
            what = (
                f"a tensor of shape {list(loss.shape)}"
                if isinstance(loss, Tensor)
                else f"an object of type {type(loss).__name__}"
            )
            raise UsageError(f"the step returned {what}, expected a scalar loss")
        if not loss.requires_grad:
            raise UsageError(
                "the step returned a loss without a gradient: no operation on a parameter is "
                "recorded"
            )
        try:
            return torch.autograd.grad(loss.reshape(()), self.tensors, allow_unused=True)
        except RuntimeError as error:
            if "second time" in str(error):
                raise UsageError(
                    "the step has called backward() already: it must return the loss only"
                ) from error
            raise

    @contextmanager
    def counting(
        self, kept: EstimatorCache, learning: bool, mixture: Optional[Mixture]
    ) -> Iterator[Counted]:
        with metered(kept, learning, mixture) as meter, torch.enable_grad():
            yield meter

    def stopwatch(self) -> Callable[[], float]:
        if self._on_host:
            return super().stopwatch()
        if self._devices:
            first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            first.record()

            def elapsed() -> float:
                last.record()
                last.synchronize()
                return first.elapsed_time(last) / 1e3

            return elapsed
        begin = time.perf_counter()
        return lambda: time.perf_counter() - begin

    def own_noise(self) -> ContextManager[Any]:
        forked: ContextManager[Any] = torch.random.fork_rng(devices=self._devices)
        return forked

    def _seed(self, seed: int) -> None:
        """As torch.manual_seed. That one also notes the seed for a CUDA that may be used later,
        with a trace of the stack, which takes as long as a small step; so it is called once, and
        again if anything but the CPU is in use."""
        if self._seeded and self._on_host and not torch.cuda.is_initialized():
            torch.default_generator.manual_seed(seed)
        else:
            torch.manual_seed(seed)
            self._seeded = True

    def _versions(self) -> list[Any]:
        return [(x._version, x.data_ptr()) for x in self.tensors]

    def changed(self) -> Optional[str]:
        now = self._versions()
        places = [i for i, (new, old) in enumerate(zip(now, self._seen)) if new != old]
        if not places:
            return None
        with torch.no_grad():
            for tensor, copy in zip(self.tensors, self._copies):
                tensor.copy_(copy)
        self._seen = self._versions()
        return self.in_words(places[0])


def compare(
    step: Optional[Step],
    parameters: Given,
    estimators: Estimators,
    *,
    reference: Any = "auto",
    replicates: Optional[int] = None,
    seconds: Optional[float] = None,
    by: Literal["auto", "rows", "seconds"] = "auto",
    seed: int = 0,
    warmup: int = 200,
    cap: float = 1e5,
    coordinates: bool = False,
) -> Comparison:
    """Bias, variance and cost of gradient estimators at the parameters of your own network, as they
    are now.

        print(hardgrad.torch.compare(lambda estimator: loss(batch, estimator), model.parameters(),
                                     ["rloo[samples=4]", "rebar"], seconds=30))

    step: a function of the estimator that returns the scalar loss of the training loop, made of
        `expectation`, `episode`, or anything else whose backward pass estimates a gradient. Its
        noise must follow `torch.manual_seed`, and its data must be the same at each call. It must
        not call backward(), nor change the parameters. None if all estimators are functions.
    parameters: the tensors of the gradient, or a dictionary of groups of them: {"encoder":
        encoder.parameters(), ...}. Each group then has figures of its own. `.grad` is not touched.
    estimators: specs such as "rloo[samples=4]", or `hardgrad.Estimator`s; or a dictionary from
        names to these, to any other object for `step`, or to a function without arguments that
        returns a loss (code of your own, or of another library).
    reference: the true gradient. "auto": `step("exact")`, if it takes at most `cap` rows; else a
        long run of "rloo[samples=4]". A spec, an Estimator or the name of an entry: this one, as a
        long run unless it has no noise. A long run takes at most a third of all gradients and of
        the time; its noise is part of every interval and p. None: no bias is measured.
    replicates: gradients drawn for each estimator; by default 256, or as many as fit in `seconds`.
    seconds: time for the whole call. Every estimator gets an equal share, but at least 8 gradients.
    by: the cost that ranks: "rows" of the network, or "seconds". "auto" takes rows, if they are
        known for all.
    seed: the same seed, and the same number of replicates, give the same figures. PyTorch's
        generator keeps its state.
    warmup: number of steps in which an estimator that learns, and is given by name, learns before
        it is measured (in at most half of its time). An `Estimator` is measured as it is. Measuring
        teaches it nothing.
    cap: most rows of one run of the exact reference.
    coordinates: also keep mean and variance of every coordinate: two vectors as long as the
        parameters for each estimator.

    Returns a `Comparison`; print it. An estimator that fails has its reason there, and the others
    are kept. UsageError if all fail, or the arguments are invalid. Where options are rare, half of
    the replicates draw one or two choices of the step from a flatter law, and all have weights, so
    that rare terms are seen; 16 steps before show where. (Not where calls share a seed.) Memory:
    about 40 double-precision vectors as long as the parameters, 75 with weights; 15 in networks of
    a few hundred million parameters, whose intervals are wider. Gradients are drawn in turns, if
    the vectors of all estimators fit in 4 GiB, so that a busy machine slows all alike; seconds are
    those of the processors, or of a CUDA device. Sources: as `hardgrad measure`
    (results/README.md).
    """
    options = Options(reference, replicates, seconds, by, seed, warmup, cap, coordinates)
    return measured(entries_of(step, estimators, Tensors), step, Tensors(parameters), options)


class Monitor:
    """Compares estimators along the training of a network:

        monitor = hardgrad.torch.Monitor(lambda estimator: loss(batch, estimator),
                                         model.parameters(), ["rloo[samples=4]", "nvil"], every=500)
        for step in range(10000):
            monitor(step)
            ...

    step, parameters, estimators: as in `compare`. An estimator given by name keeps its learned
        state between measurements.
    every: the number of steps from one measurement to the next; 0 is the first.
    options: those of `compare`, by name.
    results: the comparison of each measured step.
    """

    def __init__(
        self,
        step: Optional[Step],
        parameters: Given,
        estimators: Estimators,
        every: int = 500,
        **options: Any,
    ):
        if every < 1:
            raise UsageError(f"every is at least 1, got {every}")
        self.every, self.results = every, dict[int, Comparison]()
        self._step, self._entries = step, entries_of(step, estimators, Tensors)
        self._parameters: Any = (
            {name: [x] if isinstance(x, Tensor) else list(x) for name, x in parameters.items()}
            if isinstance(parameters, Mapping)
            else list(parameters)
        )
        self._options = Options(**options)

    def __call__(self, step: int) -> Optional[Comparison]:
        """The comparison if this step is measured, else None."""
        if step % self.every:
            return None
        self.results[step] = measured(
            self._entries, self._step, Tensors(self._parameters), self._options
        )
        return self.results[step]

    def to_xarray(self) -> xarray.Dataset:
        """All measurements, along the axis measurement_step."""
        import xarray

        if not self.results:
            raise UsageError("nothing has been measured yet")
        each = [result.to_xarray(step) for step, result in self.results.items()]
        along = xarray.concat(
            each,
            "measurement_step",
            data_vars="minimal",
            coords="minimal",
            compat="override",
            join="outer",
        )
        return along.assign_attrs(each[-1].attrs)

    def save(self, path: Union[str, os.PathLike[str]]) -> None:
        """Writes it to a file, as `Comparison.save`."""
        written(self.to_xarray(), path)
