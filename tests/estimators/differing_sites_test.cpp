// Sites of one model may differ in everything: columns, options, width of the state.
#include <doctest/doctest.h>

#include <cmath>

#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/product.hpp"
#include "core/autodiff/rearrange.hpp"
#include "core/nn/layers.hpp"
#include "tests/support/exactness.hpp"

namespace hardgrad::testing {
namespace {

/// Two choices of three options at once, seen from a state of one number; then a bit, seen from what they gave, three numbers.
class TwoSites final : public Model<double> {
 public:
  TwoSites() {
    structure_ = {.sites = {{.name = "wide", .options = 3, .state_width = 1, .columns = 2},
                            {.name = "narrow", .options = 2, .state_width = 3}},
                  .posterior = true};
    first_ = {parameters_, "first", 1, 6, Key(1)};
    second_ = {parameters_, "second", 3, 2, Key(1)};
    between_ = {parameters_, "between", 6, 3, Key(1)};
    out_ = {parameters_, "out", 5, 1, Key(1)};
    posterior_ = {parameters_, "posterior", 3, 2, Key(2)};
    wide_posterior_ = {parameters_, "wide_posterior", 1, 6, Key(2)};
  }
  const Structure& structure() const override { return structure_; }
  Asked asked(const Batch&, std::size_t site, int) const override { return site == 0 ? Asked{{3, 3}, 1} : Asked{{2}, 1}; }
  void run(const Batch&, Episode<double>& episode) const override {
    auto& tape = episode.tape();
    const auto root = episode.root();
    const auto one = tape.constant(root->size(), 1, 1.0);
    const auto prior = categorical(reshape(first_(one), 3), std::vector<int>(root->size() * 2, 3), 2);
    Site<double> wide{"wide", root, prior, one};
    wide.posterior = [&] { return prior->with(reshape(wide_posterior_(one), 3)); };
    const auto i = episode.choose(std::move(wide));
    const auto h = tanh(between_(reshape(i.one_hot(tape, 3), 6)));
    const auto bit = categorical(second_(h), std::vector<int>(h.rows(), 2));
    Site<double> narrow{"narrow", i.rows, bit, h};
    narrow.posterior = [&] { return bit->with(posterior_(h)); };
    const auto j = episode.choose(std::move(narrow));
    const auto known = concat_columns({gather_rows(h, std::span<const int>(j.rows->parent)), j.one_hot(tape, 2)});
    episode.cost(j.rows, square(out_(known)));
  }

 private:
  Structure structure_;
  Linear<double> first_, second_, between_, out_, posterior_, wide_posterior_;
};

}  // namespace

TEST_CASE("every estimator works where sites differ in columns, options and width of state, with the mean it claims") {
  const TwoSites model;
  const auto batch = one_example();
  int unbiased = 0, others = 0;
  for (const auto& name : Estimators::instance().names()) {
    const auto spec = Spec::parse(name);
    if (!unsupported(spec, model.structure()).empty()) continue;
    CAPTURE(name);
    const auto estimator = make_estimator<double>(spec, model.structure(), Key(11));
    stir(*estimator);
    for (double x : gradient_of(*estimator, model, batch, Key(2))) CHECK(std::isfinite(x));
    try {
      const double bias = bias_of(*estimator, model, batch, 2e4);
      if (claims_unbiased(spec)) CHECK(bias < 1e-9);
      ++(claims_unbiased(spec) ? unbiased : others);
    } catch (const NotExact&) {  // continuous noise, or too many samples
    }
  }
  CHECK(unbiased >= 20);
  CHECK(others >= 3);
}

}  // namespace hardgrad::testing
