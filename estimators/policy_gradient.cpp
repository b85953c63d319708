// policy_gradient: the score function as sequence models are fine-tuned with it: samples of an older policy, weighted by ratios.
//
//   g = 1/K sum_k c_k sum_t ( A_k W(w_kt) + beta dD_kt ) grad log p(z_kt) + 1/K sum_k w_k grad f_k,      z_k ~ q
//
// in losses f = - reward. q is the behaviour policy: the site's, or another network's (train.reuse, measure --older), or p;
// l_kt = log p(z_kt) - log q(z_kt).
//
//   advantage A_k    none             f_k
//                    leave_one_out    f_k - mean of the others         Kool et al. 2019; Ahmadian et al. 2024, Back to basics
//                    group_mean       f_k - mean f                     Liu et al. 2025, Understanding R1-Zero-like training
//                    group_std        (f_k - mean f) / (std f + eps)   Shao et al. 2024, DeepSeekMath (GRPO)
//                    length_weighted  f_k - sum n_j f_j / sum n_j      Hao et al. 2025, OPO; n_j choices
//                    relative         (f_k - mean f) / |mean f|, or 0  Tajwar et al. 2026, MaxRL
//                    target           K (p_k - q_k), p of the group's samples, normalised; q the same of the policy that drew,
//                                     times exp(-(f_k - mean f) / std f), K degrees of freedom (Kaddour 2026, TPO)
//                    greedy           f_k - f(most probable choices)   Rennie et al. 2017, self-critical; Li et al. 2024, ReMax
//                    batch_std        (f_kt - mean) / (std + eps) over all choices of the batch     Hu et al. 2025, REINFORCE++
//                    critic           sum_(s>=t) lambda^(s-t) (c_ks + V_s+1 - V_s), costs c between questions: Schulman et al.
//                                     2016, GAE; V is learned from the network's state (learned_baseline.hpp)
//   ratio w_kt       none 1, token exp(l_t), prefix exp(l_1 + .. + l_t) (Precup, Sutton & Singh 2000), sequence
//                    exp(sum l), geometric exp(sum l / n_k) (Zheng et al. 2025, GSPO)
//   bound W          none, clip (Schulman et al. 2017, PPO, eq. 7; two limits: Yu et al. 2025, DAPO; `dual`: Ye et al. 2020),
//                    clip_growing: limits to the power of sqrt(t) (Zhang et al. 2026, CTPO), clip_words (Zhao et al. 2025,
//                    GMPO), truncate (Ionides 2008; MiniMax 2025, M1: CISPO; Yao et al. 2025:
//                    TIS), taper: 1 if A > 0, else truncate (Le Roux et al. 2025, TOPR), mask (Liu et al. 2025, When speed
//                    kills stability: MIS), shift: 0 where p - q exceeds high if A > 0, or -low else (Qi et al. 2026, DPPO),
//                    sigmoid: w times the slope of 4 / tau sigmoid(tau (w - 1)) (Gao et al. 2025, SAPO),
//                    gamma: w^k exp(lambda (1 - w)) (Shen et al. 2026, VESPO); tau, k and lambda by the sign of A
//   top_entropy      W = 0 but for this share of the batch's words, those of the highest entropy of p (Wang et al. 2025, Beyond
//                    the 80/20 rule)
//   aggregation c_k  sum 1, sequences 1 / n_k (GRPO), tokens K / sum_j n_j (DAPO), batch_tokens: the same over all examples,
//                    longest 1 / T (Dr. GRPO); denominator=kept: n_k leaves masked words out
//   divergence D     of p from the reference policy r, with m = log p(z_t) - log r(z_t) (Schulman 2020, Approximating KL
//                    divergence): k1 = m, k2 = m^2 / 2, k3 = exp(-m) - 1 + m, exact = KL(p_t || r_t)
//     where=reward   beta sum_t D_t is added to f_k; for `exact` its own gradient, too; f_k lacks D_1, which no choice
//                    changes
//     where=loss     its derivative at the drawn word is added: dD = 1, m, 1 - exp(-m); the gradient of `exact`
//     where=weighted the same, of exp(l_t) D_t (DeepSeek 2025, V3.2, eq. 7): dD = exp(l_t) (D + dD),
//                    which is exp(l_t) m for k3
//
// The names of published methods are values of `preset`, which sets the others. Their trainers minimise the mean of - g over
// prompts; here a preset is one update after the samples were drawn.
// Target: expected loss; with beta > 0 near_reference; with advantage=relative success_likelihood. Bias: none with advantage
// none, leave_one_out, greedy, or critic and lambda = 1; ratio=sequence, bound none, aggregation=sum, and k1 or exact in the
// reward. Cost: K rows, K + 1 if greedy.
// Departures: std has K - 1 degrees of freedom (batch_std: the number of choices less 1). The path term, which rewards do not
// have, has the ratio of all choices before the cost. Ratios are exponentials of differences of logarithms; one that overflows
// is an error. `tokens` averages over the samples of one example.
#include "core/estimator/score_function/policy_terms.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/reduce.hpp"
#include "core/choice/handlers.hpp"
#include "core/estimator/promises.hpp"
#include "core/estimator/score_function/learned_baseline.hpp"
#include "core/estimator/score_function/score_function.hpp"

