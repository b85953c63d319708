#include "core/estimator/coupling/coupled.hpp"

#include <algorithm>
#include <numeric>

#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/rearrange.hpp"
#include "core/autodiff/reduce.hpp"
#include "core/autodiff/softmax.hpp"
#include "core/choice/handlers.hpp"

namespace hardgrad {
namespace {

template <class T>
class CoupledHandler final : public Handler<T> {
 public:
  CoupledHandler(const Problem<T>& problem, int groups, int members, bool joint, typename Coupled<T>::Brancher brancher,
                 Continuation continuation, typename Coupled<T>::Record& record)
      : random_(problem.random),
        id_(problem.batch.id),
        groups_(groups),
        members_(members),
        joint_(joint),
        brancher_(std::move(brancher)),
        continuation_(continuation),
        record_(record) {}

  Choice<T> choose(Tape<T>& tape, const Question<T>& question) override {
    const auto& asking = *question.site.rows;
    const bool root = asking.is_root();
    const int examples = static_cast<int>(id_.size());
    const int width = root ? 1 : static_cast<int>(asking.size()) / (examples * groups_);  // asking rows per group
    const int goes_on = joint_ || root ? 0 : width - 1;                                   // rows that left the base path
    std::vector<BranchPoint> branch_points;
    std::vector<int> parent, from;  // one per new row; `from`: member of a fork, or -1 if the row draws for itself
    for (int g = 0; g < examples * groups_; ++g) {
      const int base = root ? g / groups_ : g * width, branches = static_cast<int>(branch_points.size()) * members_;
      branch_points.push_back({base,
                               {.example = id_[g / groups_],
                                .replica = static_cast<std::uint32_t>(g % groups_),
                                .step = static_cast<std::uint32_t>(question.step)}});
      const auto add = [&](int row, int member) {
        parent.push_back(row);
        from.push_back(member);
      };
      add(base, branches);
      for (int r = 1; r <= goes_on; ++r) add(base + r, continuation_ == Continuation::alike ? branches : -1);
      for (int k = 1; k < members_; ++k) add(joint_ && !root ? base + k : base, branches + k);
    }
    auto branches = brancher_(tape, question, branch_points);
    auto rows = Rows::after(question.site.rows, std::move(parent), question.step);
    auto choice = answer(question, rows, from, branches);
    record_.branch_points.push_back(std::move(branch_points));
    record_.branches.push_back(std::move(branches));
    return choice;
  }

 private:
  Choice<T> answer(const Question<T>& question, const RowsPtr& rows, const std::vector<int>& from,
                   const Branches<T>& branches) {
    const int D = question.site.columns;
    bool in_order = branches.option.size() == from.size() * D;  // each row is the next member
    for (std::size_t r = 0; in_order && r < from.size(); ++r) in_order = from[r] == static_cast<int>(r);
    if (in_order && !branches.weights) return {rows, ChosenOptions{branches.option}};
    std::vector<int> option(from.size() * D);
    for (std::size_t r = 0; r < from.size(); ++r) {
      if (from[r] >= 0) std::copy_n(&branches.option[from[r] * D], D, &option[r * D]);
      if (from[r] >= 0 || continuation_ != Continuation::sampled) continue;
      for (int d = 0; d < D; ++d) {
        auto where = Noise{random_, id_, question.step}.at(*rows, r, d);
        where.index = BranchPoint::continuing;
        option[r * D + d] = draw_option(question, rows->parent[r] * D + d, random_, where);
      }
    }
    if (!branches.weights) return {rows, ChosenOptions{std::move(option)}};
    if (in_order) return {rows, Relaxed<T>{std::move(option), branches.weights}};
    // Stack the forks' weights on the expected weights; every choice takes its weights from this matrix.
    const Var<T> both[] = {branches.weights, probabilities(question.categories().log_p())};
    std::vector<int> index(option.size());
    const auto all_branches = static_cast<int>(branches.weights.rows());
    for (std::size_t r = 0, c = 0; r < from.size(); ++r)
      for (int d = 0; d < D; ++d, ++c) index[c] = (from[r] >= 0 ? from[r] * D : all_branches + rows->parent[r] * D) + d;
    const auto all = gather_rows(std::span<const Var<T>>(both), std::span<const int>(index));
    return {rows, Relaxed<T>{std::move(option), all}};
  }

