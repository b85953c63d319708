// Coupled samples: at every choice, the options of K members are drawn jointly. Each column of a site is coupled on its own;
// member k of all columns is one row.
//
// If no choice changes another's distribution, member k of every choice belongs to path k: K rows in all. If choices feed later
// ones, the options of the first member form a base path. The other members of choice t leave it at t and continue on their
// own: 1 + (K - 1) T rows. The same layout is used if a member does not follow its choice's distribution, because it would
// distort the losses of other choices. In both cases the members' losses give the cost of each option, given all earlier
// choices.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "core/estimator/choices.hpp"
#include "core/estimator/paths.hpp"
#include "core/estimator/score_function/score_function.hpp"

namespace hardgrad {

/// The members of the groups that choose at one step. Groups of one example are adjacent.
template <class T>
struct Branches {
  std::vector<int> option;  ///< [groups K D], 0 where relaxed
  Var<T> weights = {};      ///< [groups K D, S] if some members are relaxed; hard members are one-hot
};

/// One group at one step.
struct BranchPoint {
  int row;     ///< the row of the site that chooses; in a column with one option all members take option 0
  Draw where;  ///< example, group (as replica) and step; the group draws at this key with any index below `continuing`
  static constexpr std::uint32_t continuing = 1u << 30;
};

/// How members that left the base path answer later choices.
enum class Continuation {
  sampled,   ///< by independent draws
  expected,  ///< by the expected weights
  alike      ///< like the base path; valid only if no choice changes another's distribution
};

template <class T>
class Coupled {
 public:
  using Brancher = std::function<Branches<T>(Tape<T>&, const Question<T>&, const std::vector<BranchPoint>&)>;
  /// Runs the problem's model with `groups` independent groups per example, each of `members` (K). If `lawful` is false,
  /// members other than the first need not follow the choice's distribution; then use reward_to_go credit only.
  Coupled(const Problem<T>& problem, int groups, int members, Brancher brancher,
          Continuation continuation = Continuation::sampled, bool lawful = true);

  Episode<T>& episode() { return *episode_; }
  std::unique_ptr<Episode<T>> release() { return std::move(episode_); }
  int steps() const { return static_cast<int>(episode_->steps().size()); }
  std::size_t groups() const { return groups_ * static_cast<std::size_t>(episode_->examples()); }  ///< over all examples
  /// The choices of the groups: the options of their first members, and the logits.
  const Choices<T>& choices() const;
  /// The row of step's site at which a group chooses, and the options [D] that its member took there.
  int asking(int step, std::size_t group) const { return record_->branch_points[step][group].row; }
  std::span<const int> options(int step, std::size_t group, int member) const;
  /// [choices] the option that `member` took at every choice.
  std::vector<int> options(int member) const;
  /// The member's loss: total, or with reward_to_go from that choice on.
  PerChoice losses(int member, Credit credit) const;
  /// The same of one step: by column [groups, D], or [groups] if its columns have equal losses.
  std::vector<double> losses(int step, int member, Credit credit) const;
  /// The rows of a cost on the paths of the groups' first members.
  std::vector<int> first_members(const Rows& rows) const;
  /// The weights [groups members D, S] of a step whose brancher relaxed some members.
  Var<T> weights(int step) const { return record_->branches[step].weights; }
  /// Mean of the costs: over all members if each follows the distribution and has rows of its own, else over the first members.
  Var<T> path(bool all_members);
  /// Mean loss of the first members.
  double mean_loss() const;

  struct Record {
    std::vector<std::vector<BranchPoint>> branch_points;
    std::vector<Branches<T>> branches;
  };

 private:
  /// Paths of a member of each group's choice `step`; before that choice they are the base path.
  Paths paths_of(int step, int member) const;
  int groups_, members_;
  bool joint_;
  std::unique_ptr<Record> record_;
  std::unique_ptr<Episode<T>> episode_;
  mutable std::unique_ptr<Choices<T>> choices_;  // made on first use
};

}  // namespace hardgrad
