#include "experiments/tasks/loaders/arrays.hpp"

#include <fmt/format.h>

#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <string_view>
#include <vector>

#include "core/support/text.hpp"
#include "experiments/support/text.hpp"
#include "experiments/tasks/loaders/input_file.hpp"
#include "experiments/tasks/text.hpp"

namespace hardgrad::tasks {
namespace {

constexpr std::uint32_t images_magic = 0x803, labels_magic = 0x801;
constexpr std::uint32_t largest_side = 4096;

// The numbers of the header: magic, then one extent per axis.
std::vector<std::uint32_t> read_header(InputFile& file, std::uint32_t magic, const char* what, std::size_t axes) {
  const std::size_t wanted = 4 * (1 + axes);
  const auto bytes = file.read(wanted);
  std::vector<std::uint32_t> numbers;
  for (std::size_t i = 0; i + 4 <= bytes.size(); i += 4) {
    std::uint32_t number = 0;
    for (std::size_t k = 0; k < 4; ++k) number = number << 8 | static_cast<unsigned char>(bytes[i + k]);
    numbers.push_back(number);
  }
  if (!numbers.empty() && numbers[0] != magic)
    refuse_input(file.path(), 0, 0,
                 fmt::format("magic number 0x{:08X}, but idx {} start with 0x{:08X}; {}", numbers[0], what, magic,
                             numbers[0] == images_magic   ? "this is a file of images"
                             : numbers[0] == labels_magic ? "this is a file of labels"
                                                          : "this is not an MNIST idx file"));
  if (bytes.size() < wanted)
    refuse_input(file.path(), 0, 0,
                 fmt::format("the idx header is truncated: {} of {} bytes; get a complete copy", bytes.size(), wanted));
  if (numbers[1] == 0) refuse_input(file.path(), 0, 0, fmt::format("holds no {}", what));
  return numbers;
}

std::string read_body(InputFile& file, std::uint64_t wanted, const std::string& promise) {
  if (wanted > input_limit()) refuse_size(file.path(), fmt::format("the header promises {},", promise));
  auto body = file.read(wanted);
  if (body.size() < wanted)
    refuse_input(file.path(), 0, 0,
                 fmt::format("truncated: the header promises {} = {} bytes, but only {} follow; get a complete copy", promise,
                             wanted, body.size()));
  if (!file.read(1).empty())
    refuse_input(file.path(), 0, 0,
                 fmt::format("the header promises {} = {} bytes, but more follow; is it damaged?", promise, wanted));
  return body;
}

}  // namespace

IdxImages read_idx_images(const std::string& path) {
  InputFile file(path);
  const auto header = read_header(file, images_magic, "images", 3);
  for (int axis : {2, 3})
    if (header[axis] == 0 || header[axis] > largest_side)
      refuse_input(path, 0, 0, fmt::format("images of {}x{} pixels; is the header damaged?", header[2], header[3]));
  IdxImages images{header[1], header[2], header[3], {}};
  images.pixels = read_body(file, std::uint64_t{header[1]} * header[2] * header[3],
                            fmt::format("{} images of {}x{}", header[1], header[2], header[3]));
  return images;
}

std::string read_idx_labels(const std::string& path, int classes) {
  InputFile file(path);
  const auto header = read_header(file, labels_magic, "labels", 1);
  auto labels = read_body(file, header[1], fmt::format("{} labels", header[1]));
  for (std::size_t i = 0; i < labels.size(); ++i)
    if (static_cast<unsigned char>(labels[i]) >= classes)
      refuse_input(path, 0, 0,
                   fmt::format("label {} is {}, but there are only the classes 0 to {}", i,
                               static_cast<unsigned char>(labels[i]), classes - 1));
  return labels;
}

IdxImages parse_amat(const TextFile& text) {
  IdxImages images;
  for (std::size_t i = 0; i < text.lines.size(); ++i) {
    const std::string_view line = text.lines[i];
    if (trimmed(line).empty()) continue;
    const auto before = images.pixels.size();
    for (const auto& [pixel, column] : pieces_of(line)) {
      const double value = number_of<double>(pixel).value_or(-1);
      if (!(value >= 0 && value <= 1))
        refuse_input(text.path, i + 1, column,
                     fmt::format("a pixel must be a number from 0 to 1, got \"{}\"", pixel.substr(0, 20)));
      images.pixels += static_cast<char>(std::lround(255 * value));
    }
    const auto pixels = images.pixels.size() - before;
    if (images.count == 0) {
      images.rows = images.cols = static_cast<std::size_t>(std::lround(std::sqrt(static_cast<double>(pixels))));
      if (images.rows * images.cols != pixels)
        refuse_input(text.path, i + 1, 0, fmt::format("{} numbers; a line must be a square image of n x n", pixels));
    } else if (pixels != images.rows * images.cols) {
      refuse_input(
          text.path, i + 1, 0,
          fmt::format("{} numbers, but the first image has {}x{}; is it truncated?", pixels, images.rows, images.cols));
    }
    ++images.count;
  }
  if (images.count == 0) refuse_input(text.path, 0, 0, "holds no images");
  return images;
}

namespace {

static_assert(std::endian::native == std::endian::little, "numbers are read without conversion of their byte order");

constexpr std::size_t longest_header = 1 << 16, most_axes = 8;

[[noreturn]] void refuse(const InputFile& file, const std::string& what) { refuse_input(file.path(), 0, 0, what); }

/// The beginning of a text from a file, printable in a message.
std::string shown(std::string_view text) {
  std::string result(text.substr(0, 40));
  for (char& c : result)
    if (c < ' ' || c > '~') c = '?';
  return result;
}

/// The value of 'key' in the header's dictionary: the text up to the next comma outside of brackets.
std::string_view entry(const InputFile& file, std::string_view header, std::string_view key) {
  const auto name = fmt::format("'{}':", key);
  const auto at = header.find(name);
  if (at == std::string_view::npos) refuse(file, fmt::format("the header has no '{}'; is it a .npy file of one array?", key));
  auto value = header.substr(at + name.size());
  value.remove_prefix(std::min(value.find_first_not_of(' '), value.size()));
  const auto end = value.starts_with('(') ? value.find(')') : value.find_first_of(",}");
  if (end == std::string_view::npos) refuse(file, fmt::format("the header's '{}' has no end; is it damaged?", key));
  return value.substr(0, end);
}

std::vector<std::size_t> shape_in(const InputFile& file, std::string_view text) {
  std::vector<std::size_t> shape;
  std::size_t size = 1;
  for (std::size_t at = 1; at < text.size();) {
    if (text[at] == ' ' || text[at] == ',') {
      ++at;
      continue;
    }
    std::size_t extent = 0;
    const auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), extent);
    if (error != std::errc{} || shape.size() == most_axes || extent == 0)
      refuse(file, fmt::format("the shape {}) is invalid: it must have up to {} numbers above 0", shown(text), most_axes));
    if (extent > input_limit() / sizeof(double) / size)
      refuse_size(file.path(), fmt::format("the shape {}) promises", shown(text)));
    size *= extent;
    shape.push_back(extent);
    at = static_cast<std::size_t>(end - text.data());
  }
  return shape;
}

}  // namespace

