// An estimator that is kept from call to call, with what it learns: averages, baselines, control variates.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <type_traits>
#include <vector>

#include "core/estimator/estimator.hpp"
#include "core/nn/optimizer.hpp"

namespace hardgrad::python {

/// One of them in one precision, made for one structure.
template <class T>
struct Held {
  std::unique_ptr<Estimator<T>> estimator;
  std::unique_ptr<Optimizer<T>> optimizer;  ///< of its own parameters; null if it learns nothing
  Structure made_for;
  std::vector<T> gradient = {};  ///< scratch of learning
};

class HeldEstimator {
 public:
  template <class T>
  using Make = std::function<std::unique_ptr<Estimator<T>>(const Structure&)>;
  /// UsageError if there is no such estimator, or its settings are wrong. Its own parameters start from `seed`, and are trained
  /// by Adam.
  HeldEstimator(const std::string& spec, std::uint64_t seed, double learning_rate);
  /// One that is in no registry, and learns nothing.
  HeldEstimator(std::string name, Make<float> narrow, Make<double> wide);

  const std::string& name() const { return name_; }
  /// As it was given, settings and all.
  const std::string& text() const { return text_; }
  /// The one for a structure; a new one if it learns nothing and was made for another. UsageError if it does not work there, or
  /// has begun to learn elsewhere.
  template <class T>
  std::shared_ptr<Held<T>> on(const Structure& structure);
  /// Held while it learns.
  std::recursive_mutex& learning() { return learning_; }

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
    std::shared_ptr<Held<T>> held = {};
  };
  std::string name_, text_;
  InPrecision<float> narrow_;
  InPrecision<double> wide_;
  double learning_rate_ = 0;
  std::mutex making_;
  std::recursive_mutex learning_;  // a loss may ask the same estimator
};

}  // namespace hardgrad::python
