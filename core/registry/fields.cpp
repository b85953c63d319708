#include "core/registry/fields.hpp"

#include <algorithm>

namespace hardgrad {
namespace {

template <class M>
Field<M> field_of(ParameterInfo* info) {
  return {info, nullptr, [](const void*, const M& value) -> Value { return value; }};
}

}  // namespace

Field<bool> Fields::operator()(bool& member, std::string name, std::string help) {
  if (!settings_) return field_of<bool>(add(ParameterInfo::flag(std::move(name), member, std::move(help))));
  member = settings_->flag(name);
  return field_of<bool>(nullptr);
}

Field<double> Fields::operator()(double& member, std::string name, double low, double high, std::string help) {
  if (!settings_) return field_of<double>(add(ParameterInfo::real(std::move(name), member, low, high, std::move(help))));
  member = settings_->real(name);
  return field_of<double>(nullptr);
}

Field<double> Fields::temperature(double& member, std::string name, std::string help) {
  if (!settings_) return field_of<double>(add(ParameterInfo::temperature(std::move(name), member, std::move(help))));
  member = settings_->real(name);
  return field_of<double>(nullptr);
}

Field<std::string> Fields::operator()(std::string& member, std::string name, std::string help) {
  if (!settings_) return field_of<std::string>(add(ParameterInfo::text(std::move(name), member, std::move(help))));
  member = settings_->text(name);
  return field_of<std::string>(nullptr);
}

Field<std::string> Fields::file(std::string& member, std::string name, std::string help) {
  auto field = (*this)(member, std::move(name), std::move(help));
  if (!settings_) declared_.back().is_file = true;
  return field;
}

Field<std::vector<double>> Fields::operator()(std::vector<double>& member, std::string name, std::string help,
                                              const std::string& per) {
  using List = std::vector<double>;
  if (!settings_) return field_of<List>(add(ParameterInfo::reals(std::move(name), member, std::move(help))));
  member = per.empty() ? settings_->reals(name) : settings_->reals(name, per);
  return field_of<List>(nullptr);
}

ParameterInfo* Fields::integer(std::int64_t& value, ParameterInfo info) {
  if (!settings_) return add(std::move(info));
  value = settings_->integer(info.name);
  return nullptr;
}

ParameterInfo* Fields::choice(std::size_t& index, std::string name, std::vector<std::string> names, std::string help) {
  if (settings_) index = static_cast<std::size_t>(std::find(names.begin(), names.end(), settings_->text(name)) - names.begin());
  if (index >= names.size()) throw Bug("the value of " + name + " is not in its table");
  if (settings_) return nullptr;
  auto fallback = names[index];
  return add(ParameterInfo::choice(std::move(name), std::move(fallback), std::move(names), std::move(help)));
}

}  // namespace hardgrad
