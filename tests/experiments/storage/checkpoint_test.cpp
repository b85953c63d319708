// Checkpoints and gradient files: named arrays are written and read.
#include "experiments/storage/checkpoint.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "core/support/error.hpp"
#include "experiments/storage/result_files.hpp"
#include "folder.hpp"

namespace hardgrad::testing::checkpoint_test {
using namespace measurement;
using namespace storage;
using namespace tasks;
using namespace training;

namespace {

template <class T>
ParameterSet<T> parameters() {
  ParameterSet<T> set;
  auto& a = set.add("encoder.weight", {2, 3});
  for (int i = 0; i < 6; ++i) a.value.flat(i) = static_cast<T>(0.1 * i);
  set.add("encoder.bias", {3}).value.flat(1) = 7;
  set.add("square.weight", {3, 3});
  return set;
}

}  // namespace

TEST_CASE_TEMPLATE("parameters are read back bit for bit", T, float, double) {
  Folder folder;
  const auto set = parameters<T>();
  Checkpoint c;
  c.parameters = save_parameters(set);
  c.own_parameters = {{"critic.weight", full<double>({1, 1}, 2.0)}};
  c.optimizer = {1, 2, 3};
  c.estimator_state = {0.25};
  c.step = 12;
  c.task = "qa", c.model = "m", c.estimator = "nvil", c.precision = Precision::float32;
  c.seed = 0xffffffffffffffffu;
  save_checkpoint(folder / "c.h5", c);
  CHECK(check_file(folder / "c.h5").empty());
  const auto back = load_checkpoint(folder / "c.h5");
  CHECK(back.optimizer == c.optimizer);
  CHECK(back.own_optimizer.empty());
  CHECK(back.estimator_state == c.estimator_state);
  CHECK(back.step == 12);
  CHECK(back.seed == c.seed);
  CHECK(back.estimator == "nvil");
  CHECK(back.own_parameters.at(0).value.storage().at(0) == 2.0);
  ParameterSet<T> other = parameters<T>();
  for (auto& p : other) std::fill(p.value.begin(), p.value.end(), T{-1});
  restore_parameters(back.parameters, other, "c.h5");
  auto it = other.begin();
  for (const auto& p : set) CHECK((it++)->value.storage() == p.value.storage());
}

TEST_CASE("a checkpoint of another model is rejected, the parameter is named, and the model is unchanged") {
  const auto saved = save_parameters(parameters<double>());
  const auto refused = [&](auto&& change, const std::string& expected) {
    auto wrong = saved;
    change(wrong);
    auto set = parameters<double>();
    set.find("encoder.weight")->value.flat(0) = 42;
    const auto words = message<InputError>([&] { restore_parameters(wrong, set, "c.h5"); });
    INFO(words);
    CHECK(words.find("c.h5: parameter \"") == 0);
    CHECK(words.find(expected) != std::string::npos);
    CHECK(set.find("encoder.weight")->value.flat(0) == 42);
  };
  refused([](auto& a) { a.pop_back(); }, "square.weight\" is missing");
  refused([](auto& a) { a.push_back({"more", full<double>({1}, 1.0)}); }, "more\" is unknown");
  refused([](auto& a) { a[0].value.reshape(Shape{3, 2}); }, "shape 3 x 2, the model needs 2 x 3");
  refused([](auto& a) { a[1].value.flat(0) = NAN; }, "encoder.bias\" has a non-finite value");
}

TEST_CASE("a gradient file has every array in its shape, and a wrong gradient is detected") {
  Folder folder;
  GradientDump<double> dump;
  dump.parameters = {{"a.weight", shaped<double>({2, 2}, {1, 2, 3, 4})}, {"a.bias", full<double>({2}, 0.5)}};
  dump.gradient = dump.parameters;
  dump.batch.id = {4, 5};
  dump.batch.integers["source"] = full<int>({2, 3}, 1);
  dump.words["source"] = shaped<std::string>({2, 3}, {"a", "b", "", "c", "", ""});
  dump.weights = full<double>({1, 2, 3}, 1.0 / 3);
  dump.logits = full<double>({1, 2, 3}, 0.0);
  dump.loss = full<double>({2, 2}, 1.0);  // more losses than choices
  dump.row_example = {0, 1};
  write_gradient(folder / "g.h5", dump);
  CHECK(check_file(folder / "g.h5").empty());
  const auto archive = read_archive(folder / "g.h5", "gradient");
  const auto& gradient = archive.group("gradient");
  CHECK(gradient.shape(*gradient.variable("a.weight")) == std::vector<std::size_t>{2, 2});
  CHECK(archive.group("").variable("loss")->axes[0] == "loss_step");
  CHECK_FALSE(archive.group("").variable("choices"));
  CHECK(archive.group("batch").values<std::int32_t>("source")->size() == 6);
  CHECK(*archive.group("batch").values<std::string>("source_text") == dump.words["source"].storage());
  CHECK(archive.group("batch").shape(*archive.group("batch").variable("source_text")) == std::vector<std::size_t>{2, 3});

  dump.gradient.pop_back();
  write_gradient(folder / "g.h5", dump);
  CHECK(check_file(folder / "g.h5").at(0).find("no gradient of parameter a.bias") != std::string::npos);
}

TEST_CASE("the gradient file of a model without choices has none") {
  Folder folder;
  GradientDump<float> dump;
  dump.parameters = dump.gradient = {{"a", full<float>({1}, 1.f)}};
  dump.loss = full<float>({1, 2}, 1.f);
  dump.choices = zeros<int>({0, 2});
  dump.row_example = {0, 1};
  write_gradient(folder / "g.h5", dump);
  CHECK(check_file(folder / "g.h5").empty());
}

}  // namespace hardgrad::testing::checkpoint_test
