"""Comparisons along training."""
from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Mapping, Optional, Union

from torch import Tensor

from ._compare import Estimators, Options, entries_of, measured
from ._comparison import Comparison, written
from ._core import UsageError
from ._torch_compare import Given, Step, Tensors

if TYPE_CHECKING:
    import xarray


class Monitor:
    """Compares estimators along the training of a network:

        monitor = hardgrad.torch.Monitor(lambda estimator: loss(batch, estimator), model.parameters(), ["rloo[samples=4]", "nvil"], every=500)
        for step in range(10000):
            monitor(step)
            ...

    step, parameters, estimators: as in `compare`. An estimator given by name keeps its learned state between measurements.
    every: the number of steps from one measurement to the next; 0 is the first.
    options: those of `compare`, by name.
    results: the comparison of each measured step.
    """

    def __init__(self, step: Optional[Step], parameters: Given, estimators: Estimators, every: int = 500, **options: Any):
        if every < 1:
            raise UsageError(f"every is at least 1, got {every}")
        self.every, self.results = every, dict[int, Comparison]()
        self._step, self._entries = step, entries_of(step, estimators, Tensors)
        self._parameters: Any = ({name: [x] if isinstance(x, Tensor) else list(x) for name, x in parameters.items()}
                                 if isinstance(parameters, Mapping) else list(parameters))
        self._options = Options(**options)

    def __call__(self, step: int) -> Optional[Comparison]:
        """The comparison if this step is measured, else None."""
        if step % self.every:
            return None
        self.results[step] = measured(self._entries, self._step, Tensors(self._parameters), self._options)
        return self.results[step]

    def to_xarray(self) -> xarray.Dataset:
        """All measurements, along the axis measurement_step."""
        import xarray
        if not self.results:
            raise UsageError("nothing has been measured yet")
        each = [result.to_xarray(step) for step, result in self.results.items()]
        along = xarray.concat(each, "measurement_step", data_vars="minimal", coords="minimal", compat="override", join="outer")
        return along.assign_attrs(each[-1].attrs)

    def save(self, path: Union[str, os.PathLike[str]]) -> None:
        """Writes it to a file, as `Comparison.save`."""
        written(self.to_xarray(), path)
