// Questions about tables: programs and their meanings, questions and their programs, scores, invalid settings.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "core/choice/handlers.hpp"
#include "core/models/model.hpp"
#include "experiments/tasks/table_programs.hpp"
#include "experiments/tasks/task.hpp"
#include "experiments/training/evaluation.hpp"
#include "tests/experiments/tasks/support.hpp"

namespace hardgrad::testing::tables_test {
using namespace measurement;
using namespace tasks;
using namespace training;

using enum TableOperation;

namespace {

std::unique_ptr<Task> make(const std::string& arguments, std::uint64_t seed = 1) {
  return make_task(Spec::parse("tables[" + arguments + "]"), Key(seed));
}
Batch first(const Task& task, Split split, int count) {
  std::vector<int> all(count);
  std::iota(all.begin(), all.end(), 0);
  return task.batch(split, all);
}
/// The words of an example's question, including column names.
std::string text(const Task& task, const Batch& batch, int b) {
  std::string all;
  for (int w = 0; w < batch.ints("question_length")(b); ++w) {
    if (w > 0) all += ' ';
    all += task.word("question", row_of(batch.ints("question"), b)[w]);
  }
  return all;
}

const Array<double> small{{2, -1}, {0.5, 3}, {-2, 1}};
struct Worked {
  TableProgram program;
  double number;
  std::vector<int> wanted;
};

}  // namespace

TEST_CASE("programs compute their operations") {
  const double over = 0, under = 2;
  const std::vector<int> none{0, 0, 0};
  const std::vector<Worked> all = {
      {{{sum, 0}}, 0.5, none},
      {{{count}}, 3, none},
      {{{assign, 1}}, 0, {2, 2, 2}},
      {{{greater, 0}, {sum, 1}}, 2, none},
      {{{lesser, 1}, {assign, 0}}, 0, {1, 0, 1}},
      {{{greater, 0}, {lesser, 1}, {both}, {count}}, 1, none},
      {{{greater, 0}, {lesser, 1}, {either}, {count}}, 3, none},
      {{{greater, 0}, {reset}, {sum, 0}}, 0.5, none},
      {{{sum, 1}, {reset}, {count}, {difference}}, 0, none},
      {{{sum, 0}, {reset}, {count}, {difference}}, -2.5, none},
      {{{count}, {count}}, 0, none},      // a count selects no row
      {{{assign, 0}, {reset}}, 0, none},  // only the last step answers with cells
      {{{both}, {greater, 0}, {both}, {assign, 1}}, 0, {2, 2, 0}},
  };
  for (const auto& [program, number, wanted] : all) {
    const auto answer = execute(program, small, over, under);
    CHECK(answer.number == number);
    CHECK(answer.wanted == wanted);
  }
}

TEST_CASE("programs have equal meanings exactly if they have equal answers") {
  CHECK(meaning({{reset}, {sum, 1}}) == meaning({{sum, 1}}));
  CHECK(meaning({{greater, 0}, {reset}, {count, 2}}) == meaning({{reset}, {reset}, {count}}));
  CHECK(meaning({{greater, 0}, {lesser, 1}, {both, 3}, {sum, 2}}) == meaning({{lesser, 1}, {greater, 0}, {both}, {sum, 2}}));
  CHECK(meaning({{reset}, {lesser, 1}, {both}, {sum, 2}}) == meaning({{lesser, 1}, {sum, 2}}));
  CHECK(meaning({{count}, {lesser, 1}, {either}, {sum, 2}}) == meaning({{lesser, 1}, {sum, 2}}));
  CHECK(meaning({{sum, 1}, {reset}, {count}, {difference}}) != meaning({{reset}, {sum, 1}, {count}, {difference}}));

  // All programs of three instructions on two columns. Equal meanings have equal answers on any table; 200 tables distinguish
  // all other programs.
  std::vector<TableProgram> programs;
  std::vector<Instruction> each;
  for (std::size_t o = 0; o < table_operations.size(); ++o)
    for (int c = 0; c < (reads_column(static_cast<TableOperation>(o)) ? 2 : 1); ++c)
      each.push_back({static_cast<TableOperation>(o), reads_column(static_cast<TableOperation>(o)) ? c : -1});
  for (const auto& a : each)
    for (const auto& b : each)
      for (const auto& c : each) programs.push_back({a, b, c});
  std::map<std::string, std::vector<double>> answers;
  KeyedRandomness random(Key(3));
  std::vector<Array<double>> tables;
  for (std::uint32_t n = 0; n < 200; ++n) {
    tables.emplace_back(std::vector<std::size_t>{4, 2});
    for (std::uint32_t i = 0; i < 8; ++i) tables.back().flat(i) = random.uniform({.example = n, .index = i}) - 0.5;
  }
  int same = 0;
  for (const auto& program : programs) {
    std::vector<double> given;
    for (const auto& table : tables) {
      const auto answer = execute(program, table, 0.1, -0.1);
      given.push_back(answer.number);
      given.insert(given.end(), answer.wanted.begin(), answer.wanted.end());
    }
    const auto [known, fresh] = answers.try_emplace(meaning(program), given);
    CHECK(known->second == given);
    same += !fresh;
  }
  CHECK(programs.size() == 13 * 13 * 13);
  CHECK(same > 1500);
  std::set<std::vector<double>> different;
  for (const auto& [said, given] : answers) different.insert(given);
  CHECK(different.size() == answers.size());
}

TEST_CASE("questions of all kinds describe their programs, and the gold programs answer them") {
  const auto task = make("steps=4,columns=4,examples=300,shuffle=true");
  const auto batch = first(*task, Split::train, 300);
  std::set<std::string> openings;
  std::set<int> lengths;
  for (int b = 0; b < 300; ++b) {
    const auto said = text(*task, batch, b);
    CAPTURE(said);
    const auto operation = row_of(batch.ints("gold_operation"), b), column = row_of(batch.ints("gold_column"), b);
    const auto name = [&](int t) { return task->word("column_name", row_of(batch.ints("column_name"), b)[column[t]]); };
    openings.insert(said.substr(0, said.find(' ')));
    lengths.insert(4 -
                   static_cast<int>(std::find_if(operation.begin(), operation.end(), [](int o) { return o != int(reset); }) -
                                    operation.begin()));
    for (int t = 0; t < 4; ++t) {
      const auto o = static_cast<TableOperation>(operation[t]);
      CHECK((column[t] >= 0) == reads_column(o));
      if (o == greater) CHECK(has(said, name(t) + " is greater than <number>"));
      if (o == lesser) CHECK(has(said, name(t) + " is less than <number>"));
      if (o == sum) CHECK(has(said, "sum of " + name(t)));
      if (o == assign) CHECK(said.starts_with("list " + name(t)));
    }
    for (int n = 0; n < batch.ints("numbers")(b); ++n)
      CHECK(task->word("question", row_of(batch.ints("question"), b)[row_of(batch.ints("number_place"), b)[n]]) == "<number>");
  }
  CHECK(openings == std::set<std::string>{"how", "list", "what"});
  CHECK(lengths == std::set<int>{1, 2, 4});
}

TEST_CASE("a programmer with the gold program answers correctly, with another program it does not") {
  Folder folder;
  std::string file = "a,b,c,d\n";
  KeyedRandomness random(Key(8));
  for (std::uint32_t i = 0; i < 48; ++i)
    file += fmt::format("{:.3f}{}", 2000 * random.uniform({.index = i}) - 1000, i % 4 == 3 ? "\n" : ",");
  int tables = 0;
  for (const auto& where : {std::string("columns=4"), "max_rows=12,path=" + folder.write("decimals.csv", file)}) {
    const auto task = make("steps=2,examples=200,shuffle=true," + where);
    const auto batch = first(*task, Split::train, 200);
    const auto model = make_model<float>(Spec::parse("programmer[steps=3,hidden=4,embedding=4]"), task->dimensions(), Key(2));
    const auto scored = [&](int step, int operation) {  // replaces that instruction
      std::vector<std::vector<int>> program(3);
      for (int t = 0; t < 3; ++t)
        for (int b = 0; b < 200; ++b) {
          const int gold = t == 0 ? int(count) : row_of(batch.ints("gold_operation"), b)[t - 1];
          program[t].push_back(t == step ? operation : gold);
          program[t].push_back(t == 0 ? 3 : std::max(row_of(batch.ints("gold_column"), b)[t - 1], 0));
        }
      ForcedHandler<float> handler(program);
      Tape<float> tape;
      Episode<float> episode(tape, handler, 200);
      model->run(batch, episode);
      auto metrics = task->metrics();
      task->score(batch, observe(episode), metrics);
      return std::pair{metrics[0].value(), metrics[1].value()};
    };
    CHECK(scored(-1, 0) == std::pair{1.0, 1.0});
    const auto [right, gold] = scored(1, int(count));  // selects no row
    CHECK(right < 0.4);
    CHECK(gold == 0);
    CHECK(scored(2, int(both)).second == 0);
    ++tables;
  }
  CHECK(tables == 2);
}

TEST_CASE("questions do not depend on the batch, and are disjoint between splits") {
  const auto task = make("examples=20,heldout=10,test=10");
  std::set<std::vector<double>> different;
  std::set<std::uint32_t> ids;
  for (const auto split : {Split::train, Split::heldout, Split::test}) {
    const auto batch = first(*task, split, static_cast<int>(task->size(split)));
    ids.insert(batch.id.begin(), batch.id.end());
    for (int b = 0; b < batch.examples(); ++b) {
      const auto alone = task->batch(split, {b});
      CHECK(alone.numbers("answer").flat(0) == batch.numbers("answer")(b));
      CHECK(text(*task, alone, 0) == text(*task, batch, b));
      different.insert(alone.numbers("table").storage());
    }
  }
  CHECK(ids.size() == 40);
  CHECK(different.size() == 40);
}

TEST_CASE("tables of files: all files, a subset of columns, a subset of the rows of larger tables") {
  Folder folder;
  folder.write("b.csv", "Gold Medals,silver\n1.25,4\n2,5\n3,6\n7,8\n");
  folder.write("a.csv", "x,y,z\n1,2,3\n4,5,6\n");
  folder.write("notes.txt", "no table");
  const auto task = make("min_rows=2,max_rows=3,columns=2,path=" + folder.path());
  CHECK(has(task->provenance(), ": 2 tables, 6 rows"));
  CHECK(task->dimensions().at("table_columns") == 2);
  const auto batch = first(*task, Split::train, 100);
  std::set<std::string> names;
  std::set<int> rows;
  for (int b = 0; b < 100; ++b) {
    const auto name = task->word("column_name", row_of(batch.ints("column_name"), b)[0]);
    names.insert(name);
    rows.insert(batch.ints("table_rows")(b));
    CHECK(batch.numbers("unit")(b) == doctest::Approx(name == "gold medals" ? 0.01 : 1));
    const auto cells = row_of(batch.numbers("table"), b);
    std::set<double> column;
    for (int i = 0; i < batch.ints("table_rows")(b); ++i) column.insert(cells[2 * i]);
    CHECK(column.size() == static_cast<std::size_t>(batch.ints("table_rows")(b)));  // rows are distinct
    for (double x : column)
      CHECK((name == "gold medals" ? std::set<double>{1.25, 2, 3, 7} : std::set<double>{1, 4}).count(x) == 1);
  }
  CHECK(names == std::set<std::string>{"gold medals", "x"});
  CHECK(rows == std::set<int>{2, 3});
}

TEST_CASE("settings and files without valid questions are rejected") {
  Folder folder;
  const auto a = folder.write("a.csv", "x,y\n1,2\n4,5\n"),
             big = folder.write("big.csv", "x\n1000000.5\n1234567.25\n99999999.5\n");
  const auto refused = [&](const std::string& arguments) { return refusal(folder, [&] { make(arguments); }); };
  CHECK(refused("min_rows=5,max_rows=4") == "tables: min_rows must be at most max_rows, 4, got 5");
  CHECK(refused("columns=11") == "tables: generated tables have at most 10 columns, got columns=11");
  CHECK(refused("min_rows=1,columns=3,path=" + a) == "a.csv: columns=3 exceeds the table's 2; give columns=2 or fewer");
  CHECK(refused("path=" + a) == "a.csv: min_rows=3 exceeds the table's 2; give min_rows=2 or less");
  CHECK(refused("min_rows=1,path=" + big) ==
        "big.csv: a sum of 3 numbers like 99999999.5 would have more than nine digits; give rounded or scaled numbers");
  CHECK(has(refused("path=" + (folder / "none.csv")), "none.csv"));
  std::filesystem::create_directory(folder / "empty");
  CHECK(refused("path=" + (folder / "empty")) == "empty: holds no file whose name ends in .csv or .csv.gz");
}

TEST_CASE("other tables use the column names of training") {
  Folder folder;
  const auto trained = make("min_rows=1,path=" + folder.write("a.csv", "x,y,z\n1,2,3\n4,5,6\n"));
  const auto path = folder.write("b.csv", "z,x\n7,8\n1,5\n");
  const auto spec = Spec::parse("tables[min_rows=1,path=" + path + "]");
  const auto other = make_task(spec, Key(2), trained.get());
  CHECK(other->dimensions().at("vocabulary") == trained->dimensions().at("vocabulary"));
  const auto batch = first(*other, Split::train, 20);
  for (const char* field : {"question", "column_name"})
    for (int word : batch.ints(field)) CHECK(trained->word(field, word) == other->word(field, word));
  CHECK(trained->word("column_name", batch.ints("column_name").flat(0)) == "z");
  folder.write("b.csv", "z,price\n7,8\n1,5\n");
  CHECK(has(refusal(folder, [&] { make_task(spec, Key(2), trained.get()); }),
            "the network knows no column \"price\": it was trained on other tables"));
}

}  // namespace hardgrad::testing::tables_test
