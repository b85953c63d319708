// A recurrent reader that sees an image through a few glimpses. Each is centred on a cell of a G x G grid, or anywhere
// (policy=gaussian: parts/glimpses.hpp has the differences).
//
// Sensor at cell (i, j) with patch size P and scales s = 0..S-1: a window of P 2^s x P 2^s pixels, zero outside the image, is
// averaged over blocks of 2^s x 2^s pixels -> x [S P P] in the order s, row, column. Its first row is
// floor(((2i+1) height - P 2^s G + G) / (2G)), its first column likewise from j and the width: the window's middle is at the
// cell's centre, rounded.
//   d_c = relu(W_p x_c + b_p)                       contents of cell c
//   g_c = relu(W_x d_c + b_x + E_c)                 contents and place
//   e_t = W_l h_{t-1} + b_l, c_t ~ softmax(e_t)     the choice, t = 1..T; h_0 is a learned row
//   core=rnn:  h_t = relu(W_h h_{t-1} + W_g g + b_g)
//   core=lstm: h_t = LSTM(g, h_{t-1}), c_0 = 0
//   loss = -log softmax(W_c h_T + b_c)[label]
// An image may have labels 1..K, where the last one is the end label (Ba, Mnih & Kavukcuoglu 2015). Each label takes T more
// glimpses: loss = sum_k -log softmax(W_c h_{kT} + b_c)[label_k].
// Relaxed weights w see the expected patch at the expected place: d = relu(W_p sum_c w_c x_c + b_p), E = sum_c w_c E_c.
// policy=gaussian: places l_t replace cells, x is the patch of a bilinear sensor around l_t, and E = W_e l_t.
// While others of its batch go on, an image past its last label draws standard Normal numbers, which nothing reads.
//
// As Mnih et al. 2014 train by the score function (sec. 3), each by its own setting:
//   reward=correct       the cost of an answer is 0 if it is right, else 1; its derivative is that of the cross-entropy:
//                        f = stop([wrong] - CE) + CE. So places learn from answers, everything else from the cross-entropy.
//   detached=true        the locator reads stop(h_{t-1}), so that it alone learns from the score. A posterior reads h_{t-1}
//                        itself.
//   locator_units=L      e_t = W_l relu(W_m h_{t-1} + b_m) + b_l with L units (common in others' code, not in the paper)
//   first=random         the first place of an image is uniform: c_1 of all cells, or anywhere in the image, also under the
//                        posterior (so it adds no divergence); it counts as a glimpse
//   place_units, clamped for policy=gaussian (Gaze in parts/glimpses.hpp)
// Posterior (if asked for): q(c_t | image, label, history) = softmax_c of v . tanh(U h_{t-1} + F[label] + W_k x_c + b_k + L_c),
// with the next label.
// Refused: clamped and place_units with policy=grid; first=random with a single glimpse in all; with reward=correct targets
// that need the likelihood of the answer.
//
// Parameters (D = features, H = hidden, LSTM gates i, f, g, o):
//   glimpse.patch.{weight [D, S P P], bias [D]}, glimpse.what.{weight [H, D], bias [H]}, glimpse.where.weight [G G, H]
//   core.initial [1, H], core.recurrent.weight [H, H] and core.input.{weight [H, H], bias [H]} (core=rnn),
//   core.lstm.{input.weight [4H, H], recurrent.weight [4H, H], bias [4H]} (core=lstm)
//   locator.{weight [G G, H], bias [G G]} (locator_units: [G G, L], and locator.hidden.{weight [L, H], bias [L]}),
//   classifier.{weight [classes, H], bias [classes]}
//   posterior.state.weight [D, H], posterior.label.weight [classes, D], posterior.patch.{weight [D, S P P], bias [D]},
//   posterior.where.weight [G G, D], posterior.score.weight [1, D]
//   policy=gaussian: the locator has 2 outputs; Gaze lists glimpse.where and the posterior.
#include <algorithm>
#include <cmath>

