// Gradients at the logits: replicates that share a run have the same gradients as separate runs.
#include "experiments/measurement/at_logits.hpp"

#include <doctest/doctest.h>
#include <tbb/task_arena.h>

#include "core/models/parts/replicates.hpp"
#include "experiments/measurement/measure.hpp"
#include "experiments/measurement/replicate_statistics.hpp"
#include "experiments/tasks/task.hpp"

namespace hardgrad::testing::at_logits_test {
using namespace measurement;
using namespace tasks;
namespace {

struct Scene {
  std::unique_ptr<Task> task;
  std::unique_ptr<Model<double>> model;
  Batch batch;
  Scene(const std::string& what, const std::string& network, bool posterior = false)
      : task(make_task(Spec::parse(what), Key(1))),
        model(make_model<double>(Spec::parse(network), task->dimensions(), Key(2), posterior)),
        batch(task->batch(Split::train, {0, 1, 2})) {}
};

/// An ordinary gradient, read from its tape at the logits: the sum over an example's rows.
std::vector<double> separate(const Estimator<double>& estimator, const Scene& scene, Key noise) {
  Tape<double> tape;
  KeyedRandomness random(noise);
  const auto estimate = estimator.draw({tape, *scene.model, scene.batch, random});
  tape.backward(estimate.surrogate);
  std::vector<double> all;
  const auto add = [&](const Episode<double>& episode) {
    std::size_t at = 0;
    for (const auto& step : episode.steps()) {
      const auto g = tape.gradient(step.question.prior_categories().logits());
      const auto& example = step.question.site.rows->example;
      const std::size_t size = episode.examples() * g.cols;
      if (all.size() < at + size) all.resize(at + size);
      for (std::size_t r = 0; r < g.rows; ++r)
        for (std::size_t j = 0; j < g.cols; ++j) all[at + example[r] * g.cols + j] += g(r, j);
      at += size;
    }
  };
  add(*estimate.episode);
  for (const auto& other : estimate.others) add(*other);
  return all;
}

const Scene& scene(const std::string& name) {
  static const Scene none("translation[examples=40,words=3,max_length=4]", "translator[embedding=5,hidden=4,feed=none]"),
      sampled("translation[examples=40,words=3,max_length=4]", "translator[embedding=5,hidden=4,feed=sampled]"),
      reader("qa[stories=20]", "memory_reader[embedding=4,hops=2]"),
      glimpses("glimpse[examples=20]", "glimpse_reader[grid=3,features=4,hidden=4,glimpses=2]");
  return name == "none" ? none : name == "sampled" ? sampled : name == "reader" ? reader : glimpses;
}

TEST_CASE("replicates of one run have the gradients of separate runs") {
  for (const auto* name : {"none", "sampled", "reader", "glimpses"})
    for (const auto* spec : {"reinforce", "rloo[samples=3,reward_to_go=true]", "self_critic", "entropy_regularised",
                             "straight_through", "gumbel_softmax[samples=2]", "unordered_set", "muprop"}) {
      CAPTURE(name);
      CAPTURE(spec);
      const auto& s = scene(name);
      const auto estimator = make_estimator<double>(Spec::parse(spec), s.model->structure(), Key(4));
      Tape<double> tape;
      const auto together = gradients_at_logits(tape, *estimator, *s.model, s.batch, Key(3), 2, 4);
      REQUIRE(together.of_replicate.size() == 4);
      for (int m = 0; m < 4; ++m) {
        const auto expected = separate(*estimator, s, Key(3) / static_cast<std::uint64_t>(2 + m));
        REQUIRE(expected.size() == together.of_replicate[m].size());
        double largest = 0, difference = 0;
        for (std::size_t i = 0; i < expected.size(); ++i) {
          largest = std::max(largest, std::abs(expected[i]));
          difference = std::max(difference, std::abs(expected[i] - together.of_replicate[m][i]));
        }
        CHECK(largest > 0);
        CHECK(difference < 1e-11 * largest);
      }
      CHECK(together.of_replicate[0] != together.of_replicate[1]);
    }
}

TEST_CASE("the exact gradient is available at the logits, too, and an unbiased estimator's mean is near it") {
  const auto& s = scene("none");
  MeasureSettings settings;
  settings.at_logits = true;
  settings.replicates = 400;
  const auto of = [&](const std::string& text) {
    const auto spec = Spec::parse(text);
    return measure(spec, *make_estimator<double>(spec, s.model->structure(), Key(4)), *s.model, s.batch, settings, Key(5));
  };
  CHECK(of("exact").variance < 1e-20);
  CHECK(of("exact").squared_bias < 1e-20);
  const auto noisy = of("reinforce"), calm = of("rloo[samples=4]");
  CHECK(noisy.bias_p_value > 1e-3);
  CHECK(calm.bias_p_value > 1e-3);
  CHECK(calm.variance < noisy.variance / 4);
  CHECK(of("straight_through").bias_p_value < 1e-6);
  settings.method = Method::exact;
  CHECK_THROWS_AS(of("reinforce"), UsageError);
}

TEST_CASE("with draws from a posterior, gradients are at its logits and at the prior's, site by site") {
  const Scene s("images[size=8,examples=20]", "belief_network[layers=2,units=3]", true);
  MeasureSettings settings;
  settings.at_logits = true;
  settings.replicates = 400;
  const auto of = [&](const std::string& text) {
    const auto spec = Spec::parse(text);
    return measure(spec, *make_estimator<double>(spec, s.model->structure(), Key(4)), *s.model, s.batch, settings, Key(5));
  };
  CHECK(of("exact[target=elbo]").variance < 1e-20);
  CHECK(of("exact[target=elbo]").squared_bias < 1e-20);
  const auto noisy = of("reinforce[target=elbo]"), calm = of("rloo[samples=4,target=elbo]"), bound = of("vimco");
  for (const auto* m : {&noisy, &calm, &bound}) {
    CHECK(m->bias_p_value > 1e-3);
    REQUIRE(m->variance_by_site.size() == 2);
    CHECK(m->variance_by_site.at("layer1") > 0);
    CHECK(m->variance_by_site.at("layer2") > 0);
    CHECK(m->variance_by_site.at("layer1") + m->variance_by_site.at("layer2") == doctest::Approx(m->variance));
  }
  CHECK(calm.variance < noisy.variance / 4);
  CHECK(of("straight_through[target=elbo]").bias_p_value < 1e-5);
  CHECK(of("wake_sleep").status == measurement::Status::skipped);
  // The prior's logits of the first layer are a parameter, the same for all examples.
  const auto at_logits = exact_gradient_at_logits("elbo", *s.model, s.batch, 1e6);
  const auto at_parameters = exact_reference("elbo", *s.model, s.batch, 1e6).gradient;
  const auto* b = s.model->parameters().find("prior.logits");
  for (std::size_t d = 0; d < 3; ++d) {
    double sum = 0;
    for (std::size_t example = 0; example < 3; ++example) sum += at_logits[(example * 3 + d) * 2 + 1];
    CHECK(std::abs(sum) > 1e-6);
    CHECK(sum == doctest::Approx(at_parameters[b->offset + d]).epsilon(1e-10));
  }
}

TEST_CASE("parameters and logits: the same bits with any number of threads, also with more runs than threads") {
  const auto& s = scene("sampled");
  const auto spec = Spec::parse("rloo[samples=2]");
  const auto estimator = make_estimator<double>(spec, s.model->structure(), Key(4));
  MeasureSettings settings;
  settings.replicates = 700;
  for (bool at_logits : {false, true}) {
    CAPTURE(at_logits);
    settings.at_logits = at_logits;
    Measurement one, four;
    tbb::task_arena(1).execute([&] { one = measure(spec, *estimator, *s.model, s.batch, settings, Key(5)); });
    tbb::task_arena(4).execute([&] { four = measure(spec, *estimator, *s.model, s.batch, settings, Key(5)); });
    CHECK(one.variance == four.variance);
    CHECK(one.squared_bias == four.squared_bias);
    CHECK(one.intervals == four.intervals);
    CHECK(one.mean == four.mean);
    CHECK(one.variances == four.variances);
    CHECK(one.variance > 0);
  }
}

TEST_CASE("in a sequential model an exact gradient at the logits is the mean, too, for every choice") {
  const Scene s("translation[examples=40,words=3,max_length=3]", "translator[embedding=5,hidden=4,feed=sampled]");
  const auto exact = exact_gradient_at_logits({}, *s.model, s.batch, 1e6);
  ReplicateSums sums(exact, 8, 4000);
  const auto estimator = make_estimator<double>(Spec::parse("rloo[samples=4]"), s.model->structure(), Key(4));
  Tape<double> tape;
  int m = 0;
  for (int block = 0; block < sums.blocks(); ++block)
    for (const auto [first, last] = sums.range(block); m < last; ++m)
      sums.add(block, gradients_at_logits(tape, *estimator, *s.model, s.batch, Key(6), m, 1).of_replicate[0]);
  CHECK(ReplicateStatistics(std::move(sums)).bias_p_value(1e-12) > 1e-3);
  double later = 0;  // the gradient beyond the first choice is not zero
  const std::size_t first_choice = s.batch.examples() * 4;
  for (std::size_t i = first_choice; i < exact.size(); ++i) later += std::abs(exact[i]);
  CHECK(later > 0.01);
}

TEST_CASE("a repeated batch: positions as ids, equal examples are recognised") {
  const auto& s = scene("none");
  const auto twice = repeated(s.batch, 2);
  CHECK(twice.id == std::vector<std::uint32_t>{0, 1, 2, 3, 4, 5});
  const Distinct distinct(twice);
  CHECK(distinct.first == std::vector<int>{0, 2, 4});
  CHECK(distinct.index == std::vector<int>{0, 0, 1, 1, 2, 2});
  CHECK(Distinct(s.batch).all());
}

}  // namespace
}  // namespace hardgrad::testing::at_logits_test
