// sparsemax: E[f] with the softmax of every choice replaced by its sparsemax; Martins & Astudillo 2016, From softmax to
// sparsemax.
#include "core/choice/choosers.hpp"
#include "core/estimator/enumeration/objectives.hpp"

namespace hardgrad {
namespace {

template <class T>
Estimate<T> objective(const Target&, const Problem<T>& problem) {
  EnumerateChooser<T> chooser;
  auto episode = problem.run(chooser);
  auto loss = sparse_expected_loss(*episode);
  return {.surrogate = loss, .episode = std::move(episode), .loss = static_cast<double>(loss.item())};
}

}  // namespace

const TargetEntry entry = {
    .name = "sparsemax",
    .summary = "E[f] with softmax replaced by sparsemax",
};
HARDGRAD_TARGET(sparsemax, objective, rows_of_enumeration, entry)

}  // namespace hardgrad
