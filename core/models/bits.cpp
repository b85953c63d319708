// bits: the standard toy problem. D independent choices with their own logits or one shared vector of logits, and a known f.
//
//   binary (options = 2):  b_d ~ Bernoulli(sig(phi_d)); the site's logits are (0, phi_d)
//   categorical:           b_d ~ Cat(softmax(phi_d)), phi_d in R^S
//   f = square:  mean or sum over d of (x_d - t_d)^2       x_d = b_d, or b_d / (S - 1)
//       norm:    mean or sum over d of |x_d - t_d|^p
//       linear:  mean or sum over d of c_d . onehot(b_d)   c_d ~ Dirichlet(1, ..., 1), fixed by table_seed, or given
//       table:   one fixed random number in (0, 1) for each of the S^D outcomes
//
// One site `bit` of D columns. Each column has its own cost, except with f = table, whose cost is joint.
// Parameter: bits.logits [D, 1] (binary), [D, S] (categorical); [1, 1] or [1, S] if shared.
// Initial logits: `logit`, or those of probabilities drawn from Dirichlet(a, ..., a), anew for each choice and each run.
// Constants of a gradient file: bits.table [S^D], the last choice's option fastest; bits.coefficients [D, S] (c).
// With posterior: posterior.logits of the same shape. Relaxed bits use x_d = E[x_d]; `table` is multilinear in the weights.
//
// Sources: Tucker et al. 2017 (REBAR) have (b - t)^2 with D = 1; Kool et al. 2020 three shared bits; Dimitriev & Zhou 2021
// (CARMS) three choices among three with Dirichlet probabilities and linear f with c = 3, 6, ..., 27.
#include <boost/math/special_functions/gamma.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/product.hpp"
#include "core/autodiff/rearrange.hpp"
#include "core/autodiff/reduce.hpp"
#include "core/models/model.hpp"
#include "core/models/parts/outcome_table.hpp"
#include "core/models/parts/reduction.hpp"
#include "core/nn/layers.hpp"
#include "core/random/randomness.hpp"
#include "core/support/log_gamma.hpp"

namespace hardgrad::models::bits {
namespace {

enum class Function { square, norm, linear, table };
constexpr Named<Function> functions[] = {
    {"square", Function::square}, {"norm", Function::norm}, {"linear", Function::linear}, {"table", Function::table}};

struct Config {
  int bits = 1, options = 2;
  std::vector<double> t = {0.45};
  std::vector<double> logit = {0};
  double dirichlet = 0;
  bool shared_logit = false;
  Reduce reduce = Reduce::sum;
  Function function = Function::square;
  double power = 1.5;
  std::vector<double> coefficients = {0};
  int table_seed = 1;

  void declare(Fields& field) {
    field(bits, "bits", 1, 100000, "number of choices D");
    field(options, "options", 2, 10000, "options per choice S");
    field(t, "t", "targets t_d: one for all, or one each", "bits");
    field(logit, "logit", "initial logits: one number for all, those of one choice, or those of all choices");
    field(dirichlet, "dirichlet", 0, 1e6,
          "a > 0: draw the initial probabilities from Dirichlet(a, ..., a) instead; 0: use `logit`");
    field(shared_logit, "shared_logit", "all choices share one logit (or vector of logits)");
    field(reduce, "reduce", reductions, "sum or mean of the choices' costs");
    field(function, "function", functions, "the cost f");
    field(power, "power", 0, 100, "exponent p of function=norm").above();
    field(coefficients, "coefficients", "c of function=linear, bits x options numbers; 0: drawn");
    field(table_seed, "table_seed", 0, 1e9, "seed of the numbers of function=linear and table");
  }
};

template <class T>
class Bits final : public Model<T> {
 public:
  Bits(const Config& config, const Blueprint& b)
      : bits_(config.bits),
        options_(config.options),
        shared_(config.shared_logit),
        function_(config.function),
        power_(config.power),
        share_(share_of_each(config.reduce, bits_)) {
    const bool tabled = function_ == Function::table;
    structure_ = {.sites = {{.name = "bit",
                             .options = options_,
                             .state_width = 1,
                             .scope = tabled ? DependenceScope::own_costs : DependenceScope::own_column,
                             .columns = bits_}},
                  .posterior = b.posterior};
    const bool inside = std::any_of(config.t.begin(), config.t.end(), [](double t) { return t > 0 && t < 1; });
    if (function_ == Function::norm && inside) structure_.steepest = std::min(0.0, power_ - 1);
    const auto start = [&](const std::string& name) {
      return add_logits(name, config.dirichlet > 0 ? dirichlet(config.dirichlet, b.init / name) : config.logit);
    };
    logits_ = start("bits.logits");
    if (structure_.posterior) posterior_ = start("posterior.logits");
    make_table(config, tabled);
    if (!tabled) make_costs(config.t);
  }

