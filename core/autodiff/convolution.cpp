// Windows that move by one pixel are sums of shifted planes. Larger steps would need a plane for each position within a step,
// which took a fifth longer in the captioner: lines of windows are multiplied (core/kernels/convolution.hpp, for both).
#include "core/autodiff/images.hpp"

#include <algorithm>
#include <vector>

#include "core/autodiff/require.hpp"
#include "core/kernels/convolution.hpp"
#include "core/kernels/rows.hpp"

namespace hardgrad {
namespace {

/// A convolution of `images` images with C channels to O channels. Lines of windows are multiplied by weights that are transposed, so
/// that a register holds the channels of one window. The gradient at the image is a convolution, too: of the output's cotangents,
/// with reversed weights.
template <class T>
struct ByWindows {
  static constexpr std::size_t lanes = kernels::width<T>;
  using Lines = std::span<const kernels::WindowLine<T>>;

  Windows w;
  std::size_t images, C, O;

  std::size_t run() const { return w.kernel * C; }  // numbers in one line of a window
  std::size_t padded_width() const { return w.width + 2 * w.padding; }

  /// Weights [blocks of `lanes` of `outputs`][kernel][numbers][lanes], zero beyond the outputs.
  template <class F>
  static std::span<T> packed(Tape<T>& tape, std::size_t outputs, std::size_t kernel, std::size_t numbers, F weight) {
    const auto blocks = (outputs + lanes - 1) / lanes;
    const auto all = tape.template scratch<T>(blocks * kernel * numbers * lanes);
    auto to = all.begin();
    for (std::size_t b = 0; b < blocks; ++b)
      for (std::size_t u = 0; u < kernel; ++u)
        for (std::size_t n = 0; n < numbers; ++n)
          for (std::size_t o = b * lanes; o < (b + 1) * lanes; ++o) *to++ = o < outputs ? weight(o, u, n) : T{0};
    return all;
  }

  /// One image with its padding.
  const T* padded(MatrixView<const T> x, std::size_t image, std::span<T> memory) const {
    const T* from = x.row(image * w.height * w.width);
    if (w.padding == 0) return from;
    const auto line = padded_width() * C;
    std::fill(memory.begin(), memory.end(), T{0});
    for (std::size_t i = 0; i < w.height; ++i)
      std::copy_n(from + i * w.width * C, w.width * C, &memory[(i + w.padding) * line + w.padding * C]);
    return memory.data();
  }
  std::span<T> image_memory(Tape<T>& tape) const {
    return tape.template scratch<T>(w.padding == 0 ? 0 : (w.height + 2 * w.padding) * padded_width() * C);
  }

  void forward(Tape<T>& tape, MatrixView<const T> x, MatrixView<const T> weight, const T* bias, MatrixView<T> y) const {
    const auto weights = packed(tape, O, w.kernel, run(), [&](auto o, auto u, auto n) { return weight(o, u * run() + n); });
    const auto start = packed(tape, O, 1, 1, [&](auto o, auto, auto) { return bias ? bias[o] : T{0}; });
    const auto memory = image_memory(tape);
    const auto lines = tape.template scratch<kernels::WindowLine<T>>(w.kernel);
    for (std::size_t image = 0; image < images; ++image) {
      const T* pixels = padded(x, image, memory);
      for (std::size_t i = 0; i < w.rows(); ++i)
        for (std::size_t first = 0; first < O; first += lanes) {
          for (std::size_t u = 0; u < w.kernel; ++u)
            lines[u] = {pixels + (i * w.stride + u) * padded_width() * C, &weights[(first * w.kernel + u * lanes) * run()]};
          kernels::multiply_windows<T>(lines, w.stride * C, run(), w.cols(), &start[first],
                                       y.row((image * w.rows() + i) * w.cols()) + first, O, std::min(lanes, O - first), true);
        }
    }
  }

