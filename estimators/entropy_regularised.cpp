// entropy_regularised: the hard-attention learning rule of Show, Attend and Tell.
//
//   g = 1/K sum_k [ lambda_r (f_k - b) grad log p(z_k) + grad f_k ] - lambda_e grad H[p(z)]
//
// Xu et al. 2015, sec. 4.1, with the moving-average baseline b (decay 0.9) and, if `semi`, every choice of an example
// replaced by its expectation with probability 1/2.
// Target: the regularised loss. Bias: none for it. Cost: K rows.
// Departures: the paper differentiates the entropy of each visited site only. Here, if a choice leads to later sites, it is
// also credited with their entropies: H is the entropy of the complete set of choices, and the estimate has a scalar target
// (lambda_r = 1). `entropy = sampled` replaces H by -log p of the sample. b is used before its update.
#include "core/estimator/promises.hpp"
#include "core/estimator/score_function/score_function.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/rearrange.hpp"
#include "core/autodiff/reduce.hpp"
#include "core/autodiff/softmax.hpp"
#include "core/choice/handlers.hpp"
#include "core/estimator/score_function/moving_average.hpp"

namespace hardgrad::estimators::entropy_regularised {
namespace {

enum class Entropy { analytic, sampled };
constexpr Named<Entropy> entropies[] = {{"analytic", Entropy::analytic}, {"sampled", Entropy::sampled}};

struct Config {
  int samples = 1;
  double lambda_r = 1, lambda_e = 0.01;
  Entropy entropy = Entropy::analytic;
  bool semi = false;
  double decay = 0.9;
  Credit credit = Credit::whole;

  void declare(Fields& field) {
    samples_field(field, samples);
    field(lambda_r, "lambda_r", 0, 1e6, "weight of the score term");
    field(lambda_e, "lambda_e", 0, 1e6, "weight of the entropy");
    field(entropy, "entropy", entropies, "how the entropy is computed");
    field(semi, "semi", "replace an example's choices by their expectation with probability 1/2");
    field(decay, "decay", 0, 1, "share of the old baseline kept at each step").below();
    credit_field(field, credit);
  }
};

/// Answers with samples, or with the expected weights for the examples marked soft.
template <class T>
class SemiHandler final : public Handler<T> {
 public:
  SemiHandler(int samples, Randomness& random, const std::vector<std::uint32_t>& id)
      : samples_(samples), random_(random), id_(id) {
    static constexpr double even[] = {0.5, 0.5};
    for (auto example : id) soft_.push_back(random.categorical(even, {.example = example, .step = Draw::whole}) == 1);
  }
  const std::vector<bool>& soft() const { return soft_; }

  Choice<T> choose(Tape<T>& tape, const Question<T>& question) override {
    auto expected = probabilities(question.categories().log_p());
    auto rows = fan_out(question, question.site.rows->is_root() ? samples_ : 1);
    const auto choices = question.parent_choices(*rows);
    auto hard = tape.constant(choices.size(), expected.cols());
    auto is_soft = tape.constant(choices.size(), 1);
    auto one_hot = tape.mutable_value(hard);
    auto option = draw_options(question, *rows, random_, id_, &soft_);
    for (std::size_t c = 0; c < choices.size(); ++c) {
      const bool soft = soft_[rows->example[c / question.site.columns]];
      if (!soft) one_hot(c, option[c]) = 1;
      tape.mutable_value(is_soft).data[c] = soft;
    }
    auto mixed = gather_rows(expected, std::span<const int>(choices));
    return {rows, Relaxed<T>{std::move(option), add(scale_rows(mixed, is_soft), hard)}};
  }

 private:
  int samples_;
  Randomness& random_;
  const std::vector<std::uint32_t>& id_;
  std::vector<bool> soft_;
};

template <class T>
class EntropyRegularised final : public AveragingEstimator<T> {
 public:
  EntropyRegularised(const Config& config, const Structure& structure, Key)
      : AveragingEstimator<T>(structure, config.decay), config_(config) {
    if (config.semi && config.entropy != Entropy::analytic)
      throw UsageError("entropy_regularised: semi needs entropy=analytic, because an expected choice has no sample");
  }

