// All that an estimator from outside the tree needs. Include it in one source of the plugin.
#pragma once

#include "core/abi.hpp"
#include "core/autodiff/cross_entropy.hpp"
#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/rearrange.hpp"
#include "core/autodiff/reduce.hpp"
#include "core/autodiff/softmax.hpp"
#include "core/choice/handlers.hpp"
#include "core/estimator/coupling/coupled_estimator.hpp"
#include "core/estimator/enumeration/objectives.hpp"
#include "core/estimator/enumeration/outcome_objectives.hpp"
#include "core/estimator/promises.hpp"
#include "core/estimator/score_function/moving_average.hpp"
#include "core/estimator/score_function/score_function.hpp"
#include "core/models/parts/dropout.hpp"
#include "core/nn/layers.hpp"

namespace hardgrad {
/// Tells the program that loads the plugin which headers it was built against.
#ifdef HARDGRAD_SEALED_PLUGIN  // by hardgrad_add_plugin(); without its seal it is damaged
[[gnu::used]] static constexpr char plugin_abi[] = "hardgrad-sealed-abi:" HARDGRAD_ABI;
#else
[[gnu::used]] static constexpr char plugin_abi[] = "hardgrad-abi:" HARDGRAD_ABI;
#endif
}  // namespace hardgrad
