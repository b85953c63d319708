// Words as numbers: the most frequent ones, the rest unknown.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

namespace hardgrad::tasks {

class Vocabulary {
 public:
  static constexpr int pad = 0, unknown = 1, begin = 2, end = 3;

  /// Counts a word once more; only before `close`.
  void count(const std::string& word) { ++counts_[word]; }
  /// Words that are numbered before all others, in this order; only before `close`.
  void begin_with(std::vector<std::string> words) { first_ = std::move(words); }
  /// Gives numbers: first the `specials` (the first so many of <pad> <unk> <bos> <eos>), then those that begin, then words by
  /// falling count, equal counts in order of their bytes, until there are `limit` entries (0: no limit).
  void close(int specials, std::size_t limit = 0);

  int size() const { return static_cast<int>(words_.size()); }
  /// A word's number; `unknown` if it has none.
  int index(const std::string& word) const;
  const std::string& word(int index) const { return words_.at(static_cast<std::size_t>(index)); }

 private:
  std::vector<std::string> first_;
  std::map<std::string, std::size_t> counts_;
  std::unordered_map<std::string, int> index_;
  std::vector<std::string> words_;
};

}  // namespace hardgrad::tasks
