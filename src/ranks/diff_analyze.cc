#include "ranks/diff_analyze.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "base/file/file.h"
#include "base/file/text_file.h"
#include "base/text/json.h"
#include "base/text/number_text.h"
#include "formats/json/json_feed.h"
#include "measure/compared_row.h"
#include "report/table.h"

namespace plumbline::ranks {
namespace {

using json::Document;
using json::Value;

constexpr std::string_view kStackColumn = "NPU_Stack_Info";
constexpr std::string_view kNotAvailable = "N/A";

bool IsOutput(const ComparedRow& row) { return !measure::IsInput(row); }

bool IsDifferent(const ComparedRow& row) {
  if (measure::IsBad(row.verdict)) return true;
  if (row.verdict != Verdict::kNotComparable) return false;
  // Rows whose sides agree in a way that proves little are no difference.
  constexpr std::string_view kLost[] = {"no-data",           "unreadable", "shape-differs",
                                        "structure-differs", "no-golden",  "no-target",
                                        "dtype-differs"};
  return std::find(std::begin(kLost), std::end(kLost), row.reason) != std::end(kLost);
}

bool IsSame(const Comparison& comparison, const ComparedCall& call) {
  if (!call.paired()) return false;
  for (uint32_t i = 0; i < call.row_count; ++i) {
    const ComparedRow& row = comparison.rows[call.first_row + i];
    if (IsOutput(row) && IsDifferent(row)) return false;
  }
  return true;
}

std::string_view StateOf(const ComparedRow& row) {
  switch (row.item().role) {
    case ItemRole::kInput:
      return "input";
    case ItemRole::kParameter:
      return "parameters";
    case ItemRole::kOutput:
      return "output";
    case ItemRole::kBuffer:
      return "buffers";
    case ItemRole::kParameterGrad:
      return "parameters_grad";
  }
  return "";
}

void AddCell(const report::Cell& cell, Document& out) {
  if (const auto* number = std::get_if<double>(&cell)) {
    out.Raw(PythonFloat(*number));
  } else if (const auto* integer = std::get_if<int64_t>(&cell)) {
    out.Raw(std::to_string(*integer));
  } else {
    std::string text = report::CellText(cell);
    if (text.ends_with('\t')) text.pop_back();  // only spreadsheets need it
    out.Text(text);
  }
}

class VerdictWriter {
 public:
  explicit VerdictWriter(const Comparison& comparison)
      : comparison_(comparison), columns_(report::ColumnsOf(comparison)) {}

  Result<std::string> CallText(const ComparedCall& call) const {
    Document out;
    out.Open('{');
    out.Truth("is_same", IsSame(comparison_, call));
    out.Key("op_items");
    out.Open('[');
    for (uint32_t i = 0; i < call.row_count; ++i) AddRow(call, i, out);
    out.Close(']');
    out.Close('}');
    return out.Finish();
  }

 private:
  void AddRow(const ComparedCall& call, uint32_t index, Document& out) const {
    const ComparedRow& row = comparison_.rows[call.first_row + index];
    const report::RowContext context{comparison_, row, index == 0};
    out.Open('{');
    for (const report::Column& column : columns_) {
      if (column.name == kStackColumn) continue;
      out.Key(column.name);
      AddCell(column.cell(context), out);
    }
    AddStack(row, index == 0, out);
    out.Member("state", StateOf(row));
    out.Member("api_origin_name", call.name());
    for (const std::string_view key :
         {"NPU P2POp op", "Bench P2POp op", "NPU P2POp peer", "Bench P2POp peer"}) {
      out.Member(key, "None");
    }
    out.Close('}');
  }

  void AddStack(const ComparedRow& row, bool first, Document& out) const {
    const bool known =
        first && !comparison_.stacks.empty() && !comparison_.stacks[row.call].empty();
    if (known) {
      out.Texts(kStackColumn, comparison_.stacks[row.call]);
    } else {
      out.Member(kStackColumn, kNotAvailable);
    }
  }

