// hardgrad completion: a script for the shell. It calls the program (`hardgrad complete`) for candidates, so that names and
// parameters are current and include those of plugins.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <memory>

#include "experiments/cli/complete.hpp"
#include "experiments/cli/json.hpp"
#include "experiments/cli/output.hpp"
#include "experiments/cli/verbs.hpp"

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
