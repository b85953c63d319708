// A neural Turing machine: a controller with a memory, whose heads choose the cells that they read and write.
//
// Inputs x_t [I], t = 1..T, and at some steps answers y_t of O bits. N = cells, W = width, heads h = 1..H: first those that
// read, then those that write. M_0,i = m in all cells; all heads begin at the first cell, w_0 = (1, 0, ..., 0).
//   s_t    = LSTM([x_t; r_{t-1}], s_{t-1}), or tanh(W_s [x_t; r_{t-1}] + b_s)         the controller
//   (k, b, g, d, c) = W_a^h s_t + b_a^h                           the address of a head: W + 2 S + 4 numbers, S = shifts
//   w^c    = softmax_i(softplus(b) cos(k, M_{t-1},i))                                 content
//   w^g    = sig(g) w^c + (1 - sig(g)) w_{t-1}^h                                      interpolation
//   w~_i   = sum_j softmax(d)_j w^g_{i-j}, j = -S .. S                                shift, circular
//   e_i    = (1 + softplus(c)) log(w~_i + 1e-12)                                      sharpening: w~_i^(1 + softplus(c))
//   i_t^h  ~ softmax(e)                           the choice; w_t^h is 1 there and 0 elsewhere. Relaxed: the weights
//   M_t,i  = M_{t-1},i (.) prod_h (1 - w_t,i^h sig(u^h)) + sum_h w_t,i^h tanh(v^h)    heads that write, (u, v) = W_w s_t + b_w
//   r_t    = [sum_i w_t,i^h M_t,i]_h                                                  heads that read
//   loss   = - sum_t sum_o log Bernoulli(y_to; sig(W_y [s_t; r_t] + b_y)_o)           over the steps with an answer
// The expected weights softmax(e) give the published soft machine. cos(a, b) = a . b / sqrt((|a|^2 + 1e-8) (|b|^2 + 1e-8)).
// Posterior (if asked for): q(i_t^h | ...) = softmax_i(e_i + (W_q [s_t; y_t] + b_q)^h . M_{t-1},i), y_t = 0 at steps without
// an answer.
//
// Parameters (C = hidden, R heads that read): memory.initial.weight [1, W]; controller.{input.weight [4C, I + R W],
//   recurrent.weight [4C, C], bias [4C]}, or controller.{weight [C, I + R W], bias [C]}; head.address.{weight
//   [H (W + 2 S + 4), C], bias}, head.write.{weight [(H - R) 2 W, C], bias}; output.{weight [O, C + R W], bias [O]};
//   posterior.query.{weight [H W, C + O], bias [H W]}.
#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <vector>

#include "core/autodiff/attention.hpp"
#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/reduce.hpp"
#include "core/models/batch.hpp"
#include "core/models/model.hpp"
#include "core/models/parts/memories.hpp"
#include "core/models/parts/states.hpp"

namespace hardgrad::models::turing_machine {
namespace {

// Sequences of inputs with bits as answers: the input and the wanted answer of each step.
//
// Fields of a batch: reals "input" [B, T, I]; integers "answer" [B, T, O] bits, -1 at steps without an answer; "length" [B]
// steps.

/// The batch must outlive the object.
template <class T>
class Sequences {
 public:
  explicit Sequences(const Batch& batch)
      : input_(batch.numbers("input")), answer_(batch.ints("answer")), length_(batch.ints("length").storage()) {}

  /// Steps of the longest example.
  std::size_t steps() const { return length_.empty() ? 0 : *std::max_element(length_.begin(), length_.end()); }
  /// A predicate for States::only: whether an example has a step t.
  auto have(std::size_t t) const {
    return [this, t](int b) { return static_cast<std::size_t>(length_[b]) > t; };
  }
  /// x_t of the examples [n, I].
  Var<T> x(Tape<T>& tape, std::span<const int> example, std::size_t t) const {
    return rows_of(tape, input_, example, t, [](double x) { return static_cast<T>(x); });
  }
  /// y_t of the examples [n, O]; 0 at steps without an answer.
  Var<T> y(Tape<T>& tape, std::span<const int> example, std::size_t t) const {
    return rows_of(tape, answer_, example, t, [](int y) { return y > 0 ? T{1} : T{0}; });
  }

  /// Passes to the episode the losses - sum_o log Bernoulli(y_to; sig(logit_o)) of the states with an answer at step t, and the
  /// predicted bits: O labels per step, -1 without an answer. logits [n, O].
  void answer(const States<T>& states, std::size_t t, Var<T> logits) const {
    const auto due = states.each([&](int b) { return row_of(answer_, b)[t * logits.cols()] >= 0; });
    for (std::size_t o = 0; o < logits.cols(); ++o) {
      std::vector<int> bit(states.size());
      for (std::size_t n = 0; n < bit.size(); ++n) bit[n] = due[n] ? logits.value()(n, o) > 0 : -1;
      states.predict(bit);
    }
    if (std::none_of(due.begin(), due.end(), [](int d) { return d; })) return;
    const auto loss = subtract(softplus(logits), multiply(y(*logits.tape, states.example(), t), logits));
    const auto counts = logits.tape->constant(due.size(), 1);
    std::copy(due.begin(), due.end(), logits.tape->mutable_value(counts).data);
    states.cost(scale_rows(row_sums(loss), counts));
  }