  const Comparison& comparison_;
  const std::vector<report::Column> columns_;
};

// The verdict file of a rank: the last .json whose name has no second rank.
Result<std::string> VerdictFileOf(const ComparedRank& rank) {
  const std::string prefix = fmt::format("compare_result_{}_", rank.pair.target->name);
  const std::vector<std::string>& files = rank.outcome->files;
  const auto found = std::find_if(files.rbegin(), files.rend(), [&](const std::string& file) {
    return BaseName(file).starts_with(prefix) && file.ends_with(".json");
  });
  if (found != files.rend()) return *found;
  return Error(ErrorCode::kNotFound,
               fmt::format("{}: no verdict file was written", rank.pair.label()));
}

// "input" and "output" of upstream's data_info.
void AddSide(const Value::List& items, std::string_view side, Document& out) {
  out.Key(side);
  out.Open('{');
  for (const Value& item : items) {
    const Value* const state = item.Find("state");
    const Value* const name = item.Find("NPU Name");
    if (state == nullptr || name == nullptr) continue;
    if (state->AsText() == nullptr || name->AsText() == nullptr) continue;
    const bool output = *state->AsText() == "output" || *state->AsText() == "parameters_grad";
    if (output != (side == "output")) continue;
    out.Key(*name->AsText());
    out.Open('{');
    for (const char* key : {"NPU max", "NPU min", "NPU mean", "NPU l2norm", "NPU MD5"}) {
      const Value* const value = item.Find(key);
      if (value == nullptr) continue;
      out.Key(key);
      out.Raw(value->Text());
    }
    out.Member("NPU P2POp peer", "None");
    out.Close('}');
  }
  out.Close('}');
}

Status AddNode(const ComparedRank& rank, const std::string& name, Document& out) {
  PL_TRY_ASSIGN(const std::string path, VerdictFileOf(rank));
  PL_TRY_ASSIGN(const std::string text, ReadFile(path));
  const Result<Value> root = Value::Parse(text);
  if (!root) return Error(ErrorCode::kCorrupt, fmt::format("{}: not JSON", path));
  const Value* const call = root->Find(name);
  const Value* const list = call == nullptr ? nullptr : call->Find("op_items");
  const Value::List none;
  const Value::List& items = list == nullptr || list->AsList() == nullptr ? none : *list->AsList();
  out.Open('{');
  out.Member("op_name", name);
  out.Key("data_info");
  out.Open('{');
  if (call != nullptr) {
    AddSide(items, "input", out);
    AddSide(items, "output", out);
  }
  out.Close('}');
  const Value* const stack = items.empty() ? nullptr : items.front().Find("NPU_Stack_Info");
  out.Key("stack_info");
  if (stack != nullptr) {
    out.Raw(stack->Text());
  } else {
    out.Text(kNotAvailable);
  }
  out.Close('}');
  return {};
}

}  // namespace

Status WriteCallVerdicts(const Comparison& comparison, const std::string& path) {
  PL_TRY_ASSIGN(TextFile file, TextFile::Create(path));
  const VerdictWriter writer(comparison);
  std::string& text = file.text();
  text = "{";
  bool first = true;
  for (const ComparedCall& call : comparison.calls) {
    if (call.row_count == 0) continue;
    text += std::exchange(first, false) ? "\n" : ",\n";
    json::AppendString(call.name(), text);
    PL_TRY_ASSIGN(const std::string of_call, writer.CallText(call));
    text += ": " + of_call;
    PL_TRY(file.Flush());
  }
  text += "\n}\n";
  return file.Close();
}

Result<std::string> FormatFirstDifference(const RanksReport& report) {
  std::map<size_t, std::vector<const RankOrigin*>> by_rank;
  for (const RankOrigin& origin : report.origins) by_rank[origin.rank].push_back(&origin);
  Document out;
  out.Open('{');
  for (const auto& [index, origins] : by_rank) {
    const ComparedRank& rank = report.ranks[index];
    const auto number = rank.pair.rank();
    out.Key(number ? fmt::format("rank_{}", *number) : rank.pair.target->name);
    out.Open('[');
    for (const RankOrigin* origin : origins) {
      PL_TRY(AddNode(rank, rank.outcome->wrong[origin->call].name, out));
    }
    out.Close(']');
  }
  out.Close('}');
  return out.Finish();
}

}  // namespace plumbline::ranks
