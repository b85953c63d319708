// A classifier that sees k of an example's n features, and the selector that picks them: instance-wise feature selection.
//
// Features x_1..x_n of g numbers each, classes y.
//   e = V_2 relu(V_1 x + c_1) + c_2                               the selector [n]
//   S ~ subsets of k features with the logits e (choice/subsets.hpp); k = 1: one feature, by the softmax of e
//   b_i = 1 for i in S, else 0; relaxed: weights that sum to k. b (.) x: feature i times b_i
//   loss = -log softmax(W_2 relu(W_1 (b (.) x) + w_1) + w_2)[y]   the predictor sees no other feature
// Posterior (if asked for): q(S | x, y) has the logits U_2 relu(U_1 x + F[y]) + u_2.
//
// Chen, Song, Wainwright & Jordan 2018, Learning to explain (L2X), with the true label in place of the label of the classifier
// to explain; eq. 6 is their bound on the mutual information of the picked features and the label. Their estimator of its
// gradient: gumbel_top_k (with k draws with replacement). On whole features, and with subsets: Xie & Ermon 2019; Niepert et al.
// 2021; Ahmed et al. 2023.
//
// Parameters (H = hidden): selector.hidden.{weight [H, n g], bias [H]}, selector.{weight [n, H], bias [n]};
//   predictor.hidden.{weight [H, n g], bias [H]}, predictor.{weight [classes, H], bias [classes]};
//   posterior.hidden.weight [H, n g], posterior.label.weight [classes, H], posterior.{weight [n, H], bias [n]}.
#include <fmt/format.h>

#include "core/autodiff/cross_entropy.hpp"
#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/rearrange.hpp"
#include "core/models/parts/states.hpp"
#include "core/nn/layers.hpp"

namespace hardgrad::models::selector {
namespace {

template <class T>
class Selector final : public Model<T> {
 public:
  explicit Selector(const Blueprint& b)
      : picks_(b.settings.integer("picks")), features_(b.dimensions.at("features")), width_(b.dimensions.at("feature_width")) {
    if (picks_ > features_)
      throw UsageError(fmt::format("selector: picks={} is more than the {} features there are", picks_, features_));
    auto& set = this->parameters_;
    const std::size_t n = features_, numbers = n * width_, H = b.settings.integer("hidden"), C = b.dimensions.at("labels");
    selector_hidden_ = {set, "selector.hidden", numbers, H, b.init};
    selector_ = {set, "selector", H, n, b.init};
    predictor_hidden_ = {set, "predictor.hidden", numbers, H, b.init};
    predictor_ = {set, "predictor", H, C, b.init};
    structure_ = {.sites = {{.name = "feature",
                             .options = features_,
                             .picks = picks_,
                             .state_width = static_cast<int>(H),
                             .reach = Reach::own_costs,
                             .kind = picks_ > 1 ? SiteKind::subsets : SiteKind::categorical}},
                  .posterior = b.posterior};
    if (!b.posterior) return;
    posterior_hidden_ = {set, "posterior.hidden", numbers, H, b.init, false};
    posterior_label_ = {set, "posterior.label", C, H, b.init};
    posterior_ = {set, "posterior", H, n, b.init};
  }

  const Structure& structure() const override { return structure_; }

  void run(const Batch& batch, Episode<T>& episode) const override {
    auto& tape = episode.tape();
    const Distinct distinct(batch);
    const auto& label = distinct.batch().ints("label").data;
    const auto x = constant_of(tape, distinct.batch(), "x");
    const Items items(distinct.size(), features_);
    States<T> states(episode, distinct);
    const auto hidden = relu(selector_hidden_(x));
    ItemSite<T> site{.name = "feature", .logits = selector_(hidden), .items = items, .state = hidden, .picks = picks_};
    if (structure_.posterior)
      site.posterior = [&] {
        return posterior_(relu(add(posterior_hidden_(x), posterior_label_(tape, std::span<const int>(label)))));
      };
    const auto S = states.choose(site);
    const Var<T> each = reshape(Var<T>(S.after(x)), width_);
    const auto seen = reshape(scale_rows(each, reshape(S.weights(), 1)), features_ * width_);  // b (.) x
    S.cost(linear_cross_entropy(relu(predictor_hidden_(seen)), tape.parameter(*predictor_.weight),
                                tape.parameter(*predictor_.bias), S.each([&](int b) { return label[b]; })));
  }

 private:
  int picks_, features_;
  std::size_t width_;
  Linear<T> selector_hidden_, selector_, predictor_hidden_, predictor_, posterior_hidden_, posterior_;
  Embedding<T> posterior_label_;
  Structure structure_;
};

const ModelEntry entry = {
    .name = "selector",
    .summary = "classifier that sees k of an example's features, picked for it",
    .paper = "Chen, Song, Wainwright & Jordan 2018, Learning to explain: an information-theoretic perspective",
    .dependence = "one choice",
    .kinds = "categorical, subset (picks>1)",
    .parameters = {ParameterInfo::integer("picks", 1, 1, 10000, "features k that the classifier sees"),
                   ParameterInfo::integer("hidden", 32, 1, 4096, "hidden units of the selector, and of the classifier")},
    .needs = {"features", "feature_width", "labels"},
};
HARDGRAD_MODEL(Selector, entry)

}  // namespace
}  // namespace hardgrad::models::selector
