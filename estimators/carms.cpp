// carms: categorical-antithetic-REINFORCE-multi-sample: K categories drawn jointly, with weights that correct for the coupling.
//
//   g_logits = 1/(K (K - 1)) sum_{k < l} p_i p_j / p_ij (f_k - f_l) (e_i - e_j),   i = z_k, j = z_l         per choice
//
// with e_i the one-hot vector of option i and p_ij the probability that two of the K categories are i and j. With
// independent categories (p_ij = p_i p_j) it is leave-one-out REINFORCE. Equal categories of a pair contribute nothing.
// Dimitriev & Zhou 2021, CARMS: categorical-antithetic-REINFORCE multi-sample gradient estimator, with the Dirichlet copula and
// inverse distribution functions: z_k is the option whose interval of cumulated probabilities, in some order, contains u_k. One
// of S (S - 1) / 2 orders is drawn for all K. Every two options are first and last in one of the orders, so every p_ij is
// positive. Two options: ARMS if the first is not the more probable one.
// Target: expected loss. Bias: none. Cost: K rows; 1 + (K - 1) T where choices feed later
// ones. The distributions take time S^3.
// Departures: the categories are drawn from their joint distribution, which is discrete and has a closed form, without drawing
// u. Where choices feed later ones, every choice's categories are evaluated given the first member's earlier choices.
#include <fmt/format.h>

#include <algorithm>

#include "core/estimator/coupling/coupled_estimator.hpp"
#include "core/estimator/coupling/dirichlet.hpp"
#include "core/estimator/promises.hpp"

namespace hardgrad::estimators::carms {
namespace {

struct Config {
  int samples = 4;
  Credit credit = Credit::whole;

  void declare(Fields& field) {
    field(samples, "samples", 2, 12, "categories drawn together");
    credit_field(field, credit);
  }
};

constexpr int most_options = 64;

/// One of the S (S - 1) / 2 orders of S options, with the cumulated probabilities along it: `first`, then cyclically from the
/// option after `last`, ending with `last`. Orders are numbered by first < last.
struct Order {
  Order(std::span<const double> p, int first, int last) {
    const int S = static_cast<int>(p.size());
    option.push_back(first);
    for (int step = 1; step <= S; ++step)
      if (const int i = (last + step) % S; i != first) option.push_back(i);
    std::vector<double> ordered;
    for (int i : option) ordered.push_back(p[i]);
    edge = cumulated(ordered);
  }
  std::size_t place(int i) const { return std::find(option.begin(), option.end(), i) - option.begin(); }
  std::vector<int> option;  // [S]
  std::vector<Edge> edge;   // [S + 1]
};
template <class F>
void for_each_order(std::span<const double> p, F visit) {
  for (int last = 1; last < static_cast<int>(p.size()); ++last)
    for (int first = 0; first < last; ++first) visit(Order(p, first, last));
}

template <class T>
class Carms final : public CoupledEstimator<T> {
 public:
  Carms(const Config& config, const Structure&, Key)
      : CoupledEstimator<T>(1, config.samples, 0, config.credit), copula_(config.samples) {}

 private:
  void draw(Coupling& coupling, Randomness& random, Draw where) const override {
    const auto orders = coupling.p.size() * (coupling.p.size() - 1) / 2;
    int number = random.categorical(std::vector<double>(orders, 1.0 / static_cast<double>(orders)), where), last = 1;
    for (; number >= last; ++last) number -= last;
    const Order order(coupling.p, number, last);
    ++where.index;
    copula_.draw_intervals(order.edge, coupling.option, random, where);
    for (int& z : coupling.option) z = order.option[z];
  }
  void gradient(const Coupling& coupling, std::span<const double> f, std::span<double> logits) const override {
    const auto K = f.size();
    const auto together = pair_law(coupling);
    for (std::size_t k = 0; k < K; ++k)
      for (std::size_t l = k + 1; l < K; ++l) {
        const int i = coupling.option[k], j = coupling.option[l];
        if (i == j) continue;
        const double weight = coupling.p[i] * coupling.p[j] / together[k * K + l];
        const double g = weight * (f[k] - f[l]) / static_cast<double>(K * (K - 1));
        logits[i] += g;
        logits[j] -= g;
      }
  }
  /// [K K] p_ij of the options i, j of members k < l, if they differ.
  std::vector<double> pair_law(const Coupling& coupling) const {
    const auto K = coupling.option.size();
    const double orders = static_cast<double>(coupling.p.size() * (coupling.p.size() - 1)) / 2;
    std::vector<double> law(K * K);
    std::vector<std::size_t> place(K);
    for_each_order(coupling.p, [&](const Order& order) {
      for (std::size_t k = 0; k < K; ++k) place[k] = order.place(coupling.option[k]);
      for (std::size_t k = 0; k < K; ++k)
        for (std::size_t l = k + 1; l < K; ++l)
          law[k * K + l] +=
              copula_.box(order.edge[place[k]], order.edge[place[k] + 1], order.edge[place[l]], order.edge[place[l] + 1]) /
              orders;
    });
    // In the order with i first and j last, both come together at least as often as if independent: a bound against rounding.
    for (std::size_t k = 0; k < K; ++k)
      for (std::size_t l = k + 1; l < K; ++l)
        law[k * K + l] = std::max(law[k * K + l], coupling.p[coupling.option[k]] * coupling.p[coupling.option[l]] / orders);
    return law;
  }

  DirichletCopula copula_;
};

}  // namespace

const EstimatorEntry entry = {
    .name = "carms",
    .summary = "K mutually antithetic categories by a Dirichlet copula, leave-one-out, weighted",
    .paper = "Dimitriev & Zhou 2021, CARMS: categorical-antithetic-REINFORCE multi-sample gradient estimator",
    .target = "expected_loss",
    .unbiased = true,
    .evaluations = "K; 1 + (K - 1) T if sequential",
    .parameters = declared<Config>(),
    .needs = {need::options(most_options, "all of them are drawn in one of S (S - 1) / 2 orders")},
    .promises = {promise::unshifted(), promise::variance(0.5738953)},
};
HARDGRAD_ESTIMATOR(Carms, entry)

}  // namespace hardgrad::estimators::carms
