// plan.json: a plan as one JSON object. Each cell is a line, so that a plan is read without holding all cells.
//   {<settings of the plan>,"cells":[
//   {<cell>},
//   {<cell>}
//   ],"common":"<lines that all identities have>","checksum":"<hash of all bytes before this key>"}
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <xxhash.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <memory>

#include "core/support/error.hpp"
#include "experiments/storage/atomic_file.hpp"
#include "experiments/support/path_kind.hpp"
#include "experiments/sweeps/folder.hpp"
#include "experiments/sweeps/rerun_explainer.hpp"
#include "experiments/sweeps/tuning.hpp"

namespace hardgrad::sweeps {
namespace {

constexpr int format = 3;
constexpr std::string_view cells_mark = ",\"cells\":[", common_mark = "],\"common\":", sum_mark = ",\"checksum\":\"";

// The lines of a text, sorted.
std::vector<std::string_view> sorted_lines(std::string_view text) {
  std::vector<std::string_view> lines;
  for (std::size_t end; (end = text.find('\n')) != std::string_view::npos; text.remove_prefix(end + 1))
    lines.push_back(text.substr(0, end + 1));
  std::sort(lines.begin(), lines.end());
  return lines;
}

// Of the first text, sorted, the lines that the second lacks (`in` false) or has.
std::string lines_of(std::string_view text, std::string_view other, bool in) {
  const auto others = sorted_lines(other);
  std::string found;
  for (const auto line : sorted_lines(text))
    if (std::binary_search(others.begin(), others.end(), line) == in) found += line;
  return found;
}

nlohmann::json head_of(const Plan& plan) {
  nlohmann::json head{{"format", format},        {"name", plan.name}, {"hash", plan.hash},
                      {"content", plan.content}, {"seed", plan.seed}, {"precision", name_of(plan.precision, precisions)},
                      {"config", plan.config}};
  if (plan.tuning)
    head.update({{"tune", plan.tuning->config->tune->text()},
                 {"metric", plan.tuning->config->tune->metric},
                 {"searches", tuning_json(plan)},
                 {"to_come", plan.tuning->to_come.size()},
                 {"work_to_come", work_of(selected_cells(plan, {}, 1, 1, true))}});
  return head;
}

// The lines that all identities have, which are written once: they are most of the text.
std::string common_of(const Plan& plan) {
  std::string common;
  bool first = true;
  plan.each_cell([&](const Cell& cell) {
    const auto text = identity(plan.precision, plan.seed, cell);
    common = std::exchange(first, false) ? text : lines_of(common, text, true);
  });
  return common;
}

nlohmann::json json_of(const Plan& plan, const Cell& cell, const std::string& common) {
  nlohmann::json json{{"hash", cell.hash},
                      {"axes", cell.axes},
                      {"identity", lines_of(identity(plan.precision, plan.seed, cell), common, false)},
                      {"skip", cell.skip}};
  if (plan.tuning)
    json.update({{"round", cell.round}, {"search", cell.search}, {"setting", cell.setting}, {"share", cell.share}});
  return json;
}

std::string text_of(const nlohmann::json& json) { return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace); }

bool has_text(const nlohmann::json& object, const char* key) { return object.contains(key) && object.at(key).is_string(); }

bool is_cell(const nlohmann::json& cell) {
  return cell.is_object() && has_text(cell, "hash") && has_text(cell, "skip") && cell.contains("axes") &&
         cell.at("axes").is_object() && has_text(cell.at("axes"), "task") && has_text(cell.at("axes"), "model") &&
         has_text(cell.at("axes"), "estimator") && has_text(cell.at("axes"), "seed");
}

// Reads the lines of plan.json one after another.
class Reader {
 public:
  explicit Reader(const EachPlanned& each) : each_(each), sum_(XXH64_createState(), XXH64_freeState) {
    XXH64_reset(sum_.get(), 0);
  }
  void take(std::string_view line) {
    if (!good_ || ended_) {
      good_ = false;
    } else if (head.is_null()) {
      good_ = line.ends_with(cells_mark);
      if (good_) head = parsed(std::string(line.substr(0, line.size() - cells_mark.size())) + "}");
      good_ = good_ && head.is_object() && has_text(head, "hash") && has_text(head, "name") && has_text(head, "config") &&
              head.value("format", 0) == format;
    } else if (line.starts_with(common_mark)) {
      end(line);
    } else {
      const auto cell = parsed(line.substr(0, line.size() - line.ends_with(',')));
      good_ = is_cell(cell);
      if (good_) each_(head, cell);
    }
    add(line);
    add("\n");
  }
  bool good() const { return good_ && ended_; }

  nlohmann::json head;

