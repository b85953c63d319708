// A loop with a data race. The thread sanitizer must report it; otherwise the absence of other reports proves nothing.
#include <cstdio>

#include "experiments/support/parallel.hpp"

int main() {
  int shared = 0;
  hardgrad::parallel_for(1000, [&](int) { ++shared; });
  std::printf("%d\n", shared);
}