  /// to (+)= g' X for the matrix X of all windows
  void backward_to_weight(Tape<T>& tape, MatrixView<const T> x, MatrixView<const T> g, const Sink<T>& to) const {
    const auto sums = tape.template scratch<T>(w.kernel * run() * lanes), channels = tape.template scratch<T>(w.cols() * lanes);
    const auto memory = image_memory(tape);
    for (std::size_t first = 0; first < O; first += lanes) {
      const auto used = std::min(lanes, O - first);
      std::fill(sums.begin(), sums.end(), T{0});
      std::fill(channels.begin(), channels.end(), T{0});
      for (std::size_t image = 0; image < images; ++image) {
        const T* pixels = padded(x, image, memory);
        for (std::size_t i = 0; i < w.rows(); ++i) {
          for (std::size_t j = 0; j < w.cols(); ++j)
            std::copy_n(g.row((image * w.rows() + i) * w.cols() + j) + first, used, &channels[j * lanes]);
          for (std::size_t u = 0; u < w.kernel; ++u)
            kernels::add_window_gradients<T>(pixels + (i * w.stride + u) * padded_width() * C, w.stride * C, run(), w.cols(),
                                             channels.data(), &sums[u * run() * lanes]);
        }
      }
      for (std::size_t o = 0; o < used; ++o)
        for (std::size_t n = 0; n < to.to.cols; ++n) {
          T& entry = to.to(first + o, n);
          entry = (to.first ? T{0} : entry) + sums[n * lanes + o];
        }
    }
  }

  /// Pixel (i, j) belongs to the windows (r, c) with i + p = s r + u and j + p = s c + v. With the columns of g spread s apart and
  /// k - 1 zeros before them, those of one u are k adjacent columns from j + p on, in the order v = k - 1 .. 0.
  void backward_to_image(Tape<T>& tape, MatrixView<const T> weight, MatrixView<const T> g, const Sink<T>& to) const {
    const auto [height, width, k, s, p] = w;
    const auto weights = packed(tape, C, k, k * O,
                                [&, k = k](auto c, auto u, auto n) { return weight(n % O, (u * k + k - 1 - n / O) * C + c); });
    const auto start = packed(tape, C, 1, 1, [](auto, auto, auto) { return T{0}; });
    const auto line = (padded_width() + k - 1) * O;
    const auto spread = tape.template scratch<T>(w.rows() * line);
    const auto lines = tape.template scratch<kernels::WindowLine<T>>(k);
    std::fill(spread.begin(), spread.end(), T{0});
    for (std::size_t image = 0; image < images; ++image) {
      for (std::size_t r = 0; r < w.rows(); ++r)
        for (std::size_t c = 0; c < w.cols(); ++c)
          std::copy_n(g.row((image * w.rows() + r) * w.cols() + c), O, &spread[r * line + (s * c + k - 1) * O]);
      for (std::size_t i = 0; i < height; ++i)
        for (std::size_t first = 0; first < C; first += lanes) {
          std::size_t count = 0;
          for (std::size_t u = 0; u < std::min(k, i + p + 1); ++u)
            if (const auto r = (i + p - u) / s; (i + p - u) % s == 0 && r < w.rows())
              lines[count++] = {&spread[r * line + p * O], &weights[(first * k + u * lanes) * k * O]};
          kernels::multiply_windows<T>(Lines(lines).first(count), O, k * O, width, &start[first],
                                       to.to.row((image * height + i) * width) + first, C, std::min(lanes, C - first),
                                       to.first);
        }
    }
  }
};

/// The same with stride 1. An image is split into planes, one for each channel. Lines of a plane follow each other, so the
/// pixels (u, v) of all windows are the plane that begins u lines and v pixels later: one sum for all windows at once. Where a
/// window would extend beyond the end of a line, sums are not used, and cotangents are 0. The gradient at the image is such a sum
/// of the cotangents' planes, shifted the other way.
template <class T>
struct ByPlanes {
  static constexpr std::size_t lanes = kernels::width<T>;

  Windows w;
  std::size_t images, C, O;

