#include "experiments/training/exact_posterior.hpp"

#include <cmath>

#include "core/choice/handlers.hpp"
#include "core/estimator/enumeration/objectives.hpp"

namespace hardgrad::training {

std::string why_no_exact_posterior(const Structure& structure) {
  if (structure.numbers()) return "its choices are numbers";
  if (*structure.no_likelihood) return std::string("its losses are no log likelihoods, with ") + structure.no_likelihood;
  if (!structure.steps_apart()) return "its choices change later ones (a translator needs feed=none or feed=soft)";
  return "";
}

// d log p(y | x) / d logit_i = p(z = i | x, y) - p(z = i)
template <class T>
std::vector<std::vector<int>> exact_posterior_modes(Tape<T>& tape, const Model<T>& model, const Batch& batch) {
  tape.differentiate_logits_only();
  EnumerateHandler<T> handler(model.structure());
  Episode<T> episode(tape, handler, batch.examples());
  model.run(batch, episode);
  tape.backward(marginal_likelihood_loss(episode));  // the mean over the examples of -log p(y | x)
  std::vector<std::vector<int>> modes;
  for (const auto& step : episode.steps()) {
    const auto& prior = step.question.prior_categories();
    const auto log_p = prior.log_p().value();
    const auto gradient = tape.gradient(prior.logits());
    auto& mode = modes.emplace_back();
    for (std::size_t c = 0; c < prior.options().size(); ++c) {
      const auto posterior = [&](int i) { return std::exp(log_p(c, i)) - static_cast<T>(batch.examples()) * gradient(c, i); };
      int best = 0;
      for (int i = 1; i < prior.options()[c]; ++i)
        if (posterior(i) > posterior(best)) best = i;
      mode.push_back(best);
    }
  }
  return modes;
}

template std::vector<std::vector<int>> exact_posterior_modes(Tape<float>&, const Model<float>&, const Batch&);
template std::vector<std::vector<int>> exact_posterior_modes(Tape<double>&, const Model<double>&, const Batch&);

}  // namespace hardgrad::training
