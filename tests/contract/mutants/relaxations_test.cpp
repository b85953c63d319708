// Mutants of the straight-through estimators.
#include <doctest/doctest.h>

#include <algorithm>

#include "core/autodiff/elementwise.hpp"
#include "core/estimator/relaxation/relaxation.hpp"
#include "tests/contract/mutants/mutant.hpp"

namespace hardgrad::testing::mutants {
namespace {

/// The constant offset that moves the logits to `to` [R, S]; with sign -1 their sum, which is wrong.
template <class T>
Var<T> moved_to(const RelaxationContext<T>& context, const std::vector<double>& to, double sign = 1) {
  return context.constants([&](std::size_t r, std::span<double> move) {
    for (std::size_t i = 0; i < move.size(); ++i) move[i] = to[r * context.width() + i] - sign * move[i];
  });
}

template <class T>
class StraightThrough final : public RelaxationEstimator<T> {
 public:
  StraightThrough(const Settings& settings, const Structure&, Key)
      : RelaxationEstimator<T>(settings.integer("samples")),
        fault_(settings),
        backward_(settings.real("temperature")),
        forward_(settings.real("forward_temperature")) {}

 private:
  Relaxed<T> relax(const RelaxationContext<T>& context) const override {
    auto option = fault_("draws at temperature 1") ? context.draw() : context.draw(forward_);
    const double used = fault_("derivative at temperature 1") ? 1 : fault_("inverse temperature") ? 1 / backward_ : backward_;
    return straight_through(context, std::move(option), context.softmax(used));
  }
  Fault fault_;
  double backward_, forward_;
};

template <class T>
class GappedSt final : public RelaxationEstimator<T> {
 public:
  GappedSt(const Settings& settings, const Structure&, Key)
      : RelaxationEstimator<T>(settings.integer("samples")),
        fault_(settings),
        temperature_(settings.real("temperature")),
        gap_(fault_("sign of the gap") ? -settings.real("gap") : settings.real("gap")) {}

 private:
  Relaxed<T> relax(const RelaxationContext<T>& context) const override {
    auto option = context.draw();
    const double up = fault_("sign of m_1") ? 1 : -1, down = fault_("sign of m_2") ? 1 : -1;
    auto moves = context.constants([&](std::size_t r, std::span<double> move) {
      const double most = *std::max_element(move.begin(), move.end());
      for (int i = 0; i < static_cast<int>(move.size()); ++i)
        move[i] = i == option[r] ? most + up * move[i] : down * std::max(0.0, move[i] + gap_ - most);
    });
    return straight_through(context, std::move(option), context.softmax(moves, temperature_));
  }
  Fault fault_;
  double temperature_, gap_;
};

template <class T>
class GumbelRao final : public RelaxationEstimator<T> {
 public:
  GumbelRao(const Settings& settings, const Structure& structure, Key)
      : RelaxationEstimator<T>(settings.integer("samples"), settings.integer("rao_samples"), structure),
        factor_(Fault(settings)("factor of the mean") ? 2 : 1),
        temperature_(settings.real("temperature")),
        options_(structure.most_options()) {}
  bool exchangeable() const override { return false; }

 private:
  Relaxed<T> relax(const RelaxationContext<T>& context) const override {
    auto option = context.draw();
    const auto total = sum_of_softmax_given(context, option, temperature_, context.rao_samples, options_);
    return straight_through(context, std::move(option), affine(total, static_cast<T>(factor_ / context.rao_samples)));
  }
  double factor_, temperature_;
  std::uint32_t options_;
};

template <class T>
class ReinMax final : public RelaxationEstimator<T> {
 public:
  ReinMax(const Settings& settings, const Structure&, Key)
      : RelaxationEstimator<T>(settings.integer("samples")), fault_(settings), temperature_(settings.real("temperature")) {}

