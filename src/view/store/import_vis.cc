#include "view/store/import_vis.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/file/file.h"
#include "base/text/json_members.h"
#include "base/text/number_text.h"
#include "base/text/text_parts.h"
#include "view/imported_place.h"
#include "view/imported_values.h"
#include "view/store/place_data.h"
#include "view/store/store_writer.h"

namespace plumbline::view {
namespace {

constexpr size_t kMostAnswers = 5;  // lines of ranks that name a call

StoredScalar ScalarOfText(std::string_view text) {
  if (text.empty() || text == "null" || text == "None") return {};
  if (text == "True" || text == "true") return true;
  if (text == "False" || text == "false") return false;
  if (const auto integer = ParseInteger(text)) return *integer;
  if (const auto real = ParseReal(text)) return *real;
  return text;
}

// What a member of a file is called in a store; empty: no metric.
std::string_view MetricName(std::string_view key, bool is_percent) {
  static constexpr std::pair<std::string_view, std::string_view> kNames[] = {
      {"Max diff", "max_diff"},
      {"Min diff", "min_diff"},
      {"Mean diff", "mean_diff"},
      {"L2norm diff", "norm_diff"},
      {"MinRelativeErr", "min_percent"},
      {"MeanRelativeErr", "mean_percent"},
      {"NormRelativeErr", "norm_percent"},
      {"Cosine", "cosine"},
      {"EucDist", "euclidean_distance"},
      {"MaxAbsErr", "max_abs_error"},
      {"One Thousandth Err Ratio", "below_thousandth_ratio"},
      {"Five Thousandths Err Ratio", "below_five_thousandths_ratio"}};
  if (key == "MaxRelativeErr") return is_percent ? "max_percent" : "max_relative_error";
  for (const auto& [member, name] : kNames) {
    if (key == member) return name;
  }
  return {};
}

// The values of one node while its detail is made; the detail's texts lie here.
class DetailMaker {
 public:
  // `partner`: values of the counterpart, if there is one.
  DetailMaker(const ImportedNode& node, const ImportedNode* partner, vis::NodeTexts texts)
      : node_(node), partner_(partner), texts_(std::move(texts)) {}

  Status Read(std::vector<FileValue> own, std::vector<FileValue> of_partner, bool is_golden) {
    own_ = std::move(own);
    other_ = std::move(of_partner);
    merged_ = TextsIn(texts_.merged);
    std::vector<bool> is_taken(other_.size());
    for (const FileValue& value : own_) {
      StoredValue& stored = detail_.values.emplace_back();
      Name(node_.row.name, value, stored);
      (is_golden ? stored.golden : stored.target) = SideOf(value);
      if (is_golden) continue;
      AddFindings(value, stored);
      const size_t at = Counterpart(value, stored, is_taken);
      if (at == kNowhere) continue;
      is_taken[at] = true;
      stored.golden = SideOf(other_[at]);
    }
    for (size_t i = 0; i < other_.size(); ++i) {
      if (is_taken[i] || partner_ == nullptr) continue;
      StoredValue& stored = detail_.values.emplace_back();
      Name(partner_->row.name, other_[i], stored);
      stored.golden = SideOf(other_[i]);
    }
    for (const std::string& line : merged_) detail_.merge.push_back(line);
    return {};
  }

  [[nodiscard]] const NodeDetail& detail() const { return detail_; }
  [[nodiscard]] const std::vector<FileValue>& values() const { return own_; }
  [[nodiscard]] bool is_merged() const { return !merged_.empty(); }
  [[nodiscard]] std::vector<std::string> Frames() const { return TextsIn(texts_.stack); }

 private:
  // Part of a name behind that of its call: "output.0".
  static std::string_view Within(std::string_view call, std::string_view name) {
    const bool is_own =
        name.size() > call.size() + 1 && name.starts_with(call) && name[call.size()] == '.';
    return is_own ? name.substr(call.size() + 1) : name;
  }

  static void Name(std::string_view call, const FileValue& value, StoredValue& stored) {
    stored.name = Within(call, value.name);
    const std::string_view whole = value.name;
    if (stored.name.starts_with("parameters_grad") || call.ends_with("parameters_grad")) {
      stored.role = ValueRole::kGradient;
    } else if (stored.name.starts_with("parameters") ||
               whole.find(".parameters.") != std::string_view::npos) {
      stored.role = ValueRole::kParameter;
    } else if (stored.name.starts_with("buffers")) {
      stored.role = ValueRole::kBuffer;
    } else {
      stored.role = value.is_output ? ValueRole::kOutput : ValueRole::kInput;
    }
  }

