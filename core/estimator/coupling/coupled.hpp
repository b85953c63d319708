// Coupled samples: at every choice, K members whose options are drawn together. Columns of a site are coupled each by itself,
// and member k of all of them is one row.
//
// Where no choice changes another's distribution, member k of every choice belongs to the one path k: K rows in all.
// Where choices feed later ones, the first member's options make a base path, and the other members of choice t leave it
// there and go on by themselves: 1 + (K - 1) T rows. So they do where a member is no draw of its choice's distribution
// and would spoil the losses of other choices. Either way the losses of a choice's members say what its options cost,
// given everything before it.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "core/estimator/choices.hpp"
#include "core/estimator/paths.hpp"
#include "core/estimator/score_function/score_function.hpp"

namespace hardgrad {

/// The members of the groups that choose at one step; groups of an example stand together.
template <class T>
struct Fork {
  std::vector<int> option;  ///< [groups K D] (0 where relaxed)
  Var<T> weights = {};      ///< [groups K D, S] if some members are relaxed (hard ones are one-hot)
};

/// One group at one step.
struct Forking {
  int row;     ///< the site's row that chooses; in a column with one option all members take option 0
  Draw where;  ///< example, group (as replica) and step: draws of the group have it, and any index below `continuing`
  static constexpr std::uint32_t continuing = 1u << 30;
};

/// How the members that left the base path answer the later choices.
enum class Continuation {
  sampled,   ///< by draws of their own
  expected,  ///< by the expected weights
  alike      ///< as the base path does: only where no choice changes another's distribution
};

template <class T>
class Coupled {
 public:
  using Forker = std::function<Fork<T>(Tape<T>&, const Question<T>&, const std::vector<Forking>&)>;
  /// Runs the problem's model with `groups` independent groups an example, of `members` (K) each. If not `lawful`, members
  /// but the first need not have the choice's distribution: credit a choice with reward_to_go only.
  Coupled(const Problem<T>& problem, int groups, int members, Forker forker, Continuation continuation = Continuation::sampled,
          bool lawful = true);

  Episode<T>& episode() { return *episode_; }
  std::unique_ptr<Episode<T>> release() { return std::move(episode_); }
  int steps() const { return static_cast<int>(episode_->steps().size()); }
  std::size_t groups() const { return groups_ * static_cast<std::size_t>(episode_->examples()); }  ///< of all examples
  /// The choices of the groups: what their first members chose, and the logits.
  const Choices<T>& choices() const { return *choices_; }
  /// [cells] what a member of every choice took.
  std::vector<int> options(int member) const;
  /// What it cost: all in all or (reward_to_go) from that choice on.
  PerChoice losses(int member, Credit credit) const;
  /// The rows of a cost that the groups' first members pass.
  std::vector<int> first_members(const Rows& rows) const;
  /// After a backward pass: the derivative in a relaxed member's weights.
  AtLogits slopes(int member) const;
  /// Mean of the costs: of all members if each is a draw of its own and they share no rows, else of the first ones.
  Var<T> path(bool all_members);
  /// Mean loss of the first members.
  double mean_loss() const;

  struct Record {
    std::vector<std::vector<Forking>> forking;
    std::vector<Fork<T>> fork;
  };

 private:
  /// Of a member of each group's choice `step`: before that choice the base path.
  Paths paths_of(int step, int member) const;
  int groups_, members_;
  bool joint_;
  std::unique_ptr<Record> record_;
  std::unique_ptr<Episode<T>> episode_;
  std::unique_ptr<Choices<T>> choices_;
};

}  // namespace hardgrad
