// The terms of policy_gradient: each of its settings advantage, ratio, bound, aggregation and divergence names a row of a table
// here. Equations and sources: the head of estimators/policy_gradient.cpp.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

#include "core/estimator/estimator.hpp"
#include "core/estimator/score_function/group.hpp"
#include "core/support/error.hpp"

namespace hardgrad::policy {

template <class Row, std::size_t N>
constexpr const Row* row_of(const Row (&rows)[N], std::string_view name) {
  for (const auto& row : rows)
    if (row.name == name) return &row;
  throw Bug("no such row");
}

/// Values [T][R] for each question t and sample r; 0 where the sample makes no choice.
using PerQuestion = std::vector<std::vector<double>>;

// The advantage: a return f, in losses, less a baseline.

struct SampleGroup {
  int samples, columns;
  const std::vector<double>& n;             // [B K] choices of each sample
  const std::vector<double>&log_p, &log_q;  // [B K] of whole samples, under the policy and under the one that drew them
  double epsilon;
};

struct Advantage {
  enum class From { own_return, group, greedy_run, batch, critic };
  std::string_view name;
  From from = From::group;  // of a group: it needs several samples
  bool biased = true;       // of a critic: only with lambda < 1
  /// From the group: turns the returns f [B K, columns] of a question into advantages.
  void (*compare)(std::vector<double>& f, const SampleGroup&) = nullptr;
  /// By which f - mean f is divided, from the group's sum of squares; for the formula of the mean.
  double (*divisor)(double squares, double samples, double epsilon) = nullptr;
  const char* target = nullptr;  // if it is not the expected loss
  const char* words = "";        // as a judged loss is described
};

constexpr Advantage advantages[] = {
    {.name = "none", .from = Advantage::From::own_return, .biased = false, .words = "the reward without a baseline"},
    {.name = "leave_one_out",
     .biased = false,
     .compare = [](std::vector<double>& f, const SampleGroup& group) { leave_one_out(f, group.samples, group.columns); },
     .divisor = [](double, double samples, double) { return (samples - 1) / samples; },
     .words = "the reward less the mean of the others"},
    {.name = "group_mean",
     .compare = [](std::vector<double>& f, const SampleGroup& group) { centre(f, group.samples, group.columns); },
     .divisor = [](double, double, double) { return 1.0; },
     .words = "the reward less the group's mean"},
    {.name = "group_std",
     .compare =
         [](std::vector<double>& f, const SampleGroup& group) {
           centre(f, group.samples, group.columns);
           scale_by_deviation(f, group.samples, group.columns, group.epsilon);
         },
     .divisor = [](double squares, double samples, double epsilon) { return std::sqrt(squares / (samples - 1)) + epsilon; },
     .words = "the reward less the group's mean, over the group's standard deviation"},
    {.name = "length_weighted",
     .compare = [](std::vector<double>& f,
                   const SampleGroup& group) { centre_by_length(f, group.samples, group.columns, group.n); },
     .words = "the reward less the group's mean weighted by lengths"},
    {.name = "relative",
     .compare =
         [](std::vector<double>& f, const SampleGroup& group) {
           const auto before = f;
           centre(f, group.samples, group.columns);
           divide_by_mean(f, before, group.samples, group.columns);
         },
     .target = "success_likelihood",
     .words = "the reward less the group's mean, over that mean"},
    {.name = "target",
     .compare =
         [](std::vector<double>& f, const SampleGroup& group) {
           centre(f, group.samples, group.columns);
           to_target(f, group.samples, group.columns, group.log_p, group.log_q);
         },
     .words = "the policy less the group's law tilted by its rewards, over their deviation"},
    {.name = "greedy",
     .from = Advantage::From::greedy_run,
     .biased = false,
     .words = "the reward less that of the most probable tokens"},
    {.name = "batch_std",
     .from = Advantage::From::batch,
     .words = "the reward less the mean over the batch's tokens, over their standard deviation"},
    {.name = "critic", .from = Advantage::From::critic, .biased = false, .words = "the reward less learned values"},
};

// The ratio: the logarithm of a choice's weight, from l = log p - log q of the choice, its sum up to the choice and over all
// choices of the sample, and their number n.

struct Ratio {
  std::string_view name;
  double (*log_w)(double l, double sum_to_here, double sum, double n);
  const char* words;
  bool biased = true;
};

constexpr Ratio ratios[] = {
    {.name = "none", .log_w = [](double, double, double, double) { return 0.0; }, .words = "no ratio"},
    {.name = "token", .log_w = [](double l, double, double, double) { return l; }, .words = "each token's ratio"},
    {.name = "prefix",
     .log_w = [](double, double sum_to_here, double, double) { return sum_to_here; },
     .words = "the ratio of the tokens up to each"},
    {.name = "sequence",
     .log_w = [](double, double, double sum, double) { return sum; },
     .words = "the ratio of the whole sequence",
     .biased = false},
    {.name = "geometric",
     .log_w = [](double, double, double sum, double n) { return sum / std::max(n, 1.0); },
     .words = "the geometric mean of the sequence's ratios"},
};

/// The logarithms of the weights of all choices.
inline PerQuestion log_weights(const Ratio& ratio, PerQuestion l, const std::vector<double>& n) {
  for (std::size_t r = 0; r < n.size(); ++r) {
    double sum = 0, sum_to_here = 0;
    for (const auto& at : l) sum += at[r];
    for (auto& at : l) {
      sum_to_here += at[r];
      at[r] = ratio.log_w(at[r], sum_to_here, sum, n[r]);
    }
  }
  return l;
}

/// factor x w, where w has this logarithm up to a bound; 0 times an overflow is 0. Error if it is no number T.
template <class T>
double weighed(double factor, double w, double log_w) {
  if (factor == 0) return 0;
  const double product = factor * w;
  if (std::abs(product) <= static_cast<double>(std::numeric_limits<T>::max())) return product;
  throw Error(1, fmt::format("the network gives a sample e^{:.0f} times the probability that its behaviour policy gave it, "
                             "which overflows: take a nearer behaviour policy (a smaller drift, a later checkpoint)",
                             log_w));
}

// The bound on the weight of a drawn word.

struct Word {
  double w;                // its weight by the ratio
  double advantage;        // A, in rewards
  double l, log_p;         // log p - log q; log p
  const PerQuestion& all;  // l of all words
  std::size_t r;           // its sample
  double n, place;         // words of its sample, and of those up to it
};

/// Numbers for A > 0 and for the others.
struct BySign {
  double positive, negative;
  double operator()(double advantage) const { return advantage > 0 ? positive : negative; }
};

struct Limits {
  double low, high, dual;
  BySign shape, rate;
  double of(double w) const { return w < low ? low : w > high ? high : w; }
};

/// Whether the objective min(w A, clip(w, low, high) A) is flat.
inline bool flat(double w, double advantage, const Limits& limit) { return advantage > 0 ? w > limit.high : w < limit.low; }

/// 0 where that objective is flat, and for A < 0 also where w > dual.
inline double clipped(const Word& word, const Limits& limit) {
  return flat(word.w, word.advantage, limit) || (word.advantage <= 0 && word.w > limit.dual) ? 0 : word.w;
}

struct Bound {
  std::string_view name;
  double (*of)(const Word&, const Limits&);
  const char* words;  // behind those of the ratio; {low}, {high}: the limits
  bool biased = true;
  bool of_ratio = true;  // low and high are limits of a ratio
  bool masks = false;    // a word of weight 0 is left out, not only flat
};

constexpr Bound bounds[] = {
    {.name = "none", .of = [](const Word& word, const Limits&) { return word.w; }, .words = "", .biased = false},
    {.name = "clip", .of = clipped, .words = ", clipped at {low:g} and {high:g}"},
    // the same with limits to the power of the square root of the word's place
    {.name = "clip_growing",
     .of =
         [](const Word& word, const Limits& limit) {
           auto grown = limit;
           for (double* of : {&grown.low, &grown.high, &grown.dual}) *of = std::pow(*of, std::sqrt(word.place));
           return clipped(word, grown);
         },
     .words = ", clipped at {low:g} and {high:g} to the power of the root of the token's place"},
    // the geometric mean of the words' ratios, each clipped; 0 for a word whose own is
    {.name = "clip_words",
     .of =
         [](const Word& word, const Limits& limit) {
           if (flat(std::exp(word.l), word.advantage, limit)) return 0.0;
           double sum = 0;
           for (const auto& at : word.all) {
             const double w = std::exp(at[word.r]);
             sum += flat(w, word.advantage, limit) ? std::log(limit.of(w)) : at[word.r];
           }
           return std::exp(sum / std::max(word.n, 1.0));
         },
     .words = ", each clipped at {low:g} and {high:g}"},
    // a constant factor of the score
    {.name = "truncate",
     .of = [](const Word& word, const Limits& limit) { return limit.of(word.w); },
     .words = ", truncated at {low:g} and {high:g}"},
    {.name = "taper",
     .of = [](const Word& word, const Limits& limit) { return word.advantage > 0 ? 1 : limit.of(word.w); },
     .words = ", truncated at {high:g} where the advantage is not positive, else none"},
    {.name = "mask",
     .of = [](const Word& word, const Limits& limit) { return limit.of(word.w) == word.w ? word.w : 0; },
     .words = ", left out below {low:g} and above {high:g}",
     .masks = true},
    // 0 where the word's probability has risen, for A > 0, or fallen by more than the limit
    {.name = "shift",
     .of =
         [](const Word& word, const Limits& limit) {
           const double rise = std::exp(word.log_p) - std::exp(word.log_p - word.l);
           const bool too_far = word.advantage > 0 ? rise > limit.high : rise < -limit.low;
           return too_far ? 0 : std::min(word.w, limit.dual);
         },
     .words = ", left out where the probability has moved by over {high:g}",
     .of_ratio = false,
     .masks = true},
    // the derivative of 4 / tau sigmoid(tau (w - 1)) in log w
    {.name = "sigmoid",
     .of =
         [](const Word& word, const Limits& limit) {
           const double e = std::exp(-std::abs(limit.rate(word.advantage) * (word.w - 1)));
           return e == 0 ? 0 : 4 * word.w * e / ((1 + e) * (1 + e));
         },
     .words = ", by SAPO's gate"},
    // w^k exp(lambda (1 - w))
    {.name = "gamma",
     .of =
         [](const Word& word, const Limits& limit) {
           const double decay = limit.rate(word.advantage) * (1 - word.w);
           return std::isfinite(decay) ? std::exp(limit.shape(word.advantage) * std::log(word.w) + decay) : 0;
         },
     .words = ", by VESPO's smooth function of it"},
};

/// 1 for the words whose entropy is at least its quantile over those `made`, so that they are this share of them; 0 for others.
inline PerQuestion of_high_entropy(PerQuestion entropy, const std::vector<double>& made, double share) {
  const double least = made.empty() ? 0 : quantile(made, 1 - share);
  for (auto& at : entropy)
    for (auto& h : at) h = h >= least;
  return entropy;
}

// The aggregation: the share of a sample with n choices, in a group of K samples with `all` choices.

struct Aggregation {
  std::string_view name;
  double (*share)(double n, double all, double K, double longest);
  const char* words;
  bool biased = true;
  bool over_batch = false;  // the group is that of all examples
};

constexpr Aggregation aggregations[] = {
    {.name = "sum",
     .share = [](double, double, double, double) { return 1.0; },
     .words = "summed over tokens",
     .biased = false},
    {.name = "sequences",
     .share = [](double n, double, double, double) { return 1 / n; },
     .words = "divided by each sequence's own length"},
    {.name = "tokens",
     .share = [](double, double all, double K, double) { return K / all; },
     .words = "divided by the group's number of tokens"},
    {.name = "batch_tokens",
     .share = [](double, double all, double K, double) { return K / all; },
     .words = "divided by the batch's number of tokens",
     .over_batch = true},
    {.name = "longest",
     .share = [](double, double, double, double longest) { return 1 / longest; },
     .words = "divided by the longest length"},
};

/// [B K] of samples with n [B K] choices, of at most `longest`.
inline std::vector<double> sample_shares(const Aggregation& aggregation, const std::vector<double>& n, std::size_t samples,
                                         double longest) {
  std::vector<double> share(n.size());
  const auto K = aggregation.over_batch ? n.size() : samples;
  for (std::size_t group = 0; group < n.size(); group += K) {
    double all = 0;
    for (std::size_t r = group; r < group + K; ++r) all += n[r];
    for (std::size_t r = group; r < group + K; ++r)
      share[r] = aggregation.share(std::max(n[r], 1.0), std::max(all, 1.0), static_cast<double>(K), longest);
  }
  return share;
}

// The divergence D of the policy p from the reference policy r at a drawn word, from m = log p - log r there.

struct Divergence {
  std::string_view name;
  double (*at)(double m) = nullptr;     // D; null: it is not of a word
  double (*slope)(double m) = nullptr;  // its derivative with respect to log p
  /// D plus its derivative: the derivative of p D over p.
  double (*weighted_slope)(double m) = nullptr;
  bool biased = true;  // added to the reward
  double least =
      -std::numeric_limits<double>::infinity();  // for a lower m, D is too large for a number, but exp(l) D need not be

