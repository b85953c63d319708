// An encoder-decoder with attention whose decoder looks at one source position per target word.
//
// Source words x_1..x_L, target words y_1..y_T (y_T is the end of sentence), y_0 = bos; H = hidden, E = embedding.
//   a_i   = [f_i; b_i]                               BiLSTM over the source embeddings, H units per direction [2H]
//   s_0   = tanh(W_init [f_L; b_1] + b_init), c_0 = 0
//   s_t   = LSTM(E_y y_{t-1} (+ W_ctx z_{t-1}), s_{t-1})      W_ctx only if feed is not none; z_0 = 0
//   e_ti  = v . tanh(W_q s_t + W_k a_i + b_k)         score=additive
//   e_ti  = s_t . W_k a_i                             score=dot
//   z_t   = a_{i_t}, i_t ~ softmax(e_t)               the choice; relaxed weights w: z_t = sum_i w_i a_i
//   u_t   = tanh(W_s s_t + b_s + W_z z_t + W_y E_y y_{t-1})
//   loss_t = -log softmax(W_o u_t + b_o)[y_t]
// feed=sampled: z_{t-1} above is the sampled context (sequential). feed=soft: sum_i softmax(e_{t-1})_i a_i, whatever
// was chosen (factorised). feed=none: no context enters the recurrence (factorised).
// Posterior (if asked for): q(i_t | x, y) = softmax_i of  v_q . tanh(W_qs s_t + W_qy E_q y_t + W_qk a_i + b_qk).
//
// Parameters (LSTM gates i, f, g, o; V_s, V_t vocabularies):
//   encoder.embedding.weight [V_s, E]     encoder.{forward,backward}.{input.weight [4H, E], recurrent.weight [4H, H], bias
//   [4H]} attention.key.weight [H, 2H]          attention.key.bias [H], attention.query.weight [H, H], attention.score.weight
//   [1, H]
//                                         (the last three only for score=additive)
//   decoder.embedding.weight [V_t, E]     decoder.initial.{weight [H, 2H], bias [H]}
//   decoder.lstm.{input.weight [4H, E], recurrent.weight [4H, H], bias [4H]}    decoder.context.weight [4H, 2H] (feed != none)
//   readout.state.{weight [H, H], bias [H]}, readout.context.weight [H, 2H], readout.word.weight [H, E]
//   output.{weight [V_t, H], bias [V_t]}
//   posterior.key.{weight [H, 2H], bias [H]}, posterior.state.weight [H, H], posterior.embedding.weight [V_t, E],
//   posterior.word.weight [H, E], posterior.score.weight [1, H]
#pragma once

#include "core/models/parts/bilstm.hpp"
#include "core/models/parts/dreams.hpp"
#include "core/models/parts/histories.hpp"

namespace hardgrad {

template <class T>
class Translator final : public Model<T>, public Dreams {
 public:
  explicit Translator(const Blueprint& blueprint);

  const Structure& structure() const override { return structure_; }
  typename Model<T>::Asked asked(const Batch& batch, std::size_t site, int example) const override;
  void run(const Batch& batch, Episode<T>& episode) const override;
  Batch with_observations(const Batch& batch, const std::vector<std::vector<int>>& drawn) const override;

 private:
  enum class Score { additive, dot };
  enum class Feed { none, soft, sampled };

  // What depends on the sentences alone.
  struct Encoded {
    Array<int> source, target;  // target: if fed with the truth
    Items positions;            // the words of each source sentence
    Var<T> states;              // [positions, 2H] a_i
    Var<T> readout_context;     // [positions, H] W_z a_i
    Var<T> keys;                // [positions, H]
    Var<T> context_gates;       // [positions, 4H], if a context is fed
    Var<T> first_state;         // [D, H] s_0
    Words<T> words;             // [T D] y_{t-1}, step by step, if fed with the truth; otherwise [D] bos
    Var<T> word_gates, word_readout;
  };
  // What stays the same for the whole run. Equal examples are encoded once: D of them differ.
  struct Run {
    const Array<int>& target;               // [D, T]
    const std::vector<int>& target_length;  // [D]
    Episode<T>& episode;
    const Distinct& distinct;
    const Encoded& encoded;
    bool forced;              // fed with the truth
    std::vector<char> over;   // [D] free running: the sentence has ended
    Var<T> posterior_keys{};  // [positions, H], on demand

    /// Whether there is a word to predict at step t.
    bool says(int example, int t) const { return forced ? t < target_length[example] : !over[example]; }
  };
  // One answered step whose words are still to be predicted.
  struct Answered {
    int step;
    Choice<T> choice;
    Var<T> state;           // [N, H] s_t of those that asked
    Histories after;        // [N'] one word is predicted of each
    std::vector<int> word;  // [N'] their y_{t-1}: rows of the next
    Var<T> word_readout;    // W_y E_y
  };

  Encoded encode(Tape<T>& tape, const Batch& data, Items positions, bool forced, int steps) const;
  Var<T> scores(const Run& run, std::span<const int> example, Var<T> state) const;
  Var<T> posterior(Run& run, const Histories& asking, Var<T> state, int step) const;
  std::vector<int> predict(const Run& run, const std::vector<Answered>& steps) const;

  Structure structure_;
  Score score_;
  Feed feed_;
  int bos_, eos_;
  Embedding<T> source_words_, target_words_, posterior_words_;
  BiLstm<T> encoder_;
  Lstm<T> decoder_;
  Linear<T> key_, query_, initial_, context_, readout_state_, readout_context_, readout_word_, output_;
  Linear<T> posterior_key_, posterior_state_, posterior_word_;
  const Parameter<T>*score_vector_ = nullptr, *posterior_vector_ = nullptr;
};

extern template class Translator<float>;
extern template class Translator<double>;

}  // namespace hardgrad
