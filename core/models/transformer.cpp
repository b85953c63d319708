// A causal Transformer whose heads read all keys softly, one key, or a subset of k keys.
//
// Tokens x_1..x_T, labels y_t at some of them. H = width, M = heads of C = H / M numbers. A layer makes D = M choices at each
// token, or, with share=true, D = 1.
//   h_t   = E[x_t] + P_t                                     P learned, or sinusoidal: sin(t / 10000^(2 i / H)), cos(..)
//   layer l = 1..L, for each token t in the order of the tokens:
//   u_t   = LN(h_t)
//   q_t, k_t, v_t = W_q u_t, W_k u_t, W_v u_t                head m has its C numbers of each. places=rotary: no P; q_t and k_t
//                                                            are turned by the angles of t (transformer/layers.hpp)
//   s^m_tj = q^m_t . k^m_j / sqrt(C), j <= t
//   S^d_t ~ k of the t keys with the logits e^d_t, by `law` (choice/subsets.hpp); k = 1: one key, by the softmax of e^d_t. If
//           there are k or fewer, all are read. law=top: no choice is drawn, S are the k keys with the largest logits.
//   scorer=heads:   e^m = s^m; share=true: their mean over m
//   scorer=indexer: e^d_tj = (J C_I)^(-1/2) sum_i w^di_t relu(q^di_t . k_j), i = 1..J, with vectors q, k of C_I numbers and
//                   numbers w that are linear in u_t, u_j, u_t; rotary turns q and k
//   a^m   = softmax of s^m over S^m, or with within=equal 1 / k each; picks=0: the softmax of s^m over all keys, no choice.
//           Relaxed weights b in place of S: a_j = b_j exp(s_j) / sum_i b_i exp(s_i), or with within=equal or k = 1 b_j / k.
//   h_t   = h_t + W_o [sum_j a^m_j v^m_j]_m + b_o;  h_t = h_t + W_2 relu(W_1 LN(h_t) + b_1) + b_2
//   loss  = - sum_t log softmax(W LN(h^L_t) + b)[y_t] over the tokens with a label; nothing after the last of them is computed
//
// imitation=c adds c times the sum over l and t (and d) of KL(p_t || softmax(e_t)), p_t the mean of the heads' softmax(s^m_t)
// (share=false: each head's own): the dense warm-up of DeepSeek-AI 2025; over=picked: both over S_t alone, their sparse training.
// p is a constant there, and the indexer reads u without its gradient. With scorer=indexer or law=top, and weights that do not
// depend on s (k = 1 or within=equal), W_q and W_k have no other gradient; with law=top
// the indexer has none.
//
// A top choice at a token without a label has one option: nothing depends on it. layers=1: choices are factorised, by token.
// Keys and values of a layer depend on choices of the layers below at their token and before: so do later costs and choices.
//
// Vaswani et al. 2017, Attention is all you need (eq. 1, 2; sec. 3.2.2, 3.5), with normalisation before each part and after the
// last layer. Places that turn queries and keys: Su et al. 2021, RoFormer. The indexer: DeepSeek-AI 2025, DeepSeek-V3.2-Exp, eq. 1
// and 2, scaled as in their inference/model.py. Departures: they normalise k, turn a part of the numbers, and derive q from a
// compressed u.
//
// Parameters: embedding.weight [V, H]; places.weight [T, H] (learned); for l = 1..L: layer<l>.attention.{norm.{gain,bias} [H],
//   {query,key,value}.weight [H, H], output.{weight [H, H], bias [H]}}, layer<l>.forward.{norm.{gain,bias} [H], inner.{weight
//   [F, H], bias [F]}, outer.{weight [H, F], bias [H]}} (inner=F > 0), index.layer<l>.{query.weight [D J C_I, H], key.weight
//   [C_I, H], gain.weight [D J, H]}; norm.{gain,bias} [H]; output.{weight [A, H], bias [A]}.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "core/autodiff/attention.hpp"
#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/rearrange.hpp"
#include "core/autodiff/reduce.hpp"
#include "core/autodiff/softmax.hpp"
#include "core/models/parts/fields.hpp"
#include "core/models/parts/unrolled.hpp"
#include "core/models/transformer/layers.hpp"

