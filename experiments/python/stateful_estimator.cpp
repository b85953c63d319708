#include "experiments/python/stateful_estimator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "core/autodiff/tape.hpp"
#include "core/estimator/score_function/moving_average.hpp"
#include "core/support/error.hpp"
#include "experiments/training/adaptation.hpp"

namespace hardgrad::python {
namespace {

bool alike(const Structure& a, const Structure& b) {
  const auto same = [](const SiteDeclaration& x, const SiteDeclaration& y) {
    const auto of = [](const SiteDeclaration& s) {
      return std::tuple(s.name, s.options, s.columns, s.times, s.state_width, s.scope, s.subset_size, s.kind.several);
    };
    return of(x) == of(y);
  };
  return a.posterior == b.posterior && std::equal(a.sites.begin(), a.sites.end(), b.sites.begin(), b.sites.end(), same);
}

std::string in_words(const Structure& structure) {
  std::string words;
  for (const auto& site : structure.sites)
    words +=
        fmt::format("{}{} columns of {} options{} at most {} times with a state of {}", words.empty() ? "" : ", ", site.columns,
                    site.options, site.subset_size > 1 ? fmt::format(" (subsets of {})", site.subset_size) : "", site.times,
                    site.state_width);
  return words;
}

}  // namespace

StatefulEstimator::StatefulEstimator(const std::string& spec, std::uint64_t seed, std::optional<double> learning_rate)
    : text_(spec), learning_rate_(learning_rate) {
  const auto parsed = Spec::parse(spec);
  near_reference_ = target_of(parsed).terms().to_reference != 0;  // fails on wrong names and settings
  name_ = parsed.name;
  corrects_ = corrects_behaviour(parsed);
  const auto init = Key(seed) / "init";
  narrow_.make = [=](const Structure& structure) { return make_estimator<float>(parsed, structure, init); };
  wide_.make = [=](const Structure& structure) { return make_estimator<double>(parsed, structure, init); };
}

StatefulEstimator::StatefulEstimator(std::string name, Make<float> narrow, Make<double> wide)
    : name_(name), text_(std::move(name)), written_(true), narrow_{std::move(narrow)}, wide_{std::move(wide)} {}

template <class T>
std::shared_ptr<EstimatorInUse<T>> StatefulEstimator::on(const Structure& structure) {
  const std::lock_guard lock(making_.here());
  auto& [make, held] = in_precision<T>();
  if (near_reference_ && !structure.reference)
    throw UsageError(fmt::format("{}: there is no reference policy: pass reference=, its logits", name_));
  if (held && alike(held->made_for, structure)) return held;
  if (held && held->learns)
    throw UsageError(fmt::format("{} learns, and was made for {}: it cannot be used with {}; make a new one", name_,
                                 in_words(held->made_for), in_words(structure)));
  auto made = std::make_shared<EstimatorInUse<T>>(EstimatorInUse<T>{make(structure), nullptr, structure});
  made->learns = training::learns(*made->estimator);
  if (made->learns && learning_rate_) made->optimizer = training::own_optimizer(*made->estimator, *learning_rate_);
  return held = std::move(made);
}

double StatefulEstimator::cap() const {
  const auto spec = Spec::parse(text_);
  return settings_of(Estimators::instance().at(spec.name), spec).real("cap");
}

bool StatefulEstimator::learns() {
  const std::lock_guard lock(making_.here());
  const auto has = [](const auto& held) { return held && held->learns; };
  return has(narrow_.held) || has(wide_.held);
}

template <class T>
std::shared_ptr<EstimatorInUse<T>> StatefulEstimator::made() {
  const std::lock_guard lock(making_.here());
  return in_precision<T>().held;
}

template <class T>
void EstimatorInUse<T>::learn(const Estimate<T>& estimate) {
  gradient.clear();
  if (optimizer) return training::learn_from(estimate, *estimator, *optimizer, gradient);
  if (estimate.own_loss) {
    gradient.resize(estimator->own_parameters().size());
    differentiate(estimate.own_loss, estimator->own_parameters(), gradient);
  }
  estimator->learn(estimate);
}

template <class T>
Learned learned(const EstimatorInUse<T>& in_use) {
  Learned result{.averages = in_use.estimator->state()};
  for (const auto& parameter : in_use.estimator->own_parameters())
    result.parameters.emplace_back(parameter.value.begin(), parameter.value.end());
  if (in_use.optimizer) result.optimizer = in_use.optimizer->state();
  return result;
}

template <class T>
void restore(EstimatorInUse<T>& in_use, const Learned& learned) {
  auto& own = in_use.estimator->own_parameters();
  const auto same = [](const Parameter<T>& p, const std::vector<double>& x) { return p.value.size() == x.size(); };
  if (!std::equal(own.begin(), own.end(), learned.parameters.begin(), learned.parameters.end(), same) ||
      in_use.estimator->state().size() != learned.averages.size())
    throw UsageError("the learned state is that of another estimator, or of other sites");
  auto from = learned.parameters.begin();
  for (auto& parameter : own) {
    std::copy(from->begin(), from->end(), parameter.value.begin());
    ++from;
  }
  in_use.estimator->restore(learned.averages);
  if (in_use.optimizer && !learned.optimizer.empty()) in_use.optimizer->restore(learned.optimizer);
}

template <class T>
void average(EstimatorInUse<T>& in_use, const std::vector<std::vector<double>>& averages) {
  const auto size = in_use.estimator->state().size();
  for (const auto& each : averages)
    if (each.size() != size) throw UsageError("the averages are those of another estimator, or of other sites");
  if (dynamic_cast<const AveragingEstimator<T>*>(in_use.estimator.get()))
    return in_use.estimator->restore(MovingAverage::mean(averages));
  std::vector<double> mean(size);
  for (const auto& each : averages)
    for (std::size_t i = 0; i < size; ++i) mean[i] += each[i] / static_cast<double>(averages.size());
  in_use.estimator->restore(mean);
}

#define HARDGRAD_INSTANTIATE(T)                                                        \
  template std::shared_ptr<EstimatorInUse<T>> StatefulEstimator::on(const Structure&); \
  template std::shared_ptr<EstimatorInUse<T>> StatefulEstimator::made();               \
  template struct EstimatorInUse<T>;                                                   \
  template Learned learned(const EstimatorInUse<T>&);                                  \
  template void restore(EstimatorInUse<T>&, const Learned&);                           \
  template void average(EstimatorInUse<T>&, const std::vector<std::vector<double>>&);
HARDGRAD_INSTANTIATE(float)
HARDGRAD_INSTANTIATE(double)
#undef HARDGRAD_INSTANTIATE

}  // namespace hardgrad::python
