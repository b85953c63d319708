#include "core/autodiff/dropout.hpp"

#include "core/autodiff/require.hpp"

namespace hardgrad {

// y = m x with m = 0 or 1 / (1 - rate); gx = m g
template <class T>
Var<T> dropout(Var<T> x, double rate, Key key, std::span<const Draw> place) {
  require_shapes(place.size() == x.rows(), "dropout", {x});
  if (!(rate >= 0 && rate < 1)) throw Bug("dropout: the rate must be in [0, 1), got " + std::to_string(rate));
  if (rate == 0) return x;
  auto& tape = *x.tape;
  auto y = tape.output(x.rows(), x.cols(), {x});
  const auto mask = tape.template scratch<T>(x.value().size());
  const auto kept = static_cast<T>(1 / (1 - rate));
  KeyedRandomness random(key);
  const std::size_t cols = x.cols();
  for (std::size_t i = 0; i < mask.size(); ++i) {
    auto where = place[i / cols];
    where.column += static_cast<std::uint32_t>(i % cols);
    mask[i] = random.uniform(where) < rate ? T{0} : kept;
  }
  const T *in = x.value().data, *m = mask.data();
  T* out = tape.mutable_value(y).data;
  for (std::size_t i = 0; i < mask.size(); ++i) out[i] = m[i] == 0 ? T{0} : m[i] * in[i];
  tape.on_backward({y}, [x, y, m](Tape<T>& tape) {
    const T* g = tape.cotangent(y).data;
    tape.sink(x).accumulate([=](std::size_t i) { return m[i] * g[i]; });
  });
  return y;
}

template Var<float> dropout(Var<float>, double, Key, std::span<const Draw>);
template Var<double> dropout(Var<double>, double, Key, std::span<const Draw>);

}  // namespace hardgrad
