// Estimators declare their needs; by default they support no model.
#include "core/estimator/needs.hpp"

#include <doctest/doctest.h>

#include <set>

#include "core/estimator/estimator.hpp"
#include "core/models/model.hpp"

namespace hardgrad::testing::needs_test {
namespace {

Structure structure_of(SiteDeclaration site) { return {.sites = {std::move(site)}}; }

const Structure bits = structure_of({.name = "gate", .options = 2});
const Structure categories = structure_of({.name = "word", .options = 20});
const Structure subsets = structure_of({.name = "words", .options = 20, .subset_size = 3, .kind = SiteKind::subsets});
const Structure place = structure_of({.name = "place", .kind = SiteKind::normal});

TEST_CASE("an estimator that declares no needs works on no model") {
  for (const auto& structure : {bits, categories, place}) {
    CHECK(unmet({}, structure)->find("does not declare the choices it needs") != std::string::npos);
    CHECK(unmet({need::posterior}, structure)->find("does not declare") != std::string::npos);
  }
  CHECK(!EstimatorEntry{}.fault().empty());
}

TEST_CASE("a rejection names the site and its kind of choice") {
  CHECK(!unmet({need::bits}, bits));
  CHECK(
      *unmet({need::bits}, categories) ==
      "needs bits; site `word` has up to 20 options: take an estimator for categories, e.g. local_expectation or disarm_tree");
  CHECK(*unmet({need::options(8, "eight rows each")}, categories) ==
        "needs at most 8 options; site `word` has up to 20 options (eight rows each): take local_expectation or disarm_tree");
  CHECK(!unmet({need::options(20, "")}, categories));
  CHECK(*unmet({need::relaxable, need::posterior}, categories) == "the model has no learned posterior");
  CHECK(unmet({need::log_density, need::dreams}, categories)->find("predicts no labels, so it cannot dream: use wake_wake") !=
        std::string::npos);
}

TEST_CASE("subsets have a density and can be enumerated, but are neither categories nor numbers") {
  for (const auto& need : {need::log_density, need::enumerable, need::picks}) CHECK(!unmet({need}, subsets));
  CHECK(!unmet({need::picks}, categories));
  CHECK(unmet({need::picks}, place));
  for (const auto& need : {need::categorical, need::bits, need::options(64, "many"), need::relaxable, need::reparameterised,
                           need::quantiles, need::symmetric, need::measure_valued})
    CHECK(unmet({need}, subsets)->find("site `words` picks 3 of 20 options: take a score function (rloo)") !=
          std::string::npos);
  CHECK(subsets.sites[0].support_size() == 1140);
  CHECK(subsets.most_sets() == 1140);
  CHECK(!subsets.numbers());
}

TEST_CASE("codes are categories with a place in a space") {
  auto codes = categories;
  codes.sites[0].codes = true;
  for (const auto& need : {need::codes, need::categorical, need::relaxable}) CHECK(!unmet({need}, codes));
  CHECK(*unmet({need::codes}, categories) ==
        "needs options that are codes, points of a space; site `word` has options without a place in a space");
  CHECK(unmet({need::codes}, place)->find("site `place` is a Normal") != std::string::npos);
  CHECK(unmet({need::codes}, subsets)->find("site `words` picks 3 of 20 options") != std::string::npos);
}

TEST_CASE("every site must meet the needs, also the second one") {
  const Structure two{.sites = {{.name = "gate", .options = 2}, {.name = "word", .options = 20}}};
  CHECK(unmet({need::bits}, two)->find("site `word`") != std::string::npos);
  CHECK(!unmet({need::categorical}, two));
}

TEST_CASE("needs about options reject a Normal, and a model without a choice rejects an estimator that does not allow it") {
  for (const auto& need : {need::log_density, need::reparameterised, need::quantiles, need::symmetric, need::measure_valued})
    CHECK(!unmet({need}, place));
  CHECK(!unmet({need::quantiles, need::measure_valued}, bits));
  CHECK(
      *unmet({need::reparameterised}, bits) ==
      "needs choices that can be differentiated in the distribution's parameters; site `gate` has bits: take a score function "
      "(rloo), or a relaxation (gumbel_softmax, relax)");
  CHECK(*unmet({need::symmetric}, categories) ==
        "needs numbers whose mirror image is a draw too; site `word` has up to 20 options: take antithetic bits (disarm) or "
        "categories (disarm_tree, carms)");
  CHECK(*unmet({need::measure_valued}, categories) ==
        "needs bits or Normals; site `word` has up to 20 options: take an estimator for categories, e.g. local_expectation or "
        "disarm_tree");
  for (const auto& need : {need::categorical, need::bits, need::enumerable, need::relaxable, need::options(64, "")})
    CHECK(unmet({need}, place)->find("site `place` is a Normal") != std::string::npos);
  CHECK(*unmet({need::log_density}, Structure{}) == "the model makes no choice");
  CHECK(!unmet({need::relaxable, need::no_choice}, Structure{}));
}

TEST_CASE("structure: dependence is derived from the reach of the sites' choices") {
  const auto of = [](int times, DependenceScope scope) {
    return structure_of({.name = "s", .options = 3, .times = times, .scope = scope});
  };
  CHECK(Structure{}.dependence() == "no choice");
  for (auto scope : {DependenceScope::own_costs, DependenceScope::later_costs, DependenceScope::later_choices}) {
    CHECK(of(1, scope).dependence() == "one choice");
    CHECK(of(1, scope).factorised());
  }
  CHECK(of(3, DependenceScope::own_costs).dependence() == "factorised");
  CHECK(of(3, DependenceScope::later_costs).dependence() == "joint cost");
  CHECK((!of(3, DependenceScope::later_costs).factorised() && of(3, DependenceScope::later_costs).independent()));
  CHECK(of(3, DependenceScope::later_choices).dependence() == "sequential");
  CHECK(!of(3, DependenceScope::later_choices).independent());
  const Structure mixed{
      .sites = {{.name = "a", .options = 2, .times = 2, .scope = DependenceScope::own_costs},
                {.name = "b", .options = 5, .times = 3, .state_width = 7, .scope = DependenceScope::later_choices}}};
  CHECK(mixed.dependence() == "sequential");
  CHECK(mixed.steps() == 5);
  CHECK(mixed.most_options() == 5);
  CHECK(mixed.state_width() == 7);
}

TEST_CASE("the dependence on a model's page agrees with its sites") {
  const Dimensions all = {{"bits", 1},
                          {"gaussians", 1},
                          {"subsets", 1},
                          {"not_gate", 1},
                          {"source_vocabulary", 5},
                          {"target_vocabulary", 5},
                          {"source_length", 3},
                          {"target_length", 3},
                          {"bos", 1},
                          {"eos", 2},
                          {"vocabulary", 5},
                          {"answers", 2},
                          {"answer_word", 1},
                          {"sentences", 3},
                          {"tokens", 2},
                          {"words", 2},
                          {"cells", 4},
                          {"features", 3},
                          {"feature_width", 1},
                          {"document_length", 4},
                          {"question_length", 2},
                          {"height", 4},
                          {"width", 4},
                          {"classes", 2},
                          {"levels", 2},
                          {"window", 2},
                          {"words", 2},
                          {"longest", 2},
                          {"noise", 0},
                          {"first_length", 3},
                          {"second_length", 2},
                          {"steps", 3},
                          {"vectors", 2},
                          {"input_width", 3},
                          {"answer_width", 2},
                          {"positions", 2},
                          {"puzzle_width", 3},
                          {"labels", 2},
                          {"table_columns", 2},
                          {"program_steps", 1},
                          {"shown_steps", 2}};
  const std::pair<const char*, const char*> cases[] = {{"bits", "one choice"},
                                                       {"bits[bits=3]", "factorised"},
                                                       {"bits[bits=3,function=table]", "joint cost"},
                                                       {"not_gate", "one choice"},
                                                       {"gaussians", "one choice"},
                                                       {"gaussians[columns=2]", "factorised"},
                                                       {"subsets", "one choice"},
                                                       {"subsets[columns=2]", "factorised"},
                                                       {"selector", "one choice"},
                                                       {"router[picks=2]", "one choice"},
                                                       {"translator[feed=none]", "factorised"},
                                                       {"translator[feed=soft]", "factorised"},
                                                       {"translator[feed=sampled]", "sequential"},
                                                       {"translator[feed=attentional]", "sequential"},
                                                       {"translator[order=context_first,feed=soft]", "factorised"},
                                                       {"translator[order=context_first,feed=sampled]", "sequential"},
                                                       {"memory_reader[hops=1]", "one choice"},
                                                       {"memory_reader[hops=2]", "sequential"},
                                                       {"attentive_reader", "one choice"},
                                                       {"attentive_reader[kind=impatient]", "sequential"},
                                                       {"attentive_reader[kind=uniform]", "no choice"},
                                                       {"captioner", "sequential"},
                                                       {"writer", "sequential"},
                                                       {"belief_network", "joint cost"},
                                                       {"codebook", "joint cost"},
                                                       {"belief_network[layers=2]", "sequential"},
                                                       {"transformer", "sequential"},
                                                       {"transformer[layers=1]", "factorised by step"},
                                                       {"transformer[layers=1,heads=1]", "factorised"},
                                                       {"transformer[picks=0]", "no choice"},
                                                       {"turing_machine", "sequential"},
                                                       {"pixel_attention[layers=1]", "one choice"},
                                                       {"sentence_pair", "joint cost"},
                                                       {"sentence_pair[attention=both]", "sequential"},
                                                       {"sentence_pair[attention=none]", "no choice"},
                                                       {"ponderer", "sequential"},
                                                       {"ponderer[ask=step]", "one choice"},
                                                       {"tape_machine", "sequential"},
                                                       {"programmer[steps=1]", "joint cost"},
                                                       {"programmer[steps=2]", "sequential"},
                                                       {"glimpse_reader[grid=2,glimpses=1]", "one choice"},
                                                       {"glimpse_reader[policy=gaussian,glimpses=2]", "sequential"},
                                                       {"glimpse_reader[grid=2,glimpses=2]", "sequential"}};
  std::set<std::string> visited;
  for (const auto& [spec, dependence] : cases) {
    CAPTURE(spec);
    const auto parsed = Spec::parse(spec);
    CHECK(make_model<float>(parsed, all, Key(1))->structure().dependence() == dependence);
    CHECK(Models::instance().at(parsed.name).dependence.find(dependence) != std::string::npos);
    visited.insert(parsed.name);
  }
  CHECK(visited.size() == Models::instance().names().size());
}

TEST_CASE("pixel_attention: its attention is the posterior, so estimators that learn another one are rejected") {
  const auto model = make_model<double>(Spec::parse("pixel_attention[layers=1]"),
                                        {{"height", 4}, {"width", 4}, {"window", 2}, {"noise", 0}}, Key(1), true);
  CHECK_FALSE(model->structure().posterior);
  for (const auto& p : model->parameters()) CHECK_FALSE(p.name.starts_with("posterior"));
  for (const char* estimator : {"rloo[target=elbo]", "vimco", "variational_bound"})
    CHECK(why_unsupported(Spec::parse(estimator), model->structure()) ==
          "the model has no learned posterior: its attention already is q(c | y), and its loss has the divergence");
  CHECK(why_unsupported(Spec::parse("rloo"), model->structure()).empty());
}

TEST_CASE("policy_gradient: settings whose bound would bound nothing are refused, with a setting that does") {
  const auto model = make_model<double>(Spec::parse("bits"), {{"bits", 1}}, Key(1));
  const auto why = [&](const char* spec) { return why_unsupported(Spec::parse(spec), model->structure()); };
  CHECK(why("policy_gradient[bound=clip_words]") ==
        "bound=clip_words bounds the words of ratio=geometric: take ratio=geometric");
  CHECK(why("policy_gradient[bound=shift,ratio=token]").starts_with("bound=shift limits changes of a probability"));
  CHECK(why("policy_gradient[bound=shift,ratio=token,low=0.3,high=0.2]") == "");
  CHECK(why("policy_gradient[preset=gmpo]") == "");
}

TEST_CASE("targets: names, numbers and terms, an unknown one is rejected") {
  CHECK(Target().name() == "expected_loss");
  CHECK(Target("importance_bound[samples=4]") == Target("importance_bound[ samples = 4 ]"));
  CHECK(Target("importance_bound[samples=4]").text() == "importance_bound[samples=4]");
  CHECK(!(Target("elbo") == Target("elbo[kl=sampled]")));
  CHECK(Target("elbo").terms().drawn_from == DrawnFrom::posterior);
  CHECK(Target("elbo").terms().divergence == TargetTerms::Divergence::analytic);
  CHECK(Target("elbo[kl=sampled]").terms().divergence == TargetTerms::Divergence::sampled);
  CHECK(Target("wake").terms().divergence == TargetTerms::Divergence::none);
  CHECK_THROWS_WITH_AS(Target("elbow"), doctest::Contains("unknown target \"elbow\" (did you mean \"elbo\"?)"), UsageError);
  CHECK(Targets::instance().names().size() == 13);
}

TEST_CASE("every estimator of a mean over choices accepts another target, and reports it") {
  int means = 0;
  for (const auto& [name, entry] : Estimators::instance().entries()) {
    CAPTURE(name);
    CHECK(entry.fault().empty());
    CHECK(target_of(Spec::parse(name)).name() == entry.target);
    if (entry.target != "expected_loss") continue;
    ++means;
    const auto bound = Spec::parse(name).with("target", "elbo");
    CHECK(target_of(bound).name() == "elbo");
    CHECK(wants_posterior(bound));
    CHECK(!wants_posterior(Spec::parse(name)));
    CHECK(target_of(bound.with("kl", "sampled")).text() == "elbo[kl=sampled]");
  }
  CHECK(means == 52);
}

}  // namespace
}  // namespace hardgrad::testing::needs_test
