#include "experiments/tasks/spelling.hpp"
#include "experiments/tasks/draws.hpp"

#include <array>
#include <string_view>

namespace hardgrad::tasks {
namespace {

constexpr std::string_view vowels = "aeiou";
constexpr std::array brief = {"AE", "EH", "IH", "AA", "AH"}, lengthened = {"EY", "IY", "AY", "OW", "UW"};

bool is_vowel(char letter) { return vowels.find(letter) != std::string_view::npos; }

std::string sound_of(char consonant) { return {static_cast<char>(consonant - 'a' + 'A')}; }

}  // namespace

SequencePair pronounced(const std::string& letters) {
  SequencePair word;
  for (char letter : letters) word.source.emplace_back(1, letter);
  const std::size_t n = letters.size();
  const auto at = [&](std::size_t i) { return i < n ? letters[i] : '\0'; };
  const auto consonant = [&](std::size_t i) { return i < n && !is_vowel(letters[i]); };
  const auto digraph = [&](std::size_t i) {
    return at(i + 1) == 'h' && std::string_view("sct").find(at(i)) != std::string_view::npos;
  };
  const auto say = [&](std::string sound, std::size_t from) {
    word.gold.add({static_cast<int>(from), static_cast<int>(word.target.size())}, true);
    word.target.push_back(std::move(sound));
  };
  for (std::size_t i = 0; i < n; ++i) {
    const char letter = letters[i];
    if (const auto v = vowels.find(letter); v != std::string_view::npos) {
      const bool silent = letter == 'e' && i + 1 == n && i >= 2 && consonant(i - 1) && is_vowel(at(i - 2));
      const bool long_one = consonant(i + 1) && at(i + 2) == 'e' && i + 3 == n;
      if (!silent) say(long_one ? lengthened[v] : brief[v], i);
    } else if (digraph(i)) {
      say(sound_of(letter) + "H", i++);
    } else {
      if (at(i + 1) == letter) {  // doubled
        say(letter == 'c' ? "K" : sound_of(letter), i++);
        continue;
      }
      const bool soft = letter == 'c' && (at(i + 1) == 'e' || at(i + 1) == 'i');
      say(letter == 'c' ? (soft ? "S" : "K") : sound_of(letter), i);
    }
  }
  return word;
}

SequencePair Spelling::generate(Key key) const {
  constexpr std::array onsets = {"b", "c", "d", "f", "g", "l", "m", "n", "p", "r", "s", "t", "sh", "ch", "th"};
  Draws draw(key);
  std::string letters;
  const auto count = 1 + draw.below(static_cast<std::size_t>(syllables));
  for (std::uint64_t i = 0; i < count; ++i) {
    std::string onset = onsets[draw.below(onsets.size())];
    if (i > 0 && onset.size() == 1 && draw.below(4) == 0) onset += onset;
    letters += onset + vowels[draw.below(vowels.size())];
  }
  const auto ending = draw.below(3);
  if (ending > 0) letters += "bdklmnpt"[draw.below(8)];
  if (ending > 1) letters += 'e';
  return pronounced(letters);
}

}  // namespace hardgrad::tasks
