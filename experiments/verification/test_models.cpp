#include "experiments/verification/test_models.hpp"

#include <fmt/format.h>

#include <cmath>

#include "experiments/verification/recurrent.hpp"
#include "experiments/verification/small_models.hpp"

namespace hardgrad::verification {
namespace {

TestModel recurrent(DependenceScope scope, int options, int columns = 1) {
  const auto name =
      fmt::format("recurrent, {}, {} options{}{}", scope == DependenceScope::later_choices ? "dependent" : "independent",
                  options, columns > 1 ? fmt::format(", {} columns", columns) : "",
                  scope == DependenceScope::own_column ? " with separate costs" : "");
  return {name, std::make_unique<Recurrent<double>>(scope, Key(5), options, 0, columns), Recurrent<double>::batch(options)};
}

TestModel toy(const std::string& spec) {
  Batch batch;
  batch.id = {0};
  batch.reals["image"] = shaped<double>({1, 2, 1}, {1, 0});
  auto model = make_model<double>(Spec::parse(spec),
                                  {{"bits", 1}, {"gaussians", 1}, {"height", 2}, {"width", 1}, {"levels", 2}}, Key(3), true);
  int i = 0;
  for (auto& parameter : model->parameters())  // makes the posterior differ from the prior
    if (parameter.group() == "posterior")
      for (double& value : parameter.value) value += 0.6 * std::sin(++i);
  return {spec, std::move(model), std::move(batch)};
}

std::vector<TestModel> made_test_models() {
  std::vector<TestModel> all;
  for (int options : {2, 3})
    for (auto scope : {DependenceScope::later_choices, DependenceScope::own_costs}) all.push_back(recurrent(scope, options));
  for (int options : {2, 3})  // simultaneous choices
    for (auto scope : {DependenceScope::later_choices, DependenceScope::own_costs, DependenceScope::own_column})
      all.push_back(recurrent(scope, options, 2));
  all.push_back({"two sites, three options and two", std::make_unique<TwoSites>(), TwoSites::batch()});
  for (const auto* spec :
       {"bits[logit=0.7]", "bits[bits=3,t=0.6;0.51;0.48,shared_logit=true,logit=-1]",
        "bits[bits=2,function=table,logit=0.3;-0.8]", "bits[options=3,function=linear,logit=0.2;-0.1;0.4]",
        "bits[bits=2,options=3,function=table,logit=0.2;-0.1;0.4]", "bits[bits=3,t=0.3;0.6;0.7,logit=700;-40;-400]",
        "bits[t=0.3,logit=5]", "bits[options=3,function=linear,logit=5.5;0;-0.4]", "belief_network[layers=2,units=2]",
        "belief_network[units=2,options=3]", "codebook[vectors=1,codes=3,width=2,hidden=2]"})
    all.push_back(toy(spec));
  for (bool feeding : {true, false})
    all.push_back({feeding ? "numbers, dependent" : "numbers, two columns", std::make_unique<Drift<double>>(feeding),
                   Drift<double>::batch()});
  for (const auto* spec :
       {"gaussians[k=0.7,mean=-0.2,log_scale=-0.3]", "gaussians[function=cosine,k=1.3,mean=0.4,log_scale=-0.5]",
        "gaussians[columns=4,k=0.7,mean=-0.2;0.1;0.3;0.5,log_scale=-0.3]"})
    all.push_back(toy(spec));
  return all;
}

}  // namespace

const std::vector<TestModel>& test_models() {
  static const auto all = made_test_models();
  return all;
}

const std::vector<TestModel>& off_policy_models() {
  static const auto all = [] {
    std::vector<TestModel> made;
    made.push_back(recurrent(DependenceScope::later_choices, 3));
    made.push_back(recurrent(DependenceScope::own_costs, 2, 2));
    for (auto& tested : made) {
      const auto scope = tested.model->structure().sites[0].scope;
      const auto options = tested.model->structure().most_options(), columns = tested.model->structure().most_columns();
      tested.model->set_policies({.behaviour = std::make_shared<Recurrent<double>>(scope, Key(8), options, 0, columns)});
      tested.name += ", drawn by another policy";
    }
    return made;
  }();
  return all;
}

TestModel alone(int options, bool posterior, int columns) {
  Batch batch;
  batch.id = {0};
  return {fmt::format("one choice of {} options{}{}", options, columns > 1 ? fmt::format(", {} columns", columns) : "",
                      posterior ? ", with a posterior" : ""),
          std::make_unique<SmallModel<double>>(options, columns, SmallLoss{}, 1.2, posterior), batch};
}

TestModel shifted(int options, double shift) {
  if (options == 0)
    return {fmt::format("numbers, losses + {}", shift), std::make_unique<Drift<double>>(true, shift), Drift<double>::batch()};
  return {fmt::format("recurrent, {} options, losses + {}", options, shift),
          std::make_unique<Recurrent<double>>(true, Key(5), options, shift), Recurrent<double>::batch(options)};
}

}  // namespace hardgrad::verification