#include "core/autodiff/cross_entropy.hpp"
#include "core/autodiff/elementwise.hpp"
#include "core/models/model.hpp"
#include "core/models/parts/answer_sampler.hpp"
#include "core/models/parts/glimpses.hpp"
#include "core/models/parts/states.hpp"
#include "core/nn/layers.hpp"

namespace hardgrad::models::glimpse_reader {
namespace {

enum class Core { rnn, lstm };
constexpr Named<Core> cores[] = {{"rnn", Core::rnn}, {"lstm", Core::lstm}};

enum class Policy { grid, gaussian };
constexpr Named<Policy> policies[] = {{"grid", Policy::grid}, {"gaussian", Policy::gaussian}};

enum class Reward { none, correct };
constexpr Named<Reward> rewards[] = {{"none", Reward::none}, {"correct", Reward::correct}};

enum class First { learned, random };
constexpr Named<First> firsts[] = {{"learned", First::learned}, {"random", First::random}};

struct Config {
  int grid = 6, patch = 8, scales = 1, glimpses = 6, features = 128, hidden = 128;
  Core core = Core::rnn;
  Policy policy = Policy::grid;
  double scale = 0.2;
  Reward reward = Reward::none;
  bool detached = false;
  int locator_units = 0;
  First first = First::learned;
  bool clamped = false;
  std::size_t place_units = 0;

  void declare(Fields& field) {
    field(grid, "grid", 1, 64, "cells per side of the grid of centres");
    field(patch, "patch", 1, 64, "pixels per side of a patch");
    field(scales, "scales", 1, 4, "patches per glimpse, each twice as wide as the previous one");
    field(glimpses, "glimpses", 1, 32, "glimpses before each answer");
    field(features, "features", 1, 4096, "width of a patch's representation");
    field(hidden, "hidden", 1, 4096, "units of the core");
    field(core, "core", cores, "the recurrent core");
    field(policy, "policy", policies, "place of a glimpse: a cell of the grid, or Normal coordinates");
    field(scale, "scale", 0, 10, "standard deviation of policy=gaussian; the image is [-1, 1]^2").above();
    field(reward, "reward", rewards,
          "none: the cost is the cross-entropy; correct: 1 if the answer is wrong, which places learn from, "
          "while the rest learns from the cross-entropy");
    field(detached, "detached", "the locator reads the state without a derivative");
    field(locator_units, "locator_units", 0, 4096, "units of the locator's hidden layer; 0: none");
    field(first, "first", firsts, "the first place is chosen as the others, or uniform");
    field(clamped, "clamped", "policy=gaussian: places are clamped to the image when they are seen");
    field(place_units, "place_units", 0, 4096,
          "policy=gaussian: units of the hidden layer through which a glimpse's place is read; 0: none");
  }
};

template <class T>
class GlimpseReader final : public Model<T>, public AnswerSampler, public StopsGradients {
 public:
  GlimpseReader(const Config& config, const Blueprint& b)
      : sensor_{config.grid, config.patch, config.scales, b.dimensions.at("height"), b.dimensions.at("width")},
        glimpses_(config.glimpses),
        answers_(b.dimensions.contains("labels_in_a_row") ? b.dimensions.at("labels_in_a_row") : 1),
        kind_(config.core),
        policy_(config.policy),
        reward_(config.reward),
        detached_(config.detached),
        first_(config.first),
        gaze_{.patch = sensor_.patch,
              .scales = sensor_.scales,
              .scale = config.scale,
              .clamped = config.clamped,
              .place_units = config.place_units} {
    if (policy_ == Policy::grid && (gaze_.clamped || gaze_.place_units > 0))
      throw UsageError("glimpse_reader: clamped and place_units are for places anywhere: take policy=gaussian or drop them");
    if (first_ == First::random && glimpses_ * answers_ == 1)
      throw UsageError("glimpse_reader: first=random leaves no place to choose: take glimpses=2 or more");
    auto& set = this->parameters_;
    const auto& dimensions = b.dimensions;
    const auto& init = b.init;
    const bool posterior = b.posterior;
    const std::size_t H = config.hidden, D = config.features;
    const std::size_t cells = sensor_.cells(), classes = dimensions.at("classes");
    const double bound = 1 / std::sqrt(double(H));
    patch_ = {set, "glimpse.patch", sensor_.values(), D, init};
    what_ = {set, "glimpse.what", D, H, init};
    if (policy_ == Policy::gaussian)
      gaze_.add_where(set, H, init);
    else
      where_ = {set, "glimpse.where", cells, H, init};
    initial_ = &uniform_parameter(set, "core.initial", {1, H}, bound, init);
    if (kind_ == Core::lstm) {
      core_ = {set, "core.lstm", H, H, init};
    } else {
      recurrent_ = {set, "core.recurrent", H, H, init, false};
      input_ = {set, "core.input", H, H, init};
    }
    const std::size_t units = config.locator_units;
    if (units > 0) locator_hidden_ = {set, "locator.hidden", H, units, init};
    locator_ = {set, "locator", units > 0 ? units : H, policy_ == Policy::gaussian ? 2 : cells, init};
    classifier_ = {set, "classifier", H, classes, init};

    structure_.sites = {{.name = "place",
                         .options = policy_ == Policy::gaussian ? 0 : static_cast<int>(cells),
                         .times = glimpses_ * answers_,
                         .state_width = static_cast<int>(H),
                         .scope = DependenceScope::later_choices,
                         .kind = policy_ == Policy::gaussian ? SiteKind::normal : SiteKind::categorical,
                         .columns = policy_ == Policy::gaussian ? 2 : 1}};
    structure_.posterior = posterior;
    structure_.answer_sampler = this;
    if (reward_ == Reward::correct) structure_.no_likelihood = "reward=correct";
    if (reward_ == Reward::correct)
      stopped = "reward=correct: the cost of an answer has the derivative of its cross-entropy";
    else if (detached_)
      stopped = "detached=true: the locator's input has no derivative";
    labels = static_cast<int>(classes);
    places = answers_;
    if (answers_ > 1) last_label = labels - 1;
    if (structure_.posterior && policy_ == Policy::gaussian) gaze_.add_posterior(set, H, D, classes, init);
    if (structure_.posterior && policy_ == Policy::grid) {
      posterior_state_ = {set, "posterior.state", H, D, init, false};
      posterior_label_ = {set, "posterior.label", classes, D, init};
      posterior_patch_ = {set, "posterior.patch", sensor_.values(), D, init};
      posterior_where_ = {set, "posterior.where", cells, D, init};
      posterior_score_ = &uniform_vector(set, "posterior.score.weight", D, init);
    }
  }

