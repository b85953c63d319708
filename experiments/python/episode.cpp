#include "experiments/python/module.hpp"

#include <fmt/format.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "experiments/measurement/finite.hpp"
#include "experiments/measurement/paths.hpp"
#include "experiments/python/fiber.hpp"
#include "experiments/python/mixture.hpp"
#include "experiments/python/own_loss.hpp"
#include "experiments/python/policies.hpp"
#include "experiments/python/stateful_estimator.hpp"

namespace hardgrad::python {
namespace {

namespace py = pybind11;

/// An input of a run, in order; the result holds its slope.
template <class T>
struct Given {
  Var<T> value;
  std::vector<py::ssize_t> shape;  ///< [R, D, S] of logits, [R] of a cost
  std::vector<Var<T>> weights;     ///< of the run's earlier choices, if relaxed
  /// A function from a cotangent in this shape to the derivatives in these weights, each an array or None. None if it depends
  /// on no weights.
  py::object pull;
};

/// One run, as the Python network sees it.
template <class T>
class RunHandle {
 public:
  /// `takes_rewards`: as OwnLoss::take_rewards.
  RunHandle(Episode<T>& episode, const Structure& structure, std::vector<Given<T>>& given, bool takes_rewards)
      : episode_(&episode), structure_(structure), given_(given), takes_rewards_(takes_rewards), rows_{episode.root()} {}
  void end() { episode_ = nullptr; }

  /// Logits [R, D, S] for the rows at `place` (0: the examples; i: those after the i-th choice). Returns the options [R', D]
  /// ([R', D, picks] of subsets), or weights [R', D, S] if the estimator replaces options by them; the row that each new row
  /// continues [R'], and its example [R'].
  py::tuple choose(const std::string& name, const Numbers<T>& logits, const std::optional<Numbers<T>>& posterior,
                   const std::optional<Numbers<T>>& behaviour, const std::optional<Numbers<T>>& reference,
                   const std::optional<Numbers<T>>& state, std::size_t place, const py::object& pull,
                   const py::object& pull_posterior, const py::object& pull_reference) {
    const auto& rows = running(place);
    const auto R = rows->size();
    const auto D = static_cast<std::size_t>(logits.shape(1)), S = static_cast<std::size_t>(logits.shape(2));
    require_rows(name, logits.shape(0), R);
    auto& tape = episode_->tape();
    const auto* declared = structure_.site(name);
    const int subset_size = declared ? subset_size_of(*declared) : 0;
    const GivenLogits<T> numbers(logits.data(), R, D, S, subset_size, 3);
    const auto on_tape = [&](const std::vector<T>& x, const py::object& pull) {
      return input({x.data(), R * D, S}, {logits.shape(0), logits.shape(1), logits.shape(2)}, pull);
    };
    const auto of = [=, count = numbers.count](Var<T> x) { return distribution(x, count, static_cast<int>(D), subset_size); };
    const auto prior = of(on_tape(numbers.value, pull));
    const auto seen = state ? tape.constant(MatrixView<const T>{state->data(), R, static_cast<std::size_t>(state->shape(1))})
                            : tape.constant(R, 1, T{1});
    Site<T> site{.name = name, .rows = rows, .prior = prior, .state = seen};
    const auto require = [&](const char* what, bool declared, bool given) {
      if (declared != given)
        throw UsageError(
            fmt::format("choice \"{}\": {} is {}", name, what, declared ? "required" : "given, but the episode has none"));
    };
    require("a posterior", structure_.posterior, posterior.has_value());
    require("a behaviour policy", structure_.behaviour, behaviour.has_value());
    require("a reference policy", structure_.reference, reference.has_value());
    if (posterior) {
      const GivenLogits<T> of_posterior(posterior->data(), R, D, S, subset_size, 3);
      if (of_posterior.count != numbers.count)
        throw UsageError(fmt::format("choice \"{}\": the options of posterior and prior differ", name));
      site.posterior = [of, q = on_tape(of_posterior.value, pull_posterior)] { return of(q); };
    }
    if (behaviour) {
      const auto value = policy_logits(PolicyRole::behaviour, behaviour, numbers, 3);
      site.behaviour = of(tape.constant(MatrixView<const T>{value.data(), R * D, S}));
    }
    if (reference) site.reference = of(on_tape(policy_logits(PolicyRole::reference, reference, numbers, 3), pull_reference));
    const auto choice = episode_->choose(std::move(site));
    rows_.push_back(choice.rows);
    const auto after = static_cast<py::ssize_t>(choice.rows->size());
    py::object options = py::none(), weights = py::none();
    if (choice.hard()) {
      options = array_of<std::int64_t>(choice.picked(), shape_of_options(after, D, subset_size));
    } else {
      weights_.push_back(choice.weights());
      weights = array_of<T>(choice.weights().value().data, {after, logits.shape(1), logits.shape(2)});
    }
    return py::make_tuple(options, weights, array_of<std::int64_t>(choice.rows->parent, {after}),
                          array_of<std::int64_t>(choice.rows->example, {after}));
  }

