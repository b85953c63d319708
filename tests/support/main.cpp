#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

namespace hardgrad::testing::main_test {}  // namespace hardgrad::testing::main_test
