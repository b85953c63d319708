// A reader that attends to one token of a document, or to one for each token of the question, and answers with an entity.
//
// Document d_1..d_N and question q_1..q_Q of words and entities; H = hidden, E = embedding.
//   y_d(t) = [f_t; b_t], y_q(i) = [f_i; b_i]        BiLSTM over the embeddings of each, H units per direction [2H]
//   u      = [f_Q; b_1]                             of the question
// kind=attentive reads once:
//   m(t)   = tanh(W_ym y_d(t) + W_um u)
//   r      = y_d(t*), t* ~ softmax_t(w . m(t))      the choice; relaxed weights s: r = sum_t s(t) y_d(t)
// kind=impatient reads once for each token of the question, i = 1..Q, from a learned r(0):
//   m(i,t) = tanh(W_ym y_d(t) + W_rm r(i-1) + W_um y_q(i))
//   r(i)   = y_d(t_i) + tanh(W_rr r(i-1)), t_i ~ softmax_t(w . m(i,t));  r = r(Q)
// picks=k > 1: a subset of k tokens with these logits (choice/subsets.hpp; all, if there are fewer); the mean of their y_d.
// kind=uniform is their baseline without attention: r = (1 / N) sum_t y_d(t), no choice.
// All kinds answer with
//   g      = tanh(W_rg r + W_ug u)
//   loss   = -log softmax(W_a g)[answer]            over the entities; dropout drops entries of g in training
// Departures from the paper: its W_dm and W_qm of the impatient reader are W_ym and W_um here; its softmax is over all words.
// Posterior (if asked for): q(t_i | d, q, answer) = softmax_t of v . tanh(V_y y_d(t) + b + V_m c_i + F[answer]), where the
// query c_i is W_um u, or W_rm r(i-1) + W_um y_q(i).
//
// Parameters (V words with entities, A entities):
//   embedding.weight [V, E], {document,question}.{forward,backward}.{input.weight [4H, E], recurrent.weight [4H, H], bias [4H]}
//   attention.document.weight [H, 2H] (W_ym), attention.question.weight [H, 2H] (W_um), attention.score.weight [1, H] (w)
//   kind=impatient: attention.read.weight [H, 2H] (W_rm), read.initial [1, 2H] (r(0)), read.recurrent.weight [2H, 2H] (W_rr)
//   answer.read.weight [H, 2H] (W_rg), answer.question.weight [H, 2H] (W_ug), answer.entity.weight [A, H] (W_a)
//   posterior.document.{weight [H, 2H], bias [H]}, posterior.state.weight [H, H], posterior.answer.weight [A, H],
//   posterior.score.weight [1, H]; kind=uniform: neither attention.* nor posterior.*
#include <algorithm>
#include <cmath>

#include "core/autodiff/elementwise.hpp"
#include "core/models/parts/answer_sampler.hpp"
#include "core/models/parts/bilstm.hpp"
#include "core/models/parts/dropout.hpp"
#include "core/models/parts/fields.hpp"
#include "core/models/parts/means.hpp"
#include "core/models/parts/states.hpp"

namespace hardgrad::models::attentive_reader {
namespace {

enum class Kind { attentive, impatient, uniform };
constexpr Named<Kind> kinds[] = {{"attentive", Kind::attentive}, {"impatient", Kind::impatient}, {"uniform", Kind::uniform}};

struct Config {
  Kind kind = Kind::attentive;
  int subset_size = 1, embedding = 32, hidden = 32;
  double dropout = 0;

