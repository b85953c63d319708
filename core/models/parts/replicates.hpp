// Replicates as rows: a batch with several copies of every example, so that one run draws many estimates.
//
// Copy m of example b is example b M + m of the repeated batch. Its field "same_as" names the first example with the same
// data. A model that uses it encodes each example once; a model that ignores it has the same result, more slowly.
#pragma once

#include <utility>
#include <vector>

#include "core/models/batch.hpp"
#include "core/random/randomness.hpp"

namespace hardgrad {

/// Every example M times. Ids are positions, as `ReplicatedRandomness` expects.
Batch repeated(const Batch& batch, int copies);

/// The distinct examples of a batch. The batch must outlive the object.
struct Distinct {
  std::vector<int> first;  ///< [D] position of each distinct example
  std::vector<int> index;  ///< [B] the distinct example of each example
  explicit Distinct(const Batch& batch);
  Distinct(const Distinct&) = delete;
  bool all() const { return first.size() == index.size(); }
  std::size_t size() const { return first.size(); }
  /// The distinct examples [D].
  const Batch& batch() const { return all() ? whole_ : few_; }

 private:
  const Batch& whole_;
  Batch few_;
};

/// Copy m of example b has the draws of example b from source m.
class ReplicatedRandomness final : public Randomness {
 public:
  /// The sources must outlive the object.
  ReplicatedRandomness(const Batch& batch, std::vector<Randomness*> sources) : id_(batch.id), sources_(std::move(sources)) {}
  int categorical(std::span<const double> probabilities, Draw where) override {
    return source(where).categorical(probabilities, where);
  }
  void categorical(std::span<const double> probabilities, std::size_t width, std::span<const int> options, Draw where,
                   std::span<int> option) override {
    auto& from = source(where);  // also sets `where` to the place in that source
    from.categorical(probabilities, width, options, where, option);
  }
  bool words(Draw where, std::span<std::uint64_t> word) override {
    auto& from = source(where);
    return from.words(where, word);
  }
  double uniform(Draw where, const Pieces& pieces = {}) override { return source(where).uniform(where, pieces); }
  using Randomness::logistic;
  double logistic(Draw where, double edge) override { return source(where).logistic(where, edge); }
  double standard(Standard noise, Draw where) override { return source(where).standard(noise, where); }
  bool options_first() const override { return sources_[0]->options_first(); }
  void aim(std::span<const double> law, Draw where) override {
    auto& of = source(where);
    of.aim(law, where);
  }
  const WithoutOne* without_one(Draw where) override {
    auto& of = source(where);
    return of.without_one(where);
  }
  void ended(const Race& race, Draw where) override {
    auto& of = source(where);
    of.ended(race, where);
  }

 private:
  Randomness& source(Draw& where);
  std::vector<std::uint32_t> id_;
  std::vector<Randomness*> sources_;
};

}  // namespace hardgrad
