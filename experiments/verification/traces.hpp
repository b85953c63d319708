// All that a run of a model shows, and a number that depends on all of it.
#pragma once

#include <cmath>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/reduce.hpp"
#include "core/choice/episode.hpp"
#include "core/choice/handlers.hpp"
#include "core/models/model.hpp"

namespace hardgrad::verification {

// Runs of a model with given answers, and a record of the values that each sample saw.
//
// An answer is identified by its example, its sample, and its place among the choices with more than one option. So the same
// answers can be given in another batch, without padding, and as weights instead of options.

/// The place of an answer.
struct ChoiceIndex {
  std::uint32_t example;  ///< its id
  int sample;
  int question;  ///< among the questions in which the row has a choice
  int choice;    ///< among the question's columns with more than one option
};
/// One of `options` options; if 0, a number.
using GivenChoices = std::function<double(const ChoiceIndex&, int options)>;
/// Draws by the key, independently at each place.
GivenChoices drawn_by(Key key);

/// The form of the answers: options, weights that are one-hot, or weights that are spread.
enum class Form { hard, one_hot, spread };

template <class T>
class ScriptedHandler final : public Handler<T> {
 public:
  ScriptedHandler(const Batch& batch, GivenChoices answers, int samples = 1, Form form = Form::hard)
      : batch_(batch), answers_(std::move(answers)), samples_(samples), form_(form) {}
  Choice<T> choose(Tape<T>& tape, const Question<T>& question) override;

 private:
  const Batch& batch_;
  GivenChoices answers_;
  int samples_;
  Form form_;
  std::map<std::pair<int, int>, int> asked_;  // number of questions so far, by example and sample
};

/// The values that one sample of one example saw.
struct Trace {
  struct Question {
    std::string site;
    int step;                              ///< in the run
    std::vector<int> column, options;      ///< of columns with a choice
    std::vector<std::vector<double>> law;  ///< of each of these: log probabilities, or mean and log scale
  };
  std::vector<Question> questions;         ///< questions with a choice
  std::vector<std::vector<double>> costs;  ///< of each cost of the run: one number, or one per column
  double loss = 0;                         ///< the sum of costs
};

/// One run: [B samples] traces, ordered by example, then by sample.
struct Traces {
  std::vector<Trace> of_row;
  std::vector<RowsPtr> asking, paying;  ///< of each question, and of each cost
  std::vector<int> columns;             ///< of each question
  std::string undeclared;               ///< see core/choice/declared.hpp; then there are no traces
};

struct RunSettings {
  int samples = 1;
  Form form = Form::hard;
  bool unshared = false;  ///< without prefix sharing
};
template <class T>
Traces traces_of(const Model<T>& model, const Batch& batch, const GivenChoices& answers, const RunSettings& settings = {});
/// From an episode that ran with `samples` samples.
template <class T>
Traces traces_of(const Model<T>& model, const Episode<T>& run, int samples);

/// The first difference of two traces, for a message; empty if they agree to `tolerance` (relative for numbers above 1).
std::string difference(const Trace& a, const Trace& b, double tolerance);

// A number that depends on all observable values of a run, for gradient checks of whole models.

/// A sum with different weights of every cost, log probability (under the prior and, if present, the posterior) or entropy
/// (for choices without a probability), and state.
inline Var<double> mixture(Episode<double>& episode, bool with_log_probabilities = true) {
  auto& tape = episode.tape();
  auto total = tape.constant(1, 1);
  int n = 0;
  const auto include = [&](Var<double> x) {
    std::vector<double> weight(x.value().size());
    for (auto& w : weight) w = 1 + std::sin(++n * 1.7);
    total = add(total, weighted_sum(x, std::span<const double>(weight)));
  };
  for (const auto& cost : episode.costs()) include(cost.loss);
  for (std::size_t t = 0; with_log_probabilities && t < episode.steps().size(); ++t) {
    const auto& [question, choice] = episode.steps()[t];
    if (choice.has_probability() && choice.hard()) {
      include(episode.log_probability(static_cast<int>(t)));
      if (episode.terms().drawn_from == DrawnFrom::posterior)
        include(episode.log_probability(static_cast<int>(t), DrawnFrom::prior));
    } else {
      include(question.distribution->entropy());
    }
    if (question.site.state) include(question.site.state);
  }
  return total;
}

}  // namespace hardgrad::verification
