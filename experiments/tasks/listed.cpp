#include "experiments/tasks/listed.hpp"

#include <fmt/format.h>

#include "core/support/error.hpp"
#include "experiments/tasks/splits.hpp"
#include "experiments/tasks/text.hpp"

namespace hardgrad::tasks {

void Listed::require_shares(const std::string& task, const SplitShares& shares) {
  if (shares.heldout + shares.test >= 1) throw UsageError(task + ": heldout and test together must be below 1");
}

void Listed::part(const std::vector<std::string>& texts, const std::vector<Split>& splits, Key order,
                  const std::string& none_left) {
  if (texts.size() != splits.size()) throw Bug("an example has no text");
  for (const auto& text : texts) contents_.push_back((Key() / lower_case(text)).value());
  splits_ = members(splits, order);
  if (of(Split::train).empty()) throw InputError(provenance_ + ": " + none_left);
}

std::vector<std::uint64_t> Listed::contents(Split split) const {
  std::vector<std::uint64_t> found;
  for (int i : of(split)) found.push_back(contents_[static_cast<std::size_t>(i)]);
  return found;
}

std::vector<std::uint32_t> Listed::ids(Split split, const std::vector<int>& indices) const {
  std::vector<std::uint32_t> ids;
  ids.reserve(indices.size());
  for (int i : indices) ids.push_back(static_cast<std::uint32_t>(of(split).at(static_cast<std::size_t>(i))));
  return ids;
}

std::string Listed::counts() const {
  return fmt::format("{} train, {} heldout, {} test", size(Split::train), size(Split::heldout), size(Split::test));
}

}  // namespace hardgrad::tasks
