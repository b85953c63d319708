#include "experiments/measurement/exact_moments.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace hardgrad::measurement {

template <class T>
std::string affordable(const Spec& spec, const Model<T>& model, const Batch& batch, double outcome_cap) {
  const auto& entry = Estimators::instance().at(spec.name);
  const auto samples = std::find_if(entry.parameters.begin(), entry.parameters.end(),
                                    [](const auto& p) { return p.name == "samples" || p.name == "k"; });
  if (samples == entry.parameters.end()) return "";
  const double share = entry.couples(settings_of(entry, spec)) ? outcome_cap : outcome_cap / batch.examples();
  const auto with = [&](int k) { return spec.with(samples->name, fmt::format("{}", k)); };
  const auto fits = [&](int k) {
    const auto fewer = with(k);
    if (k < samples->low || !why_unsupported(fewer, model.structure_with_policies()).empty()) return false;
    try {
      return visits_needed(*make_estimator<T>(fewer, model.structure_with_policies(), Key()), model, batch) <= share;
    } catch (const NotExact&) {
      return false;
    }
  };
  // Searched from below: a single visit with too many samples may already take too long. Some estimators accept only even
  // numbers, so the larger of two neighbours that fits is taken.
  const auto near = [&](int k) { return fits(k) ? k : fits(k - 1) ? k - 1 : 0; };
  const int given = Settings(entry.name, entry.parameters, spec).integer(samples->name);
  int found = 0, above = given;  // `found` fits, `above` does not
  for (int k = std::max(2, static_cast<int>(samples->low)); k < above; k = std::max(2 * found, k + 1)) {
    if (const int fit = near(k); fit > found)
      found = fit;
    else
      above = k;
  }
  while (above - found > 1) {
    const int middle = found + (above - found) / 2, fit = near(middle);
    if (fit > found)
      found = fit;
    else
      above = middle;
  }
  if (found == given - 1 && fits(given)) return "";
  return found > 0 ? fmt::format("{}={}", samples->name, found) : "";
}

template std::string affordable(const Spec&, const Model<float>&, const Batch&, double);
template std::string affordable(const Spec&, const Model<double>&, const Batch&, double);

}  // namespace hardgrad::measurement
