// Specs parse strictly; settings reject undeclared parameters; every error message names a remedy.
#include "core/registry/settings.hpp"

#include <doctest/doctest.h>

#include "core/registry/registry.hpp"
#include "core/support/error.hpp"
#include "experiments/support/text.hpp"

namespace hardgrad::testing::settings_test {
namespace {

const std::vector<ParameterInfo> declared = {
    ParameterInfo::integer("samples", 2, 2, std::numeric_limits<double>::infinity(), "draws"),
    ParameterInfo::real("decay", 0.9, 0, 1, "of the average").below(),
    ParameterInfo::real("temperature", 1, 0, 10, "of the softmax").above(),
    ParameterInfo::flag("shared", false, "one logit"),
    ParameterInfo::choice("score", "additive", {"additive", "dot"}, "how"),
    ParameterInfo::text("path", "", "where"),
    ParameterInfo::reals("t", {0.5}, "targets"),
};

Settings settings(const std::string& text) { return Settings("rloo", declared, Spec::parse(text)); }

std::string refusal(const std::string& text) {
  try {
    settings(text);
  } catch (const UsageError& error) {
    CHECK(error.exit_status() == 2);
    return error.what();
  }
  return "accepted";
}

struct Entry {
  static constexpr const char* noun = "estimator";
  std::string name;
  std::vector<ParameterInfo> parameters;
};

}  // namespace

TEST_CASE("a spec is parsed into name and arguments") {
  const auto spec = Spec::parse("bits[bits=3, t=0.6;0.51 ,shared=true]");
  CHECK(spec.name == "bits");
  REQUIRE(spec.arguments.size() == 3);
  CHECK(spec.arguments[1] == std::pair<std::string, std::string>("t", "0.6;0.51"));
  CHECK(spec.text == "bits[bits=3, t=0.6;0.51 ,shared=true]");
  CHECK(Spec::parse("soft").arguments.empty());
  CHECK(Spec::parse("soft[]").arguments.empty());
  CHECK(Spec::parse("a[path=\"x,y]\\\"z\"]").arguments[0].second == "x,y]\"z");
}

TEST_CASE("the error message of a broken spec names the column") {
  const auto column = [](const std::string& text) -> std::string {
    try {
      Spec::parse(text);
    } catch (const UsageError& error) {
      const std::string what = error.what();
      const auto at = what.find("column ");
      return what.substr(at + 7, what.find(':', at) - at - 7);
    }
    return "accepted";
  };
  CHECK(column("") == "1");
  CHECK(column("[samples=4]") == "1");
  CHECK(column("rloo(samples=4)") == "5");
  CHECK(column("rloo[samples=4") == "15");
  CHECK(column("rloo[samples]") == "13");
  CHECK(column("rloo[samples=]") == "14");
  CHECK(column("rloo[=4]") == "6");
  CHECK(column("rloo[samples=4,]") == "16");
  CHECK(column("rloo[samples=4]x") == "16");
  CHECK(column("rloo[samples=4,samples=5]") == "16");
  CHECK(column("rloo[path=\"abc]") == "11");
  CHECK(column("rloo[path=a[b]]") == "12");
  CHECK(column("rloo[") == "6");
}

TEST_CASE("settings hold defaults and given values") {
  const auto s = settings("rloo[samples=4,decay=0,shared=true,score=dot,path=a b,t=0.6;-1e-3]");
  CHECK(s.integer("samples") == 4);
  CHECK(s.real("decay") == 0.0);
  CHECK(s.real("temperature") == 1.0);
  CHECK(s.flag("shared"));
  CHECK(s.text("score") == "dot");
  CHECK(s.text("path") == "a b");
  CHECK(s.reals("t") == std::vector<double>{0.6, -1e-3});
  CHECK(settings("rloo[t=2]").reals("t") == std::vector<double>{2});
  CHECK(settings("rloo[decay=+0.5]").real("decay") == 0.5);
  CHECK_THROWS_AS(s.integer("decay"), Bug);
  CHECK_THROWS_AS(s.integer("nothing"), Bug);
}

TEST_CASE("the canonical spec names values that differ from the default, in order of declaration, and parses back") {
  CHECK(settings("rloo").canonical() == "rloo");
  CHECK(settings("rloo[samples=2]").canonical() == "rloo");
  CHECK(settings("rloo[t=1;2,decay=0.25,samples=4]").canonical() == "rloo[samples=4,decay=0.25,t=1;2]");
  const auto awkward = settings("rloo[path=\"a,\\\"b]\"]");
  CHECK(settings(awkward.canonical()).text("path") == "a,\"b]");
  CHECK(settings(settings("rloo[decay=0.1]").canonical()).real("decay") == 0.1);
}

TEST_CASE("identity lines: an added setting changes none at its neutral value, a changed default changes one") {
  using P = ParameterInfo;
  const auto real = [](double fallback) { return P::real("decay", fallback, 0, 1, "of the average"); };
  const auto lines = [](const std::vector<P>& parameters, const std::string& spec = "x") {
    return identity_lines("model.", parameters, Settings("x", parameters, Spec::parse(spec)).values());
  };
  const std::vector<P> before = {P::integer("samples", 2, 1, 9, "draws"), real(0.5)};
  CHECK(lines(before) == "model.samples=2\nmodel.decay=0.5\n");
  for (const auto& added : {P::flag("shared", false, "one logit").absent_means(false),
                            P::text("way", "old", "how").absent_means(std::string("old")),
                            P::reals("t", {0.5}, "targets").absent_means(std::vector{0.5}),
                            P::integer("after", 3, 0, 9, "steps").absent_means(std::int64_t{3})}) {
    auto now = before;
    now.insert(now.begin() + 1, added);
    CHECK(lines(now) == lines(before));
  }
  auto other = before;
  other.push_back(P::integer("after", 3, 0, 9, "steps").absent_means(std::int64_t{0}));  // programs before did 0
  CHECK(lines(other) == lines(before) + "model.after=3\n");
  CHECK(lines(other, "x[after=0]") == lines(before));
  CHECK(lines({before[0], real(0.9)}) != lines(before));                  // another default
  CHECK(lines({before[0], real(0.9)}, "x[decay=0.5]") == lines(before));  // the same network, spelled otherwise
}

TEST_CASE("error messages name the fault and a remedy") {
  CHECK(refusal("rloo[samples=1]") == "rloo: samples must be at least 2, got 1");
  CHECK(refusal("rloo[decay=1]") == "rloo: decay must be below 1, got 1");
  CHECK(refusal("rloo[temperature=0]") == "rloo: temperature must be above 0, got 0");
  CHECK(refusal("rloo[temperature=11]") == "rloo: temperature must be at most 10, got 11");
  CHECK(refusal("rloo[sampels=3]") == "rloo: unknown parameter \"sampels\" (did you mean \"samples\"?)");
  CHECK(refusal("rloo[score=dott]") == "rloo: score must be one of additive, dot, got \"dott\" (did you mean \"dot\"?)");
  for (const auto* bad : {"4.0", "4x", "x", "1e3", "0x10", "++4", "99999999999999999999"})
    CHECK(refusal(std::string("rloo[samples=") + bad + "]").starts_with("rloo: samples must be an integer"));
  CHECK(refusal("rloo[samples=3000000000]") == "rloo: samples must be at most 2147483647, got 3000000000");
  for (const auto* bad : {"nan", "inf", "-inf", "0.5x", "1e999", "0,5"})
    CHECK(refusal(std::string("rloo[decay=\"") + bad + "\"]").starts_with("rloo: decay must be a finite number"));
  CHECK(refusal("rloo[shared=yes]") == "rloo: shared must be true or false, got \"yes\"");
  CHECK(refusal("rloo[t=1;;2]").starts_with("rloo: t must be finite numbers separated by ';'"));
  CHECK(refusal("rloo[t=1;nan]").starts_with("rloo: t must be finite numbers"));
  CHECK_THROWS_WITH_AS(Settings("soft", {}, Spec::parse("soft[a=1]")), "soft: unknown parameter \"a\" (it takes none)",
                       UsageError);
}

TEST_CASE("types, ranges and values are listed") {
  CHECK(declared[0].type_name() == "integer");
  CHECK(declared[0].range() == "[2, inf)");
  CHECK(declared[1].range() == "[0, 1)");
  CHECK(declared[2].range() == "(0, 10]");
  CHECK(declared[3].range() == "");
  CHECK(declared[4].range() == "additive|dot");
  CHECK(to_string(Value{true}) == "true");
  CHECK(to_string(Value{std::int64_t{-3}}) == "-3");
  CHECK(to_string(Value{0.1}) == "0.1");
  CHECK(to_string(Value{std::vector<double>{1, 0.5}}) == "1;0.5");
}

TEST_CASE("the nearest name is suggested only if it is near enough") {
  const std::vector<std::string> names = {"rloo", "reinforce", "variational_bound", "soft", "exact", "exact_marginal"};
  CHECK(nearest("rlo", names) == "rloo");
  CHECK(nearest("rolo", names) == "rloo");
  CHECK(nearest("REINFORCE", names) == "reinforce");
  CHECK(nearest("variational", names) == "variational_bound");
  CHECK(nearest("exakt", names) == "exact");
  CHECK_FALSE(nearest("zzz", names));
  CHECK(nearest("lr", {"momentum", "learning_rate", "own_learning_rate"}) == "learning_rate");
  CHECK(nearest("lr", {"train.steps", "train.learning_rate"}) == "train.learning_rate");
  CHECK_FALSE(nearest("lr", {"learning_rate", "loss_ratio"}));  // not if several have these initials
  CHECK_FALSE(nearest("", names));
  CHECK_FALSE(nearest(std::string(100000, 'a'), names));
  CHECK(did_you_mean("zzz", {"a", "b"}) == " (there are: a, b)");
  CHECK(did_you_mean("zzz", {}) == " (there are none)");
}

TEST_CASE("a registry finds by name and suggests") {
  Registry<Entry> registry;
  registry.add({"rloo", {}});
  CHECK(registry.at("rloo").name == "rloo");
  CHECK_THROWS_WITH_AS(registry.at("rlo"), "unknown estimator \"rlo\" (did you mean \"rloo\"?)", UsageError);
  CHECK_THROWS_AS(registry.add({"rloo", {}}), Bug);
}

TEST_CASE("for a long spec the error message quotes the text around the fault, and is one line") {
  const std::string many(100000, 'r'), accents = [] {
    std::string text;
    for (int i = 0; i < 50000; ++i) text += "é";
    return text;
  }();
  int asked = 0;
  for (const auto& text :
       {many, many + "[", "rloo[" + many + "=2]", "rloo[samples=" + many + "]", "rloo[samples=1" + std::string(300, '0') + "]",
        "rloo[score=" + many + "]", "rloo[t=" + many + "]", "rloo[path=" + many + "[]", "rloo[path=" + accents + "[]", accents,
        "rloo[path=\"" + accents + "\"x]"}) {
    const auto said = refusal(text);
    CHECK(said != "accepted");
    CHECK(said.size() < 500);
    CHECK(is_utf8(said));
    ++asked;
  }
  CHECK(asked == 11);
  CHECK(refusal("rloo[path=" + many + "[]").find("rrr[]\": column 100011: '[' inside a value") != std::string::npos);
  CHECK(refusal(many).find("got a word of 100000 characters") != std::string::npos);
}

}  // namespace hardgrad::testing::settings_test
