// A small network whose two sites differ in columns, options and width of the state.
#pragma once

#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/product.hpp"
#include "core/autodiff/rearrange.hpp"
#include "core/models/model.hpp"
#include "core/nn/layers.hpp"

namespace hardgrad::verification {

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
  Asked asked(const Batch&, std::size_t site, int) const override { return site == 0 ? Asked{{3, 3}, 1} : Asked{{2, 2, 2}, 1}; }
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