  /// A loss [R] of the rows at `place`.
  void cost(const Numbers<T>& loss, std::size_t place, const py::object& pull) {
    const auto& rows = running(place);
    require_rows("cost", loss.shape(0), rows->size());
    for (py::ssize_t r = 0; r < loss.shape(0); ++r)
      if (!std::isfinite(loss.data()[r]))
        throw measurement::NotFinite(fmt::format("the loss of row {} is {}, not a finite number", r, loss.data()[r]));
    if (takes_rewards_) require_rewards(MatrixView<const T>{loss.data(), rows->size(), 1});
    episode_->cost(rows, input({loss.data(), rows->size(), 1}, {loss.shape(0)}, pull));
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

  /// Values that Python has computed, differentiable in the weights of the earlier choices.
  Var<T> input(MatrixView<const T> values, std::vector<py::ssize_t> shape, const py::object& pull) {
    auto& tape = episode_->tape();
    const auto weights = pull.is_none() ? std::vector<Var<T>>() : weights_;
    const auto x = tape.output(values.rows, values.cols, std::span<const Var<T>>(weights));
    std::copy_n(values.data, values.size(), tape.mutable_value(x).data);
    tape.watch(x);
    if (!weights.empty())
      tape.on_backward({x}, [given = &given_, place = given_.size()](Tape<T>& tape) { pulled(tape, (*given)[place]); });
    given_.push_back({x, std::move(shape), weights, pull});
    return x;
  }

  static void pulled(Tape<T>& tape, const Given<T>& x) {
    if (std::none_of(x.weights.begin(), x.weights.end(), [&](auto w) { return tape.needs_gradient(w); })) return;
    const py::gil_scoped_acquire gil;
    const auto slopes = x.pull(array_of<T>(tape.cotangent(x.value).data, x.shape)).template cast<py::list>();
    for (std::size_t i = 0; i < x.weights.size(); ++i)
      if (tape.needs_gradient(x.weights[i]) && !slopes[i].is_none()) {
        const auto slope = slopes[i].template cast<Numbers<T>>();
        tape.sink(x.weights[i]).accumulate([from = slope.data()](std::size_t j) { return from[j]; });
      }
  }

  Episode<T>* episode_;
  const Structure& structure_;
  std::vector<Given<T>>& given_;
  bool takes_rewards_;
  std::vector<RowsPtr> rows_;
  std::vector<Var<T>> weights_;  // of the relaxed choices, in order
};

/// A network: makes the choices of a run. Called with the GIL.
template <class T>
using Network = std::function<void(const std::shared_ptr<RunHandle<T>>&)>;

/// The model; it runs the network.
template <class T>
class RunNetwork final : public Model<T> {
 public:
  RunNetwork(const Network<T>& network, Structure structure, std::vector<Given<T>>& given)
      : network_(network), structure_(std::move(structure)), given_(given) {}
  const Structure& structure() const override { return structure_; }
  /// As OwnLoss::take_rewards.
  void take_rewards() { takes_rewards_ = true; }
  void run(const Batch&, Episode<T>& episode) const override {
    const py::gil_scoped_acquire gil;
    const auto asking = std::make_shared<RunHandle<T>>(episode, structure_, given_, takes_rewards_);
    const struct Ending {
      RunHandle<T>& of;
      ~Ending() { of.end(); }
    } ending{*asking};
    network_(asking);
  }

