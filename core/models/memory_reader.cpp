// An end-to-end memory network that reads one sentence per hop.
//
// Story sentences x_1..x_N of words x_ij, question words q_j, K = hops, D = embedding; adjacent tying, so that the
// tables E_0..E_K serve as A_k = E_{k-1}, C_k = E_k and B = E_0.
//   m_k,i   = sum_j l_j (.) E_k[x_ij] + T_k[age_i]        memory k = 0..K [D]; age 0 is the last sentence
//   u_0     = sum_j l_j (.) E_0[q_j]
//   e_k,i   = u_{k-1} . m_{k-1},i                         hop k = 1..K
//   o_k     = m_k,{i_k}, i_k ~ softmax(e_k)               the choice; relaxed weights w: o_k = sum_i w_i m_k,i
//   u_k     = u_{k-1} + o_k
//   loss    = -log softmax(W u_K)[answer]
// position_encoding: l_jd = (1 - j/J) - (d/D)(1 - 2j/J) with j = 1..J the place of the word among the J words of its
// sentence and d = 1..D; otherwise l = 1. temporal=false drops T. Padding words (0) and padding sentences add nothing.
// Posterior (if asked for): q(i_k | story, question, answer) = softmax_i of (V_k u_{k-1} + b_k + F[answer]) . n_i with
// n_i = sum_j l_j (.) G[x_ij] + S[age_i].
//
// Parameters (V words, A answers, N sentences): memory.<k>.weight [V, D] and temporal.<k>.weight [N, D] for k = 0..K,
//   answer.weight [A, D]; posterior.memory.weight [V, D], posterior.temporal.weight [N, D] (temporal),
//   posterior.answer.weight [A, D], posterior.query.<k>.{weight [D, D], bias [D]} for k = 1..K.
#include <algorithm>
#include <cmath>

#include "core/autodiff/cross_entropy.hpp"
#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/gather_sum.hpp"
#include "core/autodiff/product.hpp"
#include "core/autodiff/softmax.hpp"
#include "core/models/dreams.hpp"
#include "core/models/histories.hpp"
#include "core/nn/layers.hpp"

namespace hardgrad {
namespace {

template <class T>
class MemoryReader final : public Model<T>, public Dreams {
 public:
  explicit MemoryReader(const Blueprint& b)
      : hops_(b.settings.integer("hops")),
        width_(b.settings.integer("embedding")),
        position_encoding_(b.settings.flag("position_encoding")),
        temporal_(b.settings.flag("temporal")) {
    auto& set = this->parameters_;
    const auto& [settings, dimensions, init, posterior] = b;
    const std::size_t V = dimensions.at("vocabulary"), N = dimensions.at("sentences"), A = dimensions.at("answers");
    for (int k = 0; k <= hops_; ++k) memory_.emplace_back(set, "memory." + std::to_string(k), V, width_, init);
    if (temporal_)
      for (int k = 0; k <= hops_; ++k) ages_.emplace_back(set, "temporal." + std::to_string(k), N, width_, init);
    answer_ = {set, "answer", A, width_, init};

    structure_.sites = {{.name = "sentence",
                         .options = static_cast<int>(N),
                         .times = hops_,
                         .state_width = static_cast<int>(width_),
                         .reach = Reach::later_choices}};
    structure_.posterior = posterior;
    structure_.dreams = this;
    labels = static_cast<int>(A);
    if (structure_.posterior) {
      posterior_memory_ = {set, "posterior.memory", V, width_, init};
      if (temporal_) posterior_ages_ = {set, "posterior.temporal", N, width_, init};
      posterior_answer_ = {set, "posterior.answer", A, width_, init};
      for (int k = 1; k <= hops_; ++k)
        posterior_query_.emplace_back(set, "posterior.query." + std::to_string(k), width_, width_, init);
    }
  }

  const Structure& structure() const override { return structure_; }

  typename Model<T>::Asked asked(const Batch& batch, std::size_t, int example) const override {
    return {{std::max(batch.ints("story_length").data[example], 1)}, hops_};
  }

