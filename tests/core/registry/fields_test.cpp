// A Config declares its settings and is read from them by the same lines.
#include "core/registry/fields.hpp"

#include <doctest/doctest.h>

namespace hardgrad::testing::fields_test {
namespace {

enum class Feed { teacher, sampled, soft };
constexpr Named<Feed> feeds[] = {{"teacher", Feed::teacher}, {"sampled", Feed::sampled}, {"soft", Feed::soft}};

struct Score {
  const char* name;
  double (*of)(double);
};
constexpr Score scores[] = {{"square", [](double x) { return x * x; }}, {"twice", [](double x) { return 2 * x; }}};

struct Shared {
  std::size_t width = 3;
  void declare(Fields& field) { field(width, "width", 1, 9, "of a layer"); }
};

struct Config {
  int samples = 4;
  double decay = 0.9, temperature = 1;
  bool shared = false;
  Feed feed = Feed::sampled;
  const Score* score = &scores[1];
  std::string words = "all", path;
  std::vector<double> t = {0.5};
  Shared layers;

  void declare(Fields& field) {
    field(samples, "samples", 2, 1e6, "draws").absent_means(1);
    field(decay, "decay", 0, 1, "of the average").above().below().absent_means(0.25);
    field.temperature(temperature, "temperature", "of the softmax");
    field(shared, "shared", "one logit").absent_means(true);
    field(feed, "feed", feeds, "the input").absent_means(Feed::soft);
    field(score, "score", scores, "how").absent_means(&scores[0]);
    field(words, "words", "which").absent_means("none");
    field.file(path, "path", "where");
    field(t, "t", "targets", "samples").absent_means({1, 2});
    layers.declare(field);
  }
};

Settings settings(const std::string& text) { return {"entry", declared<Config>(), Spec::parse(text)}; }

std::string refusal(const std::string& text) {
  try {
    read<Config>(settings(text));
  } catch (const UsageError& error) {
    return error.what();
  }
  return "accepted";
}

struct Entry {
  OfSettings<bool> biased = {};
  OfSettings<double, int, const std::string&> scaled = {};
};

bool by_name(const Settings& settings) { return settings.flag("shared"); }
bool by_member(const Config& config) { return config.shared; }

}  // namespace

TEST_CASE("fields: the settings of a Config, in order, with its defaults") {
  std::string all;
  for (const auto& info : declared<Config>())
    all += info.name + " " + info.type_name() + " " + to_string(info.fallback) + " " + info.range() + " " +
           (info.absent ? to_string(*info.absent) : "-") + (info.is_file ? " file" : "") + ": " + info.help + "\n";
  CHECK(all ==
        "samples integer 4 [2, 1000000] 1: draws\n"
        "decay real 0.9 (0, 1) 0.25: of the average\n"
        "temperature real 1 [1e-06, 1000000] -: of the softmax\n"
        "shared boolean false  true: one logit\n"
        "feed choice sampled teacher|sampled|soft soft: the input\n"
        "score choice twice square|twice square: how\n"
        "words text all  none: which\n"
        "path text   - file: where\n"
        "t reals 0.5 separated by ; 1;2: targets\n"
        "width integer 3 [1, 9] -: of a layer\n");
}

TEST_CASE("fields: the members have the settings' values") {
  const auto fallback = read<Config>(settings("entry"));
  CHECK(fallback.samples == 4);
  CHECK(fallback.feed == Feed::sampled);
  CHECK(fallback.t == std::vector(4, 0.5));
  const auto config = read<Config>(settings(
      "entry[samples=2,decay=0.5,temperature=2,shared=true,feed=teacher,score=square,words=few,path=a.txt,t=1;2,width=9]"));
  CHECK(config.samples == 2);
  CHECK(config.decay == 0.5);
  CHECK(config.temperature == 2);
  CHECK(config.shared);
  CHECK(config.feed == Feed::teacher);
  CHECK(config.score->of(3) == 9);
  CHECK(config.words == "few");
  CHECK(config.path == "a.txt");
  CHECK(config.t == std::vector<double>{1, 2});
  CHECK(config.layers.width == 9);
  CHECK(settings("entry[width=9,feed=sampled,score=square]").canonical() == "entry[score=square,width=9]");
}

TEST_CASE("fields: values outside their declaration are refused") {
  CHECK(refusal("entry[samples=1]") == "entry: samples must be at least 2, got 1");
  CHECK(refusal("entry[decay=0]") == "entry: decay must be above 0, got 0");
  CHECK(refusal("entry[decay=1]") == "entry: decay must be below 1, got 1");
  CHECK(refusal("entry[temperature=0]") == "entry: temperature must be at least 1e-06, got 0");
  CHECK(refusal("entry[feed=sampeld]") ==
        "entry: feed must be one of teacher, sampled, soft, got \"sampeld\" (did you mean \"sampled\"?)");
  CHECK(refusal("entry[score=cube]") == "entry: score must be one of square, twice, got \"cube\"");
  CHECK(refusal("entry[width=1.5]") == "entry: width must be an integer, got \"1.5\"");
  CHECK(refusal("entry[t=1;2;3]") == "entry: t must have 1 or samples=4 numbers, got 3");
}

TEST_CASE("fields: a value without a name is a bug") {
  struct Strange {
    Feed feed = static_cast<Feed>(7);
    void declare(Fields& field) { field(feed, "feed", feeds, "the input"); }
  };
  CHECK_THROWS_WITH_AS(declared<Strange>(), "this is a bug in hardgrad: the value of feed is not in its table", Bug);
  CHECK(name_of(Feed::soft, feeds) == std::string("soft"));
  CHECK_THROWS_AS(name_of(static_cast<Feed>(7), feeds), Bug);
}

TEST_CASE("fields: an entry's functions take settings or a Config") {
  const auto shared = settings("entry[shared=true]");
  CHECK_FALSE(Entry().biased);
  CHECK_FALSE(Entry{.biased = nullptr}.biased);
  for (const auto& entry : {Entry{.biased = by_name}, Entry{.biased = by_member},
                            Entry{.biased = [](const Config& config) { return config.shared; }}}) {
    REQUIRE(entry.biased);
    CHECK(entry.biased(shared));
    CHECK_FALSE(entry.biased(settings("entry")));
  }
  const Entry entry{.scaled = [](const Config& config, int by, const std::string& text) {
    return config.decay * by + static_cast<double>(text.size());
  }};
  CHECK(entry.scaled(shared, 10, "ab") == 11);
}

}  // namespace hardgrad::testing::fields_test
