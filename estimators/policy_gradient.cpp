// policy_gradient: the score function as sequence models are fine-tuned with it: samples of an older policy, weighted by ratios.
//
//   g = 1/K sum_k c_k sum_t ( A_k W(w_kt) + beta dD_kt ) grad log p(z_kt) + 1/K sum_k w_k grad f_k,      z_k ~ q
//
// in losses f = - reward. q is the site's behaviour policy, or p itself; l_kt = log p(z_kt) - log q(z_kt).
//
//   advantage A_k    none             f_k
//                    leave_one_out    f_k - mean of the others         Kool et al. 2019; Ahmadian et al. 2024, Back to basics
//                    group_mean       f_k - mean f                     Liu et al. 2025, Understanding R1-Zero-like training
//                    group_std        (f_k - mean f) / (std f + eps)   Shao et al. 2024, DeepSeekMath (GRPO)
//                    length_weighted  f_k - sum n_j f_j / sum n_j      Hao et al. 2025, OPO; n_j choices
//   ratio w_kt       none 1, token exp(l_t), prefix exp(l_1 + .. + l_t) (Precup, Sutton & Singh 2000), sequence
//                    exp(sum l), geometric exp(sum l / n_k) (Zheng et al. 2025, GSPO)
//   bound W          none, clip (Schulman et al. 2017, PPO, eq. 7; two limits: Yu et al. 2025, DAPO; `dual`: Ye et al. 2020),
//                    truncate (Ionides 2008; MiniMax 2025, M1: CISPO; Yao et al. 2025: TIS), mask (Liu et al. 2025, When speed
//                    kills stability: MIS)
//   aggregation c_k  sum 1, sequences 1 / n_k (GRPO), tokens K / sum_j n_j (DAPO), longest 1 / T (Dr. GRPO)
//   divergence D     of p from the reference policy r, with m = log p(z_t) - log r(z_t) (Schulman 2020, Approximating KL
//                    divergence): k1 = m, k2 = m^2 / 2, k3 = exp(-m) - 1 + m, exact = KL(p_t || r_t)
//     where=reward   beta sum_t D_t is added to f_k; for `exact` its own gradient, too
//     where=loss     its derivative at the drawn word is added: dD = 1, m, 1 - exp(-m); the gradient of `exact`
//     where=weighted the same, of exp(l_t) D_t (DeepSeek 2025, V3.2, eq. 7): dD = exp(l_t) (D + dD)
//
// The names of published methods are values of `preset`, which sets the others. Their trainers minimise the mean of - g over
// prompts; here a preset is one update after the samples were drawn.
// Target: expected loss; with beta > 0 near_reference. Bias: none with advantage none or leave_one_out, ratio=sequence, bound
// none, aggregation=sum, and k1 or exact in the reward. Cost: K rows.
// Departures: `advantage` has no critic. std has K - 1 degrees of freedom. The path term, which rewards do not have, has the
// ratio of all choices before the cost. Ratios are exponentials of differences of logarithms; where one overflows the gradient
// is infinite, which a measurement reports. `tokens` averages over the samples of one example.
#include "core/estimator/score_function/policy_ratios.hpp"

#include <algorithm>
#include <cmath>

#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/reduce.hpp"
#include "core/estimator/score_function/group.hpp"
#include "core/estimator/score_function/score_function.hpp"
#include "core/estimator/score_function/tuples.hpp"

namespace hardgrad::estimators::policy_gradient {
namespace {

template <class T>
class PolicyGradient final : public Estimator<T> {
 public:
  PolicyGradient(const Settings& settings, const Structure& structure, Key)
      : samples_(settings.integer("samples")),
        advantage_(settings.text("advantage")),
        epsilon_(settings.real("epsilon")),
        ratio_(settings.text("ratio")),
        bound_{settings.text("bound"), settings.real("low"), settings.real("high"), settings.real("dual")},
        aggregation_(settings.text("aggregation")),
        divergence_(settings.real("beta") > 0 ? settings.text("divergence") : "none"),
        where_(settings.text("where")),
        beta_(settings.real("beta")),
        credit_(credit_of(settings)),
        off_policy_(structure.behaviour),
        longest_(std::max(structure.steps(), 1)) {}

