// hardgrad completion: a script for the shell. It calls the program (`hardgrad complete`) for candidates, so that names and
// parameters are current and include those of plugins.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "core/registry/plugins.hpp"
#include "core/support/error.hpp"
#include "experiments/cli/output.hpp"
#include "experiments/cli/verb.hpp"
#include "experiments/support/path_kind.hpp"

namespace hardgrad::cli {
namespace {

constexpr const char* bash = R"(# hardgrad completion bash
_hardgrad() {
  mapfile -t COMPREPLY < <("${COMP_WORDS[0]/#\~/$HOME}" complete bash "${COMP_LINE:0:COMP_POINT}" 2>/dev/null)
  case "${COMPREPLY[*]}" in *[[,=]) compopt -o nospace 2>/dev/null ;; esac
}
complete -o default -F _hardgrad hardgrad
)";

constexpr const char* zsh = R"(#compdef hardgrad
# hardgrad completion zsh
_hardgrad() {
  local -a found open
  found=("${(@f)$("${words[1]/#\~/$HOME}" complete zsh "$LBUFFER" 2>/dev/null)}")
  open=(${(M)found:#*[[,=]})
  found=(${found:#*[[,=]})
  (( $#open + $#found )) || { _files; return }
  (( $#open )) && compadd -S '' -- $open
  (( $#found )) && compadd -- $found
}
compdef _hardgrad hardgrad
)";

constexpr const char* fish = R"(# hardgrad completion fish
function __hardgrad_complete
  set -l words (commandline -opc)
  set -l found ($words[1] complete fish (commandline -cp | string collect) 2>/dev/null)
  if test (count $found) -gt 0
    printf '%s\n' $found
  else
    __fish_complete_path (commandline -ct)
  end
end
complete -c hardgrad -f -a '(__hardgrad_complete)'
)";

// A command line up to the cursor, parsed as by its shell.
struct TypedLine {
  std::vector<std::string> words;  // before the last one, without the program
  std::string last;                // the word at the cursor; may be empty
  std::size_t kept = 0;            // its bytes that bash does not replace: up to an opening quote, '=' or ':'
  bool quoted = false;             // the cursor is inside quotes
};

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

// The option of the verb or the program; null if none has that name.
const CLI::Option* option_of(const CLI::App& app, const CLI::App* verb, const std::string& name) {
  for (const auto* at : {verb, &app})
    if (const auto* option = at ? at->get_option_no_throw(name) : nullptr) return option;
  return nullptr;
}
bool takes_value(const CLI::Option* option) { return option && option->get_items_expected_max() > 0; }

// Complete words that start with `line.last`: verbs, options, names, parameters within `name[`, values. Loads the plugins of
// the line. Empty where a file is expected.
std::vector<std::string> completions(const CLI::App& app, const TypedLine& line) {
  const CLI::App* verb = nullptr;
  std::string awaiting;  // the option whose value comes next
  for (const auto& word : line.words) {
    const auto name = word.substr(0, word.find('='));
    const auto plugin = awaiting == "--plugin" ? word : name == "--plugin" && name != word ? word.substr(9) : "";
    try {
      if (!plugin.empty()) {
        reject_control_characters(plugin);
        load_plugin(plugin);
      }
    } catch (const Error&) {  // the command itself will report it
    }
    const bool value = !awaiting.empty();
    awaiting = !value && name == word && takes_value(option_of(app, verb, word)) ? word : "";
    if (!value && !verb && !word.starts_with('-'))
      for (const auto* sub : app.get_subcommands([&](const CLI::App* sub) { return sub->get_name() == word; })) verb = sub;
  }
  std::vector<std::string> found;
  std::string start;  // --option= before a value
  auto text = line.last;
  if (const auto equals = text.find('='); text.starts_with("--") && equals != std::string::npos) {
    awaiting = text.substr(0, equals);
    start = text.substr(0, equals + 1);
    text = text.substr(equals + 1);
  }
  if (!awaiting.empty()) {
    found = candidates_of(option_of(app, verb, awaiting), text);
  } else if (text.starts_with('-')) {
    for (const auto* at : {verb, &app})
      for (const auto* option : at ? at->get_options() : std::vector<const CLI::Option*>{})
        for (const auto& name : option->get_lnames()) found.push_back("--" + name);
  } else if (!verb) {
    for (const auto* sub : app.get_subcommands([](const CLI::App* sub) { return !sub->get_group().empty(); }))
      found.push_back(sub->get_name());
  } else {
    for (const auto* argument : verb->get_options([](const CLI::Option* option) { return option->get_positional(); }))
      for (auto& word : candidates_of(argument, text)) found.push_back(std::move(word));
  }
  for (auto& word : found) word = start + word;
  std::erase_if(found, [&](const auto& word) { return !word.starts_with(line.last); });
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

// The text that bash inserts: without the kept prefix, and with special characters escaped.
std::string for_bash(const std::string& word, const TypedLine& line) {
  auto text = word.substr(std::min(line.kept, word.size()));
  if (line.quoted) return text;
  std::string escaped;
  for (char c : text) {
    if (std::string_view(" ;&|()<>'\"\\*?$`").find(c) != std::string_view::npos) escaped += '\\';
    escaped += c;
  }
  return escaped;
}

}  // namespace

void add_completion(CLI::App& app, Action& action) {
  struct Options {
    std::string shell, line;
    bool json = false;
  };
  auto options = std::make_shared<Options>();
  const std::vector<std::string> shells{"bash", "zsh", "fish"};
  Verb script(app, "completion", "a completion script: eval \"$(hardgrad completion bash)\"");
  script.add("shell", options->shell, "bash, zsh or fish").required().one_of(shells);
  script.flag("--json", options->json, "print JSON");
  script.does(action, [options] {
    const auto* text = options->shell == "bash" ? bash : options->shell == "zsh" ? zsh : fish;
    options->json ? print_json({{"shell", options->shell}, {"script", text}}) : put("{}", text);
    return 0;
  });
  Verb complete(app, "complete", "candidates for the end of a line, for the scripts");
  complete.hide();
  complete.add("shell", options->shell, "").required().one_of(shells);
  complete.add("line", options->line, "the line up to the cursor").required();
  complete.flag("--json", options->json, "print JSON: complete words");
  complete.does(action, [options, &app] {
    const auto line = read_line(options->line);
    const auto words = completions(app, line);
    if (options->json) {
      print_json(words);
      return 0;
    }
    for (const auto& word : words) put("{}\n", options->shell == "bash" ? for_bash(word, line) : word);
    return 0;
  });
}

}  // namespace hardgrad::cli
