// What a model declared of its sites, held against what a run showed.
#pragma once

#include <string>
#include <vector>

#include "core/choice/episode.hpp"
#include "core/choice/structure.hpp"

namespace hardgrad {

/// The first thing in which the run is not as declared, in words, e.g. "site `end` is asked so many times: 4, declared 1";
/// empty if there is none.
template <class T>
std::string undeclared(const Structure& structure, const Episode<T>& run);
/// Of that, what is known at the end: a cost or labels that are not one for each of their rows.
template <class T>
std::string not_by_row(const Episode<T>& run);

/// Answers as another chooser does, after a look whether the question is as declared: estimators make room by the declaration,
/// and what goes beyond it must not reach them. UsageError that says what is not. NotExact where the answers make more rows
/// than `cap` in all.
template <class T>
class DeclaredChooser final : public Chooser<T> {
 public:
  DeclaredChooser(const Structure& structure, Chooser<T>& chooser, double cap)
      : structure_(structure), chooser_(chooser), cap_(cap), times_(structure.sites.size()) {}
  Choice<T> choose(Tape<T>& tape, const Question<T>& question) override;

 private:
  const Structure& structure_;
  Chooser<T>& chooser_;
  double cap_, rows_ = 0;
  std::vector<int> times_;
};

/// UsageError of a model with such a fault.
[[noreturn]] void refuse_undeclared(const std::string& fault);

}  // namespace hardgrad
