#include "experiments/measurement/measure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <optional>

#include "experiments/measurement/at_logits.hpp"
#include "experiments/measurement/choice_entropy.hpp"
#include "experiments/measurement/draw.hpp"
#include "experiments/measurement/exact_moments.hpp"
#include "experiments/measurement/finite.hpp"
#include "experiments/measurement/lengths.hpp"
#include "experiments/measurement/summary.hpp"

namespace hardgrad::measurement {
namespace {

constexpr auto not_wanted = "not asked for";

double distance_squared(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return sum;
}

/// The mean of an unbiased estimator of low variance.
template <class T>
std::optional<LongRun> long_run(const Target& target, const Model<T>& model, const Batch& batch, int replicates, Key noise,
                                const Stop& stop) {
  const auto name = target.entry().reference_estimator ? target.entry().reference_estimator(target) : "";
  if (name.empty()) return {};
  const auto estimator = make_estimator<T>(Spec::parse(name), model.structure_with_policies(), noise / "init");
  ReplicateSums run(std::vector<double>(model.parameters().size()), 0, replicates);
  const auto key = noise / "long run";
  draw<T>(run, *estimator, model, batch, key, mixture_plan(*estimator, model, batch, key, PathLaws::of(model, batch, stop)),
          stop);
  return LongRun{ReplicateStatistics(std::move(run)), fmt::format("{} x {}", replicates, name)};
}

/// Most leaves of an example that are enumerated only for the entropy of its choices.
constexpr double entropy_leaves = 4096;

template <class T>
ChoiceEntropy attention_entropy(const Estimator<T>& estimator, const Model<T>& model, const Batch& batch,
                                const MeasureSettings& settings, Key noise) {
  const double cap = settings.method == Method::exact ? settings.leaf_cap : std::min(settings.leaf_cap, entropy_leaves);
  return choice_entropy(estimator.target(), model, batch, cap, noise / "entropy", settings.stop);
}

void charge(Measurement& m, const EstimateCost& each, const Ratios& ratios, double seconds) {
  m.rows = each.rows;
  m.attention_values = each.attention_values;
  m.missed_hints = each.missed_hints;
  m.effective_ratio_share = ratios.effective_share();
  m.largest_ratio = ratios.largest();
  m.seconds = seconds;
}

template <class T>
void group_variances(Measurement& m, const ParameterSet<T>& parameters) {
  for (const auto& p : parameters)
    for (std::size_t i = 0; i < p.value.size(); ++i) m.variance_by_group[p.group()] += m.variances[p.offset + i];
}

void take_reference(Measurement& m, const ReferenceGradient& truth) {
  m.estimand = truth.what();
  m.estimand_norm = truth.norm();
  m.estimand_standard_error = truth.error;
}

template <class T>
std::vector<std::pair<std::string, const ReferenceGradient*>> known_references(ReferenceGradients<T>& references,
                                                                               const MeasureSettings& settings) {
  std::vector<std::pair<std::string, const ReferenceGradient*>> known;
  if (settings.estimand == Estimand::none) return known;
  for (const auto* name : {"expected_loss", "marginal_likelihood", "elbo", "soft"})
    if (const auto* truth = references.of(name)) known.emplace_back(name, truth);
  return known;
}

/// The accuracy of an exact measurement's quadratures, for the report.
std::string what_quadratures_reached(const Moments& moments, double norm) {
  const auto good_to = [](double error, double of) {
    return std::isfinite(error) ? fmt::format("good to {:.1g}", std::max(error / std::max(of, 1e-300), 1e-15))
                                : std::string("not settling as it is refined (it may be infinite)");
  };
  return fmt::format("moments by quadrature{}, mean {}, variance {}",
                     moments.nodes > 0 ? fmt::format(" of {} nodes a draw", moments.nodes) : "",
                     good_to(moments.mean_error, norm), good_to(moments.trace_error, moments.trace));
}

/// With at most `visits` visits; NotExact if there are more.
template <class T>
void measure_exactly(Measurement& m, const Estimator<T>& estimator, const Model<T>& model, const Batch& batch,
                     const MeasureSettings& settings, ReferenceGradients<T>& references, double visits) {
  const auto* truth = references.of(estimator.target());
  if (!truth) throw NotExact("no exact " + m.target + ": " + references.why());
  take_reference(m, *truth);
  const auto start = std::chrono::steady_clock::now();
  const auto moments = exact_moments(estimator, model, batch, truth->of_example, visits, settings.covariance, settings.stop);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  charge(m, moments.cost, moments.ratios, seconds / moments.outcomes);
  if (moments.continuous) m.estimand += "; " + what_quadratures_reached(moments, m.estimand_norm);
  m.mean = moments.mean;
  m.variances = moments.variances;
  m.covariance = moments.covariance;
  m.variance = moments.trace;
  m.squared_bias = distance_squared(moments.mean, truth->gradient);
  m.cosine = moments.cosine;
  m.mean_cosine = cosine_between(moments.mean, truth->gradient);
  m.outcomes = moments.outcomes;
  for (const auto& [name, other] : known_references(references, settings))
    m.bias_against[name] = distance_squared(m.mean, other->gradient);
  derive(m);
  const double rounding = sizeof(T) == 4 ? rounding_of(precision_of<T>) * m.estimand_norm : 0;
  const double bias = std::sqrt(m.squared_bias), off = moments.mean_error + truth->error + rounding;
  m.intervals["variance"] = {std::max(0.0, m.variance - moments.trace_error), m.variance + moments.trace_error};
  m.intervals["squared_bias"] = {std::pow(std::max(0.0, bias - off), 2), std::pow(bias + off, 2)};
}

/// Most relative error of the quadratures of exact moments that replace a sample.
constexpr double fine = 1e-3;

/// The exact measurement, if it takes no more visits of an example than `replicates` replicates do.
template <class T>
std::optional<Measurement> measured_cheaply(const Measurement& begun, const Estimator<T>& estimator, const Model<T>& model,
                                            const Batch& batch, const MeasureSettings& settings,
                                            ReferenceGradients<T>& references, double replicates) {
  if (settings.method != Method::cheapest || settings.estimand == Estimand::none) return {};
  auto m = begun;
  try {
    const double visits = std::min(settings.outcome_cap, replicates * batch.examples());
    measure_exactly(m, estimator, model, batch, settings, references, visits);
  } catch (const NotExact&) {
    return {};
  }
  const auto [low, high] = m.intervals["variance"];
  const auto [none, off] = m.intervals["squared_bias"];
  const double blur = std::sqrt(off) - std::sqrt(m.squared_bias), size = std::hypot(m.estimand_norm, std::sqrt(m.variance));
  if (!(high - low <= fine * std::max(m.variance, 1e-290) && blur <= fine * size)) return {};
  return m;
}

/// Calls draw(sums), then take(statistics), until the replicates support them or the limit is met. After a count
/// that does not support them, two counts in succession must. Otherwise runs that happen to lack the rare terms would end
/// first. With a known exact variance one count suffices, and of weighted replicates, which seek the rare terms, the last. Before
/// the number is doubled, `instead(number)` may end it.
template <class Draw, class Take, class Instead>
std::pair<Cost, ReplicateStatistics> draw_enough(Measurement& m, ReplicateSums sums, const MeasureSettings& settings, Draw draw,
                                                 Take take, Instead instead) {
  Cost each;
  const bool known = std::isfinite(m.exact_variance);
  bool supported_before = true;
  for (double before = 0;;) {
    const auto more = draw(sums);
    ReplicateStatistics replicates(std::move(sums));
    each = mixed(each, more, before / replicates.count());
    m.replicates = replicates.count();
    m.effective_sample_size = replicates.effective_sample_size();
    m.tail_index = replicates.tail().index;
    take(replicates);
    const bool last = 2.0 * replicates.count() > settings.most_replicates;
    m.reliability_warning = reliability_warning(m, replicates, claims_unbiased(Spec::parse(m.estimator)), last);
    const bool supported = m.reliability_warning.empty();
    const bool confirmed = supported_before || known;
    if (supported && !confirmed && last && !replicates.weighted())
      m.reliability_warning = "half as many did not support them, and twice as many would have to";
    if (last || (supported && confirmed) || instead(2.0 * replicates.count())) {
      if (m.reliability_warning.empty()) m.reliability_warning = missed(m, replicates);
      return {each, std::move(replicates)};
    }
    supported_before = supported;
    before = replicates.count();
    sums = std::move(replicates).sums();
    sums.grow();
  }
}

/// The exact moments beside the sampled ones, if they take no more visits than the sample takes examples.
template <class T>
void take_exact(Measurement& m, const Estimator<T>& estimator, const Model<T>& model, const Batch& batch,
                const ReferenceGradient& truth, const MeasureSettings& settings) {
  const double visits = std::min(settings.outcome_cap, double(settings.replicates) * batch.examples());
  try {
    const auto moments = exact_moments(estimator, model, batch, truth.of_example, visits, false, settings.stop);
    if (moments.continuous) return;
    m.exact_variance = std::max(0.0, moments.trace);
    m.exact_squared_bias = distance_squared(moments.mean, truth.gradient);
    m.exact_cosine = moments.cosine;
  } catch (const NotExact&) {
  }
}

/// The mean cosine of an exact measurement of several examples or copies, which are not visited together: by replicates.
template <class T>
void sample_cosine(Measurement& m, const Estimator<T>& estimator, const Model<T>& model, const Batch& batch,
                   const MeasureSettings& settings, Key noise, const MixturePlan& plan, const ReferenceGradient& truth) {
  if (!std::isnan(m.cosine) || !(m.estimand_norm > 0)) return;
  ReplicateSums sums(truth.gradient, 0, settings.replicates);
  m.seconds = draw(sums, estimator, model, batch, noise, plan, settings.stop).seconds;
  const ReplicateStatistics replicates(std::move(sums));
  m.replicates = replicates.count();
  m.cosine = replicates.cosine();
  m.intervals["cosine"] = replicates.cosine_interval(settings.level);
}

template <class T>
void measure_by_sampling(Measurement& m, const Estimator<T>& estimator, const Model<T>& model, const Batch& batch,
                         const MeasureSettings& settings, Key noise, ReferenceGradients<T>& references) {
  const auto begun = m;
  // With rare options, and off policy, few replicates may not suffice, and their number would be doubled.
  const auto plan = mixture_plan(estimator, model, batch, noise, references.path_laws());
  const int at_most = plan.empty() ? settings.replicates : std::max(settings.replicates, settings.most_replicates);
  auto exact = measured_cheaply(begun, estimator, model, batch, settings, references, at_most);
  const auto take_exactly = [&] {
    m = *exact;
    sample_cosine(m, estimator, model, batch, settings, noise, plan, *references.of(estimator.target()));
  };
  if (exact) return take_exactly();
  const bool wanted = settings.estimand != Estimand::none;
  const auto* truth = wanted ? references.of(estimator.target()) : nullptr;
  if (truth && truth->rough() && settings.estimand == Estimand::any && estimator.target().entry().reference_estimator)
    truth = nullptr;
  const LongRun* sampled_reference = nullptr;
  if (!truth && settings.estimand == Estimand::any)
    sampled_reference = references.long_run(estimator.target(), [&] {
      return long_run(estimator.target(), model, batch, settings.replicates, noise, settings.stop);
    });
  if (sampled_reference) {
    m.estimand = sampled_reference->what;
    take_long_run(m, sampled_reference->replicates);
  }
  const bool known = truth || sampled_reference;
  if (truth) take_reference(m, *truth);
  if (!known) m.estimand = wanted ? "unknown: " + references.why() : not_wanted;
  const auto reference = truth               ? truth->gradient
                         : sampled_reference ? sampled_reference->replicates.mean()
                                             : std::vector<double>(model.parameters().size());
  Visited visited(model, batch);
  if (truth && settings.method == Method::sampled) take_exact(m, estimator, model, batch, *truth, settings);
  const auto draw_more = [&](ReplicateSums& r) {
    return draw(r, estimator, model, batch, noise, plan, settings.stop, &visited);
  };
  const auto instead = [&](double replicates) {
    exact = measured_cheaply(begun, estimator, model, batch, settings, references, replicates);
    return exact.has_value();
  };
  const auto [each, replicates] = draw_enough(
      m, ReplicateSums(reference, settings.directions, settings.replicates), settings, draw_more,
      [&](const ReplicateStatistics& replicates) {
        m.unvisited_mass = visited.missing();
        take_variance(m, replicates, settings.level);
        if (known) take_bias(m, replicates, settings.level, sampled_reference ? &sampled_reference->replicates : nullptr);
        if (truth) test_bias(m, replicates, rounding_of(precision_of<T>), truth->error);
      },
      instead);
  charge(m, each.estimate, each.ratios, each.seconds);
  if (exact) return take_exactly();
  m.mean = replicates.mean();
  m.variances = replicates.variances();
  for (const auto& [name, other] : known_references(references, settings))
    m.bias_against[name] = replicates.distance(other->gradient).unbiased();
  derive(m);
}

template <class T>
void measure_at_logits(Measurement& m, const Estimator<T>& estimator, const Model<T>& model, const Batch& batch,
                       const MeasureSettings& settings, Key noise, ReferenceGradients<T>& references) {
  std::vector<double> reference;
  bool known = settings.estimand != Estimand::none;
  if (!known) m.estimand = not_wanted;
  if (known) try {
      reference = exact_gradient_at_logits(estimator.target(), model, batch, settings.leaf_cap);
    } catch (const NotExact& e) {
      m.estimand = std::string("unknown: ") + e.what();
      known = false;
    }
  if (!known) {
    Tape<T> tape;
    reference.resize(gradients_at_logits(tape, estimator, model, batch, noise, 0, 1).of_replicate[0].size());
  }
  m.estimand_norm = known ? length_of(reference) : not_a_number;
  std::vector<std::pair<std::string, std::size_t>> sites;
  const auto plan = mixture_plan(estimator, model, batch, noise, references.path_laws());
  const auto draw_more = [&](ReplicateSums& r) {
    auto each = draw_at_logits(r, estimator, model, batch, noise, plan, settings.stop);
    sites = each.sites;
    return each;
  };
  const auto [each, replicates] = draw_enough(
      m, ReplicateSums(reference, settings.directions, settings.replicates), settings, draw_more,
      [&](const ReplicateStatistics& replicates) {
        take_variance(m, replicates, settings.level);
        if (!known) return;
        take_bias(m, replicates, settings.level, nullptr);
        test_bias(m, replicates, rounding_of(precision_of<T>));
      },
      [](double) { return false; });
  charge(m, each.estimate, each.ratios, each.seconds);
  const auto variances = replicates.variances();
  auto first = variances.begin();
  for (const auto& [site, count] : sites)
    for (const auto last = first + static_cast<std::ptrdiff_t>(count); first != last; ++first)
      m.variance_by_site[site] += *first;
  derive(m);
}

/// Applies a formula for an infinite variance, which neither a sample nor a sum over visits can show.
template <class T>
void known_to_be_infinite(Measurement& m, const Spec& spec, const Model<T>& model, const Batch& batch) {
  for (const double outcomes : model.outcomes(batch)) {
    const auto why = infinite_variance(spec, model.structure(), outcomes);
    if (why.empty()) continue;
    m.variance = std::numeric_limits<double>::infinity();
    m.intervals["variance"] = {m.variance, m.variance};
    m.intervals.erase("snr");
    m.exact_variance = m.exact_squared_bias = m.exact_cosine = not_a_number;
    m.variance_by_group.clear();
    m.variance_by_site.clear();
    m.reliability_warning = "the variance is infinite: " + why;
    derive(m);
    return;
  }
}

}  // namespace

Measurement not_made(const Spec& spec, Status status, const std::string& reason) {
  Measurement m;
  m.estimator = spec.text;
  m.target = target_of(spec).name();
  m.known_unbiased = claims_unbiased(spec);
  m.status = status;
  m.reason = reason;
  return m;
}
Measurement skipped(const Spec& spec, const std::string& reason) { return not_made(spec, Status::skipped, reason); }
Measurement failed(const Spec& spec, const std::string& reason) { return not_made(spec, Status::failed, reason); }

template <class T>
Measurement measure(const Spec& spec, const Estimator<T>& estimator, const Model<T>& model, const Batch& batch,
                    const MeasureSettings& settings, Key noise, ReferenceGradients<T>* shared) {
  if (auto reason = why_unsupported(spec, model.structure_with_policies()); !reason.empty()) return skipped(spec, reason);
  if (settings.at_logits && settings.method == Method::exact)
    throw UsageError("at the logits, moments are sampled: take either --at-logits or --exact");
  if (settings.at_logits && estimator.target().entry().dreams)
    return skipped(spec, "its gradient is at the logits of dreams, too, whose number differs from run to run");
  if (const auto& needs = Estimators::instance().at(spec.name).needs;
      settings.at_logits && std::find(needs.begin(), needs.end(), need::codes) != needs.end())
    return skipped(spec, "its gradient goes to the points near which codes are chosen, not to the logits");
  ReferenceGradients<T> own(model, batch, settings.leaf_cap, settings.stop);
  auto& references = shared ? *shared : own;
  Measurement m;
  m.estimator = spec.text;
  m.target = estimator.target().name();
  m.known_unbiased = claims_unbiased(spec);
  if (settings.at_logits)
    measure_at_logits(m, estimator, model, batch, settings, noise, references);
  else if (settings.method == Method::exact)
    measure_exactly(m, estimator, model, batch, settings, references, settings.outcome_cap);
  else
    measure_by_sampling(m, estimator, model, batch, settings, noise, references);
  if (!settings.at_logits) group_variances(m, model.parameters());
  known_to_be_infinite(m, spec, model, batch);
  drop_ratios_of_rounding(m, epsilon_of(precision_of<T>));
  if (std::isnan(m.variance)) throw NotFinite("the variance is not a number: squares of the gradient overflow");
  const auto entropy = attention_entropy(estimator, model, batch, settings, noise);
  m.attention_entropy = entropy.mean;
  m.entropy_by_site = entropy.by_site;
  return m;
}

template Measurement measure(const Spec&, const Estimator<float>&, const Model<float>&, const Batch&, const MeasureSettings&,
                             Key, ReferenceGradients<float>*);
template Measurement measure(const Spec&, const Estimator<double>&, const Model<double>&, const Batch&, const MeasureSettings&,
                             Key, ReferenceGradients<double>*);

}  // namespace hardgrad::measurement
