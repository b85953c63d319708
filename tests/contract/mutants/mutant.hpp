// Mutants: estimators with one fault, which `hardgrad test` must reject. The mutant of the estimator x is `x_mutant`. It has the
// entry of x, with its promises, another implementation, and the setting `fault`.
#pragma once

#include <string>
#include <vector>

#include "core/estimator/estimator.hpp"

namespace hardgrad::testing::mutants {

/// A mutant's fault, by its name; `none` for the right estimator.
class Fault {
 public:
  explicit Fault(const Settings& settings) : name_(settings.text("fault")) {}
  bool operator()(const char* name) const { return name_ == name; }

 private:
  std::string name_;
};

/// Registers an entry and checks that `hardgrad test` rejects its estimator with each of the faults; without faults, as it is.
void check_rejected(EstimatorEntry entry, const std::vector<std::string>& faults = {});

/// The same for the mutant E of the estimator `of`. Also checks that E without a fault gives the estimates of `of`.
template <template <class> class E>
void check_mutants(const std::string& of, const std::vector<std::string>& faults);

/// Checks that `hardgrad test` accepts an estimator.
void check_accepted(const std::string& name);

// Implementation

EstimatorEntry mutant_of(const std::string& of);
void check_equal_without_fault(const std::string& of);

template <template <class> class E>
void check_mutants(const std::string& of, const std::vector<std::string>& faults) {
  auto entry = mutant_of(of);
  entry.make_float = make_estimator_of<E, float>;
  entry.make_double = make_estimator_of<E, double>;
  check_rejected(std::move(entry), faults);
  check_equal_without_fault(of);
}

}  // namespace hardgrad::testing::mutants
