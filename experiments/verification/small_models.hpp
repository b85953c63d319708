// Small models whose loss is known everywhere, or whose choices an exact method can visit: for tests of estimators.
#pragma once

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/product.hpp"
#include "core/autodiff/rearrange.hpp"
#include "core/autodiff/reduce.hpp"
#include "core/choice/normal.hpp"
#include "core/estimator/promises.hpp"
#include "core/models/model.hpp"
#include "core/models/parts/fields.hpp"
#include "core/nn/layers.hpp"

namespace hardgrad::verification {

// The smallest model whose loss is known everywhere: the test of estimators' promises.

/// f(w) = level + s (linear sum_d a_d . w_d + curved (sum_d b_d . w_d)^3), w_d the weights over the S options of column d. s is
/// 1; with `path`, it is a parameter, and f has a derivative besides that through the choices. With `per_column`, each column has a
/// separate loss, as if it were alone, and f is their sum.
struct SmallLoss {
  double level = 0.4, linear = 1, curved = 1;
  bool path = true, per_column = false;
  static double a(int d, int i) { return 0.9 * std::sin(1.7 * i + 2.3 * d + 0.4); }
  static double b(int d, int i) { return 0.8 * std::cos(1.1 * i + 0.7 * d); }
};

/// One step of D columns with S options each. Parameters: the logits [D, S], those of the posterior if there is one, and s [1,
/// 1].
template <class T>
class SmallModel final : public Model<T> {
 public:
  /// Logits are spread over +-`spread`. If `alike`, the posterior equals the prior.
  SmallModel(int options, int columns, const SmallLoss& loss, double spread, bool posterior, bool alike = false)
      : options_(options), columns_(columns), loss_(loss) {
    structure_ = {.sites = {{.name = "choice",
                             .options = options,
                             .state_width = 1,
                             .scope = loss.per_column ? DependenceScope::own_column : DependenceScope::own_costs,
                             .columns = columns}},
                  .posterior = posterior};
    logits_ = add("logits", spread, 0);
    if (posterior) posterior_ = add("posterior.logits", spread, alike ? 0 : 0.6);
    if (!loss.path) return;
    auto& scale = this->parameters_.add("scale", {1, 1});
    scale.value.flat(0) = 1;
    scale_ = &scale;
  }

  const Structure& structure() const override { return structure_; }

  /// Draws by a behaviour policy, whose logits differ by up to `off`.
  void draw_by(double off) {
    auto other = std::make_shared<SmallModel>(options_, columns_, loss_, 0, false);
    auto& logits = other->parameters_.begin()->value.storage();
    for (std::size_t i = 0; i < logits.size(); ++i)
      logits[i] = logits_->value.flat(i) + static_cast<T>(off * std::sin(2.0 * static_cast<double>(i) + 1));
    this->set_policies({.behaviour = std::move(other)});
  }

  void run(const Batch&, Episode<T>& episode) const override {
    auto& tape = episode.tape();
    const auto& rows = episode.root();
    const std::size_t cells = rows->size() * columns_;
    const auto prior = categorical(logits(tape, *logits_, cells), std::vector<int>(cells, options_), columns_);
    Site<T> site{"choice", rows, prior, tape.constant(rows->size(), 1, T{1})};
    if (posterior_) site.posterior = [&, cells] { return prior->with(logits(tape, *posterior_, cells)); };
    const auto choice = episode.choose(std::move(site));
    const auto w = choice.one_hot(tape, options_);
    const auto x = along(w, SmallLoss::b);
    auto moving = hardgrad::add(affine(multiply(square(x), x), static_cast<T>(loss_.curved)),
                                affine(along(w, SmallLoss::a), static_cast<T>(loss_.linear)));
    if (scale_) {
      const auto first = tape.template scratch<int>(moving.rows() * moving.cols());
      std::fill(first.begin(), first.end(), 0);
      const auto scale = gather_rows(tape.parameter(*scale_), std::span<const int>(first));
      moving = multiply(moving, reshape(scale, moving.cols()));
    }
    episode.cost(choice.rows, affine(moving, T{1}, static_cast<T>(loss_.level)));
  }

