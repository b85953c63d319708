#include "experiments/cli/hypotheses.hpp"

#include <fmt/format.h>

#include <map>

#include "core/support/error.hpp"
#include "experiments/storage/atomic_file.hpp"
#include "experiments/tasks/sequence_task.hpp"
#include "experiments/tasks/text.hpp"
#include "experiments/training/beam_search.hpp"

namespace hardgrad::cli {

template <class T>
std::size_t write_hypotheses(const std::string& path, int most, const tasks::Task& task, const Model<T>& model,
                             const Target& target, const training::EvaluationSettings& settings) {
  if (!dynamic_cast<const tasks::SequenceTask*>(&task))
    throw UsageError("--hypotheses needs a task whose answers are sentences: translation, transduce or parse");
  std::map<std::uint32_t, std::vector<training::Found>> found;  // by the example's place in its file
  const auto handler = training::decoding_handler<T>(model, target, settings);
  Tape<T> tape;
  training::for_each_batch(task, settings, [&](const Batch& batch) {
    tape.clear();
    auto sentences = training::beam_search(model, batch, *handler, settings.beam, tape, most, tasks::Vocabulary::marks());
    for (std::size_t b = 0; b < sentences.size(); ++b) found[batch.id[b]] = std::move(sentences[b]);
  });
  std::string text;
  std::size_t number = 0;
  for (const auto& [id, sentences] : found) {
    for (const auto& sentence : sentences) {
      std::vector<std::string> words;
      for (int label : sentence.labels) words.push_back(task.word("target", label));
      text += most == 1 ? tasks::joined(words) + "\n"
                        : fmt::format("{} ||| {} ||| {:.6g}\n", number, tasks::joined(words), sentence.log_p);
    }
    ++number;
  }
  storage::write_file(path, text);
  return number;
}

template std::size_t write_hypotheses(const std::string&, int, const tasks::Task&, const Model<float>&, const Target&,
                                      const training::EvaluationSettings&);
template std::size_t write_hypotheses(const std::string&, int, const tasks::Task&, const Model<double>&, const Target&,
                                      const training::EvaluationSettings&);

}  // namespace hardgrad::cli
