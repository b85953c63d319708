"""Expected losses of discrete choices in PyTorch, differentiable by any of Hardgrad's estimators.

    loss = hardgrad.torch.expectation(logits, f, "rloo[samples=4]").mean()
    loss.backward()

`sample` draws choices whose loss comes later, as `F.gumbel_softmax` does. Choices that feed later
ones are made in an `episode`. `compare` measures estimators on a network of your own, and `Monitor`
does so along its training. `tempered`, `top_k` and `top_p` are the laws of samplers, as behaviour
policies. `test` judges an estimator written in PyTorch, `policy_loss` a trainer's loss of sampled
sequences. The logits get the estimator's gradient, and parameters inside f their path gradient,
both by PyTorch's `backward`. Tensors may be on any device. Draws are made on the CPU: in double
precision for float64, else in single.
"""

from ..comparison import Comparison, Measured
from .compare import Monitor, compare
from .episode import Choice, Episode, Run, episode
from .estimator import Estimator, Site
from .expectation import expectation
from .policies import tempered, top_k, top_p
from .policy_loss import JudgedLoss, Sequences, assert_unbiased, policy_loss
from .sample import sample
from .test import test

__all__ = [
    "Choice",
    "Comparison",
    "Episode",
    "Estimator",
    "JudgedLoss",
    "Measured",
    "Monitor",
    "Run",
    "Sequences",
    "Site",
    "assert_unbiased",
    "compare",
    "episode",
    "expectation",
    "policy_loss",
    "sample",
    "tempered",
    "test",
    "top_k",
    "top_p",
]