  const Structure& structure() const override { return structure_; }
  std::vector<std::pair<std::string, Array<double>>> constants() const override {
    if (table_.empty()) return {};
    if (function_ == Function::table) return {{"bits.table", shaped<double>({table_.size()}, table_)}};
    return {{"bits.coefficients", shaped<double>({table_.size() / options_, static_cast<std::size_t>(options_)}, table_)}};
  }

  void run(const Batch&, Episode<T>& episode) const override {
    auto& tape = episode.tape();
    const auto& rows = episode.root();
    Site<T> site;
    site.name = "bit";
    site.rows = rows;
    const auto prior =
        categorical(logits(tape, *logits_, rows->size()), std::vector<int>(rows->size() * bits_, options_), bits_);
    site.prior = prior;
    site.state = tape.constant(rows->size(), 1, T{1});
    if (posterior_) site.posterior = [&] { return prior->with(logits(tape, *posterior_, rows->size())); };
    const auto choice = episode.choose(std::move(site));
    episode.cost(choice.rows, function_ == Function::table ? entry_of_table(tape, choice)
                              : choice.hard()              ? of_options(tape, choice)
                                                           : affine(of_weights(tape, choice), static_cast<T>(share_)));
  }

 private:
  /// Logits of probabilities drawn from Dirichlet(alpha, ..., alpha), for every choice with its own logits. They are logarithms
  /// of gamma variates, each the quantile of a uniform number.
  std::vector<double> dirichlet(double alpha, Key key) const {
    KeyedRandomness random(key);
    std::vector<double> logits;
    for (int d = 0; d < (shared_ ? 1 : bits_); ++d) {
      std::vector<double> of_option(options_);
      for (int o = 0; o < options_; ++o) {
        const double u = random.uniform({.step = static_cast<std::uint32_t>(d), .index = static_cast<std::uint32_t>(o)});
        const double gamma = boost::math::gamma_p_inv(alpha, u);
        of_option[o] = gamma > 1e-290 ? std::log(gamma) : (std::log(u) + log_gamma(alpha + 1)) / alpha;  // in the far tail
      }
      if (options_ == 2) of_option = {of_option[1] - of_option[0]};
      logits.insert(logits.end(), of_option.begin(), of_option.end());
    }
    return logits;
  }

  const Parameter<T>* add_logits(const std::string& name, std::vector<double> values) {
    const std::size_t sites = shared_ ? 1 : bits_, width = options_ == 2 ? 1 : options_;
    if (values.size() == 1) values.resize(sites * width, values[0]);
    if (values.size() == width) {  // one choice's logits for all choices
      std::vector<double> all;
      for (std::size_t i = 0; i < sites; ++i) all.insert(all.end(), values.begin(), values.end());
      values = all;
    }
    if (values.size() != sites * width)
      throw UsageError("bits: logit must have 1 or " + std::to_string(sites * width) + " numbers, got " +
                       std::to_string(values.size()));
    auto& parameter = this->parameters_.add(name, {sites, width});
    std::copy(values.begin(), values.end(), parameter.value.begin());
    return &parameter;
  }

  /// [R D, S] the logits, copied for each row.
  Var<T> logits(Tape<T>& tape, const Parameter<T>& phi, std::size_t rows) const {
    auto all = tape.parameter(phi);
    if (rows > 1 || shared_) {
      const auto index = tape.template scratch<int>(rows * bits_);
      for (std::size_t r = 0, c = 0; r < rows; ++r)
        for (int d = 0; d < bits_; ++d) index[c++] = shared_ ? 0 : d;
      all = gather_rows(all, std::span<const int>(index));
    }
    return options_ == 2 ? beside_zero(all) : all;
  }

  /// The cost of each option of each choice, as the operations on weights compute it.
  void make_costs(const std::vector<double>& t) {
    const auto D = static_cast<std::size_t>(bits_), S = static_cast<std::size_t>(options_);
    const auto unit = static_cast<T>(1.0 / (options_ - 1));
    minus_t_.value = zeros<T>({D});
    costs_.value = zeros<T>({D, S});
    for (std::size_t d = 0; d < D; ++d) minus_t_.value.flat(d) = static_cast<T>(-t[d % t.size()]);
    Tape<T> tape;
    auto value = tape.constant(D, S);
    T* to = tape.mutable_value(value).data;
    for (std::size_t d = 0; d < D; ++d)
      for (std::size_t o = 0; o < S; ++o)
        to[d * S + o] = function_ == Function::linear ? static_cast<T>(table_[d * S + o])
                                                      : static_cast<T>(o) * unit + minus_t_.value.flat(d);
    if (function_ != Function::linear) value = of_distances(value);
    value = affine(value, static_cast<T>(share_));
    std::copy_n(value.value().data, D * S, costs_.value.begin());
  }