  void run(const Batch& batch, Episode<T>& episode) const override;

  Batch with_observations(const Batch& batch, const std::vector<std::vector<int>>& drawn) const override {
    auto result = batch;
    result.integers.at("answer").data = drawn.at(0);
    return result;
  }

 private:
  // Texts of at most W words each, ready to be summed.
  struct Texts {
    std::vector<int> token;     // [texts W] -1 pads
    std::size_t words;          // W
    MatrixView<const T> place;  // [texts W, D] l; empty if all ones
  };
  // What depends on the texts alone.
  struct Known {
    std::vector<int> story, question, length;
    Items sentences;  // of each story; one empty sentence stands for none
    Texts texts;
    std::vector<int> age;        // [sentences] -1 of the empty one
    std::vector<Var<T>> memory;  // K + 1 of [sentences, D]
    Var<T> asked;                // [B, D] u_0
  };
  Known know(Tape<T>& tape, const Batch& batch) const;
  /// The first count(b) texts of W words in each row of `tokens` [B, >= most W].
  Texts read(Tape<T>& tape, const Array<int>& tokens, const Items& count, std::size_t W) const;
  /// [texts, D], with what the table of ages adds if there is one.
  Var<T> represent(Tape<T>& tape, const Texts& texts, const Embedding<T>& table, const Embedding<T>* ages,
                   std::span<const int> age) const {
    const auto sums = bag(tape.parameter(*table.weight), std::span<const int>(texts.token), texts.words, texts.place);
    return ages ? gather_sum<T>(sums.rows(), {{sums}, {tape.parameter(*ages->weight), age}}) : sums;
  }