 private:
  static nlohmann::json parsed(std::string_view text) { return nlohmann::json::parse(text, nullptr, false); }
  void add(std::string_view bytes) { XXH64_update(sum_.get(), bytes.data(), bytes.size()); }
  void end(std::string_view line) {
    ended_ = true;
    const auto mark = line.rfind(sum_mark);
    good_ = mark != std::string_view::npos;
    if (!good_) return;
    const auto hashed = line.substr(0, mark), common = hashed.substr(common_mark.size());
    add(hashed);
    good_ = line.substr(mark) == fmt::format("{}{:016x}\"}}", sum_mark, XXH64_digest(sum_.get()));
    if (good_) head["common"] = parsed(common);
  }

  const EachPlanned& each_;
  std::unique_ptr<XXH64_state_t, XXH_errorcode (*)(XXH64_state_t*)> sum_;
  bool good_ = true, ended_ = false;
};

}  // namespace

nlohmann::json Plan::json() const {
  auto all = head_of(*this);
  all["common"] = common_of(*this);
  all["cells"] = nlohmann::json::array();
  each_cell([&](const Cell& cell) { all["cells"].push_back(json_of(*this, cell, all["common"])); });
  return all;
}

std::string frozen(const Plan& plan) {
  auto text = text_of(head_of(plan));
  text.pop_back();
  text += cells_mark;
  text += "\n";
  const auto common = common_of(plan);
  plan.each_cell([&](const Cell& cell) { text += text_of(json_of(plan, cell, common)) + ",\n"; });
  if (text.ends_with(",\n")) text.erase(text.size() - 2, 1);
  text += fmt::format("{}{}", common_mark, text_of(common));
  text += fmt::format("{}{}\"}}\n", sum_mark, text_hash(text));
  return text;
}

nlohmann::json read_plan(const SweepFolder& folder, const EachPlanned& each) {
  if (path_kind(folder.plan()) == PathKind::missing)
    throw InputError(fmt::format("{}: not the folder of a sweep: it {}", folder.path,
                                 path_kind(folder.path) == PathKind::file ? "is a file" : "has no plan.json"));
  Reader reader(each);
  storage::each_line(folder.plan(), [&](std::string_view line) { reader.take(line); });
  if (reader.good()) return std::move(reader.head);
  const auto other = nlohmann::json::parse(storage::read_file(folder.plan()), nullptr, false);
  const auto version = other.is_object() && other.contains("format") && other["format"].is_number_integer()
                           ? other["format"].get<int>()
                           : format;
  throw InputError(fmt::format("{}: {}; `hardgrad run --force` rewrites it and keeps finished cells", folder.plan(),
                               version < format   ? "is of an older release"
                               : version > format ? "is of a newer release, which can read it"
                                                  : "damaged"));
}

nlohmann::json read_plan(const SweepFolder& folder) {
  auto cells = nlohmann::json::array();
  auto plan = read_plan(folder, [&](const auto&, const auto& cell) { cells.push_back(cell); });
  plan["cells"] = std::move(cells);
  return plan;
}

std::string plan_difference(const nlohmann::json& frozen, const Plan& plan) {
  if (frozen.value("hash", "") == plan.hash) return {};
  const auto now = plan.json();
  if (const auto rule = now.value("tune", ""), was = frozen.value("tune", ""); rule != was)
    return was.empty()    ? "nothing was tuned -> [tune]"
           : rule.empty() ? "[tune] -> nothing is tuned"
                          : identity_difference(was, rule);
  if (frozen.value("name", "") != plan.name) return fmt::format("name {} -> {}", frozen.value("name", ""), plan.name);
  if (frozen.value("seed", std::uint64_t{0}) != plan.seed)
    return fmt::format("seed {} -> {}", frozen.value("seed", std::uint64_t{0}), plan.seed);
  if (const auto was = frozen.value("precision", ""), is = std::string(name_of(plan.precision, precisions)); was != is)
    return fmt::format("precision {} -> {}", was, is);
  std::map<std::string, nlohmann::json> before, after;
  const auto key = [](const nlohmann::json& cell) { return cell.at("axes").dump() + std::to_string(cell.value("round", 0)); };
  for (const auto& cell : frozen.at("cells")) before[key(cell)] = cell;
  for (const auto& cell : now.at("cells")) after[key(cell)] = cell;
  std::size_t added = 0, removed = 0, changed = 0;
  std::string example;
  for (const auto& [key, cell] : after) {
    const auto it = before.find(key);
    if (it == before.end()) {
      ++added;
    } else if (it->second.at("hash") != cell.at("hash")) {
      ++changed;
      if (example.empty())
        example = identity_difference(frozen.value("common", "") + it->second.value("identity", ""),
                                      now.value("common", "") + cell.value("identity", ""));
    }
  }
  for (const auto& [key, cell] : before) removed += !after.contains(key);
  std::vector<std::string> parts;
  const auto cells = [](std::size_t n) { return fmt::format("{} cell{}", n, n == 1 ? "" : "s"); };
  if (changed) parts.push_back(fmt::format("{} changed ({})", cells(changed), example));
  if (added) parts.push_back(cells(added) + " more");
  if (removed) parts.push_back(cells(removed) + " fewer");
  return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace hardgrad::sweeps
