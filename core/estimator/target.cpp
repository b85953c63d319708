#include "core/estimator/target.hpp"

namespace hardgrad {

Target::Target(const std::string& spec) {
  const auto parsed = Spec::parse(spec);
  entry_ = &Targets::instance().at(parsed.name);
  settings_ = Settings(parsed.name, entry_->parameters, parsed);
  text_ = settings_.canonical();
  if (entry_->terms) terms_ = entry_->terms(settings_);
}

const std::string& Target::name() const { return entry_->name; }

}  // namespace hardgrad
