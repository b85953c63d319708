// subsets: k of n options with a known cost: the toy problem of k-subset sampling. D columns, each with its own logits.
//
//   b_d ~ p(b) = prod_i exp(b_i x_di) / Z on b in {0, 1}^n with sum_i b_i = k
//   function=square: f = sum_i (b_i - t_i)^2        SIMPLE's toy: n = 10, k = 5, t_i ~ N(0, 1); on subsets it is linear in b
//            linear: f = sum_i t_i b_i
//            pairs:  f = sum_{i < j} q_ij b_i b_j   q_ij ~ N(0, 1): costs of pairs of options
//
//   law=plackett_luce: b are the first k of draws without replacement, each by the softmax of the options left
//
// One site `subset` of D columns; each column has its own cost, and may have its own k. Weights enter f in place of b.
// Parameter: subsets.logits [D, n]; with posterior: posterior.logits of the same shape.
// Initial logits: `logit` + logit_spread N(0, 1), drawn anew for each run. t_i = t + t_spread N(0, 1), fixed by table_seed.
// Constants of a gradient file: subsets.t [n]; subsets.q [n, n] (q_ij / 2 at ij and ji).
//
// Ahmed, Zeng, Niepert & Van den Broeck 2023, SIMPLE: a gradient estimator for k-subset sampling, sec. 5.1; Wijk, Vinuesa &
// Azizpour 2024, Revisiting score function estimators for k-subset sampling.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/product.hpp"
#include "core/autodiff/rearrange.hpp"
#include "core/autodiff/reduce.hpp"
#include "core/choice/subsets.hpp"
#include "core/models/model.hpp"
#include "core/models/parts/reduction.hpp"
#include "core/random/randomness.hpp"

namespace hardgrad::models::subsets {
namespace {

enum class Function { square, linear, pairs };
constexpr Named<Function> functions[] = {
    {"square", Function::square}, {"linear", Function::linear}, {"pairs", Function::pairs}};

struct Config {
  int options = 10;
  std::vector<double> subset_size = {5};
  SubsetDistribution law = SubsetDistribution::conditional_poisson;
  int columns = 1;
  Function function = Function::square;
  std::vector<double> logit = {0};
  double logit_spread = 0;
  std::vector<double> t = {0};
  double t_spread = 1;
  Reduce reduce = Reduce::sum;
  int table_seed = 1;

  void declare(Fields& field) {
    field(options, "options", 1, 100000, "options n of each subset");
    field(subset_size, "picks", "options k that are picked: one number, or one for each column", "columns");
    field(law, "law", subset_distributions, "the distribution of the subsets");
    field(columns, "columns", 1, 100000, "subsets D chosen at once");
    field(function, "function", functions, "the cost f");
    field(logit, "logit", "initial logits of every subset: one number, or one for each option", "options");
    field(logit_spread, "logit_spread", 0, 1e6, "standard deviation of numbers added to the initial logits");
    field(t, "t", "t of function=square and linear: one number, or one for each option", "options");
    field(t_spread, "t_spread", 0, 1e6, "standard deviation of numbers added to t");
    field(reduce, "reduce", reductions, "sum or mean of the columns' costs");
    field(table_seed, "table_seed", 0, 1e9, "seed of the numbers in f");
  }
};

template <class T>
class SubsetsToy final : public Model<T> {
 public:
  SubsetsToy(const Config& config, const Blueprint& b)
      : columns_(config.columns),
        options_(config.options),
        subset_size_(subset_size_of(config)),
        law_(config.law),
        function_(config.function),
        share_(share_of_each(config.reduce, columns_)),
        t_(config.t) {
    const auto [least, most] = std::minmax_element(subset_size_.begin(), subset_size_.end());
    if (*most > options_)
      throw UsageError(fmt::format("subsets: picks={} is more than options={}: pick at most all of them", *most, options_));
    structure_ = {.sites = {{.name = "subset",
                             .options = options_,
                             .subset_size = *most,
                             .state_width = 1,
                             .scope = DependenceScope::own_column,
                             .kind = SiteKind::subsets,
                             .columns = columns_,
                             .fewer = *least < *most}},
                  .posterior = b.posterior};
    const auto start = [&](const std::string& name) { return add_logits(name, config, b.init / name); };
    logits_ = start("subsets.logits");
    if (b.posterior) posterior_ = start("posterior.logits");
    make_tables(config);
  }

  const Structure& structure() const override { return structure_; }
  std::vector<std::pair<std::string, Array<double>>> constants() const override {
    const auto n = static_cast<std::size_t>(options_);
    if (function_ == Function::pairs) return {{"subsets.q", shaped<double>({n, n}, q_)}};
    return {{"subsets.t", shaped<double>({n}, t_)}};
  }

