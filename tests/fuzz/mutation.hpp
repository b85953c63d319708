// Makes inputs from others: flips bits, deletes and doubles pieces, inserts pieces of other inputs and extreme numbers.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace hardgrad::fuzz {

class Mutator {
 public:
  Mutator(std::uint64_t seed, std::vector<std::string> words) : dice_(seed), words_(std::move(words)) {}
  std::size_t below(std::size_t n) { return n ? dice_() % n : 0; }

  /// One to eight changes of `bytes`, more often few than many; some insert pieces of `other`.
  std::string mutate(std::string bytes, const std::string& other) {
    for (auto left = 1 + below(1 + below(8)); left > 0; --left) change(bytes, other);
    if (bytes.size() > largest) bytes.resize(largest);
    return bytes;
  }

 private:
  static constexpr std::size_t largest = 1 << 16;

  void change(std::string& bytes, const std::string& other) {
    static const std::vector<std::string> telling = {"0",
                                                     "-1",
                                                     "1e999",
                                                     "nan",
                                                     "-0.0",
                                                     "2147483648",
                                                     "4294967295",
                                                     "18446744073709551616",
                                                     "99999999999999999999999",
                                                     "\r\n",
                                                     "\n\n",
                                                     "\t",
                                                     "\xff",
                                                     std::string(1, 0),
                                                     "\xEF\xBB\xBF",
                                                     "\xED\xA0\x80",
                                                     "\"",
                                                     ",,",
                                                     "[[[[[[[["};
    const auto at = below(bytes.size() + 1), length = below(1 + below(bytes.size() - at + 1));
    switch (below(9)) {
      case 0:
        if (at < bytes.size()) bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8)));
        break;
      case 1:
        if (at < bytes.size()) bytes[at] = static_cast<char>(dice_());
        break;
      case 2: bytes.erase(at, length); break;
      case 3: bytes.insert(at, bytes.substr(at, length)); break;
      case 4: bytes.insert(at, telling[below(telling.size())]); break;
      case 5: {
        const auto from = below(other.size() + 1);
        bytes.replace(at, length, other.substr(from, below(other.size() - from + 1)));
        break;
      }
      case 6: bytes.resize(at); break;
      case 7: {
        std::string number(std::size_t{1} << below(4), '\0');  // 1, 2, 4 or 8 bytes: extreme values
        const char ends[] = {'\x00', '\x7f', '\x80', '\xff'};
        for (auto& byte : number) byte = ends[below(4)];
        bytes.replace(at, std::min(number.size(), bytes.size() - at), number);
        break;
      }
      default:
        if (!words_.empty()) bytes.insert(at, words_[below(words_.size())]);
        for (std::size_t i = 0, copies = below(50) ? 0 : below(3000); i < copies && bytes.size() < largest; ++i)
          bytes.insert(at, bytes.substr(at, 1 + length));
    }
  }

  std::mt19937_64 dice_;
  std::vector<std::string> words_;
};

}  // namespace hardgrad::fuzz
