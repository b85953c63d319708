// Captions of pictures: generated scenes of coloured shapes, or features of pictures and captions in files.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/support/text_metrics.hpp"
#include "experiments/support/text.hpp"
#include "experiments/tasks/generated_images.hpp"
#include "experiments/tasks/listed.hpp"
#include "experiments/tasks/loaders/arrays.hpp"
#include "experiments/tasks/loaders/input_file.hpp"
#include "experiments/tasks/text.hpp"

namespace hardgrad::tasks::caption {
namespace {

struct Config {
  std::string path, features;
  std::size_t vocabulary = 10000;
  SplitShares shares{.heldout = 0.1, .test = 0.1};
  int examples = 1000, grid = 4, objects = 3;
  double noise = 0.1;

  void declare(Fields& field) {
    field.file(path, "path", "captions, one per line: number of the picture, tab, caption; empty: generated scenes");
    field.file(features, "features", "float array [pictures, cells, numbers], or [pictures, rows, columns, numbers] (.npy)");
    field(vocabulary, "vocabulary", 5, 1e6, "entries, including 4 special ones; rarer words are unknown");
    shares.declare(field, "share of the pictures held out for validation", "share of the pictures held out for the test");
    field(examples, "examples", 1, 1e5, "scenes to generate");
    field(grid, "grid", 1, 16, "cells of 8 x 8 pixels per side (generated)");
    field(objects, "objects", 1, 16, "most objects in a scene (generated)");
    field(noise, "noise", 0, 1, "uniform noise from 0 to this on every number (generated)");
  }
};

/// Fields: "image" [B, H, W, 3] of generated scenes, or "features" [B, L, D] from a file; "target" [B, T] words with the final
/// end mark and "target_length" [B]; "gold" [B, T] the cell of the object that a word describes, -1: none or unknown.
class Caption final : public Listed {
 public:
  /// The vocabulary is that of the training split, or of `like`, the task that a network was trained on.
  Caption(const Config& config, Key key, const Caption* like) {
    require_shares("caption", config.shares);
    const auto path = find_input(config.path), features = find_input(config.features);
    if (path.empty() != features.empty())
      throw UsageError(
          "caption: path (captions) and features (an array of the pictures) need each other; give both or neither");
    if (path.empty())
      paint({config.grid, config.objects, config.noise}, config.examples, key);
    else
      read(path, features);

    std::vector<std::string> groups, texts;  // all captions of a picture are in one split
    for (const auto& example : examples_) {
      groups.push_back(std::to_string(example.picture));
      texts.push_back(fmt::format("{}\t{}", groups.back(), fmt::join(example.words, " ")));
    }
    const auto splits = split_by_group(groups, config.shares.heldout, config.shares.test, key / "split");
    part(texts, splits, key / "order", "no caption is left to train on; give more, or heldout=0,test=0");
    if (like) {
      vocabulary_ = like->vocabulary_;
    } else {
      for (int i : of(Split::train)) vocabulary_.count(examples_[i].words);
      vocabulary_.close(4, config.vocabulary);
    }
    for (auto& example : examples_) {
      example.target = vocabulary_.indices(example.words);
      example.target.push_back(Vocabulary::end);
      longest_ = std::max(longest_, example.target.size());
    }
    provenance_ += fmt::format(": {} captions to train, {} held out, {} to test", size(Split::train), size(Split::heldout),
                               size(Split::test));
  }

  Dimensions dimensions() const override {
    Dimensions known{{"cells", static_cast<int>(cells_)},
                     {"target_vocabulary", vocabulary_.size()},
                     {"target_length", static_cast<int>(longest_)},
                     {"bos", Vocabulary::begin},
                     {"eos", Vocabulary::end}};
    if (side_ > 0)
      known["height"] = known["width"] = static_cast<int>(side_);
    else
      known["features"] = static_cast<int>(features_.shape()[2]);
    return known;
  }

  Batch batch(Split split, const std::vector<int>& indices) const override {
    Batch batch;
    batch.id = ids(split, indices);
    auto target = padded(batch.id, examples_, &Example::target);
    const auto B = indices.size();
    Array<double> picture =
        zeros<double>(side_ > 0 ? std::vector{B, side_, side_, std::size_t{3}} : std::vector{B, cells_, features_.shape()[2]});
    Array<int> gold = full<int>(target.values.shape(), -1);
    for (std::size_t b = 0; b < B; ++b) {
      const auto& example = examples_[batch.id[b]];
      if (side_ > 0)
        xt::view(picture, b) = xt::view(images_, example.picture) / 255.0;
      else
        xt::view(picture, b) = xt::view(features_, example.picture);
      std::copy(example.gold.begin(), example.gold.end(), row_of(gold, b).begin());
    }
    batch.reals[side_ > 0 ? "image" : "features"] = std::move(picture);
    batch.integers = {
        {"target", std::move(target.values)}, {"target_length", std::move(target.length)}, {"gold", std::move(gold)}};
    return batch;
  }

  std::string word(const std::string& field, int number) const override {
    return field != "target" || number == Vocabulary::pad ? std::string() : vocabulary_.word(number);
  }

