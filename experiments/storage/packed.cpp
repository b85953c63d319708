#include "experiments/storage/packed.hpp"

#include <zlib.h>
#include <nlohmann/json.hpp>

#include <bit>
#include <cstring>

#include "core/support/error.hpp"

namespace hardgrad::storage {
namespace {

using Json = nlohmann::json;
static_assert(std::endian::native == std::endian::little);

// RFC 8746, section 2.1.
template <class V>
constexpr std::uint8_t tag_of() {
  if constexpr (std::is_same_v<V, double>) return 86;
  if constexpr (std::is_same_v<V, float>) return 85;
  if constexpr (std::is_same_v<V, std::int64_t>) return 79;
  if constexpr (std::is_same_v<V, std::int32_t>) return 78;
  if constexpr (std::is_same_v<V, std::uint8_t>) return 64;
}

template <class V>
Json json_of(const V& value) {
  return value;
}
template <class V>
requires std::is_arithmetic_v<V> Json json_of(const std::vector<V>& values) {
  std::vector<std::uint8_t> bytes(values.size() * sizeof(V));
  if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return Json::binary(std::move(bytes), tag_of<V>());
}
template <class... V>
Json json_of(const std::variant<V...>& value) {
  return std::visit([](const auto& v) { return json_of(v); }, value);
}

void require(bool holds) {
  if (!holds) throw InputError("its content is not a packed dataset");
}

const std::string& string_of(const Json& json) {
  require(json.is_string());
  return json.get_ref<const std::string&>();
}
std::vector<std::string> strings_of(const Json& json) {
  require(json.is_array());
  std::vector<std::string> result;
  for (const auto& word : json) result.push_back(string_of(word));
  return result;
}
template <class V>
std::vector<V> numbers_of(const Json::binary_t& bytes) {
  require(bytes.size() % sizeof(V) == 0);
  std::vector<V> values(bytes.size() / sizeof(V));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

// Of `Values` or `Attribute`, whatever type the bytes have.
template <class Variant>
Variant list_of(const Json& json) {
  if (json.is_array()) return strings_of(json);
  require(json.is_binary() && json.get_binary().has_subtype());
  const auto& bytes = json.get_binary();
  switch (bytes.subtype()) {
    case tag_of<double>(): return numbers_of<double>(bytes);
    case tag_of<std::int64_t>(): return numbers_of<std::int64_t>(bytes);
    case tag_of<std::uint8_t>(): return numbers_of<std::uint8_t>(bytes);
    default: break;
  }
  if constexpr (std::is_same_v<Variant, Values>) {
    if (bytes.subtype() == tag_of<float>()) return numbers_of<float>(bytes);
    if (bytes.subtype() == tag_of<std::int32_t>()) return numbers_of<std::int32_t>(bytes);
  }
  throw InputError("its content has numbers of an unknown type");
}
Attribute attribute_of(const Json& json) {
  if (json.is_string()) return string_of(json);
  if (json.is_number_float()) return json.get<double>();
  if (json.is_number_integer()) return json.get<std::int64_t>();
  return list_of<Attribute>(json);
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

std::string packed(const Dataset& data) {
  data.validate();
  auto axes = Json::array(), variables = Json::array();
  auto attributes = Json::object();
  for (const auto& axis : data.axes) axes.push_back(Json::array({axis.name, json_of(axis.labels)}));
  for (const auto& v : data.variables) {
    auto entry = Json::array({v.name, v.axes, json_of(v.values)});
    if (const auto family = text(v.attributes, "family"); !family.empty()) {
      entry.push_back(family);
      entry.push_back(text(v.attributes, "key"));
    }
    variables.push_back(std::move(entry));
  }
  for (const auto& [name, value] : data.attributes) attributes[name] = json_of(value);
  const auto cbor =
      Json::to_cbor({{"axes", std::move(axes)}, {"variables", std::move(variables)}, {"attributes", std::move(attributes)}});
  if (cbor.size() > most_bytes)
    throw UsageError("a record of a cell would have more than 256 MB: log, evaluate or measure less often");
  return deflated(cbor);
}

void require_items(std::string_view bytes) { check_items(inflated(bytes)); }

Dataset unpacked(std::string_view bytes) {
  const auto cbor = inflated(bytes);
  check_items(cbor);
  const auto json = Json::from_cbor(cbor, true, false, Json::cbor_tag_handler_t::store);
  require(json.is_object() && json.contains("axes") && json.contains("variables") && json.contains("attributes") &&
          json["axes"].is_array() && json["variables"].is_array() && json["attributes"].is_object());
  Dataset data;
  for (const auto& axis : json["axes"]) {
    require(axis.is_array() && axis.size() == 2);
    data.axes.push_back({string_of(axis[0]), list_of<Values>(axis[1])});
  }
  for (const auto& entry : json["variables"]) {
    require(entry.is_array() && (entry.size() == 3 || entry.size() == 5));
    Variable variable{string_of(entry[0]), strings_of(entry[1]), list_of<Values>(entry[2])};
    if (entry.size() == 5) variable.attributes = {{"family", string_of(entry[3])}, {"key", string_of(entry[4])}};
    data.variables.push_back(std::move(variable));
  }
  for (const auto& [name, value] : json["attributes"].items()) data.attributes.emplace_back(name, attribute_of(value));
  try {
    data.validate();
  } catch (const Bug& error) {
    throw InputError(error.what());
  }
  return data;
}

}  // namespace hardgrad::storage
