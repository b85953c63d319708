# Finds every library that the build needs. The only list of them: experiments/setup.sh installs its packages and prints it, and
# tests/guides compares it with experiments/install.
set(HARDGRAD_LIBRARIES  # name in CMake; least version, which has been tried; package of Debian; package of conda-forge, or none
  "TBB             2021.8  libtbb-dev           tbb-devel"
  "xtensor         0.24    libxtensor-dev       xtensor"
  "xtensor-blas    0.20    libxtensor-blas-dev  xtensor-blas"
  "xsimd           8.1     libxsimd-dev         xsimd"
  "OpenBLAS        0.3.21  libopenblas-dev      openblas"
  "HDF5            1.10.8  libhdf5-dev          hdf5"
  "ZLIB            1.2.13  zlib1g-dev           zlib"
  "fmt             9.1     libfmt-dev           fmt"
  "nlohmann_json   3.11    nlohmann-json3-dev   nlohmann_json"
  "CLI11           2.1     libcli11-dev         cli11"
  "tomlplusplus    3.3     libtomlplusplus-dev  tomlplusplus"
  "xxHash          0.8     libxxhash-dev        xxhash"
  "Random123       1.14    librandom123-dev     none"
  "Boost           1.74    libboost-dev         libboost-headers"
  "pybind11        2.10    pybind11-dev         pybind11"
  "doctest         2.4.9   doctest-dev          doctest"
  "benchmark       1.7.1   libbenchmark-dev     benchmark")
set(HARDGRAD_LEAST_GNU 12)
set(HARDGRAD_LEAST_Clang 16)

set(missing "")  # a line for each library

function(hardgrad_require name found version)
  set(row ${HARDGRAD_LIBRARIES})
  list(FILTER row INCLUDE REGEX "^${name} ")
  separate_arguments(row UNIX_COMMAND "${row}")
  list(GET row 1 least)
  list(GET row 2 debian)
  list(GET row 3 conda)
  if(NOT found)
    set(what "${name} was not found")
  elseif(version AND version VERSION_LESS least)
    set(what "${name} ${version} was found")
  else()
    return()
  endif()
  string(APPEND missing "hardgrad: ${what}, version ${least} or later is needed (Debian: ${debian}; conda-forge: ${conda})\n")
  set(missing "${missing}" PARENT_SCOPE)
endfunction()

# hardgrad_find(name arguments of find_package...)
macro(hardgrad_find name)
  find_package(${name} QUIET ${ARGN})
  hardgrad_require(${name} "${${name}_FOUND}" "${${name}_VERSION}")
endmacro()

# hardgrad_find_header(name header macros...): of a library without a CMake package that can be relied on. Its version is in macros of
# the header: a number each, or all in one string. Sets NAME_INCLUDE_DIR.
function(hardgrad_find_header name header)
  find_path(${name}_INCLUDE_DIR ${header} PATH_SUFFIXES openblas)
  set(version "")
  foreach(macro ${ARGN})
    if(${name}_INCLUDE_DIR)
      file(STRINGS ${${name}_INCLUDE_DIR}/${header} line REGEX "define +${macro} ")
      string(REGEX MATCH "[0-9][0-9.]*" number "${line}")
      list(APPEND version ${number})
    endif()
  endforeach()
  list(JOIN version "." version)
  hardgrad_require(${name} "${${name}_INCLUDE_DIR}" "${version}")
  set(missing "${missing}" PARENT_SCOPE)
endfunction()

if(CMAKE_CXX_COMPILER_VERSION VERSION_LESS "${HARDGRAD_LEAST_${CMAKE_CXX_COMPILER_ID}}")
  string(APPEND missing "hardgrad: ${CMAKE_CXX_COMPILER} is ${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}, "
    "version ${HARDGRAD_LEAST_${CMAKE_CXX_COMPILER_ID}} or later is needed (choose one: -D CMAKE_CXX_COMPILER=...)\n")
endif()

find_package(Threads REQUIRED)
if(HARDGRAD_SANITIZE MATCHES thread)
  set(instrumented_tbb ${PROJECT_BINARY_DIR}/onetbb)
  if(NOT EXISTS ${instrumented_tbb})
    message(STATUS "Building oneTBB with the thread sanitizer in ${instrumented_tbb}")
    execute_process(COMMAND bash ${PROJECT_SOURCE_DIR}/tests/support/instrumented_tbb.sh ${instrumented_tbb} ${CMAKE_COMMAND}
      OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
  endif()
  set(TBB_DIR ${instrumented_tbb}/lib/cmake/TBB CACHE PATH "" FORCE)
  hardgrad_find(TBB NO_DEFAULT_PATH)
  set(CMAKE_INSTALL_RPATH ${instrumented_tbb}/lib)  # also when installed: the packaged oneTBB gives false reports of races
else()
  hardgrad_find(TBB)
endif()
hardgrad_find(xtensor)
hardgrad_find_header(xtensor-blas xtensor-blas/xblas_config.hpp XTENSOR_BLAS_VERSION_MAJOR XTENSOR_BLAS_VERSION_MINOR
  XTENSOR_BLAS_VERSION_PATCH)  # its CMake package stops without a BLAS, and may take another than OpenBLAS
hardgrad_find(xsimd)
hardgrad_find_header(OpenBLAS openblas_config.h OPENBLAS_VERSION)  # Debian 13's CMake package names a folder that does not exist
find_library(OpenBLAS_LIBRARY openblas)
hardgrad_find(HDF5 COMPONENTS C HL)
find_package(ZLIB QUIET)
hardgrad_require(ZLIB "${ZLIB_FOUND}" "${ZLIB_VERSION_STRING}")
hardgrad_find(fmt)
hardgrad_find(nlohmann_json)
hardgrad_find(CLI11)
hardgrad_find(tomlplusplus)
hardgrad_find_header(xxHash xxhash.h XXH_VERSION_MAJOR XXH_VERSION_MINOR XXH_VERSION_RELEASE)
find_library(xxHash_LIBRARY xxhash)
hardgrad_find_header(Random123 Random123/philox.h)
hardgrad_find(Boost CONFIG)  # Boost.Math, headers only: quantiles and p-values. CMake 4 has no module FindBoost (CMP0167).
if(HARDGRAD_PYTHON_PACKAGE)
  if(NOT Python_EXECUTABLE AND EXISTS /usr/bin/python3)
    set(Python_EXECUTABLE /usr/bin/python3)  # the Python that has the packages, whichever is first on the path
  endif()
  find_package(Python QUIET COMPONENTS Interpreter Development.Module)
  if(NOT Python_FOUND)
    string(APPEND missing "hardgrad: Python 3 with its headers was not found (Debian: python3-dev; conda-forge: python). "
      "-D HARDGRAD_PYTHON_PACKAGE=OFF builds without the Python package\n")
  endif()
  hardgrad_find(pybind11 CONFIG)
endif()
if(HARDGRAD_TESTS)
  hardgrad_find(doctest)
endif()
if(HARDGRAD_BENCHMARKS)
  hardgrad_find(benchmark)
endif()

if(missing)
  message(NOTICE "${missing}")
  message(FATAL_ERROR "Libraries are missing or too old: the lines above.")
endif()
