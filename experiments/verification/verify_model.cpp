#include "experiments/verification/verify.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "core/models/model.hpp"
#include "core/support/error.hpp"
#include "experiments/verification/model_checks.hpp"
#include "experiments/verification/scenes.hpp"

namespace hardgrad::verification {
namespace {

constexpr int examples = 4;

/// A network and its data, with their names in a verdict.
struct Pair {
  Spec model, task;
  std::string name;
};

/// The scene's settings, overridden by the given ones.
Spec over(const Spec& given, const Spec& scene) {
  auto spec = scene;
  for (const auto& [key, value] : given.arguments) spec = spec.with(key, value);
  return spec;
}

std::vector<Pair> pairs(const Spec& model, const std::optional<Spec>& task) {
  if (task) return {{model, *task, task->text}};
  std::vector<Pair> all;
  for (const auto& scene : scene_specs())
    if (const auto small = Spec::parse(scene.model); small.name == model.name)
      all.push_back({over(model, small), Spec::parse(scene.task), scene.name});
  for (const auto& [name, entry] : tasks::Tasks::instance().entries())
    if (all.empty() && Spec::parse(entry.default_model).name == model.name) all.push_back({model, Spec::parse(name), name});
  if (all.empty())
    throw UsageError(fmt::format("test: model {} is not the default of any task: name a task for it with --task", model.name));
  return all;
}

ModelScene made(const Pair& pair) {
  const Key key(1);
  ModelScene scene;
  scene.task = tasks::make_task(pair.task, key / "data");
  scene.index.resize(std::min<std::size_t>(examples, scene.task->size(tasks::Split::train)));
  if (scene.index.empty()) throw InputError("test: the training split of " + pair.task.text + " is empty");
  std::iota(scene.index.begin(), scene.index.end(), 0);
  scene.batch = scene.examples(scene.index);
  const auto dimensions = scene.task->dimensions();
  const auto lively = [&](bool posterior) {  // biases, too, become nonzero
    auto model = tasks::make_model_for<double>(*scene.task, pair.model, key / "init", posterior);
    for (auto& parameter : model->parameters()) {
      KeyedRandomness random(key / "moved" / parameter.name);
      std::uint32_t n = 0;
      for (double& x : parameter.value) x += 0.6 * random.uniform({.index = n++}) - 0.3;
    }
    return model;
  };
  scene.model = lively(false);
  if (auto other = lively(true); other->structure().posterior) scene.with_posterior = std::move(other);
  scene.narrow = make_model<float>(pair.model, dimensions, key / "init");
  auto to = scene.narrow->parameters().begin();
  for (const auto& from : scene.model->parameters())
    std::transform(from.value.begin(), from.value.end(), (to++)->value.begin(), [](double x) { return static_cast<float>(x); });
  return scene;
}

class ModelVerifier {
 public:
  ModelVerifier(const Spec& model, bool to_the_first_failure)
      : to_the_first_failure_(to_the_first_failure), verdict_{"model", model.text, {}} {}

  void skip(const std::string& where, const std::string& why) {
    verdict_.checks.push_back({"scene", where, Check::Outcome::skipped, why});
  }
  void on(const std::string& where, const ModelScene& scene) {
    where_ = where;
    const auto before = verdict_.count(Check::Outcome::failed);
    check("sites", check_sites, scene);
    if (verdict_.count(Check::Outcome::failed) > before) return;  // later checks would be unreliable
    check("reach", check_reach, scene);
    const char* const uncountable = scene.model->structure().numbers() ? "numbers cannot be counted" : "";
    check("outcomes", check_outcomes, scene, uncountable);
    check("posterior", check_posterior, scene, scene.with_posterior ? uncountable : "it has no learned posterior");
    const auto* stops = dynamic_cast<const StopsGradients*>(scene.model.get());
    check("gradient", check_gradient, scene, stops ? stops->stopped : "");
    check("repeated", check_repeated, scene);
    check("batching", check_batching, scene);
    check("padding", check_padding, scene);
    check("samples", check_samples, scene);
    check("sharing", check_sharing, scene);
    check("one-hot", check_one_hot, scene, scene.model->structure().numbers() ? "numbers have no weights" : "");
  }
  Verdict verdict() && { return std::move(verdict_); }

 private:
  void check(const char* what, std::string (*find)(const ModelScene&, std::string&), const ModelScene& scene,
             std::string reason = "") {
    if (to_the_first_failure_ && verdict_.count(Check::Outcome::failed) > 0) return;
    std::string detail, failure;
    const auto make = [&]() -> std::string {
      try {
        return find(scene, detail);
      } catch (const NotExact& e) {  // too many outcomes: not a fault
        reason = e.what();
        return "";
      }
    };
    if (reason.empty()) failure = guarded(make);
    const auto outcome = !reason.empty()    ? Check::Outcome::skipped
                         : !failure.empty() ? Check::Outcome::failed
                                            : Check::Outcome::passed;
    verdict_.checks.push_back({what, where_, outcome, !reason.empty() ? reason : !failure.empty() ? failure : detail});
  }

  bool to_the_first_failure_;
  Verdict verdict_;
  std::string where_;
};

}  // namespace

Verdict verify_model(const Spec& model, const std::optional<Spec>& task, bool to_the_first_failure) {
  Models::instance().at(model.name);  // an unknown name fails before anything is made
  ModelVerifier verifier(model, to_the_first_failure);
  const auto all = pairs(model, task);
  std::size_t refused = 0;
  for (const auto& pair : all) {
    std::optional<ModelScene> scene;
    try {
      scene = made(pair);
    } catch (const UsageError& error) {  // the given settings do not go with those of this scene
      if (++refused == all.size()) throw;
      verifier.skip(pair.name, error.what());
      continue;
    }
    verifier.on(pair.name, *scene);
  }
  return std::move(verifier).verdict();
}

}  // namespace hardgrad::verification
