// A classifier of sentence pairs: two convolutions with shared weights, one per sentence, with attention between them.
//
// Tokens x_i [D] of one sentence, y_j of the other (the equations hold in both directions); D = width, w = window. Each block:
//   A_ij = 1 / (1 + |x_i - y_j|)                            the matching matrix, Euclidean distance
//   a_i  = sum_j A_ij P_j                                   attention=bottom, both: the attention feature; P [M, D] is learned
//   f_u  = tanh(W [x_{u-w+1}; a_{u-w+1}; ..; x_u; a_u] + b) wide convolution: u = 0 .. s + w - 2 of a sentence of s tokens,
//                                                           zeros beyond its ends
//   x'_i = (1/w) sum_{u=i}^{i+w-1} f_u                      average pooling; or, attention=top, both, weighted:
//   x'_i = sum_{u=i}^{i+w-1} v_u f_u                        v_u = sum_k 1 / (1 + |f_u - g_k|), g the other sentence's units
// x' are the next block's tokens. At each level (embeddings, then every block) r is the mean of the tokens of the first
// sentence, t that of the second:
//   loss = -log softmax(W_c [r^0; t^0; r^0 t^0; r^1; ..] + b_c)[label]
//
// Hard attention samples one term of each sum; its mean is the equation above:
//   site `partner`  each token chooses one of the other sentence, j_i ~ A_ij / R_i, R_i = sum_j A_ij:   a_i  = R_i P_{j_i}
//   site `unit`     each token chooses one of its window, u_i ~ v_u / V_i, V_i = sum_u v_u:             x'_i = V_i f_{u_i}
// A site has a column for each token of the pair: those of the first sentence, then those of the second. Relaxed weights mix
// the terms. Expected weights give the published network. attention=none has no site (BCNN).
// Posterior (if asked for), the same in every block:
//   q(j_i | label) = softmax_j of s_p . tanh(Q x_i + K y_j + k + F[label])
//   q(u_i | label) = softmax, over the window, of s_u . tanh(U f_u + c + G[label])
// Departures: the paper's r of the last block is the mean of its units f, and its inputs of W_c differ from task to task.
//
// Parameters (V words, M tokens of the longest sentence, C classes, B = layers; I = 2D with attention at the bottom, else D):
//   embedding.weight [V, D], attention.place.weight [M, D] (P), block<k>.{weight [D, w I], bias [D]} (W, b),
//   classifier.{weight [C, 3 D (B + 1)], bias [C]}
//   posterior.partner.query.weight [D, D] (Q), posterior.partner.key.{weight [D, D], bias [D]} (K, k),
//   posterior.partner.label.weight [C, D] (F), posterior.partner.score.weight [1, D] (s_p)
//   posterior.unit.key.{weight [D, D], bias [D]} (U, c), posterior.unit.label.weight [C, D] (G),
//   posterior.unit.score.weight [1, D] (s_u)
#include <fmt/format.h>

#include <cmath>

#include "core/autodiff/attention.hpp"
#include "core/autodiff/product.hpp"
#include "core/autodiff/reduce.hpp"
#include "core/models/parts/answer_sampler.hpp"
#include "core/models/parts/fields.hpp"
#include "core/models/parts/sentence_pairs.hpp"
#include "core/models/parts/states.hpp"

namespace hardgrad::models::sentence_pair {
namespace {

enum class Attention { bottom, top, both, none };
constexpr Named<Attention> attentions[] = {
    {"bottom", Attention::bottom}, {"top", Attention::top}, {"both", Attention::both}, {"none", Attention::none}};

struct Config {
  Attention attention = Attention::bottom;
  int layers = 1, width = 32, window = 3;