  const Structure& structure() const override { return structure_; }

  typename Model<T>::SiteExtent site_extent(const Batch& batch, std::size_t site, int example) const override {
    auto asked = Model<T>::site_extent(batch, site, example);
    if (policy_ == Policy::grid)
      asked.times = glimpses_ * count(row_of(batch.ints("label"), example));  // all numbers are drawn, used or not
    return asked;
  }

  void run(const Batch& batch, Episode<T>& episode) const override {
    auto& tape = episode.tape();
    const Distinct distinct(batch);
    const auto& label = distinct.batch().ints("label");
    Seen seen{distinct.batch().numbers("image"), Items(distinct.size(), sensor_.cells()), {}, {}};
    if (episode.observer() && answers_ > 1 && !distinct.all())
      throw Bug("equal examples can be merged only if their labels are equal");
    Var<T> clues;  // W_k x_c + b_k + L_c [images cells, D], on demand

    auto states = States<T>::unseen(episode, distinct);
    auto h = tape.parameter(*initial_);
    auto c = kind_ == Core::lstm ? tape.constant(1, h.cols()) : Var<T>{};
    std::vector<char> over(distinct.size());
    for (int k = 0; k < answers_; ++k) {
      const auto next = [&](int b) { return row_of(label, b)[k]; };
      for (int t = 1; t <= glimpses_; ++t) {
        const bool random = first_ == First::random && k == 0 && t == 1;
        auto place = choose(states, h, seen, clues, random, next);  // c_t ~ softmax(W_l h_{t-1} + b_l)
        // The recurrent product needs only the states before the choice, which are fewer.
        const auto recurrent = kind_ == Core::lstm ? linear(h, tape.parameter(*core_.recurrent)) : recurrent_(h);
        Sum<T> gates = place.after(recurrent) + look(tape, place, seen, random);
        if (kind_ == Core::lstm) {
          const auto state = lstm_cell<T>(gates, Var<T>(place.after(c)));
          h = state.h;
          c = state.c;
        } else {
          h = relu(gates);
        }
        states = std::move(place);
      }
      if (episode.observer()) {
        const auto predicted = states.observed(classifier_(h), k);
        for (std::size_t r = 0; r < predicted.size(); ++r)
          if (predicted[r] == last_label) over[distinct.index[states.rows()->example[r]]] = true;
      } else {  // -log softmax(W_c h + b_c)[label]
        const auto right = states.each(next);
        states.cost(rewarded(linear_cross_entropy(h, tape.parameter(*classifier_.weight), tape.parameter(*classifier_.bias),
                                                  std::span<const int>(right)),
                             right));
        for (std::size_t b = 0; b < over.size(); ++b) over[b] = count(row_of(label, b)) <= k + 1;
      }
      if (std::all_of(over.begin(), over.end(), [](char is) { return is != 0; })) return;
      states = states.next_step().only([&](int b) { return !over[b]; });
      h = states.after(h);
      if (kind_ == Core::lstm) c = states.after(c);
    }
  }