  /// The problem for a formula: one column, which is the only one or has a separate loss.
  SmallChoice formula(int column = 0) const {
    const int S = options_;
    const auto row = [S, column](double (*of)(int, int)) {
      SmallChoice::Vector v(S);
      for (int i = 0; i < S; ++i) v[i] = of(column, i);
      return v;
    };
    const auto a = row(SmallLoss::a), b = row(SmallLoss::b);
    SmallChoice at;
    at.logits = SmallChoice::Vector(logits_->value.data() + column * S, S);
    if (const auto& other = this->policies().behaviour)
      at.behaviour = SmallChoice::Vector(other->parameters().begin()->value.data() + column * S, S);
    at.loss = [a, b, f = loss_](const auto& w) {
      return f.level + f.linear * (a * w).sum() + f.curved * std::pow((b * w).sum(), 3);
    };
    at.slope = [a, b, f = loss_](const auto& w) -> SmallChoice::Vector {
      return f.linear * a + 3 * f.curved * std::pow((b * w).sum(), 2) * b;
    };
    return at;
  }

 private:
  const Parameter<T>* add(const std::string& name, double spread, double off) {
    auto& parameter = this->parameters_.add(name, {static_cast<std::size_t>(columns_), static_cast<std::size_t>(options_)});
    for (std::size_t i = 0; i < parameter.value.size(); ++i) {
      const auto at = static_cast<double>(i);
      parameter.value.flat(i) = static_cast<T>(spread * std::sin(2.1 * at + 0.5) + off * std::sin(at + 1));
    }
    return &parameter;
  }
  /// [cells, S] one copy for every row.
  Var<T> logits(Tape<T>& tape, const Parameter<T>& phi, std::size_t cells) const {
    const auto index = tape.template scratch<int>(cells);
    for (std::size_t c = 0; c < cells; ++c) index[c] = static_cast<int>(c) % columns_;
    return gather_rows(tape.parameter(phi), std::span<const int>(index));
  }
  /// sum_d of(d) . w_d [R, 1]; with `per_column` [R, D], without the sum
  Var<T> along(Var<T> w, double (*of)(int, int)) const {
    const auto numbers = w.tape->template scratch<T>(w.rows() * options_);
    for (std::size_t i = 0; i < numbers.size(); ++i)
      numbers[i] = static_cast<T>(of(static_cast<int>(i) / options_ % columns_, static_cast<int>(i) % options_));
    const auto parts = multiply(w, w.tape->constant(MatrixView<const T>{numbers.data(), w.rows(), w.cols()}));
    const auto by_column = reshape(row_sums(parts), columns_);
    return loss_.per_column ? by_column : row_sums(by_column);
  }

  int options_, columns_;
  SmallLoss loss_;
  const Parameter<T>*logits_ = nullptr, *posterior_ = nullptr, *scale_ = nullptr;
  Structure structure_;
};

// A small model whose choices are numbers that feed later ones. It covers the cases an estimator may meet: a scale that depends
// on earlier choices, costs at the root, at every step and at the end, a path derivative, and a posterior. All functions of the
// numbers are entire, so a quadrature of few nodes is exact to many digits.

/// h_0 = x; z_t ~ N(A h_t, exp(B h_t - 1)^2); h_{t+1} = W h_t + V z_t + x; cost_t = cos(v . h_{t+1}) + (v . h_{t+1} - target)^2
/// / 4. If not `feeding`, one step of two columns.
template <class T>
class Drift final : public Model<T> {
 public:
  static constexpr int hidden = 2;

  explicit Drift(bool feeding, double shift = 0, Key key = Key(5))
      : steps_(feeding ? 2 : 1), columns_(feeding ? 1 : 2), shift_(shift) {
    structure_ = {.sites = {{.name = "place",
                             .times = steps_,
                             .state_width = hidden,
                             .scope = feeding ? DependenceScope::later_choices : DependenceScope::own_costs,
                             .kind = SiteKind::normal,
                             .columns = columns_}},
                  .posterior = true};
    auto& set = this->parameters_;
    mean_ = {set, "mean", hidden, static_cast<std::size_t>(columns_), key};
    log_scale_ = {set, "log_scale", hidden, static_cast<std::size_t>(columns_), key};
    posterior_mean_ = {set, "posterior.mean", hidden + 1, static_cast<std::size_t>(columns_), key};
    posterior_log_scale_ = {set, "posterior.log_scale", hidden + 1, static_cast<std::size_t>(columns_), key};
    recurrent_ = {set, "core", hidden, hidden, key, false};
    moved_ = {set, "moved", static_cast<std::size_t>(columns_), hidden, key, false};
    out_ = {set, "out", hidden, 1, key};
  }

  static Batch batch() {
    Batch batch;
    batch.id = {4, 7};
    batch.reals["x"] = shaped<double>({2, 2}, {0.3, -0.2, 0.4, 0.1});
    batch.reals["target"] = shaped<double>({2}, {0.5, -0.3});
    return batch;
  }

