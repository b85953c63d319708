// Mutants of estimators by the score function.
#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/reduce.hpp"
#include "core/choice/handlers.hpp"
#include "core/estimator/promises.hpp"
#include "core/estimator/score_function/score_function.hpp"
#include "core/estimator/slopes.hpp"
#include "core/random/randomness.hpp"
#include "tests/contract/mutants/mutant.hpp"

namespace hardgrad::testing::mutants {
namespace {

/// The score with a signal, and the path term. A derived class turns returns f [B K, columns] into the signal.
template <class T>
class Centred : public Estimator<T> {
 public:
  Estimate<T> estimate(const Problem<T>& problem) const override { return of(Sampled<T>(problem, samples_)); }

 protected:
  explicit Centred(const Settings& settings)
      : fault_(settings), samples_(settings.integer("samples")), credit_(read<SamplesAndCredit<>>(settings).credit) {}
  virtual void centre(std::vector<double>& f, std::size_t columns) const = 0;
  Estimate<T> of(Sampled<T> sampled) const {
    const auto score = sampled.score(
        credit_, [&](int t, std::vector<double>& f) { centre(f, static_cast<std::size_t>(sampled.columns(t, credit_))); });
    auto surrogate = add(score, sampled.path());
    return {.surrogate = surrogate, .episode = sampled.release(), .loss = sampled.mean_loss()};
  }
  Fault fault_;
  int samples_;
  Credit credit_;
};

template <class T>
class PathOnly final : public Estimator<T> {
 public:
  PathOnly(const Settings& settings, const Structure&, Key)
      : fault_(settings), samples_(settings.integer("samples")), threshold_(settings.flag("hard_threshold")) {}
  Estimate<T> estimate(const Problem<T>& problem) const override {
    if (fault_("the score, too")) return with_constant_baseline(Sampled<T>(problem, samples_), 0, Credit::whole);
    GreedyHandler<T> most_probable;
    SampleHandler<T> drawn(samples_, problem.random, problem.batch.id);
    if (threshold_) return path_estimate(problem, 1, most_probable);
    return path_estimate(problem, samples_, drawn);
  }

 private:
  Fault fault_;
  int samples_;
  bool threshold_;
};

template <class T>
class GroupNormalised final : public Centred<T> {
 public:
  GroupNormalised(const Settings& settings, const Structure&, Key)
      : Centred<T>(settings), by_std_(settings.text("scale") == "std"), epsilon_(settings.real("epsilon")) {}

 private:
  void centre(std::vector<double>& f, std::size_t columns) const override {
    const std::size_t samples = this->samples_;
    const auto K = static_cast<double>(samples);
    leave_one_out(f, this->samples_, static_cast<int>(columns));
    for (auto& a : f) a *= this->fault_("inverse factor of the mean") ? K / (K - 1) : (K - 1) / K;
    if (!by_std_) return;
    for (std::size_t group = 0; group < f.size(); group += samples * columns)
      for (std::size_t d = group; d < group + columns; ++d) {
        double squares = 0;
        for (std::size_t k = 0; k < samples; ++k) squares += f[d + k * columns] * f[d + k * columns];
        const double deviation = std::sqrt(squares / (this->fault_("degrees of freedom") ? K : K - 1)) + epsilon_;
        for (std::size_t k = 0; k < samples; ++k) f[d + k * columns] /= deviation;
      }
  }
  bool by_std_;
  double epsilon_;
};

template <class T>
class JamesStein final : public Centred<T> {
 public:
  JamesStein(const Settings& settings, const Structure&, Key) : Centred<T>(settings) {}

