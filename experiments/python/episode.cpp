#include "experiments/python/episode.hpp"

#include <fmt/format.h>
#include <pybind11/stl.h>

#include <cmath>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "experiments/measurement/finite.hpp"
#include "experiments/python/arrays.hpp"
#include "experiments/python/held_estimator.hpp"
#include "experiments/python/kept_tape.hpp"
#include "experiments/python/own_loss.hpp"
#include "experiments/python/sites.hpp"

namespace hardgrad::python {
namespace {

namespace py = pybind11;

/// An input of a run, in order; the result holds its slope.
template <class T>
struct Given {
  Var<T> value;
  RowsPtr rows;                    ///< the rows it belongs to
  std::vector<py::ssize_t> shape;  ///< [R, D, S] of logits, [R] of a cost
};

/// One run, as the Python network sees it.
template <class T>
class Asking {
 public:
  Asking(Episode<T>& episode, const std::string& estimator, bool posterior, std::vector<Given<T>>& given)
      : episode_(&episode), estimator_(estimator), posterior_(posterior), given_(given), rows_{episode.root()} {}
  void end() { episode_ = nullptr; }

  /// Logits [R, D, S] for the rows at `place` (0: the examples; i: those after the i-th choice). Returns the options [R', D],
  /// the row that each new row continues [R'], and its example [R'].
  py::tuple choose(const std::string& name, const Numbers<T>& logits, const std::optional<Numbers<T>>& posterior,
                   const std::optional<Numbers<T>>& state, std::size_t place) {
    const auto& rows = running(place);
    const auto R = rows->size();
    const auto D = static_cast<std::size_t>(logits.shape(1)), S = static_cast<std::size_t>(logits.shape(2));
    require_rows(name, logits.shape(0), R);
    auto& tape = episode_->tape();
    const GivenLogits<T> numbers(logits.data(), R, D, S, 3);
    const auto on_tape = [&](const GivenLogits<T>& x) {
      const auto value = tape.input({x.value.data(), R * D, S});
      given_.push_back({value, rows, {logits.shape(0), logits.shape(1), logits.shape(2)}});
      return value;
    };
    const auto prior = categorical(on_tape(numbers), numbers.count, static_cast<int>(D));
    const auto seen = state ? tape.constant(MatrixView<const T>{state->data(), R, static_cast<std::size_t>(state->shape(1))})
                            : tape.constant(R, 1, T{1});
    Site<T> site{.name = name, .rows = rows, .prior = prior, .state = seen};
    if (posterior_ != posterior.has_value())
      throw UsageError(
          fmt::format("choice \"{}\": a posterior is {}", name, posterior_ ? "required" : "given, but the episode has none"));
    if (posterior) {
      const GivenLogits<T> of_posterior(posterior->data(), R, D, S, 3);
      if (of_posterior.count != numbers.count)
        throw UsageError(fmt::format("choice \"{}\": the options of posterior and prior differ", name));
      site.posterior = [prior, q = on_tape(of_posterior)] { return prior->with(q); };
    }
    const auto choice = episode_->choose(std::move(site));
    if (!choice.hard())
      throw UsageError(
          fmt::format("{} replaces choices by weights, which an episode's network cannot use: use expectation, "
                      "or an estimator with hard choices",
                      estimator_));
    rows_.push_back(choice.rows);
    const auto after = static_cast<py::ssize_t>(choice.rows->size());
    return py::make_tuple(array_of<std::int64_t>(choice.option(), {after, static_cast<py::ssize_t>(D)}),
                          array_of<std::int64_t>(choice.rows->parent, {after}),
                          array_of<std::int64_t>(choice.rows->example, {after}));
  }

  /// A loss [R] of the rows at `place`.
  void cost(const Numbers<T>& loss, std::size_t place) {
    const auto& rows = running(place);
    require_rows("cost", loss.shape(0), rows->size());
    for (py::ssize_t r = 0; r < loss.shape(0); ++r)
      if (!std::isfinite(loss.data()[r]))
        throw measurement::NotFinite(fmt::format("the loss of row {} is {}, not a finite number", r, loss.data()[r]));
    const auto value = episode_->tape().constant(MatrixView<const T>{loss.data(), rows->size(), 1});
    episode_->tape().watch(value);
    given_.push_back({value, rows, {loss.shape(0)}});
    episode_->cost(rows, value);
  }

