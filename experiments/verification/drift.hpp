// A small model whose choices are numbers that feed later ones. It covers the cases an estimator may meet: a scale that depends
// on earlier choices, costs at the root, at every step and at the end, a path derivative, and a posterior. All functions of the
// numbers are entire, so a quadrature of few nodes is exact to many digits.
#pragma once

#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/rearrange.hpp"
#include "core/autodiff/reduce.hpp"
#include "core/choice/normal.hpp"
#include "core/models/model.hpp"
#include "core/models/parts/fields.hpp"
#include "core/nn/layers.hpp"

namespace hardgrad::verification {

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
                             .reach = feeding ? Reach::later_choices : Reach::own_costs,
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

}  // namespace hardgrad::verification
