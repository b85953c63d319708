// A run of the translator: encode, then ask and answer step by step, then predict all words at once.
#include <algorithm>

#include "core/autodiff/cross_entropy.hpp"
#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/gather_sum.hpp"
#include "core/autodiff/softmax.hpp"
#include "core/models/translator.hpp"

namespace hardgrad {

template <class T>
void Translator<T>::run(const Batch& batch, Episode<T>& episode) const {
  auto& tape = episode.tape();
  const bool forced = episode.feeding() == Feeding::teacher_forced;
  const Distinct distinct(batch);
  if (!forced && !distinct.all()) throw Bug("translator: equal examples can be one only if fed with the truth");
  const Batch& data = distinct.batch();
  const auto& target_length = data.ints("target_length").data;
  const std::size_t D = distinct.size();
  const int steps = forced ? *std::max_element(target_length.begin(), target_length.end()) : structure_.steps();

  const Items positions(data.ints("source_length").data);
  const auto& encoded = tape.template shared<Encoded>(
      this,
      [&](const Encoded& known) {
        return known.positions == positions && known.source.data == data.ints("source").data &&
               known.words.index.size() == (forced ? steps * D : D) &&
               (forced ? known.target.data == data.ints("target").data : known.target.data.empty());
      },
      [&] { return encode(tape, data, positions, forced, steps); });
  Run run{data.ints("target"), target_length, episode, distinct, encoded, forced, std::vector<char>(D, false)};
  auto words = encoded.words;
  auto word_gates = encoded.word_gates, word_readout = encoded.word_readout;
  const auto words_of = [&](const Histories& states, int t) {
    std::vector<int> word(states.size());
    for (std::size_t n = 0; n < word.size(); ++n) word[n] = words.index[(forced ? t * D : 0) + states.example[n]];
    return word;
  };
  const auto only_saying = [&](Histories states, int t) {
    return std::move(states).only([&](int example) { return run.says(example, t); });
  };

  auto rows = episode.root();
  auto now = only_saying(Histories::root(distinct), 0);
  const auto recurrent = tape.parameter(*decoder_.recurrent);
  auto h = encoded.first_state;  // of the states before
  auto c = tape.constant(D, decoder_.hidden);
  Var<T> from_context;  // gates' share of the last context: gathered by `context_index` if that is not empty
  std::vector<int> context_index;
  std::vector<Answered> answered;

  for (int t = 0; t < steps; ++t) {
    // Where states part, the product is taken before; otherwise after, in place.
    const auto moved = now.moved(h.rows());
    const bool parts = now.size() > h.rows();
    if (!parts && !moved.empty()) h = gather_rows(h, moved);
    const auto from_state = parts ? linear(h, recurrent) : Var<T>{};
    auto gates =
        gather_sum<T>(now.size(), {{from_state, moved}, {word_gates, words_of(now, t)}, {from_context, context_index}});
    if (!parts) gates = add_linear(gates, h, recurrent);
    const auto state = lstm_cell(gates, moved.empty() ? c : gather_rows(c, moved));

    Site<T> site;
    site.name = "position";
    site.rows = rows;
    std::vector<int> options(rows->size());
    for (std::size_t r = 0; r < rows->size(); ++r)
      options[r] = now.of_row[r] < 0 ? 1 : positions.count(distinct.index[rows->example[r]]);
    const auto prior = categorical(now.on_rows(scores(run, now.example, state.h)), std::move(options));
    site.prior = prior;
    site.state = now.on_rows(state.h);
    if (structure_.posterior) site.posterior = [&, h = state.h] { return prior->with(posterior(run, now, h, t)); };
    const auto choice = episode.choose(std::move(site));
    auto after = now.after(choice, positions.most(), distinct);
    auto word = words_of(after, t);
    answered.push_back({t, choice, state.h, std::move(after), std::move(word), word_readout});

    if (!forced) {
      if (choice.rows->size() != D) throw Bug("translator: free running takes one row per example");
      auto tokens = predict(run, answered);
      for (std::size_t b = 0; b < D; ++b) {
        run.over[b] |= tokens[b] == eos_;
        if (tokens[b] < 0) tokens[b] = eos_;
      }
      if (std::all_of(run.over.begin(), run.over.end(), [](char over) { return over; })) break;
      words = Words<T>(tape, target_words_, std::move(tokens));
      word_gates = decoder_.project(words.rows);
      word_readout = readout_word_(words.rows);
    }
    if (t + 1 == steps) break;

    h = state.h;
    c = state.c;
    now = only_saying(feed_ == Feed::sampled ? answered.back().after : now.again(), t + 1);
    context_index.clear();
    if (feed_ == Feed::soft) {
      const auto weights = probabilities(episode.steps().back().question.log_prior);
      from_context = now.mixed(weights, encoded.context_gates, positions);
    } else if (feed_ == Feed::sampled) {
      rows = choice.rows;
      from_context = choice.hard() ? encoded.context_gates : now.mixed(choice.weights, encoded.context_gates, positions);
      if (choice.hard()) context_index = now.chosen(positions);
    }
    if (!forced) answered.clear();
  }
  if (forced && !answered.empty()) predict(run, answered);
}

template <class T>
auto Translator<T>::encode(Tape<T>& tape, const Batch& data, Items positions, bool forced, int steps) const -> Encoded {
  const std::size_t D = positions.examples();
  Encoded made;
  made.source = data.ints("source");
  if (forced) made.target = data.ints("target");
  const auto encoded = encoder_(tape, source_words_, made.source, positions);
  made.positions = std::move(positions);
  made.states = encoded.states;
  made.readout_context = readout_context_(encoded.states);
  made.keys = key_(encoded.states);
  if (feed_ != Feed::none) made.context_gates = context_(encoded.states);
  made.first_state = tanh(initial_(encoded.ends));
  std::vector<int> previous((forced ? steps : 1) * D, bos_);  // the words of all steps at once, if they are known
  for (std::size_t t = 1; t * D < previous.size(); ++t)
    for (std::size_t b = 0; b < D; ++b) previous[t * D + b] = made.target.row(b)[t - 1];
  made.words = Words<T>(tape, target_words_, std::move(previous));
  made.word_gates = decoder_.project(made.words.rows);
  made.word_readout = readout_word_(made.words.rows);
  return made;
}

template <class T>
Var<T> Translator<T>::scores(const Run& run, std::span<const int> example, Var<T> state) const {
  const auto keys = run.encoded.keys;
  const auto& positions = run.encoded.positions;
  if (score_ == Score::dot) return dot_scores(state, keys, example, positions);
  return additive_scores(query_(state), keys, run.episode.tape().parameter(*score_vector_), example, positions);
}

template <class T>
Var<T> Translator<T>::posterior(Run& run, const Histories& asking, Var<T> state, int step) const {
  auto& tape = run.episode.tape();
  if (!run.posterior_keys) run.posterior_keys = posterior_key_(run.encoded.states);
  std::vector<int> words(asking.size());
  for (std::size_t n = 0; n < words.size(); ++n) words[n] = run.target.row(asking.example[n])[step];
  const auto said = posterior_word_(posterior_words_(tape, std::span<const int>(words)));  // [N, H]
  return asking.on_rows(additive_scores(gather_sum<T>(words.size(), {{posterior_state_(state)}, {said}}), run.posterior_keys,
                                        tape.parameter(*posterior_vector_), std::span<const int>(asking.example),
                                        run.encoded.positions));
}

// The words of the given steps, in one product: [sum of N', V_t]. Returns the labels of the last step's rows.
template <class T>
std::vector<int> Translator<T>::predict(const Run& run, const std::vector<Answered>& steps) const {
  auto& episode = run.episode;
  auto& tape = episode.tape();
  const bool gathers = std::all_of(steps.begin(), steps.end(), [](const auto& s) { return s.choice.hard(); });
  std::vector<Var<T>> states, contexts;
  std::vector<int> state_row, context_row, word_row, label;
  std::vector<double> weight;  // expected, of each loss
  int asked = 0;
  const auto append = [](std::vector<int>& to, const std::vector<int>& from) { to.insert(to.end(), from.begin(), from.end()); };
  for (const auto& s : steps) {
    states.push_back(s.state);
    for (int parent : s.after.parent) state_row.push_back(asked + parent);
    asked += static_cast<int>(s.state.rows());
    if (s.choice.hard()) {
      const auto chosen = s.after.chosen(run.encoded.positions);
      if (gathers)
        append(context_row, chosen);
      else
        contexts.push_back(gather_rows(run.encoded.readout_context, std::span<const int>(chosen)));
    } else {
      contexts.push_back(s.after.mixed(s.choice.weights, run.encoded.readout_context, run.encoded.positions));
    }
    append(word_row, s.word);
    for (int b : s.after.example) label.push_back(run.forced ? run.target.row(b)[s.step] : -1);
    const auto weights = s.after.summed(episode.cost_weights(s.choice.rows));
    weight.insert(weight.end(), weights.begin(), weights.end());
  }
  const auto stacked = [](const std::vector<Var<T>>& parts) {
    return parts.size() == 1 ? parts[0] : stack_rows(std::span<const Var<T>>(parts));
  };
  const auto context = gathers ? run.encoded.readout_context : stacked(contexts);
  const auto u = tanh(gather_sum<T>(
      label.size(), {{readout_state_(stacked(states)), state_row}, {context, context_row}, {steps[0].word_readout, word_row}}));
  if (auto* observer = episode.observer()) {  // one step, one row an example
    const auto& after = steps[0].after;
    return after.labels_on_rows(observer->observe(after.example, output_(u), steps[0].step));
  }
  // Those who ask alike are the words of one state.
  const ExpectedCotangents expected{
      weight, episode.announced() == CostWeights::posterior ? std::span<const int>(state_row) : std::span<const int>{}};
  const auto word = linear_cross_entropy(u, tape.parameter(*output_.weight), tape.parameter(*output_.bias),
                                         std::span<const int>(label), expected);
  std::vector<int> labels;
  int first = 0;
  for (const auto& s : steps) {
    auto place = s.after.of_row;
    for (int& n : place)
      if (n >= 0) n += first;
    labels = s.after.labels_on_rows(std::span<const int>(word.label).subspan(first, s.after.size()));
    first += static_cast<int>(s.after.size());
    if (run.forced) episode.cost(s.choice.rows, gather_rows(word.loss, std::span<const int>(place)));
    episode.predict(s.choice.rows, labels);
  }
  return labels;
}

template class Translator<float>;
template class Translator<double>;

}  // namespace hardgrad
