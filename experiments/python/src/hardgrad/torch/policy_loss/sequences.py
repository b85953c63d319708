"""Short sequences whose policy is a table: the gradient of every expectation is a finite sum."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import cached_property
from typing import Optional

import numpy as np

from ..._core import UsageError
from ...losses import Floats, Ints

MOST_SEQUENCES = 4096
MOST_GROUPS = 60_000  #: that are enumerated


@dataclass(frozen=True)
class Sequences:
    """All sequences of words up to a length, with their rewards, and three policies over them.

    A sequence ends with the symbol `words`, the end, unless it has `longest` words; with
    `ends=False` there is no such symbol. The default, 2 words and at most 4, has 31 sequences and
    45 logits, in the order of Hardgrad's `writer[policy=table]`.

    logits: [prefixes, options] of the policy after every prefix: shorter ones first, then by their
        words from the last to the first.
    behaviour: logits of the policy that draws; None: the policy itself.
    reference: logits of the policy from which a divergence is measured; None: there is none.
    rewards: [sequences], in the same order.
    """

    logits: Floats
    behaviour: Optional[Floats]
    reference: Optional[Floats]
    rewards: Floats
    words: int = 2
    longest: int = 4
    ends: bool = True

    def __post_init__(self) -> None:
        _check_size(self.words, self.longest, self.ends)
        for name in ("logits", "behaviour", "reference", "rewards"):
            given = getattr(self, name)
            if given is None and name in ("behaviour", "reference"):
                continue
            found = np.asarray(given, np.float64)
            shape = (
                (len(self.written),)
                if name == "rewards"
                else (len(self.prefixes), self.words + self.ends)
            )
            if found.shape != shape or not np.isfinite(found).all():
                raise UsageError(
                    f"{name} are finite numbers of shape {list(shape)}, got shape "
                    f"{list(found.shape)}"
                )
            object.__setattr__(self, name, found)

    @staticmethod
    def random(
        words: int = 2,
        longest: int = 4,
        *,
        ends: bool = True,
        drift: float = 0.0,
        reference: float = 0.0,
        success: Optional[float] = None,
        seed: int = 0,
    ) -> Sequences:
        """Standard normal logits and rewards.

        drift, reference: the logits of the policy that draws, and of the reference, differ from the
            policy's by this times standard normal numbers; 0: they are the policy's, and there is
            no reference.
        success: rewards are 1 for sequences of about this probability together, else 0.
        """
        _check_size(words, longest, ends)
        generator = np.random.default_rng(seed)
        prefixes = sum(words**n for n in range(longest))
        logits, older, other = generator.normal(size=(3, prefixes, words + ends))
        rewards = generator.normal(size=(prefixes if ends else 0) + words**longest)
        if success is not None:
            if not 0 < success < 1:
                raise UsageError(f"success is a probability between 0 and 1, got {success}")
            p = Sequences(logits, None, None, rewards, words, longest, ends).p
            tries = [_picked(p, success, generator.permutation(len(p))) for _ in range(64)]
            off = [abs(float(p @ picked) - success) for picked in tries]
            rewards = tries[int(np.argmin(off))]
        return Sequences(
            logits,
            logits + drift * older if drift else None,
            logits + reference * other if reference else None,
            rewards,
            words,
            longest,
            ends,
        )

    @cached_property
    def prefixes(self) -> list[tuple[int, ...]]:
        return [s for n in range(self.longest) for s in self._of(n)]

    @cached_property
    def written(self) -> list[tuple[int, ...]]:
        """The words of all sequences."""
        whole = range(self.longest + 1) if self.ends else (self.longest,)
        return [s for n in whole for s in self._of(n)]

    def _of(self, length: int) -> list[tuple[int, ...]]:
        return [s[::-1] for s in itertools.product(range(self.words), repeat=length)]

    @cached_property
    def _tokens(self) -> tuple[Ints, Ints, Floats]:
        """[S, T] the prefix before each token, the token, and 1, or 0 after the end."""
        place = {prefix: i for i, prefix in enumerate(self.prefixes)}
        state, token = np.zeros((2, len(self.written), self.longest), np.int64)
        mask = np.zeros(state.shape)
        for i, s in enumerate(self.written):
            for t, at in enumerate((s + (self.words,))[: self.longest]):
                state[i, t], token[i, t], mask[i, t] = place[s[:t]], at, 1.0
        return state, token, mask

    @property
    def mask(self) -> Floats:
        """[S, T] 1 for the tokens of a sequence, 0 after its end."""
        return self._tokens[2]

    @cached_property
    def lengths(self) -> Floats:
        """[S] numbers of tokens."""
        return np.asarray(self.mask.sum(1))

    @cached_property
    def log_p(self) -> Floats:
        """[S, T] log probabilities of the tokens under the policy; 0 after the end."""
        return self._log_probabilities(self.logits)

    @cached_property
    def log_q(self) -> Floats:
        """As log_p, of the policy that draws."""
        return self.log_p if self.behaviour is None else self._log_probabilities(self.behaviour)

    @cached_property
    def log_r(self) -> Optional[Floats]:
        """As log_p, of the reference policy."""
        return None if self.reference is None else self._log_probabilities(self.reference)

    @cached_property
    def entropy(self) -> Floats:
        """[S, T] of the policy's law at each token; 0 after the end."""
        state, _, mask = self._tokens
        law = _law(self.logits)
        return np.asarray(-(law * np.log(law)).sum(1)[state] * mask)

    @property
    def greedy(self) -> int:
        """The sequence of the most probable tokens."""
        most = self.logits[self._tokens[0]].argmax(2) == self._tokens[1]
        return int((most | (self.mask == 0)).all(1).argmax())

    def _log_probabilities(self, logits: Floats) -> Floats:
        state, token, mask = self._tokens
        return np.asarray(np.log(_law(logits))[state, token] * mask)

    @cached_property
    def p(self) -> Floats:
        """[S] probabilities of the sequences under the policy."""
        return np.exp(self.log_p.sum(1))

    @cached_property
    def q(self) -> Floats:
        """[S] probabilities with which they are drawn."""
        return np.exp(self.log_q.sum(1))

    def at_logits(self, slopes: Floats, sequence: Optional[Ints] = None) -> Floats:
        """[n, P] gradients at the logits.

        slopes: [n, K, T] at the log probabilities of sequences [n, K]; None: of all, [n, S, T].
        """
        state, token, mask = self._tokens
        rows, options = len(slopes), self.logits.shape[1]
        at = np.arange(len(state))[None] if sequence is None else sequence
        slope = slopes * mask[at]
        place = np.broadcast_to(state[at] * options + token[at], slope.shape)
        place = place + np.arange(rows)[:, None, None] * self.logits.size
        hit = np.bincount(place.ravel(), slope.ravel(), rows * self.logits.size)
        hit = hit.reshape(rows, *self.logits.shape)
        return np.asarray(hit - hit.sum(2, keepdims=True) * _law(self.logits)).reshape(rows, -1)

    def expected(self, value: Floats) -> Floats:
        """[P] the gradient of the policy's mean of a value [S]."""
        centred = self.p * (value - self.p @ value)  # the mean has no effect, but on rounding
        return self.at_logits((centred[:, None] * self.mask)[None])[0]

    def divergence(self) -> Floats:
        """[P] the gradient of KL(policy || reference)."""
        assert self.log_r is not None
        return self.expected((self.log_p - self.log_r).sum(1))

    def groups(self, size: int, ordered: bool) -> tuple[Ints, Floats]:
        """All groups [n, K] with their probabilities [n]; unless ordered, each set of sequences
        once, with the probability of all its orders."""
        count = count_groups(len(self.written), size, ordered)
        if count > MOST_GROUPS:
            raise UsageError(
                f"{count:,} groups of {size} of {len(self.written)} sequences are more than "
                f"{MOST_GROUPS:,}: give samples=, which draws that many groups and states their "
                "standard error, or fewer words, shorter sequences or smaller groups"
            )
        every = range(len(self.written))
        each = (
            itertools.product(every, repeat=size)
            if ordered
            else itertools.combinations_with_replacement(every, size)
        )
        group: Ints = np.array(list(each), np.int64).reshape(-1, size)
        probability = np.exp(np.log(self.q)[group].sum(1))
        return group, probability if ordered else probability * _orders(group)

    def drawn(self, size: int, count: int, seed: int) -> tuple[Ints, Floats]:
        """Groups drawn at random, with the weight 1 / count."""
        generator = np.random.default_rng(seed)
        law = self.q / self.q.sum()
        group: Ints = generator.choice(len(law), (count, size), p=law).astype(np.int64)
        return group, np.full(count, 1 / count)


