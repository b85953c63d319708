#include "experiments/python/formula.hpp"

#include <pybind11/stl.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <utility>

#include "core/autodiff/softmax.hpp"
#include "core/choice/plain_draws.hpp"
#include "core/estimator/estimator.hpp"
#include "experiments/python/draw.hpp"
#include "experiments/python/mixture.hpp"
#include "experiments/python/module.hpp"
#include "experiments/training/adaptation.hpp"

namespace hardgrad::python {
namespace {

constexpr std::size_t E = 2;  // examples of the problems

/// Thrown where an estimator is no score function of K samples.
struct OtherDraws {};

int samples_of(const Settings& settings) { return settings.values().contains("samples") ? settings.integer("samples") : 1; }

/// A question of two examples, the estimator's draws there, and their scores.
class Asked {
 public:
  Asked(StatefulEstimator& estimator, std::size_t columns, std::size_t options, int samples, std::uint64_t seed)
      : estimator_(estimator), D_(columns), S_(options), K_(samples), seed_(seed), numbers_(E * columns * options) {
    KeyedRandomness random{Key(seed) / "logits"};
    for (std::size_t i = 0; i < numbers_.size(); ++i) numbers_[i] = random.normal({.example = static_cast<std::uint32_t>(i)});
    draw();
  }
  std::size_t rows() const { return E * static_cast<std::size_t>(K_); }
  std::size_t cells() const { return D_ * S_; }
  /// [D S] d log p / d logits of the row.
  std::span<const double> score(std::size_t r) const { return std::span(score_).subspan(r * cells(), cells()); }

  /// [E, D S] the slope that the estimator gives at the logits, where the rows' losses are f. OtherDraws if it is not its answer to
  /// one question of K samples, of equal weight.
  std::vector<double> slope(const std::vector<double>& f) const {
    int calls = 0;
    const auto loss = [&](Tape<double>& tape, const Choice<double>& choice, std::span<const int> example) {
      if (++calls > 1 || !choice.hard() || example.size() != rows()) throw OtherDraws();
      if (!std::equal(option_.begin(), option_.end(), choice.picked().begin(), choice.picked().end())) throw OtherDraws();
      return tape.constant({f.data(), f.size(), 1});
    };
    const Drawn<double> drawn(estimator_, {.logits = {numbers_.data(), E, D_, S_, 0, 3}, .loss = loss, .seed = seed_});
    for (const double share : drawn.runs().at(0).share)
      if (std::abs(share * K_ - 1) > 1e-12) throw OtherDraws();
    return drawn.gradient();
  }

 private:
  void draw() {
    PooledTape<double> tape;
    const std::vector<int> options(E * D_, static_cast<int>(S_));
    std::vector<std::uint32_t> id(E);
    std::iota(id.begin(), id.end(), 0);
    const auto log_p = log_softmax(tape->constant({numbers_.data(), E * D_, S_}), std::span<const int>(options));
    std::vector<std::int64_t> option(rows() * D_);
    KeyedRandomness random(noise_key(seed_));
    draw_samples<double>({D_, log_p, options, id}, K_, 1, random,
                         {DrawnRows<double>::Form::options, D_, S_, option.data(), nullptr});
    option_.assign(option.begin(), option.end());
    score_.resize(rows() * cells());
    for (std::size_t i = 0; i < score_.size(); ++i) {
      const std::size_t c = i / S_, r = c / D_;
      score_[i] = (option_[c] == static_cast<int>(i % S_)) - std::exp(log_p.value()(r / K_ * D_ + c % D_, i % S_));
    }
  }

