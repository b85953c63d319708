// D Normal numbers with a known cost: the toy problem of continuous choices. All means and variances have closed forms.
//
//   z_d ~ N(mean_d, scale_d^2), d = 1..D, at once: one site of D columns
//   function=quadratic: f = sum_d (z_d - k_d)^2        E = (mean - k)^2 + scale^2              per column
//   function=cosine:    f = sum_d cos(k_d z_d)         E = cos(k mean) exp(-k^2 scale^2 / 2)
// reduce=mean divides f by D. Posterior (if asked for): a Normal with its own parameters.
//
// Mohamed, Rosca, Figurnov & Mnih 2020, Monte Carlo gradient estimation in machine learning, sec. 3: these costs, and the
// variances of gradient estimates that follow from them.
//
// Parameters: gaussians.mean [1, D], gaussians.log_scale [1, D]; posterior.mean [1, D], posterior.log_scale [1, D].
#include <algorithm>

#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/rearrange.hpp"
#include "core/choice/normal.hpp"
#include "core/models/model.hpp"
#include "core/models/parts/reduction.hpp"

namespace hardgrad::models::gaussians {
namespace {

enum class Function { quadratic, cosine };
constexpr Named<Function> functions[] = {{"quadratic", Function::quadratic}, {"cosine", Function::cosine}};

struct Config {
  int columns = 1;
  Function function = Function::quadratic;
  std::vector<double> k = {1};
  std::vector<double> mean = {0};
  std::vector<double> log_scale = {0};
  Reduce reduce = Reduce::sum;

  void declare(Fields& field) {
    field(columns, "columns", 1, 100000, "numbers D chosen at once");
    field(function, "function", functions, "the cost f");
    field(k, "k", "k of (z - k)^2 or cos(k z): one for all, or one each", "columns");
    field(mean, "mean", "initial means: one for all, or one each", "columns");
    field(log_scale, "log_scale", "initial logarithms of the standard deviations: one for all, or one each", "columns");
    field(reduce, "reduce", reductions, "sum or mean of the columns' costs");
  }
};

template <class T>
class Gaussians final : public Model<T> {
 public:
  Gaussians(const Config& config, const Blueprint& b)
      : columns_(config.columns), function_(config.function), share_(share_of_each(config.reduce, columns_)), k_(config.k) {
    structure_ = {.sites = {{.name = "z",
                             .state_width = 1,
                             .scope = DependenceScope::own_column,
                             .kind = SiteKind::normal,
                             .columns = columns_}},
                  .posterior = b.posterior};
    prior_ = add("gaussians", config);
    if (b.posterior) posterior_ = add("posterior", config);
  }

  const Structure& structure() const override { return structure_; }

  void run(const Batch&, Episode<T>& episode) const override {
    auto& tape = episode.tape();
    const auto rows = episode.root();
    Site<T> site{"z", rows, distribution(tape, prior_, rows->size()), tape.constant(rows->size(), 1, T{1})};
    if (structure_.posterior) site.posterior = [&] { return distribution(tape, posterior_, rows->size()); };
    const auto z = episode.choose(std::move(site));
    const auto k = tape.constant(z.rows->size(), columns_);
    for (std::size_t i = 0; i < z.rows->size() * columns_; ++i)
      tape.mutable_value(k).data[i] = static_cast<T>(k_[i % columns_]);
    const auto f = function_ == Function::cosine ? cos(multiply(z.value(), k)) : square(subtract(z.value(), k));
    episode.cost(z.rows, affine(f, static_cast<T>(share_)));  // [R, D]: each column has its own cost
  }

 private:
  struct Parameters {
    const Parameter<T>*mean = nullptr, *log_scale = nullptr;
  };

  const Parameter<T>* add(const std::string& name, const std::vector<double>& values) {
    auto& parameter = this->parameters_.add(name, {1, values.size()});
    std::copy(values.begin(), values.end(), parameter.value.begin());
    return &parameter;
  }
  Parameters add(const std::string& group, const Config& config) {
    const auto* mean = add(group + ".mean", config.mean);
    return {mean, add(group + ".log_scale", config.log_scale)};
  }
  DistributionPtr<T> distribution(Tape<T>& tape, const Parameters& parameters, std::size_t rows) const {
    const std::vector<int> same(rows, 0);
    const auto on_rows = [&](const Parameter<T>& p) { return gather_rows(tape.parameter(p), std::span<const int>(same)); };
    return normal(on_rows(*parameters.mean), on_rows(*parameters.log_scale));
  }

  int columns_;
  Function function_;
  double share_;
  std::vector<double> k_;
  Parameters prior_, posterior_;
  Structure structure_;
};

}  // namespace

const ModelEntry entry = {
    .name = "gaussians",
    .summary = "D independent Normal numbers with a known cost: the toy problem of continuous choices",
    .paper = "Mohamed et al. 2020, Monte Carlo gradient estimation in machine learning, sec. 3",
    .dependence = "one choice (columns=1), factorised",
    .kinds = "Normal",
    .parameters = declared<Config>(),
    .needs = {"gaussians"},
};
HARDGRAD_MODEL(Gaussians, entry)

}  // namespace hardgrad::models::gaussians
