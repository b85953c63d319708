#include "experiments/training/same_words.hpp"

#include <fmt/format.h>

#include <map>
#include <set>
#include <stdexcept>

#include "core/support/error.hpp"

namespace hardgrad::training {

void require_same_words(const tasks::Task& trained, const tasks::Task& task, const EvaluationSettings& settings,
                        const std::string& where) {
  std::map<std::string, std::set<int>> seen;  // indices of each field
  for_each_batch(task, settings, [&](const Batch& batch) {
    for (const auto& [field, values] : batch.integers)
      for (int number : values) {
        if (number < 0 || !seen[field].insert(number).second) continue;
        const auto here = task.word(field, number);
        if (here.empty()) continue;
        std::string there = "nothing";
        try {
          there = trained.word(field, number);
        } catch (const std::out_of_range&) {  // it has fewer words
        }
        if (here != there)
          throw InputError(
              fmt::format("{}: the network was trained on other words: number {} of `{}` is \"{}\" here and \"{}\" "
                          "there, and this task cannot reuse the training vocabulary",
                          where, number, field, here, there));
      }
  });
}

}  // namespace hardgrad::training
