// Sums over gradient replicates g_m in R^P around a reference g*, in one pass and constant memory. Replicates may have weights w_m,
// ratios of the law to another one that they were drawn from (DefensiveMixture).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <numeric>
#include <span>
#include <vector>

#include "core/random/key.hpp"

namespace hardgrad::measurement {

/// A sum of products in lanes that fill registers; sequential additions would wait for each other.
class Dot {
 public:
  void add(const double* x, const double* y, std::size_t n) {
    std::size_t i = 0;
    for (; i + 32 <= n; i += 32)
      for (std::size_t j = 0; j < 32; ++j) lanes_[j] += x[i + j] * y[i + j];
    for (std::size_t j = 0; i + j < n; ++j) lanes_[j] += x[i + j] * y[i + j];
  }
  double sum() const { return std::accumulate(std::begin(lanes_), std::end(lanes_), 0.0); }

 private:
  double lanes_[32] = {};
};
inline double dot(std::span<const double> a, std::span<const double> b) {
  Dot product;
  product.add(a.data(), b.data(), a.size());
  return product.sum();
}

/// f(first, n) for pieces of at most `most` entries, which fit in the cache.
template <class F>
void in_pieces(std::size_t size, std::size_t most, F f) {
  for (std::size_t first = 0; first < size; first += most) f(first, std::min(most, size - first));
}

// Directions in R^P for the bias test. All of them together cost one pass over the P numbers.

/// K orthonormal directions: entry i belongs to direction i mod K, with a random sign (a count sketch: Charikar, Chen &
/// Farach-Colton 2002, Finding frequent items in data streams). A fixed deviation b has mean square |b|^2 / P along one of
/// them, as along a direction drawn uniformly from the sphere.
class Probes {
 public:
  /// At most one direction per entry; `size` is the number of entries.
  Probes(std::size_t size, int count, Key key);
  int count() const { return static_cast<int>(length_.size()); }
  /// Number of partial sums, a multiple of `count`; 0 without directions.
  std::size_t lanes() const { return lanes_; }
  /// Adds entries [first, first + d.size()) of a vector to its partial sums [lanes]; `first` is a multiple of `lanes`.
  void add(std::size_t first, std::span<const double> d, std::span<double> sums) const;
  /// [count] vector . direction, from its partial sums
  std::vector<double> along(std::span<const double> sums) const;

 private:
  std::size_t lanes_ = 0;
  std::vector<std::int8_t> sign_;  // [size]
  std::vector<double> length_;     // [count] length of each direction before normalisation
};

/// Sums of deviations d_m = g_m - g* in blocks. More replicates may be added; ReplicateStatistics are made from them.
class ReplicateSums {
 public:
  /// The bias test uses the reference's direction (unless it is zero) and `directions` random ones. Each of the blocks, at most
  /// `most_blocks`, keeps one sum per parameter. parts: ranges [first, last) of the parameters for `part`.
  ReplicateSums(std::vector<double> reference, int directions, int replicates, int most_blocks = 32,
                std::vector<std::array<std::size_t, 2>> parts = {});

  /// Blocks are independent: each may be filled by a separate thread, with its replicates in order.
  int blocks() const { return static_cast<int>(blocks_.size()); }
  int count() const { return replicates_; }
  /// Replicates [first, last) of a block.
  std::array<int, 2> range(int block) const;
  void add(int block, std::span<const double> gradient, double weight = 1);
  /// Marks a block as full: its sums are added to the total, in the order of the blocks, and the rest of its memory is
  /// released.
  void complete(int block);
  /// Ends with the replicates added so far, two or more. Blocks without any are removed.
  void end_early();
  /// Doubles the number of replicates, with the same number of blocks: the present replicates fill the first half, and the second
  /// half is to be filled. Then the sums equal those of twice as many replicates from the start.
  void grow();
  /// The first block that is not complete.
  int next() const { return summed_; }

  const std::vector<double>& reference() const { return reference_; }

 private:
  friend class ReplicateStatistics;
  /// The sums of some of the parameters, by slices, without the sums for cosines, the tail and the corrected p-value. All blocks
  /// are complete.
  ReplicateSums part(std::size_t index) const;
  /// Sums of numbers x and their weights.
  struct Sums {
    double sum = 0;                 ///< of w x
    double noise = 0, squares = 0;  ///< of w^2 x and w^2 x^2
    void add(double x, double w) {
      sum += w * x;
      noise += w * w * x;
      squares += w * w * x * x;
    }
    void join(const Sums& other) {
      sum += other.sum;
      noise += other.noise;
      squares += other.squares;
    }
  };
  struct ReplicateBlock {
    int count = 0;
    double weight = 0, weight_squares = 0;
    bool complete = false;
    std::vector<double> sum, squares;                  ///< [P] of w d and w d^2; squares are kept until the block is complete
    std::vector<double> noise;                         ///< [P] of w^2 d; empty if all weights are 1
    double squared = 0;                                ///< sum of all squares
    double noise_squared = 0;                          ///< of w^2 |d|^2
    std::vector<double> squared_in, noise_squared_in;  ///< the same of each part
    Sums cosine;
    std::vector<Sums> along;      ///< per direction; the reference's direction is last
    double along_most = 0;        ///< the largest square of all directions
    std::vector<double> largest;  ///< largest squared deviations, at most `kept`, as a heap with the least on top

    const std::vector<double>& noise_sum() const { return noise.empty() ? sum : noise; }
    void add_vectors(const ReplicateBlock& other);
  };
  std::size_t directions() const { return probes_.count() + (reference_norm_ > 0); }
  void begin_weights(ReplicateBlock& block) const;
  std::vector<double> in_parts(const std::vector<double>& numbers) const;
  static constexpr std::size_t kept = 128;
  static void keep(std::vector<double>& largest, double squared);

  std::vector<double> reference_;
  double reference_norm_;
  Probes probes_;
  int replicates_, most_blocks_;
  std::vector<std::array<std::size_t, 2>> parts_;
  bool whole_ = true;             // false: of a part
  std::vector<double> recycled_;  // memory for a block's squares
  std::vector<ReplicateBlock> blocks_;
  ReplicateBlock total_;
  int summed_ = 0;  // blocks in the total
  std::unique_ptr<std::mutex> summing_ = std::make_unique<std::mutex>();
};

}  // namespace hardgrad::measurement
