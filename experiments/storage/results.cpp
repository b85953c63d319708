// Points of training, evaluation and measurement become columns over labelled axes, and back.
#include "experiments/storage/results.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <set>

#include "core/support/error.hpp"
#include "experiments/storage/provenance.hpp"

namespace hardgrad {

const std::vector<MeasurementField>& measurement_fields() {
  using M = Measurement;
  static const std::vector<MeasurementField> fields = {
      {"estimand_norm", &M::estimand_norm, "1", "norm of the exact gradient of the estimator's own target"},
      {"variance", &M::variance, "1", "trace of the covariance of the gradient"},
      {"squared_bias", &M::squared_bias, "1",
       "squared bias against the estimator's own target; unbiased, may be negative"},
      {"relative_bias", &M::relative_bias, "1", "bias over the norm of the exact gradient"},
      {"mse", &M::mse, "1", "variance plus squared bias"},
      {"snr", &M::snr, "1", "squared norm of the exact gradient over variance"},
      {"cosine", &M::cosine, "1", "mean cosine of one estimate to the exact gradient"},
      {"bias_p_value", &M::bias_p_value, "1", "p-value of the hypothesis of no bias, Bonferroni-corrected"},
      {"rows", &M::rows, "1", "model rows per gradient"},
      {"attention_values", &M::attention_values, "1", "attention values computed per gradient"},
      {"seconds", &M::seconds, "s", "wall time per gradient"},
      {"work_normalised_variance", &M::work_normalised_variance, "1", "variance times rows"},
      {"outcomes", &M::outcomes, "1", "outcomes visited by an exact measurement"},
      {"attention_entropy", &M::attention_entropy, "nat", "mean entropy of one choice of the network"}};
  return fields;
}

void add_provenance(Attributes& attributes, const std::map<std::string, std::string>& provenance) {
  attributes.emplace_back("created_at", timestamp());
  for (const auto& [key, value] : provenance) attributes.emplace_back(key, value);
}

std::string hex_seed(std::uint64_t seed) {
  char buffer[19];
  std::snprintf(buffer, sizeof buffer, "0x%016llx", static_cast<unsigned long long>(seed));
  return buffer;
}

std::uint64_t parse_seed(const std::string& text) {
  std::size_t used = 0;
  std::uint64_t seed = 0;
  try {
    const bool hexadecimal = text.rfind("0x", 0) == 0;
    seed = std::stoull(text, &used, hexadecimal ? 16 : 10);
  } catch (const std::exception&) {
    used = 0;
  }
  if (text.empty() || text[0] == '-' || used != text.size())
    throw InputError("seed \"" + text + "\" is not a whole number from 0 to 2^64 - 1");
  return seed;
}

namespace {

const std::vector<Target::Kind> target_kinds = {Target::Kind::expected_loss,
                                                Target::Kind::marginal_likelihood, Target::Kind::elbo,
                                                Target::Kind::regularised, Target::Kind::sparsemax, Target::Kind::soft,
                                                Target::Kind::importance_bound, Target::Kind::wake, Target::Kind::wake_sleep,
                                                Target::Kind::thermodynamic};

std::string safe_name(std::string name) {
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_' && c != '.' && c != '-') c = '_';
  return name;
}

class Builder {
 public:
  Builder(std::size_t runs, bool with_runs) : runs_(runs), with_runs_(with_runs) {
    if (!with_runs) return;
    std::vector<std::int64_t> labels(runs);
    for (std::size_t i = 0; i < runs; ++i) labels[i] = static_cast<std::int64_t>(i);
    data_.axes.push_back(
        {"run", std::move(labels), {{"long_name", "number of the run, in the plan's order"}}});
  }

  /// An axis of distinct labels, sorted if `place` is asked; left out if there are none.
  template <template <class...> class C, class L>
  void axis(const std::string& name, const C<L>& labels, const std::string& long_name) {
    if (!labels.empty())
      data_.axes.push_back({name, std::vector<L>(labels.begin(), labels.end()), {{"long_name", long_name}}});
  }

