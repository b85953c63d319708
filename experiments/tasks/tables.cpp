// Questions about small tables, answered by programs. As in Neelakantan, Le & Sutskever 2016, sec. 3, tables and questions are
// generated, and only answers are given for training.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <numeric>

#include "core/support/text.hpp"
#include "experiments/tasks/draws.hpp"
#include "experiments/tasks/loaders/csv_table.hpp"
#include "experiments/tasks/loaders/input_file.hpp"
#include "experiments/tasks/on_demand.hpp"
#include "experiments/tasks/table_programs.hpp"
#include "experiments/tasks/text.hpp"

namespace hardgrad::tasks::tables {
namespace {

const std::vector<std::string> generated_names{"games",  "wins",   "goals", "points", "age",
                                               "height", "weight", "price", "year",   "score"};
constexpr std::size_t most_numbers = 2;  // numbers per question

/// The CSV files of a path: the file itself, or those in the folder, sorted by name.
std::vector<std::string> csv_files(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (!fs::is_directory(path, error)) return {path};
  std::vector<std::string> files;
  for (const auto& entry : fs::directory_iterator(path, error))
    if (const auto name = entry.path().filename().string(); name.ends_with(".csv") || name.ends_with(".csv.gz"))
      files.push_back(entry.path().string());
  if (error) refuse_input(path, 0, 0, "cannot be listed: " + error.message());
  if (files.empty()) refuse_input(path, 0, 0, "holds no file whose name ends in .csv or .csv.gz");
  std::sort(files.begin(), files.end());
  return files;
}

struct Config {
  int steps = 2, columns = 0, min_rows = 3, max_rows = 8, range = 10;
  bool lists = true, shuffle = false;
  std::string path;
  SplitSizes sizes{.examples = 100000, .heldout = 1000, .test = 1000};

  void declare(Fields& field) {
    field(steps, "steps", 1, 4, "most instructions of a program: 1, 2 or 4 (\"where\" takes 2, \"where ... and\" 4)");
    field(columns, "columns", 0, 1000, "columns of a table, the first ones; 0: 3 if generated, all of a file");
    field(min_rows, "min_rows", 1, 1000, "fewest rows of a table");
    field(max_rows, "max_rows", 1, 1000, "most rows of a table; each question samples rows from a larger file");
    field(range, "range", 1, 1000000, "generated numbers are integers from -range to range");
    field(lists, "lists", "some questions ask for the cells of a column");
    field(shuffle, "shuffle", "shuffle the columns of each question's table");
    field.file(path, "path", "a CSV file, or a folder of them; empty: generated tables");
    sizes.declare(field, "questions");
  }
};

/// Fields:
///   question, question_length      [B, W] words, [B]
///   number, numbers, number_place  [B, 2] the question's numbers, [B] their count, [B, 2] their places among the words
///   table, table_rows,             [B, R, C], [B],
///   table_columns, column_name     [B], [B, C] words
///   answer                         [B] a number
///   asks_cells, wanted             [B] 1 if the answer is cells, [B, R] for each row the column, from 1, of its cell (0: none)
///   unit                           [B] the unit of the last digit of the table's numbers
///   gold_operation, gold_column    [B, T] the program after leading resets; column -1 if the operation reads none
/// Examples are made on demand from their ids. With `like`, the task that a network was trained on, words and column names are
/// those of that task.
class Tables final : public OnDemand {
 public:
  Tables(const Config& config, Key key, const Tables* like)
      : OnDemand(config.sizes),
        key_(key),
        steps_(config.steps),
        columns_(config.columns),
        least_(config.min_rows),
        most_(config.max_rows),
        range_(config.range),
        lists_(config.lists),
        shuffle_(config.shuffle) {
    if (least_ > most_) throw UsageError(fmt::format("tables: min_rows must be at most max_rows, {}, got {}", most_, least_));
    if (const auto path = find_input(config.path); !path.empty())
      read(path);
    else
      generate();
    for (const auto& table : tables_) widest_ = std::max(widest_, table.names.size());
    if (like) {
      vocabulary_ = like->vocabulary_;
      for (const auto& table : tables_)
        for (const auto& name : table.names)
          if (vocabulary_.word(vocabulary_.index(name)) != name)
            throw InputError(fmt::format("{}: the network knows no column \"{}\": it was trained on other tables", provenance_,
                                         excerpt(name)));
    } else {
      vocabulary_.count(question_words());
      for (const auto& table : tables_) vocabulary_.count(table.names);
      vocabulary_.close(1);
    }
  }

