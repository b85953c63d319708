#include "core/estimator/needs.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/models/parts/answer_sampler.hpp"

namespace hardgrad {
namespace {

bool of_network(const Need& need) {
  using enum Need::Kind;
  return need.kind == posterior || need.kind == dreams || need.kind == no_choice;
}

/// The property of the site that violates the need, in words; empty if the site meets it.
std::optional<std::string> missing(const Need& need, const SiteDeclaration& site) {
  using enum Need::Kind;
  const bool categories = site.kind.options && !site.kind.several;
  if (need.kind == reparameterised && site.kind.reparameterised) return {};
  if (need.kind == quantiles && site.kind.quantiles) return {};
  if (need.kind == symmetric && site.kind.symmetric) return {};
  if (need.kind == measure_valued && site.kind.measure_valued) return {};
  if (categories && (need.kind == reparameterised || need.kind == symmetric))
    return site.options == 2 ? "has bits" : fmt::format("has up to {} options", site.options);
  if (need.kind == codes && categories)
    return site.codes ? std::optional<std::string>() : "has options without a place in a space";
  if (need.kind == relaxable && categories && !site.kind.relaxable) return "takes options only";
  const int most = need.kind == bits || need.kind == measure_valued ? 2 : need.kind == options ? need.most : site.options;
  const bool weights = need.kind == enumerable || need.kind == picks;
  if (need.kind == log_density || (weights && site.kind.options) || (categories && site.options <= most)) return {};
  if (site.kind.several) return fmt::format("picks {} of {} options", site.subset_size, site.options);
  if (!categories) return fmt::format("is {}", site.kind.is);
  return fmt::format("has up to {} options", site.options);
}

std::string remedy(const Need& need, const SiteDeclaration& site) {
  if (site.kind.several) return ": take a score function (rloo) or the marginals (simple)";
  if (need.kind == Need::Kind::options) return fmt::format(" ({}): take local_expectation or disarm_tree", need.why);
  if (need.kind == Need::Kind::reparameterised)
    return ": take a score function (rloo), or a relaxation (gumbel_softmax, relax)";
  if (need.kind == Need::Kind::symmetric) return ": take antithetic bits (disarm) or categories (disarm_tree, carms)";
  if ((need.kind == Need::Kind::bits || need.kind == Need::Kind::measure_valued) && site.kind.options)
    return ": take an estimator for categories, e.g. local_expectation or disarm_tree";
  return "";
}

}  // namespace

std::string to_string(const Need& need) {
  switch (need.kind) {
    case Need::Kind::log_density: return "choices with a log probability";
    case Need::Kind::categorical: return "categories";
    case Need::Kind::bits: return "bits";
    case Need::Kind::options: return fmt::format("at most {} options", need.most);
    case Need::Kind::enumerable: return "choices that can be enumerated";
    case Need::Kind::relaxable: return "categories that can be weights over options";
    case Need::Kind::codes: return "options that are codes, points of a space";
    case Need::Kind::picks: return "choices among options";
    case Need::Kind::reparameterised: return "choices that can be differentiated in the distribution's parameters";
    case Need::Kind::quantiles: return "choices with an inverse distribution function";
    case Need::Kind::symmetric: return "numbers whose mirror image is a draw too";
    case Need::Kind::measure_valued: return "bits or Normals";
    case Need::Kind::posterior: return "a learned posterior";
    case Need::Kind::dreams: return "a network that can draw its own answers";
    case Need::Kind::no_choice: return "nothing of a model without choices";
  }
  return "";
}

std::string kind_name(const Need& need) {
  switch (need.kind) {
    case Need::Kind::log_density: return "log_density";
    case Need::Kind::categorical: return "categorical";
    case Need::Kind::bits: return "bits";
    case Need::Kind::options: return "options";
    case Need::Kind::enumerable: return "enumerable";
    case Need::Kind::relaxable: return "relaxable";
    case Need::Kind::codes: return "codes";
    case Need::Kind::picks: return "picks";
    case Need::Kind::reparameterised: return "reparameterised";
    case Need::Kind::quantiles: return "quantiles";
    case Need::Kind::symmetric: return "symmetric";
    case Need::Kind::measure_valued: return "measure_valued";
    case Need::Kind::posterior: return "posterior";
    case Need::Kind::dreams: return "dreams";
    case Need::Kind::no_choice: return "no_choice";
  }
  return "";
}

bool declares_a_site(const std::vector<Need>& needs) {
  return std::any_of(needs.begin(), needs.end(), [](const Need& need) { return !of_network(need); });
}

std::optional<std::string> unmet(const std::vector<Need>& needs, const Structure& structure) {
  if (!declares_a_site(needs))
    return "it does not declare the choices it needs, so it works on no model: list its needs, e.g. need::log_density";
  const auto lists = [&](const Need& need) { return std::find(needs.begin(), needs.end(), need) != needs.end(); };
  if (structure.sites.empty() && !lists(need::no_choice)) return "the model makes no choice";
  for (const auto& need : needs) {
    if (need == need::posterior && !structure.posterior) return structure.lacks_posterior();
    if (need == need::dreams && !structure.answer_sampler) return std::string(lacks_dreams) + ": use wake_wake";
    if (of_network(need)) continue;
    for (const auto& site : structure.sites)
      if (const auto has = missing(need, site))
        return fmt::format("needs {}; site `{}` {}{}", to_string(need), site.name, *has, remedy(need, site));
  }
  return {};
}

}  // namespace hardgrad
