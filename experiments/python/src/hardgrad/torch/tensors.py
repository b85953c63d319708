"""Tensors for `hardgrad.torch`: their checks and derivatives; and numbers on their way between
core, in the CPU's memory, and the device of a user's tensors. What goes together is one transfer;
only those to the CPU wait for the device."""

from __future__ import annotations

import functools
import sys
from typing import Any, Callable, Optional, ParamSpec, Sequence, TypeVar, Union

import numpy as np
import torch
from torch import Tensor

from .._core import UsageError

DTYPES = (torch.float32, torch.float64)  #: of core
USERS_DTYPES = (torch.float16, torch.bfloat16, *DTYPES)
P = ParamSpec("P")
Result = TypeVar("Result")
AS_IS = "as is"  #: instead of examples
Slope = tuple[Optional[Tensor], Union[None, str, Tensor]]


class _Last(torch.autograd.Function):
    """The numbers of the first tensor, as a function of all, which cannot be differentiated."""

    @staticmethod
    def forward(ctx: Any, *given: Any, **named: Any) -> Any:
        return given[0].view_as(given[0])

    @staticmethod
    def backward(ctx: Any, *cotangents: Any) -> Any:
        raise UsageError(
            "the gradient of an estimate was differentiated (create_graph=True): an estimate "
            "has first derivatives only. "
            "Detach the gradient, or take its second derivatives from an expected loss of your own"
        )


def once(backward: Callable[..., Any]) -> Callable[..., Any]:
    """Makes a backward whose slopes cannot be differentiated: as constants they would give wrong
    second derivatives. (PyTorch's once_differentiable takes them for constants unless the cotangent
    needs a gradient.) The forward saves its tensors."""

    def chosen(ctx: Any, *cotangents: Any) -> Any:
        if not torch.is_grad_enabled():  # no create_graph
            return backward(ctx, *cotangents)
        with torch.no_grad():
            found = backward(ctx, *cotangents)
        return tuple(
            slope if slope is None else _Last.apply(slope, *cotangents, *ctx.saved_tensors)
            for slope in found
        )

    return chosen


def applied(function: Any) -> Callable[..., Any]:
    """Its `apply` without the way to torch.func, which takes as long as five operations."""
    found: Callable[..., Any] = super(torch.autograd.Function, function).apply
    return found


#: Whether torch.compile looks at this code (PyTorch 2).
compiling: Callable[[], bool] = getattr(
    getattr(torch, "compiler", None), "is_dynamo_compiling", lambda: False
)
#: Whether grad, vmap and the like of torch.func are at work (PyTorch 2); the compiler knows it.
transforming: Callable[[], bool] = getattr(
    torch._C, "_are_functorch_transforms_active", lambda: False
)


def eager(function: Callable[P, Result]) -> Callable[P, Result]:
    """A function that torch.compile does not look into: the graph breaks there. (PyTorch's own mark
    imports the compiler, which takes seconds.)"""
    return _marked(function, lambda *given, **named: None)


def eager_unless(
    in_graph: Callable[..., Any],
) -> Callable[[Callable[P, Result]], Callable[P, Result]]:
    """The same, but there is no break where `in_graph`, which torch.compile does look into, gives a
    result that is not None. It is asked inside torch.func's transforms, too."""

    def mark(function: Callable[P, Result]) -> Callable[P, Result]:
        return _marked(function, in_graph)

    return mark


def _marked(function: Callable[P, Result], in_graph: Callable[..., Any]) -> Callable[P, Result]:
    disabled: list[Callable[P, Result]] = []  # once the compiler is there

    @functools.wraps(function)
    def called(*given: P.args, **named: P.kwargs) -> Result:
        if compiling() or transforming():
            found: Optional[Result] = in_graph(*given, **named)
            if found is not None:
                return found
        if not disabled and "torch._dynamo" not in sys.modules:
            return function(*given, **named)
        if not disabled:
            compiler: Any = sys.modules["torch._dynamo"]
            disabled.append(compiler.disable(function))
        return disabled[0](*given, **named)

    return called


class Estimate(torch.autograd.Function):
    """Numbers [E] with known derivatives: `apply((value, slopes), *tensors)`. For each tensor,
    slopes holds the derivative of the sum of the numbers (None: zero), and the example of each of
    its rows [R] (None: row e belongs to example e; AS_IS: it is the gradient, whatever the
    cotangent)."""

    @staticmethod
    def forward(ctx: Any, *given: Any, **named: Any) -> Any:
        (value, ctx.slopes), *tensors = given
        ctx.save_for_backward(*tensors)
        ctx.shapes = [tensor.shape for tensor in tensors]
        return value

    @staticmethod
    @once
    def backward(ctx: Any, *cotangents: Any) -> Any:
        return None, *(
            _weighted(cotangents[0], slope, example, shape)
            if wanted and slope is not None
            else None
            for (slope, example), shape, wanted in zip(
                ctx.slopes, ctx.shapes, ctx.needs_input_grad[1:]
            )
        )


def _weighted(
    cotangent: Tensor, slope: Tensor, example: Union[None, str, Tensor], shape: Any
) -> Tensor:
    if isinstance(example, str):
        return slope
    of_rows = cotangent if cotangent.device == slope.device else cotangent.to(slope.device)
    if example is not None:
        of_rows = of_rows[example]
    if slope.dim() > 1:
        of_rows = of_rows.reshape(-1, *(1,) * (slope.dim() - 1))
    weighted = of_rows * slope
    return weighted if weighted.shape == shape else weighted.reshape(shape)


def check_logits(logits: Any, what: str = "logits") -> None:
    """UsageError unless this is a tensor that Hardgrad supports."""
    if not isinstance(logits, Tensor):
        raise UsageError(f"{what} are of type {type(logits).__name__}, expected a tensor")
    check(logits, what)


