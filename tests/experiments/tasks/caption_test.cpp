// Captions describe their images.
#include <map>
#include <numeric>
#include <random>
#include <set>

#include "experiments/tasks/generated_images.hpp"
#include "experiments/tasks/task.hpp"
#include "tests/experiments/tasks/support.hpp"

namespace hardgrad::testing::caption_test {
using namespace tasks;

namespace {

std::unique_ptr<Task> make(const std::string& arguments, std::uint64_t seed = 1) {
  return make_task(Spec::parse("caption[" + arguments + "]"), Key(seed));
}
Batch whole(const Task& task, Split split) {
  std::vector<int> all(task.size(split));
  std::iota(all.begin(), all.end(), 0);
  return task.batch(split, all);
}
constexpr Split splits[] = {Split::train, Split::heldout, Split::test};
const std::map<std::string, std::vector<bool>> bright = {  // red, green, blue
    {"red", {true, false, false}},
    {"green", {false, true, false}},
    {"blue", {false, false, true}},
    {"yellow", {true, true, false}},
    {"white", {true, true, true}}};

struct Ink {
  int pixels = 0;
  std::vector<double> mean = {0, 0, 0};
};
Ink ink_in(const CaptionedScene& scene, const ScenePainter& painter, int cell) {
  Ink ink;
  const auto side = painter.side();
  for (std::size_t i = 0; i < 8; ++i)
    for (std::size_t j = 0; j < 8; ++j) {
      const auto* pixel = &scene.image[((cell / painter.grid * 8 + i) * side + cell % painter.grid * 8 + j) * 3];
      if (pixel[0] + pixel[1] + pixel[2] == 0) continue;
      ++ink.pixels;
      for (int c = 0; c < 3; ++c) ink.mean[c] += pixel[c];
    }
  for (double& c : ink.mean) c /= std::max(ink.pixels, 1);
  return ink;
}

// Two images of three cells with two numbers each.
std::string features(const Folder& folder, const std::string& shape = "(2, 3, 2)") {
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': " + shape + ", }";
  header.resize(117, ' ');
  header += '\n';
  std::string bytes = "\x93NUMPY\x01";
  bytes += '\0';
  bytes += static_cast<char>(header.size());
  bytes += '\0';
  bytes += header;
  for (float x = 0; x < 12; ++x) bytes.append(reinterpret_cast<const char*>(&x), 4);
  return folder.write("features.npy", bytes);
}

}  // namespace

TEST_CASE("captions name the objects in reading order, with their colours and true relations") {
  const ScenePainter painter{.grid = 3, .objects = 4, .noise = 0};
  std::map<std::string, int> seen;
  for (int n = 0; n < 500; ++n) {
    const auto scene = painter.paint(Key(4) / static_cast<std::uint64_t>(n));
    REQUIRE(scene.gold.size() == scene.caption.size());
    std::set<int> named;
    int previous = -1;
    std::string relation;
    for (std::size_t t = 0; t < scene.caption.size(); ++t) {
      const auto& word = scene.caption[t];
      ++seen[word];
      if (word == "left" || word == "above") relation = word;
      const auto colour = bright.find(word);
      CHECK((scene.gold[t] >= 0) == (word != "a" && word != "left" && word != "of" && word != "above"));
      if (colour == bright.end()) continue;
      const int cell = scene.gold[t];
      CHECK(scene.gold[t + 1] == cell);  // the shape
      CHECK(named.insert(cell).second);
      CHECK(cell > previous);
      if (previous >= 0) CHECK((relation == "left") == (cell / 3 == previous / 3));
      previous = cell;
      const auto ink = ink_in(scene, painter, cell);
      CHECK(ink.pixels >= 8);
      for (int c = 0; c < 3; ++c) CHECK((ink.mean[c] > 100) == colour->second[c]);
    }
    for (int cell = 0; cell < 9; ++cell) CHECK((ink_in(scene, painter, cell).pixels > 0) == (named.count(cell) == 1));
  }
  for (const auto* word : {"red", "green", "blue", "yellow", "white", "circle", "square", "triangle", "cross"})
    CHECK(seen[word] > 100);
  CHECK(seen.size() == 13);
}

TEST_CASE("shapes differ in their pixels") {
  const ScenePainter painter{.grid = 1, .objects = 1, .noise = 0};
  std::map<std::string, std::pair<double, int>> pixels;
  for (int n = 0; n < 400; ++n) {
    const auto scene = painter.paint(Key(6) / static_cast<std::uint64_t>(n));
    auto& [sum, count] = pixels[scene.caption.back()];
    sum += ink_in(scene, painter, 0).pixels;
    ++count;
  }
  REQUIRE(pixels.size() == 4);
  const auto mean = [&](const char* shape) { return pixels[shape].first / pixels[shape].second; };
  CHECK(mean("circle") > mean("square") * 0.9);
  CHECK(mean("square") > 1.2 * mean("cross"));
  CHECK(mean("circle") > 1.2 * mean("triangle"));
}

TEST_CASE("fields: captions end with the end mark, pixels are in 0 to 1, an example is in one split") {
  const auto task = make("examples=200,grid=2,objects=2");
  const auto dims = task->dimensions();
  CHECK(dims.at("cells") == 4);
  CHECK(dims.at("height") == 16);
  CHECK(dims.count("features") == 0);
  std::set<std::uint32_t> ids;
  for (auto split : splits) {
    const auto batch = whole(*task, split);
    REQUIRE(batch.examples() > 5);
    CHECK(batch.numbers("image").shape() == std::vector<std::size_t>{batch.id.size(), 16, 16, 3});
    for (double x : batch.numbers("image")) CHECK((x >= 0 && x <= 1));
    for (int b = 0; b < batch.examples(); ++b) {
      CHECK(ids.insert(batch.id[b]).second);
      const int T = batch.ints("target_length")(b);
      CHECK(T <= dims.at("target_length"));
      CHECK(task->word("target", row_of(batch.ints("target"), b)[T - 1]) == "<eos>");
      CHECK(task->word("target", row_of(batch.ints("target"), b)[0]) == "a");
      CHECK(row_of(batch.ints("gold"), b)[1] >= 0);
    }
  }
  CHECK(ids.size() == 200);
  CHECK(whole(*make("examples=200,grid=2,objects=2"), Split::test).numbers("image").storage() ==
        whole(*task, Split::test).numbers("image").storage());
}

TEST_CASE("files: captions of images with features") {
  Folder folder;
  const auto array = features(folder);
  const auto captions = folder.write("captions.txt", "0\tA dog runs.\n1\tTwo cats\n\n0\tA dog\n");
  const auto task = make("heldout=0,test=0,path=" + captions + ",features=" + array);
  CHECK(task->size(Split::train) == 3);
  CHECK(task->dimensions().at("features") == 2);
  CHECK(task->dimensions().at("cells") == 3);
  CHECK(task->dimensions().count("height") == 0);
  CHECK(task->metrics().size() == 3);
  const auto batch = whole(*task, Split::train);
  for (int b = 0; b < 3; ++b) {
    const bool second = task->word("target", row_of(batch.ints("target"), b)[0]) == "two";
    CHECK(row_of(batch.numbers("features"), b)[0] == (second ? 6 : 0));
    CHECK(row_of(batch.ints("gold"), b)[0] == -1);
  }
  CHECK(make("heldout=0,test=0,path=" + captions + ",features=" + features(folder, "(2, 3, 1, 2)"))->dimensions().at("cells") ==
        3);
}

TEST_CASE("bad settings and files are rejected") {
  Folder folder;
  const auto array = features(folder);
  const auto says = [&](const std::string& text) {
    const auto path = folder.write("c.txt", text);
    return refusal(folder, [&] { make("path=" + path + ",features=" + array); });
  };
  CHECK(has(says("0 a dog\n"), "c.txt:1:8: one column only: expected the picture's number, a tab and its caption"));
  CHECK(has(says("0\ta dog\n2\ta cat\n"), "c.txt:2:1: \"2\" is not a picture: features.npy has numbers 0 to 1"));
  CHECK(has(says("-1\ta cat\n"), "c.txt:1:1: \"-1\" is not a picture"));
  CHECK(has(says("1x\ta cat\n"), "c.txt:1:1: \"1x\" is not a picture"));
  CHECK(has(says("1\t...\n"), "c.txt:1:3: a caption without words"));
  CHECK(has(says("\n\n"), "c.txt: holds no caption"));
  CHECK(has(says(""), "c.txt: is empty"));
  CHECK(has(says("0\t\xff\n"), "c.txt:1:3: byte 0xFF is not UTF-8"));
  std::string endless = "0\t";
  for (int i = 0; i < 300; ++i) endless += "word ";
  CHECK(has(says(endless), "c.txt:1:3: a caption of 300 words"));
  const auto asks = [&](const std::string& arguments) { return refusal(folder, [&] { make(arguments); }); };
  CHECK(has(asks("path=" + array), "need each other; give both or neither"));
  CHECK(has(asks("heldout=0.6,test=0.6"), "together must be below 1"));
  CHECK(
      has(asks("path=" + (folder / "c.txt") + ",features=" + features(folder, "(12,)")), "features.npy: has 1 axes; expected"));
}

TEST_CASE("a damaged file of captions is read or rejected with one line") {
  Folder folder;
  const auto array = features(folder);
  const std::string good = "0\tA dog runs.\n1\tTwo cats\n\n0\tA dog\n";
  std::mt19937 random(3);
  int refused = 0, read = 0;
  for (int i = 0; i < 1000; ++i) {
    auto damaged = good;
    for (auto flips = random() % 4; flips > 0; --flips) damaged[random() % damaged.size()] = static_cast<char>(random() % 256);
    if (random() % 3 == 0) damaged.resize(random() % damaged.size());
    const auto path = folder.write("d.txt", damaged);
    const auto what = refusal(folder, [&] { make("heldout=0,test=0,path=" + path + ",features=" + array); });
    CHECK((what == "accepted" || what.starts_with("d.txt")));
    ++(what == "accepted" ? read : refused);
  }
  CHECK(refused > 100);
  CHECK(read > 100);
}

TEST_CASE("accuracy, hits on the named object, and decoding") {
  const auto task = make("examples=40");
  const auto batch = task->batch(Split::train, {0, 1});
  const auto &target = batch.ints("target"), &gold = batch.ints("gold"), &length = batch.ints("target_length");
  const auto T = target.shape()[1];
  Observation seen{full<int>({2, T}, -1), full<int>({2, T}, 0)};
  int content = 0, words = 0, hits = 0;
  for (int b = 0; b < 2; ++b)
    for (int t = 0; t < length(b); ++t) {
      row_of(seen.predictions, b)[t] = b == 0 || t > 0 ? row_of(target, b)[t] : 0;
      row_of(seen.choices, b)[t] = b == 0 && row_of(gold, b)[t] >= 0 ? row_of(gold, b)[t] : (row_of(gold, b)[t] + 1) % 16;
      ++words;
      content += row_of(gold, b)[t] >= 0;
      hits += b == 0 && row_of(gold, b)[t] >= 0;
    }
  auto metrics = task->metrics();
  task->score(batch, seen, metrics);
  CHECK(metrics[0].value() == doctest::Approx((words - 1.0) / words));
  CHECK(metrics[3].value() == doctest::Approx(double(hits) / content));
  task->score_decoded(batch, seen, metrics);
  CHECK(metrics[2].value() == 0.5);
  CHECK(metrics[1].value() > 0.5);
}

TEST_CASE("other scenes use the vocabulary of training") {
  const auto trained = make("examples=300");
  const auto other = make_task(Spec::parse("caption[examples=5,heldout=0,test=0]"), Key(2), trained.get());
  CHECK(make("examples=5,heldout=0,test=0", 2)->dimensions().at("target_vocabulary") <
        trained->dimensions().at("target_vocabulary"));
  CHECK(other->dimensions().at("target_vocabulary") == trained->dimensions().at("target_vocabulary"));
  const auto batch = other->batch(Split::train, {0, 1, 2, 3, 4});
  for (int word : batch.ints("target")) CHECK(trained->word("target", word) == other->word("target", word));
}

}  // namespace hardgrad::testing::caption_test
