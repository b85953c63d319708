#include "core/models/parts/replicates.hpp"

#include <numeric>

namespace hardgrad {

Batch repeated(const Batch& batch, int copies) {
  std::vector<int> position(static_cast<std::size_t>(batch.examples()) * copies), same(position.size());
  for (std::size_t v = 0; v < position.size(); ++v) {
    position[v] = static_cast<int>(v) / copies;
    same[v] = position[v] * copies;
  }
  auto result = batch.select(position);
  std::iota(result.id.begin(), result.id.end(), 0u);
  result.integers["same_as"] = shaped<int>({same.size()}, same);
  return result;
}

Distinct::Distinct(const Batch& batch) : index(batch.examples()), whole_(batch) {
  const auto same = batch.integers.find("same_as");
  for (int b = 0; b < batch.examples(); ++b) {
    const int source = same == batch.integers.end() ? b : same->second(b);
    if (source == b) first.push_back(b);
    index[b] = source == b ? static_cast<int>(first.size()) - 1 : index[source];
  }
  if (!all()) few_ = batch.select(first);
}

Randomness& ReplicatedRandomness::source(Draw& where) {
  const auto copies = static_cast<std::uint32_t>(sources_.size());
  auto& source = *sources_[where.example % copies];
  where.example = id_[where.example / copies];
  return source;
}

}  // namespace hardgrad
