#include "experiments/cli/complete.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <functional>
#include <set>

#include "core/estimator/estimator.hpp"
#include "core/models/model.hpp"
#include "core/registry/plugins.hpp"
#include "core/support/error.hpp"
#include "experiments/support/path_kind.hpp"
#include "experiments/sweeps/settings_table.hpp"
#include "experiments/tasks/task.hpp"

namespace hardgrad::cli {
namespace {

using Words = std::vector<std::string>;

Words values_of(const ParameterInfo& info) {
  if (info.type == ParameterInfo::Type::boolean) return {"true", "false"};
  if (info.type == ParameterInfo::Type::choice) return info.choices;
  const auto fallback = to_string(info.fallback);
  return fallback.empty() ? Words{} : Words{fallback};
}

// A name, or, within `name[`, the parameters not given yet and their values.
template <class Entry>
void add_specs(const std::string& text, Words& found) {
  const auto& entries = Registry<Entry>::instance().entries();
  const auto bracket = text.find('[');
  if (bracket == std::string::npos) {
    for (const auto& [name, entry] : entries) {
      found.push_back(name);
      if (name == text && !entry.parameters.empty()) found.push_back(name + "[");
    }
    return;
  }
  const auto entry = entries.find(text.substr(0, bracket));
  if (entry == entries.end()) return;
  std::set<std::string> given;
  std::size_t start = bracket + 1;
  for (auto comma = text.find(',', start); comma != std::string::npos; comma = text.find(',', start)) {
    const auto part = text.substr(start, comma - start);
    given.insert(part.substr(0, part.find('=')));
    start = comma + 1;
  }
  const auto before = text.substr(0, start), part = text.substr(start);
  const auto equals = part.find('=');
  for (const auto& parameter : entry->second.parameters) {
    if (equals == std::string::npos) {
      if (!given.contains(parameter.name)) found.push_back(before + parameter.name + "=");
    } else if (parameter.name == part.substr(0, equals)) {
      for (const auto& value : values_of(parameter)) {
        const auto whole = before + parameter.name + "=" + value;
        found.push_back(whole);
        if (whole != text) continue;
        if (given.size() + 1 < entry->second.parameters.size()) found.push_back(whole + ",");
        found.push_back(whole + "]");
      }
    }
  }
}

// `prefix` and a setting, or its values after '='.
void add_settings(const std::string& prefix, const std::string& text, Words& found) {
  for (const auto& setting : sweeps::settings_table()) {
    const auto start = prefix + setting.path + "=";
    if (text.starts_with(start))
      for (const auto& value : values_of(setting.info)) found.push_back(start + value);
    else
      found.push_back(start);
  }
}

void add_specs_behind(const std::string& key, const std::string& text, Words& found) {
  Words specs;
  const auto value = text.substr(key.size());
  if (key.ends_with("task=")) add_specs<tasks::TaskEntry>(value, specs);
  if (key.ends_with("model=")) add_specs<ModelEntry>(value, specs);
  if (key.ends_with("estimator=")) add_specs<EstimatorEntry>(value, specs);
  for (const auto& spec : specs) found.push_back(key + spec);
}

// --set: any setting of the file; --only: axes.
void add_assignments(const std::string& text, bool set, Words& found) {
  const std::string prefix = set ? "grid." : "";
  for (const char* axis : {"task", "model", "estimator", "seed"}) {
    const auto key = prefix + axis + "=";
    if (text.starts_with(key))
      add_specs_behind(key, text, found);
    else
      found.push_back(key);
  }
  add_settings("", text, found);
  if (!set) return;
  add_settings("grid.", text, found);
  for (const char* key : {"name=", "seed=", "out=", "precision=float", "precision=double"}) found.push_back(key);
}

// Values of an option; false if it takes a file, a number or another value without candidates.
bool add_values(const std::string& option, const std::string& text, Words& found) {
  if (option == "--estimator")
    add_specs<EstimatorEntry>(text, found);
  else if (option == "--model")
    add_specs<ModelEntry>(text, found);
  else if (option == "--task")
    add_specs<tasks::TaskEntry>(text, found);
  else if (option == "--set")
    add_assignments(text, true, found);
  else if (option == "--only" || option == "--why")
    add_assignments(text, false, found);
  else
    return false;
  return true;
}

// The values that Argument::one_of allows, which help shows in braces.
Words choices_of(const CLI::Option* option) {
  Words found;
  const auto shown = option ? option->get_type_name() : "";
  const auto open = shown.find('{'), close = shown.find('}');
  if (open == std::string::npos || close == std::string::npos) return found;
  for (std::size_t at = open + 1; at < close;) {
    const auto end = std::min(shown.find(',', at), close);
    found.push_back(shown.substr(at, end - at));
    at = end + 1;
  }
  return found;
}

void add_arguments(const std::string& verb, const std::string& text, Words& found) {
  if (verb == "list") found = {"estimators", "models", "tasks", "targets", "names", "matrix"};
  if (verb == "completion") found = {"bash", "zsh", "fish"};
  if (verb != "test" && verb != "describe") return;
  add_specs<EstimatorEntry>(text, found);
  add_specs<ModelEntry>(text, found);
  add_specs<tasks::TaskEntry>(text, found);
  if (verb == "describe") found.push_back("sweep");
}

// The option of the verb or the program; null if none has that name.
const CLI::Option* option_of(const CLI::App& app, const CLI::App* verb, const std::string& name) {
  for (const auto* at : {verb, &app})
    if (const auto* option = at ? at->get_option_no_throw(name) : nullptr) return option;
  return nullptr;
}
bool takes_value(const CLI::Option* option) { return option && option->get_items_expected_max() > 0; }

}  // namespace

TypedLine read_line(const std::string& text) {
  TypedLine line;
  char quote = 0;
  bool inside = false;  // a word has started
  const auto finish = [&] {
    if (inside) line.words.push_back(line.last);
    line.last.clear();
    line.kept = 0;
    inside = false;
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote) {
      if (c == quote) {
        quote = 0;
      } else {
        line.last += c == '\\' && quote == '"' && i + 1 < text.size() ? text[++i] : c;
      }
    } else if (c == '\'' || c == '"') {
      quote = c;
      inside = true;
      line.kept = line.last.size();
    } else if (c == '\\' && i + 1 < text.size()) {
      line.last += text[++i];
      inside = true;
    } else if (c == ' ' || c == '\t' || c == '\n') {
      finish();
    } else if (c == ';' || c == '|' || c == '&') {  // another command starts
      finish();
      line.words.clear();
    } else {
      line.last += c;
      inside = true;
      if (c == '=' || c == ':') line.kept = line.last.size();
    }
  }
  line.quoted = quote != 0;
  while (!line.words.empty() && line.words.front().find('=') != std::string::npos)
    line.words.erase(line.words.begin());  // VARIABLE=value
  if (!line.words.empty()) line.words.erase(line.words.begin());
  return line;
}