 private:
  void centre(std::vector<double>& f, std::size_t columns) const override {
    const std::size_t K = this->samples_, examples = f.size() / (K * columns);
    const bool mixed = this->fault_("columns mixed");
    auto own = f;
    leave_one_out(own, this->samples_, static_cast<int>(columns));
    for (std::size_t d = 0; d < columns; ++d) {
      const auto at = [&](std::size_t b, std::size_t k) {
        return mixed ? (b * K + k) / columns + d : (b * K + k) * columns + d;
      };
      std::vector<double> mean(examples), noise(examples);
      for (std::size_t b = 0; b < examples; ++b) {
        for (std::size_t k = 0; k < K; ++k) mean[b] += f[at(b, k)] / static_cast<double>(K);
        for (std::size_t k = 0; k < K; ++k) noise[b] += std::pow(f[at(b, k)] - mean[b], 2) / static_cast<double>((K - 1) * K);
      }
      for (std::size_t b = 0; b < examples; ++b) {
        const auto [towards, lambda] = shrinkage(mean, noise, b);
        const double rest = this->fault_("own baseline in full") ? 1 : 1 - lambda;
        for (std::size_t k = 0; k < K; ++k) f[at(b, k)] = rest * own[at(b, k)] + lambda * (f[at(b, k)] - towards);
      }
    }
  }
  /// m and lambda of an example.
  std::pair<double, double> shrinkage(const std::vector<double>& mean, const std::vector<double>& noise,
                                      std::size_t example) const {
    std::vector<std::size_t> others;
    for (std::size_t c = 0; c < mean.size(); ++c)
      if (c != example || this->fault_("example in its own mean")) others.push_back(c);
    if (others.empty()) return {0, 0};
    const auto count = static_cast<double>(others.size());
    double m = 0, v = 0, s = 0;
    for (const auto c : others) m += mean[c] / count;
    for (const auto c : others) v += noise[c] / count, s += std::pow(mean[c] - m, 2) / count;
    return {m, v + s > 0 ? v / (v + s) : 0};
  }
};

template <class T>
class Antithetic final : public Centred<T> {
 public:
  Antithetic(const Settings& settings, const Structure&, Key)
      : Centred<T>(settings), leave_one_out_(settings.flag("leave_one_out") && this->samples_ > 2) {}
  bool exchangeable() const override { return false; }
  Estimate<T> estimate(const Problem<T>& problem) const override {
    MirroredRandomness mirrored(problem.random);
    SampleHandler<T> handler(this->samples_, mirrored, problem.batch.id);
    return this->of(Sampled<T>(problem, this->samples_, handler));
  }

 private:
  void centre(std::vector<double>& f, std::size_t) const override {
    if (!leave_one_out_) return;
    const std::size_t K = this->samples_;
    const double sign = this->fault_("sign of the baseline") ? 1 : -1;
    const auto all = f;
    for (std::size_t r = 0; r < f.size(); ++r) {
      double sum = 0;
      for (std::size_t other = r / K * K; other < r / K * K + K; ++other)
        if (other / 2 != r / 2) sum += all[r] + sign * all[other];
      f[r] = sum / static_cast<double>(K - 2);
    }
  }
  bool leave_one_out_;
};

template <class T>
class MaxRl final : public Estimator<T> {
 public:
  MaxRl(const Settings& settings, const Structure&, Key) : fault_(settings), samples_(settings.integer("samples")) {}

  Estimate<T> estimate(const Problem<T>& problem) const override {
    Sampled<T> sampled(problem, samples_, Costs::weighted);
    auto log_r = sampled.losses();
    for (auto& f : log_r) f = -f;
    std::vector<double> share, signal;
    const double examples = problem.batch.examples(), sign = fault_("sign of the reward") ? 1 : -1;
    double loss = 0;
    for (std::size_t b = 0; b < log_r.size(); b += samples_) {
      const auto of_example = std::span<const double>(log_r).subspan(b, samples_);
      loss -= log_mean_exp(of_example) / (fault_("loss summed over examples") ? 1 : examples);
      for (const double v : self_normalised(of_example)) {
        signal.push_back(1 + sign * samples_ * v);
        share.push_back(v / (fault_("path summed over examples") ? 1 : examples));
      }
    }
    auto surrogate = add(sampled.score(std::vector(sampled.steps(), signal)), sampled.path(share));
    return {.surrogate = surrogate, .episode = sampled.release(), .loss = loss};
  }

 private:
  Fault fault_;
  int samples_;
};

/// best_of by listing the sets, with faults.
template <class T>
class BestOf final : public Estimator<T> {
 public:
  BestOf(const Settings& settings, const Structure&, Key)
      : fault_(settings), samples_(settings.integer("samples")), best_(settings.integer("best")) {}

  Estimate<T> estimate(const Problem<T>& problem) const override {
    Sampled<T> sampled(problem, samples_, Costs::weighted);
    const auto f = sampled.losses();
    const double examples = problem.batch.examples();
    std::vector<double> signal(f.size()), share(f.size());
    double loss = 0;
    for (std::size_t first = 0; first < f.size(); first += samples_) {
      std::vector<double> sum_with(samples_), with(samples_), sum_without(samples_), without(samples_), wins(samples_);
      double sum = 0, sets = 0;
      for (unsigned set = 0; set < 1u << samples_; ++set) {
        if (std::popcount(set) != best_) continue;
        int winner = -1;
        for (int i = 0; i < samples_; ++i)
          if ((set >> i & 1) && (winner < 0 || f[first + i] < f[first + winner])) winner = i;
        sum += f[first + winner];
        ++sets;
        ++wins[winner];
        for (int i = 0; i < samples_; ++i) {
          const bool inside = set >> i & 1;
          (inside ? sum_with : sum_without)[i] += f[first + winner];
          ++(inside ? with : without)[i];
        }
      }
      loss += sum / sets / examples;
      for (int i = 0; i < samples_; ++i) {
        const double b = fault_("baseline with the sample") ? sum / sets : sum_without[i] / without[i];
        signal[first + i] = (fault_("factor k") ? 1 : best_) * (sum_with[i] / with[i] - b);
        share[first + i] = (fault_("path of all samples") ? 1.0 / samples_ : wins[i] / sets) / examples;
      }
    }
    auto surrogate = add(sampled.score(std::vector(sampled.steps(), signal)), sampled.path(share));
    return {.surrogate = surrogate, .episode = sampled.release(), .loss = loss};
  }