  /// A column over run and `inner`; null if one of these has no label. `fill` stands where nothing is put.
  template <class V>
  std::vector<V>* column(const std::string& name, std::vector<std::string> inner, V fill,
                         Attributes attributes) {
    std::size_t count = runs_;
    for (const auto& a : inner) {
      auto* found = data_.axis(a);
      if (!found) return nullptr;
      count *= found->size();
    }
    if (with_runs_) inner.insert(inner.begin(), "run");
    data_.variables.push_back({name, std::move(inner), std::vector<V>(count, fill), std::move(attributes)});
    return &std::get<std::vector<V>>(data_.variables.back().values);
  }

  /// Where in the axis a label stands.
  template <class L>
  std::size_t place(const std::string& axis, const L& label) const {
    const auto& labels = std::get<std::vector<L>>(data_.axis(axis)->labels);
    return static_cast<std::size_t>(std::lower_bound(labels.begin(), labels.end(), label) - labels.begin());
  }
  std::size_t length(const std::string& axis) const {
    auto* found = data_.axis(axis);
    return found ? found->size() : 0;
  }
  bool taken(const std::string& name) const { return data_.axis(name) || data_.variable(name); }
  Dataset take() { return std::move(data_); }
  void reserve(std::size_t n) { data_.variables.reserve(n); }

