#include "experiments/training/averaged_answers.hpp"

#include <algorithm>
#include <cmath>

#include "core/autodiff/softmax.hpp"
#include "core/choice/handlers.hpp"
#include "core/models/parts/dreams.hpp"
#include "core/support/error.hpp"

namespace hardgrad::training {
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
    for (std::size_t b = 0; b < examples_; ++b)
      for (std::size_t p = 0; p < said_.size(); ++p) all(b, p) = said_[p][b];
    return all;
  }

 private:
  std::size_t examples_, samples_;
  std::vector<std::vector<int>> said_;  // [P][B]
};

}  // namespace

template <class T>
Array<int> averaged_answers(const Model<T>& model, const Batch& batch, int samples, Tape<T>& tape, Randomness& random) {
  if (!model.structure().dreams)
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

}  // namespace hardgrad::training