  Dimensions dimensions() const override {
    return {{"vocabulary", vocabulary_.size()},
            {"table_columns", static_cast<int>(widest_)},
            {"program_steps", longest_program(steps_)}};
  }
  std::string provenance() const override { return provenance_; }
  std::string word(const std::string& field, int number) const override {
    if (field == "gold_operation") return std::string(table_operations.at(static_cast<std::size_t>(number)));
    if (number == Vocabulary::pad || (field != "question" && field != "column_name")) return {};
    return vocabulary_.word(number);
  }

  Batch batch(Split split, const std::vector<int>& indices) const override {
    const auto B = indices.size(), T = static_cast<std::size_t>(longest_program(steps_));
    Batch batch;
    std::vector<Example> examples;
    std::size_t W = 0, R = 0, C = 0;
    for (int index : indices) {
      batch.id.push_back(id_of(split, index));
      examples.push_back(drawn(batch.id.back()));
      W = std::max(W, examples.back().question.words.size());
      R = std::max(R, extent(examples.back().cells, 0));
      C = std::max(C, examples.back().names.size());
    }
    Array<int> question = zeros<int>({B, W}), length = zeros<int>({B}), numbers = zeros<int>({B}),
               place = zeros<int>({B, most_numbers}), rows = zeros<int>({B}), columns = zeros<int>({B}),
               name = zeros<int>({B, C});
    Array<int> asks_cells = zeros<int>({B}), wanted = zeros<int>({B, R}),
               operation = full<int>({B, T}, static_cast<int>(TableOperation::reset)), column = full<int>({B, T}, -1);
    Array<double> number = zeros<double>({B, most_numbers}), cells = zeros<double>({B, R, C}), answer = zeros<double>({B}),
                  unit = zeros<double>({B});
    for (std::size_t b = 0; b < B; ++b) {
      const auto& [names, table, one, asked] = examples[b];
      const auto result = execute(asked.program, table, asked.greater_than, asked.less_than);
      for (std::size_t w = 0; w < asked.words.size(); ++w) question(b, w) = vocabulary_.index(asked.words[w]);
      for (std::size_t j = 0; j < names.size(); ++j) name(b, j) = vocabulary_.index(names[j]);
      xt::view(cells, b, xt::range(0, extent(table, 0)), xt::range(0, extent(table, 1))) = table;
      std::copy(asked.numbers.begin(), asked.numbers.end(), row_of(number, b).begin());
      std::copy(asked.places.begin(), asked.places.end(), row_of(place, b).begin());
      std::copy(result.wanted.begin(), result.wanted.end(), row_of(wanted, b).begin());
      length(b) = static_cast<int>(asked.words.size());
      numbers(b) = static_cast<int>(asked.numbers.size());
      rows(b) = static_cast<int>(extent(table, 0));
      columns(b) = static_cast<int>(names.size());
      asks_cells(b) = asked.program.back().operation == TableOperation::assign;
      answer(b) = result.number;
      unit(b) = one;
      for (std::size_t t = 0, from = T - asked.program.size(); t < asked.program.size(); ++t) {
        operation(b, from + t) = static_cast<int>(asked.program[t].operation);
        column(b, from + t) = asked.program[t].column;
      }
    }
    batch.integers = {
        {"question", std::move(question)},        {"question_length", std::move(length)}, {"numbers", std::move(numbers)},
        {"number_place", std::move(place)},       {"table_rows", std::move(rows)},        {"table_columns", std::move(columns)},
        {"column_name", std::move(name)},         {"asks_cells", std::move(asks_cells)},  {"wanted", std::move(wanted)},
        {"gold_operation", std::move(operation)}, {"gold_column", std::move(column)}};
    batch.reals = {
        {"number", std::move(number)}, {"table", std::move(cells)}, {"answer", std::move(answer)}, {"unit", std::move(unit)}};
    return batch;
  }

  std::vector<Metric> metrics() const override {
    return {{.name = "accuracy", .unit = "1", .share = true}, {.name = "gold_program", .unit = "1"}};
  }
  /// accuracy: the number is right (to half a unit, or to a relative 1e-6), or exactly the wanted cells are given.
  /// gold_program: the program has the meaning of the question's own.
  void score(const Batch& batch, const Observation& seen, std::vector<Metric>& metrics) const override {
    const auto &rows = batch.ints("table_rows").storage(), &asks_cells = batch.ints("asks_cells").storage();
    for (int b = 0; b < batch.examples(); ++b) {
      const auto said = row_of(seen.predictions, b);
      const auto wanted = row_of(batch.ints("wanted"), b);
      const double number = std::round(batch.numbers("answer")(b) / batch.numbers("unit")(b));
      bool right = said.size() > static_cast<std::size_t>(rows[b]) &&
                   std::equal(wanted.begin(), wanted.begin() + rows[b], said.begin() + 1);
      if (right && asks_cells[b] == 0) right = std::abs(said[0] - number) <= 1e-6 * std::abs(number);
      const auto chosen = row_of(seen.choices, b);
      TableProgram program, gold;
      for (std::size_t c = 0; c + 1 < chosen.size() && chosen[c] >= 0; c += 2)
        program.push_back({static_cast<TableOperation>(chosen[c]), chosen[c + 1]});
      const auto operation = row_of(batch.ints("gold_operation"), b), column = row_of(batch.ints("gold_column"), b);
      for (std::size_t t = 0; t < operation.size(); ++t) gold.push_back({static_cast<TableOperation>(operation[t]), column[t]});
      metrics[0].add(right);
      metrics[1].add(!program.empty() && meaning(program) == meaning(gold));
    }
  }

