// Dreams have the distribution of the model, and wake_sleep has the mean of its definition.
#include <doctest/doctest.h>

#include "core/autodiff/elementwise.hpp"
#include "core/choice/handlers.hpp"
#include "core/estimator/enumeration/objectives.hpp"
#include "core/estimator/enumeration/outcomes.hpp"
#include "core/estimator/importance/importance.hpp"
#include "core/models/parts/answer_sampler.hpp"
#include "experiments/measurement/noise_enumerator.hpp"
#include "tests/core/models/model_check.hpp"
#include "tests/support/exactness.hpp"

namespace hardgrad::testing::dream_test {
using namespace measurement;
namespace {

struct Case {
  std::string name;
  std::unique_ptr<Model<double>> model;
  Batch batch;
};

/// One of each kind of observation, with ragged examples: an answer, a label, a sentence (with up to `most_heads` heads of
/// attention), pixels.
std::vector<Case> cases(int most_heads = 1) {
  std::vector<Case> all;
  Batch story;
  story.id = {3, 8};
  story.integers["story"] = shaped<int>({2, 3, 2}, {1, 2, 3, 4, 2, 1, 4, 4, 2, 3, 0, 0});
  story.integers["story_length"] = shaped<int>({2}, {3, 2});
  story.integers["question"] = shaped<int>({2, 2}, {2, 4, 1, 3});
  story.integers["answer"] = shaped<int>({2}, {1, 0});
  for (const auto* hops : {"1", "2"})
    all.push_back(
        {std::string("memory_reader, hops ") + hops,
         testing::lively(std::string("memory_reader[embedding=3,hops=") + hops + "]",
                         {{"vocabulary", 5}, {"answers", 3}, {"answer_word", 1}, {"sentences", 3}, {"words", 2}}, true),
         story});
  Batch image;
  image.id = {1, 2};
  image.reals["image"] = zeros<double>({2, 4, 4});
  for (std::size_t i = 0; i < 32; ++i) image.reals["image"].flat(i) = 0.1 * static_cast<double>((7 * i) % 11);
  image.integers["label"] = shaped<int>({2}, {2, 0});
  for (const auto* core : {"rnn", "lstm"})
    all.push_back(
        {std::string("glimpse_reader, ") + core,
         testing::lively(std::string("glimpse_reader[grid=2,patch=2,glimpses=2,features=3,hidden=3,core=") + core + "]",
                         {{"height", 4}, {"width", 4}, {"classes", 3}}, true),
         image});
  auto several = image;  // up to two labels; the last label, 2, marks the end
  several.integers["label"] = shaped<int>({2, 2}, {1, 2, 2, -1});
  all.push_back({"glimpse_reader, several",
                 testing::lively("glimpse_reader[grid=2,patch=2,glimpses=1,features=3,hidden=3]",
                                 {{"height", 4}, {"width", 4}, {"classes", 3}, {"answers", 2}}, true),
                 several});
  Batch report;
  report.id = {6, 7};
  report.integers["document"] = shaped<int>({2, 3}, {1, 3, 2, 4, 2, 0});
  report.integers["document_length"] = shaped<int>({2}, {3, 2});
  report.integers["question"] = shaped<int>({2, 2}, {4, 2, 3, 0});
  report.integers["question_length"] = shaped<int>({2}, {2, 1});
  report.integers["answer"] = shaped<int>({2}, {1, 2});
  for (const auto* kind : {"attentive", "impatient"})
    all.push_back({std::string("attentive_reader, ") + kind,
                   testing::lively(std::string("attentive_reader[embedding=2,hidden=2,kind=") + kind + "]",
                                   {{"vocabulary", 5}, {"answers", 3}, {"document_length", 3}, {"question_length", 2}}, true),
                   report});
  Batch picture;
  picture.id = {2, 9};
  picture.reals["features"] = zeros<double>({2, 2, 2});
  for (std::size_t i = 0; i < 8; ++i) picture.reals["features"].flat(i) = 0.2 * static_cast<double>((5 * i) % 7) - 0.6;
  picture.integers["target"] = shaped<int>({2, 2}, {3, 2, 2, 0});
  picture.integers["target_length"] = shaped<int>({2}, {2, 1});
  all.push_back(
      {"captioner",
       testing::lively("captioner[embedding=2,hidden=2,gate=true]",
                       {{"cells", 2}, {"features", 2}, {"target_vocabulary", 4}, {"target_length", 2}, {"bos", 1}, {"eos", 2}},
                       true),
       picture});
  Batch bits;
  bits.id = {6, 7};
  bits.reals["image"] = shaped<double>({2, 2, 1}, {1, 0, 1, 1});
  for (const auto* settings : {"units=2", "layers=2,units=1", "units=2,conditional=true"})
    all.push_back(
        {std::string("belief_network, ") + settings,
         testing::lively("belief_network[" + std::string(settings) + "]", {{"height", 2}, {"width", 1}, {"levels", 2}}, true),
         bits});
  Batch text;
  text.id = {4, 5};
  text.integers["source"] = shaped<int>({2, 2}, {3, 2, 4, 0});
  text.integers["source_length"] = shaped<int>({2}, {2, 1});
  text.integers["target"] = shaped<int>({2, 2}, {3, 2, 2, 0});
  text.integers["target_length"] = shaped<int>({2}, {2, 1});
  for (int heads = 1; heads <= most_heads; ++heads)
    for (const auto* feed : {"none", "soft", "sampled"})
      all.push_back({"translator, heads " + std::to_string(heads) + ", feed " + feed,
                     testing::lively("translator[embedding=2,hidden=2,heads=" + std::to_string(heads) + ",feed=" + feed + "]",
                                     {{"source_vocabulary", 5},
                                      {"target_vocabulary", 4},
                                      {"source_length", 2},
                                      {"target_length", 2},
                                      {"bos", 1},
                                      {"eos", 2}},
                                     true),
                     text});
  return all;
}

TEST_CASE("the listed observations are complete: their probabilities sum to one") {
  for (const auto& [name, model, batch] : cases(2)) {
    CAPTURE(name);
    std::vector<double> total(2);
    double count = 0;
    for_every_observation(*model->structure().answer_sampler, 2, [&, &model = *model, &batch = batch](const auto& observed) {
      ++count;
      Tape<double> tape;
      EnumerateHandler<double> handler;
      Episode<double> episode(tape, handler, 2);
      model.run(model.structure().answer_sampler->with_observations(batch, observed), episode);
      const Outcomes<double> outcomes(episode);
      for (int b = 0; b < 2; ++b)
        for (const auto& z : outcomes.of(b)) total[b] += std::exp(z.log_p - z.loss);
    });
    CHECK(count == observations(*model->structure().answer_sampler));
    for (double sum : total) CHECK(sum == doctest::Approx(1).epsilon(1e-12));
  }
}

TEST_CASE("a dream's frequency is its probability under the model") {
  for (const auto& [name, model, batch] : cases(2))
    for (int b = 0; b < 2; ++b) {
      CAPTURE(name);
      const auto one = batch.select({b});
      NoiseEnumerator enumerator(false);
      Tape<double> tape;
      double total = 0;
      do {
        enumerator.begin();
        tape.clear();
        const auto dreamt = dream(*model, one, tape, enumerator, 0);
        ForcedHandler<double> handler(dreamt.choices);
        Episode<double> episode(tape, handler, 1);
        model->run(dreamt.batch, episode);
        double log_p = 0;
        for (std::size_t t = 0; t < episode.steps().size(); ++t) log_p += episode.log_probability(static_cast<int>(t)).item();
        for (const auto& cost : episode.costs()) log_p -= cost.loss.item();
        REQUIRE(enumerator.weight() == doctest::Approx(std::exp(log_p)).epsilon(1e-12));
        total += enumerator.weight();
      } while (enumerator.next());
      CHECK(total == doctest::Approx(1).epsilon(1e-12));
    }
}

/// The wake phase of the network only.
class WakePhase final : public Estimator<double> {
 public:
  explicit WakePhase(int samples) : samples_(samples) { aim("wake"); }
  Estimate<double> estimate(const Problem<double>& problem) const override {
    ImportanceSamples<double> drawn(problem, samples_);
    return drawn.estimate([&](int b, Slopes& slope) {
      const auto v = self_normalised(drawn.log_weights(b));
      for (int k = 0; k < samples_; ++k) slope.add_log_joint(k, -v[k]);
      return 0.0;
    });
  }