  static ValueSide SideOf(const FileValue& value) {
    ValueSide side;
    side.type = value.Find("type");
    side.dtype = value.Find("dtype");
    side.shape = value.Find("shape");
    constexpr std::string_view kStatistics[] = {"Max", "Min", "Mean", "Norm"};
    const bool is_tensor = side.type.ends_with("Tensor") || side.type.empty();
    for (size_t i = 0; i < side.statistics.size() && is_tensor; ++i) {
      side.statistics[i] = ScalarOfText(value.Find(kStatistics[i]));
    }
    side.value = ScalarOfText(value.Find("value"));
    if (!is_tensor && value.Find("value").empty()) side.value = ScalarOfText(value.Find("Max"));
    side.md5 = value.Find("md5");
    const std::string_view grad = value.Find("requires_grad");
    if (grad == "True" || grad == "False") side.requires_grad = grad == "True";
    const std::string_view file = value.Find("data_name");
    if (file != "-1") side.data_name = file;
    return side;
  }

  // The other side's value of that name, otherwise the first one left of its kind.
  [[nodiscard]] size_t Counterpart(const FileValue& value, const StoredValue& stored,
                                   const std::vector<bool>& is_taken) const {
    if (partner_ == nullptr) return kNowhere;
    size_t first_left = kNowhere;
    for (size_t i = 0; i < other_.size(); ++i) {
      if (is_taken[i]) continue;
      if (Within(partner_->row.name, other_[i].name) == stored.name) return i;
      const bool is_kind = other_[i].is_output == value.is_output;
      if (is_kind && first_left == kNowhere && !HasNamesake(other_[i])) first_left = i;
    }
    return first_left;
  }
  [[nodiscard]] bool HasNamesake(const FileValue& other) const {
    const std::string_view name = Within(partner_->row.name, other.name);
    return std::ranges::any_of(
        own_, [&](const FileValue& value) { return Within(node_.row.name, value.name) == name; });
  }

  void AddFindings(const FileValue& value, StoredValue& stored) {
    for (const auto& [key, text] : value.members) {
      const bool is_percent = text.ends_with('%');
      const std::string_view name = MetricName(key, is_percent);
      if (name.empty()) continue;
      const std::string_view number =
          is_percent ? std::string_view(text).substr(0, text.size() - 1) : std::string_view(text);
      if (const auto real = ParseReal(number)) {
        stored.metrics.emplace_back(name, *real);
      } else if (text != "N/A" && text != " " && !text.empty() && stored.notes.empty()) {
        stored.notes.push_back(text);  // "shape unmatched", "unsupported"
      }
    }
    stored.verdict = value.Find("Result");
    messages_.push_back(
        std::make_unique<std::vector<std::string>>(TextsIn(value.Find("Err_message"))));
    for (const std::string& message : *messages_.back()) {
      if (stored.reason_text.empty()) {
        const SaidErrors said = SaidIn(message);
        stored.reason = said.reason;
        stored.reason_text = message;
        stored.error = said.error;
        stored.explained = said.explained;
      } else {
        stored.notes.push_back(message);
      }
    }
  }