  Batch with_observations(const Batch& batch, const std::vector<std::vector<int>>& drawn) const override {
    auto result = batch;
    auto& label = result.integers.at("label");
    for (std::size_t b = 0; b < batch.id.size(); ++b)
      for (std::size_t k = 0; k < row_of(label, b).size(); ++k) row_of(label, b)[k] = k < drawn.size() ? drawn[k][b] : -1;
    return result;
  }

 private:
  // Cached values of the images.
  struct Seen {
    const Array<double>& image;
    Items cells;     // of each image
    Var<T> patches;  // [images cells, S P P], on demand
    Var<T> inputs;   // [images cells, core's input], on demand
  };
  /// Number of labels of an example.
  static int count(std::span<const int> label) {
    return static_cast<int>(std::count_if(label.begin(), label.end(), [](int one) { return one >= 0; }));
  }
  std::vector<int> every_cell(std::size_t examples) const {
    std::vector<int> cell(examples * sensor_.cells());
    for (std::size_t i = 0; i < cell.size(); ++i) cell[i] = static_cast<int>(i % sensor_.cells());
    return cell;
  }
  Var<T> patches(Tape<T>& tape, Seen& seen) const {
    if (!seen.patches) seen.patches = sensor_.every_patch(tape, seen.image);
    return seen.patches;
  }

  /// The states after the choice of a place. next(image) is its next label.
  template <class F>
  States<T> choose(const States<T>& states, Var<T> h, Seen& seen, Var<T>& clues, bool random, F next) const {
    auto& tape = *h.tape;
    if (random && policy_ == Policy::gaussian) return states.choose(gaze_.random_site(states, h, structure_.posterior));
    if (random) {
      const auto even = [&](std::size_t n) { return tape.constant(n, sensor_.cells()); };
      ItemSite<T> site{.name = "place", .logits = even(h.rows()), .items = seen.cells, .state = h};
      if (structure_.posterior) site.posterior = [&] { return even(states.by_example().size()); };
      return states.choose(site);
    }
    if (detached_) h = tape.detach(h);
    const auto located = locator_(locator_hidden_.weight ? relu(locator_hidden_(h)) : h);
    if (policy_ == Policy::gaussian) return states.choose(gaze_.site(states, h, located, structure_.posterior, next));
    return states.choose(site(states, h, located, seen, clues, next));
  }
  template <class F>
  ItemSite<T> site(const States<T>& states, Var<T> h, Var<T> located, Seen& seen, Var<T>& clues, F next) const {
    ItemSite<T> site{.name = "place", .logits = located, .items = seen.cells, .state = h};
    if (structure_.posterior)
      site.posterior = [=, this, &seen, &clues] {  // v . tanh(U h + F[label] + W_k x_c + b_k + L_c)
        auto& tape = *h.tape;
        if (!clues)
          clues = posterior_patch_(patches(tape, seen)) +
                  Sum<T>(tape.parameter(*posterior_where_.weight), every_cell(extent(seen.image, 0)));
        const auto by_example = states.by_example();
        const Var<T> query =
            by_example.after(posterior_state_(h)) + Sum<T>(tape.parameter(*posterior_label_.weight), by_example.each(next));
        return additive_scores(query, clues, tape.parameter(*posterior_score_), by_example.example(), seen.cells);
      };
    return site;
  }

