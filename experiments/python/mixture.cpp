#include "experiments/python/mixture.hpp"

#include <cmath>
#include <set>
#include <utility>

namespace hardgrad::python {
namespace {

/// Draws from the mixture that `noise` returns.
class Forwarded : public Randomness {
 public:
  int categorical(std::span<const double> p, Draw where) override { return noise().categorical(p, where); }
  void categorical(std::span<const double> p, std::size_t width, std::span<const int> options, Draw where,
                   std::span<int> option) override {
    noise().categorical(p, width, options, where, option);
  }
  bool words(Draw where, std::span<std::uint64_t> word) override { return noise().words(where, word); }
  double uniform(Draw where, const Pieces& pieces = {}) override { return noise().uniform(where, pieces); }
  using Randomness::logistic;
  double logistic(Draw where, double edge) override { return noise().logistic(where, edge); }
  double standard(Standard of, Draw where) override { return noise().standard(of, where); }
  bool options_first() const override { return options_first_; }
  void aim(std::span<const double> law, Draw where) override { noise().aim(law, where); }

 protected:
  explicit Forwarded(bool options_first) : options_first_(options_first) {}
  virtual measurement::DefensiveMixture& noise() = 0;

 private:
  bool options_first_;
};

}  // namespace

/// Calls may be nested, and an episode's block may be left for others: each draw is made with the keys of its own call.
class Mixture::New final : public Forwarded {
 public:
  New(Mixture& of, std::uint64_t seed) : Forwarded(of.noise_.options_first()), of_(of), seed_(seed) {}
  ~New() override {
    if (of_.drawing_ == this) of_.drawing_ = nullptr;
    const std::lock_guard lock(of_.calling_);
    auto& call = of_.calls_.at(seed_);
    call.ended = true;
    call.seen = of_.seen();
    call.weight = of_.weight();
  }

 private:
  measurement::DefensiveMixture& noise() override {
    if (std::exchange(of_.drawing_, this) != this) of_.noise_.rekey(noise_key(seed_));
    return of_.noise_;
  }
  Mixture& of_;
  std::uint64_t seed_;
};

class Mixture::Again final : public Forwarded {
 public:
  Again(Mixture& of, std::uint64_t seed, const Call& call)
      : Forwarded(call.before.options_first()), of_(of), seed_(seed), noise_(call.before) {
    noise_.rekey(noise_key(seed));
  }
  ~Again() override {
    const std::lock_guard lock(of_.calling_);
    const auto& call = of_.calls_.at(seed_);
    const auto seen = noise_.seen();
    const bool same = call.ended && seen.examples == call.seen.examples && seen.draws == call.seen.draws &&
                      std::abs(noise_.weight() - call.weight) <= 1e-3 * call.weight;  // but for rounding
    of_.coupled_ = of_.coupled_ || !same;
  }

 private:
  measurement::DefensiveMixture& noise() override { return noise_; }
  Mixture& of_;
  std::uint64_t seed_;
  measurement::DefensiveMixture noise_;
};

std::unique_ptr<Randomness> Mixture::of_call(std::uint64_t seed, const Batch& batch) {
  const std::lock_guard lock(calling_);
  if (std::set(batch.id.begin(), batch.id.end()).size() < batch.id.size()) coupled_ = true;
  const auto [call, is_new] = calls_.try_emplace(seed, Call{noise_});
  if (is_new) return std::make_unique<New>(*this, seed);
  return std::make_unique<Again>(*this, seed, call->second);
}

bool Mixture::knows(std::uint64_t seed) const {
  const std::lock_guard lock(calling_);
  return calls_.contains(seed);
}

std::vector<std::uint64_t> Mixture::seeds() const {
  const std::lock_guard lock(calling_);
  std::vector<std::uint64_t> seeds;
  for (const auto& [seed, call] : calls_) seeds.push_back(seed);
  return seeds;
}

bool Mixture::coupled() const {
  const std::lock_guard lock(calling_);
  return coupled_;
}

Key noise_key(std::uint64_t seed) { return Key(seed) / "noise"; }

std::unique_ptr<Randomness> noise_of(std::uint64_t seed, const Batch& batch, Mixture* mixture) {
  if (mixture) return mixture->of_call(seed, batch);
  return std::make_unique<KeyedRandomness>(noise_key(seed));
}

}  // namespace hardgrad::python
