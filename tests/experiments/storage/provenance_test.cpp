// Provenance of results.
#include "experiments/storage/process.hpp"

#include <doctest/doctest.h>

namespace hardgrad::testing::provenance_test {
using namespace storage;

TEST_CASE("provenance has the build and the machine") {
  provenance_threads(3);
  const auto p = provenance();
  for (const char* key :
       {"git_commit", "git_dirty", "version", "compiler", "flags", "blas", "blas_kernel", "instruction_set", "cpu"})
    CHECK_MESSAGE(!p.at(key).empty(), key);
  CHECK(p.at("threads") == "3");
  CHECK(timestamp().size() == 20);
}

}  // namespace hardgrad::testing::provenance_test