 private:
  int samples_;
};

// The truth sums over all observations, the estimator samples dreams: without the wake phase, both must agree.
TEST_CASE("wake_sleep: the sleep phase has exactly the mean of its definition") {
  for (const auto& [name, model, batch] : cases())
    for (int samples : {1, 2}) {
      CAPTURE(name);
      CAPTURE(samples);
      const auto truth = exact_reference("wake_sleep", *model, batch, 1e6);
      const auto likelihood = exact_reference("marginal_likelihood", *model, batch, 1e6);
      CHECK(truth.value == doctest::Approx(likelihood.value).epsilon(1e-12));
      const auto estimator = estimator_of("wake_sleep[samples=" + std::to_string(samples) + "]", *model);
      const auto mean = mean_of(*estimator, *model, batch);
      const auto wake = mean_of(WakePhase(samples), *model, batch);
      double worst = 0, posterior = 0, size = 0;
      for (std::size_t i = 0; i < mean.size(); ++i)
        worst = std::max(worst, std::abs(mean[i] - wake[i] - (truth.gradient[i] - likelihood.gradient[i])));
      CHECK(worst < 1e-12);
      for (const auto& p : model->parameters())  // these have no wake phase
        if (p.name.starts_with("posterior."))
          for (std::size_t i = p.offset; i < p.offset + p.value.size(); ++i) {
            posterior = std::max(posterior, std::abs(mean[i] - truth.gradient[i]));
            size = std::max(size, std::abs(mean[i]));
          }
      CHECK(posterior < 1e-12);
      CHECK(size > 1e-4);
    }
}

/// Dreams, but trains the posterior on another observation: the data, or a dream of other choices.
class WrongSleep final : public Estimator<double> {
 public:
  explicit WrongSleep(bool data) : data_(data) { aim("wake_sleep"); }
  Estimate<double> estimate(const Problem<double>& problem) const override {
    auto dreamt = dream(problem.model, problem.batch, problem.tape, problem.random, 0);
    if (!data_) dreamt.choices = dream(problem.model, problem.batch, problem.tape, problem.random, 1).choices;
    ForcedHandler<double> handler(dreamt.choices);
    auto sleep = std::make_unique<Episode<double>>(problem.tape, handler, problem.batch.examples(), problem.terms);
    problem.model.run(data_ ? problem.batch : dreamt.batch, *sleep);
    auto surrogate = problem.tape.constant(1, 1);
    for (std::size_t t = 0; t < sleep->steps().size(); ++t)
      surrogate = subtract(surrogate, sleep->log_probability(static_cast<int>(t), DrawnFrom::posterior));
    return {.surrogate = surrogate, .episode = std::move(sleep)};
  }
  bool exchangeable() const override { return false; }