namespace hardgrad::estimators::policy_gradient {
namespace {

using namespace policy;
using From = Advantage::From;

enum class Where { reward, loss, weighted };
enum class Denominator { all, kept };
constexpr Named<Denominator> denominators[] = {{"all", Denominator::all}, {"kept", Denominator::kept}};
constexpr Named<Where> places[] = {{"reward", Where::reward}, {"loss", Where::loss}, {"weighted", Where::weighted}};

struct Config {
  int samples = 4;
  const Advantage* advantage = row_of(advantages, "leave_one_out");
  double epsilon = 1e-4, lambda = 1;
  int hidden = 64;
  const Ratio* ratio = row_of(ratios, "sequence");
  const Bound* bound = row_of(bounds, "none");
  Limits limit{.low = 0.8, .high = 1.2, .dual = 1e12, .shape = {2, 3}, .rate = {1, 1.05}};
  double top_entropy = 1;
  const Aggregation* aggregation = row_of(aggregations, "sum");
  Denominator denominator = Denominator::all;
  const Divergence* divergence = row_of(divergences, "none");
  Where where = Where::reward;
  double beta = 0;
  Credit credit = Credit::whole;

  void declare(Fields& field) {
    samples_field(field, samples);
    field(advantage, "advantage", advantages, "the loss less a baseline");
    field(epsilon, "epsilon", 0, 1e6, "added to the std of advantage=group_std and batch_std").above();
    field(lambda, "lambda", 0, 1, "advantage=critic: 1 takes whole returns, 0 the value of the next state");
    field(hidden, "hidden", 1, 65536, "advantage=critic: tanh units of the critic");
    field(ratio, "ratio", ratios, "whose probabilities are compared with the behaviour policy's");
    field(bound, "bound", bounds, "treatment of large and small ratios");
    field(limit.low, "low", 0, 1e12, "smallest ratio of `bound`; bound=shift: largest fall of a probability");
    field(limit.high, "high", 0, 1e12, "largest ratio of `bound`; bound=shift: largest rise of a probability");
    field(limit.dual, "dual", 1, 1e12,
          "largest ratio of bound=clip and clip_growing for worse samples than the baseline, of bound=shift for all");
    const auto by_sign = [&](BySign& of, const char* positive, const char* negative, const char* what) {
      field(of.positive, positive, 0, 1e6, what).above().absent_means(of.positive);
      field(of.negative, negative, 0, 1e6, "the same for the other samples").above().absent_means(of.negative);
    };
    by_sign(limit.shape, "shape_positive", "shape_negative", "k of bound=gamma for better samples than the baseline");
    by_sign(limit.rate, "rate_positive", "rate_negative",
            "lambda of bound=gamma, tau of bound=sigmoid, for better samples than the baseline");
    field(top_entropy, "top_entropy", 0, 1, "share of the batch's words, those of highest entropy, whose score counts")
        .above()
        .absent_means(1);
    field(aggregation, "aggregation", aggregations,
          "a sample's choices: their sum, or divided by their number, the group's or batch's mean number, or the largest "
          "possible");
    field(denominator, "denominator", denominators,
          "choices that aggregation counts: all, or those that bound=mask or shift, and top_entropy, keep")
        .absent_means(Denominator::all);
    field(divergence, "divergence", divergences, "of the policy from the reference policy");
    field(where, "where", places,
          "the divergence: added to the loss of samples, differentiated, or differentiated with its ratio");
    field(beta, "beta", 0, 1e6, "weight of the divergence");
    credit_field(field, credit);
  }
  bool near_reference() const { return divergence->name != "none" && beta > 0; }
  bool in_reward() const { return where == Where::reward; }
  bool of_some_words() const { return top_entropy < 1; }
};

template <class T>
class PolicyGradient final : public Estimator<T> {
 public:
  PolicyGradient(const Config& config, const Structure& structure, Key init)
      : config_(config), longest_(std::max(structure.steps(), 1)) {
    if (!config.near_reference()) config_.divergence = row_of(divergences, "none");
    if (config.advantage->from != From::critic) return;
    config_.credit = Credit::reward_to_go;
    critic_ = {this->own_, structure, static_cast<std::size_t>(config.hidden), init};
  }