namespace hardgrad::models::transformer {
namespace {

/// The tokens and labels of sequences. The batch must outlive the object.
///
/// Fields: integers "token" [B, T], "label" [B, T], -1: none.
class Given {
 public:
  explicit Given(const Batch& batch) : token_(batch.ints("token")), label_(batch.ints("label")) {}
  std::size_t positions() const { return extent(token_, 1); }
  const std::vector<int>& tokens() const { return token_.storage(); }
  int label(int b, int t) const { return label_(b, t); }
  /// Up to the last label.
  int steps(int b) const {
    int steps = static_cast<int>(positions());
    while (steps > 0 && label(b, steps - 1) < 0) --steps;
    return steps;
  }
  int steps() const {
    int most = 0;
    for (std::size_t b = 0; b < extent(token_, 0); ++b) most = std::max(most, steps(static_cast<int>(b)));
    return most;
  }

 private:
  const Array<int>&token_, &label_;
};

template <class T>
class Transformer final : public Model<T>, public StopsGradients {
 public:
  Transformer(const Config& config, const Blueprint& b) : sizes_(config, b.dimensions) {
    auto& set = this->parameters_;
    embedding_ = {set, "embedding", sizes_.tokens, sizes_.width, b.init};
    if (sizes_.places == Places::learned) places_ = {set, "places", sizes_.positions, sizes_.width, b.init};
    for (int l = 1; l <= sizes_.layers; ++l) layers_.emplace_back(set, fmt::format("layer{}", l), sizes_, b.init);
    norm_ = LayerNorm<T>(set, "norm", sizes_.width);
    output_ = {set, "output", sizes_.width, sizes_.labels, b.init};
    structure_.no_posterior = "its keys are chosen by the tokens so far, which do not see the label";
    structure_.no_likelihood = sizes_.imitation > 0 ? "imitation above 0" : "";
    if (sizes_.imitation > 0) stopped = "imitation: dense attention and the indexer's input have no derivative in it";
    for (int l = 1; sizes_.asks && l <= sizes_.layers; ++l)
      structure_.sites.push_back({.name = sizes_.layers == 1 ? "key" : fmt::format("key{}", l),
                                  .options = static_cast<int>(sizes_.positions),
                                  .subset_size = sizes_.picks,
                                  .times = static_cast<int>(sizes_.positions),
                                  .state_width = static_cast<int>(sizes_.width),
                                  .scope = l == sizes_.layers ? DependenceScope::own_costs : DependenceScope::later_choices,
                                  .kind = sizes_.picks > 1 ? SiteKind::subsets : SiteKind::categorical,
                                  .columns = sizes_.choices});
  }

  const Structure& structure() const override { return structure_; }
  /// All sets of the choices of a site, whose numbers differ by question, as one choice, unless they are too many.
  typename Model<T>::SiteExtent site_extent(const Batch& batch, std::size_t site, int example) const override {
    const Given given(batch);
    double sets = 1;
    for (int t = 0; t < given.steps(example); ++t)
      if (!top(site) || given.label(example, t) >= 0) sets *= std::pow(sizes_.answers(t + 1), sizes_.choices);
    std::vector<int> options(sizes_.choices, 1);
    if (sets < 1e9)
      options[0] = static_cast<int>(std::round(sets));
    else
      options.assign(sizes_.choices, given.steps(example));
    return {options, sets < 1e9 ? 1 : given.steps(example), sets < 1e9 ? 1 : 0};
  }
  void run(const Batch& batch, Episode<T>& episode) const override;

 private:
  bool top(std::size_t layer) const { return static_cast<int>(layer) + 1 == sizes_.layers; }
  /// Every token before it reads.
  struct Start {
    Var<T> h;
    Token<T> token;  ///< of the first layer
  };
  const Start& start(Tape<T>& tape, const Batch& data, const Given& given) const;
  /// h^0 [B T, H]
  Var<T> embedded(Tape<T>& tape, const Given& given, const std::vector<int>& place) const;
  /// Adds the cost of an indexer with these logits [N D, keys] beside heads with these scores [N M, keys].
  void imitate(const States<T>& states, Var<T> scores, Var<T> logits) const;
  /// log p [N D, keys] of the heads' attention, for each choice, as a constant.
  Var<T> attention(Var<T> scores) const;
  /// The entries of x [N M or N D, keys] at the chosen keys [N D k] -> [.., min(k, keys)].
  Var<T> picked_of(Var<T> x, const std::vector<int>& option) const;
  /// The chosen keys [N D k] without a draw.
  std::vector<int> largest_of(Var<T> logits) const;
  /// [N', H] the values that the states read after their choice, of all heads.
  Var<T> read_all(const Past<T>& past, Var<T> scores) const;
  Var<T> read_chosen(const Past<T>& past, Var<T> scores, const std::vector<int>& parent, const std::vector<int>& option) const;
  Var<T> read_mixture(const Past<T>& past, Var<T> scores, const std::vector<int>& parent, Var<T> weights) const;

