#include "experiments/storage/cell.hpp"

#include <zlib.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/support/error.hpp"
#include "experiments/storage/dataset.hpp"
#include "experiments/storage/process.hpp"
#include "experiments/support/text.hpp"

namespace hardgrad::storage {
namespace {

using Json = nlohmann::json;
using measurement::LogPoint, measurement::Measurement;
static_assert(std::endian::native == std::endian::little);

constexpr std::size_t largest_mean = 1000;  // parameters whose mean gradient is kept
constexpr std::uint8_t doubles = 86;        // the tag of a list of them: RFC 8746, section 2.1

void require(bool holds) {
  if (!holds) throw InputError("its content is not a packed cell");
}

// The members that are stored: f(name, member) for each, of a record to write or to read.
template <class R, class F>
requires std::same_as<std::remove_const_t<R>, CellRecord>
void members(R& r, const F& f) {
  f("axes", r.axes), f("identity", r.identity), f("plan_hash", r.plan_hash), f("cell_hash", r.cell_hash);
  f("task_settings", r.task_settings), f("model_settings", r.model_settings), f("run_settings", r.run_settings);
  f("estimator_settings", r.estimator_settings), f("target_settings", r.target_settings), f("data_hash", r.data_hash);
  f("precision", r.precision), f("status", r.status), f("reason", r.reason), f("log", r.log);
  f("checkpoint", r.checkpoint), f("checkpoint_hash", r.checkpoint_hash), f("costs", r.costs), f("provenance", r.provenance);
  f("result", r.result);
}
template <class R, class F>
requires std::same_as<std::remove_const_t<R>, training::TrainResult>
void members(R& r, const F& f) {
  f("log", r.log), f("evaluations", r.evaluations), f("measurements", r.measurements), f("metrics", r.metrics);
  f("seconds", r.seconds), f("rows", r.rows), f("attention_values", r.attention_values);
  f("target", r.target), f("ended_by", r.ended_by);
}
template <class R, class F>
requires std::same_as<std::remove_const_t<R>, training::MetricFacts>
void members(R& r, const F& f) { f("unit", r.unit), f("higher_is_better", r.higher_is_better), f("share", r.share); }
template <class R, class F>
requires std::same_as<std::remove_const_t<R>, training::EvaluationPoint>
void members(R& r, const F& f) { f("step", r.step), f("losses", r.losses), f("metrics", r.metrics); }
template <class R, class F>
requires std::same_as<std::remove_const_t<R>, training::MeasurementPoint>
void members(R& r, const F& f) {
  auto& m = r.measurement;
  f("step", r.step), f("estimator", m.estimator), f("target", m.target), f("known_unbiased", m.known_unbiased);
  f("status", m.status), f("reason", m.reason), f("why_unreliable", m.reliability_warning), f("intervals", m.intervals);
  f("mean", m.mean), f("variances", m.variances);
  f("numbers", m);  // of the table of quantities
}

template <class T>
concept Struct = requires(const T& value) {
  members(value, [](const char*, const auto&) {});
};

// The names of an enumeration's values.
const auto& names(CellStatus) { return measurement::statuses; }
const auto& names(Precision) { return precisions; }

Json json_of(const std::vector<double>& values) {
  std::vector<std::uint8_t> bytes(values.size() * sizeof(double));
  if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return Json::binary(std::move(bytes), doubles);
}
// By the names of the table.
Json json_of(const Measurement& m) {
  auto json = Json::object();
  for (const auto& row : measurement::quantities()) {
    if (row.measured) json[std::string(row.name)] = m.*row.measured;
    if (row.measured_by) json[std::string(row.name)] = Json(m.*row.measured_by);
  }
  return json;
}
// Numbers of all points in a row, as there may be many, and their names.
Json json_of(const std::vector<LogPoint>& points) {
  auto names = Json::array();
  for (const auto& row : measurement::quantities())
    if (row.logged) names.push_back(std::string(row.name));
  std::vector<double> numbers;
  for (const auto& point : points) {
    numbers.push_back(point.step);
    for (const auto& row : measurement::quantities())
      if (row.logged) numbers.push_back(point.*row.logged);
  }
  return Json::array({std::move(names), json_of(numbers)});
}
template <class V>
Json json_of(const std::map<std::string, V>& values);
template <Struct T>
Json json_of(const std::vector<T>& values);
template <class T>
Json json_of(const T& value) {
  if constexpr (Struct<T>) {
    auto json = Json::object();
    members(value, [&](const char* name, const auto& member) { json[name] = json_of(member); });
    return json;
  } else if constexpr (std::is_enum_v<T>) {
    return name_of(value, names(value));
  } else {
    return value;
  }
}
template <class V>
Json json_of(const std::map<std::string, V>& values) {
  auto json = Json::object();
  for (const auto& [name, value] : values) json[name] = json_of(value);
  return json;
}
template <Struct T>
Json json_of(const std::vector<T>& values) {
  auto json = Json::array();
  for (const auto& value : values) json.push_back(json_of(value));
  return json;
}

void read(const Json& json, std::string& value) {
  require(json.is_string());
  value = json.get_ref<const std::string&>();
}
template <class V>
requires std::is_arithmetic_v<V>
void read(const Json& json, V& value) {
  require(std::same_as<V, bool> ? json.is_boolean() : json.is_number());
  value = json.get<V>();
}
template <class E>
requires std::is_enum_v<E>
void read(const Json& json, E& value) {
  std::string name;
  read(json, name);
  const auto named = value_named(name, names(value));
  require(named.has_value());
  value = *named;
}
void read(const Json& json, std::array<double, 2>& ends) {
  require(json.is_array() && json.size() == 2);
  for (std::size_t i = 0; i < 2; ++i) read(json[i], ends[i]);
}
void read(const Json& json, std::vector<double>& values) {
  require(json.is_binary() && json.get_binary().has_subtype() && json.get_binary().subtype() == doubles);
  const auto& bytes = json.get_binary();
  require(bytes.size() % sizeof(double) == 0);
  values.resize(bytes.size() / sizeof(double));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
}
template <class V>
void read(const Json& json, std::map<std::string, V>& values);
void read(const Json& json, Measurement& m) {
  require(json.is_object());
  for (const auto& row : measurement::quantities()) {
    const auto it = json.find(std::string(row.name));
    if (it == json.end()) continue;
    if (row.measured) read(*it, m.*row.measured);
    if (row.measured_by) read(*it, m.*row.measured_by);
  }
}
void read(const Json& json, std::vector<LogPoint>& points) {
  require(json.is_array() && json.size() == 2 && json[0].is_array());
  std::vector<double LogPoint::*> fields;
  for (const auto& name : json[0]) {
    require(name.is_string());
    const auto* row = measurement::find_quantity(name.get_ref<const std::string&>());
    fields.push_back(row ? row->logged : nullptr);
  }
  std::vector<double> numbers;
  read(json[1], numbers);
  const auto width = fields.size() + 1;
  require(numbers.size() % width == 0);
  for (std::size_t at = 0; at < numbers.size(); at += width) {
    const auto nan = measurement::not_a_number;
    auto& point = points.emplace_back(LogPoint{static_cast<int>(numbers[at]), nan, nan, nan});
    for (std::size_t i = 0; i < fields.size(); ++i)
      if (fields[i]) point.*fields[i] = numbers[at + 1 + i];
  }
}
template <Struct T>
void read(const Json& json, T& value);
template <Struct T>
void read(const Json& json, std::vector<T>& values) {
  require(json.is_array());
  for (const auto& one : json) read(one, values.emplace_back());
}
template <class V>
void read(const Json& json, std::map<std::string, V>& values) {
  require(json.is_object());
  for (const auto& [name, value] : json.items()) read(value, values[name]);
}
template <Struct T>
void read(const Json& json, T& value) {
  require(json.is_object());
  members(value, [&](const char* name, auto& member) {
    const auto it = json.find(name);
    require(it != json.end());
    read(*it, member);
  });
}

// Sorted by step; of several points at one step, the last.
template <class Point>
void put_in_order(std::vector<Point>& points) {
  std::map<int, Point> by_step;
  for (auto& point : points) by_step.insert_or_assign(point.step, std::move(point));
  points.clear();
  for (auto& [step, point] : by_step) points.push_back(std::move(point));
}

std::string deflated(const std::vector<std::uint8_t>& bytes) {
  std::string out(compressBound(bytes.size()), '\0');
  uLongf size = out.size();
  if (compress2(reinterpret_cast<Bytef*>(out.data()), &size, bytes.data(), bytes.size(), Z_DEFAULT_COMPRESSION) != Z_OK)
    throw Bug("zlib cannot compress");
  out.resize(size);
  return out;
}

constexpr std::size_t most_bytes = std::size_t{1} << 28, most_items = std::size_t{1} << 20, deepest = 8;

// Checks the form of CBOR before it is parsed, as the parser recurses and makes a value of every item.
void check_items(const std::vector<std::uint8_t>& bytes) {
  std::vector<std::uint64_t> open{1};  // the items that are still to come, at each level
  std::size_t at = 0, items = 0;
  const auto left = [&] { return bytes.size() - at; };
  while (!open.empty()) {
    if (open.back() == 0) {
      open.pop_back();
      continue;
    }
    --open.back();
    require(left() > 0 && ++items <= most_items);
    const unsigned major = bytes[at] >> 5, info = bytes[at] & 31;
    ++at;
    std::uint64_t number = info;
    if (info >= 24) {
      require(info < 28 && left() >= std::size_t{1} << (info - 24));
      number = 0;
      for (auto n = std::size_t{1} << (info - 24); n > 0; --n) number = number << 8 | bytes[at++];
    }
    if (major >= 2 && major <= 5) require(number <= left());
    if (major == 2 || major == 3) at += number;
    if (major == 4 || major == 5) {
      require(open.size() < deepest);
      open.push_back(major == 5 ? 2 * number : number);
    }
    if (major == 6) {  // a tag, of a list of numbers
      require(left() > 0 && bytes[at] >> 5 == 2);
      ++open.back();
    }
  }
}

std::vector<std::uint8_t> inflated(std::string_view bytes) {
  z_stream stream{};
  if (inflateInit(&stream) != Z_OK) throw Bug("zlib cannot start");
  std::vector<std::uint8_t> out, block(1 << 16);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  int state = Z_OK;
  while (state == Z_OK) {
    stream.next_out = block.data();
    stream.avail_out = static_cast<uInt>(block.size());
    state = inflate(&stream, Z_NO_FLUSH);
    out.insert(out.end(), block.data(), stream.next_out);
    if (out.size() > most_bytes) break;
  }
  inflateEnd(&stream);
  require(state == Z_STREAM_END && stream.avail_in == 0);
  return out;
}

}  // namespace

std::string packed(CellRecord record) {
  put_in_order(record.result.log);
  put_in_order(record.result.evaluations);
  put_in_order(record.result.measurements);
  for (auto& point : record.result.measurements)
    if (point.measurement.mean.size() > largest_mean) point.measurement.mean.clear(), point.measurement.variances.clear();
  if (record.provenance.empty()) record.provenance = provenance();
  if (const auto it = record.axes.find("seed"); it != record.axes.end()) parse_seed(it->second);
  const auto cbor = Json::to_cbor(json_of(record));
  if (cbor.size() > most_bytes)
    throw UsageError("a record of a cell would have more than 256 MB: log, evaluate or measure less often");
  return deflated(cbor);
}

void require_items(std::string_view bytes) { check_items(inflated(bytes)); }

CellRecord unpacked(std::string_view bytes) {
  const auto cbor = inflated(bytes);
  check_items(cbor);
  CellRecord record;
  read(Json::from_cbor(cbor, true, false, Json::cbor_tag_handler_t::store), record);
  return record;
}

}  // namespace hardgrad::storage
