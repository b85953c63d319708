"""Whether two outputs of the program are equal up to rounding."""

import pytest


def close(value, other, relative):
    """Whether two JSON values are equal up to rounding, except for times."""
    if isinstance(other, dict):
        return set(value) == set(other) and all(
            close(value[k], other[k], relative) for k in other if k not in ("seconds", "timing")
        )
    if isinstance(other, list):
        return len(value) == len(other) and all(close(v, o, relative) for v, o in zip(value, other))
    return value == pytest.approx(other, rel=relative, abs=1e-12) if isinstance(other, float) else value == other