  const ImportedNode& node_;
  const ImportedNode* partner_;
  vis::NodeTexts texts_;
  std::vector<FileValue> own_, other_;
  std::vector<std::string> merged_;
  std::vector<std::unique_ptr<std::vector<std::string>>> messages_;
  NodeDetail detail_;
};

// --- links ---

// One entry of matched_distributed.
struct FileLink {
  StoredRole role = StoredRole::kSendReceive;
  std::vector<std::pair<int64_t, std::string>> peers;  // rank and name
  std::string mismatch;
};

FileLink LinkFrom(const json::Value& value) {
  FileLink link;
  const std::string_view role = json::TextAt(value, "communications_type");
  if (role == "send") link.role = StoredRole::kSend;
  if (role == "receive") link.role = StoredRole::kReceive;
  link.mismatch = json::TextAt(value, "mismatch");
  const json::Value* const nodes = value.Find("nodes_info");
  const json::Value::Members* const members = nodes == nullptr ? nullptr : nodes->AsMembers();
  if (members == nullptr) return link;
  for (const json::Member& member : *members) {
    const auto rank = ParseInteger(member.key);
    const json::Value::List* const list = member.value.AsList();
    const std::string* const name =
        list == nullptr || list->size() < 2 ? nullptr : (*list)[1].AsText();
    if (rank && name != nullptr) link.peers.emplace_back(*rank, *name);
  }
  return link;
}

std::vector<FileLink> LinksFrom(const std::string& text) {
  std::vector<FileLink> links;
  const Result<json::Value> value = json::Value::Parse(text);
  if (!value) return links;
  const json::Value::List* const list = value->AsList();
  if (list == nullptr) {
    links.push_back(LinkFrom(*value));
  } else {
    for (const json::Value& item : *list) links.push_back(LinkFrom(item));
  }
  return links;
}

// A node of a step and side: its rank and name.
using CallKey = std::pair<int64_t, std::string>;

// The links of one step and side, as every call has its own view of them.
class LinkCollector {
 public:
  void Add(const CallKey& call, const NodeAt& at, size_t order, const std::string& transfers) {
    calls_[call] = {at, order, LinksFrom(transfers)};
  }

  void Write(StoreWriter& writer) const {
    std::set<CallKey> done;
    std::map<std::string, uint64_t> numbers;
    for (const auto& [key, call] : calls_) {
      const bool is_message = IsMessage(key.second);
      if (is_message) {
        for (const FileLink& link : call.links) WriteMessage(key, call, link, numbers, writer);
      } else if (!done.contains(key)) {
        WriteCollective(key, done, numbers, writer);
      }
    }
  }

 private:
  struct FileCall {
    NodeAt at;
    size_t order = 0;
    std::vector<FileLink> links;
  };

  static std::string_view ApiOf(std::string_view name) {
    const size_t begin = std::min(name.find('.'), name.size() - 1) + 1;
    return name.substr(begin, name.find('.', begin) - begin);
  }
  static bool IsMessage(std::string_view name) {
    const std::string_view api = ApiOf(name);
    return api.find("send") != std::string_view::npos || api.find("recv") != std::string_view::npos;
  }

  // The sender writes; a receiver does where the sender does not know of it.
  void WriteMessage(const CallKey& key, const FileCall& call, const FileLink& link,
                    std::map<std::string, uint64_t>& numbers, StoreWriter& writer) const {
    for (const auto& peer : link.peers) {
      const auto other = calls_.find(peer);
      if (other == calls_.end()) continue;
      const bool sends = link.role != StoredRole::kReceive;
      if (!sends && Names(other->second, key, StoredRole::kSend)) continue;
      const StoredRole back = sends ? StoredRole::kReceive : StoredRole::kSend;
      LinkRecord record{
          .key = {}, .is_message = true, .layer = std::min(call.order, other->second.order)};
      record.ends = {{call.at, link.role, link.mismatch}, {other->second.at, back, link.mismatch}};
      if (!sends) std::swap(record.ends[0], record.ends[1]);
      const int64_t from = sends ? key.first : peer.first, to = sends ? peer.first : key.first;
      record.key = fmt::format("message {},{}", from, to);
      record.key += fmt::format(" {}", numbers[record.key]++);
      writer.AddLink(std::move(record));
    }
  }

  static bool Names(const FileCall& call, const CallKey& key, StoredRole role) {
    return std::ranges::any_of(call.links, [&](const FileLink& link) {
      return link.role == role && std::ranges::find(link.peers, key) != link.peers.end();
    });
  }

