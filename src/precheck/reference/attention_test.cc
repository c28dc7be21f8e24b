#include "precheck/reference/attention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "base/process/parallel.h"
#include "precheck/reference/gradient_for_test.h"

namespace plumbline::precheck::reference::attention_test {
namespace {

// Sizes of one attention, and its tensors in layout BNSD.
struct Problem {
  int64_t batch = 2, heads = 4, key_heads = 2, rows = 3, columns = 5, dim = 4;
  Doubles query, key, value, dy;

  void Fill() {
    query = Random({batch, heads, rows, dim}, 1);
    key = Random({batch, key_heads, columns, dim}, 2);
    value = Random({batch, key_heads, columns, dim}, 3);
    dy = Random({batch, heads, rows, dim}, 4);
  }
  [[nodiscard]] AttentionCall Call() const {
    AttentionCall call;
    call.query = query.operand(), call.key = key.operand(), call.value = value.operand();
    call.head_num = heads;
    call.input_layout = "BNSD";
    return call;
  }
};

// What is hidden of (batch, head, row, column), by its definition.
using IsHidden = std::function<bool(size_t, size_t, int64_t, int64_t)>;

// Attention element by element.
std::vector<double> Naive(const Problem& p, double scale, const IsHidden& is_hidden,
                          const Doubles* pse = nullptr) {
  const auto rows = static_cast<size_t>(p.rows), columns = static_cast<size_t>(p.columns);
  const auto dim = static_cast<size_t>(p.dim), heads = static_cast<size_t>(p.heads);
  const auto key_heads = static_cast<size_t>(p.key_heads);
  std::vector<double> out(p.query.values.size());
  for (size_t r = 0; r < out.size() / dim; ++r) {
    const size_t head = r / rows % heads, b = r / rows / heads;
    const size_t key = (b * key_heads + head / (heads / key_heads)) * columns;
    std::vector<double> score(columns);
    double sum = 0;
    for (size_t j = 0; j < columns; ++j) {
      for (size_t d = 0; d < dim; ++d) {
        score[j] += p.query.values[r * dim + d] * p.key.values[(key + j) * dim + d];
      }
      if (pse) score[j] += pse->values[r * columns + j];
      score[j] *= scale;
      const bool hides =
          is_hidden(b, head, static_cast<int64_t>(r % rows), static_cast<int64_t>(j));
      score[j] = hides ? 0 : std::exp(score[j]);
      sum += score[j];
    }
    for (size_t j = 0; j < columns; ++j) {
      for (size_t d = 0; d < dim; ++d) {
        out[r * dim + d] += score[j] / sum * p.value.values[(key + j) * dim + d];
      }
    }
  }
  return out;
}

// The same values with dimensions in another order.
Doubles Permuted(const Doubles& x, const std::vector<size_t>& order, const Shape& shape) {
  Doubles out{shape, std::vector<double>(x.values.size())};
  std::vector<size_t> strides(order.size());
  std::vector<size_t> own(x.shape.size(), 1);
  for (size_t i = own.size() - 1; i-- > 0;) {
    own[i] = own[i + 1] * static_cast<size_t>(x.shape[i + 1]);
  }
  for (size_t i = 0; i < out.values.size(); ++i) {
    size_t rest = i, from = 0;
    for (size_t d = order.size(); d-- > 0;) {
      const auto size = static_cast<size_t>(x.shape[order[d]]);
      from += rest % size * own[order[d]];
      rest /= size;
    }
    out.values[i] = x.values[from];
  }
  return out;
}

std::vector<uint8_t> Triangle(int64_t rows) {
  std::vector<uint8_t> mask(static_cast<size_t>(rows) * 2048);
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < 2048; ++c) {
      mask[static_cast<size_t>(r * 2048 + c)] = r < 2048 ? c > r : c >= 1024;
    }
  }
  return mask;
}
Operand MaskOf(const std::vector<uint8_t>& mask, const Shape& shape) {
  return {DType::kBool, reinterpret_cast<const std::byte*>(mask.data()), shape};
}

