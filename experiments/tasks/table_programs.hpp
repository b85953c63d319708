// Questions about tables, the programs that answer them, and what a program means.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/models/parts/table_operations.hpp"
#include "core/support/array.hpp"

namespace hardgrad::tasks {

struct Instruction {
  TableOperation operation;
  int column = -1;  ///< of the table; -1 if it does not matter
};
using TableProgram = std::vector<Instruction>;

/// A number, or one cell of some rows.
struct TableAnswer {
  double number = 0;
  std::vector<int> wanted;  ///< [R] the column, from 1, of the cell that is wanted of each row; 0: none
};

/// What comes out of a program (the equations of core/models/programmer.cpp with every choice made) on cells [R, C], if
/// greater and lesser compare with these numbers.
TableAnswer execute(const TableProgram& program, const Array<double>& cells, double greater_than, double less_than);

/// What a program works out, in one expression: those that give the same answer whatever the table mean the same. Only the
/// instructions its last one depends on appear; "and" and "or" have no order, and what holds of every row or of none is left
/// out.
std::string meaning(const TableProgram& program);

struct TableQuestion {
  std::vector<std::string> words;
  std::vector<double> numbers;  ///< that stand in it, up to two
  std::vector<int> places;      ///< among the words, of each
  TableProgram program;
  double greater_than = 0, less_than = 0;
};

/// What stands in a question for a number.
inline constexpr const char* number_word = "<number>";
/// All words that questions have besides the names of columns.
const std::vector<std::string>& question_words();

/// Draws a question whose program has at most `steps` instructions, first its length. `below(n)` draws a number from 0 to n
/// - 1. Comparisons are with a number that stands in the column. `lists`: some ask for cells.
TableQuestion draw_question(const std::vector<std::string>& names, const Array<double>& cells, std::size_t steps, bool lists,
                            const std::function<std::size_t(std::size_t)>& below);

/// Instructions of the longest program that may be drawn.
int longest_program(std::size_t steps);

}  // namespace hardgrad::tasks
