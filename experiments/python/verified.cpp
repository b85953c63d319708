#include "experiments/python/module.hpp"

#include <pybind11/stl.h>
#include <tbb/task_arena.h>

#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "experiments/python/leaving.hpp"
#include "experiments/python/written_estimator.hpp"
#include "experiments/verification/verify.hpp"

namespace hardgrad::python {
namespace {

namespace py = pybind11;
using verification::Check;

/// The estimator under test, by number. A registry entry makes it, so it is verified like any other.
struct UnderTest {
  std::shared_ptr<py::object> function;
  bool derivatives, unbiased;
};
std::mutex listing;
std::deque<UnderTest> listed;

UnderTest under_test(const Settings& settings) {
  const std::lock_guard lock(listing);
  return listed.at(std::stoul(settings.text("number")));
}

template <class T>
class ListedEstimator final : public WrittenEstimator<T> {
 public:
  using WrittenEstimator<T>::WrittenEstimator;

 protected:
  Estimate<T> estimate(const Problem<T>& problem) const override {
    return leaving([&] { return WrittenEstimator<T>::estimate(problem); });
  }
};

template <class T>
std::unique_ptr<Estimator<T>> make_listed(const Settings& settings, const Structure&, Key) {
  const auto it = under_test(settings);
  return std::make_unique<ListedEstimator<T>>(it.function, settings.integer("samples"), it.derivatives);
}

const char* const entry_name = "written_in_python";

void register_entry() {
  EstimatorEntry entry{.name = entry_name,
                       .summary = "an estimator passed to hardgrad.test",
                       .paper = "none",
                       .biased_by = [](const Settings& settings) { return !under_test(settings).unbiased; },
                       .evaluations = "K",
                       // A text, because a verdict varies settings of other types.
                       .parameters = {ParameterInfo::text("number", "0", "which"),
                                      ParameterInfo::integer("samples", 1, 1, 1e6, "independent samples per example")},
                       .needs = {need::relaxable},
                       .make_float = make_listed<float>,
                       .make_double = make_listed<double>};
  Estimators::instance().add(with_shared_settings(std::move(entry)));
}

/// `threads`: of TBB; 0: all.
py::tuple verdict_of(const Spec& spec, bool to_the_first_failure, bool quick, int threads = 0) {
  static std::mutex one_at_a_time;  // all use the same networks
  thread_local bool testing = false;
  if (testing) throw UsageError("hardgrad.test was called by the estimator that it tests");
  verification::Verdict verdict;
  without_gil([&] {
    const std::lock_guard lock(one_at_a_time);
    testing = true;
    const struct Ending {
      bool& of;
      ~Ending() { of = false; }
    } ending{testing};
    tbb::task_arena arena(threads > 0 ? threads : tbb::task_arena::automatic);
    arena.execute([&] { verdict = verification::verify(spec, to_the_first_failure, quick, pending_signals()); });
  });
  py::list checks;
  for (const auto& check : verdict.checks)
    checks.append(py::make_tuple(check.what, check.where, verification::to_string(check.outcome), check.detail));
  return py::make_tuple(verdict.passed(), verdict.unbiased, checks);
}

py::tuple test_written(py::object function, int samples, bool derivatives, bool unbiased, bool to_the_first_failure,
                       bool quick) {
  std::size_t number = 0;
  {
    auto held = kept(std::move(function));
    const py::gil_scoped_release released;
    const std::lock_guard lock(listing);
    number = listed.size();
    listed.push_back({std::move(held), derivatives, unbiased});
  }
  const auto forget = [number] {
    const py::gil_scoped_release released;
    const auto gone = [number] {  // may run Python's code
      const std::lock_guard lock(listing);
      return std::exchange(listed[number].function, nullptr);
    }();
  };
  const auto spec =
      Spec::parse(std::string(entry_name) + "[number=" + std::to_string(number) + ",samples=" + std::to_string(samples) + "]");
  try {
    auto verdict = verdict_of(spec, to_the_first_failure, quick, 1);  // more would wait for Python's lock
    forget();
    return verdict;
  } catch (...) {
    forget();
    throw;
  }
}

}  // namespace

void declare_test(py::module_& module) {
  register_entry();              // now, since other threads read the registry later
  module.def("estimators", [] {  // without the one that tests add
    auto names = Estimators::instance().names();
    std::erase(names, entry_name);
    return names;
  });
  module.def("test", [](const std::string& spec, bool to_the_first_failure, bool quick) {
    return verdict_of(Spec::parse(spec), to_the_first_failure, quick);
  });
  module.def("test_written", &test_written);
}

}  // namespace hardgrad::python