  static std::size_t up(std::size_t n, std::size_t to) { return (n + to - 1) / to * to; }
  std::size_t line() const { return w.width + 2 * w.padding; }
  std::size_t lines() const { return w.height + 2 * w.padding; }
  /// Numbers of a plane up to the last window, and of a whole plane.
  std::size_t windows() const { return up((w.rows() - 1) * line() + w.cols(), kernels::plane_piece<T>); }
  std::size_t plane() const { return up(lines() * line(), kernels::plane_piece<T>); }
  /// How much later the pixels (u, v) of all windows begin in their plane.
  std::size_t shift(std::size_t u, std::size_t v) const { return u * line() + v; }
  /// Zeros before each plane of cotangents, for shifts.
  std::size_t before() const { return up(shift(w.kernel - 1, w.kernel - 1), lanes); }
  std::size_t cotangent_plane() const { return before() + plane(); }

  /// Calls f(place in a plane, pixel of the image) for all pixels.
  template <class F>
  void for_pixels(F f) const {
    for (std::size_t i = 0; i < w.height; ++i)
      for (std::size_t j = 0; j < w.width; ++j) f((i + w.padding) * line() + j + w.padding, i * w.width + j);
  }
  /// Calls f(place in a plane, row) for all windows.
  template <class F>
  void for_windows(F f) const {
    for (std::size_t i = 0; i < w.rows(); ++i)
      for (std::size_t j = 0; j < w.cols(); ++j) f(i * line() + j, i * w.cols() + j);
  }

  std::span<T> zeros(Tape<T>& tape, std::size_t count) const {
    const auto all = tape.template scratch<T>(count);
    std::fill(all.begin(), all.end(), T{0});
    return all;
  }
  /// Memory for the planes of an image, and the planes (u, v, c) of all windows in it.
  std::span<T> image_planes(Tape<T>& tape) const { return zeros(tape, (C + 1) * plane()); }
  std::vector<const T*> planes_of_windows(std::span<const T> planes) const {
    std::vector<const T*> all;
    for (std::size_t u = 0; u < w.kernel; ++u)
      for (std::size_t v = 0; v < w.kernel; ++v)
        for (std::size_t c = 0; c < C; ++c) all.push_back(&planes[c * plane() + shift(u, v)]);
    return all;
  }
  void split(MatrixView<const T> x, std::size_t image, std::span<T> planes) const {
    for_pixels([&](std::size_t place, std::size_t pixel) {
      const T* from = x.row(image * w.height * w.width + pixel);
      for (std::size_t c = 0; c < C; ++c) planes[c * plane() + place] = from[c];
    });
  }
  /// Memory for the planes of an image's cotangents.
  std::span<T> cotangent_planes(Tape<T>& tape) const { return zeros(tape, O * cotangent_plane()); }
  void split_cotangents(MatrixView<const T> g, std::size_t image, std::span<T> planes) const {
    for_windows([&](std::size_t place, std::size_t row) {
      const T* from = g.row(image * w.rows() * w.cols() + row);
      for (std::size_t o = 0; o < O; ++o) planes[o * cotangent_plane() + before() + place] = from[o];
    });
  }

  void forward(Tape<T>& tape, MatrixView<const T> x, MatrixView<const T> weight, const T* bias, MatrixView<T> y) const {
    const auto weights = tape.template scratch<T>(weight.size());  // transposed
    for (std::size_t n = 0; n < weight.cols; ++n)
      for (std::size_t o = 0; o < O; ++o) weights[n * O + o] = weight(o, n);
    const auto start = zeros(tape, O), planes = image_planes(tape), out = tape.template scratch<T>(O * windows());
    if (bias) std::copy_n(bias, O, start.data());
    const auto of_windows = planes_of_windows(planes);
    for (std::size_t image = 0; image < images; ++image) {
      split(x, image, planes);
      kernels::combine_planes<T>(of_windows, weights.data(), start.data(), O, windows(), out.data(), windows());
      for_windows([&](std::size_t place, std::size_t row) {
        T* to = y.row(image * w.rows() * w.cols() + row);
        for (std::size_t o = 0; o < O; ++o) to[o] = out[o * windows() + place];
      });
    }
  }

