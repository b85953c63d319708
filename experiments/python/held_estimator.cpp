#include "experiments/python/held_estimator.hpp"

#include <fmt/format.h>

#include "core/support/error.hpp"
#include "experiments/training/adaptation.hpp"

namespace hardgrad::python {

HeldEstimator::HeldEstimator(const std::string& spec, std::uint64_t seed, double learning_rate)
    : text_(spec), learning_rate_(learning_rate) {
  const auto parsed = Spec::parse(spec);
  target_of(parsed);  // complains of names and settings
  name_ = parsed.name;
  const auto init = Key(seed) / "init";
  narrow_.make = [=](const Structure& structure) { return make_estimator<float>(parsed, structure, init); };
  wide_.make = [=](const Structure& structure) { return make_estimator<double>(parsed, structure, init); };
}

HeldEstimator::HeldEstimator(std::string name, Make<float> narrow, Make<double> wide)
    : name_(name), text_(std::move(name)), narrow_{std::move(narrow)}, wide_{std::move(wide)} {}

template <class T>
std::shared_ptr<Held<T>> HeldEstimator::on(const Structure& structure) {
  const std::lock_guard lock(making_);
  auto& [make, held] = in_precision<T>();
  const auto& site = structure.sites.at(0);
  const auto shape = [](const SiteDeclaration& of) { return std::tuple(of.columns, of.options, of.state_width); };
  if (held && shape(held->made_for) == shape(site)) return held;
  if (held && held->optimizer)
    throw UsageError(
        fmt::format("{} learns, and has begun with {} columns of {} options and a state of {}: it cannot go on with {} "
                    "of {} and a state of {}; make another one",
                    name_, held->made_for.columns, held->made_for.options, held->made_for.state_width, site.columns,
                    site.options, site.state_width));
  auto made = std::make_shared<Held<T>>(Held<T>{make(structure), nullptr, site});
  if (learns(*made->estimator)) {
    OptimizerSettings adam;
    adam.learning_rate = learning_rate_;
    made->optimizer = make_optimizer<T>(adam, made->estimator->own_parameters().size());
  }
  return held = std::move(made);
}

template std::shared_ptr<Held<float>> HeldEstimator::on(const Structure&);
template std::shared_ptr<Held<double>> HeldEstimator::on(const Structure&);

}  // namespace hardgrad::python
