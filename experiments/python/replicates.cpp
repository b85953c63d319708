#include "experiments/python/module.hpp"

#include <pybind11/stl.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/support/error.hpp"
#include "experiments/measurement/lengths.hpp"
#include "experiments/measurement/summary.hpp"

namespace hardgrad::python {
namespace {

namespace py = pybind11;
using measurement::Measurement;

/// Without a branch for each number, so that the loop fills registers.
bool finite(std::span<const double> numbers) {
  double off = 0;  // x - x is 0, or NaN if x is not finite
  std::size_t i = 0;
  double lanes[16] = {};
  for (; i + 16 <= numbers.size(); i += 16)
    for (std::size_t j = 0; j < 16; ++j) lanes[j] += numbers[i + j] - numbers[i + j];
  for (; i < numbers.size(); ++i) off += numbers[i] - numbers[i];
  for (double lane : lanes) off += lane;
  return off == 0;
}

/// Gradients [P] added one after another. Their number need not be known before: blocks of one replicate grow by doubling, so
/// at any time most of the blocks are full.
class DrawnReplicates {
 public:
  /// parts: ranges [first, last) of the parameters.
  DrawnReplicates(const Numbers<double>& reference, int most_blocks, std::vector<std::array<std::size_t, 2>> parts)
      : sums_({reference.data(), reference.data() + reference.size()}, measurement::MeasureSettings().directions, most_blocks,
              most_blocks, std::move(parts)) {}

  /// False, and nothing is added, if an entry is not finite.
  bool add(const Numbers<double>& gradient, double weight) {
    if (statistics_) throw UsageError("the replicates are finished: no gradient can be added");
    const std::span<const double> numbers(gradient.data(), static_cast<std::size_t>(gradient.size()));
    if (numbers.size() != sums_.reference().size()) throw UsageError("a gradient of another size");
    if (!finite(numbers)) return false;
    if (added_ == sums_.range(block_)[1]) sums_.complete(block_++);
    if (added_ == sums_.count()) {
      sums_.grow();
      block_ = sums_.next();
    }
    sums_.add(block_, numbers, weight);
    ++added_;
    return true;
  }
  int count() const { return added_; }
  void finish() {
    if (added_ < 2) throw UsageError("moments need two gradients or more");
    if (statistics_) return;
    sums_.end_early();
    statistics_.emplace(std::move(sums_));
  }
  const measurement::ReplicateStatistics& finished() const {
    if (!statistics_) throw UsageError("the replicates are not finished");
    return *statistics_;
  }
  /// Of a part of the parameters, finished.
  DrawnReplicates part(std::size_t index) const { return DrawnReplicates(finished().part(index), added_); }

 private:
  DrawnReplicates(measurement::ReplicateStatistics part, int added)
      : sums_({}, 0, 0), statistics_(std::move(part)), added_(added) {}
  measurement::ReplicateSums sums_;  // until finished
  std::optional<measurement::ReplicateStatistics> statistics_;
  int added_ = 0, block_ = 0;
};

/// The fields of a Measurement. `known`: whether the reference, or the mean of `long_run`, is the true gradient.
py::dict summary(const DrawnReplicates& drawn, const DrawnReplicates* long_run, bool known, bool single, double rows,
                 double level) {
  const auto precision = single ? Precision::float32 : Precision::float64;
  const auto& replicates = drawn.finished();
  Measurement m;
  m.rows = rows;
  m.replicates = replicates.count();
  m.effective_sample_size = replicates.effective_sample_size();
  m.tail_index = replicates.tail().index;
  measurement::take_variance(m, replicates, level);
  if (known && long_run) {
    measurement::take_long_run(m, long_run->finished());
    measurement::take_bias(m, replicates, level, &long_run->finished());
  } else if (known) {
    m.estimand_norm = measurement::length_of(replicates.reference());
    measurement::take_bias(m, replicates, level, nullptr);
    measurement::test_bias(m, replicates, rounding_of(precision));
  }
  m.reliability_warning = measurement::reliability_warning(m, replicates, false, true);
  measurement::derive(m);
  measurement::drop_ratios_of_rounding(m, epsilon_of(precision));
  py::dict numbers, intervals;
  for (const auto& row : measurement::quantities())
    if (row.measured && row.sampled != measurement::OfSamples::no) numbers[py::str(std::string(row.name))] = m.*row.measured;
  for (const auto& [name, bounds] : m.intervals) intervals[name.c_str()] = py::make_tuple(bounds[0], bounds[1]);
  return py::dict(py::arg("numbers") = numbers, py::arg("intervals") = intervals,
                  py::arg("unsupported") = m.reliability_warning);
}

/// The facts of all quantities of a measurement, by name.
py::dict quantities() {
  py::dict all;
  for (const auto& row : measurement::quantities()) {
    if (std::string_view(row.axis) != "measurement_step") continue;
    py::dict facts;
    measurement::each_fact(row, [&](const char* fact, const auto& value) { facts[fact] = value; });
    all[py::str(std::string(row.name))] = facts;
  }
  return all;
}

/// The facts of a precision.
py::dict precision(bool single) {
  py::dict facts;
  measurement::each_fact_of(single ? Precision::float32 : Precision::float64,
                            [&](const char* fact, const auto& value) { facts[fact] = value; });
  return facts;
}

}  // namespace

void declare_replicates(py::module_& module) {
  module.def("quantities", &quantities);
  module.def("precision", &precision);
  py::class_<DrawnReplicates>(module, "Replicates")
      .def(py::init<const Numbers<double>&, int, std::vector<std::array<std::size_t, 2>>>())
      .def("part", &DrawnReplicates::part)
      .def("add", &DrawnReplicates::add, py::arg("gradient"), py::arg("weight") = 1.0)
      .def("finish", &DrawnReplicates::finish)
      .def_property_readonly("count", &DrawnReplicates::count)
      .def("mean",
           [](const DrawnReplicates& drawn) {
             const auto mean = drawn.finished().mean();
             return array_of<double>(mean, {static_cast<py::ssize_t>(mean.size())});
           })
      .def("variances",
           [](const DrawnReplicates& drawn) {
             const auto variances = drawn.finished().variances();
             return array_of<double>(variances, {static_cast<py::ssize_t>(variances.size())});
           })
      .def("variance_interval",
           [](const DrawnReplicates& drawn, double level) {
             const auto bounds = drawn.finished().variance_interval(level);
             return py::make_tuple(bounds[0], bounds[1]);
           })
      .def("summary", &summary);
}

}  // namespace hardgrad::python
