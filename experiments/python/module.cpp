// hardgrad._core: the compiled part of the Python package. Its functions take arrays of one layout, [E, D, S]; the public
// functions, which check shapes, are in src/hardgrad.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <tbb/task_arena.h>
#include <nlohmann/json.hpp>

#include <mutex>
#include <optional>

#include "core/models/parts/outcome_table.hpp"
#include "experiments/cli/entries.hpp"
#include "experiments/measurement/exact_moments.hpp"
#include "experiments/measurement/finite.hpp"
#include "experiments/measurement/reference_gradient.hpp"
#include "experiments/python/called_loss.hpp"
#include "experiments/python/draw.hpp"
#include "experiments/python/leaving.hpp"
#include "experiments/python/module.hpp"
#include "experiments/python/own_loss.hpp"
#include "experiments/python/policies.hpp"

namespace hardgrad::python {
namespace {

namespace py = pybind11;

template <class T>
GivenLogits<T> given(const Numbers<T>& logits, int rank, int subset_size = 0) {
  const auto extent = [&](int axis) { return static_cast<std::size_t>(logits.shape(axis)); };
  return {logits.data(), extent(0), extent(1), extent(2), subset_size, rank};
}

/// The same with a behaviour and a reference policy, in the shape of the logits.
template <class T>
GivenLogits<T> given(const Numbers<T>& logits, const std::optional<Numbers<T>>& behaviour,
                     const std::optional<Numbers<T>>& reference, int rank, int subset_size = 0) {
  auto numbers = given(logits, rank, subset_size);
  numbers.behaviour = policy_logits(PolicyRole::behaviour, behaviour, numbers, rank);
  numbers.reference = policy_logits(PolicyRole::reference, reference, numbers, rank);
  return numbers;
}

/// A table, a function, or both: a table of all outcomes can replace a function's hard choices.
template <class T>
class GivenLoss {
 public:
  /// tables [1 or E, S^D]; `multilinear`: they also accept weights.
  GivenLoss(std::optional<Numbers<double>> tables, bool multilinear, const py::object& function, bool takes_weights,
            int columns, int options, int subset_size, const std::string& estimator)
      : tables_(std::move(tables)), multilinear_(multilinear), columns_(columns), options_(options), estimator_(estimator) {
    if (!function.is_none()) called_.emplace(function, takes_weights, columns, options, subset_size, estimator);
    if (tables_)
      view_ = {tables_->data(), static_cast<std::size_t>(tables_->shape(0)), static_cast<std::size_t>(tables_->shape(1))};
  }

  void cut() {
    if (called_) called_->cut();
  }
  bool relaxed() const { return called_ && called_->relaxed(); }
  /// The function, if there is no table.
  const CalledLoss<T>* function_alone() const { return called_ && !tables_ ? &*called_ : nullptr; }
  Var<T> operator()(Tape<T>& tape, const Choice<T>& choice, std::span<const int> example) {
    if (!view_.data || !(choice.hard() || multilinear_)) {
      if (!called_) refuse_weights(estimator_);
      return (*called_)(tape, choice, example);
    }
    const auto which = tape.template scratch<int>(example.size());
    for (std::size_t r = 0; r < which.size(); ++r) which[r] = view_.rows == 1 ? 0 : example[r];
    return entries_of_tables(tape, choice, view_, std::span<const int>(which), columns_, options_);
  }

