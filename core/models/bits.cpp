// bits: the field's toy. D independent choices with logits of their own or one shared, and a known f.
//
//   binary (options = 2):  b_i ~ Bernoulli(sig(phi_i)); the site's logits are (0, phi_i)
//   categorical:           b_i ~ Cat(softmax(phi_i)), phi_i in R^S
//   f = square:  mean or sum over i of (x_i - t_i)^2       x_i = b_i, or b_i / (S - 1)
//       norm:    mean or sum over i of |x_i - t_i|^p
//       linear:  mean or sum over i of c_i . onehot(b_i)   c_i ~ Dirichlet(1, ..., 1), fixed by table_seed
//       table:   one fixed random number in (0, 1) for each of the S^D outcomes, paid at the end
//
// Parameter: bits.logits [D, 1] (binary), [D, S] (categorical); [1, 1] or [1, S] if shared.
// With posterior: posterior.logits of the same shape. Relaxed bits use x_i = E[x_i]; `table` is multilinear in the weights.
// Sources: the D = 1 problem (b - t)^2 of Tucker et al. 2017 (REBAR); three shared bits of Kool et al. 2020.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/product.hpp"
#include "core/autodiff/rearrange.hpp"
#include "core/models/model.hpp"
#include "core/nn/layers.hpp"
#include "core/random/randomness.hpp"

namespace hardgrad {
namespace {

template <class T>
class Bits final : public Model<T> {
 public:
  explicit Bits(const Blueprint& b)
      : bits_(b.settings.integer("bits")),
        options_(b.settings.integer("options")),
        shared_(b.settings.flag("shared_logit")),
        function_(b.settings.text("function")),
        power_(b.settings.real("power")),
        share_(b.settings.text("reduce") == "mean" ? 1.0 / bits_ : 1.0),
        target_(b.settings.reals("t")) {
    const auto& [settings, dimensions, init, posterior] = b;  // the starting point is given, not drawn
    if (target_.size() == 1) target_.resize(bits_, target_[0]);
    if (target_.size() != static_cast<std::size_t>(bits_))
      throw UsageError("bits: t must have 1 or bits=" + std::to_string(bits_) + " numbers, got " +
                       std::to_string(target_.size()));
    const bool tabled = function_ == "table";
    structure_ = {.sites = {{.name = "bit",
                             .options = options_,
                             .times = bits_,
                             .state_width = 1,
                             .reach = tabled ? Reach::later_costs : Reach::own_costs}},
                  .posterior = posterior};
    logits_ = add_logits("bits.logits", settings.reals("logit"));
    if (structure_.posterior) posterior_ = add_logits("posterior.logits", settings.reals("logit"));
    make_table(Key(settings.integer("table_seed")), tabled);
  }

  const Structure& structure() const override { return structure_; }

  void run(const Batch&, Episode<T>& episode) const override {
    auto& tape = episode.tape();
    RowsPtr rows = episode.root();
    Var<T> joint;  // what is left of the table, per row
    if (function_ == "table") {
      const std::vector<int> whole(rows->size(), 0);
      joint = gather_rows(tape.constant(table(tape)), std::span<const int>(whole));
    }
    for (int i = 0; i < bits_; ++i) {
      Site<T> site;
      site.name = "bit";
      site.rows = rows;
      const auto prior = categorical(site_logits(tape, *logits_, i, rows->size()), std::vector<int>(rows->size(), options_));
      site.prior = prior;
      site.state = tape.constant(rows->size(), 1, T{1});
      if (posterior_) site.posterior = [&, i, n = rows->size()] { return prior->with(site_logits(tape, *posterior_, i, n)); };
      auto choice = episode.choose(std::move(site));
      if (joint) {
        joint = narrow(tape, gather_rows(joint, std::span<const int>(choice.rows->parent)), choice);
        rows = choice.rows;
      } else {
        episode.cost(choice.rows, affine(own_cost(tape, choice, i), static_cast<T>(share_)));
      }
    }
    if (joint) episode.cost(rows, joint);
  }

 private:
  const Parameter<T>* add_logits(const std::string& name, std::vector<double> values) {
    const std::size_t sites = shared_ ? 1 : bits_, width = options_ == 2 ? 1 : options_;
    if (values.size() == 1) values.resize(sites * width, values[0]);
    if (values.size() == width) {  // one site's logits serve all
      std::vector<double> all;
      for (std::size_t i = 0; i < sites; ++i) all.insert(all.end(), values.begin(), values.end());
      values = all;
    }
    if (values.size() != sites * width)
      throw UsageError("bits: logit must have 1 or " + std::to_string(sites * width) + " numbers, got " +
                       std::to_string(values.size()));
    auto& parameter = this->parameters_.add(name, {sites, width});
    std::copy(values.begin(), values.end(), parameter.value.data.begin());
    return &parameter;
  }

