// Mutants of estimators with coupled samples.
#include <doctest/doctest.h>

#include <algorithm>

#include "core/estimator/coupling/antithetic_bits.hpp"
#include "core/estimator/coupling/split_coupling.hpp"
#include "tests/contract/mutants/mutant.hpp"

namespace hardgrad::testing::mutants {
namespace {

template <class T>
class Arm final : public CoupledEstimator<T> {
 public:
  Arm(const Settings& settings, const Structure&, Key)
      : CoupledEstimator<T>(settings.integer("samples") / 2, 2, 1, read<SamplesAndCredit<>>(settings).credit),
        fault_(settings) {}

 private:
  void draw(Coupling& coupling, Randomness& random, Draw where) const override {
    const auto bits = antithetic_bits(coupling.p[0], coupling.p[1], random, where);
    std::copy(bits.begin(), bits.end(), coupling.option.begin());
    const double from_end = std::min(coupling.p[0], coupling.p[1]), centre = fault_("noise of equal bits off centre") ? -1 : 1;
    ++where.index;
    const double v = random.uniform(where, {.polynomial = true});
    if (bits[0] == bits[1])
      coupling.kept[0] = (0.5 - from_end) * (2 * v - centre);
    else
      coupling.kept[0] = bits[0] ? from_end * v - 0.5 : 0.5 - from_end * v;
  }
  void gradient(const Coupling& coupling, std::span<const double> f, std::span<double> logits) const override {
    logits[1] = (f[1] - f[0]) * coupling.kept[0];
    logits[0] = -logits[1];
  }
  Fault fault_;
};

template <class T>
class DisArmIw final : public SplitCoupling<T> {
 public:
  DisArmIw(const Settings& settings, const Structure&, Key)
      : SplitCoupling<T>(settings.integer("samples"), read<SamplesAndCredit<>>(settings).credit), fault_(settings) {}

 private:
  std::vector<int> order(std::span<const double> p) const override {
    auto options = SplitCoupling<T>::order(p);
    const double sign = fault_("descending order") ? -1 : 1;
    std::stable_sort(options.begin(), options.end(), [&](int a, int b) { return sign * p[a] < sign * p[b]; });
    return options;
  }
  std::size_t split(std::size_t from, std::size_t) const override { return from + 1; }

  void gradient(const Coupling& coupling, std::span<const double> f, std::span<double> logits) const override {
    const int z[] = {coupling.option[0], coupling.option[1]};
    if (z[0] == z[1]) return;
    const auto options = order(coupling.p);
    std::vector<double> left(options.size() + 1);
    for (std::size_t l = options.size(); l-- > 0;) left[l] = left[l + 1] + coupling.p[options[l]];
    double together = 1;
    std::size_t m = 0;
    for (; options[m] != z[0] && options[m] != z[1]; ++m) together *= 1 - 2 * coupling.p[options[m]] / left[m];
    logits[z[0]] = (f[0] - f[1]) * left[m] * std::max(coupling.p[options[m]], left[m + 1]) / together / 2;
    logits[z[1]] = -logits[z[0]];
  }
  Fault fault_;
};

}  // namespace

TEST_CASE("mutants of estimators with coupled samples are rejected") {
  check_mutants<Arm>("arm", {"noise of equal bits off centre"});
  check_mutants<DisArmIw>("disarm_iw", {"descending order"});
}

}  // namespace hardgrad::testing::mutants
