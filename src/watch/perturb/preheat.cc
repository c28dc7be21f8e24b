#include "watch/perturb/preheat.h"

#include <algorithm>

#include "base/text/json.h"
#include "base/text/number_text.h"

namespace plumbline::perturb {

void Preheat::BeginStep(int64_t step) {
  if (step == step_) return;
  step_ = step;
  ++index_;
  for (auto& [name, api] : apis_) {
    api.calls = api.samples = 0;
    for (auto& [dtype, threshold] : api.thresholds) {
      threshold.good.clear();
      threshold.bad.clear();
    }
  }
}

int64_t Preheat::SamplesOf(const Api& api) const {
  const int64_t calls = api.calls_of_first_step;
  return std::min((calls + steps_ - 1) / steps_, most_samples_);
}

Preheat::Call Preheat::CountCall(const std::string& name) {
  Api& api = apis_[name];
  if (index_ <= 0) {
    ++api.calls_of_first_step;
    return {};
  }
  Call call{.is_compared = true, .is_sampled = false, .number = 0, .calls = 0};
  if (is_over()) return call;
  call.number = ++api.calls;
  call.calls = api.calls_of_first_step;
  if (call.calls == 0) return call;  // an API that the first step did not call
  const int64_t samples = SamplesOf(api);
  for (int64_t i = 1; i <= samples; ++i) {
    const int64_t chosen = (steps_ * (i - 1) + index_) % call.calls;
    call.is_sampled |= call.number == (chosen == 0 ? call.calls : chosen);
  }
  return call;
}

bool Preheat::Knows(const std::string& name, const std::string& dtype) const {
  const auto api = apis_.find(name);
  return api != apis_.end() && api->second.thresholds.contains(dtype);
}

double Preheat::ThresholdOf(const std::string& name, const std::string& dtype,
                            double default_threshold) const {
  const auto api = apis_.find(name);
  if (api != apis_.end()) {
    const auto threshold = api->second.thresholds.find(dtype);
    if (threshold != api->second.thresholds.end()) return threshold->second.value;
  }
  return std::max(Threshold().value, default_threshold);
}

void Preheat::AddSample(const std::string& name, const std::string& dtype, const Sample& sample) {
  Api& api = apis_[name];
  Threshold& threshold = api.thresholds[dtype];
  threshold.least = sample.default_threshold;
  ++api.samples;
  if (!threshold.is_frozen) {
    (sample.agrees_with_cpu ? threshold.good : threshold.bad).push_back(sample.ratio);
    ++threshold.samples;
  }
  if (api.samples < SamplesOf(api)) return;
  for (auto& [key, one] : api.thresholds) {
    if (!one.is_frozen) Adjust(&one);
  }
}

void Preheat::Adjust(Threshold* threshold) {
  const auto& good = threshold->good;
  const auto& bad = threshold->bad;
  if (good.empty() && bad.empty()) return;
  if (bad.empty()) {
    const double distance = threshold->value - 1;
    const bool is_above = *std::ranges::max_element(good) > threshold->value;
    threshold->value = 1 + (is_above ? distance * 2 : distance / 2);
  } else {
    const double least_bad = *std::ranges::min_element(bad);
    if (good.empty() || least_bad > *std::ranges::max_element(good)) {
      threshold->value = std::min(least_bad, threshold->value);
      threshold->is_frozen = true;
    }
  }
  threshold->value = std::max(threshold->value, threshold->least);
}

std::string Preheat::Text() const {
  std::string text = "{";
  for (const auto& [name, api] : apis_) {
    if (api.thresholds.empty()) continue;
    text += text.size() == 1 ? "\n  " : ",\n  ";
    json::AppendString(name, text);
    text += ": {";
    bool is_first = true;
    for (const auto& [dtype, threshold] : api.thresholds) {
      if (!is_first) text += ", ";
      is_first = false;
      json::AppendString(dtype, text);
      text += ": {\"threshold\": ";
      AppendPythonFloat(threshold.value, text);
      text += threshold.is_frozen ? ", \"frozen\": true" : ", \"frozen\": false";
      text += ", \"samples\": " + std::to_string(threshold.samples) + "}";
    }
    text += "}";
  }
  text += text.size() == 1 ? "}\n" : "\n}\n";
  return text;
}

Status Preheat::Load(std::string_view text) {
  PL_TRY_ASSIGN(const json::Value document, json::Value::Parse(text));
  const auto wrong = [](std::string_view where, std::string_view expected) {
    return Error(ErrorCode::kCorrupt,
                 std::string(where) + ": expected " + std::string(expected));
  };
  if (!document.is_object()) return wrong("top level", "an object { ... }");
  for (const std::string_view name : document.Keys()) {
    const json::Value& dtypes = *document.Find(name);
    if (!dtypes.is_object()) return wrong(name, "an object of dtypes");
    for (const std::string_view dtype : dtypes.Keys()) {
      const json::Value& entry = *dtypes.Find(dtype);
      const json::Value* value = entry.Find("threshold");
      const auto number = value == nullptr ? std::nullopt : value->AsReal();
      if (!number || !(*number >= 1)) return wrong(name, "a threshold of at least 1");
      const json::Value* frozen = entry.Find("frozen");
      Threshold& threshold = apis_[std::string(name)].thresholds[std::string(dtype)];
      threshold.value = *number;
      threshold.is_frozen = frozen != nullptr && frozen->AsBool() != nullptr && *frozen->AsBool();
    }
  }
  return {};
}

}  // namespace plumbline::perturb
