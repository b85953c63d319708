// The kinds of algorithms that the task `algorithm` teaches, and their examples.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "experiments/tasks/draws.hpp"
#include "experiments/tasks/on_demand.hpp"

namespace hardgrad::tasks::algorithm {

/// One example, built step by step: first the inputs, then the wanted answers.
class Script {
 public:
  Script(std::size_t inputs, std::size_t outputs) : inputs_(inputs), outputs_(outputs) {}
  /// A step with the input `bits`, and `value` on channel `channel`.
  void show(std::span<const int> bits, std::size_t channel = 0, double value = 0) {
    input.insert(input.end(), bits.begin(), bits.end());
    input.resize(++steps * inputs_);
    answer.resize(steps * outputs_, -1);
    if (value != 0) input[(steps - 1) * inputs_ + channel] = value;
  }
  /// A step with a mark only.
  void mark(std::size_t channel, double value = 1) { show({}, channel, value); }
  /// A step with the input `bits` and the answer `next`.
  void predict(std::span<const int> bits, std::span<const int> next) {
    show(bits);
    std::copy(next.begin(), next.end(), answer.end() - static_cast<std::ptrdiff_t>(outputs_));
  }
  /// A step without input and with the answer `bits`, padded with 0.
  void want(std::span<const int> bits) {
    show({});
    std::fill(answer.end() - static_cast<std::ptrdiff_t>(outputs_), answer.end(), 0);
    std::copy(bits.begin(), bits.end(), answer.end() - static_cast<std::ptrdiff_t>(outputs_));
  }
  void want_end() {
    want({});
    answer.back() = 1;
  }

  std::vector<double> input;  // [steps, inputs]
  std::vector<int> answer;    // [steps, outputs]
  std::size_t steps = 0;

 private:
  std::size_t inputs_, outputs_;
};

struct Config;
struct Example;
/// For the longest example of n vectors (items of associative recall): a number of steps or vectors.
using Count = std::size_t (*)(const Config&, std::size_t n);
constexpr Count all_vectors = [](const Config&, std::size_t n) { return n; };
constexpr Count all_and_mark = [](const Config&, std::size_t n) { return n + 1; };

struct Kind {
  const char* name;
  void (*make)(Example&);
  std::size_t marks = 1;       // channels of marks in the input
  std::size_t ends = 0;        // bits of an answer beside those of a vector
  Count shown = all_and_mark;  // steps before the first answer
  Count wanted = all_vectors;  // steps with an answer
  Count kept = all_vectors;    // vectors that are all shown before the first answer, which needs them; 0: there are none
  std::string (*too_short)(const Config&) = nullptr;  // the fault of min_length, or empty
};
extern const Kind kinds[7];

struct Config {
  const Kind* kind = &kinds[0];
  std::size_t bits = 8, min_length = 1, max_length = 20, longer = 0, repeats = 10, context = 5;
  std::uint64_t curriculum = 0;
  SplitSizes sizes{.examples = 100000, .heldout = 500, .test = 500};

  void declare(Fields& field) {
    field(kind, "kind", kinds, "the algorithm to learn");
    field(bits, "bits", 1, 64, "bits per vector");
    field(min_length, "min_length", 1, 1000, "fewest vectors of a sequence (items of associative_recall)");
    field(max_length, "max_length", 1, 1000, "most vectors of a training sequence");
    field(longer, "longer", 0, 1000, "vectors of every second test sequence; 0: all have max_length");
    field(repeats, "repeats", 1, 100, "most repetitions of repeat_copy, and those of all test sequences");
    field(context, "context", 1, 16, "kind=ngrams: bits on which the next one depends");
    field(curriculum, "curriculum", 0, 1e9,
          "training sequences over which the maximum length grows to max_length; 0: no curriculum");
    sizes.declare(field, "sequences");
  }
};

/// One example of n vectors (items), as it is made.
struct Example {
  const Config& config;
  Draws draw;
  std::size_t n;
  bool test;
  Script script;

  std::vector<std::vector<int>> vectors(std::size_t count) {
    std::vector<std::vector<int>> all(count, std::vector<int>(config.bits));
    for (auto& vector : all)
      for (int& bit : vector) bit = static_cast<int>(draw.below(2));
    return all;
  }
};

}  // namespace hardgrad::tasks::algorithm