 private:
  struct Example {
    std::vector<std::string> names;
    Array<double> cells;  // [R, C]
    double unit;
    TableQuestion question;
  };

  void generate() {
    if (columns_ > generated_names.size())
      throw UsageError(
          fmt::format("tables: generated tables have at most {} columns, got columns={}", generated_names.size(), columns_));
    const auto count = static_cast<std::ptrdiff_t>(columns_ > 0 ? columns_ : 3);
    tables_ = {{.names = {generated_names.begin(), generated_names.begin() + count}, .cells = zeros<double>({0, 0})}};
    provenance_ = "generated";
  }

  // Reads the tables and keeps the first columns of each.
  void read(const std::string& path) {
    std::size_t rows = 0;
    for (const auto& file : csv_files(path)) {
      auto table = read_csv_table(file);
      const auto R = extent(table.cells, 0), C = extent(table.cells, 1);
      if (columns_ > C)
        refuse_input(file, 0, 0, fmt::format("columns={} exceeds the table's {}; give columns={} or fewer", columns_, C, C));
      if (R < least_)
        refuse_input(file, 0, 0, fmt::format("min_rows={} exceeds the table's {}; give min_rows={} or less", least_, R, R));
      if (const auto kept = columns_ > 0 ? columns_ : C; kept < C) {
        table.cells = Array<double>(xt::view(table.cells, xt::all(), xt::range(0, kept)));
        table.names.resize(kept);
      }
      const double unit = std::pow(10.0, -table.decimals);
      for (double x : table.cells)
        if (std::abs(x) / unit * static_cast<double>(std::min(most_, R)) > 1e9)
          refuse_input(
              file, 0, 0,
              fmt::format("a sum of {} numbers like {} would have more than nine digits; give rounded or scaled numbers",
                          std::min(most_, R), x));
      rows += R;
      tables_.push_back(std::move(table));
    }
    provenance_ = fmt::format("{}: {} table{}, {} rows", path, tables_.size(), tables_.size() == 1 ? "" : "s", rows);
  }

  Example drawn(std::uint32_t id) const {
    Draws draw(key_ / "question", id);
    const auto below = [&](std::size_t bound) { return draw.below(bound); };
    const auto& table = tables_[tables_.size() > 1 ? below(tables_.size()) : 0];
    const bool generated = table.cells.size() == 0;
    const auto C = table.names.size(), R = generated ? most_ : std::min(most_, extent(table.cells, 0));
    const auto n = least_ + below(R - least_ + 1);
    std::vector<std::size_t> column(C), row(generated ? 0 : extent(table.cells, 0));
    std::iota(column.begin(), column.end(), 0);
    std::iota(row.begin(), row.end(), 0);
    for (std::size_t j = 0; shuffle_ && j + 1 < C; ++j) std::swap(column[j], column[j + below(C - j)]);
    for (std::size_t i = 0; !generated && i < n; ++i) std::swap(row[i], row[i + below(row.size() - i)]);
    Example example{.names = {}, .cells = zeros<double>({n, C}), .unit = std::pow(10.0, -table.decimals), .question = {}};
    for (auto j : column) example.names.push_back(table.names[j]);
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j < C; ++j)
        example.cells(i, j) = generated ? static_cast<double>(below(2 * range_ + 1)) - static_cast<double>(range_)
                                        : table.cells(row[i], column[j]);
    example.question = draw_question(example.names, example.cells, steps_, lists_, below);
    return example;
  }

  Key key_;
  std::size_t steps_, columns_, least_, most_, range_, widest_ = 0;
  bool lists_, shuffle_;
  std::vector<CsvTable> tables_;  // generated: names only
  Vocabulary vocabulary_;
  std::string provenance_;
};

const TaskEntry entry = {
    .name = "tables",
    .summary = "questions about tables of numbers, each with the program that answers it",
    .data = "generated, or CSV files of numbers below a line of names (path=)",
    .default_model = "programmer",
    .parameters = declared<Config>(),
};
HARDGRAD_TASK(Tables, entry)

}  // namespace
}  // namespace hardgrad::tasks::tables
