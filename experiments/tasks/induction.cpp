// Induction: what followed this token before?
//
//   kind=once      x_1 .. a b .. a        one label, b, at the last token; a is nowhere else, and other tokens are drawn anew
//   kind=repeated  x_1 .. x_n x_1 .. x_n  labels x_2 .. x_n at the tokens n + 1 .. 2 n - 1 (length = 2 n, or one less)
//
// Olsson et al. 2022, In-context learning and induction heads: heads that complete [A][B] .. [A] with [B], and sequences of
// random tokens that are repeated.
#include <fmt/format.h>

#include "experiments/tasks/draws.hpp"
#include "experiments/tasks/token_labels.hpp"

namespace hardgrad::tasks::induction {
namespace {

enum class Kind { once, repeated };
constexpr Named<Kind> kinds[] = {{"once", Kind::once}, {"repeated", Kind::repeated}};

struct Config {
  Kind kind = Kind::once;
  int length = 16, vocabulary = 8;
  SplitSizes sizes{.examples = 100000, .heldout = 500, .test = 500};

  void declare(Fields& field) {
    field(kind, "kind", kinds, "one token that comes again at the end, or the whole sequence again");
    field(length, "length", 3, 100000, "tokens of a sequence");
    field(vocabulary, "vocabulary", 2, 100000, "different tokens");
    sizes.declare(field, "sequences");
  }
};

class Induction final : public TokenLabels {
 public:
  Induction(const Config& config, Key key) : TokenLabels(config.sizes), key_(key / "induction"), config_(config) {
    if (config.kind == Kind::repeated && config.length < 4)
      throw UsageError(fmt::format("induction: kind=repeated needs length=4 or more, not {}", config.length));
  }
  Dimensions dimensions() const override {
    return {{"tokens", config_.vocabulary}, {"positions", config_.length}, {"labels", config_.vocabulary}};
  }
  std::string word(const std::string& field, int number) const override {
    return (field == "token" || field == "label") && number >= 0 ? std::to_string(number) : std::string();
  }

 protected:
  TokenSequence sequence(std::uint32_t id) const override {
    Draws draw(key_, id);
    const int T = config_.length, V = config_.vocabulary;
    TokenSequence made;
    if (config_.kind == Kind::repeated) {
      const int n = T / 2;
      for (int t = 0; t < n; ++t) made.add(draw.below(V));
      for (int t = 0; t < n; ++t) made.add(made.token[t], t + 1 < n ? made.token[t + 1] : -1);
      return made;
    }
    const int a = draw.below(V), at = draw.below(T - 2);
    for (int t = 0; t + 1 < T; ++t) {
      const int other = draw.below(V - 1);  // not a
      made.add(t == at ? a : other + (other >= a));
    }
    made.add(a, made.token[at + 1]);
    return made;
  }

 private:
  Key key_;
  Config config_;
};

const TaskEntry entry = {
    .name = "induction",
    .summary = "sequences of random tokens: what followed the last token before?",
    .data = "generated",
    .default_model = "transformer",
    .parameters = declared<Config>(),
};
HARDGRAD_TASK(Induction, entry)

}  // namespace
}  // namespace hardgrad::tasks::induction