  std::vector<Metric> metrics() const override {
    std::vector<Metric> all = {{.name = "token_accuracy", .unit = "1", .share = true},
                               {.name = "bleu", .unit = "1", .share = true, .sums = {}, .formula = bleu},
                               {.name = "exact_match", .unit = "1", .share = true}};
    if (side_ > 0) all.push_back({.name = "object_hit", .unit = "1"});
    return all;
  }
  /// object_hit: the choice at an object's word is (or has) the object's cell.
  void score(const Batch& batch, const Observation& seen, std::vector<Metric>& metrics) const override {
    const auto &target = batch.ints("target"), &gold = batch.ints("gold"), &length = batch.ints("target_length");
    for (std::size_t b = 0; b < length.size(); ++b) {
      const auto n = static_cast<std::size_t>(length(b));
      for (std::size_t t = 0; t < n; ++t) {
        metrics[0].add(seen.predictions(b, t) == target(b, t));
        const auto chosen = row_of(seen.choices, b).subspan(t * seen.subset_size, seen.subset_size);
        if (gold(b, t) < 0 || chosen.front() < 0) continue;
        metrics[3].add(std::find(chosen.begin(), chosen.end(), gold(b, t)) != chosen.end());
      }
    }
  }
  bool decodes() const override { return true; }
  void score_decoded(const Batch& batch, const Observation& seen, std::vector<Metric>& metrics) const override {
    const auto &target = batch.ints("target"), &length = batch.ints("target_length");
    for (std::size_t b = 0; b < length.size(); ++b) {
      const auto reference = row_of(target, b).first(static_cast<std::size_t>(length(b)) - 1);
      const auto answer = before_end(row_of(seen.predictions, b), Vocabulary::end);
      add_bleu(answer, reference, Vocabulary::unknown, metrics[1].sums);
      metrics[2].add(std::equal(answer.begin(), answer.end(), reference.begin(), reference.end()));
    }
  }

 private:
  struct Example {
    std::size_t picture;
    std::vector<std::string> words;
    std::vector<int> gold, target;
  };

  void paint(const ScenePainter& painter, int count, Key key) {
    side_ = painter.side();
    cells_ = static_cast<std::size_t>(painter.grid) * painter.grid;
    images_ = zeros<std::uint8_t>({static_cast<std::size_t>(count), side_, side_, 3});
    for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
      auto scene = painter.paint(key / "scene" / static_cast<std::uint64_t>(i));
      std::copy(scene.image.begin(), scene.image.end(), row_of(images_, i).begin());
      examples_.push_back({i, std::move(scene.caption), std::move(scene.gold), {}});
    }
  }

  void read(const std::string& path, const std::string& features) {
    features_ = read_npy(features);
    auto shape = features_.shape();
    if (shape.size() == 4) shape = {shape[0], shape[1] * shape[2], shape[3]};  // a grid of cells
    features_.reshape(shape);
    if (shape.size() != 3)
      throw InputError(
          fmt::format("{}: has {} axes; expected pictures x cells x numbers, or pictures x rows x columns x numbers", features,
                      shape.size()));
    cells_ = shape[1];
    const auto text = read_text(path);
    for (std::size_t i = 0; i < text.lines.size(); ++i) {
      const std::string_view line = text.lines[i];
      if (line.find_first_not_of(" \t") == std::string_view::npos) continue;
      const auto tab = line.find('\t');
      if (tab == std::string_view::npos)
        refuse_input(path, i + 1, line.size() + 1, "one column only: expected the picture's number, a tab and its caption");
      const auto picture = number_of<std::size_t>(line.substr(0, tab));
      if (!picture || *picture >= shape[0])
        refuse_input(path, i + 1, 1,
                     fmt::format("\"{}\" is not a picture: {} has numbers 0 to {}",
                                 line.substr(0, std::min<std::size_t>(tab, 40)), features, shape[0] - 1));
      Example example{*picture, tokenize(line.substr(tab + 1), true), {}, {}};
      std::erase_if(example.words, [](const std::string& word) { return is_punctuation(word); });
      if (example.words.empty()) refuse_input(path, i + 1, tab + 2, "a caption without words");
      if (example.words.size() > most_words)
        refuse_input(path, i + 1, tab + 2,
                     fmt::format("a caption of {} words; at most {} are taken", example.words.size(), most_words));
      examples_.push_back(std::move(example));
    }
    if (examples_.empty()) refuse_input(path, 0, 0, "holds no caption");
    provenance_ = path + " and " + features;
  }

  static constexpr std::size_t most_words = 200;
  Array<std::uint8_t> images_;  // [pictures, side, side, 3] of generated scenes
  Array<double> features_;      // [pictures, cells, numbers] from a file
  std::size_t side_ = 0, cells_ = 0, longest_ = 0;
  Vocabulary vocabulary_;
  std::vector<Example> examples_;
};

const TaskEntry entry = {
    .name = "caption",
    .summary = "captions of pictures, word by word, with attention to the pictures' cells",
    .data = "generated scenes of coloured shapes, or captions with an array of features (.npy; plain or .gz)",
    .default_model = "captioner",
    .parameters = declared<Config>(),
};
HARDGRAD_TASK(Caption, entry)

}  // namespace
}  // namespace hardgrad::tasks::caption