  Sizes sizes_;
  Structure structure_;
  Embedding<T> embedding_, places_;
  std::vector<Layer<T>> layers_;
  LayerNorm<T> norm_;
  Linear<T> output_;
};

template <class T>
void Transformer<T>::run(const Batch& batch, Episode<T>& episode) const {
  auto& tape = episode.tape();
  const Distinct distinct(batch);
  const Given given(distinct.batch());
  const int steps = given.steps(), positions = static_cast<int>(given.positions());
  if (given.positions() > sizes_.positions)
    throw UsageError(fmt::format(
        "transformer: a sequence has {} tokens, but the network has {} positions: make it for a task with longer ones",
        positions, sizes_.positions));
  const Start& begin = start(tape, distinct.batch(), given);
  std::vector<Past<T>> past(layers_.size(), Past<T>(sizes_));
  past[0].add(begin.token);
  std::vector<Items> items;  // of each step
  for (int t = 0; t < steps; ++t) items.emplace_back(distinct.size() * sizes_.choices, t + 1);
  const auto have = [&](int t) { return [&given, t](int b) { return given.steps(b) > t; }; };
  const bool apart = layers_.size() == 1;  // nothing later reads a choice

  Unrolled<T> outputs(episode);
  States<T> states = States<T>(episode, distinct).only(have(0));
  for (int t = 0; t < steps; ++t) {
    const auto rows = states.each([&](int b) { return b * positions + t; });
    Var<T> h = gather_rows(begin.h, std::span<const int>(rows));
    std::vector<std::vector<int>> so_far;
    for (int j = 0; j <= t; ++j) so_far.push_back(states.each([&](int b) { return b * positions + j; }));
    past[0].set(std::move(so_far));
    for (std::size_t l = 0; l < layers_.size(); ++l) {
      Token<T> token;
      if (l == 0) {
        token = begin.token.at(rows);
      } else {
        token = layers_[l].token(h, std::vector<int>(states.size(), t));
        auto own = range(states.size());
        const int first = past[l].add(token);
        for (int& row : own) row += first;
        past[l].grow(std::move(own));
      }
      const auto scores = past[l].scores(token.query);  // s
      Var<T> logits;                                    // e
      if (sizes_.scorer == Scorer::indexer)
        logits = past[l].index_scores(token);
      else if (sizes_.choices == sizes_.heads)
        logits = scores;
      else
        logits = affine(Var<T>(sum_of_rows(scores, range(scores.rows()), sizes_.heads)), T{1} / static_cast<T>(sizes_.heads));
      if (sizes_.imitation > 0 && sizes_.over == Over::all) imitate(states, scores, logits);

      Var<T> read;
      std::optional<States<T>> i;
      if (!sizes_.asks) {
        i = states.next_step();
        if (sizes_.picks == 0) {
          read = read_all(past[l], scores);
        } else {
          const auto option = largest_of(logits);
          if (sizes_.over == Over::picked) imitate(states, picked_of(scores, option), picked_of(logits, option));
          read = read_chosen(past[l], scores, range(states.size()), option);
        }
      } else {
        ItemSite<T> site{.name = structure_.sites[l].name,
                         .logits = logits,
                         .items = items[t],
                         .state = token.u,
                         .columns = sizes_.choices,
                         .subset_size = sizes_.picks,
                         .law = sizes_.distribution()};
        if (top(l))
          for (int b : states.example())
            site.options.insert(site.options.end(), sizes_.choices, given.label(b, t) >= 0 ? t + 1 : 1);
        i = states.choose(site);
        const auto& parent = i->histories().parent;
        read = i->hard() ? read_chosen(past[l], scores, parent, i->options())
                         : read_mixture(past[l], scores, parent, i->weights());
      }
      h = layers_[l].after(i->after(h), read);
      for (std::size_t deep = 1; !apart && deep < layers_.size(); ++deep) past[deep].move(i->histories().parent);
      states = std::move(*i);
    }
    const auto labelled = states.next_step().only([&](int b) { return given.label(b, t) >= 0; });
    if (labelled.size() > 0) outputs.add_after(t, norm_(Var<T>(labelled.after(h))), labelled);
    if (t + 1 == steps) break;
    states = (apart ? States<T>(episode, distinct) : states.next_step()).only(have(t + 1));
    for (std::size_t deep = 1; deep < layers_.size(); ++deep) past[deep].move(states.histories().parent);
  }
  if (!outputs.empty())
    outputs.classify(outputs.state(), output_, outputs.each([&](int b, int t) { return given.label(b, t); }));
}

template <class T>
auto Transformer<T>::start(Tape<T>& tape, const Batch& data, const Given& given) const -> const Start& {
  return shared_for<Start>(tape, this, data, {"token"}, [&] {
    std::vector<int> place(given.tokens().size());
    for (std::size_t i = 0; i < place.size(); ++i) place[i] = static_cast<int>(i % given.positions());
    const auto h = embedded(tape, given, place);
    return Start{h, layers_[0].token(h, place)};
  });
}

template <class T>
Var<T> Transformer<T>::embedded(Tape<T>& tape, const Given& given, const std::vector<int>& place) const {
  const Sum<T> words(tape.parameter(*embedding_.weight), std::span<const int>(given.tokens()));
  if (sizes_.places == Places::rotary) return words;
  if (sizes_.places == Places::learned) return words + Sum<T>(tape.parameter(*places_.weight), std::span<const int>(place));
  const auto waves = tape.constant(place.size(), sizes_.width);
  for (std::size_t i = 0; i < place.size(); ++i)
    for (std::size_t j = 0; j < sizes_.width; ++j) {
      const double by = angle(place[i], j / 2, sizes_.width);
      tape.mutable_value(waves)(i, j) = static_cast<T>(j % 2 == 0 ? std::sin(by) : std::cos(by));
    }
  return words + Sum<T>(waves);
}

template <class T>
void Transformer<T>::imitate(const States<T>& states, Var<T> scores, Var<T> logits) const {
  const auto q = log_softmax(logits, std::vector<int>(logits.rows(), static_cast<int>(logits.cols())));
  const auto divergence = row_sums(reshape(kl_divergence(attention(scores), q), sizes_.choices));
  states.cost(affine(divergence, static_cast<T>(sizes_.imitation)));
}

template <class T>
Var<T> Transformer<T>::attention(Var<T> scores) const {
  auto& tape = *scores.tape;
  const auto log_p = log_softmax(tape.detach(scores), std::vector<int>(scores.rows(), static_cast<int>(scores.cols())));
  if (sizes_.choices == sizes_.heads) return log_p;
  const auto M = static_cast<std::size_t>(sizes_.heads);
  const Var<T> total = sum_of_rows(probabilities(log_p), range(scores.rows()), M);
  return log(affine(total, T{1} / static_cast<T>(M)));
}

template <class T>
Var<T> Transformer<T>::picked_of(Var<T> x, const std::vector<int>& option) const {
  const std::size_t k = static_cast<std::size_t>(sizes_.picks), count = std::min(k, x.cols()), choices = option.size() / k;
  std::vector<int> row, column;
  for (std::size_t r = 0; r < x.rows(); ++r)
    for (std::size_t i = 0; i < count; ++i) {
      row.push_back(static_cast<int>(r));
      column.push_back(option[r * choices / x.rows() * k + i]);
    }
  return reshape(pick(x, std::span<const int>(row), std::span<const int>(column)), count);
}

template <class T>
std::vector<int> Transformer<T>::largest_of(Var<T> logits) const {
  const auto x = logits.value();
  const auto k = static_cast<std::size_t>(sizes_.picks), count = std::min(k, x.cols);
  std::vector<int> option(x.rows * k, -1), order(x.cols);
  for (std::size_t r = 0; r < x.rows; ++r) {
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int i, int j) { return x(r, i) > x(r, j); });
    std::sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count));
    std::copy_n(order.begin(), count, option.begin() + static_cast<std::ptrdiff_t>(r * k));
  }
  return option;
}

