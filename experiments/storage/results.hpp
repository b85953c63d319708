// What cells and merged results share: names of fields, how points become columns, provenance, seeds.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "experiments/storage/cell.hpp"
#include "experiments/storage/dataset.hpp"

namespace hardgrad {

/// A number of a Measurement that becomes a variable of the same name.
struct MeasurementField {
  const char* name;
  double Measurement::*value;
  const char* units;
  const char* long_name;
};
const std::vector<MeasurementField>& measurement_fields();

/// The columns of results: every number of the records over axes run, step, evaluation_step,
/// measurement_step, parameter_group, target, bound. `with_runs` false (one record): the same without the
/// axis run. Axes nobody has a label for are left out, with all that stands over them.
Dataset columns(const std::vector<CellRecord>& records, bool with_runs);
/// The record behind columns without runs, the inverse of the above; labels and hashes are not its business.
TrainResult from_columns(const Dataset& data);

/// Appends provenance as attributes, after created_at.
void add_provenance(Attributes& attributes, const std::map<std::string, std::string>& provenance);
/// "0x00000000000000ff"
std::string hex_seed(std::uint64_t seed);
/// Decimal or 0x...; InputError otherwise.
std::uint64_t parse_seed(const std::string& text);

}  // namespace hardgrad
