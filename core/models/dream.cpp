#include "core/models/dream.hpp"

#include <cmath>

#include "core/choice/choosers.hpp"

namespace hardgrad {
namespace {

template <class T>
class DreamChooser final : public Chooser<T> {
 public:
  DreamChooser(const Batch& batch, Randomness& random, int replica) : id_(batch.id), random_(random), replica_(replica) {}
  Choice<T> choose(Tape<T>&, const Question<T>& question) override {
    auto rows = fan_out(question, 1);
    std::vector<int> option;
    for (std::size_t r = 0; r < rows->size(); ++r)
      option.push_back(draw_option(question, rows->parent[r], Law::prior, random_, place(rows->example[r], question.step, 0)));
    return {rows, std::move(option), {}};
  }
  int observe(std::span<const double> probabilities, int example, int at) override {
    return random_.categorical(probabilities, place(example, at, 1));
  }

 private:
  Draw place(int example, int step, std::uint32_t index) const {
    return {id_[example], static_cast<std::uint32_t>(replica_), static_cast<std::uint32_t>(step), index};
  }
  const std::vector<std::uint32_t>& id_;
  Randomness& random_;
  int replica_;
};

}  // namespace

template <class T>
Dream<T> dream(const Model<T>& model, const Batch& batch, Tape<T>& tape, Randomness& random, int replica) {
  DreamChooser<T> chooser(batch, random, replica);
  auto episode = std::make_unique<Episode<T>>(tape, chooser, batch.examples(), Feeding::dreaming);
  model.run(batch, *episode);
  Dream<T> result{model.with_observations(batch, episode->observed()), {}, {}};
  for (const auto& step : episode->steps()) result.choices.push_back(step.choice.option);
  result.episode = std::move(episode);
  return result;
}

void for_every_observation(const Structure& structure, int examples,
                           const std::function<void(const std::vector<std::vector<int>>&)>& f) {
  std::vector<std::vector<int>> drawn;
  const std::function<void()> extend = [&] {
    const bool complete = !drawn.empty() && (drawn.back()[0] == structure.last_label ||
                                             static_cast<int>(drawn.size()) == structure.places);
    if (complete) return f(drawn);
    for (int label = 0; label < structure.labels; ++label) {
      drawn.emplace_back(examples, label);
      extend();
      drawn.pop_back();
    }
  };
  if (structure.labels > 0) extend();
}

double observations(const Structure& structure) {
  if (structure.last_label < 0) return std::pow(structure.labels, structure.places);
  double open = 1, complete = 0;  // not yet ended; ended
  for (int place = 0; place < structure.places; ++place) {
    complete += open;
    open *= structure.labels - 1;
  }
  return complete + open;
}

template Dream<float> dream(const Model<float>&, const Batch&, Tape<float>&, Randomness&, int);
template Dream<double> dream(const Model<double>&, const Batch&, Tape<double>&, Randomness&, int);

}  // namespace hardgrad