 private:
  Fault fault_;
  int samples_, best_;
};

/// Soft adaptive policy optimization (Gao et al. 2025): the objective sum_t A sig(tau (w_t - 1)) 4 / tau, whose gradient has
/// the ratio w_t of the policy and the behaviour policy as a factor.
template <class T>
class Sapo final : public Estimator<T> {
 public:
  Sapo(const Settings& settings, const Structure&, Key) : fault_(settings), samples_(settings.integer("samples")) {}

  /// 4 sig'(tau (w - 1)) w, tau = 1
  static double gate(double w, bool with_ratio) {
    const double s = 1 / (1 + std::exp(1 - w));
    return 4 * s * (1 - s) * (with_ratio ? w : 1);
  }

  Estimate<T> estimate(const Problem<T>& given) const override {
    auto problem = given;
    const auto policy = given.terms.drawn_from;
    const bool off_policy = policy == DrawnFrom::prior && given.model.structure_with_policies().behaviour;
    if (off_policy) problem.terms.drawn_from = DrawnFrom::behaviour;
    Sampled<T> sampled(problem, samples_, Costs::weighted);
    auto& episode = sampled.episode();
    const auto score = sampled.score(
        Credit::whole,
        [&](int t, std::vector<double>& f) {
          const int columns = sampled.columns(t, Credit::whole);
          leave_one_out(f, samples_, columns);
          const T* p = episode.log_probability(t, policy).value().data;
          const T* q = episode.log_probability(t, off_policy ? DrawnFrom::behaviour : policy).value().data;
          for (std::size_t i = 0; i < f.size(); ++i) {
            const std::size_t r = i / columns;
            f[i] *= gate(std::exp(static_cast<double>(p[r]) - static_cast<double>(q[r])), !fault_("no factor w"));
          }
        },
        policy);
    const double loss = sampled.mean_loss();
    return {.surrogate = score, .episode = sampled.release(), .loss = loss};
  }

  static SmallChoice::Vector mean(const Settings& settings, const SmallChoice& at) {
    const int K = settings.integer("samples");
    const auto p = at.p(), q = at.q();
    return mean_over_tuples(at, K, [&](const std::vector<std::size_t>& z) {
      double sum = 0;
      for (const auto k : z) sum += at.loss(at.one_hot(k));
      SmallChoice::Vector g(0.0, p.size());
      for (const auto k : z) {
        const double f = at.loss(at.one_hot(k));
        g += gate(p[k] / q[k], true) * (f - (sum - f) / (K - 1)) / K * (at.one_hot(k) - p);
      }
      return g;
    });
  }

 private:
  Fault fault_;
  int samples_;
};

const EstimatorEntry sapo = {
    .name = "sapo",
    .summary = "a soft gate in place of the clipped ratio",
    .paper = "Gao et al. 2025, Soft adaptive policy optimization",
    .unbiased = false,
    .off_policy = true,
    .evaluations = "K",
    .parameters = {declared<SamplesConfig<2, 2>>()[0], ParameterInfo::text("fault", "none", "the fault")},
    .needs = {need::log_density},
    .promises = {promise::mean(Sapo<double>::mean)},
};

}  // namespace

TEST_CASE("an importance weight that is missing off policy is rejected") {
  auto entry = sapo;
  entry = with_shared_settings(std::move(entry));
  entry.make_float = make_estimator_of<Sapo, float>;
  entry.make_double = make_estimator_of<Sapo, double>;
  check_rejected(std::move(entry), {"no factor w"});
  check_accepted("sapo");
}

TEST_CASE("mutants of estimators by the score function are rejected") {
  check_mutants<PathOnly>("path_only", {"the score, too"});
  check_mutants<GroupNormalised>("group_normalised", {"degrees of freedom", "inverse factor of the mean"});
  check_mutants<JamesStein>("james_stein", {"example in its own mean", "own baseline in full", "columns mixed"});
  check_mutants<Antithetic>("antithetic", {"sign of the baseline"});
  auto undeclared = Estimators::instance().at("james_stein");
  undeclared.name = "james_stein_undeclared";
  undeclared.couples_examples = false;
  check_rejected(std::move(undeclared));
  check_mutants<BestOf>("best_of", {"baseline with the sample", "factor k", "path of all samples"});
  check_mutants<MaxRl>("maxrl", {"sign of the reward", "path summed over examples", "loss summed over examples"});
}

}  // namespace hardgrad::testing::mutants
