// Words that complete the value of an argument (Argument::completed_by), given its beginning.
#pragma once

#include <string>
#include <vector>

namespace hardgrad::cli {

/// Names and, within `name[`, the parameters not given yet and their values.
std::vector<std::string> estimator_specs(const std::string& text);
std::vector<std::string> model_specs(const std::string& text);
std::vector<std::string> task_specs(const std::string& text);
/// All three.
std::vector<std::string> specs(const std::string& text);
/// `path=value` of any setting of a sweep's file.
std::vector<std::string> sweep_settings(const std::string& text);
/// `axis=value` of cells.
std::vector<std::string> axis_patterns(const std::string& text);

}  // namespace hardgrad::cli
