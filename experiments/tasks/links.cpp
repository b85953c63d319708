#include "experiments/tasks/links.hpp"

namespace hardgrad::tasks {

AlignmentErrors alignment_errors(const std::set<Link>& found, const GoldLinks& gold) {
  const auto all = static_cast<double>(found.size() + gold.sure.size());
  double right = 0;
  for (const auto& link : found) right += static_cast<double>(gold.sure.count(link) + gold.possible.count(link));
  return {all - right, all};
}

}  // namespace hardgrad::tasks