  void declare(Fields& field) {
    field(attention, "attention", attentions, "bottom: features of the convolution's input; top: weights of its pooled output");
    field(layers, "layers", 1, 8, "blocks of convolution and pooling");
    field(width, "width", 1, 4096, "width of a token; filters of a block");
    field(window, "window", 1, 16, "tokens per unit of the convolution, and units per pooled token");
  }
};

template <class T>
class SentencePair final : public Model<T>, public AnswerSampler {
 public:
  SentencePair(const Config& config, const Blueprint& b)
      : columns_(b.dimensions.at("first_length") + b.dimensions.at("second_length")),
        width_(config.width),
        window_(config.window) {
    const auto& dimensions = b.dimensions;
    const auto& init = b.init;
    const bool posterior = b.posterior;
    bottom_ = config.attention == Attention::bottom || config.attention == Attention::both;
    top_ = config.attention == Attention::top || config.attention == Attention::both;
    auto& set = this->parameters_;
    const std::size_t D = width_, C = dimensions.at("classes"), w = window_;
    const int layers = config.layers, longest = std::max(dimensions.at("first_length"), dimensions.at("second_length"));
    words_ = {set, "embedding", static_cast<std::size_t>(dimensions.at("vocabulary")), D, init};
    if (bottom_) places_ = {set, "attention.place", static_cast<std::size_t>(longest), D, init};
    for (int k = 1; k <= layers; ++k) blocks_.emplace_back(set, fmt::format("block{}", k), w * (bottom_ ? 2 : 1) * D, D, init);
    classifier_ = {set, "classifier", 3 * D * (layers + 1), C, init};
    if (posterior && bottom_) {
      partner_query_ = {set, "posterior.partner.query", D, D, init, false};
      partner_key_ = {set, "posterior.partner.key", D, D, init};
      partner_label_ = {set, "posterior.partner.label", C, D, init};
      partner_score_ = &uniform_vector(set, "posterior.partner.score.weight", D, init);
    }
    if (posterior && top_) {
      unit_key_ = {set, "posterior.unit.key", D, D, init};
      unit_label_ = {set, "posterior.unit.label", C, D, init};
      unit_score_ = &uniform_vector(set, "posterior.unit.score.weight", D, init);
    }
    const auto scope = layers * (bottom_ + top_) > 1 ? DependenceScope::later_choices : DependenceScope::own_costs;
    const auto site = [&](const char* name, int options) {
      structure_.sites.push_back(
          {.name = name, .options = options, .times = layers, .state_width = 2 * width_, .scope = scope, .columns = columns_});
    };
    if (bottom_) site("partner", longest);
    if (top_) site("unit", window_);
    structure_.posterior = posterior;
    structure_.answer_sampler = this;
    labels = static_cast<int>(C);
  }

  const Structure& structure() const override { return structure_; }
  typename Model<T>::SiteExtent site_extent(const Batch& batch, std::size_t site, int example) const override {
    std::vector<int> options(columns_);
    for (int c = 0; c < columns_; ++c) options[c] = options_of(batch, structure_.sites[site].name == "unit", example, c);
    return {options, structure_.sites[site].times};
  }
  void run(const Batch& batch, Episode<T>& episode) const override;

  Batch with_observations(const Batch& batch, const std::vector<std::vector<int>>& drawn) const override {
    auto result = batch;
    result.integers.at("label").storage() = drawn.at(0);
    return result;
  }

 private:
  static std::array<std::span<const int>, 2> lengths(const Batch& data) {
    return {data.ints("first_length").storage(), data.ints("second_length").storage()};
  }
  /// Options of a column: the tokens of the other sentence, or the units of the token's window; 1 if it has no token.
  int options_of(const Batch& data, bool unit, int example, int column) const {
    const auto length = lengths(data);
    const int first = length[0][example], second = length[1][example];
    if (column >= first + second) return 1;
    return unit ? window_ : column < first ? second : first;
  }
  /// The options of the columns of each example.
  Items options_of(const Batch& data, bool unit) const {
    std::vector<int> count;
    for (int b = 0; b < data.examples(); ++b)
      for (int c = 0; c < columns_; ++c) count.push_back(options_of(data, unit, b, c));
    return Items(count);
  }

  // Values that depend on no choice: the tokens of the first block, and their matching matrix.
  struct Read {
    Var<T> x, log_a;
  };
  const Read& read(Tape<T>& tape, const Batch& data, const Items& tokens) const {
    return shared_for<Read>(tape, this, data, {"first", "second", "first_length", "second_length"}, [&] {
      std::vector<int> word;
      for (int b = 0; b < data.examples(); ++b)
        for (const auto* side : {"first", "second"}) {
          const auto row = row_of(data.ints(side), b);
          word.insert(word.end(), row.begin(), row.begin() + tokens.count(2 * b + (side[0] == 's')));
        }
      const auto x = words_(tape, std::span<const int>(word));
      return Read{x, bottom_ ? match_scores(x, x, std::span<const int>(other_sentence(tokens)), tokens) : Var<T>{}};
    });
  }