  Var<T> site_logits(Tape<T>& tape, const Parameter<T>& logits, int bit, std::size_t rows) const {
    const auto index = tape.template scratch<int>(rows);
    std::fill(index.begin(), index.end(), shared_ ? 0 : bit);
    auto phi = gather_rows(tape.parameter(logits), std::span<const int>(index));
    return options_ == 2 ? concat_columns({tape.constant(rows, 1), phi}) : phi;
  }

  /// f_i of the choice [R, 1], before it is averaged or summed.
  Var<T> own_cost(Tape<T>& tape, const Choice<T>& choice, int bit) const {
    const auto weights = choice.one_hot(tape, options_);
    const auto column = tape.template scratch<T>(options_);
    for (int o = 0; o < options_; ++o)
      column[o] = static_cast<T>(function_ == "linear" ? table_[bit * options_ + o] : static_cast<double>(o) / (options_ - 1));
    auto x = matmul_column(tape, weights, std::span<const T>(column));
    if (function_ == "linear") return x;
    auto squared = square(affine(x, T{1}, static_cast<T>(-target_[bit])));
    return function_ == "square" ? squared : exp(affine(log(squared), static_cast<T>(power_ / 2)));  // |d|^p
  }

  /// weights [R, S] times a constant column [S] -> [R, 1]
  Var<T> matmul_column(Tape<T>& tape, Var<T> weights, std::span<const T> column) const {
    return matmul(weights, tape.constant(MatrixView<const T>{column.data(), column.size(), 1}));
  }

  /// Of a table [R, S * rest] the part behind the chosen option (or the mixture of the parts) -> [R, rest].
  Var<T> narrow(Tape<T>& tape, Var<T> joint, const Choice<T>& choice) const {
    const std::size_t rest = joint.cols() / options_;
    const auto weights = choice.one_hot(tape, options_);
    Var<T> result;
    for (int o = 0; o < options_; ++o) {
      auto share = scale_rows(slice_columns(joint, o * rest, rest), slice_columns(weights, o, 1));
      result = result ? add(result, share) : share;
    }
    return result;
  }

  MatrixView<const T> table(Tape<T>& tape) const {
    auto copy = tape.template scratch<T>(table_.size());
    std::copy(table_.begin(), table_.end(), copy.begin());
    return {copy.data(), 1, copy.size()};
  }

  void make_table(Key key, bool joint) {
    KeyedRandomness random(key / "bits.table");
    if (joint) {
      const double outcomes = std::pow(options_, bits_);
      if (outcomes > 1 << 20) throw UsageError("bits: a table of options^bits outcomes may have at most 1048576");
      for (std::uint32_t i = 0; i < outcomes; ++i) table_.push_back(random.uniform({.index = i}));
    } else if (function_ == "linear") {
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
  std::string function_;
  double power_, share_;
  std::vector<double> target_, table_;
  const Parameter<T>* logits_ = nullptr;
  const Parameter<T>* posterior_ = nullptr;
  Structure structure_;
};

}  // namespace

const ModelEntry entry = {
    .name = "bits",
    .summary = "D independent choices with a known cost: the field's toy problem",
    .paper = "Tucker et al. 2017, REBAR, sec. 5.1; Kool et al. 2020, Estimating gradients for discrete random variables",
    .dependence = "factorised (square, norm, linear), joint cost (table), one choice (bits=1)",
    .kinds = "binary (options=2), categorical",
    .parameters = {ParameterInfo::integer("bits", 1, 1, 100000, "number of choices D"),
                   ParameterInfo::integer("options", 2, 2, 10000, "options per choice S"),
                   ParameterInfo::reals("t", {0.45}, "targets t_i: one for all, or one each"),
                   ParameterInfo::reals("logit", {0}, "starting logits: one for all, one site's, or all sites'"),
                   ParameterInfo::flag("shared_logit", false, "one logit (vector) serves all choices"),
                   ParameterInfo::choice("reduce", "sum", {"sum", "mean"}, "how the choices' costs make f"),
                   ParameterInfo::choice("function", "square", {"square", "norm", "linear", "table"}, "the cost f"),
                   ParameterInfo::real("power", 1.5, 0, 100, "exponent p of function=norm").above(),
                   ParameterInfo::integer("table_seed", 1, 0, 1e9, "draws the numbers of function=linear and table")},
    .needs = {"bits"},
};
HARDGRAD_MODEL(Bits, entry)

}  // namespace hardgrad
