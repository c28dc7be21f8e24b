#include "view/store/name_index.h"

#include <algorithm>
#include <array>
#include <atomic>

#include "base/process/parallel.h"
#include "view/store/varint.h"

namespace plumbline::view {
namespace {

constexpr size_t kWordBits = 64;

char FoldedByte(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// The class of each byte: letters 0 to 25, digits 26 to 35, '.', '_', '-', all else.
constexpr std::array<uint8_t, 256> MakeByteClasses() {
  std::array<uint8_t, 256> classes{};
  classes.fill(39);
  for (size_t i = 0; i < 26; ++i) classes['a' + i] = classes['A' + i] = static_cast<uint8_t>(i);
  for (size_t i = 0; i < 10; ++i) classes['0' + i] = static_cast<uint8_t>(26 + i);
  classes['.'] = 36;
  classes['_'] = 37;
  classes['-'] = 38;
  return classes;
}
constexpr std::array<uint8_t, 256> kClassOfByte = MakeByteClasses();

size_t TrigramClass(const char* three) {
  size_t result = 0;
  for (size_t i = 0; i < 3; ++i) {
    result = result * kByteClasses + kClassOfByte[static_cast<uint8_t>(three[i])];
  }
  return result;
}

size_t SharedStart(std::string_view a, std::string_view b) {
  const size_t most = std::min(a.size(), b.size());
  return static_cast<size_t>(
      std::mismatch(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(most), b.begin()).first -
      a.begin());
}

Error BadNames(std::string_view what) {
  return {ErrorCode::kCorrupt, "its names are damaged: " + std::string(what)};
}

void SetBit(size_t at, std::span<uint64_t> bits) {
  bits[at / kWordBits] |= uint64_t{1} << (at % kWordBits);
}

bool HasBit(size_t at, std::span<const uint64_t> bits) {
  return (bits[at / kWordBits] >> (at % kWordBits) & 1) != 0;
}

// Looks for a part in names that come in order: what a name shares with the one before is not
// looked at again.
class PartFinder {
 public:
  explicit PartFinder(std::string_view part) : part_(part) {}

  // `shared`: how much of the name before stays. False: the part is not in the name.
  bool Next(size_t shared, std::string_view rest) {
    shared = std::min(shared, folded_.size());
    folded_.resize(shared);
    for (const char c : rest) folded_ += FoldedByte(c);
    if (found_ != std::string::npos && found_ + part_.size() <= shared) return true;
    const size_t from = shared < part_.size() ? 0 : shared - part_.size() + 1;
    found_ = std::string_view(folded_).find(part_, from);
    return found_ != std::string::npos;
  }
  void Restart() {
    folded_.clear();
    found_ = std::string::npos;
  }

 private:
  const std::string_view part_;
  std::string folded_;
  size_t found_ = std::string::npos;
};

}  // namespace

std::string FoldCase(std::string_view text) {
  std::string folded(text);
  std::ranges::transform(folded, folded.begin(), FoldedByte);
  return folded;
}

NameSections FormatNames(std::span<const std::string_view> names) {
  NameSections out;
  const size_t blocks = (names.size() + kNamesPerBlock - 1) / kNamesPerBlock;
  const size_t words = (blocks + kWordBits - 1) / kWordBits;
  out.classes.assign(kTrigramClasses, kNoBitmap);
  for (size_t i = 0; i < names.size(); ++i) {
    const size_t block = i / kNamesPerBlock;
    const bool is_first = i % kNamesPerBlock == 0;
    if (is_first) out.blocks.push_back(out.text.size());
    const std::string_view name = names[i];
    const size_t shared = is_first ? 0 : SharedStart(names[i - 1], name);
    AppendVarint(shared, out.text);
    AppendVarint(name.size() - shared, out.text);
    out.text += name.substr(shared);
    for (size_t at = shared < 2 ? 0 : shared - 2; at + 3 <= name.size(); ++at) {
      uint32_t& bitmap = out.classes[TrigramClass(name.data() + at)];
      if (bitmap == kNoBitmap) {
        bitmap = static_cast<uint32_t>(out.bitmaps.size() / words);
        out.bitmaps.resize(out.bitmaps.size() + words);
      }
      SetBit(block, std::span(out.bitmaps).subspan(bitmap * words, words));
    }
  }
  return out;
}

// Goes through the names of blocks.
class NameIndex::Walk {
 public:
  Walk(const NameIndex& index, size_t block)
      : reader_(index.text_.substr(index.blocks_[block])), number_(block * kNamesPerBlock) {}

  // To the next name.
  void Step() {
    const uint64_t shared = reader_.Next();
    const std::string_view rest = reader_.Bytes(reader_.Next());
    is_damaged_ |= reader_.failed() || shared > name_.size();
    name_.resize(std::min<uint64_t>(shared, name_.size()));
    name_ += rest;
    ++number_;
  }
  [[nodiscard]] size_t number() const { return number_; }  // of the next one
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] bool failed() const { return is_damaged_; }
  std::string Take() { return std::move(name_); }

