// A classifier that sees k of an example's n features, and the selector that picks them: instance-wise feature selection.
//
// Features x_1..x_n of g numbers each (of an example with fewer, n is its own number), classes y.
//   maps=own:     e = V_2 relu(V_1 x + c_1) + c_2                 the selector [n]: each feature has weights of its own
//   maps=shared:  e_i = V_2 relu(V_1 x_i + V_0 m + c_1),  m = 1/n sum_i x_i     the same weights for all, as for words
//   S ~ subsets of k features with the logits e, by `law` (choice/subsets.hpp); k = 1: one feature, by the softmax of e
//   share > 0:    k = share n, rounded up, of each example, in place of `subset_size`
//   b_i = 1 for i in S, else 0; relaxed: weights that sum to k. b (.) x: feature i times b_i
//   maps=own:     loss = -log softmax(W_2 relu(W_1 (b (.) x) + w_1) + w_2)[y]   the predictor sees no other feature
//   maps=shared:  loss = -log softmax(W_2 relu(W_1 sum_i b_i x_i + w_1) + w_2)[y]
// Posterior (if asked for): q(S | x, y) has the logits U_2 relu(U_1 x + F[y]) + u_2; maps=shared: U_2 relu(U_1 x_i + F[y]).
//
// Chen, Song, Wainwright & Jordan 2018, Learning to explain (L2X), with the true label in place of the label of the classifier
// to explain; eq. 6 is their bound on the mutual information of the picked features and the label. Their estimator of its
// gradient: gumbel_top_k (with k draws with replacement). On whole features, and with subsets: Xie & Ermon 2019; Niepert et al.
// 2021; Ahmed et al. 2023. A share of the words: Jain, Wiegreffe, Pinter & Wallace 2020, Learning to faithfully rationalize by
// construction, sec. 4. Departure: L2X's selector of words is a convolution; m stands for the other words here.
//
// Parameters (H = hidden; N = n g, with maps=shared g): selector.hidden.{weight [H, N], bias [H]}, selector.{weight [n, H], bias
//   [n]}; predictor.hidden.{weight [H, N], bias [H]}, predictor.{weight [classes, H], bias [classes]};
//   posterior.hidden.weight [H, N], posterior.label.weight [classes, H], posterior.{weight [n, H], bias [n]}.
//   maps=shared: selector.context.weight [H, g]; selector.weight and posterior.weight are [1, H], without a bias.
#include <fmt/format.h>

#include <cmath>

#include "core/autodiff/cross_entropy.hpp"
#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/rearrange.hpp"
#include "core/models/model.hpp"
#include "core/models/parts/fields.hpp"
#include "core/models/parts/means.hpp"
#include "core/models/parts/states.hpp"
#include "core/nn/layers.hpp"

namespace hardgrad::models::selector {
namespace {

enum class Maps { own, shared };
constexpr Named<Maps> all_maps[] = {{"own", Maps::own}, {"shared", Maps::shared}};

struct Config {
  int subset_size = 1;
  double share = 0;
  Maps maps = Maps::own;
  SubsetDistribution law = SubsetDistribution::conditional_poisson;
  std::size_t hidden = 32;

  void declare(Fields& field) {
    field(subset_size, "picks", 1, 10000, "features k that the classifier sees");
    field(share, "share", 0, 1, "share of an example's features that it sees instead; 0: `picks`");
    field(maps, "maps", all_maps, "weights of each feature, or of all, as for words");
    field(law, "law", subset_distributions, "the distribution of the subsets");
    field(hidden, "hidden", 1, 4096, "hidden units of the selector, and of the classifier");
  }
};

template <class T>
class Selector final : public Model<T> {
 public:
  Selector(const Config& config, const Blueprint& b)
      : share_(config.share),
        features_(b.dimensions.at("features")),
        subset_size_(share_ > 0 ? share_of(features_) : config.subset_size),
        shared_(config.maps == Maps::shared),
        law_(config.law),
        width_(b.dimensions.at("feature_width")) {
    if (subset_size_ > features_)
      throw UsageError(fmt::format("selector: picks={} is more than the {} features there are", subset_size_, features_));
    auto& set = this->parameters_;
    const std::size_t n = shared_ ? 1 : features_, numbers = n * width_, H = config.hidden, C = b.dimensions.at("labels");
    selector_hidden_ = {set, "selector.hidden", numbers, H, b.init};
    if (shared_) context_ = {set, "selector.context", width_, H, b.init, false};
    selector_ = {set, "selector", H, n, b.init, !shared_};
    predictor_hidden_ = {set, "predictor.hidden", numbers, H, b.init};
    predictor_ = {set, "predictor", H, C, b.init};
    structure_ = {.sites = {{.name = "feature",
                             .options = features_,
                             .subset_size = subset_size_,
                             .state_width = static_cast<int>(H),
                             .scope = DependenceScope::own_costs,
                             .kind = subset_size_ > 1 ? SiteKind::subsets : SiteKind::categorical,
                             .fewer = share_ > 0}},
                  .posterior = b.posterior};
    if (!b.posterior) return;
    posterior_hidden_ = {set, "posterior.hidden", numbers, H, b.init, false};
    posterior_label_ = {set, "posterior.label", C, H, b.init};
    posterior_ = {set, "posterior", H, n, b.init, !shared_};
  }

