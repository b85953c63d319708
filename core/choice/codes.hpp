// Codes: options that are points of a space. A choice takes one near its own point (Site::codes).
#pragma once

#include "core/choice/choice.hpp"

namespace hardgrad {

/// The codes of an answer [R' D, d]: those that the handler has set, or those of its options in the table [S, d], or, if it is
/// relaxed, their mixture.
template <class T>
Var<T> codes_of(const Choice<T>& choice, Var<T> table);

/// The codes [R, d], with the gradient copied to the points [R, d]: point + detach(code - point).
template <class T>
Var<T> copied_gradient(Var<T> point, Var<T> code);
/// The codes [R, d] as rotated and scaled points [R, d], detach(|code| / |point| A) point, in which A is the rotation of their
/// plane from the point's direction to the code's (Fifty et al. 2024, sec. 4.2). A row whose point or code is 0, or whose
/// directions are opposite, has no such rotation; its gradient is copied.
template <class T>
Var<T> rotated_gradient(Var<T> point, Var<T> code);

}  // namespace hardgrad
