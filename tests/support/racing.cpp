// A loop that races: what the thread sanitizer must report, or its silence elsewhere says nothing.
#include <cstdio>

#include "experiments/support/parallel.hpp"

int main() {
  int shared = 0;
  hardgrad::parallel_for(1000, [&](int) { ++shared; });
  std::printf("%d\n", shared);
}
