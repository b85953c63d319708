// A machine with tapes: at each step it chooses the moves of the heads of its input tape and its memory tape, and whether to
// write on its output tape.
//
// Input tape x_1..x_K [I]; wanted symbols y_1..y_L of O bits; steps t = 1..T, T = ceil(time (K + L)). Both tapes are circles of
// N cells; cells beyond the input are blank, 0. p_t and q_t are the places of the heads, 1 at one cell. u_t is the number of
// symbols written, 1 at one of 0..L. p_0, q_0 are at the first cell, u_0 at 0. Memory cells M_i [W], M_0 = 0. a_t [8] are the
// choices of a step, a_0 = 0.
//   x_t, m_t = sum_i p_{t-1,i} x_i, sum_i q_{t-1,i} M_{t-1,i}             the cells under the heads
//   s_t      = LSTM([x_t; m_t; a_{t-1}], s_{t-1})                         [C]
//   i_t, j_t ~ softmax(W_i s_t + b_i), softmax(W_j s_t + b_j)             each head stays (0), moves right (1) or left (2)
//   o_t      ~ softmax(W_o s_t + b_o)                                     write (0) or wait (1); the choice is (i, j, o)
//   M_t,i    = M_{t-1,i} + q_{t-1,i} sig(W_g s_t + b_g) (.) (tanh(W_m s_t + b_m) - M_{t-1,i})
//   p_t, q_t = moved(p_{t-1}, i_t), moved(q_{t-1}, j_t)
//   loss     = - sum_k log Bernoulli(y_k; sig(W_y s_t + b_y))             t: the step that writes symbol k = 1..L
//
// When as many symbols as steps remain, the machine has to write. It finishes after the last symbol. The last step chooses no
// moves. Relaxed: p, q and u are weights, and u_k a_write of symbol k is written.
// input=forward: the head of the input tape cannot move left, so a sequence must be kept in memory to be reversed.
// controller=direct (their direct access controller): copies, each with a weight (c^1, .., c^4)_t = sig(W_d s_t + b_d):
//   c^1 A_1 x_t is added to M_t's new content, outside the tanh: tanh(W_m s_t + b_m) + c^1 A_1 x_t; c^2 A_2 x_t and c^3 A_3 m_t
//   to the logits W_y s_t + b_y; c^4 m_t to the two cells beside the head of the memory tape. (Their text leaves open which
//   memories are "adjacent"; their symbols have one width, so that they need no matrices.)
// Refused: fewer cells than the longest input has symbols.
// Departure: Zaremba & Sutskever write symbols of an alphabet, from a softmax; here a symbol is a vector of bits.
// Posterior (if asked for): q = softmax of the same + W_q [s_t; y] + b_q, with the next symbol y = sum_k u_{t-1,k} y_{k+1}.
//
// Parameters: controller.{input.weight [4C, I + W + 8], recurrent.weight [4C, C], bias [4C]}; output.{weight [O, C], bias [O]};
//   move.{weight [8, C], bias [8]} (i, j, o); write.{weight [2W, C], bias [2W]} (g, m); controller=direct: direct.{weight [4, C],
//   bias [4]}, direct.input_to_memory.weight [W, I], direct.input_to_output.weight [O, I], direct.memory_to_output.weight [O, W];
//   posterior.move.{weight [8, C + O], bias [8]}.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/reduce.hpp"
#include "core/models/model.hpp"
#include "core/models/parts/memory_tape.hpp"

namespace hardgrad::models::tape_machine {
namespace {

constexpr std::size_t moves = 3, actions = 2 * moves + 2;  // of a head; a_t of a step
constexpr int columns = 3;                                 // input head, memory head, output

enum class Controller { lstm, direct };
constexpr Named<Controller> controllers[] = {{"lstm", Controller::lstm}, {"direct", Controller::direct}};

enum class InputMoves { both, forward };
constexpr Named<InputMoves> all_input_moves[] = {{"both", InputMoves::both}, {"forward", InputMoves::forward}};

struct Config {
  int cells = 64, width = 8, hidden = 64;
  double time = 1;
  Controller controller = Controller::lstm;
  InputMoves input = InputMoves::both;

