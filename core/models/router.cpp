// A mixture of experts: a gate picks k of n small networks for each example, and their outputs are added.
//
// Numbers x [d], classes y, experts i = 1..n.
//   e = G x + g                                                   the gate [n]
//   S ~ subsets of k experts with the logits e (choice/subsets.hpp); k = 1: one expert, by the softmax of e
//   E_i(x) = relu(W_i x + w_i)                                    [H]
//   o = sum_{i in S} c_i E_i(x);  relaxed weights b: sum_i b_i c_i E_i(x)
//   gate=probability: c_i = pi_i, the probability that i is picked (for k = 1 the softmax, as published)
//   gate=none:        c_i = 1
//   loss = -log softmax(V o + v)[y] + balance n sum_i P_i pi_i / k,   P_i the mean of pi_i / k over the batch
// Posterior (if asked for): q(S | x, y) has the logits P x + F[y] + p.
//
// Shazeer et al. 2017, Outrageously large neural networks: the sparsely-gated mixture-of-experts layer; Fedus, Zoph & Shazeer
// 2022, Switch transformers (k = 1). Departures: experts are drawn, not those of the largest e; all are computed, once for each
// example, so that any estimator may ask for them.
//
// Balance: over the batch its mean is balance n sum_i P_i^2, least (balance) where all experts are equally probable. It is the mean
// over the drawn experts of Fedus et al.'s balance n sum_i f_i P_i (eq. 4; f_i the share of the picks that go to i, E f_i = P_i),
// and balance times 1 + CV(importance)^2 of Shazeer et al. (eq. 6 and 7). Its gradient is that of both factors, twice Fedus et
// al.'s, who hold f fixed. As it joins the examples of a batch, the exact gradient by example is that of batches of one.
//
// Refused: with balance > 0 targets that need the likelihood of the classes.
//
// The dense straight-through gradient of the gate (Panda et al. 2025, Dense backpropagation improves training for sparse
// mixture-of-experts: few experts forward, all backward) is that of the estimator `simple` with gate=none.
//
// Parameters (H = hidden): gate.{weight [n, d], bias [n]}; for i = 1..n expert.<i>.{weight [H, d], bias [H]};
//   readout.{weight [classes, H], bias [classes]}; posterior.gate.{weight [n, d], bias [n]},
//   posterior.label.weight [classes, n].
#include <fmt/format.h>

#include "core/autodiff/cross_entropy.hpp"
#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/product.hpp"
#include "core/autodiff/rearrange.hpp"
#include "core/autodiff/softmax.hpp"
#include "core/autodiff/subsets.hpp"
#include "core/models/model.hpp"
#include "core/models/parts/states.hpp"
#include "core/nn/layers.hpp"

namespace hardgrad::models::router {
namespace {

enum class Gate { probability, none };
constexpr Named<Gate> gates[] = {{"probability", Gate::probability}, {"none", Gate::none}};

struct Config {
  int experts = 4, subset_size = 1, hidden = 8;
  double balance = 0;
  Gate gate = Gate::probability;

  void declare(Fields& field) {
    field(experts, "experts", 1, 1000, "experts n");
    field(subset_size, "picks", 1, 1000, "experts k that answer");
    field(hidden, "hidden", 1, 4096, "hidden units of an expert");
    field(balance, "balance", 0, 1e6, "weight of the load-balancing loss");
    field(gate, "gate", gates, "weigh an expert's output with its probability, or not");
  }
};

template <class T>
class Router final : public Model<T> {
 public:
  Router(const Config& config, const Blueprint& b)
      : subset_size_(config.subset_size), experts_(config.experts), balance_(config.balance), weighing_(config.gate) {
    if (subset_size_ > experts_)
      throw UsageError(
          fmt::format("router: picks={} is more than experts={}: pick at most all of them", subset_size_, experts_));
    auto& set = this->parameters_;
    const std::size_t d = static_cast<std::size_t>(b.dimensions.at("features")) * b.dimensions.at("feature_width"),
                      n = experts_, H = config.hidden, C = b.dimensions.at("labels");
    gate_ = {set, "gate", d, n, b.init};
    for (int i = 1; i <= experts_; ++i) expert_.emplace_back(set, fmt::format("expert.{}", i), d, H, b.init);
    readout_ = {set, "readout", H, C, b.init};
    structure_ = {.sites = {{.name = "expert",
                             .options = experts_,
                             .subset_size = subset_size_,
                             .state_width = static_cast<int>(d),
                             .scope = DependenceScope::own_costs,
                             .kind = subset_size_ > 1 ? SiteKind::subsets : SiteKind::categorical}},
                  .posterior = b.posterior,
                  .joins = balance_ > 0 ? "the balance of router" : "",
                  .no_likelihood = balance_ > 0 ? "balance above 0" : ""};
    if (!b.posterior) return;
    posterior_gate_ = {set, "posterior.gate", d, n, b.init};
    posterior_label_ = {set, "posterior.label", C, n, b.init};
  }

