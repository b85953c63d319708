// Runs of a model whose answers are written down beforehand, and what each sample saw on its way through.
//
// An answer is known by its example, its sample, and its place among the choices that row really has: so the same answers are
// given in another batch, without padding, and with weights instead of options.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/choice/choosers.hpp"
#include "core/models/model.hpp"

namespace hardgrad::verification {

/// Where an answer stands.
struct Place {
  std::uint32_t example;  ///< its identity
  int sample;
  int question;  ///< among those in which the row has a choice
  int choice;    ///< among those of the question's columns that have more than one option
};
/// One of so many options; or, of 0, a number.
using Answers = std::function<double(const Place&, int options)>;
/// Drawn by the key, each at its place.
Answers drawn_by(Key key);

/// As what answers are handed over: options, all of a weight on them, or a part of it.
enum class Form { hard, one_hot, spread };

template <class T>
class ScriptedChooser final : public Chooser<T> {
 public:
  ScriptedChooser(const Batch& batch, Answers answers, int samples = 1, Form form = Form::hard)
      : batch_(batch), answers_(std::move(answers)), samples_(samples), form_(form) {}
  Choice<T> choose(Tape<T>& tape, const Question<T>& question) override;

 private:
  const Batch& batch_;
  Answers answers_;
  int samples_;
  Form form_;
  std::map<std::pair<int, int>, int> asked_;  // questions so far of each example and sample
};

/// What one sample of one example saw.
struct Way {
  struct Question {
    std::string site;
    int step;                              ///< in the run
    std::vector<int> column, options;      ///< of those that have a choice
    std::vector<std::vector<double>> law;  ///< of each of them: log probabilities, or mean and log scale
  };
  std::vector<Question> questions;         ///< in which it has a choice
  std::vector<std::vector<double>> costs;  ///< of each cost of the run: one number, or one of each column
  double loss = 0;                         ///< their sum
};

/// One run: [B samples] ways, sample after sample of each example.
struct Ways {
  std::vector<Way> of_row;
  std::vector<RowsPtr> asking, paying;  ///< of each question, and of each cost
  std::vector<int> columns;             ///< of each question
  std::string undeclared;               ///< see core/choice/declared.hpp; then there are no ways
};

struct RunSettings {
  int samples = 1;
  Form form = Form::hard;
  bool apart = false;  ///< without prefix sharing
};
template <class T>
Ways ways_of(const Model<T>& model, const Batch& batch, const Answers& answers, const RunSettings& settings = {});
/// Of an episode that was run with so many samples.
template <class T>
Ways ways_of(const Model<T>& model, const Episode<T>& run, int samples);

/// How two ways differ that should not, in words; empty if they agree to `tolerance` (of numbers above 1, relative to them).
std::string difference(const Way& a, const Way& b, double tolerance);

}  // namespace hardgrad::verification