  const Structure& structure() const override { return structure_; }
  typename Model<T>::SiteExtent site_extent(const Batch& batch, std::size_t, int example) const override {
    const int n = lengths(batch)[example];
    return {{n}, 1, share_ > 0 ? share_of(n) : subset_size_};
  }

  void run(const Batch& batch, Episode<T>& episode) const override {
    auto& tape = episode.tape();
    const Distinct distinct(batch);
    const auto& label = distinct.batch().ints("label").storage();
    const auto x = constant_of(tape, distinct.batch(), "x");
    const auto length = lengths(distinct.batch());
    const Items items = shared_ ? Items(length) : Items(distinct.size(), features_);
    States<T> states(episode, distinct);
    const auto labels = [&] { return posterior_label_(tape, std::span<const int>(label)); };
    if (!shared_) {
      const auto hidden = relu(selector_hidden_(x));
      const auto S = choose(states, items, length, selector_(hidden), hidden,
                            [&] { return posterior_(relu(add(posterior_hidden_(x), labels()))); });
      const Var<T> each = reshape(Var<T>(S.after(x)), width_);
      const auto seen = reshape(scale_rows(each, reshape(S.weights(), 1)), features_ * width_);  // b (.) x
      return predict(S, predictor_hidden_(seen), label);
    }
    const auto own = own_features(reshape(x, width_), items);  // of all examples, one after the other
    const auto context = context_(means(own, items));
    const auto logits = [&](Var<T> hidden, Var<T> of_example, const Linear<T>& last) {
      const Var<T> both = Sum<T>(hidden) + Sum<T>(of_example, whose(items));
      return by_example(last(relu(both)), items);
    };
    const auto S = choose(states, items, length, logits(selector_hidden_(own), context, selector_), context,
                          [&] { return logits(posterior_hidden_(own), labels(), posterior_); });
    const auto weight = tape.parameter(*predictor_hidden_.weight);
    const Var<T> seen = S.read(linear(own, weight));  // W_1 sum_i b_i x_i
    predict(S, add_row(seen, tape.parameter(*predictor_hidden_.bias)), label);
  }

 private:
  int share_of(int features) const { return static_cast<int>(std::ceil(share_ * features - 1e-9)); }
  /// The features of each example.
  std::vector<int> lengths(const Batch& batch) const {
    if (batch.integers.contains("length")) return batch.ints("length").storage();
    return std::vector<int>(batch.examples(), features_);
  }

  States<T> choose(const States<T>& states, const Items& items, const std::vector<int>& length, Var<T> e, Var<T> state,
                   std::function<Var<T>()> posterior) const {
    ItemSite<T> site{.name = "feature",
                     .logits = e,
                     .items = items,
                     .state = state,
                     .options = length,
                     .subset_size = subset_size_,
                     .law = law_};
    if (share_ > 0)
      for (int n : length) site.subset_size_of.push_back(share_of(n));
    if (structure_.posterior) site.posterior = std::move(posterior);
    return states.choose(site);
  }
  /// The loss of W_2 relu(hidden) + w_2.
  void predict(const States<T>& S, Var<T> hidden, const std::vector<int>& label) const {
    auto& tape = *hidden.tape;
    S.cost(linear_cross_entropy(relu(hidden), tape.parameter(*predictor_.weight), tape.parameter(*predictor_.bias),
                                S.each([&](int b) { return label[b]; })));
  }

  // Of maps=shared: items are the features that there are.
  static std::vector<int> whose(const Items& items) {
    std::vector<int> result;
    for (std::size_t b = 0; b < items.examples(); ++b) result.resize(result.size() + items.count(b), static_cast<int>(b));
    return result;
  }
  /// x [B n, g] -> [items, g]
  Var<T> own_features(Var<T> x, const Items& items) const {
    std::vector<int> at;
    for (std::size_t b = 0; b < items.examples(); ++b)
      for (int i = 0; i < items.count(b); ++i) at.push_back(static_cast<int>(b) * features_ + i);
    return gather_rows(x, std::span<const int>(at));
  }
  /// [items, 1] -> [B, S], 0 where there is none.
  static Var<T> by_example(Var<T> e, const Items& items) {
    std::vector<int> at(items.examples() * items.most(), -1);
    for (std::size_t b = 0; b < items.examples(); ++b)
      for (int i = 0; i < items.count(b); ++i) at[b * items.most() + i] = items.row(b, i);
    return reshape(gather_rows(e, std::span<const int>(at)), items.most());
  }

  double share_;
  int features_, subset_size_;
  bool shared_;
  SubsetDistribution law_;
  std::size_t width_;
  Linear<T> selector_hidden_, context_, selector_, predictor_hidden_, predictor_, posterior_hidden_, posterior_;
  Embedding<T> posterior_label_;
  Structure structure_;
};

const ModelEntry entry = {
    .name = "selector",
    .summary = "classifier that sees k of an example's features, picked for it",
    .paper = "Chen, Song, Wainwright & Jordan 2018, Learning to explain: an information-theoretic perspective",
    .dependence = "one choice",
    .kinds = "categorical, subset (picks>1)",
    .parameters = declared<Config>(),
    .needs = {"features", "feature_width", "labels"},
};
HARDGRAD_MODEL(Selector, entry)

}  // namespace
}  // namespace hardgrad::models::selector
