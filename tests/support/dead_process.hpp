// A terminated process, for tests of code that distinguishes it from a running one.
#pragma once

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "experiments/storage/process.hpp"

namespace hardgrad::testing {

/// The name (this_process) of a terminated child.
inline std::string name_of_the_dead() {
  int pipe[2];
  REQUIRE(::pipe(pipe) == 0);
  const auto child = ::fork();
  if (child == 0) {
    const auto name = storage::this_process();
    ::_exit(::write(pipe[1], name.data(), name.size()) == static_cast<ssize_t>(name.size()) ? 0 : 1);
  }
  REQUIRE(child > 0);
  std::string name(64, '\0');
  name.resize(static_cast<std::size_t>(::read(pipe[0], name.data(), name.size())));
  ::waitpid(child, nullptr, 0);
  ::close(pipe[0]);
  ::close(pipe[1]);
  return name;
}

}  // namespace hardgrad::testing
