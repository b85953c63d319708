// Runs of a model with given answers, and a record of the values that each sample saw.
//
// An answer is identified by its example, its sample, and its place among the choices with more than one option. So the same
// answers can be given in another batch, without padding, and as weights instead of options.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/choice/handlers.hpp"
#include "core/models/model.hpp"

namespace hardgrad::verification {

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

}  // namespace hardgrad::verification