  Estimate<T> estimate(const Problem<T>& given) const override;

 private:
  bool in_reward() const { return where_ == "reward"; }
  /// The parts of a run that the estimate reads.
  struct Run {
    Sampled<T> sampled;
    DrawnFrom policy;           // p
    std::vector<double> n;      // [R] choices of each sample, at least 1
    PerQuestion l, m;           // of each choice: log p - log q; log p - log r
    std::vector<double> share;  // [R] c
  };
  Run run(const Problem<T>& given) const;
  PerQuestion log_ratios(Run& run, DrawnFrom other) const;
  std::vector<double> shares(const std::vector<double>& n) const;
  /// The divergence of a choice, and its derivative with respect to log p there.
  double divergence(double m) const { return divergence_ == "k1" ? m : divergence_ == "k2" ? m * m / 2 : std::expm1(-m) + m; }
  double slope(double m) const { return divergence_ == "k1" ? 1 : divergence_ == "k2" ? m : -std::expm1(-m); }
  void take_advantage(std::vector<double>& f, int columns, const std::vector<double>& n) const;
  Var<T> path(Run& run) const;
  Var<T> divergence_of_questions(Run& run) const;
  double loss(Run& run) const;

  int samples_;
  std::string advantage_;
  double epsilon_;
  std::string ratio_;
  RatioBound bound_;
  std::string aggregation_, divergence_, where_;
  double beta_;
  Credit credit_;
  bool off_policy_;
  double longest_;
};

template <class T>
Estimate<T> PolicyGradient<T>::estimate(const Problem<T>& given) const {
  auto run = this->run(given);
  auto& sampled = run.sampled;
  const auto log_w = log_weights(ratio_, run.l, run.n);
  const bool of_choices = divergence_ != "none" && divergence_ != "exact";
  if (of_choices && in_reward())
    for (int t = 0; t < sampled.steps(); ++t) {
      const auto& rows = sampled.episode().steps()[t].choice.rows;
      const auto d = sampled.episode().tape().constant(rows->size(), 1);
      for (std::size_t r = 0; r < rows->size(); ++r)
        sampled.episode().tape().mutable_value(d)(r, 0) = static_cast<T>(divergence(run.m[t][r]));
      sampled.add(rows, d, beta_);
    }
  const auto score = sampled.score(
      credit_,
      [&](int t, std::vector<double>& f) {
        const int columns = sampled.columns(t, credit_);
        take_advantage(f, columns, run.n);
        for (std::size_t i = 0; i < f.size(); ++i) {
          const std::size_t r = i / columns;
          if (f[i] != 0) f[i] *= bound_(log_w[t][r], -f[i]);  // 0 times an overflow is 0
          if (of_choices && !in_reward()) {
            const double m = run.m[t][r];
            f[i] += beta_ * (where_ == "loss" ? slope(m) : std::exp(run.l[t][r]) * (divergence(m) + slope(m)));
          }
          f[i] *= run.share[r];
        }
      },
      run.policy);
  auto surrogate = add(score, path(run));
  if (divergence_ == "exact" && !in_reward()) surrogate = add(surrogate, divergence_of_questions(run));
  const double loss = this->loss(run);
  return {.surrogate = surrogate, .episode = sampled.release(), .loss = loss};
}

template <class T>
auto PolicyGradient<T>::run(const Problem<T>& given) const -> Run {
  auto problem = given;
  const auto policy = given.terms.drawn_from;
  if (policy == DrawnFrom::prior) problem.terms.drawn_from = DrawnFrom::behaviour;
  if (divergence_ != "none" && (divergence_ != "exact" || !in_reward())) problem.terms.to_reference = 0;  // this file adds it
  Run run{{problem, samples_, off_policy_ ? Costs::weighted : Costs::averaged}, policy, {}, {}, {}, {}};
  run.n.assign(run.sampled.rows(), 0);
  for (const auto& [question, choice] : run.sampled.episode().steps())
    for (std::size_t r = 0; r < run.n.size(); ++r) run.n[r] += question.chooses(choice.rows->parent[r]);
  for (auto& n : run.n) n = std::max(n, 1.0);
  run.l = log_ratios(run, off_policy_ && policy == DrawnFrom::prior ? DrawnFrom::behaviour : policy);
  run.m = log_ratios(run, divergence_ == "none" || divergence_ == "exact" ? policy : DrawnFrom::reference);
  run.share = shares(run.n);
  return run;
}

template <class T>
PerQuestion PolicyGradient<T>::log_ratios(Run& run, DrawnFrom other) const {
  auto& episode = run.sampled.episode();
  PerQuestion ratios(run.sampled.steps(), std::vector<double>(run.n.size()));
  if (other == run.policy) return ratios;
  for (int t = 0; t < run.sampled.steps(); ++t) {
    const T* p = episode.log_probability(t, run.policy).value().data;
    const T* q = episode.log_probability(t, other).value().data;
    for (std::size_t r = 0; r < run.n.size(); ++r) ratios[t][r] = static_cast<double>(p[r]) - static_cast<double>(q[r]);
  }
  return ratios;
}

template <class T>
std::vector<double> PolicyGradient<T>::shares(const std::vector<double>& n) const {
  std::vector<double> c(n.size(), 1);
  for (std::size_t group = 0; group < n.size(); group += samples_) {
    double words = 0;
    for (int k = 0; k < samples_; ++k) words += n[group + k];
    for (int k = 0; k < samples_; ++k)
      if (aggregation_ == "sequences")
        c[group + k] = 1 / n[group + k];
      else if (aggregation_ == "tokens")
        c[group + k] = samples_ / words;
      else if (aggregation_ == "longest")
        c[group + k] = 1 / longest_;
  }
  return c;
}

template <class T>
void PolicyGradient<T>::take_advantage(std::vector<double>& f, int columns, const std::vector<double>& n) const {
  if (advantage_ == "leave_one_out") leave_one_out(f, samples_, columns);
  if (advantage_ == "group_mean" || advantage_ == "group_std") centre(f, samples_, columns);
  if (advantage_ == "group_std") scale_by_deviation(f, samples_, columns, epsilon_);
  if (advantage_ == "length_weighted") {
    centre(f, samples_, columns);  // equal losses become exactly 0
    for (std::size_t group = 0; group < n.size(); group += samples_)
      for (int d = 0; d < columns; ++d) {
        double sum = 0, words = 0;
        for (std::size_t r = group; r < group + samples_; ++r) {
          sum += n[r] * f[r * columns + d];
          words += n[r];
        }
        for (std::size_t r = group; r < group + samples_; ++r) f[r * columns + d] -= sum / words;
      }
  }
}

// Costs are weighted by the ratio of the choices before them.
template <class T>
Var<T> PolicyGradient<T>::path(Run& run) const {
  if (!off_policy_) return run.sampled.path();
  auto& episode = run.sampled.episode();
  auto total = episode.tape().constant(1, 1);
  for (const auto& cost : episode.costs()) {
    const auto p = episode.path_log_probability(cost.rows, run.policy).value(),
               q = episode.path_log_probability(cost.rows, DrawnFrom::behaviour).value();
    std::vector<double> w(p.rows);
    for (std::size_t r = 0; r < w.size(); ++r)
      w[r] = std::exp(static_cast<double>(p.data[r]) - static_cast<double>(q.data[r])) / static_cast<double>(w.size());
    total = add(total, weighted_sum(cost.loss, std::span<const double>(w)));
  }
  return total;
}

// 1/K sum_k c_k sum_t beta KL(p_t || r_t)
template <class T>
Var<T> PolicyGradient<T>::divergence_of_questions(Run& run) const {
  auto& episode = run.sampled.episode();
  auto total = episode.tape().constant(1, 1);
  for (const auto& [question, choice] : episode.steps()) {
    std::vector<double> weight(question.site.rows->size());
    for (std::size_t r = 0; r < run.n.size(); ++r)
      weight[choice.rows->parent[r]] += beta_ * run.share[r] / static_cast<double>(run.n.size());
    total = add(total, weighted_sum(question.of(run.policy)->divergence(*question.of(DrawnFrom::reference)),
                                    std::span<const double>(weight)));
  }
  return total;
}

// The target's value, of the drawn samples.
template <class T>
double PolicyGradient<T>::loss(Run& run) const {
  const auto f = run.sampled.losses();
  double sum = 0;
  for (std::size_t r = 0; r < f.size(); ++r) {
    double l = 0, d = 0;
    for (std::size_t t = 0; t < run.l.size(); ++t) {
      l += run.l[t][r];
      d += divergence_ == "none" || divergence_ == "exact" ? 0 : divergence(run.m[t][r]);
    }
    sum += std::exp(l) * (f[r] + beta_ * d);
  }
  return sum / static_cast<double>(f.size());
}

std::string target_of(const Settings& settings) {
  return settings.text("divergence") == "none" || settings.real("beta") == 0
             ? "expected_loss"
             : "near_reference[beta=" + to_string(settings.real("beta")) + "]";
}

bool is_biased(const Settings& s) {
  const auto& advantage = s.text("advantage");
  const auto& divergence = s.text("divergence");
  const bool near = divergence != "none" && s.real("beta") > 0;
  return (advantage != "none" && advantage != "leave_one_out") || s.text("ratio") != "sequence" || s.text("bound") != "none" ||
         s.text("aggregation") != "sum" ||
         (near && ((divergence != "k1" && divergence != "exact") || s.text("where") != "reward"));
}

std::string why_not(const Settings& s, const Structure&) {
  if (s.integer("samples") == 1 && s.text("advantage") != "none")
    return "advantage=" + s.text("advantage") + " compares an example's samples: take samples of at least 2, or advantage=none";
  if (s.real("low") > s.real("high")) return "low is above high: take low=" + to_string(s.real("high")) + " or a larger high";
  return target_of(s) == "expected_loss" || s.text("target") == "expected_loss"
             ? ""
             : "divergence sets the target itself: take target=expected_loss or divergence=none";
}

// E 1/K sum_k A_k (one_hot(z_k) - p): a single choice, drawn from its own policy
SmallChoice::Vector expected(const Settings& settings, const SmallChoice& at) {
  const int K = settings.integer("samples");
  const auto& advantage = settings.text("advantage");
  return mean_over_tuples(at, K, [&](const std::vector<std::size_t>& z) {
    double mean = 0, squares = 0;
    for (const auto k : z) mean += at.loss(at.one_hot(k)) / K;
    for (const auto k : z) squares += std::pow(at.loss(at.one_hot(k)) - mean, 2);
    const double scale = advantage == "group_std"       ? std::sqrt(squares / (K - 1.0)) + settings.real("epsilon")
                         : advantage == "leave_one_out" ? (K - 1.0) / K
                                                        : 1;
    SmallChoice::Vector g(0.0, at.logits.size());
    for (const auto k : z) g += (at.loss(at.one_hot(k)) - mean) / scale / K * (at.one_hot(k) - at.p());
    return g;
  });
}

using P = ParameterInfo;

const std::vector<Preset> presets = {
    {"cispo", "advantage=group_std,ratio=token,bound=truncate,low=0,high=1.2,aggregation=tokens",
     "MiniMax 2025, MiniMax-M1, eq. 4-5 (no lower limit; its upper limit is not given)"},
    {"dapo", "advantage=group_std,ratio=token,bound=clip,low=0.8,high=1.28,aggregation=tokens",
     "Yu et al. 2025, DAPO, eq. 8, with the limits of sec. 4.1 (without dynamic sampling)"},
    {"dr_grpo", "advantage=group_mean,ratio=token,bound=clip,aggregation=longest",
     "Liu et al. 2025, Understanding R1-Zero-like training, sec. 3.2"},
    {"gpg", "advantage=group_mean,ratio=none,aggregation=tokens",
     "Chu et al. 2025, GPG (without its correction for groups of equal rewards)"},
    {"grpo", "advantage=group_std,ratio=token,bound=clip,aggregation=sequences,divergence=k3,where=loss",
     "Shao et al. 2024, DeepSeekMath, eq. 3-4 (sec. 4.1; beta = 0.04 there)"},
    {"gspo", "advantage=group_std,ratio=geometric,bound=clip,low=0.9997,high=1.0004,aggregation=sequences",
     "Zheng et al. 2025, Group sequence policy optimization, eq. 5-7, with the limits of sec. 5.1"},
    {"mis", "advantage=group_mean,ratio=sequence,bound=mask,low=0,high=2",
     "Liu et al. 2025, When speed kills stability (masked importance sampling)"},
    {"opo", "advantage=length_weighted,ratio=none", "Hao et al. 2025, On-policy RL with optimal reward baseline"},
    {"rloo", "advantage=leave_one_out,ratio=sequence,bound=clip,divergence=k1",
     "Ahmadian et al. 2024, Back to basics (on policy; trl clips the ratio)"},
    {"tis", "advantage=group_mean,ratio=token,bound=truncate,low=0,high=2",
     "Yao et al. 2025, Your efficient RL framework secretly brings you off-policy RL training"},
};

P preset_parameter() {
  std::vector<std::string> names{"none"};
  for (const auto& preset : presets) names.push_back(preset.name);
  return P::choice("preset", "none", names, "a published method: values of the settings below, unless they are given");
}

}  // namespace

const EstimatorEntry entry = {
    .name = "policy_gradient",
    .summary = "score function with importance ratios of an older policy, as in the fine-tuning of sequence models",
    .paper = "Shao et al. 2024, DeepSeekMath (GRPO); Schulman et al. 2017, Proximal policy optimization; see its presets",
    .target = "expected_loss",
    .target_of = target_of,
    .unbiased = true,
    .biased_by = is_biased,
    .evaluations = "K",
    .parameters =
        {preset_parameter(), samples_parameter(4),
         P::choice("advantage", "leave_one_out", {"none", "leave_one_out", "group_mean", "group_std", "length_weighted"},
                   "the loss less a baseline"),
         P::real("epsilon", 1e-4, 0, 1e6, "added to the std of advantage=group_std").above(),
         P::choice("ratio", "sequence", {"none", "token", "prefix", "sequence", "geometric"},
                   "whose probabilities are compared with the behaviour policy's"),
         P::choice("bound", "none", {"none", "clip", "truncate", "mask"}, "treatment of large and small ratios"),
         P::real("low", 0.8, 0, 1e12, "smallest ratio of `bound`"), P::real("high", 1.2, 0, 1e12, "largest ratio of `bound`"),
         P::real("dual", 1e12, 1, 1e12, "largest ratio of bound=clip for worse samples than the baseline"),
         P::choice(
             "aggregation", "sum", {"sum", "sequences", "tokens", "longest"},
             "a sample's choices: their sum, or divided by their number, the group's mean number, or the largest possible"),
         P::choice("divergence", "none", {"none", "k1", "k2", "k3", "exact"}, "of the policy from the reference policy"),
         P::choice("where", "reward", {"reward", "loss", "weighted"},
                   "the divergence: added to the loss of samples, differentiated, or differentiated with its ratio"),
         P::real("beta", 0, 0, 1e6, "weight of the divergence"), credit_parameter()},
    .presets = presets,
    .needs = {need::log_density},
    .promises = {promise::mean(expected, "samples=3"), promise::mean(expected, "samples=3,advantage=group_std,epsilon=0.2"),
                 promise::mean(expected, "preset=dr_grpo,samples=2,aggregation=sum"),
                 promise::same_moments("group_normalised[samples=3]", "preset=grpo,samples=3,aggregation=sum"),
                 promise::same_moments("rloo[samples=3]", "advantage=leave_one_out,aggregation=sum,samples=3"),
                 promise::unshifted("advantage=group_mean"), promise::unshifted("advantage=length_weighted"),
                 promise::noiseless(Promise::Loss::constant, "advantage=group_std")},
    .why_unsupported = why_not,
};
HARDGRAD_ESTIMATOR(PolicyGradient, entry)

}  // namespace hardgrad::estimators::policy_gradient
