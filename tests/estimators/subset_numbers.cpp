// Prints, for each model spec on standard input, the numbers of its distribution of subsets and the exact moments of estimators
// (its arguments), one list a line: `name number number ...`. For test_subsets.py.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <iostream>
#include <string>

#include "core/choice/handlers.hpp"
#include "core/estimator/estimator.hpp"
#include "core/models/model.hpp"
#include "experiments/measurement/exact_moments.hpp"
#include "experiments/measurement/reference_gradient.hpp"

namespace hardgrad {
namespace {

void print(const std::string& name, std::span<const double> numbers) {
  fmt::print("{}", name);
  for (double x : numbers) fmt::print(" {:.17g}", x);
  fmt::print("\n");
}

void print_numbers_of(const std::string& spec, const std::vector<std::string>& estimators) {
  const auto model = make_model<double>(Spec::parse(spec), {{"subsets", 1}}, Key(3));
  Batch batch;
  batch.id = {0};
  Tape<double> tape;
  EnumerateHandler<double> handler;
  Episode<double> episode(tape, handler, 1);
  model->run(batch, episode);
  const auto& [question, choice] = episode.steps()[0];
  const auto numbers = [](Var<double> x) { return std::span<const double>(x.value().data, x.value().size()); };
  print("log_p", numbers(episode.log_probability(0)));
  print("marginals", numbers(question.distribution->mean(Rows::after(episode.root(), {0}, 0)).weights()));
  print("entropy", numbers(question.distribution->entropy()));
  print("loss", numbers(episode.costs()[0].loss));
  const auto truth = measurement::exact_reference({}, *model, batch, 1e6);
  print("truth", truth.gradient);
  for (const auto& name : estimators) {
    if (!why_unsupported(Spec::parse(name), model->structure()).empty()) continue;  // more outcomes than there are
    const auto estimator = make_estimator<double>(Spec::parse(name), model->structure(), Key(1));
    const auto moments = measurement::exact_moments(*estimator, *model, batch, truth.of_example, 1e6);
    print(name + ".mean", moments.mean);
    print(name + ".variance", moments.variances);
  }
  fmt::print("\n");
}

}  // namespace
}  // namespace hardgrad

int main(int count, char** arguments) {
  const std::vector<std::string> estimators(arguments + 1, arguments + count);
  for (std::string spec; std::getline(std::cin, spec);) hardgrad::print_numbers_of(spec, estimators);
}
