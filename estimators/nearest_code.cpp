// nearest_code: the nearest code in the forward pass; its gradient goes to the encoder's point, as if that were the code.
//
//   z = argmin_s |h - c_s|,   v = c_z,   dL/dh := dL/dv                             gradient=copied:  VQ
//                                        dL/dh := |c_z| / |h| A' dL/dv              gradient=rotated: the rotation trick
//   A: the rotation of the plane of h and c_z from h's direction to c_z's, a constant
//
// Van den Oord, Vinyals & Kavukcuoglu 2017, Neural discrete representation learning (VQ-VAE), sec. 3.2; Fifty et al. 2024,
// Restructuring vector quantization with the rotation trick, sec. 4.2. `codes=drawn` takes the code from the softmax instead
// (stochastic codes: Roy et al. 2018, Theory and experiments on vector quantized autoencoders).
// Target: expected loss, of codes from the softmax. Bias: unlike that of straight_through, it is not 0 where the loss is linear:
// dL/dv is the slope of the loss in the code, not the difference of the losses of two codes. The loss does not reach the codes
// through v, only through its terms of h and c_z, such as the commitment loss. For no choice of codes is the estimate the
// derivative of a loss. Cost: 1 row.
#include "core/autodiff/rearrange.hpp"
#include "core/choice/choice.hpp"
#include "core/choice/handlers.hpp"
#include "core/estimator/score_function/score_function.hpp"

namespace hardgrad::estimators::nearest_code {
namespace {

enum class Gradient { copied, rotated };
constexpr Named<Gradient> gradients[] = {{"copied", Gradient::copied}, {"rotated", Gradient::rotated}};
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

/// The answers of another handler, with the gradient of their codes at the points.
template <class T>
class CodesHandler final : public Handler<T> {
 public:
  CodesHandler(Handler<T>& hard, bool rotated) : hard_(hard), rotated_(rotated) {}
  Choice<T> choose(Tape<T>& tape, const Question<T>& question) override {
    auto choice = hard_.choose(tape, question);
    const auto& [point, table] = question.site.codes;
    const auto from = question.parent_choices(*choice.rows);
    const auto h = gather_rows(point, std::span<const int>(from));
    const auto c = codes_of(choice, table);
    choice.code = rotated_ ? rotated_gradient(h, c) : copied_gradient(h, c);
    return choice;
  }

 private:
  Handler<T>& hard_;
  bool rotated_;
};

template <class T>
class NearestCode final : public Estimator<T> {
 public:
  NearestCode(const Config& config, const Structure&, Key) : config_(config) {}

  Estimate<T> estimate(const Problem<T>& problem) const override {
    GreedyHandler<T> nearest;
    SampleHandler<T> drawn(1, problem.random, problem.batch.id);
    CodesHandler<T> handler(config_.codes == Codes::drawn ? static_cast<Handler<T>&>(drawn) : nearest,
                            config_.gradient == Gradient::rotated);
    return path_estimate(problem, 1, handler);
  }

 private:
  Config config_;
};

}  // namespace

const EstimatorEntry entry = {
    .name = "nearest_code",
    .summary = "the nearest code in the forward pass, its gradient copied or rotated to the encoder's point",
    .paper = "Van den Oord, Vinyals & Kavukcuoglu 2017, Neural discrete representation learning; Fifty et al. 2024",
    .target = "expected_loss",
    .unbiased = false,
    .evaluations = "1",
    .parameters = declared<Config>(),
    .needs = {need::codes},
};
HARDGRAD_ESTIMATOR(NearestCode, entry)

}  // namespace hardgrad::estimators::nearest_code