# Whether a tensor is inside grad, vmap and the like of torch.func (PyTorch 2).
_transformed = getattr(
    getattr(torch._C, "_functorch", None), "is_functorch_wrapped_tensor", lambda tensor: False
)


def check(tensor: Tensor, what: str, transformed: bool = False) -> None:
    """UsageError unless Hardgrad supports the tensor's layout and dtype, and it has numbers.
    transformed: it may be inside grad, vmap and the like of torch.func."""
    if tensor.is_meta:
        raise UsageError(f"{what} are on meta, where tensors have no numbers")
    if not transformed and not compiling() and _transformed(tensor):
        raise UsageError(
            f"{what} are transformed by torch.func, which sees the gradient of `expectation` with "
            "estimators that have a formula only (as rloo, disarm, straight_through; PyTorch 2.5), "
            "for batches that are not empty and choices of several options: "
            "draw outside of grad, vmap and the like, "
            "and differentiate by backward or torch.autograd.grad"
        )
    if tensor.layout != torch.strided or tensor.dtype not in USERS_DTYPES:
        raise UsageError(
            f"{what} are {tensor.dtype} in layout {tensor.layout}: they must be dense, of "
            "float16, bfloat16, float32 or float64"
        )


def captured(tensor: Tensor) -> bool:
    """Whether operations with this tensor are captured into a CUDA graph."""
    return tensor.is_cuda and torch.cuda.is_current_stream_capturing()


def normal(tensor: Tensor) -> Tensor:
    """The tensor; a copy if it was made in inference mode, which is over: autograd keeps no such
    tensor."""
    over = tensor.is_inference() and not torch.is_inference_mode_enabled()
    return tensor.clone() if over else tensor


def of_core(dtype: torch.dtype) -> torch.dtype:
    """The dtype in which core computes for users' numbers: float32 for shorter ones."""
    return torch.float64 if dtype == torch.float64 else torch.float32


def one_hot(options: Tensor, count: int, dtype: torch.dtype) -> Tensor:
    """[R, D, count] of options [R, D], or of subsets [R, D, k]; on a device, nothing waits for
    their values."""
    picked = options if options.dim() == 3 else options[..., None]
    return options.new_zeros(*options.shape[:2], count, dtype=dtype).scatter_(-1, picked, 1)


def check_losses(losses: Any, rows: int, transformed: bool = False) -> Tensor:
    """The losses [rows] that a user's function returned."""
    if not isinstance(losses, Tensor):
        raise UsageError(f"f returned losses of type {type(losses).__name__}, expected a tensor")
    if losses.shape != (rows,):
        raise UsageError(
            f"f returned losses of shape {list(losses.shape)}, expected {[rows]}: one for each row"
        )
    check(losses, "the losses that f returned", transformed)
    return losses


def leads_to(losses: Tensor, z: Tensor) -> bool:
    """Whether z is in the autograd graph of the losses; a breadth-first search, since z is near."""
    nodes, seen = [losses.grad_fn], {losses.grad_fn}
    for node in nodes:
        if node is z.grad_fn:
            return True
        for following, _ in node.next_functions if node else ():
            if following not in seen:
                seen.add(following)
                nodes.append(following)
    return False


def drawn_seed(seed: Optional[int], generator: Optional[torch.Generator]) -> int:
    """The seed, or one from PyTorch's generator."""
    return int(random_seed(generator).item()) if seed is None else seed


def random_seed(generator: Optional[torch.Generator]) -> Tensor:
    """One from PyTorch's generator."""
    where = "cpu" if generator is None else generator.device
    return torch.randint(2**63 - 1, (), generator=generator, device=where)


def fetched(tensors: Sequence[Tensor], dtype: torch.dtype) -> list[Any]:
    """The numbers as arrays of this dtype; they share the memory of a tensor in the CPU's.
    UsageError while a CUDA graph is captured."""
    found: list[Any] = [None] * len(tensors)
    far: dict[torch.device, list[int]] = {}
    for place, x in enumerate(tensors):
        if x.device.type == "cpu":
            found[place] = x.detach().to(dtype).contiguous().numpy()
        elif captured(x):
            raise UsageError(
                "numbers of a stream that is captured into a CUDA graph are needed by the CPU, "
                "which draws for this estimator: a graph cannot repeat that"
            )
        else:
            far.setdefault(x.device, []).append(place)
    for places in far.values():
        packed = (
            torch.cat([tensors[place].detach().to(dtype).reshape(-1) for place in places])
            .to("cpu")
            .numpy()
        )
        for place, part in zip(
            places, np.split(packed, np.cumsum([tensors[place].numel() for place in places])[:-1])
        ):
            found[place] = part.reshape(tensors[place].shape)
    return found


def sent(arrays: Sequence[Any], device: torch.device) -> list[Tensor]:
    """The arrays as tensors on a device."""
    here = [torch.from_numpy(np.ascontiguousarray(x)) for x in arrays]
    if device.type == "cpu":
        return here
    packed = torch.cat([_bytes(x) for x in here]).to(device, non_blocking=device.type == "cuda")
    found, end = [], 0
    for x in here:
        begin, size = end, x.numel() * x.element_size()
        end += _padded(size)
        found.append(packed[begin : begin + size].view(x.dtype).reshape(x.shape))
    return found


def _bytes(x: Tensor) -> Tensor:
    flat = x.reshape(-1).view(torch.uint8)
    return torch.nn.functional.pad(flat, (0, _padded(len(flat)) - len(flat)))


def _padded(size: int) -> int:
    """So that every array begins at a multiple of 8 bytes, the longest of its numbers."""
    return -(-size // 8) * 8