template <class T>
Var<T> Transformer<T>::read_all(const Past<T>& past, Var<T> scores) const {
  const auto a = probabilities(log_softmax(scores, std::vector<int>(scores.rows(), past.keys())));
  const auto read = mix(a, past.values(past.all()), std::span<const int>(range(a.rows())), Items(a.rows(), a.cols()));
  return reshape(read, sizes_.width);
}

template <class T>
Var<T> Transformer<T>::read_chosen(const Past<T>& past, Var<T> scores, const std::vector<int>& parent,
                                   const std::vector<int>& option) const {
  const auto M = static_cast<std::size_t>(sizes_.heads), D = static_cast<std::size_t>(sizes_.choices),
             k = static_cast<std::size_t>(std::max(sizes_.picks, 1)),
             count = std::min(k, static_cast<std::size_t>(past.keys()));
  const std::size_t heads = parent.size() * M;
  std::vector<int> value, row, column, chosen;  // [N' M count], [N' M] chosen keys
  for (std::size_t n = 0; n < parent.size(); ++n)
    for (std::size_t m = 0; m < M; ++m) {
      chosen.push_back(0);
      for (std::size_t r = 0; r < count; ++r) {
        const int j = option[(n * D + (D == 1 ? 0 : m)) * k + r];
        value.push_back(j < 0 ? -1 : past.head(parent[n], j, m));
        row.push_back(static_cast<int>(parent[n] * M + m));
        column.push_back(std::max(j, 0));
        chosen.back() += j >= 0;
      }
    }
  auto values = past.values(value);
  if (count > 1) {
    if (sizes_.within == Within::softmax) {
      const auto s = reshape(pick(scores, std::span<const int>(row), std::span<const int>(column)), count);
      values = scale_rows(values, reshape(probabilities(log_softmax(s, chosen)), 1));
    }
    values = sum_of_rows(values, range(heads * count), count);
    if (sizes_.within == Within::equal) values = affine(values, T{1} / static_cast<T>(count));
  }
  return reshape(values, sizes_.width);
}

