#include "report/arrow_stream.h"

#include <array>
#include <utility>
#include <vector>

namespace plumbline::report {
namespace {

constexpr const char* kLargeText = "U";
constexpr int64_t kNullable = 2;  // ARROW_FLAG_NULLABLE

using Columns = std::shared_ptr<const RowColumns>;

const char* FormatOf(CellKind kind) {
  switch (kind) {
    case CellKind::kInteger:
      return "l";
    case CellKind::kReal:
    case CellKind::kStatistic:
      return "g";
    case CellKind::kText:
      return kLargeText;
    case CellKind::kWord:
      return "i";
  }
  return "n";
}

// A schema or an array and what it owns: its children, its dictionary, and the columns it shows.
template <class Node>
struct Holder {
  Columns columns;
  std::vector<Node> nodes;      // the children
  std::vector<Node*> children;  // of them
  Node dictionary{};
  std::array<const void*, 3> buffers{};
};

// A consumer may have moved a part away; it is marked as released then.
template <class Node>
void ReleaseNode(Node* node) {
  for (int64_t i = 0; i < node->n_children; ++i) {
    if (node->children[i]->release != nullptr) node->children[i]->release(node->children[i]);
  }
  if (node->dictionary != nullptr && node->dictionary->release != nullptr) {
    node->dictionary->release(node->dictionary);
  }
  delete static_cast<Holder<Node>*>(node->private_data);
  node->release = nullptr;
}

// `node` with a holder of its own; the caller fills in the rest.
template <class Node>
Holder<Node>& Begin(const Columns& columns, Node& node) {
  auto holder = std::make_unique<Holder<Node>>();
  holder->columns = columns;
  node = {};
  node.release = ReleaseNode<Node>;
  node.private_data = holder.get();
  return *holder.release();
}

template <class Node>
void AdoptChildren(Holder<Node>& holder, Node& node) {
  for (Node& child : holder.nodes) holder.children.push_back(&child);
  node.n_children = static_cast<int64_t>(holder.children.size());
  node.children = holder.children.data();
}

void FillSchema(const Columns& columns, const RowColumn& column, ArrowSchema& out) {
  Holder<ArrowSchema>& holder = Begin(columns, out);
  out.format = FormatOf(column.kind);
  out.name = column.name.c_str();
  out.flags = kNullable;
  if (column.kind != CellKind::kWord) return;
  Begin(columns, holder.dictionary);
  holder.dictionary.format = kLargeText;
  holder.dictionary.name = "";
  out.dictionary = &holder.dictionary;
}

void FillTexts(const TextList& texts, Holder<ArrowArray>& holder, ArrowArray& out) {
  holder.buffers[1] = texts.ends.data();
  holder.buffers[2] = texts.characters.data();
  out.n_buffers = 3;
  out.length = static_cast<int64_t>(texts.size());
}

void FillArray(const Columns& columns, const RowColumn& column, ArrowArray& out) {
  Holder<ArrowArray>& holder = Begin(columns, out);
  out.buffers = holder.buffers.data();
  out.null_count = static_cast<int64_t>(column.null_count);
  holder.buffers[0] = column.null_count == 0 ? nullptr : column.valid.data();
  if (column.kind == CellKind::kText) {
    FillTexts(column.texts, holder, out);
    return;
  }
  out.n_buffers = 2;
  out.length = static_cast<int64_t>(columns->row_count);
  switch (column.kind) {
    case CellKind::kInteger:
      holder.buffers[1] = column.integers.data();
      break;
    case CellKind::kWord: {
      holder.buffers[1] = column.codes.data();
      Holder<ArrowArray>& words = Begin(columns, holder.dictionary);
      holder.dictionary.buffers = words.buffers.data();
      FillTexts(column.texts, words, holder.dictionary);
      out.dictionary = &holder.dictionary;
      break;
    }
    default:
      holder.buffers[1] = column.reals.data();
  }
}

struct StreamState {
  Columns columns;
  bool is_done = false;
};

int GetSchema(ArrowArrayStream* stream, ArrowSchema* out) {
  const Columns& columns = static_cast<StreamState*>(stream->private_data)->columns;
  Holder<ArrowSchema>& holder = Begin(columns, *out);
  out->format = "+s";
  out->name = "";
  holder.nodes.resize(columns->columns.size());
  for (size_t i = 0; i < holder.nodes.size(); ++i) {
    FillSchema(columns, columns->columns[i], holder.nodes[i]);
  }
  AdoptChildren(holder, *out);
  return 0;
}

int GetNext(ArrowArrayStream* stream, ArrowArray* out) {
  auto* state = static_cast<StreamState*>(stream->private_data);
  if (std::exchange(state->is_done, true)) {
    *out = {};  // no release: the end
    return 0;
  }
  const Columns& columns = state->columns;
  Holder<ArrowArray>& holder = Begin(columns, *out);
  out->length = static_cast<int64_t>(columns->row_count);
  out->n_buffers = 1;
  out->buffers = holder.buffers.data();
  holder.nodes.resize(columns->columns.size());
  for (size_t i = 0; i < holder.nodes.size(); ++i) {
    FillArray(columns, columns->columns[i], holder.nodes[i]);
  }
  AdoptChildren(holder, *out);
  return 0;
}

const char* GetLastError(ArrowArrayStream*) { return nullptr; }

void ReleaseStream(ArrowArrayStream* stream) {
  delete static_cast<StreamState*>(stream->private_data);
  stream->release = nullptr;
}

}  // namespace

void ExportStream(std::shared_ptr<const RowColumns> columns, ArrowArrayStream* out) {
  *out = {GetSchema, GetNext, GetLastError, ReleaseStream, new StreamState{std::move(columns)}};
}

}  // namespace plumbline::report
