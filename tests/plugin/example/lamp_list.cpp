// lamp_list: a task with a list of examples, drawn or read from a file, for lamp_reader in lamps.cpp.
#include <hardgrad/experiments/tasks/draws.hpp>
#include <hardgrad/experiments/tasks/listed.hpp>
#include <hardgrad/experiments/tasks/loaders/input_file.hpp>

#include <cstdlib>

using namespace hardgrad;
using namespace hardgrad::tasks;

struct LampListConfig {
  int lamps = 4, examples = 40;
  std::string path;
  SplitShares shares{.heldout = 0.2, .test = 0.2};

  void declare(Fields& field) {
    field(lamps, "lamps", 2, 1000, "lamps S");
    field.file(path, "path", "a file with the lit lamp of each example, from 1, in a line; empty: drawn");
    field(examples, "examples", 3, 1e6, "drawn examples");
    shares.declare(field, "held-out share", "test share");
  }
};

/// Field: reals "light" [B, S], one-hot.
class LampList final : public Listed {
 public:
  LampList(const LampListConfig& config, Key key) : lamps_(config.lamps) {
    require_shares("lamp_list", config.shares);
    if (const auto path = find_input(config.path); path.empty()) {
      Draws draws(key / "lit");
      for (int i = 0; i < config.examples; ++i) lit_.push_back(draws.below(lamps_));
    } else {
      provenance_ = path;
      const auto text = read_text(path);
      for (std::size_t i = 0; i < text.lines.size(); ++i) {
        const int lamp = std::atoi(text.lines[i].c_str());
        if (lamp < 1 || lamp > lamps_) refuse_input(path, i + 1, 1, "expected a lamp from 1 to " + std::to_string(lamps_));
        lit_.push_back(lamp - 1);
      }
    }
    std::vector<std::string> groups;
    for (std::size_t i = 0; i < lit_.size(); ++i) groups.push_back(std::to_string(i));
    part(groups, split_by_group(groups, config.shares.heldout, config.shares.test, key / "split"), key / "order",
         "no lamp is lit");
    provenance_ += ": " + counts();
  }
  Dimensions dimensions() const override { return {{"lamps", lamps_}}; }
  Batch batch(Split split, const std::vector<int>& indices) const override {
    Batch batch;
    batch.id = ids(split, indices);
    batch.reals["light"] = zeros<double>({indices.size(), static_cast<std::size_t>(lamps_)});
    for (std::size_t b = 0; b < batch.id.size(); ++b) row_of(batch.reals["light"], b)[lit_[batch.id[b]]] = 1;
    return batch;
  }
  std::vector<Metric> metrics() const override { return {{.name = "found", .unit = "1"}}; }
  void score(const Batch& batch, const Observation& seen, std::vector<Metric>& metrics) const override {
    for (int b = 0; b < batch.examples(); ++b)
      metrics[0].add(row_of(batch.numbers("light"), b)[row_of(seen.choices, b)[0]] == 1);
  }

 private:
  int lamps_;
  std::vector<int> lit_;
};

const TaskEntry task = {
    .name = "lamp_list",
    .summary = "one lamp is lit in each example: find it",
    .data = "drawn, or a file of numbers",
    .default_model = "lamp_reader",
    .parameters = declared<LampListConfig>(),
};
HARDGRAD_TASK(LampList, task)
