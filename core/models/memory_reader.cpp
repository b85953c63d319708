// An end-to-end memory network that reads one sentence per hop, or several at once.
//
// Story sentences x_1..x_N of words x_ij, question words q_j, K = hops, D = embedding. With tying=adjacent (Sukhbaatar et al.
// 2015, sec. 2.2) the tables E_0..E_K serve as A_k = E_{k-1}, C_k = E_k, B = E_0 and W^T = C_K.
//   m_k,i   = sum_j l_j (.) E_k[x_ij] + T_k[age_i]        memory k = 0..K [D]; age 0 is the last sentence
//   u_0     = sum_j l_j (.) E_0[q_j]
//   e_k,i   = u_{k-1} . m_{k-1},i                         hop k = 1..K
//   o_k     = m_k,{i_k}, i_k ~ softmax(e_k)               the choice; relaxed weights w: o_k = sum_i w_i m_k,i
//           picks > 1: o_k = sum of m_k,i over i in S_k, a subset of that many sentences with the logits e_k (all, if
//           there are fewer; choice/subsets.hpp); relaxed weights sum to picks
//   u_k     = u_{k-1} + o_k
//   loss    = -log softmax(W u_K)[answer]       W has the rows of E_K of the answers' words
// tying=free_answers: as adjacent, but W is a matrix of its own.
// tying=layerwise: all hops share two tables, A_k = E_0 and C_k = E_1 (e_k,i = u_{k-1} . m_0,i and o_k = m_1,{i_k}). The
// question has its own table B, and u_k = H u_{k-1} + o_k with a matrix H between hops. W is a matrix of its own.
// between_hops=relu: u_k = relu(u_{k-1} + o_k), or relu(H u_{k-1} + o_k), for k < K.
// position_encoding: l_jd = (1 - j/J) - (d/D)(1 - 2j/J) with j = 1..J the place of the word among the J words of its
// sentence and d = 1..D; otherwise l = 1. temporal=false drops T. Padding words (0) and padding sentences add nothing.
// Posterior (if asked for): q(i_k | story, question, answer) = softmax_i of (V_k u_{k-1} + b_k + F[answer]) . n_i with
// n_i = sum_j l_j (.) G[x_ij] + S[age_i].
//
// Parameters (V words, A answers, N sentences): memory.<k>.weight [V, D] and temporal.<k>.weight [N, D] for k = 0..K;
//   tying=layerwise: k = 0, 1, and question.weight [V, D], hop.weight [D, D]; answer.weight [A, D] (unless tying=adjacent);
//   posterior.memory.weight [V, D], posterior.temporal.weight [N, D] (temporal), posterior.answer.weight [A, D],
//   posterior.query.<k>.{weight [D, D], bias [D]} for k = 1..K.
#include <algorithm>

#include "core/autodiff/elementwise.hpp"
#include "core/models/parts/answer_sampler.hpp"
#include "core/models/parts/dropout.hpp"
#include "core/models/parts/fields.hpp"
#include "core/models/parts/states.hpp"
#include "core/models/parts/texts.hpp"

namespace hardgrad::models::memory_reader {
namespace {

enum class Tying { adjacent, free_answers, layerwise };
constexpr Named<Tying> tyings[] = {
    {"adjacent", Tying::adjacent}, {"free_answers", Tying::free_answers}, {"layerwise", Tying::layerwise}};

enum class BetweenHops { none, relu };
constexpr Named<BetweenHops> all_between_hops[] = {{"none", BetweenHops::none}, {"relu", BetweenHops::relu}};

struct Config {
  int embedding = 20, hops = 3, subset_size = 1;
  bool position_encoding = true, temporal = true;
  Tying tying = Tying::adjacent;
  BetweenHops between_hops = BetweenHops::none;
  double dropout = 0;