  bool of_words() const { return at != nullptr; }
};

constexpr Divergence divergences[] = {
    {.name = "none", .biased = false},
    {.name = "k1",
     .at = [](double m) { return m; },
     .slope = [](double) { return 1.0; },
     .weighted_slope = [](double m) { return m + 1; },
     .biased = false},
    {.name = "k2",
     .at = [](double m) { return m * m / 2; },
     .slope = [](double m) { return m; },
     .weighted_slope = [](double m) { return m * m / 2 + m; }},
    {.name = "k3",
     .at = [](double m) { return std::expm1(-m) + m; },
     .slope = [](double m) { return -std::expm1(-m); },
     .weighted_slope = [](double m) { return m; },  // the exponentials, which may overflow, cancel
     .least = -700},
    {.name = "exact", .biased = false},  // KL(p || r)
};
/// exp(l) D of k3, for m below its least.
inline double weighted_k3(double l, double m) { return std::exp(l - m) + std::exp(l) * (m - 1); }

}  // namespace hardgrad::policy

namespace hardgrad {

// Published methods of fine-tuning sequence models, as settings of policy_gradient.

inline const std::vector<Preset> policy_presets = {
    {"bnpo", "advantage=group_std,ratio=token,bound=clip,aggregation=batch_tokens",
     "the loss bnpo of trl: GRPO's, averaged over the words of a batch (local to a device there)"},
    {"cispo", "advantage=group_std,ratio=token,bound=truncate,low=0,high=1.2,aggregation=tokens",
     "MiniMax 2025, MiniMax-M1, eq. 4-5 (no lower limit; its upper limit is not given)"},
    {"ctpo",
     "advantage=group_std,ratio=prefix,bound=clip_growing,low=0.97531,high=1.05127,dual=1.05127,aggregation=batch_tokens",
     "Zhang et al. 2026, Rethinking importance sampling in LLM policy optimization (2605.07331), with the limits of e^-0.025 "
     "and e^0.05 of their code"},
    {"dapo", "advantage=group_std,ratio=token,bound=clip,low=0.8,high=1.28,aggregation=tokens",
     "Yu et al. 2025, DAPO, eq. 8, with the limits of sec. 4.1 (without dynamic sampling)"},
    {"dppo", "advantage=group_std,ratio=token,bound=shift,low=0.2,high=0.2,dual=20,aggregation=tokens",
     "Qi et al. 2026, Rethinking the trust region in LLM reinforcement learning, binary total variation, with the limits of "
     "their code"},
    {"dr_grpo", "advantage=group_mean,ratio=token,bound=clip,aggregation=longest",
     "Liu et al. 2025, Understanding R1-Zero-like training, sec. 3.2"},
    {"gmpo", "advantage=group_std,ratio=geometric,bound=clip_words,low=0.67032,high=1.49182,aggregation=sequences",
     "Zhao et al. 2025, Geometric-mean policy optimization, with limits of e^-0.4 and e^0.4"},
    {"gpg", "advantage=group_mean,ratio=none,aggregation=tokens",
     "Chu et al. 2025, GPG (without its correction for groups of equal rewards)"},
    {"grpo", "advantage=group_std,ratio=token,bound=clip,aggregation=sequences,divergence=k3,where=loss",
     "Shao et al. 2024, DeepSeekMath, eq. 3-4 (sec. 4.1; beta = 0.04 there)"},
    {"gspo", "advantage=group_std,ratio=geometric,bound=clip,low=0.9997,high=1.0004,aggregation=sequences",
     "Zheng et al. 2025, Group sequence policy optimization, eq. 5-7, with the limits of sec. 5.1"},
    {"high_entropy", "advantage=group_std,ratio=token,bound=clip,low=0.8,high=1.28,top_entropy=0.2,aggregation=batch_tokens",
     "Wang et al. 2025, Beyond the 80/20 rule (2506.01939), as in trl: DAPO's loss of the fifth of words with the highest "
     "entropy"},
    {"luspo", "advantage=group_std,ratio=geometric,bound=clip,low=0.998,high=1.0025",
     "LUSPO 2026, Length-unbiased sequence policy optimization (2602.05261), sec. 5.1: GSPO's loss times the length"},
    {"maxrl", "advantage=relative,ratio=none", "Tajwar et al. 2026, Maximum likelihood reinforcement learning"},
    {"mis", "advantage=group_mean,ratio=sequence,bound=mask,low=0,high=2",
     "Liu et al. 2025, When speed kills stability (masked importance sampling)"},
    {"opo", "advantage=length_weighted,ratio=none", "Hao et al. 2025, On-policy RL with optimal reward baseline"},
    {"ppo", "advantage=critic,lambda=0.95,ratio=token,bound=clip,aggregation=tokens",
     "Schulman et al. 2017, Proximal policy optimization, eq. 7 and 11-12 (lambda is a setting there)"},
    {"reinforce_pp", "advantage=batch_std,ratio=token,bound=clip,aggregation=tokens,divergence=k1,reward_to_go=true",
     "Hu et al. 2025, REINFORCE++ (without baseline)"},
    {"remax", "advantage=greedy,ratio=none", "Li et al. 2024, ReMax; Rennie et al. 2017, self-critical training"},
    {"rloo", "advantage=leave_one_out,ratio=sequence,bound=clip,divergence=k1",
     "Ahmadian et al. 2024, Back to basics (on policy; trl clips the ratio)"},
    {"sapo", "advantage=group_std,ratio=token,bound=sigmoid,rate_positive=1,rate_negative=1.05,aggregation=sequences",
     "Gao et al. 2025, Soft adaptive policy optimization (2511.20347)"},
    {"tis", "advantage=group_mean,ratio=token,bound=truncate,low=0,high=2",
     "Yao et al. 2025, Your efficient RL framework secretly brings you off-policy RL training"},
    {"topr", "advantage=none,ratio=sequence,bound=taper,low=0,high=1",
     "Le Roux et al. 2025, Tapered off-policy REINFORCE (2503.14286), the canonical form"},
    {"tpo", "advantage=target,ratio=none", "Kaddour 2026, Target policy optimization (2604.06159), eq. 1-3, with eta = 1"},
    {"vespo",
     "advantage=group_std,ratio=sequence,bound=gamma,shape_positive=2,rate_positive=3,shape_negative=3,rate_negative=2",
     "Shen et al. 2026, VESPO (2602.10693), with the exponents of its authors' code; words are summed"},
};

}  // namespace hardgrad