  // All calls that one of them names, and those that these name.
  void WriteCollective(const CallKey& first, std::set<CallKey>& done,
                       std::map<std::string, uint64_t>& numbers, StoreWriter& writer) const {
    std::vector<CallKey> open = {first};
    std::set<CallKey> members;
    while (!open.empty()) {
      const CallKey key = std::move(open.back());
      open.pop_back();
      const auto call = calls_.find(key);
      if (call == calls_.end() || !members.insert(key).second) continue;
      for (const FileLink& link : call->second.links) {
        open.insert(open.end(), link.peers.begin(), link.peers.end());
      }
    }
    done.insert(members.begin(), members.end());
    if (members.size() < 2) return;
    LinkRecord record{.key = std::string(ApiOf(first.second)), .layer = SIZE_MAX};
    for (const CallKey& key : members) {
      const FileCall& call = calls_.at(key);
      record.key += fmt::format("{}{}", record.ends.empty() ? ' ' : ',', key.first);
      record.layer = std::min<uint64_t>(record.layer, call.order);
      const bool has_link = !call.links.empty();
      record.ends.push_back({call.at, has_link ? call.links[0].role : StoredRole::kSendReceive,
                             has_link ? call.links[0].mismatch : std::string()});
    }
    record.key += fmt::format(" {}", numbers[record.key]++);
    writer.AddLink(std::move(record));
  }

  std::map<CallKey, FileCall> calls_;
};

// --- places ---

uint32_t IndexIn(size_t index) {
  return index == kNowhere ? kNoNode : static_cast<uint32_t>(index);
}

class VisImporter {
 public:
  VisImporter(std::string path, vis::Source& source, StoreWriter& writer,
              const ImportOptions& options)
      : path_(std::move(path)), source_(source), writer_(writer), options_(options) {}

  Status Import() {
    const std::vector<vis::GraphPlace> places = PlacesOf(source_);
    notes_ = source_.head().notes;
    for (size_t i = 0; i < places.size(); ++i) {
      if (options_.is_cancelled != nullptr && options_.is_cancelled->load()) {
        return Error(ErrorCode::kNotFound, "cancelled");
      }
      PL_TRY(AddPlace(places[i], places.size() > 1));
      if (options_.progress) options_.progress(i + 1, places.size());
    }
    for (const auto& [key, links] : links_) links.Write(writer_);
    return writer_.Finish(Facts(), place_facts_);
  }

 private:
  Status AddPlace(const vis::GraphPlace& where, bool is_one_of_many) {
    PL_TRY_ASSIGN(ImportedPlace place, ReadPlace(source_, where));
    if (options_.by_hand) PairByHand(options_.by_hand(place.step, place.rank), place);
    PlaceBuilder builder = writer_.Begin(place.step, place.rank);
    const size_t at = place_facts_.size();  // as the writer will number it
    for (const bool is_golden : {false, true}) PL_TRY(AddSide(place, is_golden, at, builder));
    PL_TRY_ASSIGN(const size_t added, writer_.Add(std::move(builder)));
    const std::string label =
        is_one_of_many ? fmt::format("step {} rank {}: ", place.step, place.rank) : std::string();
    for (const std::string& note : place.notes) notes_.push_back(label + note);
    if (place.facts) {
      for (const std::string& note : place.facts->notes) notes_.push_back(label + note);
    }
    PL_TRY(AddPlaceFacts(place));
    TakeAnswer(place, label, added);
    return {};
  }

  // Nodes that have no counterpart in the file.
  void PairByHand(const std::vector<HandPair>& pairs, ImportedPlace& place) {
    if (pairs.empty()) return;
    std::unordered_map<std::string_view, size_t> targets, goldens;
    for (size_t i = 0; i < place.target.size(); ++i) targets.emplace(place.target[i].row.name, i);
    for (size_t i = 0; i < place.golden.size(); ++i) goldens.emplace(place.golden[i].row.name, i);
    for (const ImportedNode& node : place.target) {
      if (node.partner != kNowhere) goldens.erase(place.golden[node.partner].row.name);
    }
    std::vector<HandPair> made;
    for (const HandPair& pair : pairs) {
      const auto ours = targets.find(pair.first), theirs = goldens.find(pair.second);
      if (ours == targets.end() || theirs == goldens.end()) continue;
      ImportedNode& node = place.target[ours->second];
      if (node.partner != kNowhere) continue;
      node.partner = theirs->second;
      node.is_by_hand = place.golden[theirs->second].is_by_hand = true;
      made.push_back(pair);
    }
    by_hand_.Add(pairs, made);
  }