 private:
  template <class X, class F>
  static Var<T> rows_of(Tape<T>& tape, const Array<X>& field, std::span<const int> example, std::size_t t, F f) {
    const std::size_t width = extent(field, 2);
    const auto out = tape.constant(example.size(), width);
    for (std::size_t n = 0; n < example.size(); ++n) {
      const auto from = row_of(field, example[n]).subspan(t * width, width);
      std::transform(from.begin(), from.end(), tape.mutable_value(out).row(n), f);
    }
    return out;
  }

  const Array<double>& input_;
  const Array<int>& answer_;
  const std::vector<int>& length_;
};

enum class Controller { lstm, feedforward };
constexpr Named<Controller> controllers[] = {{"lstm", Controller::lstm}, {"feedforward", Controller::feedforward}};

struct Config {
  int cells = 128, width = 20, reads = 1, writes = 1, shifts = 1;
  Controller controller = Controller::lstm;
  int hidden = 100;

  void declare(Fields& field) {
    field(cells, "cells", 2, 4096, "cells of the memory");
    field(width, "width", 1, 1024, "width of a cell");
    field(reads, "reads", 1, 16, "heads that read");
    field(writes, "writes", 1, 16, "heads that write");
    field(shifts, "shifts", 0, 100, "cells that a head may shift by, to either side");
    field(controller, "controller", controllers, "network that controls the heads");
    field(hidden, "hidden", 1, 4096, "units of the controller");
  }
};

template <class T>
class TuringMachine final : public Model<T> {
 public:
  TuringMachine(const Config& config, const Blueprint& b)
      : cells_(config.cells),
        width_(config.width),
        readers_(config.reads),
        heads_(readers_ + config.writes),
        shifts_(2 * config.shifts + 1),
        kind_(config.controller) {
    auto& set = this->parameters_;
    const auto& dimensions = b.dimensions;
    const auto& init = b.init;
    const bool posterior = b.posterior;
    if (const int vectors = dimensions.at("vectors"); static_cast<int>(cells_) < vectors)
      throw UsageError(
          fmt::format("turing_machine: the longest sequence has {} vectors to keep, but the memory has {} cells; "
                      "give cells={} or shorter sequences",
                      vectors, cells_, vectors));
    const std::size_t C = config.hidden, I = dimensions.at("input_width"), O = dimensions.at("answer_width");
    initial_ = &normal_parameter(set, "memory.initial.weight", {1, width_}, 0.5, init);
    if (kind_ == Controller::lstm)
      lstm_ = {set, "controller", I + readers_ * width_, C, init};
    else
      controller_ = {set, "controller", I + readers_ * width_, C, init};
    address_ = {set, "head.address", C, heads_ * (width_ + 3 + shifts_), init};
    write_ = {set, "head.write", C, (heads_ - readers_) * 2 * width_, init};
    output_ = {set, "output", C + readers_ * width_, O, init};
    if (posterior) posterior_ = {set, "posterior.query", C + O, heads_ * width_, init};

    structure_.sites = {{.name = "heads",
                         .options = static_cast<int>(cells_),
                         .times = dimensions.at("steps"),
                         .state_width = static_cast<int>(C),
                         .scope = DependenceScope::later_choices,
                         .columns = static_cast<int>(heads_)}};
    structure_.posterior = posterior;
  }

  const Structure& structure() const override { return structure_; }

  typename Model<T>::SiteExtent site_extent(const Batch& batch, std::size_t, int example) const override {
    return {std::vector<int>(heads_, static_cast<int>(cells_)), batch.ints("length")(example)};
  }

  void run(const Batch& batch, Episode<T>& episode) const override;

 private:
  // The machine's values in n states: the controller, the memories, the cells read, the places of the heads.
  struct Machine {
    LstmState<T> s;
    Memories<T> M;
    Var<T> r, w;  // [n, R W], [n, H N]
    Machine after(const States<T>& i) const {
      const LstmState<T> kept{i.after(s.h), s.c ? Var<T>(i.after(s.c)) : Var<T>{}};
      return {kept, M.after(i), i.after(r), i.after(w)};
    }
  };
  Machine start(Tape<T>& tape, std::size_t examples) const;
  /// e [n H, N]
  Var<T> addressed(const Machine& m) const;
  Var<T> read(Var<T> w, const Memories<T>& M) const;
  Memories<T> written(const Memories<T>& M, Var<T> w, Var<T> s) const;

