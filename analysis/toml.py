"""The standard library's `tomllib`. Python 3.10 has it as the package tomli."""
import sys

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = ["tomllib"]
