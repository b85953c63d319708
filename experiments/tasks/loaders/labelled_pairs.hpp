// Labelled pairs of sentences: tab-separated files.
#pragma once

#include <string>
#include <vector>

namespace hardgrad::tasks {

struct LabelledTexts {
  std::string label, first, second;
};

/// Lines `label TAB sentence TAB sentence`; empty lines are skipped. InputError on a line with another number of columns or an
/// empty one, and on more than a thousand different labels.
std::vector<LabelledTexts> read_labelled_pairs(const std::string& path);

}  // namespace hardgrad::tasks
