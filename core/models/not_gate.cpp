// not_gate: a network with one stochastic gate, to be trained on NOT.
//
//   y = B_x sig(w1 x + b1),  B_x ~ Bernoulli(sig(w0 x + b0)),  f = (target - y)^2      on (x, target) = (0, 1), (1, 0)
//
// exp(-f) is the density of a Normal target with variance 1/2, times sqrt(pi): likelihoods hold up to this constant.
// Parameters: gate.weight [1, 1] (w0), gate.bias [1] (b0), output.weight [1, 1] (w1), output.bias [1] (b1).
// With posterior: posterior.weight [1, 2], posterior.bias [1]: q(open | x, target) = sig(weight . (x, target) + bias).
#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/product.hpp"
#include "core/autodiff/rearrange.hpp"
#include "core/models/model.hpp"
#include "core/models/parts/fields.hpp"
#include "core/nn/layers.hpp"

namespace hardgrad::models::not_gate {
namespace {

struct Config {
  double w0 = 0.5, b0 = -0.25, w1 = 0.3, b1 = 0.1;

  void declare(Fields& field) {
    field(w0, "w0", -1e6, 1e6, "weight of the gate");
    field(b0, "b0", -1e6, 1e6, "bias of the gate");
    field(w1, "w1", -1e6, 1e6, "weight of the output");
    field(b1, "b1", -1e6, 1e6, "bias of the output");
  }
};

template <class T>
class NotGate final : public Model<T> {
 public:
  NotGate(const Config& config, const Blueprint& b) {
    const auto& init = b.init;
    const bool posterior = b.posterior;
    structure_ = {.sites = {{.name = "gate", .options = 2, .state_width = 1, .scope = DependenceScope::own_costs}},
                  .posterior = posterior};
    w0_ = number("gate.weight", {1, 1}, config.w0);
    b0_ = number("gate.bias", {1}, config.b0);
    w1_ = number("output.weight", {1, 1}, config.w1);
    b1_ = number("output.bias", {1}, config.b1);
    if (structure_.posterior) posterior_ = Linear<T>(this->parameters_, "posterior", 2, 1, init);
  }

  const Structure& structure() const override { return structure_; }

  void run(const Batch& batch, Episode<T>& episode) const override {
    auto& tape = episode.tape();
    const auto x = constant_of(tape, batch, "x"), target = constant_of(tape, batch, "target");

    const auto prior = bernoulli(linear(x, tape.parameter(*w0_), tape.parameter(*b0_)));
    Site<T> gate{.name = "gate", .rows = episode.root(), .prior = prior, .state = x};
    if (structure_.posterior) gate.posterior = [&] { return bernoulli(posterior_(concat_columns({x, target}))); };
    const auto choice = episode.choose(std::move(gate));
    const auto after = [&](Var<T> value) { return gather_rows(value, std::span<const int>(choice.rows->parent)); };

    const auto open = slice_columns(choice.one_hot(tape, 2), 1, 1);  // B_x
    const auto y = multiply(open, after(sigmoid(linear(x, tape.parameter(*w1_), tape.parameter(*b1_)))));
    episode.cost(choice.rows, square(subtract(after(target), y)));
  }

 private:
  const Parameter<T>* number(const std::string& name, std::vector<std::size_t> shape, double value) {
    auto& parameter = this->parameters_.add(name, std::move(shape));
    parameter.value.flat(0) = static_cast<T>(value);
    return &parameter;
  }
  const Parameter<T>*w0_, *b0_, *w1_, *b1_;
  Linear<T> posterior_;
  Structure structure_;
};

}  // namespace

const ModelEntry entry = {
    .name = "not_gate",
    .summary = "network with one stochastic gate, to be trained on NOT",
    .paper = "none: the smallest network with a stochastic unit, four parameters",
    .dependence = "one choice",
    .kinds = "binary",
    .parameters = declared<Config>(),
    .needs = {"not_gate"},
};
HARDGRAD_MODEL(NotGate, entry)

}  // namespace hardgrad::models::not_gate