TEST(Attention, EveryLayoutGivesTheSameNumbers) {
  Problem p;
  p.batch = 1, p.rows = p.columns = 3, p.dim = 2;
  p.Fill();
  const std::vector<double> expected = Naive(p, 1, [](auto...) { return false; });
  ExpectNear(ValuesIn(Must(FusionAttention(p.Call())).out), expected, 1e-12);
  struct Form {
    const char* layout;
    std::vector<size_t> order;  // of B, N, S, D
    Shape query, key;
  };
  for (const Form& form : {Form{"BSH", {0, 2, 1, 3}, {1, 3, 8}, {1, 3, 4}},
                           Form{"SBH", {2, 0, 1, 3}, {3, 1, 8}, {3, 1, 4}},
                           Form{"BSND", {0, 2, 1, 3}, {1, 3, 4, 2}, {1, 3, 2, 2}},
                           Form{"TND", {0, 2, 1, 3}, {3, 4, 2}, {3, 2, 2}}}) {
    const Doubles q = Permuted(p.query, form.order, form.query);
    const Doubles k = Permuted(p.key, form.order, form.key);
    const Doubles v = Permuted(p.value, form.order, form.key);
    AttentionCall call = p.Call();
    call.query = q.operand(), call.key = k.operand(), call.value = v.operand();
    call.input_layout = form.layout;
    if (call.input_layout == "TND") call.actual_seq_qlen = call.actual_seq_kvlen = {3};
    const AttentionResult result = Must(FusionAttention(call));
    EXPECT_EQ(result.out.shape(), form.query);
    const Doubles wanted = Permuted({p.query.shape, expected}, form.order, form.query);
    ExpectNear(ValuesIn(result.out), wanted.values, 1e-12);
  }
}

TEST(Attention, StatisticsAreRepeatedEightTimes) {
  Problem p;
  p.Fill();
  const AttentionResult result = Must(FusionAttention(p.Call()));
  EXPECT_EQ(result.max.shape(), (Shape{2, 4, 3, 8}));
  const std::vector<double> max = ValuesIn(result.max), sum = ValuesIn(result.sum);
  double largest = -1e9;
  std::vector<double> scores(5);
  for (size_t j = 0; j < 5; ++j) {
    for (size_t d = 0; d < 4; ++d) {
      scores[j] += p.query.values[d] * p.key.values[j * 4 + d];
    }
    largest = std::max(largest, scores[j]);
  }
  double expected = 0;
  for (const double score : scores) expected += std::exp(score - largest);
  for (size_t i = 0; i < 8; ++i) {
    EXPECT_NEAR(max[i], largest, 1e-12);
    EXPECT_NEAR(sum[i], expected, 1e-12);
  }
}

TEST(Attention, StandInMasksMeanTheirModes) {
  const std::vector<uint8_t> triangle = Triangle(2048);
  struct Mode {
    int64_t mode, pre, next;
    std::function<bool(int64_t)> is_hidden;  // by column - row; S1 = 3, S2 = 5
  };
  const int64_t far = 2147483647;
  for (const Mode& mode : {Mode{2, far, far, [](int64_t d) { return d >= 1; }},
                           Mode{3, far, far, [](int64_t d) { return d >= 3; }},
                           Mode{4, 2, 0, [](int64_t d) { return d >= 3 || d < 0; }},
                           Mode{4, 1, -1, [](int64_t d) { return d >= 2 || d < 1; }}}) {
    Problem p;
    p.Fill();
    AttentionCall call = p.Call();
    call.scale = 0.5, call.sparse_mode = mode.mode;
    call.pre_tokens = mode.pre, call.next_tokens = mode.next;
    call.atten_mask = MaskOf(triangle, {2048, 2048});
    ExpectNear(
        ValuesIn(Must(FusionAttention(call)).out),
        Naive(p, 0.5, [&](size_t, size_t, int64_t r, int64_t c) { return mode.is_hidden(c - r); }),
        1e-12);
  }
}

TEST(Attention, CausalFromTheLowerRightHidesTheThirdDiagonal) {
  Problem p;
  p.rows = 2, p.columns = 4;
  p.Fill();
  const std::vector<uint8_t> triangle = Triangle(2048);
  AttentionCall call = p.Call();
  call.sparse_mode = 3;
  call.atten_mask = MaskOf(triangle, {2048, 2048});
  ExpectNear(ValuesIn(Must(FusionAttention(call)).out),
             Naive(p, 1, [](size_t, size_t, int64_t r, int64_t c) { return c - r >= 3; }), 1e-12);
}

TEST(Attention, WithoutAMaskEveryKeyIsSeen) {
  Problem p;
  p.Fill();
  AttentionCall call = p.Call();
  const std::vector<double> full = ValuesIn(Must(FusionAttention(call)).out);
  for (const int64_t mode : {1, 2, 3, 4}) {
    call.sparse_mode = mode;
    EXPECT_EQ(ValuesIn(Must(FusionAttention(call)).out), full);
  }
}