  void declare(Fields& field) {
    field(embedding, "embedding", 1, 4096, "width of the memories");
    field(hops, "hops", 1, 6, "hops; each reads one sentence");
    field(subset_size, "picks", 1, 1000, "sentences that a hop reads at once; their memories are added");
    field(position_encoding, "position_encoding", "weight words by their place in the sentence");
    field(temporal, "temporal", "add a learned vector for the age of a sentence");
    field(tying, "tying", tyings,
          "adjacent: each hop's output table is the next one's input table, and the last one has "
          "the answers' weights; free_answers: adjacent, with answer weights of their own; "
          "layerwise: all hops share two tables");
    field(between_hops, "between_hops", all_between_hops, "nonlinearity between hops");
    field(dropout, "dropout", 0, 1, "share of the entries of u_K dropped in training").below();
  }
};

template <class T>
class MemoryReader final : public Model<T>, public AnswerSampler {
 public:
  MemoryReader(const Config& config, const Blueprint& b)
      : hops_(config.hops),
        subset_size_(config.subset_size),
        width_(config.embedding),
        position_encoding_(config.position_encoding),
        temporal_(config.temporal),
        tying_(config.tying),
        between_hops_(config.between_hops) {
    auto& set = this->parameters_;
    const auto& dimensions = b.dimensions;
    const auto& init = b.init;
    const bool posterior = b.posterior;
    dropout_ = {"readout", 0, config.dropout, width_};
    const std::size_t V = dimensions.at("vocabulary"), N = dimensions.at("sentences"), A = dimensions.at("answers");
    const int tables = tying_ == Tying::layerwise ? 2 : hops_ + 1;
    for (int k = 0; k < tables; ++k) memory_.emplace_back(set, "memory." + std::to_string(k), V, width_, init);
    ages_.resize(tables);
    if (temporal_)
      for (int k = 0; k < tables; ++k) ages_[k] = {set, "temporal." + std::to_string(k), N, width_, init};
    if (tying_ == Tying::layerwise) {
      question_ = {set, "question", V, width_, init};
      hop_ = {set, "hop", width_, width_, init, false};
    }
    if (tying_ == Tying::adjacent) {
      if (!dimensions.contains("answer_word"))
        throw UsageError("memory_reader: tying=adjacent: the task declares no answer_word: take tying=free_answers");
      for (std::size_t a = 0; a < A; ++a) answer_words_.push_back(dimensions.at("answer_word") + static_cast<int>(a));
    } else {
      answer_ = {set, "answer", A, width_, init};
    }

    structure_.sites = {{.name = "sentence",
                         .options = static_cast<int>(N),
                         .subset_size = subset_size_,
                         .times = hops_,
                         .state_width = static_cast<int>(width_),
                         .scope = DependenceScope::later_choices,
                         .kind = subset_size_ > 1 ? SiteKind::subsets : SiteKind::categorical}};
    structure_.posterior = posterior;
    if (subset_size_ == 1) structure_.answer_sampler = this;  // dreams replay single options
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

  typename Model<T>::SiteExtent site_extent(const Batch& batch, std::size_t, int example) const override {
    return {{std::max(batch.ints("story_length")(example), 1)}, hops_};
  }

  void run(const Batch& batch, Episode<T>& episode) const override;
  std::vector<std::pair<std::string, Array<double>>> dropout_factors(const Batch& batch) const override {
    std::vector<std::pair<std::string, Array<double>>> factors;
    dropout_.add_factors<T>(batch, factors);
    return factors;
  }

  Batch with_observations(const Batch& batch, const std::vector<std::vector<int>>& drawn) const override {
    auto result = batch;
    result.integers.at("answer").storage() = drawn.at(0);
    return result;
  }

 private:
  // Values that depend on the texts only.
  struct Story {
    Items sentences;  // of each story; an empty story has one empty sentence
    Texts<T> texts;
    std::vector<int> age;        // [sentences] -1: the empty sentence
    std::vector<Var<T>> memory;  // one for each table [sentences, D]
    Var<T> asked;                // [B, D] u_0
  };
  const Story& story(Tape<T>& tape, const Batch& data) const;
  Story read(Tape<T>& tape, const Batch& data) const;
  /// sum_j l_j (.) E[x_ij] + T[age_i]
  Var<T> memory(Tape<T>& tape, const Story& story, const Embedding<T>& words, const Embedding<T>& ages) const {
    const auto sums = story.texts.sums(tape.parameter(*words.weight));
    return temporal_ ? Var<T>(sums + Sum<T>(tape.parameter(*ages.weight), story.age)) : Var<T>(sums);
  }
  // Values that only the posterior needs, on demand.
  struct Clues {
    Var<T> memory, answer;  // n_i [sentences, D], F[answer] [B, D]
  };
  Var<T> posterior(const Story& story, Clues& clues, const std::vector<int>& answer, const States<T>& states, int k,
                   Var<T> u) const;

  /// Indices of the tables A_k and C_k of hop k.
  std::size_t memory_index(int k) const { return tying_ == Tying::layerwise ? 0 : k - 1; }
  std::size_t reads(int k) const { return tying_ == Tying::layerwise ? 1 : k; }

  Structure structure_;
  int hops_, subset_size_;
  std::size_t width_;
  Dropout dropout_{};
  bool position_encoding_, temporal_;
  Tying tying_;
  BetweenHops between_hops_;
  std::vector<Embedding<T>> memory_, ages_;  // E_k, T_k
  Embedding<T> question_;                    // B with tying=layerwise
  Linear<T> hop_;                            // H
  Embedding<T> answer_;                      // W, unless tied
  std::vector<int> answer_words_;            // [A] the rows of E_K that form W, if tied
  Embedding<T> posterior_memory_, posterior_ages_, posterior_answer_;
  std::vector<Linear<T>> posterior_query_;
};

template <class T>
void MemoryReader<T>::run(const Batch& batch, Episode<T>& episode) const {
  auto& tape = episode.tape();
  const Distinct distinct(batch);
  const auto& answer = distinct.batch().ints("answer").storage();
  const Story& story = this->story(tape, distinct.batch());
  Clues clues;

  States<T> states(episode, distinct);
  Sum<T> next = story.asked;  // u_0
  for (int k = 1; k <= hops_; ++k) {
    const Var<T> u = next;
    ItemSite<T> site{.name = "sentence",
                     // e_k,i = u_{k-1} . m_{k-1},i
                     .logits = dot_scores(u, story.memory[memory_index(k)], states.example(), story.sentences),
                     .items = story.sentences,
                     .state = u,
                     .subset_size = subset_size_};
    if (structure_.posterior) site.posterior = [&] { return posterior(story, clues, answer, states, k, u); };
    auto i = states.choose(site);                                                               // i_k ~ softmax(e_k)
    next = i.after(tying_ == Tying::layerwise ? hop_(u) : u) + i.read(story.memory[reads(k)]);  // u_k = u_{k-1} + m_k,{i_k}
    if (between_hops_ == BetweenHops::relu && k < hops_) next = relu(next);
    states = std::move(i);
  }
  if (dropout_.in(distinct.batch())) next = dropout_(Var<T>(next), distinct.batch(), states.example());
  const auto W = answer_.weight ? tape.parameter(*answer_.weight) : memory_[hops_](tape, std::span<const int>(answer_words_));
  if (episode.observer())
    states.observed(linear<T>(next, W), 0);
  else  // -log softmax(W u_K)[answer]
    states.cost(linear_cross_entropy(std::move(next), W, std::span<const int>(states.each([&](int b) { return answer[b]; }))));
}

// (V_k u_{k-1} + b_k + F[answer]) . n_i
template <class T>
Var<T> MemoryReader<T>::posterior(const Story& story, Clues& clues, const std::vector<int>& answer, const States<T>& states,
                                  int k, Var<T> u) const {
  auto& tape = *u.tape;
  if (!clues.memory) {
    clues.memory = memory(tape, story, posterior_memory_, posterior_ages_);
    clues.answer = posterior_answer_(tape, std::span<const int>(answer));
  }
  const Var<T> query = posterior_query_[k - 1](u) + Sum<T>(clues.answer, states.example());
  return dot_scores(query, clues.memory, states.example(), story.sentences);
}

template <class T>
auto MemoryReader<T>::story(Tape<T>& tape, const Batch& data) const -> const Story& {
  return shared_for<Story>(tape, this, data, {"story_length", "story", "question"}, [&] { return read(tape, data); });
}

template <class T>
auto MemoryReader<T>::read(Tape<T>& tape, const Batch& data) const -> Story {
  const auto &sentences = data.ints("story"), &question = data.ints("question");
  Story story;
  const auto& length = data.ints("story_length").storage();
  auto count = length;
  for (int& n : count) n = std::max(n, 1);
  story.sentences = Items(count);
  for (std::size_t b = 0; b < count.size(); ++b)
    for (int i = 0; i < count[b]; ++i) story.age.push_back(length[b] - 1 - i);
  story.texts = Texts<T>(sentences, story.sentences, extent(sentences, 2), width_, position_encoding_);
  for (std::size_t k = 0; k < memory_.size(); ++k) story.memory.push_back(memory(tape, story, memory_[k], ages_[k]));
  const Texts<T> questions(question, Items(count.size(), 1), extent(question, 1), width_, position_encoding_);
  story.asked = questions.sums(tape.parameter(*(tying_ == Tying::layerwise ? question_ : memory_[0]).weight));
  return story;
}

const ModelEntry entry = {
    .name = "memory_reader",
    .summary = "end-to-end memory network that reads one sentence per hop",
    .paper = "Sukhbaatar, Szlam, Weston & Fergus 2015, End-to-end memory networks",
    .dependence = "one choice (hops=1), sequential (hops>1)",
    .kinds = "categorical, subset (picks>1)",
    .parameters = declared<Config>(),
    .needs = {"vocabulary", "answers", "sentences", "words"},
};
HARDGRAD_MODEL(MemoryReader, entry)

}  // namespace
}  // namespace hardgrad::models::memory_reader