  using Reading = PairReading<T>;
  /// The columns of W of block k that multiply x (part 0) or a (part 1): [w D, D], D rows for each place of the window.
  Var<T> weights(Tape<T>& tape, std::size_t k, int part) const {
    const int parts = bottom_ ? 2 : 1;
    std::vector<int> row;
    for (int place = 0; place < window_; ++place)
      for (int filter = 0; filter < width_; ++filter) row.push_back((filter * window_ + place) * parts + part);
    return gather_rows(reshape(tape.parameter(*blocks_[k].weight), width_), std::span<const int>(row));
  }
  /// Sums over windows of rows of products [rows, w D], row[i] at place i % w of window i / w: [windows, D].
  Sum<T> over_windows(Var<T> products, const std::vector<int>& row) const {
    std::vector<int> of_place(row.size());
    for (std::size_t i = 0; i < row.size(); ++i)
      of_place[i] = row[i] < 0 ? -1 : row[i] * window_ + static_cast<int>(i) % window_;
    return sum_of_rows(reshape(products, width_), std::move(of_place), window_);
  }
  Var<T> attention_feature(Reading& reading, const Items& options, Var<T> log_a, Var<T> P) const;
  Var<T> pooled(Reading& reading, const Items& options, Var<T> f, Items units) const;
  /// Scores of tokens [tokens, S] -> of columns [N D, S].
  Var<T> by_column(Var<T> scores, const Items& tokens) const {
    return gather_rows(scores, std::span<const int>(tokens_of_cells(tokens, columns_)));
  }
  Structure structure_;
  int columns_, width_, window_;
  bool bottom_ = false, top_ = false;
  Embedding<T> words_, places_, partner_label_, unit_label_;
  std::vector<Linear<T>> blocks_;
  Linear<T> classifier_, partner_query_, partner_key_, unit_key_;
  const Parameter<T>*partner_score_ = nullptr, *unit_score_ = nullptr;
};

template <class T>
void SentencePair<T>::run(const Batch& batch, Episode<T>& episode) const {
  auto& tape = episode.tape();
  const Distinct distinct(batch);
  const Batch& data = distinct.batch();
  Reading now{States<T>(episode, distinct), lengths(data), data.ints("label").storage()};
  now.tokens = now.sentences();
  const Read& words = read(tape, data, now.tokens);
  const Items partners = options_of(data, false), units_of_window = options_of(data, true);
  now.x = words.x;
  now.levels.push_back(sentence_means(now.x, now.tokens));
  for (std::size_t k = 0; k < blocks_.size(); ++k) {
    // f_u = tanh(W [x_{u-w+1}; a_{u-w+1}; ..; x_u; a_u] + b). The products of W with x and with P are taken before the choice,
    // which multiplies the tokens.
    const auto before = now.tokens;
    const auto Wx = linear(now.x, weights(tape, k, 0));
    Var<T> Wa;
    if (bottom_) {  // A_ij = 1 / (1 + |x_i - y_j|)
      const auto log_a =
          k == 0 ? words.log_a : match_scores(now.x, now.x, std::span<const int>(other_sentence(before)), before);
      Wa = attention_feature(now, partners, log_a, linear(tape.parameter(*places_.weight), weights(tape, k, 1)));
    }
    const auto units = now.sentences(window_ - 1);
    const auto seen = windows_of(units, now.tokens, 1 - window_, window_);
    auto seen_before = seen;
    if (bottom_) {
      const auto row = rows_from(now.states.histories().parent, before);
      for (int& token : seen_before) token = token < 0 ? -1 : row[token];
    }
    Sum<T> sum = over_windows(Wx, seen_before) + Sum<T>(tape.parameter(*blocks_[k].bias), std::vector<int>(units.total(), 0));
    if (bottom_) sum = sum + over_windows(Wa, seen);
    const auto f = tanh<T>(sum);
    now.x = pooled(now, units_of_window, f, units);
    now.levels.push_back(sentence_means(now.x, now.tokens));
  }
  Var<T> features;
  for (const auto& level : now.levels) {  // r, t, r t
    const auto product = multiply(slice_columns(level, 0, width_), slice_columns(level, width_, width_));
    features = features ? concat_columns({features, level, product}) : concat_columns({level, product});
  }
  if (episode.observer())
    now.states.observed(classifier_(features), 0);
  else
    now.states.cost(linear_cross_entropy(features, tape.parameter(*classifier_.weight), tape.parameter(*classifier_.bias),
                                         std::span<const int>(now.labels())));
}

// a_i = R_i P_{j_i}, j_i ~ A_ij / R_i; here of W P
template <class T>
Var<T> SentencePair<T>::attention_feature(Reading& now, const Items& options, Var<T> log_a, Var<T> P) const {
  auto& tape = *log_a.tape;
  auto R = row_sums(probabilities(log_a));
  ItemSite<T> site{.name = "partner",
                   .logits = by_column(log_a, now.tokens),
                   .items = options,
                   .state = now.levels.back(),
                   .columns = columns_};
  if (structure_.posterior)
    site.posterior = [&] {
      const auto label = partner_label_(tape, std::span<const int>(now.labels_of(now.tokens)));
      return by_column(additive_scores(add(partner_query_(now.x), label), partner_key_(now.x), tape.parameter(*partner_score_),
                                       std::span<const int>(other_sentence(now.tokens)), now.tokens),
                       now.tokens);
    };
  const auto j = now.states.choose(site);
  R = Reading::after(j, R, now.tokens);
  now.follow(j);
  const auto cell = cells_of_tokens(now.tokens, columns_);
  std::vector<int> place;
  if (j.hard()) {
    for (int c : cell) place.push_back(j.options()[c]);
    return scale_rows(gather_rows(P, std::span<const int>(place)), R);
  }
  place.resize(options.most());
  std::iota(place.begin(), place.end(), 0);
  const auto w = gather_rows(j.weights(), std::span<const int>(cell));
  return scale_rows(matmul(w, gather_rows(P, std::span<const int>(place))), R);
}

// x'_i: the mean of the window; or V_i f_{u_i}, u_i ~ v_u / V_i
template <class T>
Var<T> SentencePair<T>::pooled(Reading& now, const Items& options, Var<T> f, Items units) const {
  auto& tape = *f.tape;
  auto window = windows_of(now.tokens, units, 0, window_);
  if (!top_) return affine(Var<T>(sum_of_rows(f, window, window_)), T{1} / static_cast<T>(window_));
  auto v = row_sums(probabilities(match_scores(f, f, std::span<const int>(other_sentence(units)), units)));
  const auto of_windows = [&](Var<T> scores) {
    return by_column(reshape(gather_rows(scores, std::span<const int>(window)), window_), now.tokens);
  };
  ItemSite<T> site{
      .name = "unit", .logits = of_windows(log(v)), .items = options, .state = now.levels.back(), .columns = columns_};
  if (structure_.posterior)
    site.posterior = [&] {
      const auto label = unit_label_(tape, std::span<const int>(now.labels_of(units)));
      return of_windows(linear(tanh(add(unit_key_(f), label)), tape.parameter(*unit_score_)));
    };
  const auto u = now.states.choose(site);
  f = Reading::after(u, f, units);
  v = Reading::after(u, v, units);
  now.follow(u);
  units = now.sentences(window_ - 1);
  const auto cell = cells_of_tokens(now.tokens, columns_);
  window = windows_of(now.tokens, units, 0, window_);
  const Var<T> V = sum_of_rows(v, window, window_);
  if (u.hard()) {
    std::vector<int> unit;
    for (std::size_t i = 0; i < cell.size(); ++i) unit.push_back(window[i * window_ + u.options()[cell[i]]]);
    return scale_rows(gather_rows(f, std::span<const int>(unit)), V);
  }
  // sum_u w_u f_u
  const auto w = reshape(slice_columns(gather_rows(u.weights(), std::span<const int>(cell)), 0, window_), 1);
  const auto weighed = scale_rows(gather_rows(f, std::span<const int>(window)), w);
  std::vector<int> every(window.size());
  std::iota(every.begin(), every.end(), 0);
  return scale_rows(Var<T>(sum_of_rows(weighed, std::move(every), window_)), V);
}

const ModelEntry entry = {
    .name = "sentence_pair",
    .summary = "classifier of sentence pairs: two convolutions with shared weights and attention between them",
    .paper =
        "Yin, Schuetze, Xiang & Zhou 2016, ABCNN: attention-based convolutional neural network for modeling sentence pairs",
    .dependence = "joint cost (attention=bottom or top), sequential (attention=both, layers>1), no choice (attention=none)",
    .kinds = "categorical",
    .parameters = declared<Config>(),
    .needs = {"vocabulary", "first_length", "second_length", "classes"},
};
HARDGRAD_MODEL(SentencePair, entry)

}  // namespace
}  // namespace hardgrad::models::sentence_pair