  void declare(Fields& field) {
    field(cells, "cells", 3, 4096, "cells of each circular tape");
    field(width, "width", 1, 1024, "width of a memory cell");
    field(hidden, "hidden", 1, 4096, "units of the controller");
    field(time, "time", 1, 100, "step limit, in units of the sequence's length (shown and wanted steps)");
    field(controller, "controller", controllers,
          "direct: inputs and memory are also copied to memory and output, with learned weights");
    field(input, "input", all_input_moves, "directions of the head of the input tape");
  }
};

template <class T>
class TapeMachine final : public Model<T> {
 public:
  TapeMachine(const Config& config, const Blueprint& b)
      : cells_(config.cells), width_(config.width), time_(config.time), input_(config.input) {
    auto& set = this->parameters_;
    const auto& dimensions = b.dimensions;
    const auto& init = b.init;
    const bool posterior = b.posterior;
    if (const int shown = dimensions.at("shown_steps"); static_cast<int>(cells_) < shown)
      throw UsageError(
          fmt::format("tape_machine: the longest sequence takes {} cells of the input tape, but a tape has {}; give cells={} "
                      "or shorter sequences",
                      shown, cells_, shown));
    const std::size_t C = config.hidden, I = dimensions.at("input_width"), O = dimensions.at("answer_width");
    controller_ = {set, "controller", I + width_ + actions, C, init};
    move_ = {set, "move", C, actions, init};
    write_ = {set, "write", C, 2 * width_, init};
    output_ = {set, "output", C, O, init};
    if (config.controller == Controller::direct) {
      direct_ = {set, "direct", C, 4, init};
      input_to_memory_ = {set, "direct.input_to_memory", I, width_, init, false};
      input_to_output_ = {set, "direct.input_to_output", I, O, init, false};
      memory_to_output_ = {set, "direct.memory_to_output", width_, O, init, false};
    }
    if (posterior) posterior_ = {set, "posterior.move", C + O, actions, init};
    structure_.sites = {{.name = "tapes",
                         .options = static_cast<int>(moves),
                         .times = std::max(steps(dimensions.at("steps")) - 1, 1),
                         .state_width = static_cast<int>(C),
                         .scope = DependenceScope::later_choices,
                         .columns = columns}};
    structure_.posterior = posterior;
  }

  const Structure& structure() const override { return structure_; }
  typename Model<T>::SiteExtent site_extent(const Batch& batch, std::size_t, int example) const override {
    return {{input_moves(), static_cast<int>(moves), 2}, steps(batch.ints("length")(example)) - 1};
  }
  void run(const Batch& batch, Episode<T>& episode) const override;

 private:
  // The machine's values in n states.
  struct Machine {
    LstmState<T> s;
    MemoryTape<T> M;
    TapeHead<T> p, q;
    Var<T> u, a;  // [n, L + 1], [n, 8]
    Machine after(const States<T>& i) const {
      return {{i.after(s.h), i.after(s.c)}, M.after(i), p.after(i), q.after(i), i.after(u), i.after(a)};
    }
  };
  int steps(int length) const { return static_cast<int>(std::ceil(time_ * length)); }
  int input_moves() const { return input_ == InputMoves::forward ? 2 : static_cast<int>(moves); }
  Machine start(Tape<T>& tape, std::size_t examples, std::size_t symbols) const;
  /// The scores (W_i s + b_i, W_j s + b_j, W_o s + b_o) [n, 8] -> [n 3, 3], one row per column of the site.
  static Var<T> of_columns(Var<T> scores) {
    return reshape(concat_columns({scores, scores.tape->constant(scores.rows(), 1)}), moves);
  }
  /// The first option of every column, [n, 8]: stay, stay, write.
  static Var<T> first_options(Tape<T>& tape, std::size_t states) {
    const auto a = tape.constant(states, actions);
    for (std::size_t n = 0; n < states; ++n)
      for (int d = 0; d < columns; ++d) tape.mutable_value(a)(n, d * moves) = 1;
    return a;
  }
  /// M_t, with x_t, m_t and the weights c_t [n, 4] of direct access, if any.
  MemoryTape<T> written(const Machine& m, Var<T> x, Var<T> read, Var<T> c) const;
  static void predict_bit(const States<T>& states, Var<T> written, Var<T> logits);

