#include "core/choice/declared.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "core/support/error.hpp"

namespace hardgrad {
namespace {

/// For one question. `times` [sites] counts the questions of each site.
template <class T>
std::string undeclared(const Structure& structure, const Question<T>& question, std::vector<int>& times) {
  const auto& asked = question.site;
  const auto* site = structure.site(asked.name);
  if (!site) return fmt::format("site `{}` is asked, but not declared", asked.name);
  const auto beyond = [&](const char* what, auto seen, auto declared) {
    return fmt::format("site `{}` {} {}, declared {}", site->name, what, seen, declared);
  };
  if (question.distribution->kind() != site->kind) return beyond("is", question.distribution->kind().is, site->kind.is);
  if (const int time = ++times[site - structure.sites.data()]; time > site->times)
    return beyond("is asked too many times:", time, site->times);
  if (asked.columns > site->columns) return beyond("has too many columns:", asked.columns, site->columns);
  if (site->codes != bool(asked.codes.table))
    return fmt::format("site `{}` {}", site->name,
                       site->codes ? "declares codes, but has none" : "has codes, but declares none");
  // The choices are read only if the matrix is wider than declared.
  if (site->kind.options && static_cast<int>(question.distribution->logits().cols()) > site->options) {
    const auto& options = question.distribution->options();
    if (const int most = options.empty() ? 0 : *std::max_element(options.begin(), options.end()); most > site->options)
      return beyond("has too many options:", most, site->options);
  }
  if (!asked.state ? site->state_width != 0 : asked.state.rows() != asked.rows->size())
    return fmt::format("site `{}` does not have one row of state for each asking row", site->name);
  const int width = asked.state ? static_cast<int>(asked.state.cols()) : 0;
  return width == site->state_width ? "" : beyond("has a state of the wrong width:", width, site->state_width);
}

}  // namespace

template <class T>
std::string undeclared(const Structure& structure, const Episode<T>& run) {
  std::vector<int> times(structure.sites.size());
  for (const auto& step : run.steps())
    if (auto undeclared_site = undeclared(structure, step.question, times); !undeclared_site.empty()) return undeclared_site;
  return not_by_row(run);
}

template <class T>
std::string not_by_row(const Episode<T>& run) {
  for (const auto& cost : run.costs())
    if (cost.loss.rows() != cost.rows->size())
      return fmt::format("a cost has {} rows, but is given for {} rows", cost.loss.rows(), cost.rows->size());
  for (const auto& prediction : run.predictions())
    if (prediction.label.size() != prediction.rows->size())
      return fmt::format("{} labels are predicted for {} rows", prediction.label.size(), prediction.rows->size());
  return "";
}

template <class T>
Choice<T> DeclaredHandler<T>::choose(Tape<T>& tape, const Question<T>& question) {
  if (const auto undeclared_site = undeclared(structure_, question, times_); !undeclared_site.empty())
    refuse_undeclared(undeclared_site);
  auto choice = handler_.choose(tape, question);
  rows_ += static_cast<double>(choice.rows->size());
  if (rows_ > cap_)
    throw NotExact(
        fmt::format("a run takes more than {:.6g} rows of the network ({:.6g} up to choice {}): take fewer samples, "
                    "a smaller batch or shorter examples, or raise the setting `cap`",
                    cap_, rows_, question.step + 1));
  return choice;
}

void refuse_undeclared(const std::string& fault) { throw UsageError("the model does not run as it declares: " + fault); }

template std::string undeclared(const Structure&, const Episode<float>&);
template std::string undeclared(const Structure&, const Episode<double>&);
template std::string not_by_row(const Episode<float>&);
template std::string not_by_row(const Episode<double>&);
template class DeclaredHandler<float>;
template class DeclaredHandler<double>;

}  // namespace hardgrad
