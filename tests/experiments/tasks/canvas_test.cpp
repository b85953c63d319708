// Digits on canvases: positions, bits and noise, files, scores, bad input.
#include <numeric>
#include <set>

#include "experiments/tasks/task.hpp"
#include "tests/experiments/tasks/support.hpp"

namespace hardgrad::testing::canvas_test {
using namespace tasks;

namespace {

std::unique_ptr<Task> make(const std::string& arguments, std::uint64_t seed = 1) {
  return make_task(Spec::parse("canvas[" + arguments + "]"), Key(seed));
}
std::vector<double> image(const Batch& batch) { return batch.numbers("image").storage(); }

/// Files of images `rows` x `cols`: twenty to train, five to test. The first pixel is white, the others are black.
void write_mnist(const Folder& folder, int rows, int cols) {
  for (const auto& [part, count] : {std::pair{"train", 20}, std::pair{"t10k", 5}}) {
    std::string bytes{
        0, 0, 8, 3, 0, 0, 0, static_cast<char>(count), 0, 0, 0, static_cast<char>(rows), 0, 0, 0, static_cast<char>(cols)};
    for (int i = 0; i < count; ++i) bytes += std::string(1, '\0') + std::string(rows * cols - 1, '\xff');
    folder.write_gz(std::string(part) + "-images-idx3-ubyte.gz", bytes);
  }
}

}  // namespace

TEST_CASE("a generated canvas has a digit in bits at its position, noise, and a unique id") {
  const auto task = make("size=8,canvas=20,examples=40,noise=3");
  CHECK(task->dimensions() == Dimensions{{"height", 20}, {"width", 20}, {"window", 8}, {"noise", 3}});
  std::set<std::uint32_t> ids;
  std::set<int> places;
  double squares = 0, count = 0;
  for (auto split : {Split::train, Split::heldout, Split::test}) {
    CHECK(task->size(split) == (split == Split::train ? 40 : 10));
    std::vector<int> all(task->size(split));
    std::iota(all.begin(), all.end(), 0);
    const auto batch = task->batch(split, all);
    for (std::size_t b = 0; b < all.size(); ++b) {
      CHECK(ids.insert(batch.id[b]).second);
      const auto box = row_of(batch.ints("box"), b);
      const int top = box[0], left = box[1];
      CHECK((box[2] == top + 8 && box[3] == left + 8));
      CHECK((top >= 0 && top <= 12 && left >= 0 && left <= 12));
      places.insert(20 * top + left);
      double ink = 0;
      for (int p = 0; p < 400; ++p) {
        const double bit = row_of(batch.numbers("image"), b)[p];
        CHECK((bit == 0 || bit == 1));
        if (bit == 1) CHECK((p / 20 >= top && p / 20 < top + 8 && p % 20 >= left && p % 20 < left + 8));
        ink += bit;
      }
      CHECK(ink > 3);
      for (double n : row_of(batch.numbers("noise"), b)) squares += n * n, ++count;
    }
    CHECK(image(batch) == image(task->batch(split, all)));
  }
  CHECK(places.size() > 40);
  CHECK(count == 180);
  CHECK(squares / count > 0.7);  // the variance of 180 standard normal numbers
  CHECK(squares / count < 1.3);
  CHECK_THROWS_AS(task->batch(Split::test, {10}), Bug);
  CHECK(make("size=8,canvas=20,examples=40,noise=0")->batch(Split::train, {0}).reals.count("noise") == 0);
}

TEST_CASE("positions, bits and noise change every epoch, and do not depend on the batch") {
  const auto task = make("size=8,canvas=20,examples=40");
  const auto first = task->training_batch({0, 1, 2}, Key(1)), second = task->training_batch({0, 1, 2}, Key(2));
  CHECK(image(first) == image(task->training_batch({0, 1, 2}, Key(1))));
  CHECK(first.ints("box").storage() != second.ints("box").storage());
  CHECK(first.numbers("noise").storage() != second.numbers("noise").storage());
  CHECK(first.id == second.id);
  const auto alone = task->training_batch({2}, Key(1));
  const auto row = row_of(first.numbers("image"), 2);
  CHECK(std::equal(row.begin(), row.end(), image(alone).begin()));
  CHECK(alone.numbers("noise").flat(4) == first.numbers("noise").flat(14));
}

TEST_CASE("files: splits, and white pixels at the digit's position") {
  Folder folder;
  write_mnist(folder, 3, 3);
  const auto task = make("heldout=4,canvas=9,limit=7,path=" + folder.path());
  CHECK(task->size(Split::train) == 7);
  CHECK(task->size(Split::heldout) == 4);
  CHECK(task->size(Split::test) == 5);
  CHECK(task->batch(Split::test, {2}).id[0] == 22);
  CHECK(task->batch(Split::heldout, {1}).id[0] == 17);
  for (int i = 0; i < 7; ++i) {
    const auto batch = task->batch(Split::train, {i});
    const auto box = row_of(batch.ints("box"), 0);
    CHECK((box[2] == box[0] + 3 && box[3] == box[1] + 3));
    for (int y = 0; y < 3; ++y)
      for (int x = 0; x < 3; ++x) CHECK(image(batch)[9 * (box[0] + y) + box[1] + x] == (x > 0 || y > 0));
    CHECK(std::accumulate(batch.numbers("image").begin(), batch.numbers("image").end(), 0.0) == 8);
  }
  CHECK(has(task->provenance(), "7 digits of 3x3 to train, 4 held out, 5 to test, on 9x9 pixels"));
}

TEST_CASE("bad settings and files are rejected") {
  Folder folder;
  const auto says = [&](const std::string& arguments) { return refusal(folder, [&] { make(arguments); }); };
  CHECK(has(says("size=12,canvas=11"), "canvas must be at least the digits' own size, 12, got 11"));
  CHECK(has(says("path=" + (folder / "none")), "none: is not a folder"));
  CHECK(has(says("path=" + folder.path()), "there is no train-images-idx3-ubyte, plain or .gz"));
  write_mnist(folder, 3, 2);
  CHECK(has(says("heldout=4,path=" + folder.path()), "images of 3x2; they must be square"));
  write_mnist(folder, 3, 3);
  CHECK(has(says("path=" + folder.path()), "heldout must be below the number of training images, 20, got 5000"));
  folder.write("t10k-images-idx3-ubyte.gz", "no image");
  CHECK(has(says("heldout=4,path=" + folder.path()), "t10k-images-idx3-ubyte.gz"));
}

TEST_CASE("scores: the last position's distance from the digit, and the share of its ink in the window") {
  Folder folder;
  write_mnist(folder, 3, 3);
  const auto task = make("heldout=4,canvas=9,path=" + folder.path());
  const auto batch = task->batch(Split::train, {0, 1});
  const auto middle = [&](int b) { return 9 * (row_of(batch.ints("box"), b)[0] + 1) + row_of(batch.ints("box"), b)[1] + 1; };
  auto metrics = task->metrics();
  const int aside = middle(1) + (middle(1) % 9 < 4 ? 2 : -2);  // two of the digit's three columns, or one, are in the window
  task->score(batch, {shaped<int>({2, 2}, {0, middle(0), aside, -1}), {}}, metrics);
  CHECK(metrics[0].value() == 1);                 // 0 and 2 pixels
  const double seen = aside > middle(1) ? 3 : 2;  // the first pixel is black
  CHECK(metrics[1].value() == doctest::Approx((1 + seen / 8) / 2));
  auto none = task->metrics();
  task->score(batch, {shaped<int>({2, 1}, {-1, -1}), {}}, none);
  CHECK(none[0].denominator == 0);
}

}  // namespace hardgrad::testing::canvas_test
