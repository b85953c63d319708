// reinmax_cv: reinmax with a control variate of relaxed choices at the halfway point.
//
//   g = 1/K sum_k grad f(z_k) with dz/dlogits := 2 J((p_T + z) / 2) - 1/2 J(p) + eta (1/M sum_m dw_m/dlogits - dw_0/dlogits)
//   J(w) = diag(w) - w w',   w_m = softmax((theta + G_m) / control_temperature),   theta = log((p + z) / 2)
//   G_1 .. G_M: Gumbel noise given that argmax(theta + G_m) = z
//   G_0: noise=drawn: the noise behind the choice, argmax(log p + G_0) = z;   noise=halfway: as G_1
//
// Wang & Bui 2026, Beyond ReinMax: low-variance gradient estimators for discrete latent variables (ReinMax-CV). In the paper,
// the dw_m (Gumbel-Rao) and dw_0 (straight-through Gumbel-softmax) have the same mean, so that their difference has mean zero.
// Exact moments contradict this. With the noise of the published program (noise=drawn), dw_0 has another distribution than the
// dw_m, and the difference has a nonzero mean: eta changes the bias as well as the variance. If the distributions agree
// (noise=halfway), it has mean zero given each z. ReinMax is a function of z, so the two are uncorrelated, and the variance
// only grows, by eta^2 times that of the difference.
// Target: expected loss. Bias: yes; with noise=halfway that of `reinmax`. Cost: K rows.
// Departures: the printed equation lacks the 2 of ReinMax's first term, and the program
// lacks the temperature inside w_0; both are included here.
#include "core/estimator/promises.hpp"
#include "core/estimator/relaxation/relaxation.hpp"

#include "core/autodiff/elementwise.hpp"

namespace hardgrad::estimators::reinmax_cv {
namespace {

enum class Noise { drawn, halfway };
constexpr Named<Noise> noises[] = {{"drawn", Noise::drawn}, {"halfway", Noise::halfway}};

struct Config {
  int samples = 1;
  double temperature = 1, control_temperature = 0.5, eta = 0.5;
  Noise noise = Noise::drawn;
  int rao_samples = 10;

  void declare(Fields& field) {
    samples_field(field, samples);
    temperature_field(field, temperature);
    field.temperature(control_temperature, "control_temperature", "temperature of the control's relaxed choices");
    field(eta, "eta", -1e6, 1e6, "weight of the control");
    field(noise, "noise", noises,
          "for the control's single draw: the noise behind the choice (as published), or new "
          "noise given the choice at the halfway point (mean zero)");
    field(rao_samples, "rao_samples", 1, 1e6, "draws of the noise given each choice");
  }
};

template <class T>
class ReinMaxCv final : public RelaxationEstimator<T> {
 public:
  ReinMaxCv(const Config& config, const Structure& structure, Key)
      : RelaxationEstimator<T>(config.samples, config.rao_samples, structure),
        config_(config),
        options_(static_cast<std::uint32_t>(structure.most_options())) {}
  bool exchangeable() const override { return false; }

 private:
  Relaxed<T> relax(const RelaxationContext<T>& context) const override {
    std::vector<int> option;
    Var<T> made;  // the noise behind the choice
    if (config_.noise == Noise::drawn)
      made = context.gumbels(&option);
    else
      option = context.draw();
    const auto second = moved_to(context, halfway(context, option, config_.temperature));
    auto soft = subtract(affine(context.softmax(second, 1), T{2}), affine(context.softmax(), T{0.5}));

    const auto theta = halfway(context, option);
    const auto relaxed = [&](Var<T> noise) { return context.softmax(noise, config_.control_temperature); };
    const auto given = [&](int m) { return relaxed(context.gumbels_given(option, 1 + m * options_, theta)); };
    soft = subtract(soft, affine(config_.noise == Noise::drawn ? relaxed(add(made, moved_to(context, theta))) : given(0),
                                 static_cast<T>(config_.eta)));
    for (int m = 1; m <= context.rao_samples; ++m)
      soft = add(soft, affine(given(m), static_cast<T>(config_.eta / context.rao_samples)));
    return straight_through(context, std::move(option), soft);
  }
  /// The offset of the logits that makes them equal to `to` [R, S].
  static Var<T> moved_to(const RelaxationContext<T>& context, const std::vector<double>& to) {
    return context.constants([&](std::size_t r, std::span<double> move) {
      for (std::size_t i = 0; i < move.size(); ++i) move[i] = to[r * context.width() + i] - move[i];
    });
  }
  Config config_;
  std::uint32_t options_;
};

// For two options: sum_z p(z) (f'_1 - f'_0) [2 h_0 h_1 - 1/2 p_0 p_1 + eta (E_m - E_0)],   h = (p_T + z) / 2
// E_m, E_0: means of w (1 - w) / control_temperature, w the sigmoid of x / control_temperature. For E_m,
//   x = theta_1 - theta_0 + logistic noise, on z's side of 0. For E_0 the noise is on z's side with log p in place of theta
SmallChoice::Vector expected(const Config& config, const SmallChoice& at) {
  if (at.logits.size() != 2) return {};
  const double temperature = config.control_temperature, far = INFINITY;
  const auto p = at.p(), p_T = at.p(config.temperature);
  const double phi = at.logits[1] - at.logits[0];
  const auto bump = [&](double x) { return relaxed_slope(x, temperature); };
  double g = 0;
  for (std::size_t z = 0; z < 2; ++z) {
    const SmallChoice::Vector slope = at.slope(at.one_hot(z)), h = (p_T + at.one_hot(z)) / 2.0,
                              halfway = (p + at.one_hot(z)) / 2.0;
    const double theta = std::log(halfway[1] / halfway[0]), from = z == 1 ? 0 : -far, to = z == 1 ? far : 0;
    double control = 0;
    if (config.noise == Noise::drawn)
      control = over_logistic(theta, from, to, temperature, bump) / halfway[z] -
                over_logistic(phi, from, to, temperature, [&](double x) { return bump(x - phi + theta); }) / p[z];
    g += p[z] * (slope[1] - slope[0]) * (2 * h[0] * h[1] - 0.5 * p[0] * p[1] + config.eta * control);
  }
  return {-g, g};
}

}  // namespace

const EstimatorEntry entry = {
    .name = "reinmax_cv",
    .summary = "reinmax with the difference of averaged and single relaxed choices at the halfway point as control variate",
    .paper = "Wang & Bui 2026, Beyond ReinMax: low-variance gradient estimators for discrete latent variables",
    .target = "expected_loss",
    .unbiased = false,
    .evaluations = "K",
    .parameters = declared<Config>(),
    .needs = {need::relaxable},
    .promises = {promise::mean(expected, "rao_samples=1"),
                 promise::mean(expected, "temperature=1.6,control_temperature=1.3,eta=1.5,rao_samples=1"),
                 promise::mean(expected, "noise=halfway,rao_samples=1,eta=0.8"),
                 promise::same_moments("reinmax[temperature=1.3]", "temperature=1.3,eta=0,rao_samples=1")},
};
HARDGRAD_ESTIMATOR(ReinMaxCv, entry)

}  // namespace hardgrad::estimators::reinmax_cv
