#include "experiments/tasks/table_programs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "core/support/error.hpp"

namespace hardgrad::tasks {
namespace {

using enum TableOperation;

// Expressions of `meaning`; steps are counted from 1.
struct Meaning {
  const TableProgram& program;
  inline static const std::string every = "every row", none = "no row", minus = "minus ";

  const Instruction& at(int t) const { return program[static_cast<std::size_t>(t) - 1]; }
  std::string rows(int t) const {
    if (t <= 0 || at(t).operation == reset) return every;
    const auto& [operation, column] = at(t);
    if (operation == greater || operation == lesser)
      return fmt::format("column {} {}", column, table_operations[static_cast<std::size_t>(operation)]);
    if (operation != both && operation != either) return none;
    auto a = rows(t - 1), b = rows(t - 2);
    if (b < a) std::swap(a, b);
    const auto &all = operation == both ? none : every, &nothing = operation == both ? every : none;
    if (a == all || b == all) return all;
    if (a == nothing || a == b) return b;
    if (b == nothing) return a;
    return fmt::format("({} {} {})", a, operation == both ? "and" : "or", b);
  }
  std::string number(int t) const {
    if (t <= 0) return "0";
    const auto& [operation, column] = at(t);
    const auto marked = rows(t - 1);
    if (operation == difference) {
      const auto a = number(t - 3), b = number(t - 1);
      if (a == b || b == "0") return a == b ? "0" : a;
      if (a == "0") return b.starts_with(minus) ? b.substr(minus.size()) : minus + b;
      return fmt::format("({}) - ({})", a, b);
    }
    if ((operation != sum && operation != count) || marked == none) return "0";
    return operation == sum ? fmt::format("sum of column {} in {}", column, marked) : fmt::format("count of {}", marked);
  }
};

}  // namespace

TableAnswer execute(const TableProgram& program, const Array<double>& cells, double greater_than, double less_than) {
  const auto R = extent(cells, 0);
  Array<int> rows = full<int>({R}, 1), before = rows;  // 1: marked
  std::vector<double> number(3, 0);                    // s_{t-3}, s_{t-2}, s_{t-1}
  TableAnswer answer;
  answer.wanted.assign(R, 0);
  for (std::size_t t = 0; t < program.size(); ++t) {
    const auto& [operation, column] = program[t];
    const auto x = [&, &column = column] { return xt::view(cells, xt::all(), static_cast<std::size_t>(column)); };
    Array<int> next = zeros<int>({R});
    double s = 0;
    if (operation == sum) s = xt::sum(xt::where(rows, x(), 0.0))();
    if (operation == count) s = xt::sum(rows)();
    if (operation == greater) next = x() > greater_than;
    if (operation == lesser) next = x() < less_than;
    if (operation == both) next = rows && before;
    if (operation == either) next = rows || before;
    if (operation == reset) next.fill(1);
    if (operation == assign && t + 1 == program.size()) xt::adapt(answer.wanted) = rows * (column + 1);
    if (operation == difference) s = number[0] - number[2];
    number = {number[1], number[2], s};
    before = std::move(rows);
    rows = std::move(next);
  }
  answer.number = number.back();
  return answer;
}

std::string meaning(const TableProgram& program) {
  const Meaning of{program};
  const auto last = static_cast<int>(program.size());
  if (last == 0 || of.at(last).operation != assign) return of.number(last);
  const auto marked = of.rows(last - 1);
  return marked == Meaning::none ? "0" : fmt::format("cells of column {} in {}", of.at(last).column, marked);
}

const std::vector<std::string>& question_words() {
  static const std::vector<std::string> all{"what", "is",  "the",   "sum",   "of",     "how",      "many",
                                            "rows", "are", "there", "list",  "where",  "greater",  "less",
                                            "than", "and", "or",    "minus", "number", number_word};
  return all;
}

int longest_program(std::size_t steps) { return steps >= 4 ? 4 : steps >= 2 ? 2 : 1; }

TableQuestion draw_question(const std::vector<std::string>& names, const Array<double>& cells, std::size_t steps, bool lists,
                            const std::function<std::size_t(std::size_t)>& below) {
  TableQuestion question;
  const auto say = [&](std::initializer_list<std::string> words) { question.words.insert(question.words.end(), words); };
  const auto name = [&](int column) { return names[static_cast<std::size_t>(column)]; };
  const auto draw_column = [&] { return static_cast<int>(below(names.size())); };

  constexpr std::array lengths{1, 2, 4};
  const int length = lengths[below(steps >= 4 ? 3 : steps >= 2 ? 2 : 1)];
  // Kind of question: sum, count or cells of the rows; with four instructions, also sum minus count.
  const std::size_t kinds = lists ? 3 : 2, kind = below(length == 4 ? kinds + 1 : kinds);
  const int column = draw_column();
  if (length == 4 && kind == kinds) {
    say({"what", "is", "the", "sum", "of", name(column), "minus", "the", "number", "of", "rows"});
    question.program = {{sum, column}, {reset}, {count}, {difference}};
    return question;
  }
  const Instruction last = kind == 0 ? Instruction{sum, column} : kind == 1 ? Instruction{count} : Instruction{assign, column};
  if (kind == 0) say({"what", "is", "the", "sum", "of", name(column)});
  if (kind == 1) say({"how", "many", "rows", "are", "there"});
  if (kind == 2) say({"list", name(column)});

  const auto condition = [&](bool is_greater) {
    const int of = draw_column();
    const double value = cells(below(extent(cells, 0)), static_cast<std::size_t>(of));
    say({name(of), "is", is_greater ? "greater" : "less", "than"});
    question.places.push_back(static_cast<int>(question.words.size()));
    question.numbers.push_back(value);
    say({number_word});
    (is_greater ? question.greater_than : question.less_than) = value;
    question.program.push_back({is_greater ? greater : lesser, of});
  };
  if (length > 1) {
    say({"where"});
    const bool first = below(2) == 1;
    condition(first);
    if (length == 4) {
      const bool joined = below(2) == 1;
      say({joined ? "and" : "or"});
      condition(!first);
      question.program.push_back({joined ? both : either});
    }
  }
  question.program.push_back(last);
  return question;
}

}  // namespace hardgrad::tasks
