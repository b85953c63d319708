// Binary images: generated, from files, and the three ways to turn greys into bits.
#include <cmath>
#include <numeric>
#include <set>

#include "core/random/randomness.hpp"
#include "experiments/tasks/task.hpp"
#include "tests/experiments/tasks/support.hpp"

namespace hardgrad::testing::images_test {
using namespace tasks;

namespace {

std::unique_ptr<Task> make(const std::string& arguments, std::uint64_t seed = 1) {
  return make_task(Spec::parse("images[" + arguments + "]"), Key(seed));
}
std::vector<int> first(std::size_t count) {
  std::vector<int> all(count);
  std::iota(all.begin(), all.end(), 0);
  return all;
}
std::vector<double> bits(const Batch& batch) { return batch.numbers("image").storage(); }

/// Four training and two test images of 3x2 pixels, all of one grey.
void write_grey(const Folder& folder, char grey) {
  for (const auto& [part, count] : {std::pair{"train", 4}, std::pair{"t10k", 2}})
    folder.write_gz(std::string(part) + "-images-idx3-ubyte.gz",
                    std::string("\0\0\x08\x03\0\0\0", 7) + static_cast<char>(count) + std::string("\0\0\0\x03\0\0\0\x02", 8) +
                        std::string(6 * count, grey));
}

}  // namespace

TEST_CASE("a generated batch has bits, and every image a unique id") {
  for (const auto* binarise : {"dynamic", "static", "thresholded"}) {
    CAPTURE(binarise);
    const auto task = make(std::string("size=12,examples=40,binarise=") + binarise);
    CHECK(task->dimensions() == Dimensions{{"height", 12}, {"width", 12}, {"levels", 2}});
    CHECK(task->bound_samples() == 100);
    std::set<std::uint32_t> ids;
    for (auto split : {Split::train, Split::heldout, Split::test}) {
      CHECK(task->size(split) == (split == Split::train ? 40 : 10));
      const auto batch = task->batch(split, first(task->size(split)));
      for (auto id : batch.id) CHECK(ids.insert(id).second);
      double ones = 0;
      for (double bit : bits(batch)) {
        CHECK((bit == 0 || bit == 1));
        ones += bit;
      }
      CHECK(ones > 4 * static_cast<double>(batch.id.size()));
      CHECK(bits(batch) == bits(task->batch(split, first(task->size(split)))));
    }
    CHECK_THROWS_AS(task->batch(Split::test, {10}), Bug);
  }
}

TEST_CASE("options of all choices of all images are counted together") {
  const auto task = make("size=12,examples=40");
  Observation seen{zeros<int>({2, 0}), full<int>({2, 4}, 0)};
  seen.choices.storage() = {5, 5, 0, 0, 5, 5, 5, 5};
  auto metrics = task->metrics();
  task->score(task->batch(Split::test, {0, 1}), seen, metrics);
  CHECK(value(metrics, "options_used") == doctest::Approx(std::pow(4, 0.25) * std::pow(4 / 3.0, 0.75)));
}

TEST_CASE("dynamic bits are drawn anew every epoch, static ones once, thresholded ones never") {
  const auto image = [](const Task& task, int epoch) { return bits(task.training_batch({0, 1, 2, 3}, Key(epoch))); };
  const auto dynamic = make("size=12,examples=40"), fixed = make("size=12,examples=40,binarise=static");
  CHECK(image(*dynamic, 1) != image(*dynamic, 2));
  CHECK(image(*dynamic, 1) == image(*dynamic, 1));
  CHECK(image(*fixed, 1) == image(*fixed, 2));
  CHECK(image(*fixed, 1) == bits(fixed->batch(Split::train, {0, 1, 2, 3})));
  CHECK(bits(fixed->batch(Split::test, {0})) == bits(dynamic->batch(Split::test, {0})));  // test bits do not change
  // Static bits are kept, dynamic ones of training images drawn from the greys: with the same key they are the same.
  CHECK(bits(fixed->batch(Split::train, {3, 39, 3})) == bits(dynamic->batch(Split::train, {3, 39, 3})));
  const auto at = [&](const char* threshold) {
    const auto all = image(*make(std::string("size=12,examples=40,binarise=thresholded,threshold=") + threshold), 1);
    return std::accumulate(all.begin(), all.end(), 0.0);
  };
  CHECK(at("0") > at("0.5"));
  CHECK(at("0.5") > at("0.99"));
}

TEST_CASE("a grey of v is a bit with probability v / 255") {
  Folder folder;
  write_grey(folder, 51);  // a fifth
  const auto task = make("heldout=1,path=" + folder.path());
  CHECK(task->size(Split::train) == 3);
  CHECK(task->size(Split::heldout) == 1);
  CHECK(task->size(Split::test) == 2);
  double ones = 0, all = 0;
  for (int epoch = 0; epoch < 500; ++epoch)
    for (double bit : bits(task->training_batch({0, 1, 2}, Key(epoch)))) {
      ones += bit;
      ++all;
    }
  CHECK(all == 9000);
  CHECK(ones / all == doctest::Approx(0.2).epsilon(0.1));  // a standard error is 0.004
  for (char extreme : {'\0', '\xFF'}) {
    Folder other;
    write_grey(other, extreme);
    const auto certain = make("heldout=1,path=" + other.path());
    for (double bit : bits(certain->training_batch({0, 1, 2}, Key(3)))) CHECK(bit == (extreme != 0));
  }
}

TEST_CASE("fixed bits are drawn by the image's id, a number for each pixel") {
  Folder folder;
  write_grey(folder, 51);
  const auto task = make("binarise=static,heldout=1,path=" + folder.path());
  KeyedRandomness random(Key(1) / "bits");
  for (auto [split, count] : {std::pair{Split::train, 3}, {Split::heldout, 1}, {Split::test, 2}}) {
    const auto batch = task->batch(split, first(count));
    std::vector<double> expected;
    for (auto id : batch.id)
      for (std::uint32_t p = 0; p < 6; ++p) expected.push_back(random.uniform({.example = id, .index = p}) < 51 / 255.0);
    CHECK(bits(batch) == expected);
  }
}

TEST_CASE("images given as bits: three files, and a limit on one leaves the others unchanged") {
  Folder folder;
  folder.write("binarized_mnist_train.amat", "0 1 1 0\n1 1 1 1\n0 0 0 1\n");
  folder.write_gz("binarized_mnist_valid.amat.gz", "0 0 0 0\n");
  folder.write("binarized_mnist_test.amat", "1 0 0 1\n0 1 0 0\n");
  const auto task = make("path=" + folder.path()), some = make("limit=1,path=" + folder.path());
  CHECK(task->size(Split::train) == 3);
  CHECK(some->size(Split::train) == 1);
  CHECK(task->dimensions().at("height") == 2);
  CHECK(bits(task->training_batch({2, 0}, Key(1))) == std::vector<double>{0, 0, 0, 1, 0, 1, 1, 0});
  CHECK(bits(task->batch(Split::test, {0})) == std::vector<double>{1, 0, 0, 1});
  CHECK(task->batch(Split::test, {1}).id == some->batch(Split::test, {1}).id);
  CHECK(has(task->provenance(), "3 images of 2x2 to train, 1 held out, 2 to test"));
}

TEST_CASE("bad settings and folders are rejected") {
  Folder folder;
  const auto says = [&](const std::string& arguments) { return refusal(folder, [&] { make(arguments); }); };
  CHECK(has(says("path=" + (folder / "none")), "none: is not a folder"));
  CHECK(has(says("path=" + folder.path()), "there is no train-images-idx3-ubyte, plain or .gz"));
  CHECK(has(says("threshold=1"), "threshold must be below 1"));
  write_grey(folder, 9);
  CHECK(has(says("path=" + folder.path()), "images: heldout must be below the number of training images, 4, got 5000"));
  folder.write("binarized_mnist_train.amat", "0 1 1 0\n");
  CHECK(has(says("path=" + folder.path()), "there is no binarized_mnist_valid.amat, plain or .gz"));
  folder.write("binarized_mnist_valid.amat", "0\n");
  CHECK(says("path=" + folder.path()) == "binarized_mnist_valid.amat: images of 1x1, but training images are 2x2");
}

}  // namespace hardgrad::testing::images_test
