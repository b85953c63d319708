// The translator: gradients, padding, branching, relaxed and enumerated answers, decoding.
#include <doctest/doctest.h>

#include "core/estimator/score_function/score_function.hpp"
#include "core/models/parts/dropout.hpp"
#include "tests/core/models/given_choices.hpp"

namespace hardgrad::testing::translator_test {
namespace {

const Dimensions dimensions{
    {"source_vocabulary", 6}, {"target_vocabulary", 5}, {"source_length", 5}, {"target_length", 4}, {"bos", 1}, {"eos", 2}};
const std::string sizes = "embedding=3,hidden=3,";
const std::string bahdanau =
    "translator[embedding=3,hidden=4,order=context_first,unit=gated,start=backward,readout=maxout,feed=";

Batch three_sentences(int padding = 0) {
  const int p = padding;
  Batch batch;
  batch.id = {4, 5, 6};
  batch.integers["source"] = shaped<int>({3, 4}, {3, 4, 5, 2, 4, 1, p, p, 5, 3, 3, p});
  batch.integers["source_length"] = shaped<int>({3}, {4, 2, 3});
  batch.integers["target"] = shaped<int>({3, 3}, {3, 4, 2, 2, p, p, 4, 2, p});
  batch.integers["target_length"] = shaped<int>({3}, {3, 1, 2});
  return batch;
}
const Options forced{{2, 1, 0}, {3, 0, 2}, {0, 0, 0}};

std::vector<std::string> specs() {
  std::vector<std::string> all;
  for (std::string score : {"additive", "dot", "general", "scaled_dot"})
    for (std::string feed : {"none", "soft", "sampled"})
      all.push_back("translator[" + sizes + "score=" + score + ",feed=" + feed + "]");
  for (std::string reading :
       {"source=reversed,feed=soft", "source=twice,feed=sampled", "encoder=forward,source=reversed,feed=sampled",
        "order=context_first,feed=sampled", "order=context_first,feed=soft,score=dot", "encoder=none,readout=context",
        "score=concat,feed=soft", "score=location,feed=sampled", "score=plain_dot,encoder=none",
        "score=dot,local=predictive,window=6", "feed=attentional,readout=state,score=general", "unit=gated,feed=attentional"})
    all.push_back("translator[" + sizes + reading + "]");
  for (std::string feed : {"sampled", "soft"}) all.push_back(bahdanau + feed + "]");
  return all;
}

}  // namespace

TEST_CASE("translator: gradients, padding, copies of rows and all outcomes") {
  for (const auto& spec : specs())
    check_model({.spec = spec,
                 .dimensions = dimensions,
                 .batch = three_sentences(),
                 .forced = forced,
                 .padded = {three_sentences(3)},
                 .outcomes = {64, 2, 9}});
}

TEST_CASE("translator: a window of one position on either side moves on with each word, and stays at the last position") {
  const auto model = lively("translator[" + sizes + "local=monotonic,window=1]", dimensions);
  Tape<double> tape;
  ForcedHandler<double> first(Options{{0, 0, 0}, {0, 0, 0}, {0, 0, 0}});
  Episode<double> episode(tape, first, 3);
  model->run(three_sentences(), episode);
  REQUIRE(episode.steps().size() == 3);
  for (int t = 1; t <= 3; ++t) {
    const auto& asked = episode.steps()[t - 1].question.categories();
    for (std::size_t r = 0; r < 3; ++r)
      for (int i = 1; asked.options()[r] > 1 && i <= asked.options()[r]; ++i) {
        const bool within = std::abs(i - std::min(t, asked.options()[r])) <= 1;
        CHECK((std::exp(asked.log_p().value()(r, i - 1)) > 0) == within);
      }
  }
}

TEST_CASE("translator: hard and relaxed answers may alternate within a run") {
  struct Alternating final : Handler<double> {
    ForcedHandler<double> hard{forced};
    ForcedWeights weights{forced, 1.0};
    Choice<double> choose(Tape<double>& tape, const Question<double>& question) override {
      return question.step % 2 ? weights.choose(tape, question) : hard.choose(tape, question);
    }
  };
  for (const auto& spec : specs()) {
    CAPTURE(spec);
    const auto model = lively(spec, dimensions);
    ForcedHandler<double> hard(forced);
    Alternating mixed;
    const auto a = losses(*model, three_sentences(), hard), b = losses(*model, three_sentences(), mixed);
    for (int n = 0; n < 3; ++n) CHECK(a[n] == doctest::Approx(b[n]).epsilon(1e-12));
  }
}

TEST_CASE("translator: fed with expectations, soft and sampled feeding are the same network") {
  auto soft = lively("translator[" + sizes + "feed=soft]", dimensions);
  auto sampled = lively("translator[" + sizes + "feed=sampled]", dimensions);
  CHECK(soft->structure().dependence() == "factorised");
  CHECK(sampled->structure().dependence() == "sequential");
  ExpectedHandler<double> handler;
  const auto a = losses(*soft, three_sentences(), handler), b = losses(*sampled, three_sentences(), handler);
  for (int n = 0; n < 3; ++n) CHECK(a[n] == doctest::Approx(b[n]).epsilon(1e-12));
}

TEST_CASE("translator: teacher forcing with its own answers repeats a free run") {
  for (const auto& spec : specs()) {
    CAPTURE(spec);
    const auto model = lively(spec, dimensions);
    auto batch = three_sentences();
    const auto decode = [&](bool freely) {
      GreedyHandler<double> handler;
      Tape<double> tape;
      Episode<double> episode(tape, handler, 3);
      if (freely) episode.run_freely();
      model->run(batch, episode);
      std::vector<std::vector<int>> said;
      for (const auto& p : episode.predictions()) said.push_back(p.label);
      return said;
    };
    const auto free = decode(true);
    REQUIRE(!free.empty());
    REQUIRE(free.size() <= 4);
    Array<int> target = zeros<int>({3, free.size()}), length = zeros<int>({3});
    for (int b = 0; b < 3; ++b)
      for (std::size_t t = 0; t < free.size(); ++t) {
        row_of(target, b)[t] = std::max(free[t][b], 0);
        length(b) += free[t][b] >= 0;
      }
    batch.integers["target"] = target;
    batch.integers["target_length"] = length;
    CHECK(decode(false) == free);
  }
}

TEST_CASE("translator: float agrees with double") {
  const std::string spec = "translator[" + sizes + "feed=sampled]";
  auto wide = make_model<double>(Spec::parse(spec), dimensions, Key(3));
  auto narrow = make_model<float>(Spec::parse(spec), dimensions, Key(3));
  ForcedHandler<double> handler(forced);
  ForcedHandler<float> narrow_handler(forced);
  const auto loss = losses(*wide, three_sentences(), handler);
  Tape<float> tape;
  Episode<float> episode(tape, narrow_handler, 3);
  narrow->run(three_sentences(), episode);
  std::vector<double> total(3);
  for (const auto& cost : episode.costs())
    for (int b = 0; b < 3; ++b) total[b] += cost.loss.value().data[b];
  for (int b = 0; b < 3; ++b) CHECK(total[b] == doctest::Approx(loss[b]).epsilon(1e-5));
}

namespace {

/// The gradient of a surrogate of sampled costs: their means, or other weights; `claimed` is the model's hint. `meddle` changes
/// the output layer's bias after the forward pass: only recomputed logits would show it.
std::vector<double> sampled_gradient(Model<double>& model, const Batch& batch, Costs claimed, bool means, bool meddle = false) {
  Tape<double> tape;
  KeyedRandomness random(Key(3));
  Sampled<double> sampled({tape, model, batch, random}, 6, claimed);
  const auto surrogate = means ? sampled.path() : mixture(sampled.episode());
  auto& bias = model.parameters().find("output.bias")->value.storage();
  const auto kept = bias;
  if (meddle) bias[0] += 1;
  tape.backward_to_leaves(surrogate);
  bias = kept;
  std::vector<double> gradient(model.parameters().size());
  tape.add_gradient(model.parameters(), std::span<double>(gradient));
  return gradient;
}

}  // namespace

TEST_CASE("translator: with the hint of averaged costs, each row's share is right, and no logits are recomputed") {
  const auto batch = three_sentences();  // 6 samples of up to 4 options: rows are shared
  for (const auto& spec : specs()) {
    CAPTURE(spec);
    auto model = lively(spec, dimensions);
    const auto plain = sampled_gradient(*model, batch, Costs::weighted, true);
    CHECK(distance(plain, sampled_gradient(*model, batch, Costs::averaged, true)) < 1e-14);
    CHECK(distance(plain, sampled_gradient(*model, batch, Costs::averaged, true, true)) < 1e-14);
    // A wrong hint: the same gradient, from recomputed logits.
    const auto other = sampled_gradient(*model, batch, Costs::weighted, false);
    CHECK(distance(other, sampled_gradient(*model, batch, Costs::averaged, false)) < 1e-12);
    CHECK(distance(other, sampled_gradient(*model, batch, Costs::averaged, false, true)) > 1e-4);
  }
}

namespace {

/// The batch with reversed, or repeated, sources.
Batch written(const Batch& batch, bool backwards) {
  auto result = batch;
  const auto& source = batch.ints("source");
  const std::size_t B = source.shape()[0], L = source.shape()[1];
  Array<int> changed = zeros<int>({B, 2 * L});
  for (std::size_t b = 0; b < B; ++b) {
    int& n = result.integers["source_length"](b);
    for (int i = 0; i < n; ++i) {
      changed(b, i) = source(b, backwards ? n - 1 - i : i);
      if (!backwards) changed(b, n + i) = source(b, i);
    }
    if (!backwards) n *= 2;
  }
  result.integers["source"] = std::move(changed);
  return result;
}

}  // namespace

TEST_CASE("translator: without attention there is no choice, and the decoder reads the encoder's end") {
  const auto batch = three_sentences();
  for (const std::string encoder : {"bidirectional", "forward"})
    for (const std::string feed : {"none", "soft"}) {
      const auto spec = [&](const std::string& source) {
        return "translator[" + sizes + "attention=none,encoder=" + encoder + ",feed=" + feed + ",source=" + source + "]";
      };
      CAPTURE(spec("forward"));
      auto model = lively(spec("forward"), dimensions);
      CHECK(model->structure().dependence() == "no choice");
      CHECK(model->structure().answer_sampler);
      for (const auto& p : model->parameters()) CHECK_FALSE(p.name.starts_with("attention."));
      check_gradient("plain", *model, batch, [] { return std::make_unique<ForcedHandler<double>>(Options{}); });

      const auto run = [&](const std::string& source, const Batch& data) {
        ForcedHandler<double> none({});
        return losses(*lively(spec(source), dimensions), data, none);
      };
      const auto plain = run("forward", batch), backwards = run("reversed", batch), twice = run("twice", batch);
      for (int b = 0; b < 3; ++b) {
        CHECK(backwards[b] == doctest::Approx(run("forward", written(batch, true))[b]).epsilon(1e-12));
        CHECK(twice[b] == doctest::Approx(run("forward", written(batch, false))[b]).epsilon(1e-12));
        CHECK(run("twice", batch.select({b}))[0] == doctest::Approx(twice[b]).epsilon(1e-12));
        CHECK(std::abs(backwards[b] - plain[b]) > 1e-6);
        CHECK(std::abs(twice[b] - plain[b]) > 1e-6);
      }
    }
  CHECK_THROWS_AS(lively("translator[" + sizes + "attention=none,heads=3]", dimensions), UsageError);
  CHECK_THROWS_AS(lively("translator[" + sizes + "attention=none,null=true]", dimensions), UsageError);
}

TEST_CASE("translator: a position is a word of the source, in any reading order") {
  const std::string spec = "translator[" + sizes + "feed=sampled,source=";
  const auto batch = three_sentences();
  ForcedHandler<double> here(forced);
  const auto reversed = losses(*lively(spec + "reversed]", dimensions), batch, here);
  auto mirrored = forced;
  for (auto& step : mirrored)
    for (int b = 0; b < 3; ++b) step[b] = std::max(batch.ints("source_length")(b) - 1 - step[b], 0);
  ForcedHandler<double> there(mirrored);
  const auto backwards = losses(*lively(spec + "forward]", dimensions), written(batch, true), there);
  CHECK(reversed[0] == doctest::Approx(backwards[0]).epsilon(1e-12));
  CHECK(reversed[2] == doctest::Approx(backwards[2]).epsilon(1e-12));
}

TEST_CASE("translator: the null position is an additional choice, after the last word") {
  for (const auto& spec :
       {"translator[" + sizes + "null=true,feed=sampled]", "translator[" + sizes + "null=true,score=dot,source=twice]"}) {
    CAPTURE(spec);
    auto model = lively(spec, dimensions);
    CHECK(model->structure().sites[0].options == 6);
    CHECK(model->outcomes(three_sentences()) == std::vector<double>{125, 3, 16});
    const Options null{{4, 2, 0}, {3, 0, 3}, {4, 0, 0}};
    check_gradient("forced", *model, three_sentences(), [&] { return std::make_unique<ForcedHandler<double>>(null); });
    auto moved = lively(spec, dimensions);
    for (double& x : moved->parameters().find("attention.null.weight")->value) x += 0.1;
    for (auto* options : {&null, &forced}) {
      ForcedHandler<double> one(*options), other(*options);
      const auto a = losses(*model, three_sentences(), one), b = losses(*moved, three_sentences(), other);
      CHECK((std::abs(a[0] - b[0]) > 1e-6) == (options == &null));  // only if it is read
    }
  }
}

TEST_CASE("translator: with order=context_first the first word's attention does not see the start symbol") {
  for (const std::string order : {"state_first", "context_first"})
    for (const std::string feed : {"soft", "sampled"}) {
      CAPTURE(order);
      const auto spec = "translator[" + sizes + "order=" + order + ",feed=" + feed + "]";
      const auto log_p = [&](const Model<double>& model) {
        Tape<double> tape;
        ForcedHandler<double> handler(forced);
        Episode<double> episode(tape, handler, 3);
        model.run(three_sentences(), episode);
        return episode.log_probability(0).value().data[0];
      };
      const auto model = testing::lively(spec, dimensions), moved = testing::lively(spec, dimensions);
      for (double& x : row_of(moved->parameters().find("decoder.embedding.weight")->value, 1)) x += 0.5;  // bos
      CHECK((std::abs(log_p(*model) - log_p(*moved)) < 1e-12) == (order == "context_first"));
    }
  CHECK_THROWS_WITH_AS(testing::lively("translator[" + sizes + "order=context_first]", dimensions),
                       doctest::Contains("give attention=source and feed=soft or feed=sampled"), UsageError);
  CHECK_THROWS_WITH_AS(testing::lively("translator[" + sizes + "order=context_first,feed=attentional]", dimensions),
                       doctest::Contains("give attention=source and feed=soft or feed=sampled"), UsageError);
}

TEST_CASE("translator: input feeding carries a choice on, and settings that do not fit are refused") {
  // The first word's position changes the second word's attention only where u_1 is fed.
  for (const std::string feed : {"none", "soft", "attentional"}) {
    CAPTURE(feed);
    const auto model = testing::lively("translator[" + sizes + "feed=" + feed + "]", dimensions);
    const auto second = [&](int first) {
      Tape<double> tape;
      auto choices = forced;
      choices[0][0] = first;
      ForcedHandler<double> handler(choices);
      Episode<double> episode(tape, handler, 3);
      model->run(three_sentences(), episode);
      return episode.steps()[1].question.categories().log_p().value()(0, 0);
    };
    CHECK((std::abs(second(0) - second(1)) > 1e-9) == (feed == "attentional"));
  }
  const auto refused = [&](const std::string& settings, const char* why) {
    CHECK_THROWS_WITH_AS(testing::lively("translator[" + settings + "]", dimensions), doctest::Contains(why), UsageError);
  };
  refused("hidden=3,readout=maxout", "hidden=3 must be even");
  refused("start=backward,encoder=forward", "give encoder=bidirectional");
  refused("attention=none,feed=attentional", "give attention=source or another feed");
}

TEST_CASE("translator: dropout depends on the example, and a batch without a key has none") {
  const std::string spec = "translator[" + sizes + "feed=sampled,dropout=";
  testing::check_dropout(spec, dimensions, three_sentences(), forced, {"annotation", "readout"});
  const auto model = testing::lively(spec + "0.4]", dimensions);
  auto batch = three_sentences(), later = batch;
  add_dropout(batch, Key(3));
  add_dropout(later, Key(4));
  Tape<double> tape;  // a rewound tape keeps values that no choice affects: not those of another key
  for (const auto* data : {&batch, &later}) {
    ForcedHandler<double> handler(forced);
    tape.rewind();
    Episode<double> episode(tape, handler, 3);
    model->run(*data, episode);
    double total = 0;
    for (const auto& cost : episode.costs())
      for (std::size_t r = 0; r < 3; ++r) total += cost.loss.value().data[r];
    ForcedHandler<double> again(forced);
    const auto fresh = losses(*model, *data, again);
    CHECK(total == doctest::Approx(fresh[0] + fresh[1] + fresh[2]).epsilon(1e-12));
  }
}

}  // namespace hardgrad::testing::translator_test