template <class T>
Var<T> Transformer<T>::read_mixture(const Past<T>& past, Var<T> scores, const std::vector<int>& parent, Var<T> weights) const {
  const auto M = static_cast<std::size_t>(sizes_.heads), D = static_cast<std::size_t>(sizes_.choices);
  const std::size_t keys = static_cast<std::size_t>(past.keys()), N = parent.size();
  std::vector<int> of_choice, value;
  for (std::size_t n = 0; n < N; ++n)
    for (std::size_t m = 0; m < M; ++m) {
      of_choice.push_back(static_cast<int>(n * D + (D == 1 ? 0 : m)));
      for (std::size_t j = 0; j < keys; ++j) value.push_back(past.head(parent[n], static_cast<int>(j), m));
    }
  Var<T> a = D == M ? weights : gather_rows(weights, std::span<const int>(of_choice));
  if (sizes_.picks == 1 || sizes_.within == Within::equal) {
    a = affine(a, T{1} / static_cast<T>(sizes_.picked_of(past.keys())));
  } else {
    const auto p = probabilities(log_softmax(scores, std::vector<int>(scores.rows(), past.keys())));
    const auto weighed = multiply(a, gather_rows(p, std::span<const int>(each_line(parent, M))));
    // Never 0 / 0, not even where attention to all weighed keys underflows.
    a = divide_rows(weighed, affine(row_sums(weighed), T{1}, std::numeric_limits<T>::min()));
  }
  return reshape(mix(a, past.values(value), std::span<const int>(range(N * M)), Items(N * M, keys)), sizes_.width);
}

const ModelEntry entry = {
    .name = "transformer",
    .summary = "causal Transformer whose heads read one key, a subset of keys, or all softly",
    .paper =
        "Vaswani et al. 2017, Attention is all you need; DeepSeek-AI 2025, DeepSeek-V3.2-Exp (the indexer); Su et al. 2021, "
        "RoFormer (places=rotary)",
    .dependence = "factorised or factorised by step (layers=1), sequential (layers>1), no choice (picks=0, law=top)",
    .kinds = "categorical, subset (picks>1)",
    .parameters = declared<Config>(),
    .needs = {"tokens", "positions", "labels"},
};
HARDGRAD_MODEL(Transformer, entry)

}  // namespace
}  // namespace hardgrad::models::transformer
