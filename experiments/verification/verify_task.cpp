#include "experiments/verification/verify.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <numeric>
#include <set>

#include "core/choice/declared.hpp"
#include "core/choice/handlers.hpp"
#include "core/models/model.hpp"
#include "core/support/error.hpp"
#include "experiments/tasks/task.hpp"
#include "experiments/training/evaluation.hpp"

namespace hardgrad::verification {
namespace {

constexpr tasks::Split splits[] = {tasks::Split::train, tasks::Split::heldout, tasks::Split::test};
constexpr std::size_t few = 6, many = 300;  // examples of each split, for detailed and for quick checks

/// f(name, values) of every field, until it returns a fault.
template <class F>
std::string of_fields(const Batch& batch, F f) {
  for (const auto& [name, values] : batch.integers)
    if (std::string problem = f(name, values); !problem.empty()) return problem;
  for (const auto& [name, values] : batch.reals)
    if (std::string problem = f(name, values); !problem.empty()) return problem;
  return "";
}

template <class X>
const Array<X>* field(const Batch& batch, const std::string& name, const Array<X>&) {
  const auto in = [&](const auto& fields) {
    const auto entry = fields.find(name);
    return entry == fields.end() ? nullptr : &entry->second;
  };
  if constexpr (std::is_same_v<X, int>)
    return in(batch.integers);
  else
    return in(batch.reals);
}

/// Compares example i of `alone` with example j of `among`, which may be padded: every number must be at the same place.
std::string misplaced(const Batch& alone, std::size_t i, const Batch& among, std::size_t j) {
  if (alone.id[i] != among.id[j]) return "its id differs";
  return of_fields(alone, [&](const std::string& name, const auto& values) -> std::string {
    const auto* padded = field(among, name, values);
    if (!padded || padded->dimension() != values.dimension()) return "field " + name + " is missing, or has another rank";
    const auto &from = values.shape(), &to = padded->shape();
    for (std::size_t axis = 1; axis < from.size(); ++axis)
      if (from[axis] > to[axis]) return "field " + name + " is longer alone";
    xt::xstrided_slice_vector corner{static_cast<std::ptrdiff_t>(j)};  // another type may be taken for the vector's length
    for (std::size_t axis = 1; axis < from.size(); ++axis) corner.emplace_back(xt::range(0, from[axis]));
    return xt::all(xt::equal(xt::view(values, i), xt::strided_view(*padded, corner))) ? "" : "field " + name + " differs";
  });
}

std::string same(const Batch& a, const Batch& b) {
  if (a.id != b.id) return "ids differ";
  for (std::size_t i = 0; i < a.id.size(); ++i)
    if (auto off = misplaced(a, i, b, i); !off.empty()) return off;
  return "";
}

std::vector<int> first(std::size_t count) {
  std::vector<int> all(count);
  std::iota(all.begin(), all.end(), 0);
  return all;
}

/// The content of an example, as bytes to compare.
std::string content(const Batch& one) {
  std::string bytes;
  of_fields(one, [&](const std::string& name, const auto& values) {
    bytes += fmt::format("{} [{}]:", name, fmt::join(values.shape(), ", "));
    bytes.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(values.flat(0)));
    return std::string();
  });
  return bytes;
}

class TaskVerifier {
 public:
  TaskVerifier(const Spec& spec, bool to_the_first_failure)
      : spec_(spec),
        to_the_first_failure_(to_the_first_failure),
        verdict_{"task", spec.text, {}},
        task_(tasks::make_task(spec, Key(1) / "data")) {}

  Verdict run() {
    for (auto split : splits)
      if (task_->size(split) > 0) {
        where_ = to_string(split);
        check("fields", [&](auto& detail) { return fields(split, detail); });
        if (!verdict_.passed()) return std::move(verdict_);  // without sound fields no other check can run
        check("order", [&](auto&) { return order(split); });
        check("padding", [&](auto&) { return padding(split); });
      } else if (split == tasks::Split::train) {
        verdict_.checks.push_back({"fields", "train", Check::Outcome::failed, "the training split is empty"});
        return std::move(verdict_);
      }
    where_ = "all splits";
    check("ids", [&](auto& detail) { return ids(detail); });
    check("seed", [&](auto& detail) { return seed(detail); });
    where_ = "train";
    check("training", [&](auto& detail) { return training(detail); });
    const auto& entry = tasks::Tasks::instance().at(spec_.name);
    for (auto split : splits) {
      if (task_->size(split) == 0) continue;
      where_ = to_string(split);
      check("dimensions", [&](auto& detail) { return runs(entry.default_model, split, detail); });
    }
    return std::move(verdict_);
  }

 private:
  template <class F>
  void check(const char* what, F find) {
    if (to_the_first_failure_ && verdict_.count(Check::Outcome::failed) > 0) return;
    std::string detail;
    const auto failure = guarded([&] { return find(detail); });
    verdict_.checks.push_back(
        {what, where_, failure.empty() ? Check::Outcome::passed : Check::Outcome::failed, failure.empty() ? detail : failure});
  }
  std::vector<int> closely(tasks::Split split) const { return first(std::min(few, task_->size(split))); }

  std::string fields(tasks::Split split, std::string& detail) const {
    const auto index = first(std::min(many, task_->size(split)));
    const auto batch = task_->batch(split, index);
    if (batch.id.size() != index.size())
      return fmt::format("{} examples were requested, {} ids returned", index.size(), batch.id.size());
    std::vector<std::string> names;
    auto wrong = of_fields(batch, [&](const std::string& name, const auto& values) -> std::string {
      names.push_back(fmt::format("{} [{}]", name, fmt::join(values.shape(), ", ")));
      if (values.shape().empty() || values.shape()[0] != index.size())
        return fmt::format("field {} has the shape [{}] for {} examples", name, fmt::join(values.shape(), ", "), index.size());
      for (double x : values)
        if (!std::isfinite(x)) return fmt::format("field {} has a number that is {}", name, x);
      return "";
    });
    detail = fmt::format("{} examples: {}", task_->size(split), fmt::join(names, ", "));
    return wrong;
  }

