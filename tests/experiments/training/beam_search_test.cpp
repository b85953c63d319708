// Beam search, against an explicit search prefix by prefix, and against the enumeration of all sentences.
#include "experiments/training/beam_search.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/choice/handlers.hpp"
#include "core/estimator/enumeration/objectives.hpp"
#include "core/models/parts/answer_sampler.hpp"
#include "core/support/error.hpp"
#include "tests/core/models/model_check.hpp"

namespace hardgrad::testing::beam_search_test {
using namespace training;

namespace {

const Dimensions dimensions{{"source_vocabulary", 6},
                            {"target_vocabulary", 5},
                            {"source_length", 4},
                            {"target_length", 4},
                            {"bos", 1},
                            {"eos", 2},
                            {"cells", 3},
                            {"features", 2}};
constexpr int end = 2, most = 4, labels = 5;

Batch three_sources() {
  Batch batch;
  batch.id = {4, 5, 6};
  batch.integers["source"] = shaped<int>({3, 4}, {3, 4, 5, 2, 4, 1, 0, 0, 5, 3, 3, 0});
  batch.integers["source_length"] = shaped<int>({3}, {4, 2, 3});
  batch.reals["features"] = shaped<double>({3, 3, 2}, {1, -2, 0, 3, -1, 1, 2, 2, -3, 1, 0, 1, 1, 0, 2, -1, -2, 3});
  batch.integers["target"] = shaped<int>({3, 1}, {2, 2, 2});
  batch.integers["target_length"] = shaped<int>({3}, {1, 1, 1});
  return batch;
}

template <class C>
double log_p(const Model<double>& model, const Batch& batch, int b, const std::vector<int>& said) {
  auto one = batch.select({b});
  one.integers["target"] = shaped<int>({1, said.size()}, said);
  one.integers["target_length"] = shaped<int>({1}, {static_cast<int>(said.size())});
  C handler;
  return -losses(model, one, handler)[0];
}

/// Beam search by its definition: every prefix is decoded anew, with teacher forcing.
template <class C>
Found by_hand(const Model<double>& model, const Batch& batch, int b, std::size_t width) {
  std::vector<Found> beam{{{}, 0}};
  Found best{{}, -std::numeric_limits<double>::infinity()};
  for (int t = 0; t < most && !beam.empty(); ++t) {
    std::vector<Found> longer;
    for (const auto& beginning : beam)
      for (int label = 0; label < labels; ++label) {
        auto said = beginning.labels;
        said.push_back(label);
        longer.push_back({said, log_p<C>(model, batch, b, said)});
      }
    std::stable_sort(longer.begin(), longer.end(), [](const Found& x, const Found& y) { return x.log_p > y.log_p; });
    beam.clear();
    for (auto& next : longer) {
      if (beam.size() == width || next.log_p <= best.log_p) break;
      if (next.labels.back() != end && t + 1 < most) {
        beam.push_back(next);
        continue;
      }
      best = next;
      if (best.labels.back() == end) best.labels.pop_back();
    }
  }
  return best;
}

const std::vector<std::string> specs = {"translator[embedding=3,hidden=3,feed=sampled]",
                                        "translator[embedding=3,hidden=3,feed=soft,score=dot]",
                                        "translator[embedding=3,hidden=3,feed=none]",
                                        "translator[embedding=3,hidden=3,feed=sampled,order=context_first]",
                                        "translator[embedding=3,hidden=3,feed=soft,order=context_first]",
                                        "translator[embedding=3,hidden=3,feed=attentional,readout=state]",
                                        "translator[embedding=3,hidden=4,feed=sampled,order=context_first,unit=gated,"
                                        "readout=maxout]",
                                        "translator[embedding=3,hidden=4,feed=sampled,heads=2,null=true]",
                                        "translator[embedding=3,hidden=3,attention=none,feed=soft,encoder=forward]",
                                        "captioner[embedding=3,hidden=3]"};

}  // namespace

TEST_CASE("beam search equals the explicit search, at every width, and reordered rows keep all their state") {
  const auto batch = three_sources();
  int differ = 0, searched = 0;
  for (const auto& spec : specs) {
    CAPTURE(spec);
    const auto model = testing::lively(spec, dimensions);
    for (auto& p : model->parameters())
      for (auto& x : p.value) x *= 3;
    std::vector<double> narrow(3);
    for (const int width : {1, 2, 3, 5, 130}) {
      CAPTURE(width);
      const auto check = [&]<class C>(C handler) {
        Tape<double> tape;
        const auto hypotheses = beam_search<double>(*model, batch, handler, width, tape);
        REQUIRE(hypotheses.size() == 3);
        for (int b = 0; b < 3; ++b) {
          const auto wanted = by_hand<C>(*model, batch, b, static_cast<std::size_t>(width));
          CHECK(hypotheses[b].front().labels == wanted.labels);
          CHECK(hypotheses[b].front().log_p == doctest::Approx(wanted.log_p).epsilon(1e-12));
          ++searched;
          if (width == 1) narrow[b] = hypotheses[b].front().log_p;
          differ += hypotheses[b].front().log_p > narrow[b] + 1e-9;
        }
      };
      check(GreedyHandler<double>());
      if (width == 2) check(ExpectedHandler<double>());
    }
  }
  CHECK(searched == 10 * 6 * 3);
  CHECK(differ > 10);  // it finds sentences that greedy decoding misses
}

TEST_CASE("with a beam for every prefix it finds the most probable sentence, and with one it decodes greedily") {
  const auto batch = three_sources();
  const auto model = testing::lively("translator[embedding=3,hidden=3,feed=sampled]", dimensions);
  std::vector<double> best(3, -std::numeric_limits<double>::infinity());
  int sentences = 0;
  for_every_observation(*model->structure().answer_sampler, 1, [&](const std::vector<std::vector<int>>& drawn) {
    std::vector<int> said;
    for (const auto& at : drawn) said.push_back(at[0]);
    ++sentences;
    for (int b = 0; b < 3; ++b) best[b] = std::max(best[b], log_p<GreedyHandler<double>>(*model, batch, b, said));
  });
  CHECK(sentences == 1 + 4 + 16 + 64 * 5);
  GreedyHandler<double> handler;
  Tape<double> tape;
  const auto all = beam_search<double>(*model, batch, handler, 320, tape);
  for (int b = 0; b < 3; ++b) CHECK(all[b].front().log_p == doctest::Approx(best[b]).epsilon(1e-12));

  tape.clear();
  const auto one = beam_search<double>(*model, batch, handler, 1, tape);
  tape.clear();
  Episode<double> episode(tape, handler, 3);
  episode.run_freely();
  model->run(batch, episode);
  for (int b = 0; b < 3; ++b) {
    std::vector<int> said;
    for (const auto& p : episode.predictions())
      if (p.label[b] >= 0 && p.label[b] != end) said.push_back(p.label[b]);
    CHECK(one[b].front().labels == said);
  }
}

TEST_CASE("with a beam for every prefix it finds the most probable sentences in order") {
  const auto batch = three_sources();
  const auto model = testing::lively("translator[embedding=3,hidden=3,feed=sampled]", dimensions);
  std::vector<std::vector<Found>> all(3);
  for_every_observation(*model->structure().answer_sampler, 1, [&](const std::vector<std::vector<int>>& drawn) {
    std::vector<int> said;
    for (const auto& at : drawn) said.push_back(at[0]);
    for (int b = 0; b < 3; ++b) all[b].push_back({said, log_p<GreedyHandler<double>>(*model, batch, b, said)});
    for (int b = 0; b < 3; ++b)
      if (auto& labels = all[b].back().labels; labels.back() == end) labels.pop_back();
  });
  GreedyHandler<double> handler;
  Tape<double> tape;
  const auto hypotheses = beam_search<double>(*model, batch, handler, 320, tape, 7);
  for (int b = 0; b < 3; ++b) {
    std::sort(all[b].begin(), all[b].end(), [](const Found& x, const Found& y) { return x.log_p > y.log_p; });
    REQUIRE(hypotheses[b].size() == 7);
    for (std::size_t n = 0; n < 7; ++n) {
      CHECK(hypotheses[b][n].labels == all[b][n].labels);
      CHECK(hypotheses[b][n].log_p == doctest::Approx(all[b][n].log_p).epsilon(1e-12));
    }
  }
}

TEST_CASE("no sentence that beam search finds is impossible or has a label that no answer holds") {
  const auto batch = three_sources();
  const auto model = testing::lively("translator[embedding=3,hidden=3,feed=sampled]", dimensions);
  GreedyHandler<double> handler;
  Tape<double> tape;
  const std::vector<int> never{0, 1};
  // More rows than there are words, so that unused rows repeat the first.
  const auto hypotheses = beam_search<double>(*model, batch, handler, 12, tape, 400, never);
  std::size_t sentences = 0;
  for (const auto& of_example : hypotheses) {
    CHECK(!of_example.empty());
    for (const auto& [said, p] : of_example) {
      CHECK(std::isfinite(p));
      for (int label : said) CHECK(std::find(never.begin(), never.end(), label) == never.end());
      ++sentences;
    }
  }
  CHECK(sentences > 30);
  tape.clear();
  std::size_t possible = 0;  // with every label, too: unused rows of a wide beam are no sentences
  for (const auto& of_example : beam_search<double>(*model, batch, handler, 12, tape, 400))
    for (const auto& one : of_example) possible += std::isfinite(one.log_p) ? 1 : 1000;
  CHECK(possible > 30);
  CHECK(possible < 1000);
}

TEST_CASE("every sentence that beam search finds has its log-probability, also after reordered rows read a mean context") {
  const auto batch = three_sources();
  std::size_t checked = 0;
  for (const auto& spec : specs) {
    CAPTURE(spec);
    const auto model = testing::lively(spec, dimensions);
    for (auto& p : model->parameters())
      for (auto& x : p.value) x *= 3;
    GreedyHandler<double> handler;
    Tape<double> tape;
    const auto hypotheses = beam_search<double>(*model, batch, handler, 6, tape, 12);
    for (int b = 0; b < 3; ++b)
      for (const auto& [said, p] : hypotheses[b]) {
        auto whole = said;
        if (whole.size() < most) whole.push_back(end);
        CHECK(p == doctest::Approx(log_p<GreedyHandler<double>>(*model, batch, b, whole)).epsilon(1e-12));
        ++checked;
      }
  }
  CHECK(checked > 12 * specs.size());
}

TEST_CASE(
    "with every choice enumerated, sentences have their marginal likelihood, and the widest beam finds the best in order") {
  const auto batch = three_sources();
  int unlike_greedy = 0;
  for (const auto* spec : {"translator[embedding=3,hidden=3,feed=none]", "translator[embedding=3,hidden=3,feed=soft,score=dot]",
                           "translator[embedding=3,hidden=4,heads=2,null=true]",
                           "translator[embedding=3,hidden=3,feed=soft,order=context_first]"}) {
    CAPTURE(spec);
    const auto model = testing::lively(spec, dimensions);
    for (auto& p : model->parameters())
      for (auto& x : p.value) x *= 3;
    const auto marginal = [&](int b, const std::vector<int>& said) {  // log p(y | x), by complete enumeration
      auto one = batch.select({b});
      one.integers["target"] = shaped<int>({1, said.size()}, said);
      one.integers["target_length"] = shaped<int>({1}, {static_cast<int>(said.size())});
      Tape<double> tape;
      EnumerateHandler<double> handler(model->structure());
      Episode<double> episode(tape, handler, 1);
      model->run(one, episode);
      return -marginal_likelihood_loss(episode).item();
    };
    std::vector<std::vector<Found>> all(3);
    for_every_observation(*model->structure().answer_sampler, 1, [&](const std::vector<std::vector<int>>& drawn) {
      std::vector<int> said;
      for (const auto& at : drawn) said.push_back(at[0]);
      for (int b = 0; b < 3; ++b) all[b].push_back({said, marginal(b, said)});
      for (int b = 0; b < 3; ++b)
        if (auto& labels = all[b].back().labels; labels.back() == end) labels.pop_back();
    });
    EnumerateHandler<double> handler(model->structure());
    GreedyHandler<double> greedy;
    for (const int width : {1, 4, 320}) {
      Tape<double> tape;
      const auto hypotheses = beam_search<double>(*model, batch, handler, width, tape, 5);
      tape.clear();
      const auto at_mode = beam_search<double>(*model, batch, greedy, width, tape);
      for (int b = 0; b < 3; ++b) {
        std::sort(all[b].begin(), all[b].end(), [](const Found& x, const Found& y) { return x.log_p > y.log_p; });
        REQUIRE(!hypotheses[b].empty());
        for (std::size_t n = 0; n < hypotheses[b].size(); ++n) {
          if (width == 320) CHECK(hypotheses[b][n].labels == all[b][n].labels);
          const auto same =
              std::find_if(all[b].begin(), all[b].end(), [&](const Found& x) { return x.labels == hypotheses[b][n].labels; });
          REQUIRE(same != all[b].end());
          CHECK(hypotheses[b][n].log_p == doctest::Approx(same->log_p).epsilon(1e-12));
        }
        unlike_greedy += at_mode[b].front().labels != hypotheses[b].front().labels;
      }
    }
  }
  CHECK(unlike_greedy > 0);  // a mutant: decoding at the most probable position
}

TEST_CASE("beam search on a network that decodes no sentences is an error") {
  const auto model = testing::lively("not_gate", {{"not_gate", 1}});
  GreedyHandler<double> handler;
  Tape<double> tape;
  Batch batch;
  batch.id = {0};
  CHECK_THROWS_AS(beam_search<double>(*model, batch, handler, 2, tape), UsageError);
}

}  // namespace hardgrad::testing::beam_search_test