  void run(const Batch&, Episode<T>& episode) const override {
    auto& tape = episode.tape();
    const auto rows = episode.root();
    Site<T> site{"subset", rows, distribution(tape, *logits_, rows->size()), tape.constant(rows->size(), 1, T{1})};
    if (posterior_) site.posterior = [&] { return distribution(tape, *posterior_, rows->size()); };
    const auto choice = episode.choose(std::move(site));
    const auto f = cost(tape, choice.one_hot(tape, options_));
    episode.cost(choice.rows, affine(reshape(f, columns_), static_cast<T>(share_)));  // [R, D]
  }

 private:
  /// k of each column.
  static std::vector<int> subset_size_of(const Config& config) {
    std::vector<int> subset_size;
    for (double k : config.subset_size) {
      if (k < 1 || k != std::round(k) || k > 1e9)
        throw UsageError(fmt::format("subsets: picks={}: a subset has a whole number of options, at least 1", k));
      subset_size.push_back(static_cast<int>(k));
    }
    return subset_size;
  }

  const Parameter<T>* add_logits(const std::string& name, const Config& config, Key key) {
    auto& parameter = this->parameters_.add(name, {static_cast<std::size_t>(columns_), static_cast<std::size_t>(options_)});
    const auto& start = config.logit;
    const double spread = config.logit_spread;
    KeyedRandomness random(key);
    for (std::size_t i = 0; i < parameter.value.size(); ++i)
      parameter.value.flat(i) = static_cast<T>(
          start[i % options_] + (spread > 0 ? spread * random.normal({.index = static_cast<std::uint32_t>(2 * i)}) : 0));
    return &parameter;
  }

  void make_tables(const Config& config) {
    KeyedRandomness random(Key(config.table_seed) / "subsets.table");
    const double spread = config.t_spread;
    for (int i = 0; i < options_; ++i) t_[i] += spread * random.normal({.step = 0, .column = static_cast<std::uint32_t>(i)});
    if (function_ != Function::pairs) return;
    q_.resize(static_cast<std::size_t>(options_) * options_);
    for (int i = 0; i < options_; ++i)
      for (int j = 0; j < i; ++j)
        q_[i * options_ + j] = q_[j * options_ + i] =
            random.normal({.step = static_cast<std::uint32_t>(i + 1), .column = static_cast<std::uint32_t>(j)}) / 2;
  }

  DistributionPtr<T> distribution(Tape<T>& tape, const Parameter<T>& logits, std::size_t rows) const {
    std::vector<int> each(rows * columns_), subset_size(each.size());
    for (std::size_t c = 0; c < each.size(); ++c) subset_size[c] = subset_size_[each[c] = static_cast<int>(c) % columns_];
    return hardgrad::subsets(gather_rows(tape.parameter(logits), std::span<const int>(each)),
                             std::vector<int>(each.size(), options_), {structure_.sites[0].subset_size, subset_size}, columns_,
                             law_);
  }

  /// f [R D, 1] at weights w [R D, n].
  Var<T> cost(Tape<T>& tape, Var<T> w) const {
    const auto constant = [&](const std::vector<double>& numbers, std::size_t rows) {
      const auto x = tape.constant(rows, options_);
      for (std::size_t i = 0; i < rows * options_; ++i)
        tape.mutable_value(x).data[i] = static_cast<T>(numbers[i % numbers.size()]);
      return x;
    };
    if (function_ == Function::pairs) return row_sums(multiply(w, matmul(w, constant(q_, options_))));
    const auto t = constant(t_, w.rows());
    return row_sums(function_ == Function::linear ? multiply(w, t) : square(subtract(w, t)));
  }

  int columns_, options_;
  std::vector<int> subset_size_;
  SubsetDistribution law_;
  Function function_;
  double share_;
  std::vector<double> t_, q_;
  const Parameter<T>* logits_ = nullptr;
  const Parameter<T>* posterior_ = nullptr;
  Structure structure_;
};

}  // namespace

const ModelEntry entry = {
    .name = "subsets",
    .summary = "k of n options with a known cost: the toy problem of k-subset sampling",
    .paper = "Ahmed et al. 2023, SIMPLE: a gradient estimator for k-subset sampling, sec. 5.1",
    .dependence = "one choice (columns=1), factorised",
    .kinds = "subset",
    .parameters = declared<Config>(),
    .needs = {"subsets"},
};
HARDGRAD_MODEL(SubsetsToy, entry)

}  // namespace hardgrad::models::subsets
