// Words that are choices of site `word`: a state writes one after the other, until the end mark or the limit, and is rewarded.
#pragma once

#include <algorithm>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "core/models/model.hpp"
#include "core/models/parts/sequence_rewards.hpp"
#include "core/models/parts/states.hpp"

namespace hardgrad {

inline constexpr std::string_view word_site_name = "word";
/// Structure::no_likelihood of a model that writes them.
inline constexpr const char* rewards_as_losses = "rewards as losses";

/// The sentences that the states write. The costs of a run are the negative rewards. Every run asks for `longest` words: where
/// all sentences have ended, their states have one option.
template <class T>
class WordChoices {
 public:
  /// Before the first word, there are `examples` states. `end`: the option that ends a sentence, one of `options`.
  WordChoices(Tape<T>& tape, std::unique_ptr<SequenceRewards<T>> rewards, std::size_t examples, std::size_t options, int end)
      : rewards_(std::move(rewards)),
        items_(examples, options),
        end_(end),
        gate_(rewards_->start(tape, examples)),
        writing_(examples, 1) {}

  /// The words, for the question about them.
  const Items& items() const { return items_; }
  /// Each state has made another choice: `i` are the states after it.
  void follow(const States<T>& i) {
    gate_ = i.after(gate_);
    std::vector<char> writing(i.size());
    for (std::size_t n = 0; n < i.size(); ++n) writing[n] = writing_[i.histories().parent[n]];
    writing_ = std::move(writing);
  }
  /// The options of another choice of the states with `count` [N D] options: one where the sentence has ended.
  std::vector<int> limited(std::vector<int> count) const {
    const std::size_t columns = count.size() / writing_.size();
    for (std::size_t c = 0; c < count.size(); ++c)
      if (!writing_[c / columns]) count[c] = 1;
    return count;
  }
  /// The states after the choice of their next word, the t-th (t = 1 ..), which is paid for and predicted.
  States<T> choose(int t, const States<T>& states, ItemSite<T> site) {
    site.options = limited(std::vector<int>(writing_.size(), static_cast<int>(items_.most())));
    auto i = states.choose(site);
    const auto w = i.weights();
    const Var<T> before = i.after(gate_);
    i.cost(affine(rewards_->paid(t, before, w, i.example()), T{-1}));
    gate_ = rewards_->next(t, before, w, i.example());
    auto said = i.hard() ? i.options() : largest(w);
    std::vector<char> writing(i.size());
    for (std::size_t n = 0; n < writing.size(); ++n) {
      if (!writing_[i.histories().parent[n]]) said[n] = -1;
      writing[n] = said[n] >= 0 && !(i.hard() && said[n] == end_);
    }
    writing_ = std::move(writing);
    i.predict(said);
    return i;
  }
  /// The states that write on after the choice `i` of a word, one step later; all, if none does.
  States<T> go_on(const States<T>& i) {
    auto states = i.next_step();
    if (std::none_of(writing_.begin(), writing_.end(), [](char writes) { return writes; })) return states;
    states = std::move(states).only_states(writing_);
    gate_ = states.after(gate_);
    writing_.assign(states.size(), 1);
    return states;
  }

 private:
  std::unique_ptr<SequenceRewards<T>> rewards_;
  Items items_;
  int end_;
  Var<T> gate_;                // of the states now
  std::vector<char> writing_;  // [N]
};

/// Model::site_extent of a model whose last site is of words, with `before` sets of other choices before each word. The count
/// of all complete sets of choices is put at the words: nothing is chosen after the end mark.
template <class T>
typename Model<T>::SiteExtent extent_of_words(const Structure& structure, std::size_t site, double before) {
  const auto& word = structure.sites.back();
  double open = 1, all = 0;
  for (int t = 0; t < word.times; ++t) {
    all += open * before;
    open *= before * (word.options - 1);
  }
  all += open;
  const auto& asked = structure.sites[site];
  const bool is_word = &asked == &word;
  if (all < 1e9) return {is_word ? std::vector<int>{static_cast<int>(all)} : std::vector<int>(asked.columns, 1), 1};
  return {is_word ? std::vector<int>{word.options} : std::vector<int>(asked.columns, asked.options), asked.times};
}

}  // namespace hardgrad
