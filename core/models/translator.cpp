// The translator's layers, and how it stands in the registry.
#include "core/models/translator.hpp"

#include <cmath>

namespace hardgrad {

template <class T>
Translator<T>::Translator(const Blueprint& b)
    : score_(b.settings.text("score") == "dot" ? Score::dot : Score::additive),
      feed_(b.settings.text("feed") == "none"   ? Feed::none
            : b.settings.text("feed") == "soft" ? Feed::soft
                                                : Feed::sampled),
      bos_(b.dimensions.at("bos")),
      eos_(b.dimensions.at("eos")) {
  const auto& [settings, dimensions, init, posterior] = b;
  const auto E = settings.integer("embedding"), H = settings.integer("hidden");
  auto& set = this->parameters_;
  const int source = dimensions.at("source_vocabulary"), target = dimensions.at("target_vocabulary");
  source_words_ = {set, "encoder.embedding", std::size_t(source), std::size_t(E), init};
  encoder_ = {set, "encoder", std::size_t(E), std::size_t(H), init};
  const std::size_t h = H, e = E;
  key_ = {set, "attention.key", 2 * h, h, init, score_ == Score::additive};
  if (score_ == Score::additive) {
    query_ = {set, "attention.query", h, h, init, false};
    score_vector_ = &uniform_parameter(set, "attention.score.weight", {1, h}, 1 / std::sqrt(double(h)), init);
  }
  target_words_ = {set, "decoder.embedding", std::size_t(target), e, init};
  initial_ = {set, "decoder.initial", 2 * h, h, init};
  decoder_ = {set, "decoder.lstm", e, h, init};
  if (feed_ != Feed::none) context_ = {set, "decoder.context", 2 * h, 4 * h, init, false};
  readout_state_ = {set, "readout.state", h, h, init};
  readout_context_ = {set, "readout.context", 2 * h, h, init, false};
  readout_word_ = {set, "readout.word", e, h, init, false};
  output_ = {set, "output", h, std::size_t(target), init};

  structure_.sites = {{.name = "position",
                       .options = dimensions.at("source_length"),
                       .times = dimensions.at("target_length"),
                       .state_width = H,
                       .reach = feed_ == Feed::sampled ? Reach::later_choices : Reach::own_costs}};
  structure_.posterior = posterior;
  structure_.dreams = this;
  labels = target;
  places = structure_.steps();
  last_label = eos_;
  if (structure_.posterior) {
    posterior_key_ = {set, "posterior.key", 2 * h, h, init};
    posterior_state_ = {set, "posterior.state", h, h, init, false};
    posterior_words_ = {set, "posterior.embedding", std::size_t(target), e, init};
    posterior_word_ = {set, "posterior.word", e, h, init, false};
    posterior_vector_ = &uniform_parameter(set, "posterior.score.weight", {1, h}, 1 / std::sqrt(double(h)), init);
  }
}

template <class T>
auto Translator<T>::asked(const Batch& batch, std::size_t, int example) const -> typename Model<T>::Asked {
  return {{batch.ints("source_length").data[example]}, batch.ints("target_length").data[example]};
}

template <class T>
Batch Translator<T>::with_observations(const Batch& batch, const std::vector<std::vector<int>>& drawn) const {
  auto result = batch;
  auto& length = result.integers.at("target_length").data;
  Array<int> target({length.size(), drawn.size()});
  for (std::size_t b = 0; b < length.size(); ++b) {
    length[b] = 0;
    for (std::size_t t = 0; t < drawn.size(); ++t) {
      length[b] += drawn[t][b] >= 0;
      target.row(b)[t] = drawn[t][b] >= 0 ? drawn[t][b] : eos_;  // padding
    }
  }
  result.integers.at("target") = std::move(target);
  return result;
}

#define HARDGRAD_INSTANTIATE(T)                                                                       \
  template Translator<T>::Translator(const Blueprint&);                                               \
  template auto Translator<T>::asked(const Batch&, std::size_t, int) const->typename Model<T>::Asked; \
  template Batch Translator<T>::with_observations(const Batch&, const std::vector<std::vector<int>>&) const;
HARDGRAD_INSTANTIATE(float)
HARDGRAD_INSTANTIATE(double)

const ModelEntry entry = {
    .name = "translator",
    .summary = "encoder-decoder that looks at one source position per target word",
    .paper =
        "Bahdanau, Cho & Bengio 2015, Neural machine translation by jointly learning to align and translate; hard "
        "attention: Xu et al. 2015, Show, attend and tell; Deng et al. 2018, Latent alignment and variational attention",
    .dependence = "factorised (feed=none|soft), sequential (feed=sampled)",
    .kinds = "categorical",
    .parameters = {ParameterInfo::integer("embedding", 32, 1, 4096, "width of the word embeddings"),
                   ParameterInfo::integer("hidden", 32, 1, 4096, "units of the decoder and of each encoder direction"),
                   ParameterInfo::choice("score", "additive", {"additive", "dot"}, "how a position is scored"),
                   ParameterInfo::choice("feed", "none", {"none", "soft", "sampled"},
                                         "the context that enters the decoder's next state")},
    .needs = {"source_vocabulary", "target_vocabulary", "source_length", "target_length", "bos", "eos"},
};
HARDGRAD_MODEL(Translator, entry)

}  // namespace hardgrad