TEST(Attention, GivenMasksAreBroadcastAndPseAdded) {
  Problem p;
  p.Fill();
  const Doubles pse = Random({2, 4, 3, 5}, 9);
  const std::vector<uint8_t> mask = {0, 1, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 1, 0, 0,
                                     0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 0};
  AttentionCall call = p.Call();
  call.scale = 0.3;
  call.pse = pse.operand();
  call.atten_mask = MaskOf(mask, {2, 1, 3, 5});
  const IsHidden by_mask = [&](size_t b, size_t, int64_t r, int64_t c) {
    return mask[b * 15 + static_cast<size_t>(r * 5 + c)] != 0;
  };
  ExpectNear(ValuesIn(Must(FusionAttention(call)).out), Naive(p, 0.3, by_mask, &pse), 1e-12);
  call.adds_pse_after_scale = true;
  Doubles divided = pse;
  for (double& value : divided.values) value /= 0.3;
  ExpectNear(ValuesIn(Must(FusionAttention(call)).out), Naive(p, 0.3, by_mask, &divided), 1e-12);
}

TEST(Attention, PrefixIsSeenByAll) {
  Problem p;
  p.Fill();
  const std::vector<uint8_t> stand_in = Triangle(3072);
  AttentionCall call = p.Call();
  call.sparse_mode = 6;
  call.atten_mask = MaskOf(stand_in, {3072, 2048});
  EXPECT_NE(ErrorOf(FusionAttention(call)).find("prefix: has 0 lengths"), std::string::npos);
  call.prefix = {4, 1};
  ExpectNear(ValuesIn(Must(FusionAttention(call)).out),
             Naive(p, 1,
                   [](size_t b, size_t, int64_t r, int64_t c) {
                     return c - r >= 3 && c >= (b == 0 ? 4 : 1);
                   }),
             1e-12);
}

// ---- Layout TND

// Rows [first, end) of a (T, N, D) tensor as a BNSD problem.
Doubles Piece(const Doubles& x, int64_t first, int64_t end) {
  const int64_t row = x.shape[1] * x.shape[2];
  const Doubles rows{{end - first, x.shape[1], x.shape[2]},
                     {x.values.begin() + first * row, x.values.begin() + end * row}};
  return Permuted(rows, {1, 0, 2}, {1, x.shape[1], end - first, x.shape[2]});
}

// Checks a TND call whose sequences end at `ends` and `key_ends` against its pieces.
void ExpectPieces(AttentionCall call, const std::vector<std::function<bool(int64_t)>>& hidden) {
  const Doubles q = Random({call.actual_seq_qlen.back(), 4, 2}, 11);
  const Doubles k = Random({call.actual_seq_kvlen.back(), 2, 2}, 12);
  const Doubles v = Random({call.actual_seq_kvlen.back(), 2, 2}, 13);
  call.query = q.operand(), call.key = k.operand(), call.value = v.operand();
  call.head_num = 4, call.input_layout = "TND";
  const std::vector<double> out = ValuesIn(Must(FusionAttention(call)).out);
  int64_t first = 0, key_first = 0;
  for (size_t i = 0; i < hidden.size(); ++i) {
    const int64_t end = call.actual_seq_qlen[i], key_end = call.actual_seq_kvlen[i];
    Problem p;
    p.batch = 1, p.rows = end - first, p.columns = key_end - key_first, p.dim = 2;
    p.query = Piece(q, first, end);
    p.key = Piece(k, key_first, key_end), p.value = Piece(v, key_first, key_end);
    const Doubles expected{p.query.shape, Naive(p, 1, [&](size_t, size_t, int64_t r, int64_t c) {
                             return hidden[i](c - r);
                           })};
    const Doubles rows = Permuted(expected, {0, 2, 1, 3}, {p.rows, 4, 2});
    const auto at = out.begin() + static_cast<std::ptrdiff_t>(first) * 8;
    ExpectNear({at, at + static_cast<std::ptrdiff_t>(rows.values.size())}, rows.values, 1e-12);
    first = end, key_first = key_end;
  }
}

TEST(AttentionOfPieces, SequencesDoNotSeeEachOther) {
  AttentionCall call;
  call.actual_seq_qlen = {3, 5}, call.actual_seq_kvlen = {4, 7};
  const auto none = [](int64_t) { return false; };
  ExpectPieces(call, {none, none});
  const std::vector<uint8_t> triangle = Triangle(2048);
  call.atten_mask = MaskOf(triangle, {2048, 2048});
  call.sparse_mode = 3;
  ExpectPieces(call, {[](int64_t d) { return d >= 2; }, [](int64_t d) { return d >= 2; }});
}

