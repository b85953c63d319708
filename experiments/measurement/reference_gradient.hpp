// Exact gradients, to which estimates are compared.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/estimator/estimator.hpp"
#include "experiments/measurement/path_laws.hpp"
#include "experiments/measurement/replicate_statistics.hpp"
#include "experiments/support/stop.hpp"

namespace hardgrad::measurement {

/// The exact gradient of one target, by example.
struct ReferenceGradient {
  std::vector<double> gradient;                 ///< [P] of the mean over the batch
  std::vector<std::vector<double>> of_example;  ///< [B][P]
  double value = 0;                             ///< the target's value, mean over the batch
  int nodes = 0;                                ///< nodes a column of the quadrature, if choices are numbers; 0: enumerated
  double error = 0;                             ///< error of the quadrature's gradient (gauss_error); 0 if enumerated

  double norm() const;
  /// The source: "enumerated", or the quadrature and its accuracy.
  std::string what() const;
  /// True if a long run is likely to be more accurate.
  bool rough() const { return error > 0.01 * norm(); }
};

/// Replaces a truth that cannot be enumerated.
struct LongRun {
  ReplicateStatistics replicates;  ///< around zero
  std::string what;                ///< estimator and number of replicates
};

/// By enumeration, one example at a time (in TBB). UsageError with the count if an example has more than `leaf_cap` leaves.
/// `stop` is polled between examples.
template <class T>
ReferenceGradient exact_reference(const Target& target, const Model<T>& model, const Batch& batch, double leaf_cap,
                                  const Stop& stop = {});

/// Only the gradient, [P].
template <class T>
std::vector<double> exact_gradient(const Target& target, const Model<T>& model, const Batch& batch, double leaf_cap) {
  return exact_reference(target, model, batch, leaf_cap).gradient;
}

/// Reference gradients of one model and batch, and the laws of its paths, computed at the first request.
template <class T>
class ReferenceGradients {
 public:
  ReferenceGradients(const Model<T>& model, const Batch& batch, double leaf_cap, Stop stop = {})
      : model_(model), batch_(batch), leaf_cap_(leaf_cap), stop_(std::move(stop)) {}
  /// Null if the choices are too many to enumerate, or if the model lacks a posterior that the target needs; then `why` gives
  /// the reason.
  const ReferenceGradient* of(const Target& target);
  const std::string& why() const { return why_; }
  /// The long run that replaces it: the result of `make`, called at the first request.
  template <class Make>
  const LongRun* long_run(const Target& target, Make make) {
    const auto [known, first] = long_runs_.try_emplace(target.text());
    if (first) known->second = make();
    return known->second ? &*known->second : nullptr;
  }
  /// Of the model's behaviour policy; null: see there.
  const std::shared_ptr<const PathLaws>& path_laws() {
    if (!path_laws_) path_laws_ = PathLaws::of(model_, batch_, stop_);
    return *path_laws_;
  }

 private:
  const Model<T>& model_;
  const Batch& batch_;
  double leaf_cap_;
  Stop stop_;
  std::map<std::string, std::optional<ReferenceGradient>> known_;
  std::map<std::string, std::optional<LongRun>> long_runs_;
  std::optional<std::shared_ptr<const PathLaws>> path_laws_;
  std::string why_;
};

}  // namespace hardgrad::measurement
