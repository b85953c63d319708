// Digits: generated ones, files, canvases and clutter.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "experiments/tasks/generated_images.hpp"
#include "experiments/tasks/task.hpp"
#include "tests/experiments/tasks/support.hpp"

namespace hardgrad::testing::glimpse_test {
using namespace tasks;

namespace {

std::unique_ptr<Task> make(const std::string& arguments, std::uint64_t seed = 1) {
  return make_task(Spec::parse("glimpse[" + arguments + "]"), Key(seed));
}

std::string idx(std::initializer_list<int> numbers, const std::string& body) {
  std::string bytes;
  for (int number : numbers) bytes += {0, 0, static_cast<char>(number >> 8), static_cast<char>(number)};
  return bytes + body;
}

// Four files of 3x2 images: in image i, pixel (1, 1) is 100 + i and the others are 0. Label i is i mod 10.
void write_mnist(const Folder& folder, int train, int test) {
  for (const auto& [part, count] : {std::pair{"train", train}, std::pair{"t10k", test}}) {
    std::string pixels, labels;
    for (int i = 0; i < count; ++i) {
      pixels += std::string(3, '\0') + static_cast<char>(100 + i) + std::string(2, '\0');
      labels += static_cast<char>(i % 10);
    }
    folder.write_gz(std::string(part) + "-images-idx3-ubyte.gz", idx({0x803, count, 3, 2}, pixels));
    folder.write(std::string(part) + "-labels-idx1-ubyte", idx({0x801, count}, labels));
  }
}

}  // namespace

TEST_CASE("generated digits are inside the image, distinguishable and reproducible") {
  for (int size : {8, 12, 28}) {
    CAPTURE(size);
    const auto images = draw_digits(200, size, Key(1));
    CHECK(images.pixels == draw_digits(200, size, Key(1)).pixels);
    CHECK(draw_digits(10, size, Key(1)).pixels == images.pixels.substr(0, images.rows * images.cols * 10));
    CHECK(images.pixels != draw_digits(200, size, Key(2)).pixels);
    for (std::size_t i = 0; i < images.count; ++i) {
      const auto* image = images.image(i);
      const int brightest = *std::max_element(image, image + size * size);
      CHECK(brightest > 100);
    }
    std::set<std::string> different;
    for (std::size_t i = 0; i < images.count; ++i)
      different.insert(images.pixels.substr(i * images.rows * images.cols, images.rows * images.cols));
    CHECK(different.size() == 200);
  }
}

TEST_CASE("a generated batch has images in [0, 1], labels, and the ink in its box") {
  const auto task = make("size=12,examples=40");
  CHECK(task->size(Split::train) == 40);
  CHECK(task->size(Split::heldout) == 10);
  CHECK(task->size(Split::test) == 10);
  CHECK(task->dimensions() == Dimensions{{"height", 12}, {"width", 12}, {"classes", 10}});
  std::set<std::uint32_t> ids;
  for (auto split : {Split::train, Split::heldout, Split::test}) {
    std::vector<int> all(task->size(split));
    std::iota(all.begin(), all.end(), 0);
    const auto batch = task->batch(split, all);
    for (auto id : batch.id) CHECK(ids.insert(id).second);
    for (std::size_t b = 0; b < all.size(); ++b) {
      const auto image = row_of(batch.numbers("image"), b);
      const auto box = row_of(batch.ints("box"), b);
      for (int r = 0; r < 12; ++r)
        for (int c = 0; c < 12; ++c) {
          const double pixel = image[r * 12 + c];
          CHECK((pixel >= 0 && pixel <= 1));
          if (pixel > 0.11) CHECK((r >= box[0] && r < box[2] && c >= box[1] && c < box[3]));
        }
    }
  }
  CHECK_THROWS_AS(task->batch(Split::test, {10}), Bug);
}

TEST_CASE("files: splits, bytes, boxes") {
  Folder folder;
  write_mnist(folder, 20, 5);
  const auto task = make("heldout=4,path=" + folder.path());
  CHECK(task->size(Split::train) == 16);
  CHECK(task->size(Split::heldout) == 4);
  CHECK(task->size(Split::test) == 5);
  const auto batch = task->batch(Split::heldout, {1});
  CHECK(batch.numbers("image").shape() == std::vector<std::size_t>{1, 3, 2});
  CHECK(batch.numbers("image").flat(3) == doctest::Approx(117 / 255.0));
  CHECK(batch.ints("label").flat(0) == 7);
  CHECK(batch.ints("box").storage() == std::vector<int>{1, 1, 2, 2});
  CHECK(task->batch(Split::test, {2}).id[0] == 22);
  CHECK(make("heldout=4,limit=7,path=" + folder.path())->size(Split::train) == 7);
}

TEST_CASE("the canvas: the digit moves with its box, clutter and noise depend only on id and key") {
  Folder folder;
  write_mnist(folder, 20, 5);
  const auto task = make("heldout=4,canvas=9,path=" + folder.path());
  std::set<std::pair<int, int>> places;
  for (int i = 0; i < 16; ++i) {
    const auto batch = task->batch(Split::train, {i});
    const auto box = row_of(batch.ints("box"), 0);
    CHECK(batch.numbers("image").flat(box[0] * 9 + box[1]) == doctest::Approx((100 + i) / 255.0));
    CHECK(std::accumulate(batch.numbers("image").begin(), batch.numbers("image").end(), 0.0) ==
          doctest::Approx((100 + i) / 255.0));
    places.insert({box[0], box[1]});
  }
  CHECK(places.size() > 8);
  const auto busy = make("canvas=40,clutter=4,noise=0.2,examples=20");
  const auto together = busy->batch(Split::train, {0, 1, 2}), alone = busy->batch(Split::train, {2});
  const auto row = row_of(together.numbers("image"), 2);
  CHECK(std::equal(row.begin(), row.end(), alone.numbers("image").begin()));
  CHECK(busy->batch(Split::train, {1}).numbers("image").storage() != alone.numbers("image").storage());
  CHECK(make("canvas=40,clutter=4,noise=0.2,examples=20", 2)->batch(Split::train, {2}).numbers("image").storage() !=
        alone.numbers("image").storage());
}

TEST_CASE("training canvases are drawn anew every epoch, plain digits do not change") {
  for (const auto* settings : {"canvas=40", "clutter=2", "noise=0.1", "digits=2"}) {
    CAPTURE(settings);
    const auto task = make(std::string("size=12,examples=20,") + settings);
    const auto of = [&](int epoch) {
      return task->training_batch({1, 2, 3}, Key(9) / std::uint64_t(epoch)).numbers("image").storage();
    };
    CHECK(of(1) == of(1));
    CHECK(of(1) != of(2));
    CHECK(of(1) != task->batch(Split::train, {1, 2, 3}).numbers("image").storage());
  }
  const auto plain = make("size=12,examples=20");
  CHECK(plain->training_batch({1, 2}, Key(9)).numbers("image").storage() ==
        plain->batch(Split::train, {1, 2}).numbers("image").storage());
}

TEST_CASE("several digits are side by side, labelled from left to right, with an end label") {
  Folder folder;
  write_mnist(folder, 20, 5);
  const auto task = make("heldout=4,digits=3,canvas=11,path=" + folder.path());
  CHECK(task->dimensions() == Dimensions{{"height", 11}, {"width", 11}, {"classes", 11}, {"labels_in_a_row", 4}});
  std::set<int> counts;
  for (auto split : {Split::train, Split::heldout, Split::test}) {
    const int first = split == Split::heldout ? 16 : 0, images = static_cast<int>(task->size(split));
    for (int i = 0; i < images; ++i) {
      CAPTURE(i);
      const auto batch = task->batch(split, {i});
      const auto label = row_of(batch.ints("label"), 0), box = row_of(batch.ints("box"), 0);
      REQUIRE(label.size() == 4);
      REQUIRE(box.size() == 12);
      int n = 0;
      double ink = 0;
      bool own = false;
      for (; label[n] != 10; ++n) {  // the nonzero pixel of a digit identifies its image
        const double pixel = batch.numbers("image").flat(box[4 * n] * 11 + box[4 * n + 1]);
        const int image = static_cast<int>(std::lround(pixel * 255)) - 100;
        CHECK(label[n] == image % 10);
        CHECK((image >= first && image < first + images));
        own = own || image == first + i;
        ink += pixel;
        if (n > 0) CHECK(box[4 * n + 1] >= box[4 * n - 3] + 2);  // squares of two columns do not overlap
      }
      CHECK((n >= 1 && n <= 3));
      CHECK(own);
      for (int k = n + 1; k < 4; ++k) CHECK(label[k] == -1);
      for (int k = 4 * n; k < 12; ++k) CHECK(box[k] == -1);
      const auto& all = batch.numbers("image").storage();
      CHECK(std::accumulate(all.begin(), all.end(), 0.0) == doctest::Approx(ink));
      counts.insert(n);
    }
  }
  CHECK(counts == std::set<int>{1, 2, 3});
  CHECK(make("size=12,examples=20,digits=2")->dimensions().at("width") == 24);
}

TEST_CASE("several digits are correct if all are, in order, and no other label is predicted") {
  const auto task = make("size=8,examples=40,digits=2");
  int two = 0;
  while (task->batch(Split::train, {two}).ints("label").flat(2) < 0) ++two;  // label: a, b, 10
  const auto batch = task->batch(Split::train, {two});
  const int a = batch.ints("label").flat(0), b = batch.ints("label").flat(1);
  const auto error = [&](std::vector<int> said) {
    auto metrics = task->metrics();
    const auto count = said.size();
    task->score(batch, {shaped<int>({1, count}, std::move(said)), {}}, metrics);
    CHECK(metrics[1].value() == 1 - metrics[0].value());
    return metrics[0].value();
  };
  CHECK(error({a, b, 10}) == 0);
  CHECK(error({a, b}) == 1);
  CHECK(error({a, 10, -1}) == 1);
  CHECK(error({(a + 1) % 10, b, 10}) == 1);
  CHECK(error({a, b, (a + 1) % 10}) == 1);
}

TEST_CASE("bad settings and folders are rejected") {
  Folder folder;
  const auto says = [&](const std::string& arguments) { return refusal(folder, [&] { make(arguments); }); };
  CHECK(has(says("path=" + (folder / "none")), "none: is not a folder"));
  CHECK(has(says("path=" + folder.path()), "there is no train-images-idx3-ubyte, plain or .gz"));
  write_mnist(folder, 20, 5);
  CHECK(has(says("path=" + folder.path()), "heldout must be below the number of training images, 20, got 5000"));
  CHECK(has(says("heldout=4,canvas=2,path=" + folder.path()), "canvas must be at least the digits' own size, 3, got 2"));
  CHECK(has(says("heldout=4,clutter=1,path=" + folder.path()), "clutter_size must be at most the digits' own size, 2, got 8"));
  CHECK(has(says("heldout=4,digits=3,canvas=5,path=" + folder.path()),
            "3 digits side by side take 6 pixels, but the canvas has 5; give canvas=6"));
  folder.write("train-labels-idx1-ubyte", idx({0x801, 2}, std::string("\1\2")));
  CHECK(has(says("heldout=4,path=" + folder.path()), "2 labels, but train-images-idx3-ubyte.gz holds 20 images"));
}

TEST_CASE("the last prediction is scored") {
  const auto task = make("size=8,examples=10");
  const auto batch = task->batch(Split::train, {3, 4});
  auto metrics = task->metrics();
  task->score(batch, {shaped<int>({2, 2}, {0, 3, 4, 5}), {}}, metrics);
  CHECK(metrics[0].value() == 0.5);
  CHECK(metrics[1].value() == 0.5);
}

}  // namespace hardgrad::testing::glimpse_test
