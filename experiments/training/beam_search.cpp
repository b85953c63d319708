#include "experiments/training/beam_search.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/autodiff/softmax.hpp"
#include "core/models/parts/answer_sampler.hpp"
#include "core/support/error.hpp"

namespace hardgrad::training {
namespace {

constexpr double impossible = -std::numeric_limits<double>::infinity();

/// Row b k + j of the run outputs the prefix of rank j of example b.
template <class T>
class Search final : public Observer<T> {
 public:
  /// `episode` is the run, of examples x width rows.
  Search(const AnswerSampler& sampler, Episode<T>& episode, std::size_t width, std::size_t most, const std::vector<int>& never)
      : episode_(episode),
        end_(sampler.last_label),
        places_(sampler.places),
        width_(width),
        most_(most),
        never_(never),
        beginnings_(episode.examples()),
        from_(episode.examples()),
        found_(episode.examples() / width) {}

  std::vector<int> observe(std::span<const int> row_of, Var<T> logits, int place) override {
    const auto [row, log_p] = predicted(row_of, logits);
    const int labels = static_cast<int>(logits.cols());
    std::iota(from_.begin(), from_.end(), 0);
    std::vector<int> words(beginnings_.size(), end_);  // an example without prefixes is finished
    for (std::size_t first = 0; first < row.size();) {
      const std::size_t b = row[first] / width_;
      std::vector<Candidate> candidates;
      for (; first < row.size() && row[first] / width_ == b; ++first) {
        if (place == 0 && row[first] % width_ > 0) continue;  // at the start all prefixes are empty
        for (int label = 0; label < labels; ++label)
          if (std::find(never_.begin(), never_.end(), label) == never_.end())
            candidates.push_back({row[first], label, beginnings_[row[first]].log_p + log_p[first * labels + label]});
      }
      grow(b, std::move(candidates), place + 1 == places_, words);
    }
    std::vector<int> answer;
    for (int r : row_of) answer.push_back(words[r]);
    return answer;
  }
  std::vector<int> goes_on_from() const override { return from_; }
  std::vector<std::vector<Found>> found() && { return std::move(found_); }

 private:
  struct Candidate {
    int row, label;
    double log_p;
  };

  struct Predicted {
    std::vector<int> row;       // [N] the prefixes
    std::vector<double> log_p;  // [N V] of their next label
  };
  // From the logits of the prefixes, or of several choices of each, over which the probabilities are summed.
  Predicted predicted(std::span<const int> row_of, Var<T> logits) {
    const std::size_t V = logits.cols();
    const std::vector<int> labels(row_of.size(), static_cast<int>(V));
    const auto each = log_softmax(logits, std::span<const int>(labels)).value();
    const auto& steps = episode_.steps();
    if (steps.empty() || steps.back().choice.rows->size() == beginnings_.size())
      return {{row_of.begin(), row_of.end()}, {each.data, each.data + each.size()}};
    const auto& rows = steps.back().choice.rows;
    const auto weight = episode_.path_log_probability(rows).value();
    Predicted sum;
    std::size_t n = 0;
    for (std::size_t r = 0; r < rows->size() && n < row_of.size(); ++r) {
      if (rows->example[r] != row_of[n]) continue;  // finished
      if (sum.row.empty() || sum.row.back() != row_of[n]) {
        sum.row.push_back(row_of[n]);
        sum.log_p.resize(sum.row.size() * V);
      }
      for (std::size_t v = 0; v < V; ++v)
        sum.log_p[(sum.row.size() - 1) * V + v] += std::exp(double(weight(r, 0) + each(n, v)));
      ++n;
    }
    for (double& p : sum.log_p) p = std::log(p);
    return sum;
  }

  // Keeps the most probable complete sentences of example b.
  void record(std::size_t b, Found sentence) {
    auto& best = found_[b];
    const auto place =
        std::upper_bound(best.begin(), best.end(), sentence, [](const Found& x, const Found& y) { return x.log_p > y.log_p; });
    best.insert(place, std::move(sentence));
    if (best.size() > most_) best.pop_back();
  }

  // Takes the most probable continuations until the beam is full; complete sentences are recorded.
  void grow(std::size_t b, std::vector<Candidate> candidates, bool last, std::vector<int>& words) {
    // Each of `width` rows can end only once, so more candidates are not needed.
    const auto needed = std::min(candidates.size(), 2 * width_);
    std::partial_sort(candidates.begin(), candidates.begin() + static_cast<std::ptrdiff_t>(needed), candidates.end(),
                      [](const Candidate& x, const Candidate& y) {
                        return x.log_p != y.log_p ? x.log_p > y.log_p : std::pair(x.row, x.label) < std::pair(y.row, y.label);
                      });
    candidates.resize(needed);
    std::vector<Found> next;
    std::vector<int> parent;
    for (const auto& candidate : candidates) {
      const bool enough = found_[b].size() == most_ && candidate.log_p <= found_[b].back().log_p;
      if (next.size() == width_ || enough) break;  // continuations are never more probable
      if (candidate.log_p == impossible && !(next.empty() && found_[b].empty())) break;
      Found longer{beginnings_[candidate.row].labels, candidate.log_p};
      if (candidate.label != end_) longer.labels.push_back(candidate.label);
      if (candidate.label == end_ || last) {
        record(b, std::move(longer));
      } else {
        next.push_back(std::move(longer));
        parent.push_back(candidate.row);
      }
    }
    for (std::size_t j = 0; j < width_ && !next.empty(); ++j) {
      const std::size_t r = b * width_ + j, copied = j < next.size() ? j : 0;  // an unused row repeats the first and cannot win
      from_[r] = parent[copied];
      words[r] = next[copied].labels.back();
      beginnings_[r] = next[copied];
      if (copied != j) beginnings_[r].log_p = impossible;
    }
  }

  Episode<T>& episode_;
  int end_, places_;
  std::size_t width_, most_;
  std::vector<int> never_;
  std::vector<Found> beginnings_;          // [B k]
  std::vector<int> from_;                  // [B k] the row that each continues
  std::vector<std::vector<Found>> found_;  // [B] the best so far, the most probable first
};

}  // namespace

template <class T>
std::vector<std::vector<Found>> beam_search(const Model<T>& model, const Batch& batch, Handler<T>& handler, int width,
                                            Tape<T>& tape, int most, const std::vector<int>& never) {
  const auto* sampler = model.structure().answer_sampler;
  const auto& sites = model.structure().sites;
  if (std::any_of(sites.begin(), sites.end(), [](const auto& site) { return site.kind == SiteKind::subsets; }))
    throw UsageError("beam search and hypotheses need choices of one option each; this network's are subsets (picks)");
  if (!sampler || sampler->last_label < 0)
    throw UsageError("beam search needs a network that generates sentences; this one does not: decode greedily");
  std::vector<int> copies;
  for (int b = 0; b < batch.examples(); ++b) copies.insert(copies.end(), width, b);
  const auto hypotheses = batch.select(copies);
  Episode<T> episode(tape, handler, hypotheses.examples());
  Search<T> search(*sampler, episode, static_cast<std::size_t>(width), static_cast<std::size_t>(most), never);
  episode.observe_by(search);
  model.run(hypotheses, episode);
  return std::move(search).found();
}

template std::vector<std::vector<Found>> beam_search(const Model<float>&, const Batch&, Handler<float>&, int, Tape<float>&, int,
                                                     const std::vector<int>&);
template std::vector<std::vector<Found>> beam_search(const Model<double>&, const Batch&, Handler<double>&, int, Tape<double>&,
                                                     int, const std::vector<int>&);

}  // namespace hardgrad::training
