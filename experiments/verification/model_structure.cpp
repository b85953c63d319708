#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "experiments/verification/model_checks.hpp"
#include "experiments/verification/traces.hpp"

namespace hardgrad::verification {
namespace {

constexpr double noticed = 1e-9;  // above the rounding of products of other shapes
constexpr int bases = 3;          // sets of answers from which single ones are changed
constexpr int changes = 40;       // per set

/// As in the documentation.
std::string in_words(DependenceScope scope) {
  switch (scope) {
    case DependenceScope::own_column: return "costs of its own column";
    case DependenceScope::own_costs: return "costs of its own question";
    case DependenceScope::later_costs: return "later costs";
    case DependenceScope::later_choices: return "later choices";
  }
  return "";
}

bool moved(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() != b.size()) return true;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (a[i] != b[i] && !(std::abs(a[i] - b[i]) <= noticed * std::max(1.0, std::abs(a[i])))) return true;
  return false;
}

std::vector<double> joined(const std::vector<std::vector<double>>& lists) {
  std::vector<double> all;
  for (const auto& list : lists) all.insert(all.end(), list.begin(), list.end());
  return all;
}

/// Changes one answer at a time.
class Perturbations {
 public:
  explicit Perturbations(const ModelScene& scene) : scene_(scene) {}

  std::string run(std::string& detail) {
    int made = 0;
    for (int set = 0; set < bases; ++set) {
      const auto answers = drawn_by(Key(17) / static_cast<std::uint64_t>(set));
      const auto before = traces_of(*scene_.model, scene_.batch, answers);
      if (!before.undeclared.empty()) return before.undeclared;
      if (auto wrong = chained(before); !wrong.empty()) return wrong;
      const auto places = choices(before);
      const auto stride = std::max<std::size_t>(1, places.size() / changes);
      for (std::size_t p = 0; p < places.size(); p += stride, ++made)
        if (auto wrong = change(answers, before, places[p]); !wrong.empty()) return wrong;
    }
    std::vector<std::string> reached;
    for (const auto& [site, scope] : farthest_) {
      const auto declared = scene_.model->structure().site(site)->scope;
      reached.push_back(fmt::format("`{}` {}{}", site, in_words(scope),
                                    scope < declared ? fmt::format(" (declared: {})", in_words(declared)) : ""));
    }
    detail = fmt::format("{} answers changed; reached: {}", made, fmt::join(reached, ", "));
    return "";
  }

 private:
  struct Where {
    int example, question, choice;
  };

  /// If choices change only their question's costs, all questions are asked on the root's rows: enumerations and couplings
  /// handle them one by one.
  std::string chained(const Traces& traces) const {
    const auto& structure = scene_.model->structure();
    for (std::size_t t = 0; structure.steps() > 1 && structure.steps_apart() && t < traces.asking.size(); ++t)
      if (!traces.asking[t]->is_root())
        return fmt::format(
            "question {} is asked on rows that come from question {}: if choices reach at most the costs "
            "of their question, ask on the root's rows",
            t + 1, traces.asking[t]->step + 1);
    return "";
  }

  std::vector<Where> choices(const Traces& traces) const {
    std::vector<Where> all;
    for (std::size_t b = 0; b < traces.of_row.size(); ++b)
      for (std::size_t q = 0; q < traces.of_row[b].questions.size(); ++q)
        for (std::size_t c = 0; c < traces.of_row[b].questions[q].column.size(); ++c)
          all.push_back({static_cast<int>(b), static_cast<int>(q), static_cast<int>(c)});
    return all;
  }

  std::string change(const GivenChoices& answers, const Traces& before, const Where& at) {
    const auto id = scene_.batch.id[at.example];
    const auto after = traces_of(*scene_.model, scene_.batch, [&](const ChoiceIndex& place, int options) {
      const double answer = answers(place, options);
      if (place.example != id || place.question != at.question || place.choice != at.choice) return answer;
      return options > 0 ? std::fmod(answer + 1, options) : answer + 0.37;
    });
    if (!after.undeclared.empty()) return after.undeclared;
    const auto& asked = before.of_row[at.example].questions[at.question];
    const auto who = fmt::format("choice {} of question {} (site `{}`) of example {}", asked.column[at.choice] + 1,
                                 asked.step + 1, asked.site, at.example + 1);
    for (std::size_t b = 0; b < before.of_row.size(); ++b)
      if (scene_.batch.id[b] != id)
        if (const auto leak = difference(after.of_row[b], before.of_row[b], noticed); !leak.empty())
          return fmt::format("{} moves example {}: {}", who, b + 1, leak);
    // A single column has all costs of the question.
    const auto least = before.columns[asked.step] == 1 ? DependenceScope::own_costs : DependenceScope::own_column;
    const auto declared = std::max(least, scene_.model->structure().site(asked.site)->scope);
    auto scope = least;
    if (auto wrong = later_questions(before, after, at, asked, scope); !wrong.empty()) return who + wrong;
    std::string where;
    if (auto wrong = costs(before, after, at, asked, scope, where); !wrong.empty()) return who + wrong;
    auto& farthest = farthest_.try_emplace(asked.site, DependenceScope::own_column).first->second;
    farthest = std::max(farthest, scope);
    if (scope > declared) return fmt::format("{} reaches {}{}, declared: {}", who, in_words(scope), where, in_words(declared));
    return "";
  }

