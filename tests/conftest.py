"""For all Python tests: removes environment variables that change the program's output."""

import os

os.environ.pop("OPENBLAS_CORETYPE", None)  # a forced kernel causes a warning; tests expect an empty error stream