  // The core's input from a glimpse: a product with g = relu(W_x d + b_x + E), d = relu(W_p x + b_p).
  Var<T> input(Var<T> x, Sum<T> E) const {
    const auto g = relu(what_(relu(patch_(x))) + std::move(E));
    return kind_ == Core::lstm ? core_.project(g) : input_(g);
  }
  // A glimpse depends only on the image and the cell. With more states than cells, all cells are computed once.
  Sum<T> look(Tape<T>& tape, const States<T>& place, Seen& seen, bool random) const {
    if (policy_ == Policy::gaussian) {
      const auto l = gaze_.at(place, random);
      return input(gaze_.look(seen.image, place, l), gaze_.placed(l));
    }
    const auto E = tape.parameter(*where_.weight);
    if (!place.hard()) return input(place.read(patches(tape, seen)), place.of_table(E));
    if (!seen.inputs && place.size() < seen.cells.total())
      return input(sensor_.patches(tape, seen.image, place.example(), place.options()), place.of_table(E));
    if (!seen.inputs) seen.inputs = input(patches(tape, seen), {E, every_cell(extent(seen.image, 0))});
    return place.read(seen.inputs);
  }

  /// reward=correct: the loss is 1 where the label is not the `right` one, with the derivative of the cross-entropy.
  Classified<T> rewarded(Classified<T> answer, const std::vector<int>& right) const {
    if (reward_ == Reward::none) return answer;
    auto& tape = *answer.loss.tape;
    const auto ahead = tape.constant(right.size(), 1);  // [wrong] - CE
    const auto to = tape.mutable_value(ahead);
    for (std::size_t n = 0; n < right.size(); ++n)
      to(n, 0) = static_cast<T>(answer.label[n] != right[n]) - answer.loss.value()(n, 0);
    answer.loss = add(answer.loss, ahead);
    return answer;
  }

  Structure structure_;
  Sensor sensor_;
  int glimpses_, answers_;
  Core kind_;
  Policy policy_;
  Reward reward_;
  bool detached_;
  First first_;
  Gaze<T> gaze_;  // policy=gaussian
  Linear<T> patch_, what_, recurrent_, input_, locator_hidden_, locator_, classifier_, posterior_state_, posterior_patch_;
  Embedding<T> where_, posterior_label_, posterior_where_;
  Lstm<T> core_;
  const Parameter<T>*initial_ = nullptr, *posterior_score_ = nullptr;
};

const ModelEntry entry = {
    .name = "glimpse_reader",
    .summary =
        "recurrent reader that classifies an image, or several objects in it one by one, after a few glimpses at cells of a "
        "grid or anywhere",
    .paper = "Mnih, Heess, Graves & Kavukcuoglu 2014, Recurrent models of visual attention (policy=grid: places on a grid)",
    .dependence = "one choice (glimpses=1), sequential (glimpses>1, or several labels)",
    .kinds = "categorical, Normal (policy=gaussian)",
    .parameters = declared<Config>(),
    .needs = {"height", "width", "classes"},
};
HARDGRAD_MODEL(GlimpseReader, entry)

}  // namespace
}  // namespace hardgrad::models::glimpse_reader
