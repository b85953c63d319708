// MNIST's idx files. The header is checked against the bytes that follow.
#include "experiments/tasks/loaders/idx.hpp"

#include <fmt/format.h>

#include <vector>

#include "experiments/tasks/loaders/input_file.hpp"

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

}  // namespace hardgrad::tasks
