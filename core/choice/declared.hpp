// Compares a model's declared sites with the questions of a run.
#pragma once

#include <string>
#include <vector>

#include "core/choice/episode.hpp"
#include "core/choice/structure.hpp"

namespace hardgrad {

/// The first difference between the run and the declaration, e.g. "site `end` is asked too many times: 4, declared 1"; empty if
/// there is none.
template <class T>
std::string undeclared(const Structure& structure, const Episode<T>& run);
/// The differences found only after the run: a cost, or labels, whose length is not the number of their rows.
template <class T>
std::string not_by_row(const Episode<T>& run);

/// Checks each question against the declaration, then asks another handler. Estimators allocate by the declaration, so a
/// question beyond it must not reach them. UsageError names the difference. NotExact if the answers make more than `cap` rows
/// in total.
template <class T>
class DeclaredHandler final : public Handler<T> {
 public:
  DeclaredHandler(const Structure& structure, Handler<T>& handler, double cap)
      : structure_(structure), handler_(handler), cap_(cap), times_(structure.sites.size()) {}
  Choice<T> choose(Tape<T>& tape, const Question<T>& question) override;

 private:
  const Structure& structure_;
  Handler<T>& handler_;
  double cap_, rows_ = 0;
  std::vector<int> times_;
};

/// Throws the UsageError for such a difference.
[[noreturn]] void refuse_undeclared(const std::string& fault);

}  // namespace hardgrad
