// Checks of files: everything that reading verifies, and the required content of each kind.
#include "experiments/storage/result_files.hpp"

#include <filesystem>
#include <set>

#include "core/support/error.hpp"
#include "experiments/storage/archive.hpp"
#include "experiments/storage/atomic_file.hpp"
#include "experiments/storage/cell.hpp"
#include "experiments/storage/partial_cell.hpp"
#include "experiments/storage/process.hpp"

namespace hardgrad::storage {
namespace {

using Problems = std::vector<std::string>;

void want(Problems& problems, const Archive& archive, const Dataset& data, const std::string& name) {
  if (!data.variable(name)) problems.push_back(archive.path + ": has no variable " + name);
}

void check_result(Problems& problems, const Archive& archive) {
  const auto& data = archive.group("");
  if (!data.axis("run")) problems.push_back(archive.path + ": has no axis run");
  for (const char* name : {"status", "reason", "configuration"}) want(problems, archive, data, name);
  const bool packed = !text(data.attributes, "packed").empty();  // keeps what tables and figures read
  for (const char* name : {"cell_hash", "total_seconds"})
    if (!packed) want(problems, archive, data, name);
  if (data.axis("step")) want(problems, archive, data, "train_loss");
  if (data.axis("measurement_step")) want(problems, archive, data, "measurement_status");
  if (archive.status != "complete")
    problems.push_back(archive.path +
                       ": is incomplete: " + std::to_string(static_cast<long long>(number(data.attributes, "cells_merged"))) +
                       " of " + std::to_string(static_cast<long long>(number(data.attributes, "cells_planned"))) +
                       " cells; run the sweep again and merge");
}

void check_gradient(Problems& problems, const Archive& archive) {
  const auto& parameters = archive.group("parameters");
  const auto& gradient = archive.group("gradient");
  archive.group("batch");
  for (const auto& p : parameters.variables) {
    auto* g = gradient.variable(p.name);
    if (!g)
      problems.push_back(archive.path + ": has no gradient of parameter " + p.name);
    else if (gradient.shape(*g) != parameters.shape(p))
      problems.push_back(archive.path + ": the gradient of " + p.name + " has another shape than the parameter");
  }
  want(problems, archive, archive.group(""), "row_example");
  want(problems, archive, archive.group(""), "loss");
}

void check_cells(Problems& problems, const std::string& path, const std::string& bytes) {
  const auto scan = scan_cells(bytes);
  for (const auto& place : scan.damage) problems.push_back(damage_words(place, path));
  for (const auto& place : scan.cells) {
    try {
      cell_in(std::string_view(bytes).substr(place.at, place.size), path);
    } catch (const InputError& error) {
      problems.push_back(error.what());
    }
  }
  const auto name = std::filesystem::path(path).filename().string();
  const bool at_work = life_of(name.substr(0, name.find('.'))) == Life::alive;
  if (scan.end < bytes.size() && !at_work)  // else the record is being written
    problems.push_back(path + ": truncated: its last record is torn at byte " + std::to_string(scan.end));
}

}  // namespace

std::vector<std::string> check_file(const std::string& path) {
  Problems problems;
  try {
    if (path.ends_with(cells_ending)) {
      check_cells(problems, path, read_file(path));
      return problems;
    }
    const auto archive = outline(path);
    if (archive.kind == "result")
      check_result(problems, archive);
    else if (archive.kind == "gradient")
      check_gradient(problems, archive);
    else if (archive.kind == "checkpoint")
      archive.group("parameters");
    else if (archive.kind == "unfinished")
      read_partial_cell(path);
    else
      problems.push_back(path + ": is of an unknown kind \"" + archive.kind + "\"");
  } catch (const InputError& error) {
    problems.push_back(error.what());
  }
  return problems;
}

}  // namespace hardgrad::storage
