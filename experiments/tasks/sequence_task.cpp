#include "experiments/tasks/sequence_task.hpp"

#include <fmt/ranges.h>

#include <algorithm>

#include "core/support/error.hpp"
#include "core/support/text_metrics.hpp"

namespace hardgrad::tasks {
namespace {

enum : std::size_t { token_accuracy, exact_match, exact_match_decoded, positions_used, alignment_error_rate };

}  // namespace

std::string joined(const std::vector<std::string>& words) { return fmt::format("{}", fmt::join(words, " ")); }

void SequenceTask::take(std::vector<SequencePair> pairs, const std::vector<Split>& splits, std::size_t vocabulary, Key order,
                        const std::string& none_left, const SequenceTask* trained) {
  std::vector<std::string> texts;
  for (const auto& pair : pairs) texts.push_back(joined(pair.source) + "\t" + joined(pair.target));
  part(texts, splits, order, none_left);
  if (trained) {
    source_words_ = trained->source_words_;
    target_words_ = trained->target_words_;
  } else {
    for (int i : of(Split::train)) {
      source_words_.count(pairs[i].source);
      target_words_.count(pairs[i].target);
    }
    source_words_.close(4, vocabulary);
    target_words_.close(4, vocabulary);
  }
  std::size_t words = 0, source_length = 0, target_length = 0;
  for (auto& pair : pairs) {
    Example example{source_words_.indices(pair.source), target_words_.indices(pair.target), {}, {}};
    unknown_ += static_cast<double>(std::count(example.target.begin(), example.target.end(), Vocabulary::unknown));
    words += example.target.size();
    example.target.push_back(Vocabulary::end);
    if (!pair.gold.empty()) {
      has_gold_ = true;
      example.alignment.assign(example.target.size(), -1);
      for (const auto& [from, to] : pair.gold.sure)
        if (example.alignment[to] < 0) example.alignment[to] = from;
      example.gold = std::move(pair.gold);
    }
    source_length = std::max(source_length, example.source.size());
    target_length = std::max(target_length, example.target.size());
    examples_.push_back(std::move(example));
  }
  unknown_ /= static_cast<double>(std::max<std::size_t>(words, 1));
  dimensions_ = {{"source_vocabulary", source_words_.size()},
                 {"target_vocabulary", target_words_.size()},
                 {"source_length", static_cast<int>(source_length)},
                 {"target_length", static_cast<int>(target_length)},
                 {"bos", Vocabulary::begin},
                 {"eos", Vocabulary::end}};
}

Batch SequenceTask::batch(Split split, const std::vector<int>& indices) const {
  Batch batch;
  batch.id = ids(split, indices);
  auto source = padded(batch.id, examples_, &Example::source), target = padded(batch.id, examples_, &Example::target);
  if (has_gold_) {
    auto& alignment = batch.integers["alignment"] = full<int>(target.values.shape(), -1);
    for (std::size_t b = 0; b < batch.id.size(); ++b) {
      const auto& gold = examples_[batch.id[b]].alignment;
      std::copy(gold.begin(), gold.end(), row_of(alignment, b).begin());
    }
  }
  batch.integers["source"] = std::move(source.values);
  batch.integers["source_length"] = std::move(source.length);
  batch.integers["target"] = std::move(target.values);
  batch.integers["target_length"] = std::move(target.length);
  return batch;
}

std::string SequenceTask::word(const std::string& field, int number) const {
  if (number == Vocabulary::pad || (field != "source" && field != "target")) return {};
  return (field == "source" ? source_words_ : target_words_).word(number);
}

std::vector<Metric> SequenceTask::metrics() const {
  std::vector<Metric> all = {{.name = "token_accuracy", .unit = "1", .share = true},
                             {.name = "exact_match", .unit = "1", .share = true},
                             {.name = "exact_match_decoded", .unit = "1"},
                             {.name = "positions_used", .unit = "1"},
                             {.name = "alignment_error_rate", .unit = "1", .higher_is_better = false}};
  if (!has_gold_) all.pop_back();
  for (auto& metric : own_metrics()) all.push_back(std::move(metric));
  return all;
}

void SequenceTask::score(const Batch& batch, const Observation& seen, std::vector<Metric>& metrics) const {
  const auto &target = batch.ints("target"), &length = batch.ints("target_length");
  const auto steps = [](const Array<int>& array) { return array.dimension() < 2 ? 0 : array.shape()[1]; };
  for (std::size_t b = 0; b < length.size(); ++b) {
    const auto n = static_cast<std::size_t>(length(b));
    std::size_t right = 0;
    for (std::size_t t = 0; t < std::min(n, steps(seen.predictions)); ++t) right += seen.predictions(b, t) == target(b, t);
    metrics[token_accuracy].add(static_cast<double>(right), static_cast<double>(n));
    metrics[exact_match].add(right == n);
    if (steps(seen.choices) == 0) continue;
    const auto& example = examples_[batch.id[b]];
    const std::size_t subset_size = seen.subset_size,
                      heads = std::max<std::size_t>(
                          steps(seen.choices) / subset_size / std::max<std::size_t>(steps(seen.predictions), 1), 1);
    for (std::size_t h = 0; h < heads; ++h) {
      std::set<Link> found;
      std::set<int> positions;
      for (std::size_t t = 0; t + 1 < n && (t * heads + h) * subset_size < steps(seen.choices); ++t)
        for (int i : row_of(seen.choices, b).subspan((t * heads + h) * subset_size, subset_size)) {
          positions.insert(i);
          if (i >= 0 && static_cast<std::size_t>(i) < example.source.size()) found.emplace(i, static_cast<int>(t));
        }
      if (subset_size > 1) positions.erase(-1);
      if (const auto most = std::min(example.source.size(), n - 1); most > 1)
        metrics[positions_used].add(static_cast<double>(positions.size()) - 1, static_cast<double>(most) - 1);
      if (example.gold.empty()) continue;
      const auto [wrong, all] = alignment_errors(found, example.gold);
      metrics[alignment_error_rate].add(wrong, all);
    }
  }
}

void SequenceTask::score_decoded(const Batch& batch, const Observation& seen, std::vector<Metric>& metrics) const {
  std::vector<Metric> own(metrics.end() - static_cast<std::ptrdiff_t>(own_metrics().size()), metrics.end());
  for (std::size_t b = 0; b < batch.id.size(); ++b) {
    const auto right = reference(batch.id[b]);
    const auto answer = before_end(row_of(seen.predictions, b), Vocabulary::end);
    metrics[exact_match_decoded].add(std::equal(answer.begin(), answer.end(), right.begin(), right.end()));
    judge(batch.id[b], answer, own);
  }
  std::move(own.begin(), own.end(), metrics.end() - static_cast<std::ptrdiff_t>(own.size()));
}

}  // namespace hardgrad::tasks
