// Questions about tables, the programs that answer them, and canonical forms of programs.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/models/parts/table_operations.hpp"
#include "core/support/array.hpp"

namespace hardgrad::tasks {

struct Instruction {
  TableOperation operation;
  int column = -1;  ///< of the table; -1 if the operation reads none
};
using TableProgram = std::vector<Instruction>;

/// A number, or one cell of some rows.
struct TableAnswer {
  double number = 0;
  std::vector<int> wanted;  ///< [R] for each row, the column, from 1, of its wanted cell; 0: none
};

/// The answer of a program on cells [R, C] (the equations of core/models/programmer.cpp with hard choices), where greater and
/// lesser compare with the given numbers.
TableAnswer execute(const TableProgram& program, const Array<double>& cells, double greater_than, double less_than);

/// A canonical expression for the value of a program; equal expressions have equal answers on every table. It contains only the
/// instructions that the last one depends on. The operands of "and" and "or" are sorted, and conditions that hold for every row
/// or for none are simplified.
std::string meaning(const TableProgram& program);

struct TableQuestion {
  std::vector<std::string> words;
  std::vector<double> numbers;  ///< numbers in the question, up to two
  std::vector<int> places;      ///< the places of the numbers among the words
  TableProgram program;
  double greater_than = 0, less_than = 0;
};

/// The word that replaces a number in a question.
inline constexpr const char* number_word = "<number>";
/// All words of questions except the names of columns.
const std::vector<std::string>& question_words();

/// Draws a question whose program has at most `steps` instructions; the length is drawn first. `below(n)` draws a number from 0
/// to n - 1. Comparisons use a number from their column. `lists`: some questions ask for cells.
TableQuestion draw_question(const std::vector<std::string>& names, const Array<double>& cells, std::size_t steps, bool lists,
                            const std::function<std::size_t(std::size_t)>& below);

/// The number of instructions of the longest program that can be drawn.
int longest_program(std::size_t steps);

}  // namespace hardgrad::tasks
