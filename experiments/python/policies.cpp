#include "experiments/python/policies.hpp"

#include <fmt/format.h>

#include <cmath>

#include "core/estimator/older_samples.hpp"

namespace hardgrad::python {

template <class T>
std::vector<T> policy_logits(PolicyRole role, const std::optional<Numbers<T>>& given, const GivenLogits<T>& of, int rank) {
  if (!given) return {};
  const bool draws = role == PolicyRole::behaviour;
  const char* whose = draws ? "behaviour" : "reference";
  std::vector<T> value(given->data(), given->data() + given->size());
  for (std::size_t cell = 0; cell < of.count.size(); ++cell) {
    bool possible = false;
    for (std::size_t s = 0; s < of.options; ++s) {
      auto& x = value[cell * of.options + s];
      const bool never = x == -INFINITY, missing = s >= static_cast<std::size_t>(of.count[cell]);
      const auto refuse = [&](const char* why) {
        throw UsageError(fmt::format("{}: entry {} is {}: {}", whose, of.place(cell * of.options + s, rank), x, why));
      };
      if (!never && !std::isfinite(x)) refuse("its logits are finite, or -inf");
      if (missing && !never) refuse("the logits have no such option (-inf), so it is -inf here, too");
      if (missing) x = 0;
      if (never && !missing && !draws) refuse("the policy may choose this option, so its divergence would be infinite");
      if (never && !missing && of.subset_size > 0) refuse("of subsets all its logits are finite");
      possible |= !never;
    }
    if (!possible)
      throw UsageError(fmt::format("{}: all options of entry {} are -inf", whose, of.place(cell * of.options, rank)));
  }
  return value;
}

void NoDraws::refuse() const { throw UsageError(does_not_correct(estimator_)); }

template <class T>
void require_rewards(MatrixView<const T> losses) {
  for (std::size_t r = 0; r < losses.size(); ++r)
    if (losses.data[r] > 0)
      throw UsageError(
          fmt::format("the loss of row {} is {}: the likelihood of success needs rewards of at least 0, whose "
                      "negatives are the losses",
                      r, losses.data[r]));
}

#define HARDGRAD_INSTANTIATE(T)                                                                                    \
  template std::vector<T> policy_logits(PolicyRole, const std::optional<Numbers<T>>&, const GivenLogits<T>&, int); \
  template void require_rewards(MatrixView<const T>);
HARDGRAD_INSTANTIATE(float)
HARDGRAD_INSTANTIATE(double)
#undef HARDGRAD_INSTANTIATE

}  // namespace hardgrad::python
