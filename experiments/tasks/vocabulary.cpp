// Numbers of the most frequent words; the others are unknown.
#include "experiments/tasks/vocabulary.hpp"

#include <algorithm>

namespace hardgrad::tasks {

void Vocabulary::close(int specials, std::size_t limit) {
  const std::vector<std::string> special_words = {"<pad>", "<unk>", "<bos>", "<eos>"};
  words_.assign(special_words.begin(), special_words.begin() + specials);
  std::vector<std::pair<std::string, std::size_t>> by_count(counts_.begin(), counts_.end());
  std::stable_sort(by_count.begin(), by_count.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  const auto number = [&](const std::string& word) {
    if ((limit == 0 || words_.size() < limit) && index_.try_emplace(word, size()).second) words_.push_back(word);
  };
  for (const auto& word : first_) number(word);
  for (const auto& [word, count] : by_count) number(word);
  counts_.clear();
}

int Vocabulary::index(const std::string& word) const {
  const auto it = index_.find(word);
  return it == index_.end() ? unknown : it->second;
}

std::vector<int> Vocabulary::indices(const std::vector<std::string>& words) const {
  std::vector<int> result;
  result.reserve(words.size());
  for (const auto& word : words) result.push_back(index(word));
  return result;
}

}  // namespace hardgrad::tasks
