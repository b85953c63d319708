// Archives: checksum, seal, and the way through HDF5.
#include "experiments/storage/archive.hpp"

#include <fmt/format.h>

#include <xxhash.h>
#include <zlib.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string_view>

#include "core/support/error.hpp"
#include "experiments/storage/atomic_file.hpp"
#include "experiments/storage/hdf5.hpp"
#include "experiments/support/utf8.hpp"

namespace hardgrad::storage {
namespace {

const std::string seal_mark = "\nHARDGRAD-SEAL ";
constexpr std::size_t longest_seal = 512;
const std::string once_sealed = "hardgrad_seal";  // attribute by which other readers know that a seal must be there

std::string hex(std::uint64_t value) { return fmt::format("{:016x}", value); }

// Streams anything into a hash; lengths go in too, so that no two contents run together.
class Digest {
 public:
  Digest() : state_(XXH3_createState(), XXH3_freeState) { XXH3_64bits_reset(state_.get()); }
  void add(const std::string& s) {
    add(static_cast<std::uint64_t>(s.size()));
    XXH3_64bits_update(state_.get(), s.data(), s.size());
  }
  template <class V>
  requires std::is_arithmetic_v<V>
  void add(V value) { XXH3_64bits_update(state_.get(), &value, sizeof value); }
  template <class V>
  void add(const std::vector<V>& values) {
    add(static_cast<std::uint64_t>(values.size()));
    if constexpr (std::is_arithmetic_v<V>)
      XXH3_64bits_update(state_.get(), values.data(), values.size() * sizeof(V));
    else
      for (const auto& v : values) add(v);
  }
  template <class... V>
  void add(const std::variant<V...>& value) {
    add(static_cast<std::uint64_t>(value.index()));
    std::visit([&](const auto& v) { add(v); }, value);
  }
  // Attributes in order of name: a file does not keep another.
  void add(Attributes attributes) {
    std::sort(attributes.begin(), attributes.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    add(static_cast<std::uint64_t>(attributes.size()));
    for (const auto& [name, value] : attributes) {
      add(name);
      add(value);
    }
  }
  std::uint64_t value() const { return XXH3_64bits_digest(state_.get()); }

 private:
  std::unique_ptr<XXH3_state_t, XXH_errorcode (*)(XXH3_state_t*)> state_;
};

// Whatever a plugin or a corpus put into a message.
void clean(std::string& s) { s = valid_utf8(s); }
template <class... V>
void clean(std::variant<V...>& value) {
  std::visit(
      [](auto& v) {
        using E = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<E, std::string>)
          clean(v);
        else if constexpr (std::is_same_v<E, std::vector<std::string>>)
          for (auto& s : v) clean(s);
      },
      value);
}
void clean(Attributes& attributes) {
  for (auto& [name, value] : attributes) clean(value);
  // An empty list is written as no attribute at all.
  std::erase_if(attributes, [](const auto& a) {
    return std::visit(
        [](const auto& v) {
          using V = std::decay_t<decltype(v)>;
          if constexpr (std::is_arithmetic_v<V> || std::is_same_v<V, std::string>)
            return false;
          else
            return v.empty();
        },
        a.second);
  });
}

std::uint64_t xxh3(std::string_view bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

// " crc32:xxxxxxxx xxh3:xxxxxxxxxxxxxxxx\n". The first is for readers without xxHash; the second covers it, and is checked
// here.
constexpr std::size_t crc_length = 7 + 8 + 6, hash_length = 16 + 1;

std::string sealed(std::string bytes, const std::string& note) {
  if (note.size() > 400 || note.find('\n') != std::string::npos) throw Bug("a seal's note is too long");
  bytes += seal_mark + note;
  const auto crc = crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
  bytes += " crc32:" + hex(crc).substr(8) + " xxh3:";
  bytes += hex(xxh3(bytes)) + "\n";
  return bytes;
}

// Where the HDF5 data end, and the note. Throws InputError if there is no seal or it does not fit the bytes.
std::size_t open_seal(std::string_view bytes, const std::string& path, std::string& note) {
  const auto mark = bytes.rfind(seal_mark);
  if (mark == std::string::npos || mark + longest_seal < bytes.size()) {
    if (bytes.empty()) throw InputError(path + ": is empty");
    if (!bytes.starts_with("\211HDF")) throw InputError(path + ": is not an HDF5 file of Hardgrad");
    throw InputError(path + ": truncated, or written by another program: Hardgrad's seal is missing at its end");
  }
  if (bytes.size() < mark + seal_mark.size() + crc_length + hash_length || bytes.back() != '\n')
    throw InputError(path + ": truncated: its seal is torn");
  const auto hashed = bytes.substr(0, bytes.size() - hash_length);
  if (bytes.substr(hashed.size()) != hex(xxh3(hashed)) + "\n")
    throw InputError(path + ": damaged: its bytes do not match the checksum in its seal");
  note = hashed.substr(mark + seal_mark.size(), hashed.size() - crc_length - mark - seal_mark.size());
  return mark;
}

}  // namespace

const Dataset& Archive::group(const std::string& name) const {
  for (const auto& g : groups)
    if (g.name == name) return g.data;
  throw InputError(path + ": has no group /" + name);
}

std::string checksum(const Archive& archive) {
  Digest digest;
  digest.add(archive.kind);
  for (const auto& [name, data] : archive.groups) {
    digest.add(name);
    digest.add(data.attributes);
    for (const auto& axis : data.axes) {
      digest.add(axis.name);
      digest.add(axis.labels);
      digest.add(axis.attributes);
    }
    for (const auto& variable : data.variables) {
      digest.add(variable.name);
      digest.add(variable.axes);
      digest.add(variable.values);
      digest.add(variable.attributes);
    }
  }
  return hex(digest.value());
}

void write_archive(const std::string& path, Archive archive, bool compress) {
  for (auto& [name, data] : archive.groups) {
    clean(data.attributes);
    for (auto& axis : data.axes) {
      clean(axis.labels);
      clean(axis.attributes);
    }
    for (auto& variable : data.variables) {
      clean(variable.values);
      clean(variable.attributes);
    }
  }
  std::string bytes;
  {
    hdf5::File file;
    {
      const auto root = file.open_group("");
      file.write_attributes(root, {{once_sealed, std::int64_t{1}}});
      file.write_attributes(root, {{"Conventions", "CF-1.8"}, {"schema_version", schema_version}, {"kind", archive.kind}});
      for (const auto& [name, data] : archive.groups) {
        if (name.empty())
          file.write(root, data, compress);
        else
          file.write(file.make_group(name), data, compress);
      }
      file.write_attributes(root, {{"checksum", checksum(archive)}, {"status", archive.status}});  // last of all
    }
    bytes = std::move(file).image();
  }
  write_file(path, sealed(std::move(bytes), archive.note));
}

Seal read_seal(const std::string& path) {
  const auto bytes = read_file(path);
  Seal seal;
  open_seal(bytes, path, seal.note);
  seal.hash = bytes.substr(bytes.size() - 17, 16);
  return seal;
}

Archive read_archive(const std::string& path, const std::string& kind) {
  Archive archive;
  archive.path = path;
  auto bytes = read_file(path);
  bytes.resize(open_seal(bytes, path, archive.note));
  hdf5::File file(bytes, path);
  bytes = {};
  auto root = file.read(file.open_group(""));
  const auto version = number(root.attributes, "schema_version");
  archive.kind = text(root.attributes, "kind");
  archive.status = text(root.attributes, "status");
  const auto promised = text(root.attributes, "checksum");
  if (!(version == version) || archive.kind.empty())
    throw InputError(path + ": is not a file of Hardgrad: it has no schema_version and kind");
  if (version != static_cast<double>(schema_version))
    throw InputError(path + ": has schema version " + std::to_string(static_cast<long long>(version)) +
                     ", this program reads " + std::to_string(schema_version) +
                     ": make it anew, or read it with the release that wrote it");
  if (!kind.empty() && archive.kind != kind)
    throw InputError(path + ": is a " + archive.kind + " file, not a " + kind + " file");
  std::erase_if(root.attributes, [](const auto& a) {
    return a.first == "Conventions" || a.first == "schema_version" || a.first == "kind" || a.first == "checksum" ||
           a.first == "status" || a.first == once_sealed;
  });
  archive.groups.push_back({"", std::move(root)});
  for (const auto& name : file.groups()) archive.groups.push_back({name, file.read(file.open_group(name))});
  if (archive.status.empty()) throw InputError(path + ": was never finished: it has no status");
  if (promised != checksum(archive)) throw InputError(path + ": damaged or changed: its content does not match its checksum");
  return archive;
}

}  // namespace hardgrad::storage