  Status AddSide(const ImportedPlace& place, bool is_golden, size_t at, PlaceBuilder& builder) {
    const std::vector<ImportedNode>& nodes = is_golden ? place.golden : place.target;
    for (size_t i = 0; i < nodes.size(); ++i) {
      const ImportedNode& node = nodes[i];
      const ImportedNode* const partner =
          !is_golden && node.partner != kNowhere ? &place.golden[node.partner] : nullptr;
      PL_TRY_ASSIGN(vis::NodeTexts texts, TextsOf(node));
      PL_TRY_ASSIGN(std::vector<FileValue> own, ValuesOfNode(node, texts));
      std::vector<FileValue> other;
      if (partner != nullptr) {
        PL_TRY_ASSIGN(const vis::NodeTexts partner_texts, TextsOf(*partner));
        PL_TRY_ASSIGN(other, ValuesOfNode(*partner, partner_texts));
      }
      DetailMaker maker(node, partner, std::move(texts));
      PL_TRY(maker.Read(std::move(own), std::move(other), is_golden));
      const bool is_first = !is_golden && place.first == i;
      const uint32_t index =
          builder.AddNode(is_golden, RecordOf(node, maker, is_golden, is_first, builder));
      if (!maker.detail().values.empty() || maker.is_merged()) {
        builder.AddDetail(is_golden, index, maker.detail());
      }
      if (node.row.transfers.empty()) continue;
      links_[{place.step, is_golden}].Add({place.rank, node.row.name}, {at, is_golden, index},
                                          node.order, node.row.transfers);
    }
    return {};
  }

  Result<vis::NodeTexts> TextsOf(const ImportedNode& node) {
    if (node.row.place < 0) return vis::NodeTexts();  // one that was added
    return source_.ReadTexts(node.row);
  }
  Result<std::vector<FileValue>> ValuesOfNode(const ImportedNode& node,
                                              const vis::NodeTexts& texts) const {
    auto values = ValuesIn(texts);
    if (!values) return values.error().In(fmt::format("{}: values of {}", path_, node.row.name));
    return values;
  }

  static NodeRecord RecordOf(const ImportedNode& node, const DetailMaker& maker, bool is_golden,
                             bool is_first, PlaceBuilder& builder) {
    NodeRecord record;
    record.name = node.row.name;
    record.parent = IndexIn(node.parent);
    record.partner = is_golden ? kNoNode : IndexIn(node.partner);
    record.type = StoredTypeOf(node.parent == kNowhere, node.row.type);
    record.level = is_golden ? NodeLevel::kNone : NodeLevelOf(node.level);
    record.overflow = StoredOverflowOf(node.row.overflow_level);
    record.micro_step = static_cast<int32_t>(node.row.micro_step);
    const std::vector<std::string> frames = maker.Frames();
    record.stack = builder.AddStack(std::vector<std::string_view>(frames.begin(), frames.end()));
    if (!node.row.transfers.empty()) record.flags |= node_flag::kCommunicates;
    if (maker.is_merged()) record.flags |= node_flag::kMerged;
    if (node.is_by_hand) record.flags |= node_flag::kByHand;
    if (is_golden || node.partner == kNowhere) return record;
    const ValueErrors errors = ErrorsOf(maker.values());
    record.error = static_cast<float>(errors.of_outputs);
    record.input_error = static_cast<float>(errors.of_inputs);
    if (is_first) record.flags |= node_flag::kFirst;
    if (node.level == vis::Level::kError) {
      record.flags |= errors.are_inputs_bad ? node_flag::kCarrier : node_flag::kSource;
    }
    return record;
  }

  Status AddPlaceFacts(const ImportedPlace& place) {
    json::Value facts = json::Value::Object();
    const std::string answer = AnswerOf(place);
    facts.Put("answer", json::Value(std::string_view(answer)));
    facts.Put("first", json::Value(place.first == kNowhere
                                       ? std::string_view()
                                       : std::string_view(place.target[place.first].row.name)));
    for (const vis::GraphPlace& graph : source_.graphs()) {
      if (graph.step != place.step || graph.rank != place.rank) continue;
      PL_TRY_ASSIGN(const std::string directory, source_.TensorDirectory(graph));
      if (directory.empty() || KindOf(directory) != PathKind::kDirectory) continue;
      has_tensors_ = true;
      facts.Put(graph.is_golden ? "golden_tensors" : "target_tensors",
                json::Value(std::string_view(directory)));
    }
    place_facts_.push_back(std::move(facts));
    return {};
  }