  /// Checks the later questions with a changed distribution.
  std::string later_questions(const Traces& before, const Traces& after, const Where& at, const Trace::Question& asked,
                              DependenceScope& scope) const {
    std::map<int, std::pair<const Trace::Question*, const Trace::Question*>> of_step;  // before and after
    for (const auto& question : before.of_row[at.example].questions) of_step[question.step].first = &question;
    for (const auto& question : after.of_row[at.example].questions) of_step[question.step].second = &question;
    for (const auto& [step, questions] : of_step) {
      const auto [was, is] = questions;
      if (was && is && was->options == is->options && !moved(joined(was->law), joined(is->law))) continue;
      if (step <= asked.step) return fmt::format(" moves question {}, which comes before its answer", step + 1);
      if (!(is ? after : before).asking[step]->descends_from(asked.step))
        return fmt::format(" moves question {}, whose rows do not come from it", step + 1);
      scope = DependenceScope::later_choices;
    }
    return "";
  }

  /// Checks the changed costs.
  std::string costs(const Traces& before, const Traces& after, const Where& at, const Trace::Question& asked,
                    DependenceScope& scope, std::string& where) const {
    const auto &was = before.of_row[at.example].costs, &is = after.of_row[at.example].costs;
    if (was.size() != is.size()) return " changes the number of costs";
    for (std::size_t c = 0; c < was.size(); ++c) {
      if (!moved(was[c], is[c])) continue;
      const auto& rows = *after.paying[c];
      if (!rows.descends_from(asked.step)) return fmt::format(" moves cost {}, whose rows do not come from it", c + 1);
      auto found = DependenceScope::later_costs;
      if (rows.step == asked.step) {
        found = was[c].size() > 1 ? DependenceScope::own_column : DependenceScope::own_costs;
        for (std::size_t d = 0; found == DependenceScope::own_column && d < was[c].size(); ++d)
          if (static_cast<int>(d) != asked.column[at.choice] && moved({was[c][d]}, {is[c][d]}))
            found = DependenceScope::own_costs;
      }
      if (found > scope) where = fmt::format(" (cost {})", c + 1);
      scope = std::max(scope, found);
    }
    return "";
  }
  const ModelScene& scene_;
  std::map<std::string, DependenceScope> farthest_;
};

}  // namespace

std::string check_sites(const ModelScene& scene, std::string& detail) {
  struct Seen {
    int times = 0, columns = 0, options = 0;
  };
  std::map<std::string, Seen> most;
  std::vector<std::string> order;
  const auto& structure = scene.model->structure();
  for (int set = 0; set < bases; ++set) {
    const auto traces =
        traces_of(*scene.model, scene.batch, drawn_by(Key(18) / static_cast<std::uint64_t>(set)), {.samples = 2});
    if (!traces.undeclared.empty()) return traces.undeclared;
    for (const auto& trace : traces.of_row) {
      if (structure.rewards && trace.loss > 0)
        return "losses are declared to be rewards with the sign changed, but a loss is positive";
      std::map<std::string, int> times;
      for (const auto& question : trace.questions) {
        auto& seen = most[question.site];
        if (seen.columns == 0) order.push_back(question.site);
        seen.times = std::max(seen.times, ++times[question.site]);
        seen.columns = std::max(seen.columns, static_cast<int>(question.column.size()));
        for (int n : question.options) seen.options = std::max(seen.options, n);
      }
    }
  }
  std::vector<std::string> found;
  for (const auto& site : structure.sites) {
    const auto seen = most.find(site.name);
    if (seen == most.end()) return fmt::format("site `{}` is declared, but never has a choice", site.name);
    const auto of = [](int n, int declared) {
      return n == declared ? fmt::format("{}", n) : fmt::format("{} of {}", n, declared);
    };
    const auto& [times, columns, options] = seen->second;
    found.push_back(fmt::format("`{}` asked {} x {} columns{}", site.name, of(times, site.times), of(columns, site.columns),
                                site.kind.options ? fmt::format(" x {} {}", of(options, static_cast<int>(site.support_size())),
                                                                site.kind.several ? "subsets" : "options")
                                                  : ""));
  }
  detail = found.empty() ? "no choice" : fmt::format("{}", fmt::join(found, ", "));
  return "";
}

std::string check_reach(const ModelScene& scene, std::string& detail) { return Perturbations(scene).run(detail); }

}  // namespace hardgrad::verification
