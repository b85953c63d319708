#include "experiments/python/module.hpp"

#include <pybind11/stl.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/support/error.hpp"
#include "experiments/python/leaving.hpp"
#include "experiments/python/stateful_estimator.hpp"
#include "experiments/python/written_estimator.hpp"

namespace hardgrad::python {
namespace {

namespace py = pybind11;

std::unique_ptr<StatefulEstimator> written(py::object function, int samples, bool derivatives, const std::string& name) {
  const auto f = kept(std::move(function));
  return std::make_unique<StatefulEstimator>(
      name, [=](const Structure&) { return std::make_unique<WrittenEstimator<float>>(f, samples, derivatives); },
      [=](const Structure&) { return std::make_unique<WrittenEstimator<double>>(f, samples, derivatives); });
}

/// Calls f with the estimator that is made in double or single precision; null if there is none.
template <class F>
auto in_precision(StatefulEstimator& estimator, bool wide, F f) {
  return wide ? f(estimator.made<double>()) : f(estimator.made<float>());
}

/// None before it is made; else its sites, and whether they have a posterior.
py::object made_for(StatefulEstimator& estimator, bool wide) {
  return in_precision(estimator, wide, [](const auto& held) -> py::object {
    if (!held) return py::none();
    return py::make_tuple(sites_of(held->made_for), held->made_for.posterior);
  });
}

/// Its parameters as (name, array in its own shape), the averages, and the state of their optimiser.
py::tuple learned_arrays(StatefulEstimator& estimator, bool wide) {
  return in_precision(estimator, wide, [&](const auto& held) {
    Learned found;
    without_gil([&] {
      const std::lock_guard lock(estimator.learning());
      found = learned(*held);
    });
    py::list parameters;
    auto value = found.parameters.begin();
    for (const auto& parameter : held->estimator->own_parameters()) {
      const auto& shape = parameter.value.shape();
      parameters.append(
          py::make_tuple(parameter.name, array_of<double>(*value++, std::vector<py::ssize_t>(shape.begin(), shape.end()))));
    }
    return py::make_tuple(parameters, array_of<double>(found.averages, {static_cast<py::ssize_t>(found.averages.size())}),
                          array_of<double>(found.optimizer, {static_cast<py::ssize_t>(found.optimizer.size())}));
  });
}

void restore_arrays(StatefulEstimator& estimator, bool wide, const std::vector<Numbers<double>>& parameters,
                    const Numbers<double>& averages, const Numbers<double>& optimizer) {
  const auto all = [](const Numbers<double>& x) { return std::vector<double>(x.data(), x.data() + x.size()); };
  Learned given{.averages = all(averages), .optimizer = all(optimizer)};
  for (const auto& parameter : parameters) given.parameters.push_back(all(parameter));
  without_gil([&] {
    const std::lock_guard lock(estimator.learning());
    in_precision(estimator, wide, [&](const auto& held) { restore(*held, given); });
  });
}

void average_arrays(StatefulEstimator& estimator, bool wide, const std::vector<Numbers<double>>& averages) {
  std::vector<std::vector<double>> given;
  for (const auto& each : averages) given.emplace_back(each.data(), each.data() + each.size());
  without_gil([&] {
    const std::lock_guard lock(estimator.learning());
    in_precision(estimator, wide, [&](const auto& held) { average(*held, given); });
  });
}

}  // namespace

void declare_estimator(py::module_& module) {
  py::class_<StatefulEstimator> estimator(module, "Estimator", R"(An estimator that keeps its learned state between calls.

spec: e.g. "nvil[samples=4]". UsageError if there is none of this name, or its settings are wrong.
seed: for the initial values of its own parameters (baselines, control variates).
learning_rate: of Adam, which trains these; None: they stay as they are.

It is made for the columns and options of the first logits; an estimator that learns keeps them. Threads may share it.
`hardgrad.torch.Estimator` is the same as a PyTorch module.)");
  estimator.attr("__module__") = "hardgrad";
  estimator
      .def(py::init<const std::string&, std::uint64_t, std::optional<double>>(), py::arg("spec"), py::arg("seed") = 0,
           py::arg("learning_rate") = 1e-3)
      .def_static("_written", &written)
      .def_property_readonly("_registered", [](const StatefulEstimator& estimator) { return !estimator.written(); })
      .def_property_readonly("spec", &StatefulEstimator::text,
                             "The spec as given; for an estimator written in Python, its name.")
      .def_property_readonly("learns", &StatefulEstimator::learns,
                             "Whether it has a state to learn (known after its first use; False before).")
      .def("_make",
           [](StatefulEstimator& estimator, const std::vector<SiteTuple>& sites, bool posterior, bool wide) {
             const auto structure =
                 structure_of(sites, {posterior, false, true});  // a reference policy may come with its choices
             if (wide)
               estimator.on<double>(structure);
             else
               estimator.on<float>(structure);
           })
      .def("_made_for", &made_for)
      .def("_lock", [](StatefulEstimator& estimator) { without_gil([&] { estimator.learning().lock(); }); })
      .def("_unlock", [](StatefulEstimator& estimator) { estimator.learning().unlock(); })
      .def("_learned", &learned_arrays)
      .def("_restore", &restore_arrays)
      .def("_average", &average_arrays)
      .def("__repr__", [](const StatefulEstimator& e) { return "Estimator('" + e.text() + "')"; });
}

}  // namespace hardgrad::python