  Structure structure_;
  int hops_;
  std::size_t width_;
  bool position_encoding_, temporal_;
  std::vector<Embedding<T>> memory_, ages_;
  Embedding<T> answer_;  // W
  Embedding<T> posterior_memory_, posterior_ages_, posterior_answer_;
  std::vector<Linear<T>> posterior_query_;
};

template <class T>
auto MemoryReader<T>::read(Tape<T>& tape, const Array<int>& tokens, const Items& count, std::size_t W) const -> Texts {
  Texts texts{{}, W, {}};
  for (std::size_t b = 0; b < count.examples(); ++b)
    for (std::size_t i = 0; i < count.count(b) * W; ++i) {
      const int token = tokens.row(b)[i];
      texts.token.push_back(token == 0 ? -1 : token);
    }
  if (!position_encoding_) return texts;
  const auto place = tape.template scratch<T>(texts.token.size() * width_);
  for (std::size_t n = 0; n < count.total(); ++n) {
    const int* word = texts.token.data() + n * W;
    const auto J = static_cast<double>(W - std::count(word, word + W, -1));
    double j = 0;
    for (std::size_t w = 0; w < W; ++w) {
      T* l = place.data() + (n * W + w) * width_;
      if (word[w] < 0) {
        std::fill_n(l, width_, T{0});
        continue;
      }
      ++j;
      const double base = 1 - j / J, slope = (1 - 2 * j / J) / static_cast<double>(width_);
      for (std::size_t d = 0; d < width_; ++d) l[d] = static_cast<T>(base - static_cast<double>(d + 1) * slope);
    }
  }
  texts.place = {place.data(), texts.token.size(), width_};
  return texts;
}

template <class T>
auto MemoryReader<T>::know(Tape<T>& tape, const Batch& batch) const -> Known {
  const auto &story = batch.ints("story"), &question = batch.ints("question");
  Known known;
  known.story = story.data;
  known.question = question.data;
  known.length = batch.ints("story_length").data;
  auto count = known.length;
  for (int& n : count) n = std::max(n, 1);
  known.sentences = Items(count);
  known.texts = read(tape, story, known.sentences, story.extent(2));
  for (std::size_t b = 0; b < count.size(); ++b)
    for (int i = 0; i < count[b]; ++i) known.age.push_back(known.length[b] - 1 - i);
  for (int k = 0; k <= hops_; ++k)
    known.memory.push_back(represent(tape, known.texts, memory_[k], temporal_ ? &ages_[k] : nullptr, known.age));
  known.asked = represent(tape, read(tape, question, Items(count.size(), 1), question.extent(1)), memory_[0], nullptr, {});
  return known;
}

template <class T>
void MemoryReader<T>::run(const Batch& batch, Episode<T>& episode) const {
  auto& tape = episode.tape();
  const Distinct distinct(batch);
  const Batch& data = distinct.batch();
  const auto& answer = data.ints("answer").data;
  const auto& known = tape.template shared<Known>(
      this,
      [&](const Known& k) {
        return k.length == data.ints("story_length").data && k.story == data.ints("story").data &&
               k.question == data.ints("question").data;
      },
      [&] { return know(tape, data); });
  const auto& [memory, sentences] = std::tie(known.memory, known.sentences);
  auto u = known.asked;
  Var<T> clues, hints;  // of the posterior: n_i [sentences, D], F[answer], one for each example that differs

  auto rows = episode.root();
  auto now = Histories::root(distinct);
  for (int k = 1; k <= hops_; ++k) {
    const std::span<const int> example(now.example);
    Site<T> site;
    site.name = "sentence";
    site.rows = rows;
    std::vector<int> options;
    for (int b : rows->example) options.push_back(sentences.count(distinct.index[b]));
    const auto prior = categorical(now.on_rows(dot_scores(u, memory[k - 1], example, sentences)), std::move(options));
    site.prior = prior;
    site.state = now.on_rows(u);
    if (structure_.posterior)
      site.posterior = [&, k] {
        if (!clues) {
          clues = represent(tape, known.texts, posterior_memory_, temporal_ ? &posterior_ages_ : nullptr, known.age);
          hints = posterior_answer_(tape, std::span<const int>(answer));
        }
        const auto query = gather_sum<T>(now.size(), {{posterior_query_[k - 1](u)}, {hints, example}});
        return prior->with(now.on_rows(dot_scores(query, clues, example, sentences)));
      };
    const auto choice = episode.choose(std::move(site));
    auto next = now.after(choice, sentences.most(), distinct);
    const auto moved = next.moved(now.size());
    u = choice.hard() ? gather_sum<T>(next.size(), {{u, moved}, {memory[k], next.chosen(sentences)}})
                      : gather_sum<T>(next.size(), {{u, moved}, {next.mixed(choice.weights, memory[k], sentences)}});
    now = std::move(next);
    rows = choice.rows;
  }

  if (auto* observer = episode.observer()) {
    observer->observe(rows->example, now.on_rows(linear(u, tape.parameter(*answer_.weight))), 0);
    return;
  }
  std::vector<int> label;
  for (int b : now.example) label.push_back(answer[b]);
  auto said = linear_cross_entropy(u, tape.parameter(*answer_.weight), Var<T>{}, std::span<const int>(label));
  episode.cost(rows, now.on_rows(said.loss));
  episode.predict(rows, now.labels_on_rows(said.label));
}

const ModelEntry entry = {
    .name = "memory_reader",
    .summary = "end-to-end memory network that reads one sentence per hop",
    .paper = "Sukhbaatar, Szlam, Weston & Fergus 2015, End-to-end memory networks",
    .dependence = "one choice (hops=1), sequential (hops>1)",
    .kinds = "categorical",
    .parameters = {ParameterInfo::integer("embedding", 20, 1, 4096, "width of the memories"),
                   ParameterInfo::integer("hops", 3, 1, 6, "sentences read, one after the other"),
                   ParameterInfo::flag("position_encoding", true, "weigh words by their place in the sentence"),
                   ParameterInfo::flag("temporal", true, "add a learned vector for the age of a sentence")},
    .needs = {"vocabulary", "answers", "sentences", "words"},
};
HARDGRAD_MODEL(MemoryReader, entry)

}  // namespace
}  // namespace hardgrad