  /// to (+)= g' X for the matrix X of all windows
  void backward_to_weight(Tape<T>& tape, MatrixView<const T> x, MatrixView<const T> g, const Sink<T>& to) const {
    const auto planes = image_planes(tape), slopes = cotangent_planes(tape), sums = zeros(tape, to.to.size() * lanes);
    const auto of_windows = planes_of_windows(planes);
    for (std::size_t image = 0; image < images; ++image) {
      split(x, image, planes);
      split_cotangents(g, image, slopes);
      kernels::correlate_planes<T>(of_windows, &slopes[before()], O, windows(), cotangent_plane(), sums.data());
    }
    to.accumulate([&](std::size_t n) { return kernels::lane_sum(kernels::Batch<T>::load_unaligned(&sums[n * lanes])); });
  }

  void backward_to_image(Tape<T>& tape, MatrixView<const T> weight, MatrixView<const T> g, const Sink<T>& to) const {
    const auto slopes = cotangent_planes(tape), out = tape.template scratch<T>(C * plane()), start = zeros(tape, C);
    std::vector<const T*> shifted;
    std::vector<T> weights;  // [shifted, C]
    for (std::size_t u = 0; u < w.kernel; ++u)
      for (std::size_t v = 0; v < w.kernel; ++v)
        for (std::size_t o = 0; o < O; ++o) {
          shifted.push_back(&slopes[o * cotangent_plane() + before() - shift(u, v)]);
          const T* from = weight.row(o) + (u * w.kernel + v) * C;
          weights.insert(weights.end(), from, from + C);
        }
    for (std::size_t image = 0; image < images; ++image) {
      split_cotangents(g, image, slopes);
      kernels::combine_planes<T>(shifted, weights.data(), start.data(), C, plane(), out.data(), plane());
      for_pixels([&](std::size_t place, std::size_t pixel) {
        T* row = to.to.row(image * w.height * w.width + pixel);
        for (std::size_t c = 0; c < C; ++c) row[c] = (to.first ? T{0} : row[c]) + out[c * plane() + place];
      });
    }
  }
};

template <class T, class How>
Var<T> convolved(Var<T> x, Var<T> weight, Var<T> bias, const How& all) {
  const auto y = x.tape->output(all.images * all.w.rows() * all.w.cols(), all.O, {x, weight, bias});
  all.forward(*x.tape, x.value(), weight.value(), bias ? bias.value().data : nullptr, x.tape->mutable_value(y));
  x.tape->on_backward({y}, [x, weight, bias, y, all](Tape<T>& tape) {
    const auto g = tape.cotangent(y);
    if (tape.needs_gradient(x)) all.backward_to_image(tape, tape.value(weight), g, tape.sink(x));
    if (tape.needs_gradient(weight)) all.backward_to_weight(tape, tape.value(x), g, tape.sink(weight));
    if (!bias || !tape.needs_gradient(bias)) return;
    const auto sink = tape.sink(bias);
    kernels::column_sums(g.data, g.rows, g.cols, sink.to.data, sink.first);
  });
  return y;
}

}  // namespace

template <class T>
Var<T> convolution(Var<T> x, const Windows& w, Var<T> weight, Var<T> bias) {
  const auto places = w.height * w.width;
  const bool fits = w.stride > 0 && w.kernel > 0 && w.kernel <= std::min(w.height, w.width) + 2 * w.padding;
  require_shapes(fits && places > 0 && x.rows() % places == 0 && weight.cols() == w.kernel * w.kernel * x.cols() &&
                     (!bias || (bias.rows() == 1 && bias.cols() == weight.rows())),
                 "convolution", {x, weight, bias});
  const auto images = x.rows() / places;
  if (w.stride == 1) return convolved(x, weight, bias, ByPlanes<T>{w, images, x.cols(), weight.rows()});
  return convolved(x, weight, bias, ByWindows<T>{w, images, x.cols(), weight.rows()});
}

template Var<float> convolution(Var<float>, const Windows&, Var<float>, Var<float>);
template Var<double> convolution(Var<double>, const Windows&, Var<double>, Var<double>);

}  // namespace hardgrad
