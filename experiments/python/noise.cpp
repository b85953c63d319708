// Draws from logits for estimates that Python computes: options or Gumbel noise, the same as those of a draw by core.
#include <tbb/task_arena.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "core/autodiff/softmax.hpp"
#include "core/choice/plain_draws.hpp"
#include "core/support/named.hpp"
#include "experiments/python/mixture.hpp"
#include "experiments/python/module.hpp"
#include "experiments/python/own_loss.hpp"
#include "experiments/python/stateful_estimator.hpp"
#include "experiments/support/parallel.hpp"

namespace hardgrad::python {
namespace {

namespace py = pybind11;

enum class Law { samples, gumbels, pairs, numbered_pairs };
constexpr Named<Law> laws[] = {
    {"samples", Law::samples}, {"gumbels", Law::gumbels}, {"pairs", Law::pairs}, {"numbered_pairs", Law::numbered_pairs}};
enum class RowForm { none, options, one_hot, bits };
constexpr Named<RowForm> row_forms[] = {
    {"none", RowForm::none}, {"options", RowForm::options}, {"one_hot", RowForm::one_hot}, {"bits", RowForm::bits}};

template <class E, std::size_t N>
E value_of(const std::string& name, const Named<E> (&names)[N]) {
  for (const auto& row : names)
    if (name == row.name) return row.value;
  throw Bug("there is no " + name);
}

/// The caller's logits in core's order, with missing options last.
template <class T>
struct Ordered {
  std::vector<T> value;      ///< [E D, S]; empty: all are finite
  std::vector<int> count;    ///< [E D]
  std::vector<int> order{};  ///< [E D, S] the caller's option at each place; empty: the same
};

/// `on_tape` [E D, S] receives the logits if all are finite; otherwise it is to be filled with `value`.
template <class T>
Ordered<T> ordered(const T* x, MatrixView<T> on_tape, std::size_t E, std::size_t D, std::size_t S, bool bits, int rank) {
  Ordered<T> result;
  bool finite = false;
  if (bits) {
    finite = put_beside_zero(x, E * D, on_tape.data);
  } else {
    std::copy_n(x, on_tape.size(), on_tape.data);
    finite = all_finite(x, on_tape.size());
  }
  if (finite) {
    result.count.assign(E * D, static_cast<int>(S));
    return result;
  }
  auto& value = result.value;
  value.assign(on_tape.data, on_tape.data + on_tape.size());
  bool last = true;
  for (std::size_t c = 0; c < E * D; ++c)
    for (std::size_t s = 1; s < S; ++s) last &= !(value[c * S + s - 1] == -INFINITY && value[c * S + s] != -INFINITY);
  if (!last) {
    result.order.resize(value.size());
    for (std::size_t c = 0; c < E * D; ++c) {
      int* const order = &result.order[c * S];
      std::iota(order, order + S, 0);
      const T* const of = bits ? nullptr : x + c * S;
      if (of) std::stable_partition(order, order + S, [of](int s) { return of[s] != -INFINITY; });
      for (std::size_t s = 0; of && s < S; ++s) value[c * S + s] = of[order[s]];
    }
  }
  GivenLogits<T> checked(value.data(), E, D, S, 0, rank);
  result.value = std::move(checked.value);
  result.count = std::move(checked.count);
  return result;
}

/// The arguments of `noise_of_logits`, and where its results are written.
template <class T>
struct Drawing {
  const T* logits;
  std::size_t columns, options;
  bool bits;
  int rank;
  std::uint64_t seed;
  Law law;
  std::size_t samples;
  double temperature;
  DrawnRows<T> to;
  T* noise;  ///< null if there is none; or, of a row (or pair of rows), so many numbers:
  std::size_t noise_width;

