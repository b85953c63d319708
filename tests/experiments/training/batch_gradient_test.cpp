// Training gradients of a batch in parts: the same gradient, and the same bits for any number of threads.
#include "experiments/training/batch_gradient.hpp"

#include <doctest/doctest.h>
#include <tbb/global_control.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "experiments/support/parallel.hpp"
#include "experiments/training/adaptation.hpp"
#include "experiments/training/evaluation.hpp"

namespace hardgrad::testing::batch_gradient_test {
using namespace tasks;
using namespace training;
namespace {

const RunKeys keys{Key(1) / "init", Key(1) / "order", Key(1) / "noise"};

struct Scene {
  std::shared_ptr<const Task> task;
  Spec model;
  Scene(const char* what, const char* network) : task(make_task(Spec::parse(what), Key(2))), model(Spec::parse(network)) {}
  template <class T>
  Training<T> training(const std::string& estimator, const TrainSettings& settings = {}) const {
    return prepare<T>(task, model, Spec::parse(estimator), settings, keys);
  }
};

template <class T>
struct Result {
  std::vector<T> gradient;
  typename BatchGradient<T>::Taken taken;
};
template <class T>
Result<T> gradient_of(const Scene& scene, const std::string& estimator, const std::vector<int>& examples, int parts,
                      int threads = 0) {
  auto training = scene.training<T>(estimator);
  Result<T> found{std::vector<T>(training.model->parameters().size()), {}};
  BatchGradient<T> gradient(parts, threads, {});
  for (int draw = 0; draw < 2; ++draw)  // the second overwrites the first, in the same memory
    found.taken = gradient.take(training, scene.task->batch(Split::train, examples), Key(draw), found.gradient);
  return found;
}

/// f() with this number of threads, also on a machine of fewer cores.
template <class F>
auto with_threads(int count, F f) {
  const tbb::global_control more(tbb::global_control::max_allowed_parallelism, 4);
  tbb::task_arena arena(count);
  return arena.execute(f);
}

const char* const small_translation = "translation[examples=40,words=3,max_length=3]";
const char* const small_translator = "translator[embedding=5,hidden=4,feed=sampled]";

/// Of numbers by name, with NaN equal to itself.
bool same(const std::map<std::string, double>& some, const std::map<std::string, double>& others) {
  return std::equal(some.begin(), some.end(), others.begin(), others.end(), [](const auto& a, const auto& b) {
    return a.first == b.first && (a.second == b.second || (std::isnan(a.second) && std::isnan(b.second)));
  });
}

template <class T>
std::vector<T> values(const ParameterSet<T>& set) {
  std::vector<T> all;
  for (const auto& p : set) all.insert(all.end(), p.value.begin(), p.value.end());
  return all;
}

TEST_CASE("parts of a batch: nearly equal, in order, and one where examples are joined") {
  const Scene scene(small_translation, small_translator);
  const auto parts = [&](const char* estimator, int examples, int most) {
    const auto training = scene.training<double>(estimator);
    return independent_parts(*training.estimator, *training.model, examples, most);
  };
  using Parts = std::vector<std::vector<int>>;
  CHECK(parts("rloo", 7, 3) == Parts{{0, 1, 2}, {3, 4}, {5, 6}});
  CHECK(parts("rloo", 2, 3) == Parts{{0}, {1}});
  CHECK(parts("rloo", 3, 1) == Parts{{0, 1, 2}});
  CHECK(parts("nvil", 3, 3).size() == 1);             // a network of its own
  CHECK(parts("moving_baseline", 3, 3).size() == 1);  // averages
  CHECK(parts("james_stein", 3, 3).size() == 1);      // joins examples
  CHECK(parts("policy_gradient[advantage=group_mean,samples=2]", 4, 2).size() == 2);
}

TEST_CASE("the gradient in parts is that of the batch, for every estimator on every kind of choice") {
  const Scene scenes[] = {{small_translation, small_translator},
                          {small_translation, "translator[embedding=5,hidden=4,feed=soft]"},
                          {"qa[stories=20]", "memory_reader[embedding=4,hops=2]"},
                          {"glimpse[examples=20]", "glimpse_reader[grid=2,features=4,hidden=4,glimpses=2]"},
                          {"answers[size=2,examples=60]", "writer[hidden=5,embedding=4]"},
                          {"images[size=8,examples=20]", "belief_network[units=3]"},
                          {"images[size=8,examples=20]", "codebook[vectors=2,codes=3,width=2,hidden=3]"},
                          {"features[examples=20]", "selector[picks=2,hidden=3]"},
                          {"features[examples=20]", "router[experts=3,hidden=2]"},
                          {"features[examples=20]", "router[experts=3,hidden=2,balance=1]"}};
  const std::vector<int> examples{4, 0, 6, 1, 2, 9, 3};
  int divided = 0, whole = 0;
  for (const auto& scene : scenes)
    for (const auto& name : Estimators::instance().names()) {
      CAPTURE(scene.model.text);
      CAPTURE(name);
      int parts = 0;
      try {
        const auto training = scene.training<double>(name);
        parts = static_cast<int>(independent_parts(*training.estimator, *training.model, 7, 3).size());
      } catch (const Unsupported&) {
        continue;
      }
      const auto one = gradient_of<double>(scene, name, examples, 1), three = gradient_of<double>(scene, name, examples, 3);
      CHECK(three.taken.cost.rows <= one.taken.cost.rows);  // the others of a batch wait for its longest sentence
      (parts == 1 ? whole : divided) += 1;
      if (parts == 1) {
        CHECK(three.gradient == one.gradient);
        CHECK(three.taken.loss == one.taken.loss);
        continue;
      }
      CHECK(three.taken.loss == doctest::Approx(one.taken.loss).epsilon(1e-12));
      double apart = 0, length = 0;
      for (std::size_t i = 0; i < one.gradient.size(); ++i) {
        apart = std::hypot(apart, three.gradient[i] - one.gradient[i]);
        length = std::hypot(length, one.gradient[i]);
      }
      CHECK(apart <= 1e-11 * length);
    }
  CHECK(divided > 150);
  CHECK(whole > 50);
}

TEST_CASE("any number of threads gives the same bits: gradients") {
  const Scene scene(small_translation, small_translator);
  for (const char* estimator : {"rloo[samples=2]", "exact", "soft"}) {
    CAPTURE(estimator);
    const auto one = gradient_of<float>(scene, estimator, {0, 1, 2, 3, 4, 5, 6}, 4, 1);
    for (const int threads : {2, 3, 4}) {
      const auto same = with_threads(threads, [&] { return gradient_of<float>(scene, estimator, {0, 1, 2, 3, 4, 5, 6}, 4); });
      CHECK(same.gradient == one.gradient);
      CHECK(same.taken.loss == one.taken.loss);
      CHECK(same.taken.tape_bytes == one.taken.tape_bytes);
    }
  }
}

TEST_CASE("any number of threads gives the same bits: training, with evaluations, a batch used twice, and all settings") {
  struct Kind {
    Scene scene;
    const char* estimator;
    int reuse;
  };
  const Kind kinds[] = {{{small_translation, small_translator}, "rloo[samples=2]", 1},
                        {{small_translation, small_translator}, "nvil", 1},
                        {{"answers[size=2,examples=60]", "writer[hidden=5,embedding=4]"}, "policy_gradient[samples=4]", 2}};
  for (const auto& [scene, estimator, reuse] : kinds) {
    CAPTURE(estimator);
    TrainSettings how;
    how.steps = 9;
    how.batch = 5;
    how.parts = 3;
    how.reuse = reuse;
    how.log_every = 1;
    how.evaluate_every = 4;
    how.optimizer.learning_rate = 0.05;
    const auto run = [&](int threads) {
      how.threads = threads;
      auto training = scene.training<double>(estimator, how);
      auto result = train(training, how, keys);
      return std::pair(std::move(result), values(std::as_const(*training.model).parameters()));
    };
    const auto [one, end] = run(1);
    for (const int threads : {2, 3, 0}) {
      const auto [result, parameters] = with_threads(3, [&] { return run(threads); });
      CHECK(parameters == end);
      REQUIRE(result.log.size() == one.log.size());
      for (std::size_t i = 0; i < one.log.size(); ++i) {
        CHECK(result.log[i].loss == one.log[i].loss);
        CHECK(result.log[i].gradient_norm == one.log[i].gradient_norm);
        CHECK(result.log[i].rows == one.log[i].rows);
      }
      REQUIRE(result.evaluations.size() == one.evaluations.size());
      for (std::size_t i = 0; i < one.evaluations.size(); ++i) {
        CHECK(result.evaluations[i].losses == one.evaluations[i].losses);
        CHECK(same(result.evaluations[i].metrics, one.evaluations[i].metrics));
      }
      CHECK(result.tape_bytes == one.tape_bytes);
    }
  }
}

TEST_CASE("any number of threads gives the same bits: evaluations of many batches") {
  const Scene scene("translation[examples=60,words=3,max_length=3,heldout=0.5]", small_translator);
  const auto training = scene.training<double>("rloo");
  const auto run = [&] {
    return evaluate<double>(*scene.task, *training.model, {},
                            {.batch = 4, .decode = true, .beam = 2, .bound_samples = 3, .row_cap = 300}, Key(3));
  };
  const auto one = with_threads(1, run), four = with_threads(4, run);
  CHECK(one.losses == four.losses);
  CHECK(same(one.metrics, four.metrics));
  CHECK(one.losses.contains("expected_loss"));
}

TEST_CASE("the error of the first part is thrown, for any number of threads") {
  const Scene scene(small_translation, small_translator);
  for (const int threads : {1, 3}) {
    std::string why;
    try {
      with_threads(threads, [&] { return gradient_of<double>(scene, "exact[cap=1]", {0, 1, 2, 3}, 4); });
    } catch (const NotExact& error) {
      why = error.what();
    }
    static const std::string first = why;
    CHECK(!why.empty());
    CHECK(why == first);
  }
}

}  // namespace
TEST_CASE("parallel results are used in order, up to the first that fails") {
  for (int threads : {1, 2, 4}) {
    std::vector<int> used;
    std::string error;
    std::atomic<int> begun = 0;
    try {
      with_threads(threads, [&] {
        parallel_then_in_order(
            1000,
            [&](int, int i) {
              ++begun;
              if (i >= 7) throw std::runtime_error(std::to_string(i));
              return i;
            },
            [&](int i) { used.push_back(i); });
      });
    } catch (const std::runtime_error& e) {
      error = e.what();
    }
    CHECK(error == "7");
    CHECK(used == std::vector<int>{0, 1, 2, 3, 4, 5, 6});
    CHECK(begun <= 7 + threads);
  }
}

}  // namespace hardgrad::testing::batch_gradient_test
