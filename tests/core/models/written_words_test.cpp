// Words that are choices (words=sampled): the network is that of given words, rewards are the metrics, every outcome is counted.
#include <doctest/doctest.h>

#include "core/estimator/needs.hpp"
#include "core/models/parts/metric_rewards.hpp"
#include "tests/core/models/given_choices.hpp"

namespace hardgrad::testing::written_words_test {
namespace {

constexpr int eos = 2;
const Dimensions translation{
    {"source_vocabulary", 6}, {"target_vocabulary", 4}, {"source_length", 3}, {"target_length", 3}, {"bos", 1}, {"eos", eos}};
const Dimensions pictures{{"cells", 2},         {"features", 2}, {"target_vocabulary", 4},
                          {"target_length", 3}, {"bos", 1},      {"eos", eos}};

Batch two_examples(const Dimensions& dimensions) {
  Batch batch;
  batch.id = {4, 5};
  batch.integers["source"] = shaped<int>({2, 3}, {3, 4, 5, 4, 1, 0});
  batch.integers["source_length"] = shaped<int>({2}, {3, 2});
  batch.integers["target"] = shaped<int>({2, 3}, {3, 1, eos, 3, eos, 0});
  batch.integers["target_length"] = shaped<int>({2}, {3, 2});
  if (dimensions.contains("features")) {
    batch.reals["features"] = zeros<double>({2, 2, 2});
    batch.reals["features"].storage() = {0.3, -0.2, 0.5, 0.1, -0.4, 0.6, 0.2, -0.1};
  }
  return batch;
}

struct Case {
  std::string model, settings;
  const Dimensions& dimensions;
  int columns = 1;  // choices before each word; 0: none
  std::string of(const std::string& more) const { return model + "[" + settings + more + "]"; }
};
std::vector<Case> cases() {
  const std::string sizes = "embedding=2,hidden=2,";
  return {{"translator", sizes + "feed=none", translation},
          {"translator", sizes + "feed=soft,score=dot", translation},
          {"translator", sizes + "feed=sampled,null=true", translation},
          {"translator", sizes + "feed=sampled,order=context_first", translation},
          {"translator", sizes + "feed=soft,order=context_first", translation},
          {"translator", sizes + "feed=sampled,heads=2", translation, 2},
          {"translator", sizes + "feed=sampled,readout=context", translation},
          {"translator", sizes + "feed=attentional,readout=state", translation},
          {"translator", sizes + "feed=sampled,order=context_first,unit=gated,readout=maxout,start=backward", translation},
          {"translator", sizes + "attention=none,feed=soft", translation, 0},
          {"captioner", sizes + "gate=true", pictures}};
}

/// The choices of the targets: positions, in turn with the words. Finished sentences choose option 0.
Options of_targets(const Case& of, const Batch& batch) {
  Options all;
  for (int t = 0; t < 3; ++t) {
    const auto writes = [&](int b) { return t < batch.ints("target_length")(b); };
    std::vector<int> seen;
    for (int b = 0; b < 2; ++b)
      for (int d = 0; d < of.columns; ++d) seen.push_back(writes(b) ? (t + b + d) % 2 : 0);
    if (of.columns > 0) all.push_back(seen);
    all.emplace_back();
    for (int b = 0; b < 2; ++b) all.back().push_back(writes(b) ? row_of(batch.ints("target"), b)[t] : 0);
  }
  return all;
}

/// The run of a model whose choices are the targets.
struct Run {
  Tape<double> tape;
  std::unique_ptr<Model<double>> model;
  std::unique_ptr<ForcedHandler<double>> handler;
  std::unique_ptr<Episode<double>> episode;
  Run(const Case& of, const std::string& more, const Batch& batch, Options options)
      : model(lively(of.of(more), of.dimensions)) {
    handler = std::make_unique<ForcedHandler<double>>(std::move(options));
    episode = std::make_unique<Episode<double>>(tape, *handler, batch.examples());
    model->run(batch, *episode);
  }
};

}  // namespace

TEST_CASE("written words: the log probability of the target is that of the network with given words") {
  for (const auto& of : cases()) {
    CAPTURE(of.settings);
    const auto batch = two_examples(of.dimensions);
    auto options = of_targets(of, batch);
    const Run written(of, ",words=sampled", batch, options);
    Options attended;
    for (std::size_t n = 0; n < options.size(); ++n)
      if (of.columns > 0 && n % 2 == 0) attended.push_back(options[n]);
    const Run given(of, "", batch, attended);
    std::vector<double> log_p(2), loss(2), at_positions(2), as_given(2);
    for (std::size_t n = 0; n < written.episode->steps().size(); ++n)
      for (int b = 0; b < 2; ++b)
        (of.columns > 0 && n % 2 == 0 ? at_positions : log_p)[b] +=
            written.episode->log_probability(static_cast<int>(n)).value().data[b];
    for (std::size_t n = 0; n < given.episode->steps().size(); ++n)
      for (int b = 0; b < 2; ++b) as_given[b] += given.episode->log_probability(static_cast<int>(n)).value().data[b];
    for (const auto& cost : given.episode->costs())
      for (int b = 0; b < 2; ++b) loss[b] += cost.loss.value().data[b];
    for (int b = 0; b < 2; ++b) {
      CHECK(log_p[b] == doctest::Approx(-loss[b]).epsilon(1e-12));
      CHECK(at_positions[b] == doctest::Approx(as_given[b]).epsilon(1e-12));
    }
  }
}

TEST_CASE("written words: gradients with every kind of answer, and their outcomes") {
  for (const auto& of : cases())
    for (const auto* reward : {"share", "exact"}) {
      if (of.columns == 2) continue;  // answers of several widths
      CAPTURE(of.settings);
      const auto batch = two_examples(of.dimensions);
      check_gradients({.spec = of.of(std::string(",words=sampled,reward=") + reward),
                       .dimensions = of.dimensions,
                       .batch = batch,
                       .forced = of_targets(of, batch),
                       .posterior = false});
    }
}

TEST_CASE("written words: the enumeration has every sentence once, with its reward") {
  for (const auto& of : cases())
    for (const std::string reward : {"bleu", "chrf", "edit", "exact", "f1", "share"}) {
      if (of.columns == 2) continue;
      CAPTURE(of.settings);
      CAPTURE(reward);
      const auto batch = two_examples(of.dimensions).select({0});
      const auto model = lively(of.of(",words=sampled,reward=" + reward), of.dimensions);
      EnumerateHandler<double> handler;
      Tape<double> tape;
      Episode<double> episode(tape, handler, 1);
      model->run(batch, episode);
      const auto& last = episode.costs().back().rows;
      double mass = 0;
      const auto log_p = episode.path_log_probability(last).value();
      for (std::size_t r = 0; r < last->size(); ++r) mass += std::exp(log_p.data[r]);
      CHECK(mass == doctest::Approx(1).epsilon(1e-12));
      CHECK(model->outcomes(batch) == std::vector<double>{static_cast<double>(last->size())});
      std::vector<double> paid(last->size());
      std::vector<std::vector<int>> said(last->size());
      for (std::size_t r = 0; r < last->size(); ++r) {  // from the last step to the first
        int at = static_cast<int>(r);
        for (auto* rows = last.get(); !rows->is_root(); at = rows->parent[at], rows = rows->origin.get()) {
          for (const auto& cost : episode.costs())
            if (cost.rows.get() == rows) paid[r] -= cost.loss.value().data[at];
          const auto& [question, choice] = episode.steps()[rows->step];
          if (question.site.name == "word" && question.chooses(rows->parent[at])) said[r].push_back(choice.option()[at]);
        }
        std::reverse(said[r].begin(), said[r].end());
        const bool ended = said[r].back() == eos;
        if (ended) said[r].pop_back();
        const std::vector<int> right{3, 1};
        double wanted = reward == "bleu"   ? sentence_bleu(said[r], right)
                        : reward == "edit" ? edit_similarity(said[r], right)
                        : reward == "chrf" ? chrf(said[r], right)
                        : reward == "f1"   ? word_f1(said[r], right)
                                           : double(ended && said[r] == right);
        if (reward == "share") {
          if (ended) said[r].push_back(eos);
          wanted = 0;
          for (std::size_t t = 0; t < said[r].size(); ++t) wanted += (said[r][t] == std::vector<int>{3, 1, eos}[t]) / 3.0;
        }
        CHECK(paid[r] == doctest::Approx(wanted).epsilon(1e-12));
      }
    }
}

TEST_CASE("written words: metrics by hand, and only rewards of weights can be relaxed") {
  CHECK(edit_similarity(std::vector<int>{3, 1, 1}, std::vector<int>{3, 1}) == doctest::Approx(2.0 / 3));
  CHECK(edit_similarity({}, {}) == 1);
  CHECK(edit_similarity(std::vector<int>{0}, {}) == 0);
  const auto relaxable = [](const char* reward) {
    return lively(std::string("translator[words=sampled,reward=") + reward + "]", translation)
        ->structure()
        .sites[1]
        .kind.relaxable;
  };
  CHECK(relaxable("share"));
  CHECK(!relaxable("edit"));
  const auto model = lively("translator[words=sampled,reward=edit]", translation);
  CHECK(unmet({need::relaxable}, model->structure())->find("site `word` takes options only") != std::string::npos);
  CHECK(!unmet({need::log_density}, model->structure()));
}

TEST_CASE("written words: decoded freely, the network is that of given words") {
  for (const auto& of : cases()) {
    const auto batch = two_examples(of.dimensions);
    const auto said = [&](const std::string& more) {
      const auto model = lively(of.of(more), of.dimensions);
      GreedyHandler<double> greedy;
      Tape<double> tape;
      Episode<double> episode(tape, greedy, 2);
      episode.run_freely();
      model->run(batch, episode);
      std::vector<std::vector<int>> labels;
      for (const auto& p : episode.predictions()) labels.push_back(p.label);
      return labels;
    };
    CHECK(said(",words=sampled") == said(""));
  }
}

}  // namespace hardgrad::testing::written_words_test
