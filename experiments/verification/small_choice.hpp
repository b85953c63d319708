// The smallest model whose loss is known everywhere: the test of estimators' promises.
#pragma once

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/product.hpp"
#include "core/autodiff/rearrange.hpp"
#include "core/autodiff/reduce.hpp"
#include "core/estimator/promises.hpp"
#include "core/models/model.hpp"

namespace hardgrad::verification {

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
                             .reach = loss.per_column ? Reach::own_column : Reach::own_costs,
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

}  // namespace hardgrad::verification
