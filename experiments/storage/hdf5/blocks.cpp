#include "experiments/storage/hdf5/blocks.hpp"

#include "experiments/storage/hdf5/types.hpp"

namespace hardgrad::storage::hdf5 {

Blocks::Blocks(File& file, Id group, std::string axis, std::size_t length)
    : file_(file), group_(std::move(group)), axis_(std::move(axis)), length_(length) {}

void Blocks::make(const Dataset& first) {
  const auto array = [&](const std::string& name, std::vector<std::size_t> shape, const Values& like, const auto& attributes,
                         bool scale) {
    shape[0] = length_;
    Array made{file_.make_array(group_, name, shape, like, attributes, true, scale)};
    for (std::size_t i = 1; i < shape.size(); ++i) made.width *= shape[i];
    arrays_.emplace(name, std::move(made));
  };
  file_.write_attributes(group_, first.attributes);
  for (const auto& axis : first.axes)
    if (axis.name == axis_)
      array(axis.name, {length_}, axis.labels, axis.attributes, true);
    else
      file_.put_values(file_.make_array(group_, axis.name, {axis.size()}, axis.labels, axis.attributes, true, true), axis.name,
                       axis.labels);
  for (const auto& variable : first.variables) {
    const bool along = !variable.axes.empty() && variable.axes[0] == axis_;
    if (along) {
      array(variable.name, first.shape(variable), variable.values, variable.attributes, false);
      file_.attach(group_, arrays_.at(variable.name).set, first, variable);
    } else {
      const auto set =
          file_.make_array(group_, variable.name, first.shape(variable), variable.values, variable.attributes, true, false);
      file_.put_values(set, variable.name, variable.values);
      file_.attach(group_, set, first, variable);
    }
  }
}

void Blocks::add(const Dataset& block) {
  block.validate();
  if (done_ == 0) make(block);
  const auto count = block.axis(axis_)->size();
  const auto put = [&](const std::string& name, const Values& values) {
    const auto it = arrays_.find(name);
    if (it == arrays_.end()) return;
    const auto& [set, width] = it->second;
    file_.put_values(set, name, values, line(count * width), rows(set, done_, count));
  };
  put(axis_, block.axis(axis_)->labels);
  for (const auto& variable : block.variables) put(variable.name, variable.values);
  file_.check();
  done_ += count;
}

}  // namespace hardgrad::storage::hdf5