Array<double> read_npy(const std::string& path) {
  InputFile file(path);
  constexpr std::string_view magic = "\x93NUMPY";
  const auto start = file.read(8);
  if (start.size() < 8 || !start.starts_with(magic) || start[6] < 1 || start[6] > 3)
    refuse(file, "does not begin like a .npy file (version 1 to 3); write one with numpy.save");
  const std::size_t width = start[6] == 1 ? 2 : 4;
  const auto count = file.read(width);
  std::size_t length = 0;
  for (std::size_t i = count.size(); i-- > 0;) length = length << 8 | static_cast<unsigned char>(count[i]);
  if (count.size() < width || length > longest_header)
    refuse(file, "the header's length is damaged or cut off; get a complete copy");
  const auto header = file.read(length);
  if (header.size() < length) refuse(file, "truncated in the header; get a complete copy");

  const auto type = entry(file, header, "descr");
  const bool single = type == "'<f4'";
  if (!single && type != "'<f8'")
    refuse(file, fmt::format("holds numbers of type {}; expected '<f4' or '<f8' (float32, float64)", shown(type)));
  if (entry(file, header, "fortran_order") != "False") refuse(file, "is in Fortran order; save numpy.ascontiguousarray of it");
  const auto text = entry(file, header, "shape");
  if (!text.starts_with('(')) refuse(file, fmt::format("the shape {} is not a tuple; is the header damaged?", shown(text)));
  const auto shape = shape_in(file, text);
  std::size_t size = 1;
  for (auto extent : shape) size *= extent;
  const auto bytes = file.read(size * (single ? 4 : 8));
  if (bytes.size() < size * (single ? 4 : 8))
    refuse(file, fmt::format("truncated: the header promises {} numbers, but only {} bytes follow; get a complete copy", size,
                             bytes.size()));
  if (!file.read(1).empty()) refuse(file, fmt::format("the header promises {} numbers, but more bytes follow", size));
  Array<double> result = zeros<double>(shape);
  for (std::size_t i = 0; i < size; ++i) {
    float number = 0;
    if (single)
      std::memcpy(&number, bytes.data() + 4 * i, 4), result.flat(i) = static_cast<double>(number);
    else
      std::memcpy(&result.flat(i), bytes.data() + 8 * i, 8);
    if (!std::isfinite(result.flat(i))) refuse(file, fmt::format("number {} of {} is not finite", i + 1, size));
  }
  return result;
}

}  // namespace hardgrad::tasks