// The documented examples of sequences that were cut between two devices.
TEST(AttentionOfPieces, CutSequencesAreBands) {
  const std::vector<uint8_t> triangle = Triangle(2048);
  AttentionCall call;
  call.atten_mask = MaskOf(triangle, {2048, 2048});
  call.sparse_mode = 7, call.pre_tokens = 6, call.next_tokens = -2;
  call.actual_seq_qlen = {3, 5}, call.actual_seq_kvlen = {3, 9};
  // The first two rows of a causal 4 x 6.
  ExpectPieces(call, {[](int64_t d) { return d >= 1; }, [](int64_t d) { return d >= 3; }});
  call.sparse_mode = 8, call.pre_tokens = 4, call.next_tokens = 1;
  call.actual_seq_qlen = {3, 8}, call.actual_seq_kvlen = {4, 9};
  // The last three rows of a causal 5 x 4.
  ExpectPieces(call, {[](int64_t d) { return d >= 3; }, [](int64_t d) { return d >= 1; }});
}

// ---- Gradients

// Of query, key and value, which `call` reads, against the slopes of its result.
void ExpectGradients(const std::array<Doubles*, 3>& inputs, const Doubles& dy,
                     const AttentionCall& call) {
  const auto grads = Must(FusionAttentionGrad(call, dy.operand()));
  const auto forward = [&] { return std::move(Must(FusionAttention(call)).out); };
  for (size_t i = 0; i < inputs.size(); ++i) ExpectGradient(*inputs[i], dy, forward, grads[i]);
}

TEST(AttentionGrad, FollowsTheSlopesWithEveryKindOfMask) {
  const std::vector<uint8_t> triangle = Triangle(2048);
  const std::vector<uint8_t> given = {0, 1, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 1, 0, 0};
  const Doubles pse = Random({1, 4, 1, 5}, 21);
  for (int kind = 0; kind < 4; ++kind) {
    Problem p;
    p.batch = 1;
    p.Fill();
    AttentionCall call = p.Call();
    call.scale = 0.4;
    call.pse = pse.operand();
    call.adds_pse_after_scale = kind == 3;
    if (kind == 1) call.atten_mask = MaskOf(given, {3, 5});
    if (kind >= 2) call.atten_mask = MaskOf(triangle, {1, 1, 2048, 2048});
    call.sparse_mode = kind;
    ExpectGradients({&p.query, &p.key, &p.value}, p.dy, call);
  }
}

// Modes 4 (band), 5 (given for each head) and 6 (prefix).
TEST(AttentionGrad, FollowsTheSlopesOfBandsAndPrefixes) {
  const std::vector<uint8_t> triangle = Triangle(2048), prefixed = Triangle(3072);
  std::vector<uint8_t> of_heads(2 * 2 * 3 * 5);
  for (size_t i = 0; i < of_heads.size(); ++i) of_heads[i] = i % 7 < 2 ? 1 : 0;
  for (const int64_t mode : {4, 5, 6}) {
    Problem p;
    p.heads = 2, p.key_heads = 1, p.dim = 2;
    p.Fill();
    AttentionCall call = p.Call();
    call.scale = 0.4, call.sparse_mode = mode;
    if (mode == 4) call.pre_tokens = 1, call.next_tokens = 0;
    if (mode == 6) call.prefix = {4, 1};
    if (mode == 4) call.atten_mask = MaskOf(triangle, {2048, 2048});
    if (mode == 5) call.atten_mask = MaskOf(of_heads, {2, 2, 3, 5});
    if (mode == 6) call.atten_mask = MaskOf(prefixed, {3072, 2048});
    ExpectGradients({&p.query, &p.key, &p.value}, p.dy, call);
  }
}

// Two sequences without a mask, and causal ones cut between devices (modes 7 and 8).
TEST(AttentionGrad, FollowsTheSlopesOfPieces) {
  const std::vector<uint8_t> triangle = Triangle(2048);
  for (const int64_t mode : {0, 7, 8}) {
    Doubles q = Random({5, 2, 2}, 51), k = Random({7, 1, 2}, 52), v = Random({7, 1, 2}, 53);
    const Doubles dy = Random({5, 2, 2}, 54);
    AttentionCall call;
    call.query = q.operand(), call.key = k.operand(), call.value = v.operand();
    call.head_num = 2, call.input_layout = "TND", call.sparse_mode = mode;
    call.actual_seq_qlen = {3, 5}, call.actual_seq_kvlen = {4, 7};
    if (mode > 0) call.atten_mask = MaskOf(triangle, {2048, 2048});
    if (mode == 7) call.pre_tokens = 6, call.next_tokens = -1;
    if (mode == 8) call.pre_tokens = 4, call.next_tokens = 1;
    ExpectGradients({&q, &k, &v}, dy, call);
  }
}