  void declare(Fields& field) {
    field(kind, "kind", kinds, "one read, one per token of the question, or the mean of all tokens");
    field(subset_size, "picks", 1, 1000, "tokens that are read at once; their states are averaged");
    field(embedding, "embedding", 1, 4096, "width of the word embeddings");
    field(hidden, "hidden", 1, 4096, "units of each direction of the encoders");
    field(dropout, "dropout", 0, 1, "share of the entries of g dropped in training").below();
  }
};

template <class T>
class AttentiveReader final : public Model<T>, public AnswerSampler {
 public:
  AttentiveReader(const Config& config, const Blueprint& b) : kind_(config.kind), subset_size_(config.subset_size) {
    if (subset_size_ > 1 && kind_ == Kind::uniform)
      throw UsageError("attentive_reader: kind=uniform picks no token: drop picks");
    const auto& dimensions = b.dimensions;
    const auto& init = b.init;
    const bool posterior = b.posterior;
    const std::size_t E = config.embedding, H = config.hidden;
    const std::size_t V = dimensions.at("vocabulary"), A = dimensions.at("answers");
    dropout_ = {"readout", 0, config.dropout, H};
    auto& set = this->parameters_;
    words_ = {set, "embedding", V, E, init};
    document_ = {set, "document", E, H, init};
    question_ = {set, "question", E, H, init};
    if (kind_ != Kind::uniform) {
      ask_document_ = {set, "attention.document", 2 * H, H, init, false};
      ask_question_ = {set, "attention.question", 2 * H, H, init, false};
      score_ = &uniform_vector(set, "attention.score.weight", H, init);
    }
    if (kind_ == Kind::impatient) {
      ask_read_ = {set, "attention.read", 2 * H, H, init, false};
      initial_ = &uniform_vector(set, "read.initial", 2 * H, init);
      recurrent_ = {set, "read.recurrent", 2 * H, 2 * H, init, false};
    }
    answer_read_ = {set, "answer.read", 2 * H, H, init, false};
    answer_question_ = {set, "answer.question", 2 * H, H, init, false};
    answer_entity_ = {set, "answer.entity", H, A, init, false};
    if (subset_size_ == 1) structure_.answer_sampler = this;  // dreams replay single options
    labels = static_cast<int>(A);
    if (kind_ == Kind::uniform) return;
    if (posterior) {
      posterior_document_ = {set, "posterior.document", 2 * H, H, init};
      posterior_state_ = {set, "posterior.state", H, H, init, false};
      posterior_answer_ = {set, "posterior.answer", A, H, init};
      posterior_score_ = &uniform_vector(set, "posterior.score.weight", H, init);
    }
    structure_.sites = {{.name = "token",
                         .options = dimensions.at("document_length"),
                         .subset_size = subset_size_,
                         .times = kind_ == Kind::impatient ? dimensions.at("question_length") : 1,
                         .state_width = static_cast<int>(H),
                         .scope = DependenceScope::later_choices,
                         .kind = subset_size_ > 1 ? SiteKind::subsets : SiteKind::categorical}};
    structure_.posterior = posterior;
  }