  /// A constant that the model holds.
  static Var<T> on(Tape<T>& tape, const Parameter<T>& constant) {
    const typename Tape<T>::FixedParameters fixed(tape);
    return tape.parameter(constant);
  }

  /// The costs of hard choices [R, D].
  Var<T> of_options(Tape<T>& tape, const Choice<T>& choice) const {
    const std::vector<int> the_one(choice.rows->size(), 0);
    return pick_in_groups(on(tape, costs_), bits_, std::span<const int>(the_one), std::span<const int>(choice.option()));
  }

  /// |x_d - t_d|^p or c_d . weights_d [R, D], before they are averaged or summed.
  Var<T> of_weights(Tape<T>& tape, const Choice<T>& choice) const {
    if (function_ == Function::linear) {
      const auto weights = choice.weights();
      const auto c = tape.template scratch<T>(weights.rows() * options_);
      for (std::size_t i = 0; i < c.size(); ++i) c[i] = static_cast<T>(table_[i % table_.size()]);
      const auto shares = multiply(weights, tape.constant(MatrixView<const T>{c.data(), weights.rows(), weights.cols()}));
      return reshape(row_sums(shares), bits_);
    }
    const auto t = on(tape, minus_t_);
    if (options_ == 2) return of_distances(add_row(affine_column(choice.weights(), 1, bits_, T{1}), t));  // x is (0, 1)
    const auto x = tape.template scratch<T>(options_);
    for (int o = 0; o < options_; ++o) x[o] = static_cast<T>(o) * static_cast<T>(1.0 / (options_ - 1));
    const auto mean = matmul(choice.weights(), tape.constant(MatrixView<const T>{x.data(), x.size(), 1}));
    return of_distances(add_row(reshape(mean, bits_), t));
  }

  Var<T> of_distances(Var<T> difference) const {
    const auto squared = square(difference);
    return function_ == Function::square ? squared : exp(affine(log(squared), static_cast<T>(power_ / 2)));
  }

  /// The cost of each row's outcome [R, 1].
  Var<T> entry_of_table(Tape<T>& tape, const Choice<T>& choice) const {
    const std::vector<int> the_one(choice.rows->size(), 0);
    return entries_of_tables(tape, choice, {table_.data(), 1, table_.size()}, std::span(the_one), bits_, options_);
  }

  void make_table(const Config& config, bool joint) {
    KeyedRandomness random(Key(config.table_seed) / "bits.table");
    if (joint) {
      const double outcomes = std::pow(options_, bits_);
      if (outcomes > 1 << 20) throw UsageError("bits: a table of options^bits outcomes may have at most 1048576");
      for (std::uint32_t i = 0; i < outcomes; ++i) table_.push_back(random.uniform({.index = i}));
    } else if (const auto& given = config.coefficients; function_ == Function::linear && given != std::vector<double>{0}) {
      const std::size_t own = static_cast<std::size_t>(bits_) * options_;
      if (given.size() != own)
        throw UsageError("bits: coefficients must be 0 or " + std::to_string(own) + " numbers, got " +
                         std::to_string(given.size()));
      table_ = given;
    } else if (function_ == Function::linear) {
      for (int i = 0; i < bits_; ++i) {  // Dirichlet(1, ..., 1): normalised exponentials
        std::vector<double> c(options_);
        for (int o = 0; o < options_; ++o)
          c[o] = -std::log(random.uniform({.step = static_cast<std::uint32_t>(i), .index = static_cast<std::uint32_t>(o)}));
        const double total = std::accumulate(c.begin(), c.end(), 0.0);
        for (double value : c) table_.push_back(value / total);
      }
    }
  }

  int bits_, options_;
  bool shared_;
  Function function_;
  double power_, share_;
  std::vector<double> table_;
  Parameter<T> costs_{"costs", {}}, minus_t_{"minus_t", {}};  // [D, S] of the options, if no table; [D]
  const Parameter<T>* logits_ = nullptr;
  const Parameter<T>* posterior_ = nullptr;
  Structure structure_;
};

}  // namespace

const ModelEntry entry = {
    .name = "bits",
    .summary = "D independent choices with a known cost: the standard toy problem",
    .paper = "Tucker et al. 2017, REBAR, sec. 5.1; Kool et al. 2020, Estimating gradients for discrete random variables",
    .dependence = "factorised (square, norm, linear), joint cost (table), one choice (bits=1)",
    .kinds = "binary (options=2), categorical",
    .parameters = declared<Config>(),
    .needs = {"bits"},
};
HARDGRAD_MODEL(Bits, entry)

}  // namespace hardgrad::models::bits
