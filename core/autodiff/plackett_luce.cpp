#include "core/autodiff/plackett_luce.hpp"

#include "core/autodiff/require.hpp"
#include "core/kernels/plackett_luce.hpp"

namespace hardgrad {

// gx[parent_r] += g[r] d log p_r / dx
template <class T>
Var<T> plackett_luce_log_probability(Var<T> x, std::span<const int> options, std::span<const int> parent,
                                     std::span<const int> picked) {
  const std::size_t most = parent.empty() ? 0 : picked.size() / parent.size();
  require_shapes(options.size() == x.rows() && picked.size() == parent.size() * most &&
                     most <= static_cast<std::size_t>(kernels::PlackettLuce::most_picks),
                 "plackett_luce_log_probability", {x});
  require_indices("plackett_luce_log_probability", options, 1, x.cols() + 1);
  require_indices("plackett_luce_log_probability", parent, 0, x.rows());
  require_indices("plackett_luce_log_probability", picked, -1, x.cols());
  auto& tape = *x.tape;
  auto y = tape.output(parent.size(), 1, {x});
  T* out = tape.mutable_value(y).data;
  kernels::PlackettLuce set;
  for (std::size_t r = 0; r < parent.size(); ++r) {
    set.load(x.value().row(parent[r]), options[parent[r]], picked.subspan(r * most, most));
    out[r] = static_cast<T>(set.log_probability());
  }
  tape.on_backward({y}, [x, y, most, options = tape.keep(options), parent = tape.keep(parent),
                         picked = tape.keep(picked)](Tape<T>& tape) {
    const T* g = tape.cotangent(y).data;
    const auto to = tape.sink(x).scattered();
    kernels::PlackettLuce set;
    for (std::size_t r = 0; r < parent.size(); ++r) {
      if (g[r] == 0) continue;
      set.load(tape.value(x).row(parent[r]), options[parent[r]], picked.subspan(r * most, most));
      set.score([&](std::size_t i, double score) { to(parent[r], i) += static_cast<T>(static_cast<double>(g[r]) * score); });
    }
  });
  return y;
}

template Var<float> plackett_luce_log_probability(Var<float>, std::span<const int>, std::span<const int>, std::span<const int>);
template Var<double> plackett_luce_log_probability(Var<double>, std::span<const int>, std::span<const int>,
                                                   std::span<const int>);

}  // namespace hardgrad