  void TakeAnswer(const ImportedPlace& place, const std::string& label, size_t index) {
    if (!place.is_pair()) return;
    const bool is_own = place.facts && place.facts->answer;
    const bool is_whole = is_own ? place.facts->answer->is_complete
                                 : place.counts.not_judged + place.counts.unmatched_target +
                                           place.counts.unmatched_golden ==
                                       0;
    is_complete_ = is_complete_ && is_whole;
    if (is_own && label.empty()) {
      for (const std::string_view line : SplitAt(place.facts->answer->text, '\n')) {
        if (!line.empty()) answer_.emplace_back(line);
      }
    } else if (place.first != kNowhere || label.empty()) {
      ++named_;
      if (named_ <= kMostAnswers) answer_.push_back(label + AnswerOf(place));
    }
    if (place.first == kNowhere || !first_.is_null()) return;
    FirstWrongCall call;
    if (is_own && place.facts->answer->first_wrong_call) {
      call = *place.facts->answer->first_wrong_call;
    } else {
      call.name = place.target[place.first].row.name;
      call.what = AnswerOf(place);
    }
    first_ = FirstCallFacts(call);
    first_.Put("place", json::Value(static_cast<int64_t>(index)));
  }

  [[nodiscard]] std::string_view Mode() const {
    const std::string& task = source_.head().task;
    if (task == vis::kSummary) return "statistics";
    if (task == vis::kTensors) return "tensor";
    return task;
  }

  [[nodiscard]] json::Value Facts() {
    const vis::FileHead& head = source_.head();
    const bool is_own = head.Fact("tool").starts_with("plumbline");
    json::Value facts = json::Value::Object();
    facts.Put("kind", json::Value(head.is_pair ? "compare" : "build"));
    facts.Put("mode", json::Value(Mode()));
    const auto path_of = [&](std::string_view key) {
      const std::string_view path = head.Fact(key);
      return json::Value(path.empty() ? std::string_view(path_) : path);
    };
    facts.Put("target", path_of("target"));
    facts.Put("golden", head.is_pair ? path_of("golden") : json::Value(""));
    const std::string_view said = head.Fact("answer");
    if (place_facts_.size() > 1 && !said.empty()) {
      answer_.clear();
      for (const std::string_view line : SplitAt(said, '\n')) {
        if (!line.empty()) answer_.emplace_back(line);
      }
    } else if (named_ > kMostAnswers) {
      answer_.push_back(fmt::format("{} ranks and steps more", named_ - kMostAnswers));
    } else if (head.is_pair && answer_.empty()) {
      answer_.push_back(is_own ? "no wrong call is named"
                               : "no node is an error (levels of msprobe, no verdict of plumb "
                                 "compare)");
    }
    facts.Put("answer", json::Value(answer_));
    facts.Put("complete", json::Value(is_complete_));
    facts.Put("source", json::Value(is_own ? "plumbline" : "msprobe"));
    facts.Put("first", first_);
    facts.Put("overflow_check", json::Value(head.has_overflow_levels));
    facts.Put("has_tensors", json::Value(has_tensors_));
    by_hand_.AddNotes(", of which the file says no level", notes_);
    facts.Put("notes", json::Value(notes_));
    json::Value more = json::Value::Object();
    for (const auto& [key, text] : head.facts) {
      if (!key.starts_with("step") && key != "answer")
        more.Put(key, json::Value(std::string_view(text)));
    }
    more.Put("file", json::Value(std::string_view(path_)));
    facts.Put("facts", std::move(more));
    return facts;
  }

  const std::string path_;
  vis::Source& source_;
  StoreWriter& writer_;
  const ImportOptions& options_;
  std::map<std::pair<int64_t, bool>, LinkCollector> links_;  // by step and side
  std::vector<json::Value> place_facts_;
  HandPairCount by_hand_;
  std::vector<std::string> notes_, answer_;
  json::Value first_;
  size_t named_ = 0;  // places that name a call
  bool is_complete_ = true, has_tensors_ = false;
};

}  // namespace

Status ImportVis(const std::string& path, const std::string& store_path,
                 const ImportOptions& options) {
  PL_TRY_ASSIGN(const std::string absolute, AbsolutePath(path));
  PL_TRY_ASSIGN(const auto source, OpenVisFile(path));
  PL_TRY_ASSIGN(StoreWriter writer, StoreWriter::Create(store_path));
  return VisImporter(absolute, *source, writer, options).Import();
}

}  // namespace plumbline::view
