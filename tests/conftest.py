"""For every test in Python: the shell that starts them may hold what changes what the program says."""
import os

os.environ.pop("OPENBLAS_CORETYPE", None)  # the program warns of a forced kernel, where tests expect nothing on the error stream