  const Structure& structure() const override { return structure_; }
  typename Model<T>::SiteExtent site_extent(const Batch& batch, std::size_t, int example) const override {
    return {{batch.ints("document_length")(example)}, kind_ == Kind::impatient ? batch.ints("question_length")(example) : 1};
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
  struct Texts {
    Items tokens, asked;  // tokens of each document; reads of each question
    Var<T> states, keys;  // y_d(t) [tokens, 2H], W_ym y_d(t)
    Var<T> values;        // [tokens, 2H] y_d(t), over the number of picks
    Var<T> mean;          // [B, 2H] of y_d(t); kind=uniform
    Var<T> queries;       // W_um y_q(i) [asked, H], or W_um u [B, H]
    Var<T> to_answer;     // W_ug u [B, H]
    int reads(int example) const { return asked.count(example); }
  };
  const Texts& texts(Tape<T>& tape, const Batch& data) const;
  Texts read(Tape<T>& tape, const Batch& data) const;

  Structure structure_;
  Kind kind_;
  int subset_size_;
  Dropout dropout_{};
  Embedding<T> words_, posterior_answer_;
  BiLstm<T> document_, question_;
  Linear<T> ask_document_, ask_question_, ask_read_, recurrent_, answer_read_, answer_question_, answer_entity_;
  Linear<T> posterior_document_, posterior_state_;
  const Parameter<T>*score_ = nullptr, *initial_ = nullptr, *posterior_score_ = nullptr;
};

template <class T>
void AttentiveReader<T>::run(const Batch& batch, Episode<T>& episode) const {
  auto& tape = episode.tape();
  const Distinct distinct(batch);
  const auto& answer = distinct.batch().ints("answer").storage();
  const Texts& x = texts(tape, distinct.batch());  // y_d, y_q, u
  Var<T> posterior_keys, posterior_answers;

  States<T> states(episode, distinct);
  Var<T> r;
  if (kind_ == Kind::impatient) r = Sum<T>(tape.parameter(*initial_), std::vector<int>(states.size(), 0));  // r(0)
  const auto read_token = [&](int i) {
    // m(i,t) = tanh(W_ym y_d(t) + W_um y_q(i) + W_rm r(i-1)), t_i ~ softmax_t(w . m(i,t))
    const Sum<T> question(x.queries, states.each([&](int b) { return x.asked.row(b, i); }));
    const Var<T> query = kind_ == Kind::impatient ? question + states.after(ask_read_(r)) : question;
    ItemSite<T> site{.name = "token",
                     .logits = additive_scores(query, x.keys, tape.parameter(*score_), states.example(), x.tokens),
                     .items = x.tokens,
                     .state = query,
                     .subset_size = subset_size_};
    if (structure_.posterior)
      site.posterior = [&] {
        if (!posterior_keys) {
          posterior_keys = posterior_document_(x.states);
          posterior_answers = posterior_answer_(tape, std::span<const int>(answer));
        }
        const Var<T> known = posterior_state_(query) + Sum<T>(posterior_answers, states.example());
        return additive_scores(known, posterior_keys, tape.parameter(*posterior_score_), states.example(), x.tokens);
      };
    return states.choose(site);
  };
  for (int i = 0; states.size() > 0; ++i) {
    const auto t = kind_ != Kind::uniform ? read_token(i) : states.next_step();
    // r(i) = y_d(t_i) + tanh(W_rr r(i-1))
    r = kind_ == Kind::uniform     ? Sum<T>(x.mean, states.example())
        : kind_ == Kind::impatient ? t.read(x.values) + t.after(tanh(recurrent_(states.after(r))))
                                   : t.read(x.values);

    // g = tanh(W_rg r + W_ug u), -log softmax(W_a g)[answer], of the states after their last read
    const auto done = t.next_step().only([&](int b) { return i + 1 == x.reads(b); });
    states = t.next_step().only([&](int b) { return i + 1 < x.reads(b); });
    if (done.size() == 0) continue;
    const Var<T> sum = answer_read_(done.after(r)) + Sum<T>(x.to_answer, done.example());
    const auto g = dropout_(tanh(sum), distinct.batch(), done.example());
    const auto W = tape.parameter(*answer_entity_.weight);
    if (episode.observer())
      done.observed(linear(g, W), 0);
    else
      done.cost(linear_cross_entropy(g, W, Var<T>{}, std::span<const int>(done.each([&](int b) { return answer[b]; }))));
  }
}

template <class T>
auto AttentiveReader<T>::texts(Tape<T>& tape, const Batch& data) const -> const Texts& {
  return shared_for<Texts>(tape, this, data, {"document_length", "question_length", "document", "question"},
                           [&] { return read(tape, data); });
}

template <class T>
auto AttentiveReader<T>::read(Tape<T>& tape, const Batch& data) const -> Texts {
  const auto &document = data.ints("document"), &question = data.ints("question");
  Texts x;
  x.tokens = Items(data.ints("document_length").storage());
  const Items of_question(data.ints("question_length").storage());
  x.asked = kind_ == Kind::impatient ? of_question : Items(of_question.examples(), 1);
  x.states = document_(tape, words_, document, x.tokens).states;
  const auto [y_q, u] = question_(tape, words_, question, of_question);
  if (kind_ != Kind::uniform) {
    x.keys = ask_document_(x.states);
    x.values = shares(x.states, x.tokens, subset_size_);
    x.queries = ask_question_(kind_ == Kind::impatient ? y_q : u);
  } else {
    x.mean = means(x.states, x.tokens);
  }
  x.to_answer = answer_question_(u);
  return x;
}

const ModelEntry entry = {
    .name = "attentive_reader",
    .summary = "document reader that attends to one token, or to one for each token of the question",
    .paper = "Hermann, Kocisky, Grefenstette, Espeholt, Kay, Suleyman & Blunsom 2015, Teaching machines to read and comprehend",
    .dependence = "one choice (kind=attentive), sequential (kind=impatient), no choice (kind=uniform)",
    .kinds = "categorical, subset (picks>1)",
    .parameters = declared<Config>(),
    .needs = {"vocabulary", "answers", "document_length", "question_length"},
};
HARDGRAD_MODEL(AttentiveReader, entry)

}  // namespace
}  // namespace hardgrad::models::attentive_reader
