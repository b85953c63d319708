// Estimates that are a few array operations where the loss depends on one question's choices alone: code outside of core may
// compute them where the logits are (experiments/python/formula.cpp). How the logits, the noise and the losses make the
// estimate is written there, once; here an estimator says that one of the forms is its own.
#pragma once

#include "core/support/named.hpp"

namespace hardgrad {

/// With the settings of the same names: samples, temperature, forward_temperature, gap.
enum class ClosedForm {
  none,
  // The derivative of the weights in the logits is a sum of softmax Jacobians.
  straight_through,
  gumbel_softmax,
  st_gumbel,
  reinmax,
  gapped_st,
  soft,  ///< one row, no noise
  // The slope of antithetic pairs of bits.
  disarm,
  arm
};
inline constexpr Named<ClosedForm> closed_forms[] = {{"none", ClosedForm::none},
                                                     {"straight_through", ClosedForm::straight_through},
                                                     {"gumbel_softmax", ClosedForm::gumbel_softmax},
                                                     {"st_gumbel", ClosedForm::st_gumbel},
                                                     {"reinmax", ClosedForm::reinmax},
                                                     {"gapped_st", ClosedForm::gapped_st},
                                                     {"soft", ClosedForm::soft},
                                                     {"disarm", ClosedForm::disarm},
                                                     {"arm", ClosedForm::arm}};

}  // namespace hardgrad