TEST(AttentionGrad, GroupsOfHeadsAndOtherSizesOfValues) {
  Problem p;
  p.batch = 1, p.heads = 8, p.rows = 4;
  p.Fill();
  p.value = Random({1, 2, 5, 3}, 31);
  p.dy = Random({1, 8, 4, 3}, 32);
  const AttentionCall call = p.Call();
  ExpectGradients({&p.query, &p.key, &p.value}, p.dy, call);
}

TEST(AttentionGrad, TilesAndThreadsDoNotMatter) {
  Problem p;
  p.batch = 1, p.heads = 2, p.key_heads = 1, p.rows = 300, p.columns = 270, p.dim = 20;
  p.Fill();
  std::array<std::vector<double>, 2> out, key_grad;
  for (size_t i = 0; i < 2; ++i) {
    RunWithThreads(i == 0 ? 1 : 5, [&] {
      out[i] = ValuesIn(Must(FusionAttention(p.Call())).out);
      key_grad[i] = ValuesIn(Must(FusionAttentionGrad(p.Call(), p.dy.operand()))[1]);
    });
  }
  EXPECT_EQ(out[0], out[1]);
  EXPECT_EQ(key_grad[0], key_grad[1]);
  ExpectNear(out[0], Naive(p, 1, [](auto...) { return false; }), 1e-11);
}

TEST(Attention, EmptySequencesGiveEmptyResults) {
  Problem p;
  p.rows = 0;
  p.Fill();
  EXPECT_EQ(Must(FusionAttention(p.Call())).out.shape(), (Shape{2, 4, 0, 4}));
  const std::vector<double> key_grad =
      ValuesIn(Must(FusionAttentionGrad(p.Call(), p.dy.operand()))[1]);
  ExpectNear(key_grad, std::vector<double>(key_grad.size(), 0), 0);
}

// ---- Errors

TEST(AttentionErrors, EachNamesItsArgument) {
  Problem p;
  p.Fill();
  const auto problem = [&](const std::function<void(AttentionCall&)>& change) {
    AttentionCall call = p.Call();
    change(call);
    return ErrorOf(FusionAttention(call));
  };
  const auto starts = [](const std::string& text, const std::string& start) {
    EXPECT_EQ(text.substr(0, start.size()), start) << text;
  };
  const std::vector<uint8_t> mask(15);
  starts(problem([](AttentionCall& c) { c.input_layout = "XYZ"; }), "input_layout: \"XYZ\"");
  starts(problem([](AttentionCall& c) { c.input_layout = "BSH"; }), "query: has shape");
  starts(problem([](AttentionCall& c) { c.head_num = 6; }), "head_num: 6");
  starts(problem([](AttentionCall& c) { c.head_num = 0; }), "head_num: 0");
  starts(problem([](AttentionCall& c) { c.sparse_mode = 9; }), "sparse_mode: 9");
  starts(problem([](AttentionCall& c) { c.sparse_mode = 5; }), "atten_mask: is missing");
  starts(problem([&](AttentionCall& c) { c.atten_mask = MaskOf(mask, {5, 3}); }), "atten_mask: ");
  starts(problem([&](AttentionCall& c) {
           c.sparse_mode = 7;
           c.atten_mask = MaskOf(mask, {3, 5});
         }),
         "sparse_mode: 7 needs layout TND");
  starts(problem([&](AttentionCall& c) { c.pse = c.query; }), "pse: ");
  starts(problem([&](AttentionCall& c) { c.value = c.query; }), "value: ");
}

TEST(AttentionErrors, HeadsMustBeAMultipleAndPiecesNeedTheirEnds) {
  Problem p;
  p.heads = 6, p.key_heads = 4;
  p.Fill();
  EXPECT_EQ(ErrorOf(FusionAttention(p.Call())).substr(0, 17), "head_num: 6 heads");
  const Doubles q = Random({5, 4, 2}, 41);
  AttentionCall call;
  call.query = call.key = call.value = q.operand();
  call.head_num = 4, call.input_layout = "TND";
  EXPECT_EQ(ErrorOf(FusionAttention(call)).substr(0, 26), "actual_seq_qlen: is missin");
  call.actual_seq_qlen = {2, 5}, call.actual_seq_kvlen = {3, 4};
  EXPECT_EQ(ErrorOf(FusionAttention(call)).substr(0, 24), "actual_seq_kvlen: [3, 4]");
  call.actual_seq_kvlen = {5};
  EXPECT_EQ(ErrorOf(FusionAttention(call)).substr(0, 16), "actual_seq_kvlen");
}

}  // namespace
}  // namespace plumbline::precheck::reference::attention_test