def _picked(p: Floats, success: float, order: Ints) -> Floats:
    """1 for sequences of at most this probability together, at least one; else 0."""
    picked = np.zeros(len(p))
    picked[p.argmin()] = 1.0
    for s in order:
        if not picked[s]:
            picked[s] = float(p @ picked + p[s] <= success)
    return picked


def _check_size(words: int, longest: int, ends: bool) -> None:
    if words < 1 or longest < 1 or words + ends < 2:
        raise UsageError("words and longest are at least 1, and words at least 2 with ends=False")
    if float(words) ** longest > MOST_SEQUENCES:
        raise UsageError(
            f"{words} words and {longest} places make more than {MOST_SEQUENCES} sequences: take "
            "fewer words, or shorter sequences"
        )


def count_groups(sequences: int, size: int, ordered: bool) -> int:
    return sequences**size if ordered else math.comb(sequences + size - 1, size)


def _orders(group: Ints) -> Floats:
    """[n] orders in which each sorted group [n, K] may be drawn: K! over its multiplicities!."""
    orders = np.full(len(group), float(math.factorial(group.shape[1])))
    run = np.ones(len(group))
    for k in range(1, group.shape[1]):
        run = np.where(group[:, k] == group[:, k - 1], run + 1, 1)
        orders /= run
    return orders


def _law(logits: Floats) -> Floats:
    e = np.exp(logits - logits.max(1, keepdims=True))
    return np.asarray(e / e.sum(1, keepdims=True))