std::vector<std::string> completions(const CLI::App& app, const TypedLine& line) {
  const CLI::App* verb = nullptr;
  std::string awaiting;  // the option whose value comes next
  for (const auto& word : line.words) {
    const auto name = word.substr(0, word.find('='));
    const auto plugin = awaiting == "--plugin" ? word : name == "--plugin" && name != word ? word.substr(9) : "";
    try {
      if (!plugin.empty()) {
        refuse_strange(plugin);
        load_plugin(plugin);
      }
    } catch (const Error&) {  // the command itself will report it
    }
    const bool value = !awaiting.empty();
    awaiting = !value && name == word && takes_value(option_of(app, verb, word)) ? word : "";
    if (!value && !verb && !word.starts_with('-'))
      for (const auto* sub : app.get_subcommands([&](const CLI::App* sub) { return sub->get_name() == word; })) verb = sub;
  }
  Words found;
  std::string start;  // --option= before a value
  auto text = line.last;
  if (const auto equals = text.find('='); text.starts_with("--") && equals != std::string::npos) {
    awaiting = text.substr(0, equals);
    start = text.substr(0, equals + 1);
    text = text.substr(equals + 1);
  }
  if (!awaiting.empty()) {
    if (!add_values(awaiting, text, found)) found = choices_of(option_of(app, verb, awaiting));
  } else if (text.starts_with('-')) {
    for (const auto* at : {verb, &app})
      for (const auto* option : at ? at->get_options() : std::vector<const CLI::Option*>{})
        for (const auto& name : option->get_lnames()) found.push_back("--" + name);
  } else if (!verb) {
    for (const auto* sub : app.get_subcommands([](const CLI::App* sub) { return !sub->get_group().empty(); }))
      found.push_back(sub->get_name());
  } else {
    add_arguments(verb->get_name(), text, found);
  }
  for (auto& word : found) word = start + word;
  std::erase_if(found, [&](const auto& word) { return !word.starts_with(line.last); });
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

}  // namespace hardgrad::cli
