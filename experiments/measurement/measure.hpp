// Bias, variance and cost of an estimator at fixed parameters and batch.
#pragma once

#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "core/estimator/estimator.hpp"
#include "experiments/measurement/truth.hpp"

namespace hardgrad::measurement {

inline constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

/// How moments are found: by visiting every outcome or by sampling.
enum class Method {
  /// Exact where the visits cost no more rows than the replicates would (with rare options: than most_replicates), else sampled.
  cheapest,
  exact,  ///< NotExact if there are more outcomes than the cap
  sampled,
};

struct MeasureSettings {
  int replicates = 256;  ///< M
  /// If the replicates do not support the intervals, their number is doubled repeatedly, up to this limit, until two counts in
  /// succession support them.
  int most_replicates = 0;
  Method method = Method::cheapest;
  bool covariance = false;       ///< of an exact measurement: also compute the whole covariance matrix
  bool at_logits = false;        ///< moments of the gradient at the choices' logits, not at the parameters
  std::string estimand = "any";  ///< the true gradient: any (a long run if it cannot be enumerated, or if a
                                 ///< quadrature's error exceeds 1%) | enumerated | none
  int directions = 8;            ///< random directions of the bias test, besides the gradient's own
  double level = 0.95;           ///< of the confidence intervals
  double outcome_cap = 2e6;      ///< most outcomes that an exact measurement visits
  double leaf_cap = 1e6;         ///< most leaves of the tree behind the exact gradient
  Stop stop = {};                ///< polled between replicates, visits and examples
};

/// The measured quantities; NaN if unknown. Sums of squares run over all parameters unless stated otherwise.
struct Measurement {
  std::string estimator;                 ///< the spec as given
  std::string target = "expected_loss";  ///< name of the estimator's target
  std::string known_unbiased;            ///< yes | no: claimed with these settings (claims_unbiased)
  std::string status = "ok";             ///< ok | skipped | failed
  std::string reason;                    ///< why status is not ok
  double estimand_norm = not_a_number;   ///< |g*|, the gradient of that target
  std::string estimand = "enumerated";   ///< source of g*: enumerated | a quadrature and its accuracy | spec and
                                         ///< replicates of a long run | why it is missing
  /// Root of the summed squared standard errors of g*; for a quadrature its error; 0 if enumerated.
  double estimand_standard_error = 0;
  double variance = not_a_number;            ///< trace of the covariance, 1/(M-1); infinite if the formula gives that
  double squared_bias = not_a_number;        ///< |mean - g*|^2 - variance / M: unbiased, may be negative
  double relative_bias = not_a_number;       ///< sqrt(max(squared_bias, 0)) / |g*|
  double mse = not_a_number;                 ///< variance + squared_bias
  double snr = not_a_number;                 ///< |g*|^2 / variance
  double cosine = not_a_number;              ///< mean cosine of a replicate to g*
  double mean_cosine = not_a_number;         ///< cosine of the mean gradient to g*, if exact: 1 if only its length is biased
  double bias_p_value_plain = not_a_number;  ///< of "no bias", by the length of mean - g*: uniform in (0, 1) if there is none
  double bias_p_value = not_a_number;        ///< least along g* and random directions, Bonferroni-corrected
  double replicates = not_a_number;          ///< number drawn
  double effective_sample_size = not_a_number;  ///< Replicates::effective_sample_size of the variance
  double tail_index = not_a_number;             ///< of the squared deviations, Replicates::tail
  double unvisited_mass = not_a_number;         ///< probability of the choices that no replicate made, see visited.hpp
  double effective_ratio_share = not_a_number;  ///< off policy: Ratios::effective_share
  double largest_ratio = not_a_number;          ///< off policy: Ratios::largest
  /// By visiting every outcome, in addition to Method::sampled, if that takes no more visits than the sample takes examples.
  double exact_variance = not_a_number, exact_squared_bias = not_a_number, exact_cosine = not_a_number;
  std::string why_unreliable;              ///< why the replicates do not support these statistics; empty if they do
  double rows = not_a_number;              ///< model rows per gradient
  double attention_values = not_a_number;  ///< per gradient
  double missed_hints = not_a_number;      ///< Tape::missed_hints per gradient: work done twice, which changes no number
  double seconds = not_a_number;           ///< wall seconds per gradient
  double work_normalised_variance = not_a_number;  ///< variance x rows
  double outcomes = not_a_number;                  ///< number visited, if exact
  double attention_entropy = not_a_number;         ///< nats a choice, see choice_entropy.hpp; of the network, not the estimator
  std::map<std::string, double> entropy_by_site;   ///< the same for the choices of one site
  std::map<std::string, double> bias_against;      ///< squared bias against each known target, by name
  std::map<std::string, std::array<double, 2>> intervals;  ///< by name of the field above
  std::map<std::string, double> variance_by_group;         ///< by parameter group
  std::map<std::string, double> variance_by_site;          ///< at the logits: by site
  std::vector<double> mean;                                ///< [P] mean gradient, in the order of the model's parameters
  std::vector<double> variances;                           ///< [P] of each entry
  std::vector<double> covariance;                          ///< [P, P] if requested
};

/// True if every outcome was visited.
inline bool is_exact(const Measurement& m) { return std::isfinite(m.outcomes); }

/// Measures one estimator. The noise of replicates is keyed by `noise`. Replicates run in TBB; the results do not depend on
/// the number of threads. Throws Interrupted if settings.stop asks for it. Of exact moments no number is sampled, and `outcomes`
/// is set. Does not change the estimator's learned state. Throws NotFinite if a gradient, a loss or a moment is not finite. `truths` may be
/// shared by measurements of the same model and batch with the same settings and noise.
template <class T>
Measurement measure(const Spec& spec, const Estimator<T>& estimator, const Model<T>& model, const Batch& batch,
                    const MeasureSettings& settings, Key noise, Truths<T>* truths = nullptr);

/// A measurement that was not made: unsupported (skipped), or not finite (failed).
Measurement skipped(const Spec& spec, const std::string& reason);
Measurement failed(const Spec& spec, const std::string& reason);

}  // namespace hardgrad::measurement
