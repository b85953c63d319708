// Every categorical draw checks that its probabilities sum to 1. The draw uses only their ratios, so a wrong common factor
// would go unnoticed.
#pragma once

namespace hardgrad {

/// Bug if `total`, the sum of a draw's probabilities, differs from 1 by more than float rounding. NaN passes: the network, not
/// the draw, is at fault then, and its non-finite gradient is reported.
void check_total(double total);

}  // namespace hardgrad