  Structure structure_;
  std::size_t cells_, width_;
  double time_;
  InputMoves input_;
  Lstm<T> controller_;
  Linear<T> move_, write_, output_, posterior_;
  Linear<T> direct_, input_to_memory_, input_to_output_, memory_to_output_;  // controller=direct
};

template <class T>
void TapeMachine<T>::run(const Batch& batch, Episode<T>& episode) const {
  auto& tape = episode.tape();
  const Distinct distinct(batch);
  std::vector<int> most;  // T of each example
  for (int length : distinct.batch().ints("length")) most.push_back(steps(length));
  const InputTape<T> input(tape, distinct.batch(), cells_);
  const OutputTape<T> output(tape, distinct.batch(), most);
  const Items items(distinct.size() * columns, moves);

  States<T> states(episode, distinct);
  auto m = start(tape, distinct.size(), output.most());
  for (int t = 1; states.size() > 0; ++t) {
    const auto x = input.read(m.p, states.example());  // x_t
    const auto under = m.M.read(m.q);                  // m_t
    m.s = controller_.step(controller_.project(concat_columns({x, under, m.a})), m.s);
    const auto c = direct_.weight ? sigmoid(direct_(m.s.h)) : Var<T>{};
    m.M = written(m, x, under, c);  // M_t
    auto logits = output_(m.s.h);
    if (c) {
      logits = add(logits, scale_rows(input_to_output_(x), slice_columns(c, 1, 1)));
      logits = add(logits, scale_rows(memory_to_output_(under), slice_columns(c, 2, 1)));
    }

    const auto scores = move_(m.s.h);
    ItemSite<T> site{.name = "tapes", .logits = of_columns(scores), .items = items, .state = m.s.h, .columns = columns};
    if (structure_.posterior)
      site.posterior = [&] {
        return of_columns(add(scores, posterior_(concat_columns({m.s.h, output.next(m.u, states.example())}))));
      };
    bool chooses = false;
    for (const auto& [writes, goes_on] : output.free(m.u, states.example(), t)) {
      const int head = goes_on ? static_cast<int>(moves) : 1;
      site.options.insert(site.options.end(), {std::min(head, input_moves()), head, writes ? 2 : 1});
      chooses = chooses || goes_on;
    }
    const auto i = chooses ? states.choose(site) : states.next_step();  // i_t, j_t, o_t
    m = m.after(i);
    m.a = chooses ? slice_columns(reshape(i.weights(), columns * moves), 0, actions) : first_options(tape, states.size());
    m.p = m.p.moved(i, slice_columns(m.a, 0, moves));      // p_t
    m.q = m.q.moved(i, slice_columns(m.a, moves, moves));  // q_t
    const auto now = output.written(m.u, slice_columns(m.a, 2 * moves, 1), i.example(), t);
    m.u = output.moved(m.u, now);  // u_t
    const Var<T> bits = i.after(logits), writes = row_sums(now);
    i.cost(output.loss(bits, now, writes, i.example()));
    predict_bit(i, writes, bits);
    states = i.next_step().only_states(output.unfinished(m.u, i.example(), t));
    m = m.after(states);
  }
}

template <class T>
auto TapeMachine<T>::start(Tape<T>& tape, std::size_t examples, std::size_t symbols) const -> Machine {
  const TapeHead<T> head(examples, cells_);
  const auto u = tape.constant(examples, symbols + 1);
  for (std::size_t b = 0; b < examples; ++b) tape.mutable_value(u)(b, 0) = 1;
  return {controller_.zero(tape, examples), {tape, examples, cells_, width_}, head, head, u, tape.constant(examples, actions)};
}

// M_i + q_i sig(..) (tanh(..) + c^1 A_1 x - M_i), and c^4 m beside the head
template <class T>
MemoryTape<T> TapeMachine<T>::written(const Machine& m, Var<T> x, Var<T> read, Var<T> c) const {
  const auto gv = write_(m.s.h);
  const auto g = sigmoid(slice_columns(gv, 0, width_));
  auto v = tanh(slice_columns(gv, width_, width_));
  if (!c) return m.M.written(m.q, read, g, v);
  v = add(v, scale_rows(input_to_memory_(x), slice_columns(c, 0, 1)));
  return m.M.written(m.q, read, g, v).added_beside(m.q, scale_rows(read, slice_columns(c, 3, 1)));
}

// Predicts the bits of a symbol if more than half of it is written now, else -1.
template <class T>
void TapeMachine<T>::predict_bit(const States<T>& states, Var<T> written, Var<T> logits) {
  std::vector<int> bit(states.size());
  for (std::size_t o = 0; o < logits.cols(); ++o) {
    for (std::size_t n = 0; n < bit.size(); ++n) bit[n] = written.value().data[n] > T{0.5} ? logits.value()(n, o) > 0 : -1;
    states.predict(bit);
  }
}

const ModelEntry entry = {
    .name = "tape_machine",
    .summary = "machine that moves the heads of an input and a memory tape and chooses when to write output",
    .paper = "Zaremba & Sutskever 2015, Reinforcement learning neural Turing machines",
    .dependence = "sequential",
    .kinds = "categorical",
    .parameters = declared<Config>(),
    .needs = {"input_width", "answer_width", "steps", "shown_steps"},
};
HARDGRAD_MODEL(TapeMachine, entry)

}  // namespace
}  // namespace hardgrad::models::tape_machine