  Randomness& random_;
  const std::vector<std::uint32_t>& id_;
  int groups_, members_;
  bool joint_;
  typename Coupled<T>::Brancher brancher_;
  Continuation continuation_;
  typename Coupled<T>::Record& record_;
};

// Members without the choice's distribution may share a path only if no question affects another question's cost.
bool one_path_each(const Structure& structure, bool lawful) {
  return lawful ? structure.independent() : structure.steps_apart();
}

}  // namespace

template <class T>
Coupled<T>::Coupled(const Problem<T>& problem, int groups, int members, Brancher brancher, Continuation continuation,
                    bool lawful)
    : groups_(groups),
      members_(members),
      joint_(one_path_each(problem.model.structure(), lawful)),
      record_(std::make_unique<Record>()) {
  CoupledHandler<T> handler(problem, groups, members, joint_, std::move(brancher), continuation, *record_);
  episode_ = problem.run(handler);
}

template <class T>
const Choices<T>& Coupled<T>::choices() const {
  if (choices_) return *choices_;
  std::vector<std::vector<int>> all_asking(steps()), option(steps());
  for (int t = 0; t < steps(); ++t)
    for (std::size_t g = 0; g < groups(); ++g) {
      all_asking[t].push_back(asking(t, g));
      const auto of_first = options(t, g, 0);
      option[t].insert(option[t].end(), of_first.begin(), of_first.end());
    }
  choices_ = std::make_unique<Choices<T>>(*episode_, all_asking, option);
  return *choices_;
}

template <class T>
std::span<const int> Coupled<T>::options(int step, std::size_t group, int member) const {
  const std::size_t D = episode_->steps()[step].question.site.columns;
  return std::span(record_->branches[step].option).subspan((group * members_ + member) * D, D);
}

template <class T>
std::vector<int> Coupled<T>::options(int member) const {
  std::vector<int> result;
  for (int t = 0; t < steps(); ++t)
    for (std::size_t g = 0; g < groups(); ++g) {
      const auto of_member = options(t, g, member);
      result.insert(result.end(), of_member.begin(), of_member.end());
    }
  return result;
}

template <class T>
std::vector<int> Coupled<T>::first_members(const Rows& rows) const {
  return *paths_of(0, 0).through(rows);
}

template <class T>
PerChoice Coupled<T>::losses(int member, Credit credit) const {
  PerChoice result{choices().layout(), {}};
  result.value.reserve(choices().layout()->choices());
  for (int t = 0; t < steps(); ++t) {
    const auto of_step = losses(t, member, credit);
    const std::size_t each = groups() * choices().layout()->steps[t].columns / of_step.size();
    for (double f : of_step) result.value.insert(result.value.end(), each, f);
  }
  return result;
}

template <class T>
std::vector<double> Coupled<T>::losses(int step, int member, Credit credit) const {
  const auto by_column = [&](const typename Episode<T>::Cost& cost) {
    return credit == Credit::reward_to_go && cost.rows->step == step && cost.by_column;
  };
  const auto& costs = episode_->costs();
  const std::size_t D = std::any_of(costs.begin(), costs.end(), by_column) ? episode_->steps()[step].question.site.columns : 1;
  std::vector<double> result(groups() * D);
  const auto paths = paths_of(step, member);
  for (const auto& cost : costs)
    if (credit == Credit::whole || cost.rows->descends_from(step))
      accumulate<T>(by_column(cost) ? cost.by_column : cost.loss, *paths.through(*cost.rows), result);
  return result;
}

template <class T>
Var<T> Coupled<T>::path(bool all_members) {
  const auto paths = all_members && joint_ ? paths_side_by_side(*episode_, groups_ * members_) : paths_of(0, 0);
  return sum(path_cost(*episode_, paths, true), 1.0 / static_cast<double>(paths.size()));
}

template <class T>
double Coupled<T>::mean_loss() const {
  const auto losses = path_cost_values(*episode_, paths_of(0, 0), true);
  return std::accumulate(losses.begin(), losses.end(), 0.0) / static_cast<double>(groups());
}

// Rows of a group keep their places. Rows that leave the base path later are appended; before that, they are the base path,
// which comes first.
template <class T>
Paths Coupled<T>::paths_of(int step, int member) const {
  Paths paths{.example = std::vector<int>(groups()), .row = std::vector(steps(), std::vector<int>(groups()))};
  for (std::size_t g = 0; g < groups(); ++g) paths.example[g] = static_cast<int>(g) / groups_;
  for (int t = 0; t < steps(); ++t) {
    const std::size_t width = episode_->steps()[t].choice.rows->size() / groups();
    const std::size_t left = member == 0 || t < step ? 0 : 1 + step * (members_ - 1) + member - 1;
    const std::size_t place = joint_ ? member : left;
    if (place >= width) throw Bug("a coupled member has no row of its own");
    for (std::size_t g = 0; g < groups(); ++g) paths.row[t][g] = static_cast<int>(g * width + place);
  }
  return paths;
}

template class Coupled<float>;
template class Coupled<double>;

}  // namespace hardgrad