  StatefulEstimator& estimator_;
  std::size_t D_, S_;
  int K_;
  std::uint64_t seed_;
  std::vector<double> numbers_, score_;  // [E, D, S], [E K, D S]
  std::vector<int> option_;              // [E K, D]
};

/// Solves A x = b for symmetric positive A [n, n], by elimination.
std::vector<double> solved(std::vector<double> A, std::vector<double> b) {
  const std::size_t n = b.size();
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = i + 1; j < n; ++j) {
      const double factor = A[j * n + i] / A[i * n + i];
      for (std::size_t k = i; k < n; ++k) A[j * n + k] -= factor * A[i * n + k];
      b[j] -= factor * b[i];
    }
  for (std::size_t i = n; i-- > 0;) {
    for (std::size_t k = i + 1; k < n; ++k) b[i] -= A[i * n + k] * b[k];
    b[i] /= A[i * n + i];
  }
  return b;
}

double dot(std::span<const double> a, std::span<const double> b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

/// [E, D S] each: the slope of the formula is own x first + others x second + offset x third, of losses f [E K].
std::array<std::vector<double>, 3> parts_of_slope(const Asked& asked, const std::vector<double>& f) {
  const std::size_t K = f.size() / E, n = asked.cells();
  std::array<std::vector<double>, 3> parts;
  parts.fill(std::vector<double>(E * n));
  for (std::size_t r = 0; r < f.size(); ++r) {
    const std::size_t e = r / K;
    const double all = std::accumulate(&f[e * K], &f[e * K] + K, 0.0), factor[] = {f[r], all - f[r], 1};
    for (std::size_t part = 0; part < 3; ++part)
      for (std::size_t i = 0; i < n; ++i) parts[part][e * n + i] += factor[part] * asked.score(r)[i] / static_cast<double>(K);
  }
  return parts;
}

/// True if the estimator's slopes are those of the formula.
bool same(const Asked& asked, const LinearScore& score, const std::vector<double>& f) {
  const auto slope = asked.slope(f);
  const auto [first, second, third] = parts_of_slope(asked, f);
  const auto K = static_cast<double>(f.size() / E);
  double size = 0, off = 0;
  for (const double x : f) size = std::max(size, std::abs(x));
  for (std::size_t i = 0; i < slope.size(); ++i)
    off = std::max(off, std::abs(score.own * first[i] + score.others * second[i] + score.offset * third[i] - slope[i]));
  return off <= 1e-9 * size * std::max(std::abs(score.own), (K - 1) * std::abs(score.others));  // not of a NaN
}

std::vector<double> losses_of_rows(std::size_t rows, double scale, std::uint64_t seed) {
  std::vector<double> f(rows);
  KeyedRandomness random{Key(seed) / "losses"};
  for (std::size_t r = 0; r < rows; ++r) f[r] = scale * (random.normal({.example = static_cast<std::uint32_t>(r)}) + 0.3);
  return f;
}

/// Least squares.
LinearScore fitted(const Asked& asked, const std::vector<double>& f) {
  const auto slope = asked.slope(f);
  const auto parts = parts_of_slope(asked, f);
  std::vector<std::size_t> in_use{0, 2};
  if (f.size() > E) in_use.push_back(1);
  const std::size_t n = in_use.size();
  std::vector<double> gram(n * n), with(n);
  for (std::size_t i = 0; i < n; ++i) {
    with[i] = dot(parts[in_use[i]], slope);
    for (std::size_t j = 0; j < n; ++j) gram[i * n + j] = dot(parts[in_use[i]], parts[in_use[j]]);
  }
  auto found = solved(std::move(gram), std::move(with));
  for (auto& x : found)
    if (std::abs(x) < 1e-10) x = 0;  // rounding
  found.resize(3);
  return {.own = found[0], .others = found[2], .offset = found[1]};
}

/// One question of D columns, as OwnLoss has it.
Structure structure_of_question(int columns, int options) {
  return structure_of({{"choice", options, columns, 1, 1, static_cast<int>(DependenceScope::own_costs), 0}}, {});
}

pybind11::object formula(const std::string& text) {
  namespace py = pybind11;
  const auto spec = Spec::parse(text);
  const auto& entry = Estimators::instance().at(spec.name);
  const auto settings = settings_of(entry, spec);
  const auto found = entry.closed_form ? entry.closed_form(settings) : ClosedForm::none;
  py::dict result;
  result["samples"] = found == ClosedForm::soft ? 1 : samples_of(settings);
  result["cap"] = settings.real("cap");
  if (entry.closed_form) {
    const bool pairs = found == ClosedForm::disarm || found == ClosedForm::arm;
    if (found == ClosedForm::none || target_of(spec).text() != Target(entry.target).text() ||
        !why_unsupported(spec, structure_of_question(2, pairs ? 2 : 3)).empty())
      return py::none();
    result["kind"] = name_of(found, closed_forms);
    for (const char* name : {"temperature", "forward_temperature", "gap"})
      if (settings.values().contains(name)) result[name] = settings.real(name);
    return result;
  }
  const auto linear = linear_score(spec);
  if (!linear) return py::none();
  result["kind"] = "linear";
  result["own"] = linear->own;
  result["others"] = linear->others;
  result["offset"] = linear->offset;
  return result;
}

}  // namespace

std::optional<LinearScore> linear_score(const Spec& spec) {
  const auto& entry = Estimators::instance().at(spec.name);
  const auto settings = settings_of(entry, spec);
  const auto structure = structure_of_question(2, 3);
  const int K = samples_of(settings);
  if (K > most_asked || entry.couples(settings) || target_of(spec).text() != "expected_loss" ||
      !why_unsupported(spec, structure).empty() || training::learns(*make_estimator<double>(spec, structure, Key())))
    return {};
  StatefulEstimator estimator(spec.text, 0, {});
  try {
    const Asked first(estimator, 17, 2, K, 1);
    const auto score = fitted(first, losses_of_rows(first.rows(), 1, 1));
    std::uint64_t seed = 2;
    for (const auto& [columns, options] : {std::pair<std::size_t, std::size_t>{1, 2}, {2, 3}, {17, 2}})
      for (const double scale : {1.0, 1e-3, -1e4}) {
        const Asked asked(estimator, columns, options, K, ++seed);
        if (!same(asked, score, losses_of_rows(asked.rows(), scale, seed))) return {};
      }
    return score;
  } catch (const OtherDraws&) {
  } catch (const Error&) {  // it does not support one of the problems, or refuses the losses
  }
  return {};
}

void declare_formula(pybind11::module_& module) {
  module.def("formula", [](const std::string& spec) { return formula(spec); });
}

}  // namespace hardgrad::python