  const Structure& structure() const override { return structure_; }

  void run(const Batch& batch, Episode<T>& episode) const override {
    auto& tape = episode.tape();
    const auto x = constant_of(tape, batch, "x"), target = constant_of(tape, batch, "target");
    auto rows = episode.root();
    auto h = x;
    episode.cost(rows, square(out_(h)));  // before any choice
    if (shift_ != 0) episode.cost(rows, tape.constant(rows->size(), 1, static_cast<T>(shift_)));
    const auto distribution = [](const Linear<T>& mean, const Linear<T>& log_scale, Var<T> from) -> DistributionPtr<T> {
      return normal(mean(from), affine(log_scale(from), T{1}, T{-1}));
    };
    for (int t = 0; t < steps_; ++t) {
      Site<T> site{"place", rows, distribution(mean_, log_scale_, h), h};
      site.posterior = [&, h, rows] {
        return distribution(posterior_mean_, posterior_log_scale_,
                            concat_columns({h, gather_rows(target, std::span<const int>(rows->example))}));
      };
      const auto z = episode.choose(std::move(site));
      const std::span<const int> parent(z.rows->parent), example(z.rows->example);
      h = add(add(recurrent_(gather_rows(h, parent)), gather_rows(x, example)), moved_(z.value()));
      const auto y = out_(h);
      episode.cost(z.rows, add(cos(y), affine(square(subtract(y, gather_rows(target, example))), T{0.25})));
      rows = z.rows;
    }
    episode.cost(rows, affine(row_sums(square(h)), T{0.1}));
  }

 private:
  int steps_, columns_;
  double shift_;
  Linear<T> mean_, log_scale_, posterior_mean_, posterior_log_scale_, recurrent_, moved_, out_;
  Structure structure_;
};

// A small network whose two sites differ in columns, options and width of the state.

/// h = tanh(B [one-hot i_1, i_2]), loss (v . [h, one-hot j_1, j_2, j_3])^2. First two choices i of three options at once, from
/// a state of one number; then three bits j, from h, a state of three numbers.
class TwoSites final : public Model<double> {
 public:
  TwoSites() {
    structure_ = {.sites = {{.name = "first", .options = 3, .state_width = 1, .columns = 2},
                            {.name = "second", .options = 2, .state_width = 3, .columns = 3}},
                  .posterior = true};
    first_ = {parameters_, "first", 1, 6, Key(1)};
    second_ = {parameters_, "second", 3, 6, Key(1)};
    between_ = {parameters_, "between", 6, 3, Key(1)};
    out_ = {parameters_, "out", 9, 1, Key(1)};
    first_posterior_ = {parameters_, "first_posterior", 1, 6, Key(2)};
    second_posterior_ = {parameters_, "second_posterior", 3, 6, Key(2)};
  }

  /// One example, with only an id.
  static Batch batch() {
    Batch batch;
    batch.id = {0};
    return batch;
  }

  const Structure& structure() const override { return structure_; }
  SiteExtent site_extent(const Batch&, std::size_t site, int) const override {
    return site == 0 ? SiteExtent{{3, 3}, 1} : SiteExtent{{2, 2, 2}, 1};
  }
  void run(const Batch&, Episode<double>& episode) const override {
    auto& tape = episode.tape();
    const auto root = episode.root();
    const auto one = tape.constant(root->size(), 1, 1.0);
    const auto i = choose(episode, "first", root, one, 3, 2, first_, first_posterior_);
    const auto h = tanh(between_(reshape(i.one_hot(tape, 3), 6)));
    const auto j = choose(episode, "second", i.rows, h, 2, 3, second_, second_posterior_);
    const auto known = concat_columns({gather_rows(h, std::span<const int>(j.rows->parent)), reshape(j.one_hot(tape, 2), 6)});
    episode.cost(j.rows, square(out_(known)));
  }

 private:
  static Choice<double> choose(Episode<double>& episode, const char* name, const RowsPtr& rows, const Var<double>& state,
                               int options, int columns, const Linear<double>& scores, const Linear<double>& posterior) {
    const auto prior = categorical(reshape(scores(state), options), std::vector<int>(rows->size() * columns, options), columns);
    Site<double> site{name, rows, prior, state};
    site.posterior = [&] { return prior->with(reshape(posterior(state), options)); };
    return episode.choose(std::move(site));
  }

  Structure structure_;
  Linear<double> first_, second_, between_, out_, first_posterior_, second_posterior_;
};

}  // namespace hardgrad::verification
