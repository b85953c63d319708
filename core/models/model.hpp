// A model: a network that asks where to look. It sees choices, never an estimator.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/autodiff/parameter.hpp"
#include "core/choice/episode.hpp"
#include "core/models/batch.hpp"
#include "core/random/key.hpp"
#include "core/registry/registry.hpp"

namespace hardgrad {

/// How choices depend on each other.
enum class Dependence {
  deterministic,  ///< no choice at all
  one_choice,     ///< a single choice
  factorised,     ///< a choice touches only the cost of its own step
  sequential      ///< a choice feeds later logits
};
std::string to_string(Dependence dependence);

/// What an estimator may know of a model before it runs.
struct Structure {
  int steps = 0;            ///< choices in the longest run
  int options = 0;          ///< most options at a site (S)
  Dependence dependence = Dependence::sequential;
  bool joint_cost = false;  ///< of sequential models: choices change later costs, but no later choice's distribution
  int state_width = 0;      ///< columns of Site::state
  bool posterior = false;   ///< sites offer a proposal
  int labels = 0;           ///< what the model is judged by is made of so many labels; 0 if it could not draw them itself
  int places = 1;           ///< most labels in a row: 1, or the length of a sentence
  int last_label = -1;      ///< the label that ends a sentence
  bool binary() const { return options == 2; }
  /// True if no choice changes the distribution of another.
  bool independent() const { return dependence != Dependence::sequential || joint_cost; }
};

template <class T>
class Model {
 public:
  virtual ~Model() = default;
  virtual const Structure& structure() const = 0;
  /// Runs once on the batch, asking `episode` at every choice and handing it every loss (in nats or squared error,
  /// lower is better). Const: parameters are read, never written.
  virtual void run(const Batch& batch, Episode<T>& episode) const = 0;
  /// [B] number of complete sets of choices of each example (the leaves of its tree): options ^ choices.
  virtual std::vector<double> outcomes(const Batch& batch) const = 0;

  /// Of models with labels: the batch with observations [place][B] (-1 beyond an example's last) for its own. What a
  /// run with Feeding::dreaming draws has this form.
  virtual Batch with_observations(const Batch&, const std::vector<std::vector<int>>&) const {
    throw Bug("the model draws no observations");
  }

  ParameterSet<T>& parameters() { return parameters_; }
  const ParameterSet<T>& parameters() const { return parameters_; }

 protected:
  ParameterSet<T> parameters_;
};

/// A model's entry in the registry.
struct ModelEntry {
  static constexpr const char* noun = "model";
  std::string name;
  std::string summary;     ///< one line
  std::string paper;       ///< citation
  std::string dependence;  ///< e.g. "sequential", "factorised (feed=none|soft), sequential (feed=sampled)"
  std::string kinds;       ///< of choices: "binary", "categorical"
  std::vector<ParameterInfo> parameters;
  std::vector<std::string> needs;  ///< dimensions it must be told; a task that has them all can be run on it
  /// Makes the model and initialises its parameters from `init` (the stream of each is keyed by its name).
  std::unique_ptr<Model<float>> (*make_float)(const Settings&, const Dimensions&, Key init) = nullptr;
  std::unique_ptr<Model<double>> (*make_double)(const Settings&, const Dimensions&, Key init) = nullptr;
};
using Models = Registry<ModelEntry>;

/// The factory of a model template with a constructor (settings, dimensions, key).
template <template <class> class M, class T>
std::unique_ptr<Model<T>> make_model_of(const Settings& settings, const Dimensions& dimensions, Key init) {
  return std::make_unique<M<T>>(settings, dimensions, init);
}

/// Makes a model from its spec; UsageError if the task lacks a dimension it needs. `posterior` asks for a learned
/// posterior q(z | x, y) besides.
template <class T>
std::unique_ptr<Model<T>> make_model(const Spec& spec, const Dimensions& dimensions, Key init, bool posterior = false);

/// Registers model template M under the entry's name, for float and double.
#define HARDGRAD_MODEL(M, ...)                        \
  namespace {                                         \
  const Registration<ModelEntry> registered_##M([] {  \
    ModelEntry entry __VA_ARGS__;                     \
    entry.make_float = make_model_of<M, float>;       \
    entry.make_double = make_model_of<M, double>;     \
    return entry;                                     \
  }());                                               \
  }

}  // namespace hardgrad
