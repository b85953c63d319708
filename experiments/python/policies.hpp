// Behaviour and reference policies that come with a user's logits, and losses that are rewards.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/random/randomness.hpp"
#include "core/support/views.hpp"
#include "experiments/python/module.hpp"
#include "experiments/python/own_loss.hpp"

namespace hardgrad::python {

enum class PolicyRole { behaviour, reference };

/// The logits [R D, S] of another policy for the choices of `of`, 0 for missing options; empty if there is none. UsageError for
/// the first invalid logit, at its place in an array of `rank` axes: of a behaviour policy -inf marks options that it never
/// draws; an option that the reference policy never takes has an infinite divergence.
template <class T>
std::vector<T> policy_logits(PolicyRole role, const std::optional<Numbers<T>>& given, const GivenLogits<T>& of, int rank);

/// The noise of an estimator that does not correct for the samples of a behaviour policy: a UsageError at the first draw.
/// Estimators that enumerate draw nothing, and need no behaviour policy.
class NoDraws final : public Randomness {
 public:
  explicit NoDraws(std::string estimator) : estimator_(std::move(estimator)) {}
  using Randomness::categorical;
  int categorical(std::span<const double>, Draw) override { refuse(); }
  double uniform(Draw, const Pieces&) override { refuse(); }

 private:
  [[noreturn]] void refuse() const;
  std::string estimator_;
};

/// UsageError if a loss is positive, for targets that need rewards of at least 0 (TargetEntry::rewards).
template <class T>
void require_rewards(MatrixView<const T> losses);

}  // namespace hardgrad::python
