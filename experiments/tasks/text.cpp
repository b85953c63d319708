#include "experiments/tasks/text.hpp"

#include <algorithm>
#include <cstdint>

namespace hardgrad::tasks {
namespace {

using Letter = std::uint32_t;

// The character at `at` of valid UTF-8; advances `at`.
Letter next(std::string_view text, std::size_t& at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned lead = byte(at++);
  if (lead < 0x80) return lead;
  const int more = lead >= 0xF0 ? 3 : lead >= 0xE0 ? 2 : 1;
  Letter letter = lead & (0x3Fu >> more);
  for (int k = 0; k < more && at < text.size(); ++k) letter = letter << 6 | (byte(at++) & 0x3Fu);
  return letter;
}

void append(std::string& text, Letter letter) {
  const auto put = [&](unsigned byte) { text += static_cast<char>(byte); };
  if (letter < 0x80) return put(letter);
  if (letter < 0x800) return put(0xC0 | letter >> 6), put(0x80 | (letter & 0x3F));
  if (letter < 0x10000) return put(0xE0 | letter >> 12), put(0x80 | (letter >> 6 & 0x3F)), put(0x80 | (letter & 0x3F));
  put(0xF0 | letter >> 18), put(0x80 | (letter >> 12 & 0x3F)), put(0x80 | (letter >> 6 & 0x3F));
  put(0x80 | (letter & 0x3F));
}

Letter lower(Letter c) {
  if (c >= 'A' && c <= 'Z') return c + 32;
  if (c < 0xC0) return c;
  if (c <= 0xDE) return c == 0xD7 ? c : c + 32;  // Latin-1
  if (c >= 0x100 && c <= 0x17F) {                // Latin Extended-A: pairs
    if (c == 0x130) return 'i';
    if (c == 0x178) return 0xFF;
    const bool upper_is_odd = (c >= 0x139 && c <= 0x148) || (c >= 0x179 && c <= 0x17E);
    if (c == 0x138 || c == 0x149 || c == 0x17F) return c;
    return (c % 2 == 1) == upper_is_odd ? c + 1 : c;
  }
  if (c >= 0x391 && c <= 0x3A9 && c != 0x3A2) return c + 32;  // Greek
  if (c >= 0x410 && c <= 0x42F) return c + 32;                // Cyrillic
  if (c >= 0x400 && c <= 0x40F) return c + 80;
  if (c >= 0x1E00 && c <= 0x1E95) return c | 1;  // Latin Extended Additional: pairs
  if (c == 0x1E9E) return 0xDF;                  // capital sharp s
  return c;
}

bool is_space(Letter c) {
  return c == ' ' || (c >= 9 && c <= 13) || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 ||
         c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}
bool is_invisible(Letter c) {
  return c < 0x20 || (c >= 0x7F && c < 0xA0) || c == 0xAD || (c >= 0x200B && c <= 0x200F) || (c >= 0x202A && c <= 0x202E) ||
         (c >= 0x2060 && c <= 0x2064) || c == 0xFEFF;
}
bool is_digit(Letter c) { return c >= '0' && c <= '9'; }
bool is_letter(Letter c) {
  if (c < 0x80) return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  if (c < 0xC0) return c == 0xAA || c == 0xB5 || c == 0xBA;
  return c != 0xD7 && c != 0xF7 && !(c >= 0x2010 && c <= 0x206F) && !(c >= 0x20A0 && c <= 0x2BFF) &&
         !(c >= 0x3001 && c <= 0x303F) && !(c >= 0xFF00 && c <= 0xFF0F);
}

}  // namespace

std::string lower_case(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) append(result, lower(next(text, at)));
  return result;
}

std::vector<Piece> pieces_of(std::string_view line) {
  std::vector<Piece> pieces;
  for (std::size_t at = 0; (at = line.find_first_not_of(" \t", at)) != std::string_view::npos;) {
    const auto end = std::min(line.find_first_of(" \t", at), line.size());
    pieces.push_back({line.substr(at, end - at), at + 1});
    at = end;
  }
  return pieces;
}

std::vector<std::string> between_blanks(std::string_view text) {
  std::vector<std::string> result;
  for (const auto& piece : pieces_of(text)) result.emplace_back(piece.text);
  return result;
}

std::vector<std::string> characters(std::string_view text) {
  std::vector<std::string> result;
  for (std::size_t at = 0; at < text.size();) append(result.emplace_back(), next(text, at));
  return result;
}

bool is_punctuation(std::string_view token) {
  if (token.empty()) return false;
  std::size_t at = 0;
  const auto c = next(token, at);
  return at == token.size() && !is_letter(c) && !is_digit(c);
}

std::vector<std::string> tokenize(std::string_view text, bool to_lower) {
  std::vector<Letter> letters;
  for (std::size_t at = 0; at < text.size();) {
    auto c = next(text, at);
    if (c == 0x2019 || c == 0x2BC) c = '\'';  // one form of the apostrophe
    if (is_space(c)) c = ' ';
    if (!is_invisible(c)) letters.push_back(to_lower ? lower(c) : c);
  }
  std::vector<std::string> tokens;
  bool inside = false;  // inside a word
  for (std::size_t i = 0; i < letters.size(); ++i) {
    const auto c = letters[i];
    const auto before = i > 0 ? letters[i - 1] : ' ', after = i + 1 < letters.size() ? letters[i + 1] : ' ';
    const bool joins = (c == '\'' || c == '-') ? is_letter(before) && is_letter(after)
                                               : (c == '.' || c == ',') && is_digit(before) && is_digit(after);
    if (is_letter(c) || is_digit(c) || joins) {
      if (!inside) tokens.emplace_back();
      append(tokens.back(), c);
      inside = true;
      continue;
    }
    inside = false;
    if (c != ' ') append(tokens.emplace_back(), c);
  }
  return tokens;
}

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
