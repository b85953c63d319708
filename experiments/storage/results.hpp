// What cells and merged results share: names of fields, how points become columns and back.
#pragma once

#include <vector>

#include "experiments/storage/cell.hpp"
#include "experiments/storage/dataset.hpp"

namespace hardgrad::storage {

/// A number of a Measurement that becomes a variable of the same name.
struct MeasurementField {
  const char* name;
  double measurement::Measurement::*value;
  const char* units;
  const char* long_name;
};
const std::vector<MeasurementField>& measurement_fields();

/// The columns of results: every number of the records over axes run, step, evaluation_step,
/// measurement_step, parameter_group, target, bound. `with_runs` false (one record): the same without the
/// axis run. Axes nobody has a label for are left out, with all that stands over them.
Dataset columns(const std::vector<CellRecord>& records, bool with_runs);
/// The record behind columns without runs, the inverse of the above; labels and hashes are not its business.
training::TrainResult from_columns(const Dataset& data);

}  // namespace hardgrad::storage
