// The laws of subsets (subsets.hpp), each in its file.
#pragma once

#include "core/choice/subsets.hpp"

namespace hardgrad {

template <class T>
std::shared_ptr<const Subsets<T>> conditional_poisson(Var<T> logits, std::vector<int> options, SubsetSize picks, int columns);
/// UsageError for more than kernels::PlackettLuce::most_picks.
template <class T>
std::shared_ptr<const Subsets<T>> plackett_luce(Var<T> logits, std::vector<int> options, SubsetSize picks, int columns);

extern template std::shared_ptr<const Subsets<float>> conditional_poisson(Var<float>, std::vector<int>, SubsetSize, int);
extern template std::shared_ptr<const Subsets<double>> conditional_poisson(Var<double>, std::vector<int>, SubsetSize, int);
extern template std::shared_ptr<const Subsets<float>> plackett_luce(Var<float>, std::vector<int>, SubsetSize, int);
extern template std::shared_ptr<const Subsets<double>> plackett_luce(Var<double>, std::vector<int>, SubsetSize, int);

}  // namespace hardgrad
