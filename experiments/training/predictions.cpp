#include "experiments/training/predictions.hpp"

#include <algorithm>
#include <cmath>

#include "core/autodiff/softmax.hpp"
#include "core/choice/handlers.hpp"
#include "core/choice/top_k.hpp"
#include "core/estimator/enumeration/objectives.hpp"
#include "core/models/parts/answer_sampler.hpp"
#include "core/models/parts/word_choices.hpp"
#include "core/support/error.hpp"

namespace hardgrad::training {

template <class T>
tasks::Observation observe(const Episode<T>& episode) {
  const auto examples = static_cast<std::size_t>(episode.examples());
  const auto& steps = episode.steps();
  const auto& predictions = episode.predictions();
  // Words that are chosen beside other things are predictions only.
  const auto counts = [&](const auto& question) {
    return question.site.name != word_site_name || steps[0].question.site.name == word_site_name;
  };
  std::size_t choices = 0;
  int subset_size = 1;
  for (const auto& step : steps) {
    if (!counts(step.question)) continue;
    choices += static_cast<std::size_t>(step.question.site.columns) * step.choice.subset_size();
    subset_size = std::max(subset_size, step.choice.subset_size());
  }
  tasks::Observation seen{full<int>({examples, predictions.size()}, -1), full<int>({examples, choices}, -1), subset_size};
  std::size_t first = 0;
  for (const auto& [question, choice] : steps) {
    if (!counts(question)) continue;
    const std::size_t subset_size = choice.subset_size(), of_row = question.site.columns * subset_size;
    for (std::size_t cell = 0; cell < examples * question.site.columns && !choice.numbers(); ++cell) {
      const auto to =
          row_of(seen.choices, cell * subset_size / of_row).subspan(first + cell * subset_size % of_row, subset_size);
      if (choice.hard())
        std::copy_n(choice.picked().begin() + static_cast<std::ptrdiff_t>(cell * subset_size), subset_size, to.begin());
      else
        write_largest(std::span<const T>(choice.weights().value().row(cell), choice.weights().cols()), to);
    }
    first += of_row;
  }
  for (std::size_t p = 0; p < predictions.size(); ++p)
    xt::view(seen.predictions, xt::all(), p) = xt::adapt(predictions[p].label);
  return seen;
}

template tasks::Observation observe(const Episode<float>&);
template tasks::Observation observe(const Episode<double>&);

namespace {

/// Row b K + k of the run is sample k of example b. All rows of an example output the same label.
template <class T>
class Average final : public Observer<T> {
 public:
  Average(std::size_t examples, std::size_t samples) : examples_(examples), samples_(samples) {}

  std::vector<int> observe(std::span<const int> row, Var<T> logits, int place) override {
    const std::size_t labels = logits.cols();
    const std::vector<int> every(row.size(), static_cast<int>(labels));
    const auto log_p = log_softmax(logits, std::span<const int>(every)).value();
    std::vector<int> answer(row.size());
    said_.resize(std::max(said_.size(), static_cast<std::size_t>(place) + 1), std::vector<int>(examples_, -1));
    for (std::size_t first = 0, end = 0; first < row.size(); first = end) {
      const std::size_t b = row[first] / samples_;
      std::vector<double> p(labels);
      for (; end < row.size() && row[end] / samples_ == b; ++end)
        for (std::size_t y = 0; y < labels; ++y) p[y] += std::exp(static_cast<double>(log_p(end, y)));
      said_[place][b] = static_cast<int>(std::max_element(p.begin(), p.end()) - p.begin());
      std::fill(answer.begin() + static_cast<std::ptrdiff_t>(first), answer.begin() + static_cast<std::ptrdiff_t>(end),
                said_[place][b]);
    }
    return answer;
  }
  Array<int> answers() const {
    Array<int> all = zeros<int>({examples_, said_.size()});
    for (std::size_t p = 0; p < said_.size(); ++p) xt::view(all, xt::all(), p) = xt::adapt(said_[p]);
    return all;
  }

 private:
  std::size_t examples_, samples_;
  std::vector<std::vector<int>> said_;  // [P][B]
};

}  // namespace

template <class T>
Array<int> averaged_answers(const Model<T>& model, const Batch& batch, int samples, Tape<T>& tape, Randomness& random) {
  if (!model.structure().answer_sampler)
    throw UsageError("averaging needs a network that predicts labels with probabilities; this one does not");
  std::vector<int> copies;
  std::vector<std::uint32_t> id;  // of each copy, for its random numbers
  for (std::size_t b = 0; b < batch.id.size(); ++b)
    for (int k = 0; k < samples; ++k) {
      copies.push_back(static_cast<int>(b));
      id.push_back(batch.id[b] * static_cast<std::uint32_t>(samples) + static_cast<std::uint32_t>(k));
    }
  const auto repeated = batch.select(copies);
  SampleHandler<T> handler(1, random, id);
  Average<T> average(batch.id.size(), static_cast<std::size_t>(samples));
  Episode<T> episode(tape, handler, repeated.examples());
  episode.observe_by(average);
  model.run(repeated, episode);
  return average.answers();
}

template Array<int> averaged_answers(const Model<float>&, const Batch&, int, Tape<float>&, Randomness&);
template Array<int> averaged_answers(const Model<double>&, const Batch&, int, Tape<double>&, Randomness&);

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