  Estimate<T> estimate(const Problem<T>& problem) const override {
    const auto& [samples, lambda_r, lambda_e, entropy, semi, decay, credit] = config_;
    SemiHandler<T> mixed(semi ? samples : 0, problem.random, semi ? problem.batch.id : none_);
    auto sampled = semi ? Sampled<T>(problem, samples, mixed) : Sampled<T>(problem, samples);
    auto& episode = sampled.episode();
    std::vector<std::vector<double>> signal;
    std::vector<double> observed;
    for (int t = 0; t < sampled.steps(); ++t) {
      signal.push_back(sampled.returns(t, credit));
      this->note(observed, t, sampled.means_where_chosen(t, signal.back()));
    }
    auto regulariser = problem.tape.constant(1, 1);
    for (int t = 0; t < sampled.steps() && lambda_e != 0; ++t) {
      const auto& step = episode.steps()[t];
      if (entropy == Entropy::analytic) {
        const auto& rows = step.question.site.rows;
        auto h = step.question.distribution->entropy();
        sampled.add(rows, h, -lambda_e);
        regulariser = add(regulariser, affine(sampled.mean(rows, h), static_cast<T>(-lambda_e)));
      } else {
        sampled.add(step.choice.rows, episode.log_probability(t), lambda_e,
                    signal[t].size() > sampled.rows() ? episode.log_probability_by_column(t) : Var<T>{});
      }
    }
    for (int t = 0; t < sampled.steps(); ++t) {
      const auto regularised = sampled.returns(t, credit);
      const auto& rows = *episode.steps()[t].choice.rows;
      auto& s = signal[t];
      const std::size_t columns = s.size() / rows.size();
      for (std::size_t i = 0; i < s.size(); ++i) {
        const bool soft = semi && mixed.soft()[rows.example[i / columns]];  // no choice was drawn, so there is no score
        s[i] = soft ? 0 : lambda_r * (s[i] - this->average(t, i % columns)) + (regularised[i] - s[i]);
      }
    }
    auto surrogate = add(add(sampled.score(signal), sampled.path()), regulariser);
    return {.surrogate = surrogate, .episode = sampled.release(), .loss = sampled.mean_loss(), .observed = observed};
  }

 private:
  Config config_;
  std::vector<std::uint32_t> none_;
};

std::string regularised_target(const Config& config) {
  return fmt::format("regularised[lambda_r={},lambda_e={},semi={}]", config.lambda_r, config.lambda_e, config.semi);
}

std::string mixes_numbers(const Config& config, const Structure& structure) {
  if (config.semi && structure.numbers()) return "semi=true needs options, but the model chooses numbers: take semi=false";
  const auto several = [](const SiteDeclaration& site) { return site.kind.several; };
  if (config.semi && std::any_of(structure.sites.begin(), structure.sites.end(), several))
    return "semi=true needs one option each, but the model chooses subsets: take semi=false";
  return "";
}

}  // namespace

const EstimatorEntry entry = {
    .name = "entropy_regularised",
    .summary = "score function with moving baseline and an entropy bonus: the rule of Show, Attend and Tell",
    .paper = "Xu et al. 2015, Show, Attend and Tell, sec. 4.1",
    .target = "regularised",
    .target_of = regularised_target,
    .unbiased = true,
    .evaluations = "K",
    .parameters = declared<Config>(),
    .needs = {need::log_density},
    .promises = {promise::variance(3.082551873, "lambda_r=0.7,lambda_e=0.1"), promise::noiseless_once_learned("lambda_e=0")},
    .why_unsupported = mixes_numbers,
};
HARDGRAD_ESTIMATOR(EntropyRegularised, entry)

}  // namespace hardgrad::estimators::entropy_regularised