  /// Draws for these examples of the batch, from its `begin` on.
  void operator()(std::size_t begin, std::span<const std::uint32_t> id) const {
    const std::size_t cells = id.size() * columns, row = begin * samples;
    PooledTape<T> tape;
    const auto on_tape = tape->constant(cells, options);
    const auto from = logits + begin * columns * (bits ? 1 : options);
    const auto given = ordered(from, tape->mutable_value(on_tape), id.size(), columns, options, bits, rank);
    if (!given.value.empty()) std::copy(given.value.begin(), given.value.end(), tape->mutable_value(on_tape).data);
    auto there = to;
    there.order = given.order;
    if (there.option) there.option += row * columns;
    if (there.weights) there.weights += row * columns * (to.form == DrawnRows<T>::Form::bits ? 1 : options);
    T* const numbers = noise ? noise + (law == Law::numbered_pairs ? row / 2 : row) * noise_width : nullptr;
    const PlainQuestion<T> question{columns, log_softmax(on_tape, std::span<const int>(given.count)), given.count, id};
    KeyedRandomness random(noise_key(seed));
    const int count = static_cast<int>(samples);
    switch (law) {
      case Law::samples: draw_samples(question, count, temperature, random, there); break;
      case Law::gumbels: draw_gumbels(question, count, random, there, numbers); break;
      case Law::pairs:
      case Law::numbered_pairs: draw_pairs(question, count / 2, random, there, numbers); break;
    }
  }
};

/// Examples that one thread draws for: those of about 8000 numbers, so that it takes much longer than to start a thread; a multiple of
/// 64, so that no thread begins within a vector of core's operations.
std::size_t examples_at_once(std::size_t numbers_of_example) {
  return 64 * (1 + 8000 / (64 * std::max<std::size_t>(1, numbers_of_example)));
}

/// logits [E, D, S], or with `bits` those of a 1 [E, D]; `rank` is that of the caller's, for messages. Returns the rows in the given
/// form, or None, and the noise, or None: see plain_draws.hpp. The numbers are the same for any number of threads.
template <class T>
py::tuple noise_of_logits(const Numbers<T>& logits, int rank, const std::optional<Numbers<std::uint32_t>>& ids,
                          std::uint64_t seed, const std::string& law_name, int samples, double temperature,
                          const std::string& form_name, int threads) {
  const auto law = value_of(law_name, laws);
  const auto form = value_of(form_name, row_forms);
  const bool bits = logits.ndim() == 2, pairs = law == Law::pairs || law == Law::numbered_pairs;
  const auto E = logits.shape(0), D = logits.shape(1), S = bits ? 2 : logits.shape(2), R = E * samples;
  py::object chosen = py::none(), numbers = py::none();
  std::vector<py::ssize_t> of_rows{R, D};
  DrawnRows<T> to{
      .form = DrawnRows<T>::Form::none, .columns = static_cast<std::size_t>(D), .width = static_cast<std::size_t>(S)};
  if (form == RowForm::options) {
    py::array_t<std::int64_t> array(of_rows);
    to.form = DrawnRows<T>::Form::options;
    to.option = array.mutable_data();
    chosen = array;
  } else if (form != RowForm::none) {
    if (form == RowForm::one_hot) of_rows.push_back(S);
    py::array_t<T> array(of_rows);
    to.form = form == RowForm::bits ? DrawnRows<T>::Form::bits : DrawnRows<T>::Form::one_hot;
    to.weights = array.mutable_data();
    chosen = array;
  }
  T* noise = nullptr;
  const bool by_option = law == Law::gumbels && S > 2;
  if (law == Law::gumbels || law == Law::numbered_pairs) {
    std::vector<py::ssize_t> of_noise{pairs ? R / 2 : R, D};
    if (by_option) of_noise.push_back(S);
    py::array_t<T> array(of_noise);
    noise = array.mutable_data();
    numbers = array;
  }
  const auto width = static_cast<std::size_t>(by_option ? D * S : D);
  const Drawing<T> draw{logits.data(), to.columns, to.width, bits, rank, seed, law, static_cast<std::size_t>(samples),
                        temperature,   to,         noise,    width};
  {
    const py::gil_scoped_release released;
    std::vector<std::uint32_t> id(E);
    if (ids)
      std::copy_n(ids->data(), E, id.begin());
    else
      std::iota(id.begin(), id.end(), 0);
    const std::size_t at_once = examples_at_once(width * static_cast<std::size_t>(samples));
    // Missing options are found, and named, in the whole batch.
    if (threads < 2 || id.size() <= at_once || !all_finite(logits.data(), static_cast<std::size_t>(logits.size()))) {
      draw(0, id);
    } else {
      const auto part = [&](int number) {
        const std::size_t begin = static_cast<std::size_t>(number) * at_once;
        draw(begin, std::span<const std::uint32_t>(id).subspan(begin, std::min(at_once, id.size() - begin)));
      };
      tbb::task_arena(useful_jobs(threads)).execute([&] {
        parallel_for(static_cast<int>((id.size() + at_once - 1) / at_once), part);
      });
    }
  }
  return py::make_tuple(chosen, numbers);
}

/// [E, K, D] the uniform numbers at an index of the noise.
py::array_t<double> uniforms(std::uint64_t seed, const Numbers<std::uint32_t>& ids, int samples, int columns,
                             std::uint32_t index) {
  py::array_t<double> result({ids.shape(0), static_cast<py::ssize_t>(samples), static_cast<py::ssize_t>(columns)});
  KeyedRandomness random(noise_key(seed));
  double* to = result.mutable_data();
  for (py::ssize_t e = 0; e < ids.shape(0); ++e)
    for (int k = 0; k < samples; ++k)
      for (int d = 0; d < columns; ++d)
        *to++ = random.uniform({.example = ids.data()[e],
                                .replica = static_cast<std::uint32_t>(k),
                                .index = index,
                                .column = static_cast<std::uint32_t>(d)});
  return result;
}

}  // namespace

void declare_noise(py::module_& module) {
  module.def("noise_float", &noise_of_logits<float>);
  module.def("noise_double", &noise_of_logits<double>);
  module.def("noise_key", [](std::uint64_t seed) { return noise_key(seed).value(); });
  module.def("uniforms", &uniforms);
}

}  // namespace hardgrad::python
