// Pairs of texts in files: translations with their word links, labelled sentences, inflected and pronounced words.
#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

namespace hardgrad::tasks {

// Sentence pairs from tab-separated files (Tatoeba as packed by manythings.org/anki) or two parallel texts; CMUdict.

struct TextPair {
  std::string first, second;
};

/// Columns 1 and 2 of every line; further columns are ignored. InputError on a line with one column or an empty one.
std::vector<TextPair> read_tab_pairs(const std::string& path);

/// Line i of one file with line i of the other; lines may be empty. InputError if the files differ in length, or in every pair
/// a side is empty.
std::vector<TextPair> read_parallel_text(const std::string& first_path, const std::string& second_path);

/// A word of a pronouncing dictionary.
struct Pronunciation {
  std::string word;
  int variant = 1;                    ///< 2 for `word(2)`
  std::vector<std::string> phonemes;  ///< with stress digits, as written
};

/// CMUdict: `word PH ON EM ES # comment`. InputError on a word without phonemes and on an invalid phoneme.
std::vector<Pronunciation> read_cmudict(const std::string& path);

// Links between the words of a sentence and of its translation, and the alignment error between two sets of links.

/// The positions of a source word and of a target word that translates it, from 0.
using Link = std::pair<int, int>;

/// Sure and possible links of annotators (Och & Ney 2003, sec. 6). Sure links are also possible.
struct GoldLinks {
  std::set<Link> sure, possible;
  bool empty() const { return possible.empty(); }
  void add(Link link, bool is_sure) {
    possible.insert(link);
    if (is_sure) sure.insert(link);
  }
};

/// Numerator and denominator of the alignment error rate 1 - (|A and S| + |A and P|) / (|A| + |S|), summed over sentences.
struct AlignmentErrors {
  double wrong = 0;  ///< |A| + |S| - |A and S| - |A and P|
  double all = 0;    ///< |A| + |S|
};
inline AlignmentErrors alignment_errors(const std::set<Link>& found, const GoldLinks& gold) {
  const auto all = static_cast<double>(found.size() + gold.sure.size());
  double right = 0;
  for (const auto& link : found) right += static_cast<double>(gold.sure.count(link) + gold.possible.count(link));
  return {all - right, all};
}

// Files of hand-made word alignments of sentence pairs.

/// Numbers of words of a pair.
struct PairLengths {
  int source, target;
};

/// The links of each pair; empty for a pair without links. Two formats, distinguished by the first line with a link:
///   Pharaoh   a line for each pair: `0-0 1-2 2?3`, positions from 0; `-` is sure, `?` is possible
///   columns   a line for each link: `sentence source target [S|P]`, numbers from 1; a source or target of 0 means no link
/// (NULL);             S (sure) is the default. Used by the shared tasks of Mihalcea & Pedersen 2003.
/// InputError if a line has neither format, or a number is out of range.
std::vector<GoldLinks> read_gold_links(const std::string& path, const std::vector<PairLengths>& pairs);

// Labelled pairs of sentences: tab-separated files.

struct LabelledTexts {
  std::string label, first, second;
};

/// Lines `label TAB sentence TAB sentence`; empty lines are skipped. InputError on a line with another number of columns or an
/// empty one, and on more than a thousand different labels.
std::vector<LabelledTexts> read_labelled_pairs(const std::string& path);

// Tables of inflected forms or of pronunciations, in the formats of SIGMORPHON's shared tasks.

struct InflectedForm {
  std::string lemma, form;
  std::vector<std::string> features;
};
/// Lines `lemma TAB form TAB feature;feature` (SIGMORPHON 2017 and later). InputError on a line with another number of columns
/// or an empty one.
std::vector<InflectedForm> read_inflections(const std::string& path);

struct Transcription {
  std::string word;
  std::vector<std::string> sounds;
};
/// Lines `word TAB s o u n d s` with blanks between the sounds (SIGMORPHON 2020, task 1). InputError likewise.
std::vector<Transcription> read_transcriptions(const std::string& path);

}  // namespace hardgrad::tasks