 private:
  bool data_;
};

TEST_CASE("wake_sleep: the exact mean detects a wrong sleep phase") {
  const auto all = cases();
  const auto& [name, model, batch] = all[1];  // memory_reader, two hops
  const auto truth = exact_reference("wake_sleep", *model, batch, 1e6);
  for (bool data : {true, false}) {
    CAPTURE(data);
    const auto mean = mean_of(WrongSleep(data), *model, batch);
    double worst = 0;
    for (const auto& p : model->parameters())
      if (p.name.starts_with("posterior."))
        for (std::size_t i = p.offset; i < p.offset + p.value.size(); ++i)
          worst = std::max(worst, std::abs(mean[i] - truth.gradient[i]));
    CHECK(worst > 1e-3);
  }
}

TEST_CASE("wake_sleep: the memory of its truth does not grow with the number of possible dreams") {
  const auto all = cases();
  const auto& [name, model, batch] = all.back();  // sentences: 13 possible dreams
  const auto one = batch.select({0});
  const auto held = [&one, &model = *model](const char* target) {
    Tape<double> tape;
    KeyedRandomness none{Key()};
    const auto estimate = exact_objective<double>(Target(target), {tape, model, one, none}, 1e6);
    return tape.arena().used();
  };
  // In addition to the wake phase, one weight per parameter.
  CHECK(held("wake_sleep") < 2 * held("wake") + 32 * model->parameters().size());
}

TEST_CASE("dreams: a model that cannot draw observations throws an error") {
  auto bits = model_of("bits", true);
  CHECK(bits->structure().answer_sampler == nullptr);
  Tape<double> tape;
  KeyedRandomness random(Key(1));
  CHECK_THROWS_AS(dream(*bits, one_example(), tape, random, 0), Bug);
}

TEST_CASE("wake_sleep: a model without dreams is rejected, and so is a truth beyond the cap") {
  auto bits = model_of("bits", true);
  CHECK_THROWS_WITH_AS(estimator_of("wake_sleep", *bits), doctest::Contains("it cannot dream: use wake_wake"), UsageError);
  const auto batch = one_example();
  ReferenceGradients<double> references(*bits, batch, 1e6);
  CHECK(references.of("wake_sleep") == nullptr);
  CHECK(references.why().find("dream") != std::string::npos);
  const auto all = cases();
  const auto& [name, model, text] = all.back();
  // 1 + 3 x 4 observations, with up to 4 sets of choices for the first example, and the 4 of the data
  CHECK_THROWS_WITH_AS(exact_reference("wake_sleep", *model, text.select({0}), 50),
                       doctest::Contains("needs 56 sets of choices and observations"), UsageError);
}

}  // namespace
}  // namespace hardgrad::testing::dream_test
