// A model: a network that asks an episode for its choices. It does not know the estimator.
#pragma once

#include <memory>
#include <string>
#include <type_traits>
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
  /// Runs once on the batch. Asks `episode` at every choice and passes it every loss (nats or squared error; lower is
  /// better). Parameters are not modified.
  virtual void run(const Batch& batch, Episode<T>& episode) const = 0;
  /// The questions of a site to one example. By default every example has the declared maxima.
  struct SiteExtent {
    std::vector<int> options;  ///< of each column
    int times;                 ///< number of questions
    int subset_size = 0;       ///< options that a choice picks, of subsets; 0: as declared
  };
  virtual SiteExtent site_extent(const Batch&, std::size_t site, int /*example*/) const {
    const auto& declared = structure().sites[site];
    return {std::vector<int>(declared.columns, declared.options), declared.times};
  }
  /// [B] upper bound on the outcomes of each example, i.e. its complete sets of choices (the leaves of its tree): the product
  /// of the options over all columns and questions. A number counts as `nodes` options; 0: Structure::nodes.
  std::vector<double> outcomes(const Batch& batch, int nodes = 0) const;

  /// Numbers in the losses that are neither parameters nor data, by name. A gradient file needs them to be reproducible.
  virtual std::vector<std::pair<std::string, Array<double>>> constants() const { return {}; }

  /// By name, the factors [B, C] of the values that dropout drops for the keys of this batch (parts/dropout.hpp): 0, or
  /// 1 / (1 - rate). Empty without dropout. A gradient file needs them to be reproducible.
  virtual std::vector<std::pair<std::string, Array<double>>> dropout_factors(const Batch&) const { return {}; }

  ParameterSet<T>& parameters() { return parameters_; }
  const ParameterSet<T>& parameters() const { return parameters_; }

  /// Other networks that ask the same questions, without gradients: the behaviour and the reference policy of every site, in place
  /// of the sites' own (Site::behaviour, Site::reference). Null: the sites' own, if they have any.
  struct Policies {
    std::shared_ptr<const Model> behaviour = {}, reference = {};
  };
  const Policies& policies() const { return policies_; }
  void set_policies(Policies policies) {
    policies_ = std::move(policies);
    structure_with_policies_ = structure();
    structure_with_policies_.behaviour |= policies_.behaviour != nullptr;
    structure_with_policies_.reference |= policies_.reference != nullptr;
  }
  /// The structure as estimators see it: with these policies.
  const Structure& structure_with_policies() const {
    return policies_.behaviour || policies_.reference ? structure_with_policies_ : structure();
  }

 protected:
  ParameterSet<T> parameters_;

 private:
  Policies policies_;
  Structure structure_with_policies_;
};

/// The arguments of a model's constructor.
struct Blueprint {
  const Settings& settings;
  const Dimensions& dimensions;
  Key init;        ///< key of the initial parameters; each parameter's stream is keyed by its name
  bool posterior;  ///< also build a learned posterior q(z | x, y)
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
  std::vector<std::string> needs;  ///< required dimensions; the model runs on every task that has them all
  std::unique_ptr<Model<float>> (*make_float)(const Blueprint&) = nullptr;
  std::unique_ptr<Model<double>> (*make_double)(const Blueprint&) = nullptr;
};
using Models = Registry<ModelEntry>;

/// The factory of a model template with a constructor (config, blueprint) or (blueprint).
template <template <class> class M, class T>
std::unique_ptr<Model<T>> make_model_of(const Blueprint& blueprint) {
  if constexpr (std::is_constructible_v<M<T>, SettingsArgument, const Blueprint&>)
    return std::make_unique<M<T>>(SettingsArgument{blueprint.settings}, blueprint);
  else
    return std::make_unique<M<T>>(blueprint);
}

/// Why a model does not fit a task of these dimensions, and the models that do; empty if it fits.
std::string misfit(const ModelEntry& model, const Dimensions& dimensions);

/// Makes a model from its spec. `posterior`: also with a learned posterior q(z | x, y). UsageError if the task lacks a needed
/// dimension.
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

// Models that stop gradients on purpose: the gradient that they define is not the slope of their losses. A model may implement this
// interface besides Model. Its exact gradient by enumeration is defined as that of any model; only checks against differences
// of the losses do not apply.

struct StopsGradients {
  std::string stopped;  ///< the setting and its effect; empty: nothing is stopped
  virtual ~StopsGradients() = default;
};

}  // namespace hardgrad