  const Structure& structure() const override { return structure_; }

  void run(const Batch& batch, Episode<T>& episode) const override {
    auto& tape = episode.tape();
    const Distinct distinct(batch);
    const auto& label = distinct.batch().ints("label").storage();
    const auto x = constant_of(tape, distinct.batch(), "x");
    const Items items(distinct.size(), experts_);
    const auto e = gate_(x);
    States<T> states(episode, distinct);
    ItemSite<T> site{.name = "expert", .logits = e, .items = items, .state = x, .subset_size = subset_size_};
    if (structure_.posterior)
      site.posterior = [&] { return add(posterior_gate_(x), posterior_label_(tape, std::span<const int>(label))); };
    const auto pi = weighing_ == Gate::probability || balance_ > 0 ? picked(e) : Var<T>{};
    if (balance_ > 0) episode.cost(episode.root(), load(gather_rows(pi, std::span<const int>(distinct.index))));
    const auto S = states.choose(site);
    const Var<T> o = S.read(answers(x, pi));  // sum_{i in S} c_i E_i(x)
    S.cost(linear_cross_entropy(o, tape.parameter(*readout_.weight), tape.parameter(*readout_.bias),
                                S.each([&](int b) { return label[b]; })));
  }

 private:
  /// pi [B, n]
  Var<T> picked(Var<T> e) const {
    const std::vector<int> options(e.rows(), experts_);
    const std::span<const int> each(options);
    return subset_size_ > 1 ? subset_marginals(e, each, subset_size_) : probabilities(log_softmax(e, each));
  }
  /// balance n sum_i P_i pi_i / k of each row of pi [R, n] -> [R, 1].
  Var<T> load(Var<T> pi) const {
    const auto share = affine(pi, static_cast<T>(1.0 / subset_size_));
    const auto mean = matmul(pi.tape->constant(1, pi.rows(), static_cast<T>(1.0 / static_cast<double>(pi.rows()))), share);
    return affine(linear(share, mean), static_cast<T>(balance_ * experts_));
  }
  /// c_i E_i(x) of all experts of an example, one after the other -> [B n, H].
  Var<T> answers(Var<T> x, Var<T> pi) const {
    const std::size_t B = x.rows(), n = experts_;
    std::vector<Var<T>> of_expert;
    for (std::size_t i = 0; i < n; ++i) of_expert.push_back(relu(expert_[i](x)));
    std::vector<int> by_example(B * n);
    for (std::size_t r = 0; r < by_example.size(); ++r) by_example[r] = static_cast<int>(r % n * B + r / n);
    const auto all = gather_rows(std::span<const Var<T>>(of_expert), std::span<const int>(by_example));
    return weighing_ == Gate::probability ? scale_rows(all, reshape(pi, 1)) : all;
  }

  int subset_size_, experts_;
  double balance_;
  Gate weighing_;
  Linear<T> gate_, readout_, posterior_gate_;
  std::vector<Linear<T>> expert_;
  Embedding<T> posterior_label_;
  Structure structure_;
};

const ModelEntry entry = {
    .name = "router",
    .summary = "mixture of experts: a gate picks k of n small networks for an example",
    .paper = "Shazeer et al. 2017, Outrageously large neural networks; Fedus, Zoph & Shazeer 2022, Switch transformers",
    .dependence = "one choice",
    .kinds = "categorical, subset (picks>1)",
    .parameters = declared<Config>(),
    .needs = {"features", "feature_width", "labels"},
};
HARDGRAD_MODEL(Router, entry)

}  // namespace
}  // namespace hardgrad::models::router