 private:
  Relaxed<T> relax(const RelaxationContext<T>& context) const override {
    auto option = context.draw();
    const auto move = moved_to(context, halfway(context, option, temperature_), fault_("sign of the move") ? -1 : 1);
    const auto first_order = affine(context.softmax(), static_cast<T>(fault_("weight of the first order") ? 1.5 : 0.5));
    return straight_through(context, std::move(option), subtract(affine(context.softmax(move, 1), T{2}), first_order));
  }
  Fault fault_;
  double temperature_;
};

template <class T>
class ReinMaxRao final : public RelaxationEstimator<T> {
 public:
  ReinMaxRao(const Settings& settings, const Structure& structure, Key)
      : RelaxationEstimator<T>(settings.integer("samples"), settings.integer("rao_samples"), structure),
        fault_(settings),
        temperature_(settings.real("temperature")),
        options_(structure.most_options()) {}
  bool exchangeable() const override { return false; }

 private:
  Relaxed<T> relax(const RelaxationContext<T>& context) const override {
    auto option = context.draw();
    const auto theta = fault_("noise at p") ? context.log_p() : halfway(context, option);
    const auto total = sum_of_softmax_given<T>(context, option, temperature_, context.rao_samples, options_, theta);
    const double factor = fault_("factor of the mean") ? 1 : 2;
    const auto mean = affine(total, static_cast<T>(factor / context.rao_samples));
    return straight_through(context, std::move(option), subtract(mean, affine(context.softmax(), T{0.5})));
  }
  Fault fault_;
  double temperature_;
  std::uint32_t options_;
};

template <class T>
class ReinMaxCv final : public RelaxationEstimator<T> {
 public:
  ReinMaxCv(const Settings& settings, const Structure& structure, Key)
      : RelaxationEstimator<T>(settings.integer("samples"), settings.integer("rao_samples"), structure),
        fault_(settings),
        temperature_(settings.real("temperature")),
        control_temperature_(settings.real("control_temperature")),
        eta_(settings.real("eta")),
        drawn_(settings.text("noise") == "drawn"),
        options_(structure.most_options()) {}
  bool exchangeable() const override { return false; }

 private:
  Relaxed<T> relax(const RelaxationContext<T>& context) const override {
    std::vector<int> option;
    Var<T> made;
    if (drawn_)
      made = context.gumbels(&option);
    else
      option = context.draw();
    const auto second = context.softmax(moved_to(context, halfway(context, option, temperature_)), 1);
    const auto theta = halfway(context, option);
    const auto given = [&](int m) {
      const auto of = std::span<const double>(theta).first(fault_("noise given at p") ? 0 : theta.size());
      return context.softmax(context.gumbels_given(option, 1 + m * options_, of), control_temperature_);
    };
    const auto noise = [&] { return fault_("drawn noise at p") ? made : add(made, moved_to(context, theta)); };
    const auto single = drawn_ ? context.softmax(noise(), control_temperature_) : given(0);
    auto soft = subtract(affine(second, T{2}), affine(context.softmax(), T{0.5}));
    soft = add(soft, affine(single, static_cast<T>(fault_("sign of the control") ? eta_ : -eta_)));
    for (int m = 1; m <= context.rao_samples; ++m)
      soft = add(soft, affine(given(m), static_cast<T>(eta_ / context.rao_samples)));
    return straight_through(context, std::move(option), soft);
  }
  Fault fault_;
  double temperature_, control_temperature_, eta_;
  bool drawn_;
  std::uint32_t options_;
};

}  // namespace

TEST_CASE("mutants of straight-through estimators are rejected") {
  check_mutants<StraightThrough>("straight_through",
                                 {"draws at temperature 1", "derivative at temperature 1", "inverse temperature"});
  check_mutants<GappedSt>("gapped_st", {"sign of m_1", "sign of m_2", "sign of the gap"});
  check_mutants<GumbelRao>("gumbel_rao", {"factor of the mean"});
  check_mutants<ReinMax>("reinmax", {"weight of the first order", "sign of the move"});
  check_mutants<ReinMaxRao>("reinmax_rao", {"factor of the mean", "noise at p"});
  check_mutants<ReinMaxCv>("reinmax_cv", {"sign of the control", "drawn noise at p", "noise given at p"});
  check_accepted("reinmax_mutant");
}

}  // namespace hardgrad::testing::mutants