 private:
  const Network<T>& network_;
  Structure structure_;
  std::vector<Given<T>>& given_;
  bool takes_rewards_ = false;
};

/// Returns the value [E]; the slope of every input of the runs, in order; the number of rows; the gradient of the estimator's
/// own loss (StatefulEstimator, without a learning rate); and the ratios of the samples of a behaviour policy.
template <class T>
py::tuple run_episode(StatefulEstimator& estimator, const Network<T>& network, const std::vector<SiteTuple>& sites,
                      const Laws& laws, int examples, const std::optional<Numbers<std::uint32_t>>& ids, std::uint64_t seed,
                      bool learning, Mixture* mixture) {
  const auto structure = structure_of(sites, laws);
  Batch batch;
  batch.id.resize(examples);
  std::iota(batch.id.begin(), batch.id.end(), 0);
  if (ids) batch.id.assign(ids->data(), ids->data() + ids->size());
  std::vector<Given<T>> given;
  std::vector<double> value(examples);
  const PooledTape<T> tape;
  RunNetwork<T> model(network, structure, given);
  {
    const py::gil_scoped_release released;
    const auto in_use = estimator.on<T>(structure);
    if (const auto& target = in_use->estimator->target();
        structure.posterior && target.terms().drawn_from != DrawnFrom::posterior)
      throw UsageError(
          fmt::format("{} draws from the prior, and the posterior would have no gradient: {}leave out posterior=True",
                      estimator.name(), target == Target() ? fmt::format("take {}[target=elbo], or ", estimator.name()) : ""));
    learning = learning && in_use->learns;
    std::unique_lock lock(estimator.learning(), std::defer_lock);
    if (in_use->learns) lock.lock();
    if (in_use->estimator->target().entry().rewards) model.take_rewards();
    const auto random =
        estimator.uncorrected(structure) ? std::make_unique<NoDraws>(estimator.text()) : noise_of(seed, batch, mixture);
    const auto estimate =
        in_use->estimator->draw({.tape = *tape, .model = model, .batch = batch, .random = *random, .learning = learning});
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
      slopes.append(slope);
    }
    std::vector<T> own;
    if (learning) {
      in_use->learn(estimate);
      if (!in_use->optimizer) own = in_use->gradient;
    }
    measurement::Ratios ratios;
    if (structure.behaviour) ratios.add(*estimate.episode, 1);
    return py::make_tuple(array_of<T>(value, {examples}), slopes, rows,
                          array_of<T>(own, {static_cast<py::ssize_t>(own.size())}), ratios);
  }
}

/// An episode whose network is a `with` block. A block cannot be called, so core waits on a stack of its own while the block
/// runs.
template <class T>
class Block {
 public:
  Block(StatefulEstimator& estimator, std::vector<SiteTuple> sites, Laws laws, int examples,
        std::optional<Numbers<std::uint32_t>> ids, std::uint64_t seed, bool learning, Mixture* mixture)
      : fiber_([=, this, &estimator, sites = std::move(sites), ids = std::move(ids)](Fiber& fiber) {
          const Network<T> network = [&](const std::shared_ptr<RunHandle<T>>& asking) {
            if (asking_)
              throw UsageError(
                  fmt::format("{} runs the network more than once: make it a function, and call "
                              "episode(...).run(network)",
                              estimator.text()));
            asking_ = asking;
            fiber.suspend();
          };
          found_ = run_episode<T>(estimator, network, sites, laws, examples, ids, seed, learning, mixture);
        }) {
    fiber_.resume();
  }
  const std::shared_ptr<RunHandle<T>>& asking() const { return asking_; }
  /// Ends the block: what `run_episode` returns.
  py::tuple end() {
    fiber_.resume();
    return found_;
  }
  /// Ends the block without a result.
  void drop() { fiber_.drop(); }

 private:
  std::shared_ptr<RunHandle<T>> asking_;
  py::tuple found_;
  Fiber fiber_;
};

template <class T>
void declare(py::module_& module, const char* asking, const char* run, const char* block) {
  py::class_<RunHandle<T>, std::shared_ptr<RunHandle<T>>>(module, asking)
      .def("choose", &RunHandle<T>::choose)
      .def("cost", &RunHandle<T>::cost);
  module.def(run, [](StatefulEstimator& estimator, const std::vector<SiteTuple>& sites, const Laws& laws, int examples,
                     const std::optional<Numbers<std::uint32_t>>& ids, std::uint64_t seed, bool learning, Mixture* mixture,
                     const py::object& network) {
    return run_episode<T>(
        estimator, [&](const auto& asking) { network(asking); }, sites, laws, examples, ids, seed, learning, mixture);
  });
  py::class_<Block<T>>(module, block)
      .def(py::init<StatefulEstimator&, std::vector<SiteTuple>, Laws, int, std::optional<Numbers<std::uint32_t>>, std::uint64_t,
                    bool, Mixture*>(),
           py::keep_alive<1, 2>(), py::keep_alive<1, 9>())
      .def_property_readonly("asking", &Block<T>::asking)
      .def("end", &Block<T>::end)
      .def("drop", &Block<T>::drop);
}

}  // namespace

void declare_episode(py::module_& module) {
  declare<float>(module, "RunHandleFloat", "run_episode_float", "BlockFloat");
  declare<double>(module, "RunHandleDouble", "run_episode_double", "BlockDouble");
}

}  // namespace hardgrad::python
