// sparsemax: E[f] with the softmax of every choice replaced by its sparsemax; Martins & Astudillo 2016, From softmax to
// sparsemax.
#include "core/choice/handlers.hpp"
#include "core/estimator/enumeration/objectives.hpp"

namespace hardgrad::targets::sparsemax {
namespace {

template <class T>
Estimate<T> objective(const Target&, const Problem<T>& problem) {
  EnumerateHandler<T> handler(problem.model.structure());
  return estimate_of(problem, handler, CostWeights::unknown, sparse_expected_loss<T>);
}

}  // namespace

const TargetEntry entry = {
    .name = "sparsemax",
    .summary = "E[f] with softmax replaced by sparsemax",
};
HARDGRAD_TARGET(sparsemax, objective, rows_of_enumeration, entry)

}  // namespace hardgrad::targets::sparsemax
