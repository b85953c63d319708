// Sums of c e^n cos(a e + b) of a standard normal e, with closed-form means. They suffice for the moments of any estimate on a
// quadratic or a cosine, without quadrature.
#pragma once

#include <cmath>
#include <complex>
#include <vector>

namespace hardgrad::testing {

class Wave {
 public:
  Wave(double constant = 0) : terms_{{constant, 0, 0, 0}} {}
  static Wave e(int power = 1) { return Wave({{1, power, 0, 0}}); }
  static Wave cosine(double a, double b) { return Wave({{1, 0, a, b}}); }

  friend Wave operator+(Wave x, const Wave& y) {
    x.terms_.insert(x.terms_.end(), y.terms_.begin(), y.terms_.end());
    return x;
  }
  friend Wave operator*(const Wave& x, const Wave& y) {
    std::vector<Term> product;  // cos A cos B = (cos(A + B) + cos(A - B)) / 2
    for (const auto& s : x.terms_)
      for (const auto& t : y.terms_)
        for (int sign : {1, -1}) product.push_back({s.c * t.c / 2, s.n + t.n, s.a + sign * t.a, s.b + sign * t.b});
    return Wave(std::move(product));
  }
  friend Wave operator-(const Wave& x, const Wave& y) { return x + Wave(-1) * y; }
  /// As a function of -e.
  Wave mirrored() const {
    auto other = *this;
    for (auto& t : other.terms_) {
      t.c *= t.n % 2 ? -1 : 1;
      t.a = -t.a;
    }
    return other;
  }
  /// E[e^n exp(i a e)] = i^n He_n(a) exp(-a^2 / 2), He the Hermite polynomials of the density.
  double mean() const {
    double sum = 0;
    for (const auto& t : terms_) {
      double before = 0, hermite = 1;
      for (int k = 0; k < t.n; ++k) {
        const double next = t.a * hermite - k * before;
        before = hermite;
        hermite = next;
      }
      const auto turn = std::polar(1.0, t.b) * std::pow(std::complex<double>(0, 1), t.n);
      sum += t.c * turn.real() * hermite * std::exp(-t.a * t.a / 2);
    }
    return sum;
  }
  double variance() const { return (*this * *this).mean() - mean() * mean(); }

 private:
  struct Term {
    double c;
    int n;
    double a, b;
  };
  explicit Wave(std::vector<Term> terms) : terms_(std::move(terms)) {}
  std::vector<Term> terms_;
};

}  // namespace hardgrad::testing
