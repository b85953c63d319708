// sparsemax: E[f] with the softmax of every choice replaced by its sparsemax (Martins & Astudillo 2016, From softmax to sparsemax), or
// by another entmax (Peters, Niculae & Martins 2019, Sparse sequence-to-sequence models).
#include "core/autodiff/softmax.hpp"
#include "core/choice/handlers.hpp"
#include "core/estimator/enumeration/objectives.hpp"

namespace hardgrad::targets::sparsemax {
namespace {

struct Config {
  double alpha = 2;
  void declare(Fields& field) { field(alpha, "alpha", least_entmax_alpha, 2, "of the entmax: 2 is sparsemax").absent_means(2); }
};

template <class T>
Estimate<T> objective(const Target& target, const Problem<T>& problem) {
  EnumerateHandler<T> handler(problem.model.structure());
  const double alpha = read<Config>(target.settings()).alpha;
  return estimate_of(problem, handler, CostWeights::unknown,
                     [alpha](Episode<T>& episode) { return sparse_expected_loss(episode, alpha); });
}

}  // namespace

const TargetEntry entry = {
    .name = "sparsemax",
    .summary = "E[f] with softmax replaced by sparsemax, or by entmax",
    .parameters = declared<Config>(),
};
HARDGRAD_TARGET(sparsemax, objective, rows_of_enumeration, entry)

}  // namespace hardgrad::targets::sparsemax
