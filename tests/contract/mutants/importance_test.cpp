// Mutants of estimators with weighted samples.
#include <doctest/doctest.h>

#include <cmath>
#include <numeric>

#include "core/estimator/importance/importance.hpp"
#include "tests/contract/mutants/mutant.hpp"

namespace hardgrad::testing::mutants {
namespace {

template <class T>
class WsRam final : public Estimator<T> {
 public:
  WsRam(const Settings& settings, const Structure&, Key) : fault_(settings), samples_(settings.integer("samples")) {}

  Estimate<T> estimate(const Problem<T>& problem) const override {
    ImportanceSamples<T> drawn(problem, samples_);
    return drawn.estimate([&](int b, Slopes& slope) {
      const auto v = self_normalised(drawn.log_weights(b)), u = self_normalised(drawn.log_ratios(b));
      for (int k = 0; k < samples_; ++k) {
        slope.loss[k] = fault_("sign of the loss") ? -v[k] : v[k];
        slope.log_p[k] = fault_("sign of the prior") ? u[k] + v[k] : u[k] - v[k];
        slope.log_q[k] = (fault_("weight of the posterior's control") ? 2.0 : 1.0) / samples_ - v[k];
      }
      return -log_mean_exp(drawn.log_weights(b));
    });
  }

 private:
  Fault fault_;
  int samples_;
};

template <class T>
class Tvo final : public Estimator<T> {
 public:
  Tvo(const Settings& settings, const Structure&, Key) : fault_(settings), samples_(settings.integer("samples")) {
    const int terms = settings.integer("partitions");
    for (int j = 1; j < terms; ++j) b_.push_back(std::pow(settings.real("beta1"), double(terms - j) / (terms - 1)));
    b_.push_back(1);
  }

  Estimate<T> estimate(const Problem<T>& problem) const override {
    ImportanceSamples<T> drawn(problem, samples_);
    const double unbiased = samples_ / (samples_ + (fault_("degrees of freedom") ? 1.0 : -1.0));
    return drawn.estimate([&](int example, Slopes& slope) {
      const auto l = drawn.log_weights(example);
      double value = 0;
      for (std::size_t j = 0; j + 1 < b_.size(); ++j) {
        const double width = b_[j + 1] - b_[j];
        std::vector<double> heated(l.begin(), l.end());
        for (double& log_w : heated) log_w *= b_[j];
        const auto pi = self_normalised(heated);
        const double mean = std::inner_product(pi.begin(), pi.end(), l.begin(), 0.0);
        value -= (fault_("sign of the value") ? -1 : 1) * width * mean;
        for (int k = 0; k < samples_; ++k) {
          const double covariance = unbiased * (l[k] - mean);
          const double of_p = fault_("sign of the covariance in p") ? -b_[j] : b_[j];
          const double of_q = fault_("power of q") ? 1 + b_[j] : 1 - b_[j];
          slope.add_log_joint(k, -width * pi[k] * (1 + of_p * covariance));
          slope.log_q[k] -= width * pi[k] * (of_q * covariance - 1);
        }
      }
      return value;
    });
  }

 private:
  Fault fault_;
  int samples_;
  std::vector<double> b_ = {0};  // partition
};

}  // namespace

TEST_CASE("mutants of estimators with weighted samples are rejected") {
  check_mutants<WsRam>("wsram", {"sign of the prior", "weight of the posterior's control", "sign of the loss"});
  check_mutants<Tvo>("tvo", {"degrees of freedom", "sign of the covariance in p", "power of q", "sign of the value"});
  check_accepted("wsram_mutant");
  check_accepted("tvo_mutant");
}

}  // namespace hardgrad::testing::mutants
