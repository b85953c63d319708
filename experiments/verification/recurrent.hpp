// A small recurrent model whose choices feed later logits. It covers the cases an estimator may meet: ragged options, finished
// rows, costs at the root, at every step and at the end, a path derivative, and a posterior.
#pragma once

#include <cmath>

#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/product.hpp"
#include "core/autodiff/rearrange.hpp"
#include "core/autodiff/reduce.hpp"
#include "core/models/model.hpp"
#include "core/models/parts/fields.hpp"
#include "core/nn/layers.hpp"

namespace hardgrad::verification {

/// h_{t+1} = tanh(W h_t + E[z_t] + x); logits_t = A h_t; cost_t = (v . h_{t+1} - target)^2. If not `feeding`, the recurrence
/// ignores the choice (h_{t+1} = tanh(W h_t + x)) and only cost_t depends on E[z_t]: a factorised model. With several columns
/// z_t is a set of simultaneous choices, and E[z_t] the sum of their embeddings; column d has d options less, at least two. If
/// the reach is `own_column`, each column has a separate cost, from an h_{t+1} with the E[z_t] of this column alone, times d +
/// 1.
template <class T>
class Recurrent final : public Model<T> {
 public:
  static constexpr int hidden = 2, longest = 3;

  explicit Recurrent(bool feeding, Key key = Key(5), int options = 3, double shift = 0, int columns = 1)
      : Recurrent(feeding ? DependenceScope::later_choices : DependenceScope::own_costs, key, options, shift, columns) {}
  Recurrent(DependenceScope scope, Key key, int options, double shift, int columns)
      : feeding_(scope == DependenceScope::later_choices),
        unshared_(scope == DependenceScope::own_column),
        options_(options),
        columns_(columns),
        shift_(shift) {
    structure_ = {
        .sites =
            {{.name = "step", .options = options, .times = longest, .state_width = hidden, .scope = scope, .columns = columns}},
        .posterior = true};
    recurrent_ = Linear<T>(this->parameters_, "core", hidden, hidden, key, false);
    scores_ = Linear<T>(this->parameters_, "score", hidden, options * columns, key);
    posterior_ = Linear<T>(this->parameters_, "posterior", hidden + 1, options * columns, key);
    embedding_ = Embedding<T>(this->parameters_, "embedding", unshared_ ? options : options * columns, hidden, key, 0.8);
    out_ = Linear<T>(this->parameters_, "out", hidden, 1, key);
  }

  /// Three examples of different lengths and numbers of options, up to `most`.
  static Batch batch(int most = 3) {
    Batch batch;
    batch.id = {4, 7, 9};
    batch.reals["x"] = shaped<double>({3, 2}, {0.3, -0.2, 0.8, 0.1, -0.5, 0.4});
    batch.reals["target"] = shaped<double>({3}, {0.5, -0.3, 0.2});
    batch.integers["length"] = shaped<int>({3}, {3, 2, 1});
    batch.integers["options"] = shaped<int>({3}, {2, most, most});
    return batch;
  }

  const Structure& structure() const override { return structure_; }
  using SiteExtent = typename Model<T>::SiteExtent;
  SiteExtent site_extent(const Batch& batch, std::size_t, int example) const override {
    SiteExtent asked{{}, batch.ints("length")(example)};
    for (int d = 0; d < columns_; ++d) asked.options.push_back(options_of(batch, example, d));
    return asked;
  }

  void run(const Batch& batch, Episode<T>& episode) const override {
    auto& tape = episode.tape();
    const auto x = constant_of(tape, batch, "x"), target = constant_of(tape, batch, "target");
    auto rows = episode.root();
    auto h = tanh(x);
    episode.cost(rows, square(out_(h)));  // before any choice
    if (shift_ != 0) episode.cost(rows, tape.constant(rows->size(), 1, static_cast<T>(shift_)));
    for (int t = 0; t < longest; ++t) {
      std::vector<int> allowed;
      for (int b : rows->example)
        for (int d = 0; d < columns_; ++d) allowed.push_back(t < batch.ints("length")(b) ? options_of(batch, b, d) : 1);
      const auto prior = categorical(reshape(scores_(h), options_), allowed, columns_);
      Site<T> site{"step", rows, prior, h};
      site.posterior = [&, h, rows] {
        return prior->with(
            reshape(posterior_(concat_columns({h, gather_rows(target, std::span<const int>(rows->example))})), options_));
      };
      auto choice = episode.choose(std::move(site));
      const auto& example = choice.rows->example;
      // The rows that see the choices: the row itself, or one for each of its columns.
      const std::size_t each = unshared_ ? columns_ : 1, seeing = choice.rows->size() * each;
      const auto row = tape.template scratch<int>(seeing), whose = tape.template scratch<int>(seeing);
      auto weight = tape.constant(seeing, 1);
      for (std::size_t i = 0; i < seeing; ++i) {
        row[i] = choice.rows->parent[i / each];
        whose[i] = example[i / each];
        tape.mutable_value(weight).data[i] = t < batch.ints("length")(whose[i]) ? static_cast<T>(i % each + 1) : 0;
      }
      const std::span<const int> parent(row), of(whose);
      const auto chosen = matmul(reshape(choice.one_hot(tape, options_), unshared_ ? options_ : options_ * columns_),
                                 tape.parameter(*embedding_.weight));
      const auto before = add(recurrent_(gather_rows(h, parent)), gather_rows(x, of));
      const auto after = tanh(add(before, chosen));
      const auto loss = multiply(square(subtract(out_(after), gather_rows(target, of))), weight);
      episode.cost(choice.rows, reshape(loss, each));
      if (feeding_) {
        h = after;
        rows = choice.rows;
      } else {
        h = tanh(add(recurrent_(h), x));
      }
    }
    if (feeding_) episode.cost(rows, row_sums(square(h)));
  }

 private:
  static int options_of(const Batch& batch, int example, int column) {
    const int options = batch.ints("options")(example);
    return column == 0 ? options : std::max(options - column, 2);
  }
  bool feeding_, unshared_;
  int options_, columns_;
  double shift_;
  Linear<T> recurrent_, scores_, posterior_, out_;
  Embedding<T> embedding_;
  Structure structure_;
};

}  // namespace hardgrad::verification