 private:
  VarintReader reader_;
  std::string name_;
  size_t number_;
  bool is_damaged_ = false;
};

Result<NameIndex> NameIndex::Open(size_t count, std::string_view text,
                                  std::span<const uint64_t> blocks,
                                  std::span<const uint64_t> bitmaps,
                                  std::span<const uint32_t> classes) {
  NameIndex index;
  index.count_ = count;
  index.text_ = text;
  index.blocks_ = blocks;
  index.bitmaps_ = bitmaps;
  index.classes_ = classes;
  if (blocks.size() != (count + kNamesPerBlock - 1) / kNamesPerBlock) {
    return BadNames("not as many blocks as names need");
  }
  if (classes.size() != kTrigramClasses) return BadNames("the table of trigrams has another size");
  const size_t words = (blocks.size() + kWordBits - 1) / kWordBits;
  for (const uint32_t bitmap : classes) {
    if (bitmap != kNoBitmap && (uint64_t{bitmap} + 1) * words > bitmaps.size()) {
      return BadNames("a trigram without bitmap");
    }
  }
  std::atomic<bool> is_good = true;
  for (const uint64_t begin : blocks) {
    if (begin > text.size()) return BadNames("a block behind the end");
  }
  ParallelFor(blocks.size(), [&](size_t block) {
    Walk walk(index, block);
    std::string before;
    const size_t end = std::min(count, (block + 1) * kNamesPerBlock);
    while (walk.number() < end) {
      const bool is_first = walk.number() % kNamesPerBlock == 0;
      walk.Step();
      if (walk.failed() || (!is_first && walk.name() <= before)) {
        is_good = false;
        return;
      }
      before = walk.name();
    }
  });
  if (!is_good) return BadNames("not in ascending order, or cut");
  return index;
}

std::string NameIndex::At(size_t number) const {
  Walk walk(*this, number / kNamesPerBlock);
  while (walk.number() <= number && !walk.failed()) walk.Step();
  return walk.Take();
}

size_t NameIndex::LowerBound(std::string_view text) const {
  // The first block that begins behind the text.
  size_t low = 0, high = blocks_.size();
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    Walk walk(*this, middle);
    walk.Step();
    if (walk.name() <= text) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  if (low == 0) return 0;
  const size_t end = std::min(count_, low * kNamesPerBlock);
  for (Walk walk(*this, low - 1); walk.number() < end && !walk.failed();) {
    walk.Step();
    if (walk.name() >= text) return walk.number() - 1;
  }
  return end;
}

std::optional<uint32_t> NameIndex::Find(std::string_view name) const {
  const size_t number = LowerBound(name);
  if (number == count_ || At(number) != name) return std::nullopt;
  return static_cast<uint32_t>(number);
}

void NameIndex::ForEach(
    const std::function<void(uint32_t number, std::string_view name)>& visit) const {
  for (size_t block = 0; block < blocks_.size(); ++block) {
    const size_t end = std::min(count_, (block + 1) * kNamesPerBlock);
    for (Walk walk(*this, block); walk.number() < end && !walk.failed();) {
      walk.Step();
      visit(static_cast<uint32_t>(walk.number() - 1), walk.name());
    }
  }
}

std::vector<uint64_t> NameIndex::BlocksThatMayHold(std::string_view folded) const {
  const size_t words = (blocks_.size() + kWordBits - 1) / kWordBits;
  std::vector<uint64_t> may(words, ~uint64_t{0});
  for (size_t at = 0; at + 3 <= folded.size(); ++at) {
    const uint32_t bitmap = classes_[TrigramClass(folded.data() + at)];
    if (bitmap == kNoBitmap) return std::vector<uint64_t>(words);
    for (size_t i = 0; i < words; ++i) may[i] &= bitmaps_[bitmap * words + i];
  }
  return may;
}

void NameIndex::MarkContaining(std::string_view part, std::span<uint64_t> bits) const {
  const std::string folded = FoldCase(part);
  const std::vector<uint64_t> may = BlocksThatMayHold(folded);
  // As a block has as many names as a word has bits, no two blocks share a word.
  static_assert(kNamesPerBlock % kWordBits == 0);
  constexpr size_t kBlocksOfAThread = 64;
  ParallelBlocks(blocks_.size(), kBlocksOfAThread, [&](size_t from, size_t to) {
    PartFinder finder(folded);
    for (size_t block = from; block < to; ++block) {
      if (!HasBit(block, may)) continue;
      finder.Restart();
      const size_t end = std::min(count_, (block + 1) * kNamesPerBlock);
      VarintReader reader(text_.substr(blocks_[block]));
      for (size_t number = block * kNamesPerBlock; number < end && !reader.failed(); ++number) {
        const uint64_t shared = reader.Next();
        if (finder.Next(shared, reader.Bytes(reader.Next()))) SetBit(number, bits);
      }
    }
  });
}

}  // namespace plumbline::view
