// A model: a network that asks where to look. It sees choices, never an estimator.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/autodiff/parameter.hpp"
#include "core/choice/episode.hpp"
#include "core/choice/structure.hpp"
#include "core/models/batch.hpp"
#include "core/random/key.hpp"
#include "core/registry/registry.hpp"

namespace hardgrad {

template <class T>
class Model {
 public:
  virtual ~Model() = default;
  virtual const Structure& structure() const = 0;
  /// Runs once on the batch, asking `episode` at every choice and handing it every loss (in nats or squared error,
  /// lower is better). Const: parameters are read, never written.
  virtual void run(const Batch& batch, Episode<T>& episode) const = 0;
  /// What a site asks of one example; by default of every example what is declared of the longest.
  struct Asked {
    std::vector<int> options;  ///< of each column
    int times;                 ///< how often
  };
  virtual Asked asked(const Batch&, std::size_t site, int /*example*/) const {
    const auto& declared = structure().sites[site];
    return {std::vector<int>(declared.columns, declared.options), declared.times};
  }
  /// [B] complete sets of choices of each example (the leaves of its tree), or more than there are: the product of the
  /// options of all columns, as often as they are asked. A number counts as `nodes` options; 0: as Structure::nodes.
  std::vector<double> outcomes(const Batch& batch, int nodes = 0) const;

  /// Numbers within the losses that are neither parameters nor data, by name: so that a gradient can be redone elsewhere.
  virtual std::vector<std::pair<std::string, Array<double>>> constants() const { return {}; }

  ParameterSet<T>& parameters() { return parameters_; }
  const ParameterSet<T>& parameters() const { return parameters_; }

 protected:
  ParameterSet<T> parameters_;
};

/// What a model is made from.
struct Blueprint {
  const Settings& settings;
  const Dimensions& dimensions;
  Key init;        ///< of its parameters: the stream of each is keyed by its name
  bool posterior;  ///< build a learned posterior q(z | x, y) too
};

/// A model's entry in the registry.
struct ModelEntry {
  static constexpr const char* noun = "model";
  std::string name;
  std::string summary;     ///< one line
  std::string paper;       ///< citation
  std::string dependence;  ///< Structure::dependence by settings: "factorised (feed=none|soft), sequential (feed=sampled)"
  std::string kinds;       ///< of choices: "binary", "categorical"
  std::vector<ParameterInfo> parameters;
  std::vector<std::string> needs;  ///< dimensions it must be told; a task that has them all can be run on it
  std::unique_ptr<Model<float>> (*make_float)(const Blueprint&) = nullptr;
  std::unique_ptr<Model<double>> (*make_double)(const Blueprint&) = nullptr;
};
using Models = Registry<ModelEntry>;

/// The factory of a model template with a constructor (blueprint).
template <template <class> class M, class T>
std::unique_ptr<Model<T>> make_model_of(const Blueprint& blueprint) {
  return std::make_unique<M<T>>(blueprint);
}

/// Makes a model from its spec; UsageError if the task lacks a dimension it needs. `posterior` asks for a learned
/// posterior q(z | x, y) besides.
template <class T>
std::unique_ptr<Model<T>> make_model(const Spec& spec, const Dimensions& dimensions, Key init, bool posterior = false);

/// Registers model template M as declared, for float and double.
#define HARDGRAD_MODEL(M, declared)                                    \
  namespace {                                                          \
  const Registration<ModelEntry> registered_##M([](ModelEntry entry) { \
    entry.make_float = make_model_of<M, float>;                        \
    entry.make_double = make_model_of<M, double>;                      \
    return entry;                                                      \
  }(declared));                                                        \
  }

}  // namespace hardgrad