 private:
  std::optional<Numbers<double>> tables_;
  MatrixView<const double> view_;
  bool multilinear_;
  int columns_, options_;
  std::string estimator_;
  std::optional<CalledLoss<T>> called_;
};

/// `subset_size`: as in GivenLogits. With `later`, the gradient omits the part through the weights; Drawn::through_weights
/// computes it afterwards. The numbers are the same for any number of `threads` (0: one per core).
template <class T>
py::tuple drawn(StatefulEstimator& estimator, const Numbers<T>& logits, int rank, int subset_size,
                const std::optional<Numbers<T>>& state, const std::optional<Numbers<std::uint32_t>>& ids,
                const std::optional<Numbers<double>>& tables, const py::object& function, bool takes_weights,
                std::uint64_t seed, bool learning, bool with_options, bool later, Mixture* mixture,
                const std::optional<Numbers<T>>& behaviour, const std::optional<Numbers<T>>& reference, int threads) {
  const auto E = logits.shape(0), D = logits.shape(1), S = logits.shape(2);
  GivenLoss<T> loss(tables, true, function, takes_weights, static_cast<int>(D), static_cast<int>(S), subset_size,
                    estimator.name());
  const auto all = []<class X>(const std::optional<Numbers<X>>& x) {
    return x ? std::vector<X>(x->data(), x->data() + x->size()) : std::vector<X>();
  };
  Wanted<T> wanted{.logits = given<T>(logits, behaviour, reference, rank, subset_size),
                   .state = all(state),
                   .ids = all(ids),
                   .loss = std::ref(loss),
                   .called = loss.function_alone(),
                   .threads = threads,
                   .seed = seed,
                   .learning = learning,
                   .options = with_options,
                   .mixture = mixture};
  if (later) wanted.ending = [&loss] { loss.cut(); };
  std::unique_ptr<Drawn<T>> result;
  {
    const py::gil_scoped_release released;
    result = std::make_unique<Drawn<T>>(estimator, std::move(wanted));
  }
  py::list runs;
  for (const auto& run : result->runs()) {
    const auto R = static_cast<py::ssize_t>(run.loss.size());
    runs.append(py::make_tuple(
        run.option.empty() ? py::object(py::none()) : array_of<std::int64_t>(run.option, shape_of_options(R, D, subset_size)),
        run.weights.empty() ? py::object(py::none()) : array_of<T>(run.weights, {R, D, S}),
        array_of<std::int64_t>(run.example, {R}), array_of<T>(run.loss, {R}), array_of<T>(run.share, {R}),
        run.ratio.empty() ? py::object(py::none()) : array_of<T>(run.ratio, {R})));
  }
  auto gradient = array_of<T>(result->gradient(), {E, D, S});
  if (!later) return py::make_tuple(gradient, runs);
  return py::make_tuple(gradient, runs, std::move(result));
}

template <class T>
void declare_drawn(py::module_& module, const char* name) {
  py::class_<Drawn<T>>(module, name)
      .def("through_weights",
           [](Drawn<T>& drawn, std::size_t run, const Numbers<T>& slope) {
             const auto gradient =
                 drawn.through_weights(run, slope.data());  // with the GIL: one thread at a time uses its tapes
             return array_of<T>(gradient, {static_cast<py::ssize_t>(gradient.size())});
           })
      .def_property_readonly("ratios", &Drawn<T>::ratios, py::return_value_policy::copy)
      .def_property_readonly("own_gradient", [](const Drawn<T>& drawn) {
        return array_of<T>(drawn.own_gradient(), {static_cast<py::ssize_t>(drawn.own_gradient().size())});
      });
}

py::dict moments(StatefulEstimator& estimator, const Numbers<double>& logits, int rank, const Numbers<double>& table,
                 bool multilinear, const py::object& function, double cap, bool covariance,
                 const std::optional<Numbers<double>>& behaviour, const std::optional<Numbers<double>>& reference,
                 bool of_batch) {
  const auto numbers = given<double>(logits, behaviour, reference, rank);
  const auto D = logits.shape(1), S = logits.shape(2);
  GivenLoss<double> loss(table, multilinear, function, true, static_cast<int>(D), static_cast<int>(S), 0, estimator.name());
  measurement::ReferenceGradient truth;
  measurement::Moments m;
  std::string target;
  without_gil([&] {
    OwnLoss<double> model(numbers, {}, std::ref(loss));
    const auto batch = model.batch();
    const auto in_use = estimator.on<double>(model.structure());
    if (of_batch && in_use->estimator->couples_examples())
      throw UsageError(
          fmt::format("{} couples the examples of a batch, whose moments are not those of each alone: pass one "
                      "example, or average hardgrad.gradient over seeds",
                      estimator.text()));
    std::unique_lock lock(estimator.learning(), std::defer_lock);
    if (in_use->learns) lock.lock();
    const auto stop = pending_signals();
    target = in_use->estimator->target().text();
    if (in_use->estimator->target().entry().rewards) model.take_rewards();
    if (estimator.uncorrected(model.structure())) {
      const PooledTape<double> tape;
      NoDraws none(estimator.text());
      in_use->estimator->draw({.tape = *tape, .model = model, .batch = batch, .random = none});
    }
    truth = measurement::exact_reference(in_use->estimator->target(), model, batch, cap, stop);
    const auto visit = [&] {
      m = measurement::exact_moments(*in_use->estimator, model, batch, truth.of_example, cap, covariance, stop);
    };
    // Threads that call Python wait for its lock, so one thread does what calls it. A first draw shows whether the visits do.
    measurement::visits_needed(*in_use->estimator, model, batch);
    if (estimator.written() || loss.relaxed())
      tbb::task_arena(1).execute(visit);
    else
      visit();
    for (const double v : m.variances) measurement::require_finite(v, "an entry of the variance");
  });
  py::dict result;
  result["target"] = target;
  result["mean"] = array_of<double>(m.mean, {D, S});
  result["exact"] = array_of<double>(truth.gradient, {D, S});
  result["variance"] = array_of<double>(m.variances, {D, S});
  if (covariance) result["covariance"] = array_of<double>(m.covariance, {D, S, D, S});
  result["loss"] = truth.value;
  result["rows"] = m.cost.rows;
  result["outcomes"] = m.outcomes;
  result["mean_error"] = m.mean_error;
  result["effective_ratio_share"] = m.ratios.effective_share();
  result["largest_ratio"] = m.ratios.largest();
  return result;
}

/// An exception of the package, `module`.name, which also derives from a built-in class.
template <class E>
void register_error(py::module_& module, const char* name, std::initializer_list<PyObject*> bases) {
  py::tuple of(bases.size());
  std::size_t i = 0;
  for (auto* base : bases) of[i++] = py::reinterpret_borrow<py::object>(base);
  auto& type = py::register_exception<E>(module, name, of);
  type.attr("__module__") = "hardgrad";
}

}  // namespace

PYBIND11_MODULE(_core, module) {
  module.attr("__version__") = HARDGRAD_VERSION;
  register_error<Error>(module, "Error", {PyExc_Exception});
  auto* error = module.attr("Error").ptr();
  register_error<UsageError>(module, "UsageError", {error, PyExc_ValueError});
  register_error<NotExact>(module, "NotExact", {module.attr("UsageError").ptr()});
  register_error<InputError>(module, "InputError", {error, PyExc_OSError});
  register_error<measurement::NotFinite>(module, "NotFinite", {error, PyExc_ArithmeticError});
  register_error<Bug>(module, "Bug", {error, PyExc_RuntimeError});

  module.def("describe", [](const std::string& name) {
    auto list = nlohmann::json::array();
    for (const auto& entry : cli::entries_named(name))
      std::visit([&](const auto* e) { list.push_back(cli::entry_json(*e)); }, entry);
    return list.dump();
  });
  module.def("claims_unbiased", [](const std::string& spec) { return claims_unbiased(Spec::parse(spec)); });
  module.def("count_options", [](const Numbers<double>& logits, int rank) {
    return array_of<std::int64_t>(given<double>(logits, rank).count, {logits.shape(0), logits.shape(1)});
  });
  declare_estimator(module);
  py::class_<Mixture>(module, "Mixture")
      .def(py::init<>())
      .def(py::init<std::uint64_t, std::uint64_t, int, int>())
      .def("knows", &Mixture::knows)
      .def_property_readonly("seeds", &Mixture::seeds)
      .def_property_readonly("coupled", &Mixture::coupled)
      .def_property_readonly(
          "seen", [](const Mixture& mixture) { return py::make_tuple(mixture.seen().examples, mixture.seen().draws); })
      .def_property_readonly("weight", &Mixture::weight);
  py::class_<measurement::Ratios>(module, "Ratios")
      .def(py::init<>())
      .def("join", &measurement::Ratios::join)
      .def_property_readonly("effective_share", &measurement::Ratios::effective_share)
      .def_property_readonly("largest", &measurement::Ratios::largest);
  declare_drawn<float>(module, "DrawnFloat");
  declare_drawn<double>(module, "DrawnDouble");
  module.def("draw_float", &drawn<float>);
  module.def("draw_double", &drawn<double>);
  module.def("moments", &moments);
  declare_formula(module);
  declare_noise(module);
  declare_test(module);
  declare_episode(module);
  declare_policy_terms(module);
  declare_replicates(module);
}

}  // namespace hardgrad::python