  Structure structure_;
  std::size_t cells_, width_, readers_, heads_, shifts_;  // shifts_: 2 S + 1
  Controller kind_;
  const Parameter<T>* initial_ = nullptr;
  Lstm<T> lstm_;
  Linear<T> controller_, address_, write_, output_, posterior_;
};

template <class T>
void TuringMachine<T>::run(const Batch& batch, Episode<T>& episode) const {
  auto& tape = episode.tape();
  const Distinct distinct(batch);
  const Sequences<T> given(distinct.batch());
  const Items items(distinct.size() * heads_, cells_);

  auto states = States<T>(episode, distinct).only(given.have(0));
  auto m = start(tape, distinct.size()).after(states);
  for (std::size_t t = 0; t < given.steps(); ++t) {
    const auto input = concat_columns({given.x(tape, states.example(), t), m.r});
    m.s =
        kind_ == Controller::lstm ? lstm_.step(lstm_.project(input), m.s) : LstmState<T>{tanh(controller_(input)), {}};  // s_t
    ItemSite<T> site{.name = "heads",
                     .logits = addressed(m),  // e
                     .items = items,
                     .state = m.s.h,
                     .columns = static_cast<int>(heads_)};
    if (structure_.posterior)
      site.posterior = [&] {  // e_i + (W_q [s_t; y_t] + b_q)^h . M_{t-1},i
        const auto q = reshape(posterior_(concat_columns({m.s.h, given.y(tape, states.example(), t)})), width_);
        return add(site.logits, m.M.dots(q));
      };
    const auto i = states.choose(site);  // i_t^h ~ softmax(e)
    m = m.after(i);
    m.w = reshape(i.weights(), heads_ * cells_);  // w_t
    m.M = written(m.M, m.w, m.s.h);               // M_t
    m.r = read(m.w, m.M);                         // r_t
    given.answer(i, t, output_(concat_columns({m.s.h, m.r})));
    if (t + 1 == given.steps()) break;
    states = i.next_step().only(given.have(t + 1));
    m = m.after(states);
  }
}

template <class T>
auto TuringMachine<T>::start(Tape<T>& tape, std::size_t examples) const -> Machine {
  const std::vector<int> same(examples * cells_, 0);
  const auto C = static_cast<std::size_t>(structure_.state_width());
  Machine m;
  m.s.h = tape.constant(examples, C);
  if (kind_ == Controller::lstm) m.s.c = tape.constant(examples, C);
  m.M = {gather_rows(tape.parameter(*initial_), std::span<const int>(same)), cells_};
  const auto first = tape.constant(examples * heads_, cells_);
  for (std::size_t h = 0; h < examples * heads_; ++h) tape.mutable_value(first)(h, 0) = 1;
  m.w = reshape(first, heads_ * cells_);
  m.r = read(m.w, m.M);
  return m;
}

template <class T>
Var<T> TuringMachine<T>::addressed(const Machine& m) const {
  const T floor = static_cast<T>(1e-8), least = static_cast<T>(1e-12);
  const auto asked = reshape(address_(m.s.h), width_ + 3 + shifts_);  // [n H, W + 2 S + 4]
  const auto number = [&](std::size_t j) { return slice_columns(asked, width_ + j, 1); };
  const auto normalised = [](Var<T> x) {
    return probabilities(log_softmax(x, std::vector<int>(x.rows(), static_cast<int>(x.cols()))));
  };
  const auto cosine = m.M.cosines(slice_columns(asked, 0, width_), floor);
  const auto content = normalised(scale_rows(cosine, softplus(number(0))));
  const auto gate = sigmoid(number(1));
  const auto gated = add(scale_rows(content, gate), scale_rows(reshape(m.w, cells_), affine(gate, T{-1}, T{1})));
  const auto shifted = circular_shift(gated, normalised(slice_columns(asked, width_ + 2, shifts_)));
  return scale_rows(log(affine(shifted, T{1}, least)), affine(softplus(number(2 + shifts_)), T{1}, T{1}));
}

// r = [sum_i w_i^h M_i]_h
template <class T>
Var<T> TuringMachine<T>::read(Var<T> w, const Memories<T>& M) const {
  return reshape(M.read(reshape(slice_columns(w, 0, readers_ * cells_), cells_)), readers_ * width_);
}

// M_i (.) prod_h (1 - w_i^h sig(u^h)) + sum_h w_i^h tanh(v^h)
template <class T>
Memories<T> TuringMachine<T>::written(const Memories<T>& M, Var<T> w, Var<T> s) const {
  const auto writing = reshape(slice_columns(w, readers_ * cells_, (heads_ - readers_) * cells_), cells_);
  const auto uv = reshape(write_(s), 2 * width_);
  return M.written(writing, sigmoid(slice_columns(uv, 0, width_)), tanh(slice_columns(uv, width_, width_)));
}

const ModelEntry entry = {
    .name = "turing_machine",
    .summary = "neural Turing machine whose heads choose the cells they read and write",
    .paper = "Graves, Wayne & Danihelka 2014, Neural Turing machines (soft: as published)",
    .dependence = "sequential",
    .kinds = "categorical",
    .parameters = declared<Config>(),
    .needs = {"input_width", "answer_width", "steps", "vectors"},
};
HARDGRAD_MODEL(TuringMachine, entry)

}  // namespace
}  // namespace hardgrad::models::turing_machine
