// Archives: checksum, seal, conversion to and from HDF5.
#include "experiments/storage/archive.hpp"

#include <fmt/format.h>

#include <xxhash.h>
#include <zlib.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <string_view>
#include <utility>

#include "core/support/error.hpp"
#include "experiments/storage/atomic_file.hpp"
#include "experiments/storage/hdf5/file.hpp"

namespace hardgrad::storage {
namespace {

const std::string seal_mark = "\nHARDGRAD-SEAL ";
constexpr std::size_t longest_seal = 512;
const std::string once_sealed = "hardgrad_seal";  // tells other readers that the file must have a seal

std::string hex(std::uint64_t value) { return fmt::format("{:016x}", value); }

// Streams values into a hash. Lengths are hashed too, so that adjacent values cannot be confused.
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
  // Attributes in order of name, the only order that a file keeps.
  void add(Attributes attributes) {
    std::sort(attributes.begin(), attributes.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    add(static_cast<std::uint64_t>(attributes.size()));
    for (const auto& [name, value] : attributes) {
      add(name);
      add(value);
    }
  }
  /// The `count` values of a list that is long: each(f) calls f(part) for its parts, in order.
  template <class Each>
  void add_parts(std::size_t count, const Each& each) {
    bool first = true;
    each([&](const Values& part) {
      if (std::exchange(first, false)) {
        add(static_cast<std::uint64_t>(part.index()));
        add(static_cast<std::uint64_t>(count));
      }
      std::visit(
          [&](const auto& values) {
            using V = typename std::decay_t<decltype(values)>::value_type;
            if constexpr (std::is_arithmetic_v<V>)
              XXH3_64bits_update(state_.get(), values.data(), values.size() * sizeof(V));
            else
              for (const auto& v : values) add(v);
          },
          part);
    });
  }
  /// Without their number.
  void add_bytes(std::string_view bytes) { XXH3_64bits_update(state_.get(), bytes.data(), bytes.size()); }
  std::uint64_t value() const { return XXH3_64bits_digest(state_.get()); }

 private:
  std::unique_ptr<XXH3_state_t, XXH_errorcode (*)(XXH3_state_t*)> state_;
};

// " crc32:xxxxxxxx xxh3:xxxxxxxxxxxxxxxx\n". The first is for readers without xxHash. The second covers the first, and is
// checked here.
constexpr std::size_t crc_length = 7 + 8 + 6, hash_length = 16 + 1;

class Sealing {
 public:
  void add(std::string_view bytes) {
    crc_ = crc32_z(crc_, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
    XXH3_64bits_update(hash_.get(), bytes.data(), bytes.size());
  }
  /// The seal of the bytes so far.
  std::string seal(const std::string& note) {
    if (note.size() > 400 || note.find('\n') != std::string::npos) throw Bug("a seal's note is too long");
    const auto words = seal_mark + note;
    add(words);
    const auto sums = " crc32:" + hex(crc_).substr(8) + " xxh3:";
    add(sums);
    return words + sums + hex(XXH3_64bits_digest(hash_.get())) + "\n";
  }

 private:
  struct State : std::unique_ptr<XXH3_state_t, XXH_errorcode (*)(XXH3_state_t*)> {
    State() : unique_ptr(XXH3_createState(), XXH3_freeState) { XXH3_64bits_reset(get()); }
  };
  unsigned long crc_ = 0;
  State hash_;
};

// Returns the end of the HDF5 data. InputError if the seal is missing or does not match the bytes.
std::size_t open_seal(const OpenFile& file, const std::string& path, Seal& seal) {
  const auto from = file.size() - std::min(file.size(), longest_seal);
  const auto tail = file.read(from);
  const auto mark = tail.rfind(seal_mark);
  if (mark == std::string::npos) {
    const auto start = file.read(0, cell_mark.size());
    if (start.empty()) throw InputError(path + ": is empty");
    if (start == cell_mark) throw InputError(path + ": holds a sweep's cells; merge them first");
    if (!start.starts_with("\211HDF")) throw InputError(path + ": is not an HDF5 file of Hardgrad");
    throw InputError(path + ": truncated, or written by another program: Hardgrad's seal is missing at its end");
  }
  if (tail.size() < mark + seal_mark.size() + crc_length + hash_length || tail.back() != '\n')
    throw InputError(path + ": truncated: its seal is torn");
  const auto hashed = tail.size() - hash_length;
  Digest digest;
  file.each_block(from + hashed, [&](std::string_view bytes) { digest.add_bytes(bytes); });
  seal.hash = tail.substr(hashed, hash_length - 1);
  if (seal.hash != hex(digest.value())) throw InputError(path + ": damaged: its bytes do not match the checksum in its seal");
  seal.note = tail.substr(mark + seal_mark.size(), hashed - crc_length - mark - seal_mark.size());
  return from + mark;
}

}  // namespace

const Dataset& Archive::group(const std::string& name) const {
  for (const auto& g : groups)
    if (g.name == name) return g.data;
  throw InputError(path + ": has no group /" + name);
}

std::string bytes_hash(std::string_view bytes) { return hex(XXH3_64bits(bytes.data(), bytes.size())); }

namespace {

// Adds a group. `values(name, values, along)` adds those of an array; along: its first axis is `axis`.
template <class F>
void add(Digest& digest, const std::string& name, const Dataset& data, F values, const std::string& axis = "") {
  digest.add(name);
  digest.add(data.attributes);
  for (const auto& a : data.axes) {
    digest.add(a.name);
    values(a.name, a.labels, a.name == axis);
    digest.add(a.attributes);
  }
  for (const auto& variable : data.variables) {
    digest.add(variable.name);
    digest.add(variable.axes);
    values(variable.name, variable.values, !variable.axes.empty() && variable.axes[0] == axis);
    digest.add(variable.attributes);
  }
}

Attributes head_attributes(const Archive& archive) {
  return {
      {once_sealed, std::int64_t{1}}, {"Conventions", "CF-1.8"}, {"schema_version", schema_version}, {"kind", archive.kind}};
}

}  // namespace

std::string checksum(const Archive& archive) {
  Digest digest;
  digest.add(archive.kind);
  for (const auto& [name, data] : archive.groups)
    add(digest, name, data, [&](const auto&, const Values& values, bool) { digest.add(values); });
  return hex(digest.value());
}

void write_archive(const std::string& path, Archive archive, bool compress) {
  for (auto& [name, data] : archive.groups) make_valid(data);
  std::string bytes;
  {
    hdf5::File file;
    {
      const auto root = file.open_group("");
      file.write_attributes(root, head_attributes(archive));
      for (const auto& [name, data] : archive.groups) {
        if (name.empty())
          file.write(root, data, compress);
        else
          file.write(file.make_group(name), data, compress);
      }
      file.write_attributes(root, {{"checksum", checksum(archive)}, {"status", archive.status}});  // must come last
    }
    bytes = std::move(file).image();
  }
  Sealing sealing;
  sealing.add(bytes);
  write_file(path, bytes + sealing.seal(archive.note));
}

void write_in_blocks(const std::string& path, const Archive& archive, const std::string& axis, const Lengths& groups,
                     const std::function<void(const AddBlock&)>& fill) {
  const auto write_hdf5 = [&](const std::string& temporary) {
    hdf5::File file(hdf5::File::OnDisk{temporary, path});
    {
      const auto root = file.open_group("");
      file.write_attributes(root, head_attributes(archive));
      std::map<std::string, hdf5::Blocks> blocks;
      std::map<std::string, Dataset> first;
      for (const auto& [name, length] : groups)
        blocks.try_emplace(name, file, name.empty() ? file.open_group("") : file.make_group(name), axis, length);
      fill([&](const std::string& group, Dataset block) {
        make_valid(block);
        blocks.at(group).add(block);
        first.try_emplace(group, std::move(block));
      });
      Digest digest;
      digest.add(archive.kind);
      for (const auto& [name, length] : groups) {
        auto& written = blocks.at(name);
        add(
            digest, name, first.at(name),
            [&](const std::string& array, const Values& values, bool along) {
              if (!along) return digest.add(values);
              digest.add_parts(written.size(array), [&](const auto& f) { written.each(array, f); });
            },
            axis);
      }
      file.write_attributes(root, {{"checksum", hex(digest.value())}, {"status", archive.status}});  // must come last
    }
    std::move(file).close();
  };
  write_file(path, [&](const std::string& temporary) {
    write_hdf5(temporary);
    Sealing sealing;
    const OpenFile file(temporary);
    file.each_block(file.size(), [&](std::string_view bytes) { sealing.add(bytes); });
    append_to_file(temporary, sealing.seal(archive.note));
  });
}

Seal read_seal(const std::string& path) {
  Seal seal;
  open_seal(OpenFile(path), path, seal);
  return seal;
}

std::string Seal::value(const std::string& name) const {
  const auto at = note.find(" " + name + "=");
  if (at == std::string::npos) return {};
  const auto from = at + name.size() + 2;
  return note.substr(from, note.find(' ', from) - from);
}

namespace {

// Of an archive without values: the checksum of those in the file.
std::string checksum_in(hdf5::File& file, const Archive& archive) {
  Digest digest;
  digest.add(archive.kind);
  for (const auto& [name, data] : archive.groups) {
    const auto group = file.open_group(name);
    add(digest, name, data, [&, &data = data](const std::string& array, const Values& values, bool) {
      const auto* variable = data.variable(array);
      if (!variable) return digest.add(values);  // labels
      std::size_t count = 1;
      for (const auto extent : data.shape(*variable)) count *= extent;
      digest.add_parts(count, [&](const auto& f) { file.each_block(file.open_array(group, array), array, f); });
    });
  }
  return hex(digest.value());
}

Archive read(const std::string& path, const std::string& kind, bool values) {
  Archive archive;
  archive.path = path;
  const OpenFile bytes(path);
  Seal seal;
  const auto end = open_seal(bytes, path, seal);
  archive.note = seal.note;
  hdf5::File file(hdf5::File::Reading{bytes.descriptor(), end, path});
  auto root = file.read(file.open_group(""), values);
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
  for (const auto& name : file.groups()) archive.groups.push_back({name, file.read(file.open_group(name), values)});
  if (archive.status.empty()) throw InputError(path + ": is incomplete: it has no status");
  if (promised != (values ? checksum(archive) : checksum_in(file, archive)))
    throw InputError(path + ": damaged or changed: its content does not match its checksum");
  file.check();
  return archive;
}

}  // namespace

Archive read_archive(const std::string& path, const std::string& kind) { return read(path, kind, true); }
Archive outline(const std::string& path) { return read(path, "", false); }

}  // namespace hardgrad::storage
