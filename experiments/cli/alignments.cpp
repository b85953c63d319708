#include "experiments/cli/alignments.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <set>

#include "core/support/error.hpp"
#include "experiments/storage/atomic_file.hpp"
#include "experiments/tasks/sequence_task.hpp"

namespace hardgrad::cli {
namespace {

std::string words_of(const tasks::Task& task, const std::string& field, std::span<const int> numbers) {
  std::vector<std::string> words;
  for (int number : numbers) words.push_back(task.word(field, number));
  return tasks::joined(words) + "\n";
}

std::string text_of(const std::set<tasks::Link>& links, const tasks::GoldLinks* gold = nullptr) {
  std::string text;
  for (const auto& link : links)
    text +=
        fmt::format("{}{}{}{}", text.empty() ? "" : " ", link.first, !gold || gold->sure.count(link) ? '-' : '?', link.second);
  return text + "\n";
}

}  // namespace

template <class T>
std::size_t write_alignments(const std::string& folder, const tasks::Task& task, const Model<T>& model, const Target& target,
                             const training::EvaluationSettings& settings) {
  const auto* sequences = dynamic_cast<const tasks::SequenceTask*>(&task);
  const auto& sites = model.structure().sites;
  if (!sequences || sites.size() != 1)
    throw UsageError("--alignments needs a network that attends to a source word for each target word");
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw UsageError(fmt::format("{}: the folder cannot be created: {}", folder, error.message()));

  struct Line {
    std::string source, target, links, gold;
  };
  std::map<std::uint32_t, Line> lines;  // by the example's place in its file
  bool any_gold = false;
  training::for_each_batch(task, settings, [&](const Batch& batch) {
    const auto choices = training::most_probable(model, target, batch, settings.attention).choices;
    const auto of_word = static_cast<std::size_t>(sites[0].columns) * sites[0].picks;  // heads, and picks of each
    for (int b = 0; b < batch.examples(); ++b) {
      const auto S = static_cast<std::size_t>(batch.ints("source_length")(b));
      const auto n = static_cast<std::size_t>(batch.ints("target_length")(b)) - 1;
      auto& line = lines[batch.id[b]];
      line.source = words_of(task, "source", row_of(batch.ints("source"), b).first(S));
      line.target = words_of(task, "target", row_of(batch.ints("target"), b).first(n));
      std::set<tasks::Link> links;
      for (std::size_t i = 0; i < n * of_word; ++i)
        if (const int from = choices(b, i); from >= 0 && static_cast<std::size_t>(from) < S)
          links.emplace(from, static_cast<int>(i / of_word));
      line.links = text_of(links);
      const auto& known = sequences->gold(batch.id[b]);
      any_gold = any_gold || !known.empty();
      line.gold = text_of(known.possible, &known);
    }
  });
  const auto write = [&](const char* name, std::string Line::*part) {
    std::string text;
    for (const auto& [id, line] : lines) text += line.*part;
    storage::write_file((std::filesystem::path(folder) / name).string(), text);
  };
  write("source.txt", &Line::source);
  write("target.txt", &Line::target);
  write("links.txt", &Line::links);
  if (any_gold) write("gold.txt", &Line::gold);
  return lines.size();
}

template std::size_t write_alignments(const std::string&, const tasks::Task&, const Model<float>&, const Target&,
                                      const training::EvaluationSettings&);
template std::size_t write_alignments(const std::string&, const tasks::Task&, const Model<double>&, const Target&,
                                      const training::EvaluationSettings&);

}  // namespace hardgrad::cli
