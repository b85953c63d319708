#include "core/models/parts/answer_sampler.hpp"

#include <cmath>

#include "core/autodiff/softmax.hpp"
#include "core/choice/handlers.hpp"

namespace hardgrad {
namespace {

/// Draws a choice and an observation independently for each example.
template <class T>
class Dreamer final : public Handler<T>, public Observer<T> {
 public:
  Dreamer(const Batch& batch, Randomness& random, int replica) : id_(batch.id), random_(random), replica_(replica) {}
  Choice<T> choose(Tape<T>& tape, const Question<T>& question) override {
    const Noise noise{random_, id_, question.step, static_cast<std::uint32_t>(replica_)};
    return question.distribution->sample(tape, fan_out(question, 1), noise);
  }
  std::vector<int> observe(std::span<const int> example, Var<T> logits, int at) override {
    const std::vector<int> labels(example.size(), static_cast<int>(logits.cols()));
    const auto log_p = log_softmax(logits, std::span<const int>(labels)).value();
    if (observed_.size() <= static_cast<std::size_t>(at)) observed_.resize(at + 1, std::vector<int>(id_.size(), -1));
    std::vector<int> drawn(example.size());
    std::vector<double> p(log_p.cols);
    for (std::size_t r = 0; r < drawn.size(); ++r) {
      for (std::size_t i = 0; i < p.size(); ++i) p[i] = std::exp(static_cast<double>(log_p(r, i)));
      observed_[at][example[r]] = drawn[r] = random_.categorical(p, place(example[r], at, 1));
    }
    return drawn;
  }
  /// [place][B] the drawn labels; -1: none.
  const std::vector<std::vector<int>>& observed() const { return observed_; }

 private:
  Draw place(int example, int step, std::uint32_t index) const {
    return {id_[example], static_cast<std::uint32_t>(replica_), static_cast<std::uint32_t>(step), index};
  }
  const std::vector<std::uint32_t>& id_;
  Randomness& random_;
  int replica_;
  std::vector<std::vector<int>> observed_;
};

}  // namespace

template <class T>
Dream<T> dream(const Model<T>& model, const Batch& batch, Tape<T>& tape, Randomness& random, int replica) {
  const auto* sampler = model.structure().answer_sampler;
  if (!sampler) throw Bug("the model draws no observations");
  Dreamer<T> dreamer(batch, random, replica);
  auto episode = std::make_unique<Episode<T>>(tape, dreamer, batch.examples());
  episode->observe_by(dreamer);
  model.run(batch, *episode);
  Dream<T> result{sampler->with_observations(batch, dreamer.observed()), {}, {}};
  for (const auto& step : episode->steps())
    result.choices.push_back(step.choice.numbers() ? std::vector<int>{} : step.choice.option());
  result.episode = std::move(episode);
  return result;
}

void for_every_observation(const AnswerSampler& sampler, int examples,
                           const std::function<void(const std::vector<std::vector<int>>&)>& f) {
  std::vector<std::vector<int>> drawn;
  const std::function<void()> extend = [&] {
    const bool complete =
        !drawn.empty() && (drawn.back()[0] == sampler.last_label || static_cast<int>(drawn.size()) == sampler.places);
    if (complete) return f(drawn);
    for (int label = 0; label < sampler.labels; ++label) {
      drawn.emplace_back(examples, label);
      extend();
      drawn.pop_back();
    }
  };
  if (sampler.labels > 0) extend();
}

double observations(const AnswerSampler& sampler) {
  if (sampler.last_label < 0) return std::pow(sampler.labels, sampler.places);
  double open = 1, complete = 0;  // sequences that go on; sequences that have ended
  for (int place = 0; place < sampler.places; ++place) {
    complete += open;
    open *= sampler.labels - 1;
  }
  return complete + open;
}

template Dream<float> dream(const Model<float>&, const Batch&, Tape<float>&, Randomness&, int);
template Dream<double> dream(const Model<double>&, const Batch&, Tape<double>&, Randomness&, int);

}  // namespace hardgrad
