"""core/dependencies.cmake: a library that is missing or too old is one line, before anything is compiled. The libraries are fakes, found
instead of the installed ones. CMake keeps the tests of the compiler from one case to the next."""

import os
import re
import subprocess

import pytest
from libraries import COMPILERS, LIBRARIES, LIST

CMAKE = os.environ["HARDGRAD_CMAKE"]
LEAST = {library.name: library.least for library in LIBRARIES}
# Libraries that are found by a header: {name: (header, its text in version "X.Y.Z", its library)}
HEADERS = {
    "xtensor-blas": (
        "xtensor-blas/xblas_config.hpp",
        "#define XTENSOR_BLAS_VERSION_MAJOR {0}\n#define XTENSOR_BLAS_VERSION_MINOR {1}\n"
        "#define XTENSOR_BLAS_VERSION_PATCH {2}\n",
        None,
    ),
    "OpenBLAS": ("openblas_config.h", '#define OPENBLAS_VERSION " OpenBLAS {0}.{1}.{2} "\n', "openblas"),
    "HDF5": ("H5pubconf.h", '#define H5_VERSION "{0}.{1}.{2}"\n', "hdf5"),
    "ZLIB": ("zlib.h", '#define ZLIB_VERSION "{0}.{1}.{2}"\n', "z"),
    "xxHash": (
        "xxhash.h",
        "#define XXH_VERSION_MAJOR {0}\n#define XXH_VERSION_MINOR {1}\n#define XXH_VERSION_RELEASE {2}\n",
        "xxhash",
    ),
    "Random123": ("Random123/philox.h", "", None),
}  # it does not say its version
CANNOT_BE_OLD = {"Random123"}


def older(version):
    """The version before, in three numbers: 0.24 gives 0.23.9."""
    numbers = ([int(number) for number in version.split(".")] + [0, 0])[:3]
    last = max(at for at, number in enumerate(numbers) if number)
    return ".".join(map(str, [*numbers[:last], numbers[last] - 1, *[9] * (2 - last)]))


def claim(prefix, name, version):
    """A library of that version, as far as CMake reads it."""
    three = (version.split(".") + ["0", "0"])[:3]
    files = {}
    if name in HEADERS:
        header, text, library = HEADERS[name]
        files[f"include/{header}"] = text.format(*three)
        if library:
            files[f"lib/lib{library}.so"] = ""
        if name == "HDF5":
            files |= {"include/hdf5.h": "", "include/hdf5_hl.h": "", "lib/libhdf5_hl.so": ""}
    else:
        files[f"lib/cmake/{name}/{name}Config.cmake"] = ""
        files[f"lib/cmake/{name}/{name}ConfigVersion.cmake"] = (
            f"set(PACKAGE_VERSION {'.'.join(three)})\nset(PACKAGE_VERSION_COMPATIBLE TRUE)\n"
        )
    for path, text in files.items():
        (prefix / path).parent.mkdir(parents=True, exist_ok=True)
        (prefix / path).write_text(text)
    return [prefix / path for path in files]


@pytest.fixture(scope="module")
def configure(tmp_path_factory):
    """configure({library: version, or None if it is missing}, options...): CMake's lines about those that do not fit."""
    place = tmp_path_factory.mktemp("dependencies")
    (place / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.25)\nproject(libraries LANGUAGES C CXX)\n"
        "set(CMAKE_FIND_USE_CMAKE_SYSTEM_PATH OFF)\nset(CMAKE_FIND_USE_SYSTEM_ENVIRONMENT_PATH OFF)\n"
        "set(CMAKE_CXX_COMPILER_ID ${CLAIMED_ID})\nset(CMAKE_CXX_COMPILER_VERSION ${CLAIMED_VERSION})\n"
        f'include("{LIST}")\n'
    )
    prefix = place / "prefix"

    def answer(versions, compiler, *without):
        files = [file for name, version in (LEAST | versions).items() if version for file in claim(prefix, name, version)]
        done = subprocess.run(
            [
                CMAKE,
                "-S",
                place,
                "-B",
                place / "build",
                "-G",
                "Ninja",
                "-U",
                "*_DIR",
                "-U",
                "*_LIBRARY*",
                "-U",
                "*Python*",
                f"-DCMAKE_PREFIX_PATH={prefix}",
                f"-DCLAIMED_ID={compiler[0]}",
                f"-DCLAIMED_VERSION={compiler[1]}",
                *(
                    f"-DHARDGRAD_{part}={'OFF' if part in without else 'ON'}"
                    for part in ("TESTS", "BENCHMARKS", "PYTHON_PACKAGE")
                ),
            ],
            capture_output=True,
            text=True,
        )
        for file in files:
            file.unlink()
        lines = [line for line in done.stderr.splitlines() if line.startswith("hardgrad: ")]
        assert (done.returncode != 0) == (lines != []), done.stderr
        assert done.stderr.count("CMake Error") == (lines != []), done.stderr
        return lines

    return answer


def line_of(row, found):
    name, least, debian, conda = row
    return f"hardgrad: {name} {found}, version {least} or later is needed (Debian: {debian}; conda-forge: {conda})"


def test_the_least_versions_are_enough(configure):
    assert configure({}, ("GNU", COMPILERS["GNU"])) == []


def test_each_missing_library_is_one_line(configure):
    said = configure({name: None for name in LEAST}, ("GNU", COMPILERS["GNU"]))
    assert said == [line_of(row, "was not found") for row in LIBRARIES]


def test_each_library_that_is_too_old_is_one_line(configure):
    said = configure({name: older(least) for name, least in LEAST.items()}, ("GNU", COMPILERS["GNU"]))
    assert said == [line_of(row, f"{older(row.least)} was found") for row in LIBRARIES if row.name not in CANNOT_BE_OLD]
    assert len(said) == len(LIBRARIES) - len(CANNOT_BE_OLD)


@pytest.mark.parametrize("compiler", COMPILERS)
def test_an_old_compiler_is_one_line(configure, compiler):
    below = f"{COMPILERS[compiler] - 1}.9.0"
    (line,) = configure({}, (compiler, below), "PYTHON_PACKAGE")
    assert re.fullmatch(
        rf"hardgrad: \S+ is {compiler} {below}, version {COMPILERS[compiler]} or later is needed \(choose one: .*\)", line
    )


def test_what_is_not_built_is_not_needed(configure):
    assert (
        configure(
            dict.fromkeys(("doctest", "benchmark", "pybind11")),
            ("Clang", COMPILERS["Clang"]),
            "TESTS",
            "BENCHMARKS",
            "PYTHON_PACKAGE",
        )
        == []
    )
