// The smallest models: bits with few outcomes. Also a model that adds a constant to another model's cost.
#pragma once

#include "core/models/model.hpp"

namespace hardgrad::testing {

inline constexpr auto* three_bits = "bits[bits=3,t=0.6;0.51;0.48,shared_logit=true,logit=-1]";
inline constexpr auto* linear_bits = "bits[bits=2,options=3,function=linear,logit=0.2;-0.1;0.4]";
inline constexpr auto* table_bits = "bits[bits=2,function=table,logit=0.3;-0.8]";
inline constexpr auto* table_of_trits = "bits[bits=2,options=3,function=table,logit=0.2;-0.1;0.4;1;0.3;-0.5]";
inline constexpr auto* one_bit = "bits[logit=2]";
/// One model of each kind: a shared parameter, categories, dependent choices, a single choice.
inline constexpr const char* toys[] = {three_bits, linear_bits, table_bits, one_bit};

/// The inner model with a constant added to its cost.
class Shifted final : public Model<double> {
 public:
  Shifted(const Model<double>& inner, double shift) : inner_(inner), shift_(shift) {}
  const Structure& structure() const override { return inner_.structure(); }
  SiteExtent site_extent(const Batch& batch, std::size_t site, int example) const override {
    return inner_.site_extent(batch, site, example);
  }
  void run(const Batch& batch, Episode<double>& episode) const override {
    episode.cost(episode.root(), episode.tape().constant(episode.root()->size(), 1, shift_));
    inner_.run(batch, episode);
  }

 private:
  const Model<double>& inner_;
  double shift_;
};

}  // namespace hardgrad::testing
