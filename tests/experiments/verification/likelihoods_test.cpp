// Whether exp(-loss) is a probability of the answer: summed over all answers that an example could have it is one, or another
// number that no parameter changes, for every network that allows targets of a likelihood, and for no network that refuses them
// (Structure::no_likelihood).
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "core/choice/handlers.hpp"
#include "core/estimator/enumeration/objectives.hpp"
#include "experiments/tasks/task.hpp"
#include "experiments/verification/scenes.hpp"

namespace hardgrad::testing::likelihoods_test {
namespace {

enum class Likelihood { yes, no };
using enum Likelihood;
constexpr int real = -1;

struct Case {
  std::string task, model;
  std::string field;  // of the answer; its numbers of at least 0 are the answer's symbols
  int symbols;        // 0: too many answers to sum over; real: the answer is a number
  Likelihood likelihood = yes;
  double mass = 1;  // of all answers
};

const std::string translation = "translation[words=1,max_length=2]", small = "hidden=4,embedding=3";
std::string translator(const std::string& more) { return "translator[" + small + more + "]"; }
const std::string scenes = "caption[grid=2,objects=1,examples=40]",
                  captioner = "captioner[hidden=4,embedding=3,channels=2,features=3";
const std::string reading = "glimpse[size=8,digits=2,examples=40]",
                  reader = "glimpse_reader[grid=2,patch=4,features=3,hidden=4";
const std::string sorting = "puzzle[kind=sort,size=3]", circuits = "puzzle[kind=logic,size=2,length=2]";
const std::string bits = "algorithm[bits=2,max_length=1]", regimes = "features[kind=regimes]";
// Two by two pixels, or four by four with noise: the tasks' smallest images have too many.
const std::string numbers = "tables[steps=1,columns=2,max_rows=3,range=1,lists=false]",
                  cells = "tables[steps=1,columns=1,max_rows=3,range=1]";
const std::string pixels = "", canvas = "canvas";

const std::vector<Case> cases = {
    {translation, translator(""), "target", 6},
    {translation, translator(",feed=sampled,order=context_first,null=true"), "target", 6},
    {translation, translator(",feed=attentional,heads=2,readout=maxout"), "target", 6},
    {translation, translator(",local=predictive,picks=1,feed=soft"), "target", 6},
    {translation, translator(",picks=2,readout=context"), "target", 6},
    {translation, translator(",attention=none"), "target", 6},
    {translation, translator(",feed=sampled,words=sampled,reward=share"), "target", 6, no},
    {scenes, captioner + ",gate=true]", "target", 14},
    {scenes, captioner + ",picks=2]", "target", 14},
    {scenes, captioner + ",doubly_stochastic=0.5]", "target", 14, no},
    {scenes, captioner + ",words=sampled,reward=share]", "", 0, no},
    {"qa", "memory_reader[embedding=4,hops=1]", "answer", 6},
    {"qa", "memory_reader[embedding=4,hops=1,picks=2,tying=layerwise]", "answer", 6},
    {"cloze[facts=1]", "attentive_reader[embedding=4,hidden=3]", "answer", 2},
    {"cloze[facts=1]", "attentive_reader[embedding=4,hidden=3,kind=impatient]", "answer", 2},
    {reading, reader + ",glimpses=1]", "label", 11},
    {reading, reader + ",glimpses=1,reward=correct]", "label", 11, no},
    {pixels, "belief_network[units=2]", "image", 2},
    {pixels, "belief_network[units=2,layers=2,options=3]", "image", 2},
    {pixels, "codebook[vectors=2,codes=3,width=2,hidden=4]", "image", 2, no},
    {pixels, "codebook[vectors=2,codes=3,width=2,hidden=4,commitment=0]", "image", 2, no},
    {canvas, "pixel_attention[grid=2,layers=1,channels=2,hidden=3,code=2,background=0.1]", "image", 2, no},
    {canvas, "pixel_attention[grid=2,layers=1,channels=2,hidden=3,code=2,background=0.1,beta=0]", "image", 2, no},
    {"pairs[kind=phrase,words=2,examples=40]", "sentence_pair[width=3]", "label", 2},
    {"pairs[kind=phrase,words=2,examples=40]", "sentence_pair[width=3,attention=both]", "label", 2},
    {bits, "turing_machine[cells=3,width=3,hidden=6]", "answer", 2},
    {bits, "tape_machine[cells=3,width=3,hidden=6]", "answer", 2},
    {sorting, "ponderer[hidden=4,steps=3]", "label", 3, no},
    {sorting, "ponderer[hidden=4,steps=3,beta=0]", "label", 3},
    {sorting, "ponderer[hidden=4,steps=3,beta=0,ask=step]", "label", 3},
    {sorting, "ponderer[hidden=4,steps=3,ask=step]", "label", 3, no},
    {sorting, "ponderer[hidden=4,steps=3,beta=0,tau=0.1]", "label", 3, no},
    {sorting, "ponderer[hidden=4,steps=3,law=act]", "label", 3},
    {sorting, "ponderer[hidden=4,steps=3,law=act,tau=0.1]", "label", 3, no},
    {circuits, "ponderer[hidden=4,steps=3,beta=0]", "label", 2},
    {circuits, "ponderer[hidden=4,steps=3]", "label", 2, no},
    {"features[features=5]", "selector[picks=2,hidden=6]", "label", 2},
    {"reviews[longest=6,examples=40]", "selector[maps=shared,share=0.5,hidden=6]", "label", 2},
    {regimes, "router[hidden=3]", "label", 2},
    {regimes, "router[hidden=3,picks=2,gate=none]", "label", 2},
    {regimes, "router[hidden=3,balance=0.1]", "label", 2, no},
    {"not_gate", "not_gate", "target", real, yes, std::sqrt(M_PI)},
    {numbers, "programmer[steps=1,hidden=4,embedding=6,delta=2]", "answer", real, yes,
     std::sqrt(4 * M_PI) * std::erf(1) + 2 * std::exp(-1)},
    {cells, "programmer[steps=1,hidden=4,embedding=6]", "wanted", 2, yes, 1.01 * 1.01 * 1.01},
    {"recall[pairs=2,queries=2,length=6,vocabulary=4]", "transformer[width=4,layers=1]", "label", 2},
    {"induction[length=3,vocabulary=3]", "transformer[width=4,picks=2,scorer=indexer,share=true]", "label", 3},
    {"induction[length=3,vocabulary=3]", "transformer[width=4,scorer=indexer,imitation=0.5]", "label", 3, no},
    {"answers[symbols=2,size=2]", "writer[hidden=4,embedding=3,reward=share]", "", 0, no},
};

struct Problem {
  std::unique_ptr<Model<double>> model;
  Batch batch;  // one example
};
Problem problem_of(const Case& c) {
  const Key key(3);
  if (c.task != pixels && c.task != canvas) {
    const auto task = tasks::make_task(Spec::parse(c.task), key / "data");
    auto batch = task->batch(tasks::Split::train, {0});
    if (c.field == "target" && batch.integers.contains("target_length")) {  // fewer sentences: their first two words
      auto& words = batch.integers.at("target").storage();
      std::fill(words.begin() + 2, words.end(), -1);
      batch.integers.at("target_length").flat(0) = 2;
    }
    return {tasks::make_model_for<double>(*task, Spec::parse(c.model), key / "init", false), batch};
  }
  const std::size_t side = c.task == canvas ? 3 : 2;
  Problem made;
  made.batch.id = {0};
  made.batch.reals["image"] = zeros<double>({1, side, side});
  made.batch.reals["noise"] = shaped<double>({1, 2}, {0.4, -1.1});
  const int extent = static_cast<int>(side);
  const Dimensions dimensions{{"height", extent}, {"width", extent}, {"levels", 2}, {"window", 2}, {"noise", 2}};
  made.model = make_model<double>(Spec::parse(c.model), dimensions, key / "init");
  return made;
}

/// sum_z p(z) exp(-f(z))
double likelihood_of(const Model<double>& model, const Batch& batch) {
  Tape<double> tape;
  EnumerateHandler<double> handler(model.structure());
  Episode<double> episode(tape, handler, 1);
  model.run(batch, episode);
  return std::exp(-marginal_likelihood_loss(episode).item());
}

/// The sum of likelihood_of over all answers; an integral if the answer is a number.
double mass_of_answers(const Case& c, const Model<double>& model, Batch batch) {
  double mass = 0;
  if (c.symbols == real) {
    constexpr double step = 0.02;
    auto& answer = batch.reals.at(c.field).storage().at(0);
    for (answer = -25; answer < 25; answer += step) mass += step * likelihood_of(model, batch);
    return mass;
  }
  const auto whole = batch.integers.find(c.field);
  const bool bits = whole == batch.integers.end();
  std::vector<std::size_t> places;  // of the answer's symbols
  for (std::size_t i = 0; i < (bits ? batch.reals.at(c.field).size() : whole->second.size()); ++i)
    if (bits || whole->second.flat(i) >= 0) places.push_back(i);
  for (int code = 0; code < std::lround(std::pow(c.symbols, places.size())); ++code) {
    int rest = code;
    for (auto place : places) {
      if (bits)
        batch.reals.at(c.field).flat(place) = rest % c.symbols;
      else
        whole->second.flat(place) = rest % c.symbols;
      rest /= c.symbols;
    }
    mass += likelihood_of(model, batch);
  }
  return mass;
}

TEST_CASE("likelihoods: exp(-loss) sums to a constant over all answers, or the network refuses targets that need it") {
  std::set<std::string> networks{"bits", "gaussians", "subsets"}, all;  // these three: a cost by itself, without an answer
  int summed = 0, refused = 0;
  for (const auto& c : cases) {
    CAPTURE(c.model);
    CAPTURE(c.task);
    networks.insert(Spec::parse(c.model).name);
    const auto [model, batch] = problem_of(c);
    const auto& structure = model->structure();
    CHECK(!*structure.no_likelihood == (c.likelihood == yes));
    if (*structure.no_likelihood)
      CHECK(why_unsupported(Spec::parse("exact_marginal"), structure) == structure.lacks_likelihood());
    (*structure.no_likelihood ? refused : summed) += 1;
    if (c.symbols == 0) continue;
    const double mass = mass_of_answers(c, *model, batch);
    CAPTURE(mass);
    CHECK((std::abs(mass - c.mass) < (c.symbols == real ? 1e-5 : 1e-9)) == (c.likelihood == yes));
  }
  CHECK(summed == 32);
  CHECK(refused == 16);
  for (const auto& scene : verification::scene_specs()) all.insert(Spec::parse(scene.model).name);
  CHECK(networks == all);
  CHECK(all.size() == 21);
}

}  // namespace
}  // namespace hardgrad::testing::likelihoods_test
