// A programmer: at each of T steps it chooses an operation and a column of a table, and applies the operation.
//
// Question w_1..w_W, with the numbers v_1..v_N among its words. Table x_ij with rows i = 1..R and columns j = 1..C, whose names
// are words as well. H = hidden, E = embedding. r_t marks rows; s_t is a number.
//   y_i, q    = BiLSTM(E[w_1], .., E[w_W])              [2H] of each word; [last forward; first backward]
//   e^op_t    = U tanh(W_op [q; h_{t-1}] + b_op)        U_o of each operation
//   e^col_t,j = P_j . tanh(W_col [q; h_{t-1}] + b_col)  P_j = E[name of column j]
//   o_t ~ softmax(e^op), j_t ~ softmax(e^col)           the choice, two columns; a, c: 1 there, 0 elsewhere; relaxed: weights.
//                                                       Operations in order: sum, count, difference, greater, lesser, and, or,
//                                                       assign, reset
//   h_t       = tanh(W_h [a U; c P; h_{t-1}] + b_h)     h_0 = 0
// Comparisons use the numbers of the question, with beta^o_n = softmax_n(U_o . W_p y at number n), o = greater or lesser:
//   g_ij      = sum_n beta^greater_n [x_ij > v_n],  l_ij = sum_n beta^lesser_n [x_ij < v_n]
// The result of a step, with r_0 = r_{-1} = 1 and s_t = 0 for t <= 0:
//   r_t       = a_and min(r_{t-1}, r_{t-2}) + a_or max(r_{t-1}, r_{t-2}) + a_reset 1 + sum_j c_j (a_greater g_j + a_lesser l_j)
//                                                       at a tie, min has the derivative of r_{t-1}, max of r_{t-2}
//   s_t       = a_count sum_i r_{t-1,i} + a_difference (s_{t-3} - s_{t-1}) + a_sum sum_j c_j sum_i r_{t-1,i} x_ij
//   L_ij      = a_assign c_j r_{T-1,i}                  at step T: the cells of the answer
//   loss      = huber(s_T - y) for a number y: |d| - delta / 2 beyond delta and d^2 / (2 delta) within;
//               - sum_ij log(k + (1 - k) p_ij) for cells: p_ij = L_ij for a wanted cell, 1 - L_ij for the others, k = 0.01
// With expected weights this is nearly the published soft programmer. The paper reads the question in one direction, compares
// with the number sum_n beta_n v_n, and its loss of a cell is -log p, which is infinite if a program chosen with certainty is
// wrong.
// exp(-loss) is a density of the number, or the probability of any set of cells, times a constant: sqrt(2 pi delta) erf(sqrt(delta
// / 2)) + 2 exp(-delta / 2), or 1 + k to the power of the cells. So likelihoods hold up to that constant.
// Posterior (if asked for): the same with tanh(V_op [q; h_{t-1}; f] + d_op) and V_col, d_col. f encodes the answer:
// f = (sign(y) log(1 + |y|), 0), or (0, 1) if the answer is cells.
//
// Parameters (V words): embedding.weight [V, E], question.{forward,backward}.{input.weight [4H, E], recurrent.weight [4H, H],
//   bias [4H]}; operation.weight [9, E] (U); score.{operation,column}.{weight [E, 3H], bias [E]} (W_op, W_col);
//   pivot.weight [E, 2H] (W_p); history.{weight [H, 2E + H], bias [H]};
//   posterior.score.{operation,column}.{weight [E, 3H + 2], bias [E]}.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/reduce.hpp"
#include "core/models/model.hpp"
#include "core/models/parts/bilstm.hpp"
#include "core/models/parts/states.hpp"
#include "core/models/parts/table_operations.hpp"

namespace hardgrad::models::programmer {
namespace {

constexpr std::size_t operations = table_operations.size();
constexpr double least_probability = 0.01;  // k

struct Config {
  int steps = 4, hidden = 32, embedding = 32;
  double delta = 1;