  Estimate<T> estimate(const Problem<T>& given) const override;

 private:
  /// The parts of a run that the estimate reads.
  struct Run {
    Sampled<T> sampled;
    bool off_policy;            // q is not p
    DrawnFrom policy;           // p
    std::vector<double> n;      // [R] choices of each sample, at least 1
    PerQuestion l, m, log_p;    // of each choice: log p - log q; log p - log r; log p
    std::vector<double> share;  // [R] c, once signals are known
  };
  Run run(const Problem<T>& given) const;
  PerQuestion log_probabilities(Run& run, DrawnFrom of) const;
  PerQuestion log_ratios(Run& run, DrawnFrom other) const;
  PerQuestion counted(Run& run) const;
  Var<T> path(Run& run) const;
  Var<T> divergence_of_questions(Run& run) const;
  double loss(Run& run) const;

  Config config_;
  double longest_;
  Critic<T> critic_;
};

template <class T>
Estimate<T> PolicyGradient<T>::estimate(const Problem<T>& given) const {
  auto run = this->run(given);
  auto& sampled = run.sampled;
  const auto& advantage = *config_.advantage;
  const auto& divergence = *config_.divergence;
  const auto credit = config_.credit;
  const auto log_w = log_weights(*config_.ratio, run.l, run.n);
  if (divergence.of_words() && config_.in_reward())
    for (int t = 0; t < sampled.steps(); ++t) {
      const auto& rows = sampled.episode().steps()[t].choice.rows;
      const auto d = sampled.episode().tape().constant(rows->size(), 1);
      for (std::size_t r = 0; r < rows->size(); ++r)
        sampled.episode().tape().mutable_value(d)(r, 0) = static_cast<T>(divergence.at(run.m[t][r]));
      sampled.add(rows, d, config_.beta);
    }
  Estimate<T> estimate;
  std::vector<std::vector<double>> known;  // advantages of all questions at once
  if (advantage.from == From::batch) known = normalised_over_batch(sampled, credit, config_.epsilon);
  if (advantage.from == From::critic) {
    auto judged = critic_.judge(sampled, config_.lambda);
    known = std::move(judged.advantage);
    estimate.own_loss = judged.loss;
  }
  std::optional<Sampled<T>> greedy;
  if (advantage.from == From::greedy_run) {
    GreedyHandler<T> most_probable;
    greedy.emplace(given, 1, most_probable);
  }
  const auto counted = this->counted(run);
  const auto whole = [&](const PerQuestion& of) {
    std::vector<double> sum(run.n.size());
    for (const auto& at : of)
      for (std::size_t r = 0; r < sum.size(); ++r) sum[r] += at[r];
    return sum;
  };
  const auto log_p = whole(run.log_p), l = whole(run.l);
  std::vector<double> log_q(log_p), place(log_p.size()), kept(log_p.size());
  for (std::size_t r = 0; r < log_q.size(); ++r) log_q[r] -= l[r];
  std::vector<std::vector<double>> signal(sampled.steps());
  std::vector<double> returns;
  for (int t = 0; t < sampled.steps(); ++t) {
    const int columns = sampled.columns(t, credit);
    const auto& [question, choice] = sampled.episode().steps()[t];
    auto& f = signal[t];
    if (!known.empty()) {
      f = known[t];
    } else {
      if (t == 0 || credit == Credit::reward_to_go) returns = sampled.returns(t, credit);  // else the same at every step
      f = returns;
      if (greedy)
        subtract_baseline(f, greedy->returns(t, credit), columns);
      else if (advantage.compare)
        advantage.compare(f, {config_.samples, columns, run.n, log_p, log_q, config_.epsilon});
    }
    for (std::size_t r = 0; r < run.n.size(); ++r) {
      const bool chooses = question.chooses(choice.rows->parent[r]);
      place[r] += chooses;
      bool keeps = false;
      for (std::size_t i = r * columns; i < (r + 1) * columns; ++i) {
        const Word word{std::exp(log_w[t][r]), -f[i], run.l[t][r], run.log_p[t][r], run.l, r, run.n[r], place[r]};
        const double w = counted[t][r] == 0 ? 0 : counted[t][r] * config_.bound->of(word, config_.limit);
        keeps = keeps || (counted[t][r] != 0 && (w != 0 || !config_.bound->masks));
        f[i] = weighed<T>(f[i], w, log_w[t][r]);
        if (divergence.of_words() && !config_.in_reward()) {
          const double m = run.m[t][r];
          f[i] += config_.beta *
                  (config_.where == Where::loss ? divergence.slope(m) : std::exp(run.l[t][r]) * divergence.weighted_slope(m));
        }
      }
      kept[r] += chooses && keeps;
    }
  }
  run.share =
      sample_shares(*config_.aggregation, config_.denominator == Denominator::kept ? kept : run.n, config_.samples, longest_);
  const auto score = sampled.score(
      Credit::whole,
      [&](int t, std::vector<double>& f) {
        f = std::move(signal[t]);
        for (std::size_t i = 0; i < f.size(); ++i) f[i] *= run.share[i * run.share.size() / f.size()];
      },
      run.policy);
  auto surrogate = add(score, path(run));
  if (config_.near_reference() && !divergence.of_words() && !config_.in_reward())
    surrogate = add(surrogate, divergence_of_questions(run));
  estimate.loss = loss(run);
  estimate.surrogate = surrogate;
  estimate.episode = sampled.release();
  if (greedy) estimate.others.push_back(greedy->release());
  return estimate;
}

template <class T>
auto PolicyGradient<T>::run(const Problem<T>& given) const -> Run {
  auto problem = given;
  const auto policy = given.terms.drawn_from;
  if (policy == DrawnFrom::prior) problem.terms.drawn_from = DrawnFrom::behaviour;
  const bool of_words = config_.divergence->of_words();
  problem.terms.reads_reference = config_.near_reference();
  if (of_words || (config_.near_reference() && !config_.in_reward())) problem.terms.to_reference = 0;  // this file adds it
  const bool off_policy = policy == DrawnFrom::prior && given.model.structure_with_policies().behaviour;
  Run run{{problem, config_.samples, off_policy ? Costs::weighted : Costs::averaged}, off_policy, policy, {}, {}, {}, {}, {}};
  run.n.assign(run.sampled.rows(), 0);
  for (const auto& [question, choice] : run.sampled.episode().steps())
    for (std::size_t r = 0; r < run.n.size(); ++r) run.n[r] += question.chooses(choice.rows->parent[r]);
  for (auto& n : run.n) n = std::max(n, 1.0);
  run.log_p = log_probabilities(run, policy);
  run.l = log_ratios(run, off_policy ? DrawnFrom::behaviour : policy);
  run.m = log_ratios(run, of_words ? DrawnFrom::reference : policy);
  return run;
}

template <class T>
PerQuestion PolicyGradient<T>::log_probabilities(Run& run, DrawnFrom of) const {
  PerQuestion found;
  for (int t = 0; t < run.sampled.steps(); ++t) {
    const T* p = run.sampled.episode().log_probability(t, of).value().data;
    found.emplace_back(p, p + run.n.size());
  }
  return found;
}

template <class T>
PerQuestion PolicyGradient<T>::log_ratios(Run& run, DrawnFrom other) const {
  if (other == run.policy) return PerQuestion(run.sampled.steps(), std::vector<double>(run.n.size()));
  auto ratios = run.log_p;
  const auto others = log_probabilities(run, other);
  for (std::size_t t = 0; t < ratios.size(); ++t)
    for (std::size_t r = 0; r < run.n.size(); ++r) ratios[t][r] -= others[t][r];
  return ratios;
}

/// 1 for the words whose entropy is at or above its quantile over the batch, 0 for the others.
template <class T>
PerQuestion PolicyGradient<T>::counted(Run& run) const {
  PerQuestion counts(run.sampled.steps(), std::vector<double>(run.n.size(), 1));
  if (!config_.of_some_words()) return counts;
  std::vector<double> entropies;
  for (std::size_t t = 0; t < counts.size(); ++t) {
    const auto& [question, choice] = run.sampled.episode().steps()[t];
    const auto entropy = question.of(run.policy)->entropy().value();
    for (std::size_t r = 0; r < run.n.size(); ++r) {
      const int asking = choice.rows->parent[r];
      counts[t][r] = static_cast<double>(entropy.data[asking]);
      if (question.chooses(asking)) entropies.push_back(counts[t][r]);
    }
  }
  return of_high_entropy(std::move(counts), entropies, config_.top_entropy);
}

// Costs are weighted by the ratio of the choices before them.
template <class T>
Var<T> PolicyGradient<T>::path(Run& run) const {
  if (!run.off_policy) return run.sampled.path();
  auto& episode = run.sampled.episode();
  auto total = episode.tape().constant(1, 1);
  for (const auto& cost : episode.costs()) {
    const auto p = episode.path_log_probability(cost.rows, run.policy).value(),
               q = episode.path_log_probability(cost.rows, DrawnFrom::behaviour).value();
    std::vector<double> w(p.rows);
    for (std::size_t r = 0; r < w.size(); ++r) {
      const double log_w = static_cast<double>(p.data[r]) - static_cast<double>(q.data[r]), ratio = std::exp(log_w);
      const double f = cost.loss.value().data[r], weighted = weighed<T>(f, ratio, log_w);
      if (weighted != 0 || std::isfinite(static_cast<T>(ratio))) w[r] = ratio / static_cast<double>(w.size());
    }
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
      weight[choice.rows->parent[r]] += config_.beta * run.share[r] / static_cast<double>(run.n.size());
    total = add(total, weighted_sum(question.of(run.policy)->divergence(*question.of(DrawnFrom::reference)),
                                    std::span<const double>(weight)));
  }
  return total;
}

// The target's value, of the drawn samples.
template <class T>
double PolicyGradient<T>::loss(Run& run) const {
  const auto f = run.sampled.losses();
  const auto& divergence = *config_.divergence;
  double sum = 0;
  for (std::size_t r = 0; r < f.size(); ++r) {
    double l = 0, d = 0, beyond = 0;
    for (const auto& at : run.l) l += at[r];
    for (std::size_t t = 0; t < run.m.size() && divergence.of_words(); ++t) {
      const double m = run.m[t][r];
      if (m < divergence.least)
        beyond += weighted_k3(l, m);
      else
        d += divergence.at(m);
    }
    sum += weighed<double>(f[r] + config_.beta * d, std::exp(l), l) + config_.beta * beyond;
  }
  return sum / static_cast<double>(f.size());
}

std::string target_of(const Config& config) {
  if (config.advantage->target) return config.advantage->target;
  return config.near_reference() ? "near_reference[beta=" + to_string(config.beta) + "]" : "expected_loss";
}

bool is_biased(const Config& config) {
  return config.advantage->biased || (config.advantage->from == From::critic && config.lambda < 1) || config.ratio->biased ||
         config.bound->biased || config.of_some_words() || config.aggregation->biased ||
         (config.near_reference() && (config.divergence->biased || !config.in_reward()));
}

std::string why_not(const Settings& settings, const Structure& structure) {
  const auto config = read<Config>(settings);
  const auto& advantage = *config.advantage;
  if (advantage.from == From::critic)
    if (auto reason = Critic<double>::why_not(config.lambda, structure); !reason.empty()) return reason;
  if (config.samples == 1 && advantage.from == From::group)
    return fmt::format("advantage={} compares an example's samples: take samples of at least 2, or advantage=none",
                       advantage.name);
  if (advantage.target && config.near_reference())
    return fmt::format("advantage={} estimates the likelihood of success alone: take beta=0", advantage.name);
  if (config.bound->name == "clip_words" && config.ratio->name != "geometric")
    return "bound=clip_words bounds the words of ratio=geometric: take ratio=geometric";
  if (!config.bound->of_ratio && std::max(config.limit.low, config.limit.high) >= 1)
    return "bound=shift limits changes of a probability: take low and high below 1, such as low=0.2,high=0.2";
  if (config.bound->of_ratio && config.limit.low > config.limit.high)
    return "low is above high: take low=" + to_string(config.limit.high) + " or a larger high";
  return target_of(config) == "expected_loss" || read<SharedConfig>(settings).target == SharedConfig::Aim::expected_loss
             ? ""
             : "divergence and advantage=relative have targets of their own: take target=expected_loss, or neither";
}

// E 1/K sum_k c_k A_k W(w_k) (one_hot(z_k) - p): a single choice, for which all ratios but `none` are equal
SmallChoice::Vector expected(const Config& config, const SmallChoice& at) {
  const int K = config.samples;
  const auto p = at.p(), q = at.q();
  const SmallChoice::Vector l = std::log(p / q);
  return mean_over_tuples(at, K, [&](const std::vector<std::size_t>& z) {
    double mean = 0, squares = 0, all_p = 0, all_q = 0;
    for (const auto k : z) mean += at.loss(at.one_hot(k)) / K;
    for (const auto k : z) squares += std::pow(at.loss(at.one_hot(k)) - mean, 2);
    const double deviation = squares > 0 ? std::sqrt(squares / K) : 1;
    const auto tilted = [&](std::size_t k) { return q[k] * std::exp((mean - at.loss(at.one_hot(k))) / deviation); };
    for (const auto k : z) all_p += p[k], all_q += tilted(k);
    std::vector<double> a, w, n;
    for (const auto k : z) {
      a.push_back(config.advantage->divisor
                      ? (at.loss(at.one_hot(k)) - mean) / config.advantage->divisor(squares, K, config.epsilon)
                      : K * (p[k] / all_p - tilted(k) / all_q));
      const PerQuestion of_word{{l[k]}};
      const Word word{config.ratio->name == "none" ? 1 : std::exp(l[k]), -a.back(), l[k], std::log(p[k]), of_word, 0, 1, 1};
      w.push_back(config.bound->of(word, config.limit));
      n.push_back(config.denominator == Denominator::kept && config.bound->masks && w.back() == 0 ? 0 : 1);
    }
    const auto share = sample_shares(*config.aggregation, n, K, 1);
    SmallChoice::Vector g(0.0, p.size());
    for (int k = 0; k < K; ++k) g += share[k] * a[k] * w[k] / K * (at.one_hot(z[k]) - p);
    return g;
  });
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
    .couples_by =
        [](const Config& config) {
          return config.advantage->from == From::batch || config.aggregation->over_batch || config.of_some_words();
        },
    .off_policy = true,
    .evaluations = "K; K + 1 if advantage=greedy",
    .parameters = declared<Config>(),
    .presets = policy_presets,
    .needs = {need::log_density},
    .promises = {promise::mean(expected, "samples=3,advantage=leave_one_out"),
                 promise::mean(expected, "samples=3,advantage=group_std,epsilon=0.2"),
                 promise::mean(expected, "samples=3,advantage=target"),
                 promise::mean(expected, "advantage=leave_one_out,bound=mask,aggregation=tokens,denominator=kept"),
                 promise::mean(expected, "preset=dr_grpo,advantage=group_mean,samples=2,aggregation=sum"),
                 promise::same_moments("group_normalised[samples=3]",
                                       "preset=grpo,advantage=group_std,samples=3,aggregation=sum"),
                 promise::same_moments("rloo[samples=3]", "advantage=leave_one_out,aggregation=sum,samples=3"),
                 promise::same_moments("self_critic[samples=2]", "preset=remax,advantage=greedy,samples=2,aggregation=sum"),
                 promise::unbiased("advantage=greedy,samples=1"), promise::unbiased("advantage=critic,samples=1"),
                 promise::unshifted("advantage=greedy"), promise::unshifted("advantage=batch_std"),
                 promise::noiseless(Promise::Loss::constant, "advantage=batch_std"),
                 promise::noiseless_once_learned("advantage=critic"), promise::unshifted("advantage=group_mean"),
                 promise::unshifted("advantage=target"), promise::unshifted("advantage=length_weighted"),
                 promise::noiseless(Promise::Loss::constant, "advantage=group_std")},
    .why_unsupported = why_not,
};
HARDGRAD_ESTIMATOR(PolicyGradient, entry)

}  // namespace hardgrad::estimators::policy_gradient
