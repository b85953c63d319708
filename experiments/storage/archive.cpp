// Archives: seal, conversion to and from HDF5.
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

// " crc32:xxxxxxxx xxh3:xxxxxxxxxxxxxxxx\n". The first is for readers without xxHash. The second covers the first, and is
// checked here. Packed results, written in Python, have the first alone, and no note but their kind.
constexpr std::size_t crc_length = 7 + 8 + 6, hash_length = 16 + 1;
const std::string packed_seal = seal_mark + "packed crc32:";

std::string crc_digits(unsigned long crc) { return hex(crc).substr(8); }
unsigned long crc_of(unsigned long before, std::string_view bytes) {
  return crc32_z(before, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
}

struct Hash : std::unique_ptr<XXH3_state_t, XXH_errorcode (*)(XXH3_state_t*)> {
  Hash() : unique_ptr(XXH3_createState(), XXH3_freeState) { XXH3_64bits_reset(get()); }
  void add(std::string_view bytes) { XXH3_64bits_update(get(), bytes.data(), bytes.size()); }
  std::string digits() const { return hex(XXH3_64bits_digest(get())); }
};

class Sealing {
 public:
  void add(std::string_view bytes) {
    crc_ = crc_of(crc_, bytes);
    hash_.add(bytes);
  }
  /// The seal of the bytes so far.
  std::string seal(const std::string& note) {
    if (note.size() > 400 || note.find('\n') != std::string::npos) throw Bug("a seal's note is too long");
    const auto words = seal_mark + note;
    add(words);
    const auto sums = " crc32:" + crc_digits(crc_) + " xxh3:";
    add(sums);
    return words + sums + hash_.digits() + "\n";
  }

 private:
  unsigned long crc_ = 0;
  Hash hash_;
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
  const auto damaged = [&] { return InputError(path + ": damaged: its bytes do not match the checksum in its seal"); };
  if (const auto sum = std::string_view(tail).substr(mark);
      sum.starts_with(packed_seal) && sum.size() == packed_seal.size() + 9) {
    unsigned long crc = 0;
    file.each_block(from + mark + seal_mark.size() + 6, [&](std::string_view bytes) { crc = crc_of(crc, bytes); });
    seal = {"packed", std::string(sum.substr(packed_seal.size(), 8))};
    if (sum.back() != '\n' || seal.hash != crc_digits(crc)) throw damaged();
    return from + mark;
  }
  if (tail.size() < mark + seal_mark.size() + crc_length + hash_length || tail.back() != '\n')
    throw InputError(path + ": truncated: its seal is torn");
  const auto hashed = tail.size() - hash_length;
  Hash hash;
  file.each_block(from + hashed, [&](std::string_view bytes) { hash.add(bytes); });
  seal.hash = tail.substr(hashed, hash_length - 1);
  if (seal.hash != hash.digits()) throw damaged();
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

Attributes head_attributes(const Archive& archive) {
  return {
      {once_sealed, std::int64_t{1}}, {"Conventions", "CF-1.8"}, {"schema_version", schema_version}, {"kind", archive.kind}};
}

}  // namespace

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
      file.write_attributes(root, {{"status", archive.status}});  // must come last
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
      for (const auto& [name, length] : groups)
        blocks.try_emplace(name, file, name.empty() ? file.open_group("") : file.make_group(name), axis, length);
      fill([&](const std::string& group, Dataset block) {
        make_valid(block);
        blocks.at(group).add(block);
      });
      file.write_attributes(root, {{"status", archive.status}});  // must come last
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
  if (!(version == version) || archive.kind.empty())
    throw InputError(path + ": is not a file of Hardgrad: it has no schema_version and kind");
  if (version != static_cast<double>(schema_version))
    throw InputError(path + ": has schema version " + std::to_string(static_cast<long long>(version)) +
                     ", this program reads " + std::to_string(schema_version) +
                     ": make it anew, or read it with the release that wrote it");
  if (!kind.empty() && archive.kind != kind)
    throw InputError(path + ": is a " + archive.kind + " file, not a " + kind + " file");
  std::erase_if(root.attributes, [](const auto& a) {
    return a.first == "Conventions" || a.first == "schema_version" || a.first == "kind" || a.first == "status" ||
           a.first == "checksum" || a.first == once_sealed;
  });
  archive.groups.push_back({"", std::move(root)});
  for (const auto& name : file.groups()) archive.groups.push_back({name, file.read(file.open_group(name), values)});
  if (archive.status.empty()) throw InputError(path + ": is incomplete: it has no status");
  file.check();
  return archive;
}

}  // namespace

Archive read_archive(const std::string& path, const std::string& kind) { return read(path, kind, true); }
Archive outline(const std::string& path) { return read(path, "", false); }

}  // namespace hardgrad::storage
