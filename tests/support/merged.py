"""The contents of a merged file, for bitwise comparison."""

import h5py
import numpy as np


def arrays(path):
    """{name: (shape, values)} of all arrays except times."""
    with h5py.File(path) as file:
        values = {name: (data.shape, np.asarray(data[()])) for name, data in file.items() if "seconds" not in name}
    return {
        name: (shape, found.tolist() if found.dtype.kind == "O" else found.tobytes()) for name, (shape, found) in values.items()
    }