  void declare(Fields& field) {
    field(steps, "steps", 1, 16, "instructions T of a program");
    field(hidden, "hidden", 1, 4096, "units H of the question's two LSTMs and of the history");
    field(embedding, "embedding", 1, 4096, "width E of words, operations and column names");
    field(delta, "delta", 0, 1e6, "error beyond which the loss of a number is linear").above();
  }
};

template <class T>
class Programmer final : public Model<T> {
 public:
  Programmer(const Config& config, const Blueprint& b) : steps_(config.steps), delta_(config.delta) {
    auto& set = this->parameters_;
    const auto& dimensions = b.dimensions;
    const auto& init = b.init;
    const bool posterior = b.posterior;
    if (const int longest = dimensions.at("program_steps"); steps_ < longest)
      throw UsageError(
          fmt::format("programmer: the longest program has {} steps, but steps is {}; give steps={} or shorter programs",
                      longest, steps_, longest));
    const std::size_t H = config.hidden, E = config.embedding;
    words_ = {set, "embedding", static_cast<std::size_t>(dimensions.at("vocabulary")), E, init};
    question_ = {set, "question", E, H, init};
    operation_ = {set, "operation", operations, E, init};
    score_ = {Linear<T>{set, "score.operation", 3 * H, E, init}, Linear<T>{set, "score.column", 3 * H, E, init}};
    pivot_ = {set, "pivot", 2 * H, E, init, false};
    history_ = {set, "history", 2 * E + H, H, init};
    if (posterior)
      posterior_ = {Linear<T>{set, "posterior.score.operation", 3 * H + 2, E, init},
                    Linear<T>{set, "posterior.score.column", 3 * H + 2, E, init}};
    structure_.sites = {{.name = "instruction",
                         .options = std::max(static_cast<int>(operations), dimensions.at("table_columns")),
                         .times = steps_,
                         .state_width = static_cast<int>(3 * H),
                         .scope = DependenceScope::later_choices,
                         .columns = 2}};
    structure_.posterior = posterior;
  }

  const Structure& structure() const override { return structure_; }
  typename Model<T>::SiteExtent site_extent(const Batch& batch, std::size_t, int example) const override {
    return {{static_cast<int>(operations), batch.ints("table_columns")(example)}, steps_};
  }
  void run(const Batch& batch, Episode<T>& episode) const override;

 private:
  using Scorers = std::array<Linear<T>, 2>;  // of operations, of columns
  // Values that depend on no choice, for the distinct examples [B].
  struct Table {
    Items columns, options;  // columns of each table; options of both choices: operations, columns
    std::size_t rows;        // R of the largest table
    Var<T> q, names;         // [B, 2H]; P [columns, E]
    Var<T> cells;            // [columns, 3 R]: a column's x, g and l, side by side; 0 beyond a table's end
    Var<T> every_row;        // [B, R]
  };
  // The machine's values in n states.
  struct Machine {
    Var<T> h, r, r_before;    // r_{t-1}, r_{t-2} [n, R]
    std::array<Var<T>, 3> s;  // s_{t-1}, s_{t-2}, s_{t-3} [n, 1]
    Machine after(const States<T>& i) const {
      return {i.after(h), i.after(r), i.after(r_before), {i.after(s[0]), i.after(s[1]), i.after(s[2])}};
    }
  };
  Table table(Tape<T>& tape, const Batch& data) const;
  /// f [B, 2]
  static Var<T> told(Tape<T>& tape, const Batch& data) {
    const auto& y = data.numbers("answer").storage();
    const auto& cells = data.ints("asks_cells").storage();
    const auto f = tape.constant(y.size(), 2);
    for (std::size_t b = 0; b < y.size(); ++b) {
      tape.mutable_value(f)(b, 0) = static_cast<T>(std::copysign(std::log1p(std::abs(y[b])), y[b]));
      tape.mutable_value(f)(b, 1) = static_cast<T>(cells[b]);
    }
    return f;
  }
  Machine start(Tape<T>& tape, const Table& x) const;
  /// e^op and e^col [n 2, S] from `known` [n, ...]; S is the largest number of options.
  Var<T> scores(const Scorers& score, Var<T> known, const Table& x, std::span<const int> example) const;
  void answer(const States<T>& states, const Batch& data, Var<T> s, Var<T> marked, Var<T> c) const;
  Var<T> number_loss(Var<T> s, Var<T> y) const;

