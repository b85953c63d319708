// soft: the loss of the deterministic network with expected choices as inputs, Bahdanau, Cho & Bengio 2015.
#include "core/choice/handlers.hpp"
#include "core/estimator/enumeration/objectives.hpp"

namespace hardgrad::targets::soft {
namespace {

template <class T>
Estimate<T> objective(const Target&, const Problem<T>& problem) {
  ExpectedHandler<T> handler;
  return estimate_of(problem, handler, CostWeights::equal, hardgrad::expected_loss<T>);
}
template <class T>
std::vector<double> terms(const Target&, const Model<T>&, const Batch& batch) {
  return std::vector<double>(batch.examples(), 1.0);
}

}  // namespace

const TargetEntry entry = {
    .name = "soft",
    .summary = "the loss of the deterministic network with the expected choices as inputs",
};
HARDGRAD_TARGET(soft, objective, terms, entry)

}  // namespace hardgrad::targets::soft