  std::string order(tasks::Split split) const {
    const auto index = closely(split);
    const auto batch = task_->batch(split, index);
    auto other = std::vector<int>(index.rbegin(), index.rend());
    other.push_back(index[0]);
    const auto reversed = task_->batch(split, other);
    for (std::size_t i = 0; i < index.size(); ++i)
      if (auto off = misplaced(batch, i, reversed, index.size() - 1 - i); !off.empty())
        return fmt::format("example {} differs at another place in a batch: {}", i + 1, off);
    if (auto off = misplaced(reversed, index.size() - 1, reversed, index.size()); !off.empty())
      return "an example requested twice differs: " + off;
    return "";
  }

  std::string padding(tasks::Split split) const {
    const auto index = closely(split);
    const auto batch = task_->batch(split, index);
    for (std::size_t i = 0; i < index.size(); ++i)
      if (auto off = misplaced(task_->batch(split, {index[i]}), 0, batch, i); !off.empty())
        return fmt::format("example {} alone differs from the batch: {}", i + 1, off);
    return "";
  }

  std::string ids(std::string& detail) const {
    std::map<std::uint32_t, std::string> known;  // content by id
    std::set<std::string> trained;
    std::size_t repeated = 0, judged = 0;
    for (auto split : splits) {
      const auto size = task_->size(split), count = std::min(many, size);
      for (std::size_t i = 0; i < count; ++i) {
        const auto one = task_->batch(split, {static_cast<int>(i * size / count)});
        const auto holds = content(one);
        if (known.try_emplace(one.id[0], holds).first->second != holds)
          return fmt::format("example {} of {} has the id {} of a different example", i * size / count + 1, to_string(split),
                             one.id[0]);
        if (split == tasks::Split::train) {
          trained.insert(holds);
        } else {
          ++judged;
          repeated += trained.contains(holds);
        }
      }
    }
    detail = fmt::format("{} ids; of {} examples in the other splits, {} are also in training", known.size(), judged, repeated);
    return "";
  }

  std::string seed(std::string& detail) const {
    const auto again = tasks::make_task(spec_, Key(1) / "data"), other = tasks::make_task(spec_, Key(2) / "data");
    std::vector<std::string> moved;
    for (auto split : splits) {
      if (again->size(split) != task_->size(split))
        return fmt::format("a second time, {} has a different size", to_string(split));
      if (task_->size(split) == 0) continue;
      const auto index = closely(split);
      const auto batch = task_->batch(split, index);
      if (auto off = same(batch, again->batch(split, index)); !off.empty())
        return fmt::format("a second time with the same seed, {} differs: {}", to_string(split), off);
      if (other->size(split) != task_->size(split) || content(batch) != content(other->batch(split, index)))
        moved.push_back(to_string(split));
    }
    detail = moved.empty() ? "another seed changes nothing" : fmt::format("another seed changes {}", fmt::join(moved, ", "));
    return "";
  }

  std::string training(std::string& detail) const {
    const auto index = closely(tasks::Split::train);
    const auto batch = task_->training_batch(index, Key(5));
    if (batch.id != task_->batch(tasks::Split::train, index).id) return "their ids differ from those of Task::batch";
    if (auto off = same(batch, task_->training_batch(index, Key(5))); !off.empty())
      return "a second time with the same key: " + off;
    const bool anew = content(batch) != content(task_->training_batch(index, Key(6)));
    detail = anew ? "examples are drawn anew in every epoch" : "the same in every epoch";
    return "";
  }

  std::string runs(const std::string& name, tasks::Split split, std::string& detail) const {
    const auto model = make_model<float>(Spec::parse(name), task_->dimensions(), Key(1) / "init");
    const auto batch = task_->batch(split, closely(split));
    auto metrics = task_->metrics();
    std::set<std::string> names;
    for (const auto& metric : metrics)
      if (!names.insert(metric.name).second) return "two metrics have the name " + metric.name;
    for (bool freely : {false, true}) {
      if (freely && !task_->decodes()) continue;
      Tape<float> tape;
      GreedyHandler<float> handler;
      Episode<float> run(tape, handler, batch.examples());
      if (freely) run.run_freely();
      model->run(batch, run);
      if (auto wrong = undeclared(model->structure(), run); !wrong.empty()) return wrong;
      for (const auto& cost : run.costs())
        for (float x : cost.loss.value().span())
          if (!std::isfinite(x)) return fmt::format("{} has a loss of {}", name, x);
      freely ? task_->score_decoded(batch, training::observe(run), metrics)
             : task_->score(batch, training::observe(run), metrics);
    }
    std::vector<std::string> found;
    for (const auto& metric : metrics) {
      const bool counted = metric.formula || metric.denominator > 0;
      if (counted && !std::isfinite(metric.value())) return fmt::format("metric {} is {}", metric.name, metric.value());
      found.push_back(counted ? fmt::format("{} {:.3g}", metric.name, metric.value()) : metric.name + " not counted");
    }
    detail = fmt::format("{} runs{}{}", name, found.empty() ? "" : ": ", fmt::join(found, ", "));
    return "";
  }

  Spec spec_;
  bool to_the_first_failure_;
  Verdict verdict_;
  std::unique_ptr<tasks::Task> task_;
  std::string where_;
};

}  // namespace

Verdict verify_task(const Spec& task, bool to_the_first_failure) { return TaskVerifier(task, to_the_first_failure).run(); }

}  // namespace hardgrad::verification