  Structure structure_;
  int steps_;  // T
  double delta_;
  Embedding<T> words_, operation_;
  BiLstm<T> question_;
  Scorers score_, posterior_;
  Linear<T> pivot_, history_;
};

template <class T>
Var<T> column(Var<T> x, TableOperation operation) {
  return slice_columns(x, static_cast<std::size_t>(operation), 1);
}

template <class T>
void Programmer<T>::run(const Batch& batch, Episode<T>& episode) const {
  using enum TableOperation;
  auto& tape = episode.tape();
  const Distinct distinct(batch);
  const auto& data = distinct.batch();
  const auto x = table(tape, data);
  const auto U = tape.parameter(*operation_.weight);
  const auto hint = structure_.posterior ? told(tape, data) : Var<T>{};

  States<T> states(episode, distinct);
  auto m = start(tape, x);
  for (int t = 1;; ++t) {
    const Var<T> q = Sum<T>(x.q, states.example()), known = concat_columns({q, m.h});
    ItemSite<T> site{.name = "instruction",
                     .logits = scores(score_, known, x, states.example()),  // e^op, e^col
                     .items = x.options,
                     .state = known,
                     .columns = 2};
    if (structure_.posterior)
      site.posterior = [&] {
        const Var<T> f = Sum<T>(hint, states.example());
        return scores(posterior_, concat_columns({known, f}), x, states.example());
      };
    const auto i = states.choose(site);  // o_t, j_t
    const auto w = reshape(i.weights(), 2 * x.options.most());
    const auto a = slice_columns(w, 0, operations), c = slice_columns(w, x.options.most(), x.columns.most());
    m = m.after(i);
    const auto at = mix(c, x.cells, i.example(), x.columns);  // column j_t of x, g and l
    const auto of = [&](std::size_t part) { return slice_columns(at, part * x.rows, x.rows); };
    const auto difference_of = subtract(m.s[2], m.s[0]);
    const auto total = row_sums(multiply(m.r, of(0)));
    const auto s = add(scale_rows(row_sums(m.r), column(a, count)),
                       add(scale_rows(difference_of, column(a, difference)), scale_rows(total, column(a, sum))));  // s_t
    if (t == steps_) return answer(i, data, s, scale_rows(m.r, column(a, assign)), c);
    const auto more = relu(subtract(m.r, m.r_before));  // max = r_{t-2} + more, min = r_{t-1} - more
    const Var<T> every = Sum<T>(x.every_row, i.example());
    const auto joined =
        add(scale_rows(subtract(m.r, more), column(a, both)), scale_rows(add(m.r_before, more), column(a, either)));
    const auto compared = add(scale_rows(of(1), column(a, greater)), scale_rows(of(2), column(a, lesser)));
    const auto r = add(add(joined, compared), scale_rows(every, column(a, reset)));  // r_t
    const auto h = tanh(history_(concat_columns({matmul(a, U), mix(c, x.names, i.example(), x.columns), m.h})));
    m = {h, r, m.r, {s, m.s[0], m.s[1]}};
    states = i.next_step();
  }
}

template <class T>
auto Programmer<T>::table(Tape<T>& tape, const Batch& data) const -> Table {
  const auto &cell = data.numbers("table"), &number = data.numbers("number");
  const auto &rows = data.ints("table_rows").storage(), &columns = data.ints("table_columns").storage(),
             &numbers = data.ints("numbers").storage();
  const auto &name = data.ints("column_name"), &place = data.ints("number_place");
  const Items question_words(data.ints("question_length").storage());
  const auto B = columns.size(), R = extent(cell, 1), C = extent(cell, 2), N = extent(number, 1);
  Table x;
  x.columns = Items(columns);
  x.rows = R;
  std::vector<int> options, names, whose;
  for (std::size_t b = 0; b < B; ++b) {
    options.insert(options.end(), {static_cast<int>(operations), columns[b]});
    for (int j = 0; j < columns[b]; ++j) {
      names.push_back(name(b, j));
      whose.push_back(static_cast<int>(b));
    }
  }
  x.options = Items(options);
  const auto encoded = question_(tape, words_, data.ints("question"), question_words);
  x.q = encoded.ends;
  x.names = words_(tape, std::span<const int>(names));
  x.every_row = tape.constant(B, R);
  for (std::size_t b = 0; b < B; ++b) std::fill_n(tape.mutable_value(x.every_row).row(b), rows[b], T{1});

  // beta [B, N] of both comparisons. Without numbers in the question, g and l are 0.
  std::vector<int> places, among;
  for (std::size_t b = 0; b < B; ++b) {
    among.push_back(std::max(numbers[b], 1));
    for (std::size_t n = 0; n < N; ++n)
      places.push_back(static_cast<int>(n) < numbers[b] ? question_words.row(static_cast<int>(b), place(b, n)) : -1);
  }
  const auto asked =
      linear(pivot_(gather_rows(encoded.states, std::span<const int>(places))), tape.parameter(*operation_.weight));
  const auto compared = [&](TableOperation operation) {
    const auto beta = probabilities(log_softmax(reshape(column(asked, operation), N), std::span<const int>(among)));
    Var<T> sum = tape.constant(whose.size(), R);
    for (std::size_t n = 0; n < N; ++n) {
      const auto met = tape.constant(whose.size(), R);  // [x_ij > v_n], or [x_ij < v_n]
      for (std::size_t k = 0; k < whose.size(); ++k) {
        const auto b = static_cast<std::size_t>(whose[k]);
        if (static_cast<int>(n) >= numbers[b]) continue;
        const double v = number(b, n);
        for (int i = 0; i < rows[b]; ++i) {
          const double value = row_of(cell, b)[i * C + (k - x.columns.row(whose[k], 0))];
          tape.mutable_value(met)(k, i) = operation == TableOperation::greater ? value > v : value < v;
        }
      }
      const Var<T> weight = Sum<T>(slice_columns(beta, n, 1), std::span<const int>(whose));
      sum = add(sum, scale_rows(met, weight));
    }
    return sum;
  };
  const auto values = tape.constant(whose.size(), R);
  for (std::size_t k = 0; k < whose.size(); ++k)
    for (int i = 0; i < rows[whose[k]]; ++i)
      tape.mutable_value(values)(k, i) = static_cast<T>(row_of(cell, whose[k])[i * C + (k - x.columns.row(whose[k], 0))]);
  x.cells = concat_columns({values, compared(TableOperation::greater), compared(TableOperation::lesser)});
  return x;
}

template <class T>
auto Programmer<T>::start(Tape<T>& tape, const Table& x) const -> Machine {
  const auto B = x.every_row.rows();
  const auto none = tape.constant(B, 1);
  return {tape.constant(B, history_.bias->value.size()), x.every_row, x.every_row, {none, none, none}};
}

template <class T>
Var<T> Programmer<T>::scores(const Scorers& score, Var<T> known, const Table& x, std::span<const int> example) const {
  auto& tape = *known.tape;
  const auto S = x.options.most();
  const auto widened = [&](Var<T> e) { return e.cols() == S ? e : concat_columns({e, tape.constant(e.rows(), S - e.cols())}); };
  const auto of_operations = linear(tanh(score[0](known)), tape.parameter(*operation_.weight));
  const auto of_columns = dot_scores(tanh(score[1](known)), x.names, example, x.columns);
  return reshape(concat_columns({widened(of_operations), widened(of_columns)}), S);
}

template <class T>
Var<T> Programmer<T>::number_loss(Var<T> s, Var<T> y) const {
  const T delta = static_cast<T>(delta_);
  const auto d = subtract(s, y), size = add(relu(d), relu(affine(d, T{-1})));
  const auto beyond = relu(affine(size, T{1}, -delta)), within = subtract(size, beyond);
  return add(beyond, affine(square(within), 1 / (2 * delta)));
}

// The losses. Predictions: the number in units of the table's last digit, then for each row the column (from 1) of its cell in
// the answer, 0 if it has none.
template <class T>
void Programmer<T>::answer(const States<T>& states, const Batch& data, Var<T> s, Var<T> marked, Var<T> c) const {
  auto& tape = *s.tape;
  const auto& wanted = data.ints("wanted");
  const auto &y = data.numbers("answer").storage(), &unit = data.numbers("unit").storage();
  const auto &cells = data.ints("asks_cells").storage(), &rows = data.ints("table_rows").storage();
  const auto example = states.example();
  const auto n = states.size(), R = marked.cols(), C = c.cols();
  const auto filled = [&](std::size_t columns, auto f) {
    const auto x = tape.constant(n, columns);
    for (std::size_t k = 0; k < n; ++k)
      for (std::size_t i = 0; i < columns; ++i) tape.mutable_value(x)(k, i) = static_cast<T>(f(example[k], i));
    return x;
  };
  auto loss = number_loss(s, filled(1, [&](int b, std::size_t) { return y[b]; }));
  if (std::any_of(cells.begin(), cells.end(), [](int asked) { return asked != 0; })) {
    const T least = static_cast<T>(least_probability);
    auto of_cells = tape.constant(n, 1);
    for (std::size_t j = 0; j < C; ++j) {
      const auto is = [&](int b, std::size_t i) { return wanted(b, i) == static_cast<int>(j) + 1; };
      const auto sign = filled(R, [&](int b, std::size_t i) { return is(b, i) ? 1 : -1; });
      const auto base = filled(R, [&](int b, std::size_t i) { return is(b, i) ? 0 : 1; });
      const auto p = add(multiply(scale_rows(marked, slice_columns(c, j, 1)), sign), base);
      of_cells = subtract(of_cells, row_sums(log(affine(p, 1 - least, least))));
    }
    const auto asked = filled(1, [&](int b, std::size_t) { return cells[b] != 0; });
    loss = add(scale_rows(loss, affine(asked, T{-1}, T{1})), scale_rows(of_cells, asked));
  }
  states.cost(loss);

  std::vector<int> answer(n);
  for (std::size_t k = 0; k < n; ++k)
    answer[k] = static_cast<int>(std::lround(std::clamp(static_cast<double>(s.value().data[k]) / unit[example[k]], -2e9, 2e9)));
  states.predict(answer);
  for (std::size_t i = 0; i < R; ++i) {
    for (std::size_t k = 0; k < n; ++k) {
      const T* weight = c.value().row(k);
      const T* best = std::max_element(weight, weight + C);
      answer[k] = static_cast<int>(i) >= rows[example[k]] ? -1
                  : *best * marked.value()(k, i) > T{0.5} ? int(best - weight) + 1
                                                          : 0;
    }
    states.predict(answer);
  }
}

const ModelEntry entry = {
    .name = "programmer",
    .summary = "answers a question with a program of operations on the columns of a table",
    .paper = "Neelakantan, Le & Sutskever 2016, Neural Programmer (soft: nearly as published)",
    .dependence = "joint cost (steps=1), sequential (steps>1)",
    .kinds = "categorical",
    .parameters = declared<Config>(),
    .needs = {"vocabulary", "table_columns", "program_steps"},
};
HARDGRAD_MODEL(Programmer, entry)

}  // namespace
}  // namespace hardgrad::models::programmer
