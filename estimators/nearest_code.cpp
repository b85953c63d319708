// nearest_code: the nearest code in the forward pass; its gradient goes to the encoder's point, as if that were the code.
//
//   z = argmin_s |h - c_s|,   v = c_z,   dL/dh := dL/dv                             gradient=copied:  VQ
//                                        dL/dh := |c_z| / |h| A' dL/dv              gradient=rotated: the rotation trick
//   A: the rotation of the plane of h and c_z from h's direction to c_z's, a constant
//   gradient=directed: v = h + |c_z - h| e, e = (c_z - h) / |c_z - h| a constant                                   DiVeQ
//                      dL/dh := (I - e e') dL/dv, and dL/dc_z := e e' dL/dv
//
// Van den Oord, Vinyals & Kavukcuoglu 2017, Neural discrete representation learning (VQ-VAE), sec. 3.2; Fifty et al. 2024,
// Restructuring vector quantization with the rotation trick, sec. 4.2; Vali et al. 2025, DiVeQ (2509.26469), as in their code's
// DIVEQDetach. `codes=drawn` takes the code from the softmax instead (stochastic codes: Roy et al. 2018, Theory and experiments
// on vector quantized autoencoders).
// Target: expected loss, of codes from the softmax. Bias: unlike that of straight_through, it is not 0 where the loss is linear:
// dL/dv is the slope of the loss in the code, not the difference of the losses of two codes. Unless the gradient is `directed`,
// the loss does not reach the codes through v, only through its terms of h and c_z, such as the commitment loss. For no choice
// of codes is the estimate the derivative of a loss. Cost: 1 row.
// Departure: DiVeQ's noise, with which e is only near that direction, and v only near a code, is left out.
#include <algorithm>

#include "core/autodiff/rearrange.hpp"
#include "core/autodiff/require.hpp"
#include "core/choice/choice.hpp"
#include "core/choice/handlers.hpp"
#include "core/estimator/score_function/score_function.hpp"

namespace hardgrad::estimators::nearest_code {
namespace {

enum class Gradient { copied, rotated, directed };
constexpr Named<Gradient> gradients[] = {
    {"copied", Gradient::copied}, {"rotated", Gradient::rotated}, {"directed", Gradient::directed}};
enum class Codes { nearest, drawn };
constexpr Named<Codes> all_codes[] = {{"nearest", Codes::nearest}, {"drawn", Codes::drawn}};

struct Config {
  Gradient gradient = Gradient::copied;
  Codes codes = Codes::nearest;

  void declare(Fields& field) {
    field(gradient, "gradient", gradients, "how it goes from the code to the point");
    field(codes, "codes", all_codes, "the nearest, or drawn from the softmax of the network");
  }
};

/// [R, d] the codes. Their gradient's part along the direction from point to code goes to the code, the rest to the point; all of
/// it to the point where they are equal.
template <class T>
Var<T> directed_gradient(Var<T> point, Var<T> code) {
  require_shapes(same_shape(point, code), "directed_gradient", {point, code});
  const auto y = point.tape->output(code.rows(), code.cols(), {point, code});
  std::copy_n(code.value().data, code.value().size(), point.tape->mutable_value(y).data);
  point.tape->on_backward({y}, [point, code, y](Tape<T>& tape) {
    const auto h = tape.value(point), c = tape.value(y), g = tape.cotangent(y);
    const auto along = tape.template scratch<T>(g.size());
    for (std::size_t r = 0; r < g.rows; ++r) {
      double square = 0, product = 0;
      for (std::size_t i = 0; i < g.cols; ++i) {
        const double apart = static_cast<double>(c(r, i)) - static_cast<double>(h(r, i));
        square += apart * apart;
        product += apart * static_cast<double>(g(r, i));
      }
      const double factor = square > 0 ? product / square : 0;
      for (std::size_t i = 0; i < g.cols; ++i)
        along[r * g.cols + i] = static_cast<T>(factor * (static_cast<double>(c(r, i)) - static_cast<double>(h(r, i))));
    }
    if (tape.needs_gradient(point)) tape.sink(point).accumulate([&](std::size_t i) { return g.data[i] - along[i]; });
    if (tape.needs_gradient(code)) tape.sink(code).accumulate([&](std::size_t i) { return along[i]; });
  });
  return y;
}

/// The answers of another handler, with the gradient of their codes at the points.
template <class T>
class CodesHandler final : public Handler<T> {
 public:
  CodesHandler(Handler<T>& hard, Gradient gradient) : hard_(hard), gradient_(gradient) {}
  Choice<T> choose(Tape<T>& tape, const Question<T>& question) override {
    auto choice = hard_.choose(tape, question);
    const auto& [point, table] = question.site.codes;
    const auto from = question.parent_choices(*choice.rows);
    const auto h = gather_rows(point, std::span<const int>(from));
    const auto c = codes_of(choice, table);
    choice.code = gradient_ == Gradient::rotated    ? rotated_gradient(h, c)
                  : gradient_ == Gradient::directed ? directed_gradient(h, c)
                                                    : copied_gradient(h, c);
    return choice;
  }

 private:
  Handler<T>& hard_;
  Gradient gradient_;
};

template <class T>
class NearestCode final : public Estimator<T> {
 public:
  NearestCode(const Config& config, const Structure&, Key) : config_(config) {}

  Estimate<T> estimate(const Problem<T>& problem) const override {
    GreedyHandler<T> nearest;
    SampleHandler<T> drawn(1, problem.random, problem.batch.id);
    CodesHandler<T> handler(config_.codes == Codes::drawn ? static_cast<Handler<T>&>(drawn) : nearest, config_.gradient);
    return path_estimate(problem, 1, handler);
  }

 private:
  Config config_;
};

}  // namespace

const EstimatorEntry entry = {
    .name = "nearest_code",
    .summary = "the nearest code in the forward pass, its gradient copied, rotated or directed to the encoder's point",
    .paper =
        "Van den Oord, Vinyals & Kavukcuoglu 2017, Neural discrete representation learning; Fifty et al. 2024; "
        "Vali et al. 2025, DiVeQ",
    .target = "expected_loss",
    .unbiased = false,
    .evaluations = "1",
    .parameters = declared<Config>(),
    .needs = {need::codes},
};
HARDGRAD_ESTIMATOR(NearestCode, entry)

}  // namespace hardgrad::estimators::nearest_code