 private:
  std::size_t runs_;
  bool with_runs_;
  Dataset data_;
};

Attributes keyed(Attributes attributes, const std::string& family, const std::string& key) {
  attributes.emplace_back("family", family);
  attributes.emplace_back("key", key);
  return attributes;
}

using Records = std::vector<CellRecord>;

void add_labels(Builder& b, const Records& records) {
  const auto strings = [&](const std::string& name, Attributes attributes, auto&& get) {
    auto* out = b.column(name, {}, std::string(), std::move(attributes));
    for (std::size_t r = 0; r < records.size(); ++r) (*out)[r] = get(records[r]);
  };
  strings("estimator_settings", {{"long_name", "every parameter of the estimator, defaults included, as JSON"}},
          [](auto& r) { return r.estimator_settings; });
  strings("cell_hash", {{"long_name", "hash of the cell"}}, [](auto& r) { return r.cell_hash; });
  auto* status =
      b.column("status", {}, std::uint8_t{}, flags("how the run ended", {"ok", "failed", "skipped"}));
  for (std::size_t r = 0; r < records.size(); ++r)
    (*status)[r] = static_cast<std::uint8_t>(records[r].status);
  strings("reason", {{"long_name", "why the run failed or was skipped"}}, [](auto& r) { return r.reason; });
  strings("log", {{"long_name", "what the run printed"}}, [](auto& r) { return r.log; });
  strings("checkpoint", {{"long_name", "file of the final parameters, relative to the cells' folder"}},
          [](auto& r) { return r.checkpoint; });

  std::set<std::string> names;
  for (const auto& record : records)
    for (const auto& [name, value] : record.axes) names.insert(name);
  if (names.erase("seed")) {
    auto* seed =
        b.column("seed", {}, std::int64_t{-1},
                 {{"long_name", "root seed; from 2^63 on it wraps to negative numbers: seed_hex is exact"},
                  {"grid_axis", "seed"}});
    for (std::size_t r = 0; r < records.size(); ++r)
      if (auto it = records[r].axes.find("seed"); it != records[r].axes.end())
        (*seed)[r] = static_cast<std::int64_t>(parse_seed(it->second));
    strings("seed_hex", {{"long_name", "root seed, hexadecimal"}}, [](auto& r) {
      auto it = r.axes.find("seed");
      return it == r.axes.end() ? std::string() : hex_seed(parse_seed(it->second));
    });
  }
  for (const auto& name : names) {
    auto column = safe_name(name);
    static const std::set<std::string> mine = {
        "run",      "step", "evaluation_step", "measurement_step", "parameter_group", "target", "bound",
        "variance", "rows", "seconds"};
    if (b.taken(column) || mine.count(column)) column = "axis_" + column;
    strings(column, {{"long_name", "axis " + name + " of the grid"}, {"grid_axis", name}}, [&](auto& r) {
      auto it = r.axes.find(name);
      return it == r.axes.end() ? std::string() : it->second;
    });
  }
}

void add_costs(Builder& b, const Records& records) {
  const auto numbers = [&](const std::string& name, Attributes attributes, auto&& get) {
    auto* out = b.column(name, {}, not_a_number, std::move(attributes));
    for (std::size_t r = 0; r < records.size(); ++r) (*out)[r] = get(records[r]);
  };
  numbers("total_seconds", described("s", "wall time of the training"),
          [](auto& r) { return r.result.seconds; });
  numbers("total_rows", described("1", "model rows of all training gradients"),
          [](auto& r) { return r.result.rows; });
  numbers("total_attention_values", described("1", "attention values of all training gradients"),
          [](auto& r) { return r.result.attention_values; });
  std::set<std::string> names;
  for (const auto& record : records)
    for (const auto& [name, value] : record.costs) names.insert(name);
  for (const auto& name : names)
    numbers("cost_" + safe_name(name), keyed(described("1", "cost: " + name), "cost", name), [&](auto& r) {
      auto it = r.costs.find(name);
      return it == r.costs.end() ? not_a_number : it->second;
    });
}

void add_training(Builder& b, const Records& records) {
  const std::size_t n = b.length("step");
  const auto numbers = [&](const char* name, double LogPoint::*field, const char* units,
                           const char* long_name) {
    auto* out = b.column(name, {"step"}, not_a_number, described(units, long_name));
    if (!out) return;
    for (std::size_t r = 0; r < records.size(); ++r)
      for (const auto& point : records[r].result.log)
        (*out)[r * n + b.place<std::int64_t>("step", point.step)] = point.*field;
  };
  numbers("train_loss", &LogPoint::loss, "1", "training loss, mean since the last logged step");
  numbers("train_seconds", &LogPoint::seconds, "s", "wall time of training up to the step");
  numbers("gradient_norm", &LogPoint::gradient_norm, "1", "norm of the gradient estimate");
  numbers("train_rows", &LogPoint::rows, "1", "model rows of the training gradients up to the step");
  numbers("train_attention_values", &LogPoint::attention_values, "1",
          "attention values of the training gradients up to the step");
}

void add_evaluations(Builder& b, const Records& records) {
  const std::size_t n = b.length("evaluation_step");
  const auto family = [&](const std::string& prefix, const std::string& words,
                          std::map<std::string, double> EvaluationPoint::*field) {
    std::set<std::string> names;
    for (const auto& record : records)
      for (const auto& point : record.result.evaluations)
        for (const auto& [name, value] : point.*field) names.insert(name);
    for (const auto& name : names) {
      auto* out = b.column(prefix + "_" + safe_name(name), {"evaluation_step"}, not_a_number,
                           keyed(described("1", words + name), prefix, name));
      for (std::size_t r = 0; r < records.size(); ++r)
        for (const auto& point : records[r].result.evaluations)
          if (auto it = (point.*field).find(name); it != (point.*field).end())
            (*out)[r * n + b.place<std::int64_t>("evaluation_step", point.step)] = it->second;
    }
  };
  family("heldout", "held-out loss per example: ", &EvaluationPoint::losses);
  family("metric", "held-out metric: ", &EvaluationPoint::metrics);
  if (auto* out = b.column("evaluated", {"evaluation_step"}, std::uint8_t{},
                           flags("whether the run was evaluated at the step", {"no", "yes"})))
    for (std::size_t r = 0; r < records.size(); ++r)
      for (const auto& point : records[r].result.evaluations)
        (*out)[r * n + b.place<std::int64_t>("evaluation_step", point.step)] = 1;
}

void add_measurements(Builder& b, const Records& records) {
  const std::size_t n = b.length("measurement_step");
  if (n == 0) return;
  // Calls f(flat place, measurement) for every measurement there is.
  const auto each = [&](const std::function<void(std::size_t, const Measurement&)>& f) {
    for (std::size_t r = 0; r < records.size(); ++r)
      for (const auto& point : records[r].result.measurements)
        f(r * n + b.place<std::int64_t>("measurement_step", point.step), point.measurement);
  };
  const auto strings = [&](const char* name, const char* words, auto&& get) {
    auto& out = *b.column(name, {"measurement_step"}, std::string(), {{"long_name", words}});
    each([&](std::size_t i, const Measurement& m) { out[i] = get(m); });
  };
  auto& status = *b.column("measurement_status", {"measurement_step"}, std::uint8_t{2},
                           flags("whether bias and variance were measured", {"ok", "skipped", "absent"}));
  each([&](std::size_t i, const Measurement& m) { status[i] = m.status == "ok" ? 0 : 1; });
  strings("measurement_reason", "why the measurement was skipped", [](auto& m) { return m.reason; });
  strings("measured_estimator", "estimator measured, as given", [](auto& m) { return m.estimator; });
  strings("own_target", "target the estimator aims at", [](auto& m) { return to_string(m.target); });
  for (const auto& field : measurement_fields()) {
    auto& out =
        *b.column(field.name, {"measurement_step"}, not_a_number, described(field.units, field.long_name));
    each([&](std::size_t i, const Measurement& m) { out[i] = m.*field.value; });
  }
  std::set<std::string> names;
  each([&](std::size_t, const Measurement& m) {
    for (const auto& [name, interval] : m.intervals) names.insert(name);
  });
  for (const auto& name : names) {
    auto& out = *b.column(safe_name(name) + "_interval", {"measurement_step", "bound"}, not_a_number,
                          keyed(described("1", "confidence interval of " + name), "interval", name));
    each([&](std::size_t i, const Measurement& m) {
      if (auto it = m.intervals.find(name); it != m.intervals.end())
        std::copy(it->second.begin(), it->second.end(), out.begin() + static_cast<std::ptrdiff_t>(2 * i));
    });
  }
  const auto family = [&](const char* variable, const char* axis, const char* words,
                          std::map<std::string, double> Measurement::*field) {
    auto* out = b.column(variable, {"measurement_step", axis}, not_a_number, described("1", words));
    if (!out) return;
    each([&](std::size_t i, const Measurement& m) {
      for (const auto& [name, value] : m.*field)
        (*out)[i * b.length(axis) + b.place<std::string>(axis, name)] = value;
    });
  };
  family("variance_by_group", "parameter_group", "trace of the covariance within a group of parameters",
         &Measurement::variance_by_group);
  family("bias_against", "target", "squared bias against each target that can be had",
         &Measurement::bias_against);
}

}  // namespace

Dataset columns(const std::vector<CellRecord>& records, bool with_runs) {
  Builder b(records.size(), with_runs);
  std::set<std::int64_t> steps, evaluations, measurements;
  std::set<std::string> groups, targets;
  bool intervals = false;
  for (const auto& record : records) {
    for (const auto& point : record.result.log) steps.insert(point.step);
    for (const auto& point : record.result.evaluations) evaluations.insert(point.step);
    for (const auto& point : record.result.measurements) {
      measurements.insert(point.step);
      for (const auto& [name, value] : point.measurement.variance_by_group) groups.insert(name);
      for (const auto& [name, value] : point.measurement.bias_against) targets.insert(name);
      intervals = intervals || !point.measurement.intervals.empty();
    }
  }
  b.axis("step", steps, "training step");
  b.axis("evaluation_step", evaluations, "training steps done before the evaluation");
  b.axis("measurement_step", measurements, "training steps done before the measurement");
  b.axis("parameter_group", groups, "group of parameters");
  b.axis("target", targets, "objective whose gradient is the truth");
  if (intervals) b.axis("bound", std::vector<std::string>{"low", "high"}, "end of an interval");
  b.reserve(256);  // columns are filled through pointers
  add_labels(b, records);
  add_costs(b, records);
  add_training(b, records);
  add_evaluations(b, records);
  add_measurements(b, records);
  return b.take();
}

TrainResult from_columns(const Dataset& data) {
  TrainResult result;
  const auto labels = [&](const char* name) {
    auto* axis = data.axis(name);
    auto* found = axis ? std::get_if<std::vector<std::int64_t>>(&axis->labels) : nullptr;
    return found ? *found : std::vector<std::int64_t>{};
  };
  const auto words = [&](const char* name) {
    auto* axis = data.axis(name);
    auto* found = axis ? std::get_if<std::vector<std::string>>(&axis->labels) : nullptr;
    return found ? *found : std::vector<std::string>{};
  };
  const auto numbers = [&](const std::string& name) -> const std::vector<double>& {
    auto* found = data.values<double>(name);
    if (!found) throw InputError("has no variable " + name);
    return *found;
  };
  // Cells of earlier builds lack these.
  const auto late = [&](const char* name, std::size_t i) { return data.variable(name) ? numbers(name).at(i) : not_a_number; };
  const auto strings = [&](const std::string& name) -> const std::vector<std::string>& {
    auto* found = data.values<std::string>(name);
    if (!found) throw InputError("has no variable " + name);
    return *found;
  };
  result.seconds = numbers("total_seconds").at(0);
  result.rows = numbers("total_rows").at(0);
  result.attention_values = numbers("total_attention_values").at(0);
  for (auto step : labels("step")) {
    const auto i = result.log.size();
    result.log.push_back({static_cast<int>(step), numbers("train_loss").at(i), numbers("train_seconds").at(i),
                          numbers("gradient_norm").at(i), late("train_rows", i), late("train_attention_values", i)});
  }
  for (auto step : labels("evaluation_step")) result.evaluations.push_back({static_cast<int>(step), {}, {}});
  const auto steps = labels("measurement_step");
  for (std::size_t i = 0; i < steps.size(); ++i) {
    Measurement m;
    m.estimator = strings("measured_estimator").at(i);
    m.reason = strings("measurement_reason").at(i);
    auto* status = data.values<std::uint8_t>("measurement_status");
    if (!status) throw InputError("has no variable measurement_status");
    m.status = status->at(i) == 0 ? "ok" : "skipped";
    for (auto kind : target_kinds)
      if (to_string(kind) == strings("own_target").at(i)) m.target = kind;
    for (const auto& field : measurement_fields())
      m.*field.value = field.value == &Measurement::attention_entropy ? late(field.name, i) : numbers(field.name).at(i);
    const auto family = [&](const char* variable, const char* axis, std::map<std::string, double>& out) {
      const auto names = words(axis);
      for (std::size_t k = 0; k < names.size(); ++k)
        if (const double value = numbers(variable).at(i * names.size() + k); !std::isnan(value))
          out[names[k]] = value;
    };
    family("variance_by_group", "parameter_group", m.variance_by_group);
    family("bias_against", "target", m.bias_against);
    result.measurements.push_back({static_cast<int>(steps[i]), std::move(m)});
  }
  for (const auto& variable : data.variables) {
    const auto kind = text(variable.attributes, "family"), key = text(variable.attributes, "key");
    auto* values = std::get_if<std::vector<double>>(&variable.values);
    if (kind.empty() || !values) continue;
    for (std::size_t i = 0; i < result.evaluations.size(); ++i)
      if ((kind == "heldout" || kind == "metric") && !std::isnan(values->at(i)))
        (kind == "heldout" ? result.evaluations[i].losses : result.evaluations[i].metrics)[key] =
            values->at(i);
    for (std::size_t i = 0; i < result.measurements.size(); ++i)
      if (kind == "interval" && !(std::isnan(values->at(2 * i)) && std::isnan(values->at(2 * i + 1))))
        result.measurements[i].measurement.intervals[key] = {values->at(2 * i), values->at(2 * i + 1)};
  }
  return result;
}

}  // namespace hardgrad