 private:
  const RowsPtr& running(std::size_t place) const {
    if (!episode_) throw UsageError("this episode has ended");
    return rows_.at(place);
  }
  static void require_rows(const std::string& what, py::ssize_t given, std::size_t rows) {
    if (static_cast<std::size_t>(given) != rows)
      throw UsageError(fmt::format("{}: got {} rows, expected {}", what, given, rows));
  }
  Episode<T>* episode_;
  std::string estimator_;
  bool posterior_;
  std::vector<Given<T>>& given_;
  std::vector<RowsPtr> rows_;
};

/// The model; it runs the Python network.
template <class T>
class RunNetwork final : public Model<T> {
 public:
  RunNetwork(const py::object& network, Structure structure, std::string estimator, std::vector<Given<T>>& given)
      : network_(network), structure_(std::move(structure)), estimator_(std::move(estimator)), given_(given) {}
  const Structure& structure() const override { return structure_; }
  void run(const Batch&, Episode<T>& episode) const override {
    const py::gil_scoped_acquire gil;
    const auto asking = std::make_shared<Asking<T>>(episode, estimator_, structure_.posterior, given_);
    const struct Ending {
      Asking<T>& of;
      ~Ending() { of.end(); }
    } ending{*asking};
    network_(asking);
  }

 private:
  const py::object& network_;
  Structure structure_;
  std::string estimator_;
  std::vector<Given<T>>& given_;
};

/// Returns the value [E]; for every input of the runs, in order, its slope and the examples of its rows; the number of rows; and
/// the gradient of the estimator's own loss (HeldEstimator, without a learning rate).
template <class T>
py::tuple run_episode(HeldEstimator& estimator, const py::object& network, const std::vector<SiteTuple>& sites, bool posterior,
                      int examples, const std::optional<Numbers<std::uint32_t>>& ids, std::uint64_t seed, bool learning) {
  const auto structure = structure_of(sites, posterior);
  Batch batch;
  batch.id.resize(examples);
  std::iota(batch.id.begin(), batch.id.end(), 0);
  if (ids) batch.id.assign(ids->data(), ids->data() + ids->size());
  std::vector<Given<T>> given;
  std::vector<double> value(examples);
  const KeptTape<T> tape;
  const RunNetwork<T> model(network, structure, estimator.name(), given);
  {
    const py::gil_scoped_release released;
    const auto held = estimator.on<T>(structure);
    if (const auto& target = held->estimator->target(); posterior && target.terms().drawn_from != DrawnFrom::posterior)
      throw UsageError(
          fmt::format("{} draws from the prior, and the posterior would have no gradient: {}leave out posterior=True",
                      estimator.name(), target == Target() ? fmt::format("take {}[target=elbo], or ", estimator.name()) : ""));
    learning = learning && held->learns;
    std::unique_lock lock(estimator.learning(), std::defer_lock);
    if (held->learns) lock.lock();
    KeyedRandomness random(Key(seed) / "noise");
    const auto estimate =
        held->estimator->draw({.tape = *tape, .model = model, .batch = batch, .random = random, .learning = learning});
    tape->backward(estimate.surrogate);
    const auto add = [&](const Episode<T>& run) {
      for (const auto& cost : run.costs()) {
        const auto slope = tape->gradient(cost.loss), loss = cost.loss.value();
        for (std::size_t r = 0; r < loss.size(); ++r)
          value[cost.rows->example[r]] += examples * static_cast<double>(slope.data[r]) * static_cast<double>(loss.data[r]);
      }
    };
    add(*estimate.episode);
    for (const auto& other : estimate.others) add(*other);
    const double rows = estimate.rows();
    // Before learning, which goes back over the same tape.
    const py::gil_scoped_acquire gil;
    py::list slopes;
    for (const auto& x : given) {
      auto slope = array_of<T>(tape->gradient(x.value).data, x.shape);
      for (py::ssize_t i = 0; i < slope.size(); ++i) {
        slope.mutable_data()[i] *= static_cast<T>(examples);  // estimates are of the batch mean
        measurement::require_finite(slope.data()[i], "an entry of the gradient");
      }
      slopes.append(py::make_tuple(slope, array_of<std::int64_t>(x.rows->example, {x.shape[0]})));
    }
    std::vector<T> own;
    if (learning) {
      held->learn(estimate);
      if (!held->optimizer) own = held->gradient;
    }
    return py::make_tuple(array_of<T>(value, {examples}), slopes, rows,
                          array_of<T>(own, {static_cast<py::ssize_t>(own.size())}));
  }
}

template <class T>
void declare(py::module_& module, const char* asking, const char* run) {
  py::class_<Asking<T>, std::shared_ptr<Asking<T>>>(module, asking)
      .def("choose", &Asking<T>::choose)
      .def("cost", &Asking<T>::cost);
  module.def(run, &run_episode<T>);
}

}  // namespace

void declare_episode(py::module_& module) {
  declare<float>(module, "AskingFloat", "run_episode_float");
  declare<double>(module, "AskingDouble", "run_episode_double");
}

}  // namespace hardgrad::python
