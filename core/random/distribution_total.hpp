// Every draw checks its distribution: a factor in it would go unnoticed, because shares are all that a draw looks at.
#pragma once

namespace hardgrad {

/// Bug if the sum of the probabilities of a draw is not 1 but for the rounding of floats. Where it is no number the network is
/// broken, not the draw: its gradient will say so.
void check_total(double total);

}  // namespace hardgrad
