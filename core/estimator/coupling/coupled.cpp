#include "core/estimator/coupling/coupled.hpp"

#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/rearrange.hpp"
#include "core/autodiff/reduce.hpp"
#include "core/autodiff/softmax.hpp"
#include "core/choice/choosers.hpp"

namespace hardgrad {
namespace {

template <class T>
class CoupledChooser final : public Chooser<T> {
 public:
  CoupledChooser(const Problem<T>& problem, int groups, int members, bool joint, typename Coupled<T>::Forker forker,
                 Continuation continuation, typename Coupled<T>::Record& record)
      : random_(problem.random),
        id_(problem.batch.id),
        groups_(groups),
        members_(members),
        joint_(joint),
        forker_(std::move(forker)),
        continuation_(continuation),
        record_(record) {}

  Choice<T> choose(Tape<T>& tape, const Question<T>& question) override {
    const auto& asking = *question.site.rows;
    const bool root = asking.is_root();
    const int examples = static_cast<int>(id_.size());
    const int width = root ? 1 : static_cast<int>(asking.size()) / (examples * groups_);  // asking rows of a group
    const int goes_on = joint_ || root ? 0 : width - 1;                                   // rows that left the base path
    std::vector<Forking> forking;
    std::vector<int> parent, from;  // of the new rows; `from`: member of a fork, or -1 where a row goes on by itself
    for (int g = 0; g < examples * groups_; ++g) {
      const int base = root ? g / groups_ : g * width, fork = static_cast<int>(forking.size()) * members_;
      forking.push_back({base,
                         {.example = id_[g / groups_],
                          .replica = static_cast<std::uint32_t>(g % groups_),
                          .step = static_cast<std::uint32_t>(question.step)}});
      const auto add = [&](int row, int member) {
        parent.push_back(row);
        from.push_back(member);
      };
      add(base, fork);
      for (int r = 1; r <= goes_on; ++r) add(base + r, continuation_ == Continuation::alike ? fork : -1);
      for (int k = 1; k < members_; ++k) add(joint_ && !root ? base + k : base, fork + k);
    }
    auto fork = forker_(tape, question, forking);
    auto rows = Rows::after(question.site.rows, std::move(parent), question.step);
    auto choice = answer(question, rows, from, fork);
    record_.forking.push_back(std::move(forking));
    record_.fork.push_back(std::move(fork));
    return choice;
  }

 private:
  Choice<T> answer(const Question<T>& question, const RowsPtr& rows, const std::vector<int>& from, const Fork<T>& fork) {
    const int D = question.site.columns;
    std::vector<int> option(from.size() * D);
    for (std::size_t c = 0; c < option.size(); ++c) {
      const std::size_t r = c / D;
      const auto d = static_cast<int>(c % D);
      if (from[r] >= 0)
        option[c] = fork.option[from[r] * D + d];
      else if (continuation_ == Continuation::sampled)
        option[c] = draw_option(question, rows->parent[r] * D + d, random_,
                                {.example = id_[rows->example[r]],
                                 .replica = static_cast<std::uint32_t>(rows->replica[r]),
                                 .step = static_cast<std::uint32_t>(question.step),
                                 .index = Forking::continuing,
                                 .column = static_cast<std::uint32_t>(d)});
    }
    if (!fork.weights) return {rows, std::move(option), {}};
    // The forks' weights above the expected ones: every cell takes one of these.
    const Var<T> both[] = {fork.weights, probabilities(question.log_p)};
    std::vector<int> index(option.size());
    const auto forks = static_cast<int>(fork.weights.rows());
    for (std::size_t c = 0; c < index.size(); ++c) {
      const int cell = static_cast<int>(c) % D, r = static_cast<int>(c) / D;
      index[c] = (from[r] >= 0 ? from[r] * D : forks + rows->parent[r] * D) + cell;
    }
    const auto all = gather_rows(std::span<const Var<T>>(both), std::span<const int>(index));
    return {rows, std::move(option), all};
  }

  Randomness& random_;
  const std::vector<std::uint32_t>& id_;
  int groups_, members_;
  bool joint_;
  typename Coupled<T>::Forker forker_;
  Continuation continuation_;
  typename Coupled<T>::Record& record_;
};

// Members that are no draws may share a path only where a choice touches no other choice's cost.
bool one_path_each(const Structure& structure, bool lawful) {
  return lawful ? structure.independent() : structure.factorised();
}

}  // namespace

template <class T>
Coupled<T>::Coupled(const Problem<T>& problem, int groups, int members, Forker forker, Continuation continuation, bool lawful)
    : groups_(groups),
      members_(members),
      joint_(one_path_each(problem.model.structure(), lawful)),
      record_(std::make_unique<Record>()) {
  CoupledChooser<T> chooser(problem, groups, members, joint_, std::move(forker), continuation, *record_);
  episode_ = problem.run(chooser);
}

template <class T>
std::vector<double> Coupled<T>::losses(int step, Credit credit) const {
  std::vector<double> result(groups() * members_);
  for (const auto& cost : episode_->costs()) {
    if (credit == Credit::reward_to_go && !cost.rows->descends_from(step)) continue;
    const T* value = cost.loss.value().data;
    const std::size_t width = cost.rows->is_root() ? 0 : cost.rows->size() / groups();
    const bool left = joint_ || cost.rows->step >= step;  // else the members are still one, on the base path
    for (std::size_t i = 0; i < result.size(); ++i) {
      const auto group = i / members_;
      const std::size_t at = left ? position(step, static_cast<int>(i % members_)) : 0;
      if (width != 0 && at >= width) throw Bug("a coupled member has no row of its own");
      result[i] += static_cast<double>(value[width == 0 ? group / groups_ : group * width + at]);
    }
  }
  return result;
}

template <class T>
Var<T> Coupled<T>::at_logits(int step, const std::vector<double>& gradient) {
  const auto& question = episode_->steps()[step].question;
  const auto logits = question.logits;
  const auto of_row = logits.cols() * question.site.columns;  // numbers
  std::vector<double> weight(logits.value().size());
  for (std::size_t g = 0; g < groups(); ++g)
    for (std::size_t i = 0; i < of_row; ++i)
      weight[record_->forking[step][g].row * of_row + i] += gradient[g * of_row + i] / static_cast<double>(groups());
  return weighted_sum(logits, std::span<const double>(weight));
}

template <class T>
Var<T> Coupled<T>::path(bool all_members) {
  auto total = episode_->tape().constant(1, 1);
  for (const auto& cost : episode_->costs()) {
    const auto rows = cost.rows->size();
    if (cost.rows->is_root() || (all_members && joint_)) {
      total = add(total, sum(cost.loss, 1.0 / static_cast<double>(rows)));
      continue;
    }
    std::vector<double> weight(rows);
    for (std::size_t g = 0; g < groups(); ++g) weight[g * (rows / groups())] = 1.0 / static_cast<double>(groups());
    total = add(total, weighted_sum(cost.loss, std::span<const double>(weight)));
  }
  return total;
}

template <class T>
double Coupled<T>::mean_loss() const {
  const auto all = losses(0, Credit::whole);
  double sum = 0;
  for (std::size_t i = 0; i < all.size(); i += members_) sum += all[i];
  return sum / static_cast<double>(groups());
}

// Where the path of a member stands among the rows of its group. Rows keep their places: those that leave the base path
// later are added behind, and before that they are the base path, which comes first.
template <class T>
int Coupled<T>::position(int step, int member) const {
  return joint_ || member == 0 ? member : 1 + step * (members_ - 1) + member - 1;
}

template class Coupled<float>;
template class Coupled<double>;

}  // namespace hardgrad
