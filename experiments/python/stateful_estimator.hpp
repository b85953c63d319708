// State kept between calls: that which an estimator learns (averages, baselines, control variates), and the memory of tapes.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/autodiff/tape.hpp"
#include "core/estimator/estimator.hpp"
#include "core/nn/optimizer.hpp"
#include "experiments/python/fork_safe.hpp"

namespace hardgrad::python {

/// An estimator in one precision, made for one structure.
template <class T>
struct EstimatorInUse {
  std::unique_ptr<Estimator<T>> estimator;
  std::unique_ptr<Optimizer<T>> optimizer;  ///< of its own parameters; null if it learns nothing, or the caller trains them
  Structure made_for;
  bool learns = false;
  std::vector<T> gradient = {};  ///< of its own loss at its own parameters; empty if the last estimate had no such loss

  /// Learns from an estimate made with Problem::learning; without an optimiser, only the averages.
  void learn(const Estimate<T>& estimate);
};

/// The learned state of an estimator: its own parameters in order, the averages, and the state of their optimiser.
struct Learned {
  std::vector<std::vector<double>> parameters = {};
  std::vector<double> averages = {}, optimizer = {};
};

class StatefulEstimator {
 public:
  template <class T>
  using Make = std::function<std::unique_ptr<Estimator<T>>(const Structure&)>;
  /// UsageError if there is no such estimator, or its settings are wrong. Its own parameters are initialised by `seed`, and
  /// trained by Adam; without a learning rate the caller trains them.
  StatefulEstimator(const std::string& spec, std::uint64_t seed, std::optional<double> learning_rate);
  /// One written in Python: outside the registry, and it does not learn.
  StatefulEstimator(std::string name, Make<float> narrow, Make<double> wide);

  const std::string& name() const { return name_; }
  /// The spec as given, with its settings.
  const std::string& text() const { return text_; }
  bool written() const { return written_; }
  /// The setting `cap`, the most rows of one run, of an estimator of the registry.
  double cap() const;
  /// Whether there is a behaviour policy, and the estimator does not correct for it (corrects_behaviour).
  bool uncorrected(const Structure& structure) const { return structure.behaviour && !corrects_; }
  /// The estimator for a structure; a new one if it does not learn and was made for another structure. UsageError if it does
  /// not support the structure, or if it learns and was made for other sites.
  template <class T>
  std::shared_ptr<EstimatorInUse<T>> on(const Structure& structure);
  /// Whether it has a state to learn; false until `on` has made it.
  bool learns();
  /// The estimator that `on` has made; null before.
  template <class T>
  std::shared_ptr<EstimatorInUse<T>> made();
  /// Locked while an estimator that learns is in use. Wait for it without the GIL: its owner may wait for that.
  std::recursive_mutex& learning() { return learning_.here(); }

 private:
  template <class T>
  auto& in_precision() {
    if constexpr (std::is_same_v<T, float>)
      return narrow_;
    else
      return wide_;
  }
  template <class T>
  struct InPrecision {
    Make<T> make;
    std::shared_ptr<EstimatorInUse<T>> held = {};
  };
  std::string name_, text_;
  bool written_ = false, corrects_ = false, near_reference_ = false;
  InPrecision<float> narrow_;
  InPrecision<double> wide_;
  std::optional<double> learning_rate_ = {};
  ForkSafe<std::mutex> making_;
  ForkSafe<std::recursive_mutex> learning_;  // recursive: a loss may call the same estimator
};

template <class T>
Learned learned(const EstimatorInUse<T>& in_use);
/// UsageError if the sizes differ from those of this estimator.
template <class T>
void restore(EstimatorInUse<T>& in_use, const Learned& learned);

/// Gives an estimator the mean of the averages [size of Learned::averages] of several, made for the same structure.
template <class T>
void average(EstimatorInUse<T>& in_use, const std::vector<std::vector<double>>& averages);

/// A cleared tape for the lifetime of this object. Afterwards the destroying thread keeps it for reuse, unless it is large.
template <class T>
class PooledTape {
 public:
  PooledTape() {
    if (idle().empty()) {
      tape_ = std::make_unique<Tape<T>>();
    } else {
      tape_ = std::move(idle().back());
      idle().pop_back();
    }
  }
  PooledTape(const PooledTape&) = delete;
  ~PooledTape() {
    tape_->clear();
    if (idle().size() < most && tape_->arena().capacity() <= largest) idle().push_back(std::move(tape_));
  }

  Tape<T>& operator*() const { return *tape_; }
  Tape<T>* operator->() const { return tape_.get(); }

 private:
  static constexpr std::size_t most = 8, largest = std::size_t{128} << 20;  // bytes
  static std::vector<std::unique_ptr<Tape<T>>>& idle() {
    thread_local std::vector<std::unique_ptr<Tape<T>>> tapes;
    return tapes;
  }
  std::unique_ptr<Tape<T>> tape_;
};

}  // namespace hardgrad::python
