// The registry of entries (estimators, models, tasks, targets): names, declarations and factories.
//
// An entry's .cpp ends with HARDGRAD_ESTIMATOR, HARDGRAD_MODEL, HARDGRAD_TARGET or HARDGRAD_TASK. The sources are linked as
// objects, not through an archive, because a linker drops unreferenced archive members.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/registry/fields.hpp"
#include "core/support/error.hpp"

namespace hardgrad {

/// The registered names, in order, from which a plugin's names are determined. An existing name is recorded, because an
/// exception cannot be thrown while a library is loading.
struct Registrations {
  std::vector<std::pair<std::string, std::string>> made, refused;  ///< (noun, name)
  std::vector<std::string> faults;                                 ///< messages about invalid entries
  bool loading_plugin = false;
};
Registrations& registrations();

/// `Entry` has at least `std::string name` and `std::vector<ParameterInfo> parameters`.
template <class Entry>
class Registry {
 public:
  /// The only registry of this kind of entry.
  static Registry& instance() {
    static Registry registry;
    return registry;
  }
  void add(Entry entry) {
    auto name = entry.name;
    auto& log = registrations();
    if constexpr (requires { entry.fault(); })
      if (auto fault = entry.fault(); !fault.empty())
        log.faults.push_back(std::string(Entry::noun) + " \"" + name + "\" " + fault);
    if (entries_.emplace(name, std::move(entry)).second)
      log.made.emplace_back(Entry::noun, name);
    else if (log.loading_plugin)
      log.refused.emplace_back(Entry::noun, name);
    else
      throw Bug(name + " registered twice");
  }
  /// All entries by name.
  const std::map<std::string, Entry>& entries() const { return entries_; }
  std::vector<std::string> names() const {
    std::vector<std::string> result;
    for (const auto& [name, entry] : entries_) result.push_back(name);
    return result;
  }
  /// Throws UsageError `unknown estimator "rlo" (did you mean "rloo"?)`.
  const Entry& at(const std::string& name) const {
    auto it = entries_.find(name);
    if (it == entries_.end())
      throw UsageError(std::string("unknown ") + Entry::noun + " \"" + name + "\"" + did_you_mean(name, names()));
    return it->second;
  }

 private:
  std::map<std::string, Entry> entries_;
};

template <class Entry>
struct Registration {
  explicit Registration(Entry entry) { Registry<Entry>::instance().add(std::move(entry)); }
};

}  // namespace hardgrad
