//===- DrawMasks.cpp - pictures of masks and tiles -------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   mask.mlir:4: attention per-head, 8 queries, 12 keys, tiles of 4 x 4
//   mask #attn.causal
//   tiles: 1 full, 2 partial, 3 skipped (50.0 %)
//                keys 0 to 11
//   queries    0 ▒░░░········
//              1 ▒▒░░········
//
//===----------------------------------------------------------------------===//

#include "tools/DrawMasks.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"

using namespace llvm;
using namespace attn;

/// Maximum number of pictures; more pictures would not help the reader.
static constexpr size_t kMostPictures = 8;
/// Maximum number of pairs of a picture that evaluates the mask for each pair.
static constexpr int64_t kMostPairs = int64_t(1) << 22;

/// Whether the picture can show the pairs of partial tiles.
static bool showsPairs(const MaskTiles &mask) {
  return mask.keeps && mask.queries * mask.keys <= kMostPairs;
}

static std::string titleOf(const MaskTiles &mask) {
  return formatv("{0}: attention {1}, {2} queries, {3} keys, tiles of {4} x {5}", mask.source,
                 mask.schedule, mask.queries, mask.keys, mask.queryTile, mask.keyTile)
      .str();
}

static std::string maskOf(const MaskTiles &mask) {
  std::string text = "mask " + mask.mask;
  if (!mask.batch.empty())
    text += ", batch " + mask.batch;
  if (mask.copies > 1)
    text += formatv(", the same {0} times", mask.copies).str();
  return text;
}

static std::string countsOf(const MaskTiles &mask) {
  auto [full, partial, skipped] = mask.count();
  int64_t all = full + partial + skipped;
  return formatv("tiles: {0} full, {1} partial, {2} skipped ({3:f1} %)", full, partial, skipped,
                 all ? 100.0 * skipped / all : 0)
      .str();
}

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

namespace {
/// The characters for pairs, from skipped pairs to pairs computed without a test of the mask.
constexpr StringLiteral kSkipped = "·", kHidden = "░", kKept = "▒", kFull = "█";

/// The character for a rectangle of pairs.
StringRef cellOf(const MaskTiles &mask, int64_t q0, int64_t q1, int64_t k0, int64_t k1) {
  bool isFull = true, isComputed = false, isKept = false;
  for (int64_t q = q0; q < q1; ++q) {
    const MaskTiles::Row &row = mask.rows[q / mask.queryTile];
    isFull &= row.fullLo <= k0 && k1 <= row.fullHi;
    int64_t from = std::max(k0, row.lo), to = std::min(k1, row.hi);
    isComputed |= from < to;
    if (!showsPairs(mask))
      isKept = isComputed;
    for (int64_t k = from; k < to && !isKept; ++k)
      isKept = mask.keeps(q, k);
  }
  return isFull ? kFull : isKept ? kKept : isComputed ? kHidden : kSkipped;
}
} // namespace

static void drawPicture(const MaskTiles &mask, raw_ostream &out) {
  static constexpr int64_t kColumns = 80, kLines = 48;
  out << titleOf(mask) << "\n" << maskOf(mask) << "\n" << countsOf(mask) << "\n";
  if (!mask.note.empty())
    out << mask.note << "\n";
  if (mask.queries == 0 || mask.keys == 0)
    return;
  int64_t width = divideCeil(mask.keys, kColumns), height = divideCeil(mask.queries, kLines);
  out << formatv("{0,13}keys 0 to {1}{2}\n", "", mask.keys - 1,
                 width > 1 ? formatv(", {0} a column", width).str() : "");
  for (int64_t q = 0; q < mask.queries; q += height) {
    out << formatv("{0} {1,4} ", q == 0 ? "queries" : "       ", q);
    for (int64_t k = 0; k < mask.keys; k += width)
      out << cellOf(mask, q, std::min(q + height, mask.queries), k, std::min(k + width, mask.keys));
    out << "\n";
  }
}

void attn::drawText(ArrayRef<MaskTiles> masks, raw_ostream &out) {
  for (const MaskTiles &mask : masks.take_front(kMostPictures)) {
    drawPicture(mask, out);
    out << "\n";
  }
  if (masks.size() > kMostPictures)
    out << masks.size() - kMostPictures << " more pictures are not shown\n";
  if (masks.empty())
    out << "no attention found\n";
  else
    out << kFull << " kept, no test   " << kKept << " tested, some pair kept   " << kHidden
        << " tested, none kept   " << kSkipped << " skipped\n";
}

//===----------------------------------------------------------------------===//
// SVG
//===----------------------------------------------------------------------===//

namespace {
/// One picture; lengths are in pixels.
class Drawing {
public:
  Drawing(const MaskTiles &mask, raw_ostream &out) : mask(mask), out(out) {
    // The longer side has 560 pixels, the other side at least 28.
    double longer = std::max<int64_t>({mask.queries, mask.keys, 1});
    width = std::max(28.0, kSide * mask.keys / longer);
    height = std::max(28.0, kSide * mask.queries / longer);
  }

  static constexpr double kSide = 560, kLeft = 76, kTop = 104, kBottom = 70;
  double totalHeight() const { return kTop + height + kBottom; }

  void draw(double top);

private:
  double x(int64_t key) const { return kLeft + width * key / std::max<int64_t>(mask.keys, 1); }
  double y(int64_t query) const {
    return origin + kTop + height * query / std::max<int64_t>(mask.queries, 1);
  }
  void rectangle(StringRef kind, int64_t q0, int64_t q1, int64_t k0, int64_t k1) {
    out << formatv("<rect class=\"{0}\" x=\"{1:f2}\" y=\"{2:f2}\" width=\"{3:f2}\" "
                   "height=\"{4:f2}\"/>\n",
                   kind, x(k0), y(q0), x(k1) - x(k0), y(q1) - y(q0));
  }
  void text(StringRef kind, double x, double y, const Twine &words) {
    std::string escaped;
    raw_string_ostream stream(escaped);
    printHTMLEscaped(words.str(), stream);
    out << formatv("<text class=\"{0}\" x=\"{1:f1}\" y=\"{2:f1}\">{3}</text>\n", kind, x, y,
                   escaped);
  }
  void tiles();
  void pairs();
  void axes();
  void legend();

  const MaskTiles &mask;
  raw_ostream &out;
  double width, height, origin = 0;
};
} // namespace

void Drawing::tiles() {
  rectangle("skipped", 0, mask.queries, 0, mask.keys);
  for (auto [i, row] : enumerate(mask.rows)) {
    int64_t q0 = i * mask.queryTile, q1 = std::min(q0 + mask.queryTile, mask.queries);
    auto draw = [&](StringRef kind, int64_t from, int64_t to) {
      for (int64_t k = from; k < to; k += mask.keyTile)
        rectangle(kind, q0, q1, k, std::min(k + mask.keyTile, to));
    };
    draw("partial", row.lo, row.fullLo);
    draw("full", row.fullLo, row.fullHi);
    draw("partial", row.fullHi, row.hi);
  }
}

/// Draws the runs of kept keys of each query in partial tiles.
void Drawing::pairs() {
  for (int64_t q = 0; q < mask.queries; ++q) {
    const MaskTiles::Row &row = mask.rows[q / mask.queryTile];
    for (auto [from, to] : {std::pair(row.lo, row.fullLo), std::pair(row.fullHi, row.hi)})
      for (int64_t k = from; k < to; ++k) {
        if (!mask.keeps(q, k))
          continue;
        int64_t first = k;
        while (k < to && mask.keeps(q, k))
          ++k;
        rectangle("kept", q, q + 1, first, k);
      }
  }
}

/// A step of 1, 2 or 5 times a power of ten that leaves at most `most` labels.
static int64_t stepOf(int64_t size, int64_t most) {
  for (int64_t power = 1;; power *= 10)
    for (int64_t factor : {1, 2, 5})
      if (int64_t(divideCeil(size, power * factor)) <= most)
        return power * factor;
}

void Drawing::axes() {
  auto step = [](int64_t size, double pixels) {
    return stepOf(std::max<int64_t>(size, 1), std::max<int64_t>(1, pixels / 45));
  };
  for (int64_t k = 0; k < mask.keys; k += step(mask.keys, width))
    text("tick middle", x(k), y(0) - 7, Twine(k));
  for (int64_t q = 0; q < mask.queries; q += step(mask.queries, height))
    text("tick end", kLeft - 8, y(q) + 4, Twine(q));
  text("axis middle", kLeft + width / 2, y(0) - 24, "keys");
  double middle = y(0) + height / 2;
  out << formatv("<text class=\"axis middle\" transform=\"translate(22 {0:f1}) rotate(-90)\">"
                 "queries</text>\n",
                 middle);
}

void Drawing::legend() {
  double left = kLeft, top = y(0) + height + 24;
  auto entry = [&](StringRef kind, const Twine &words) {
    out << formatv("<rect class=\"{0}\" x=\"{1:f1}\" y=\"{2:f1}\" width=\"14\" height=\"14\"/>\n",
                   kind, left, top);
    text("tick", left + 20, top + 11, words);
    left += 38 + 6.6 * words.str().size();
  };
  auto [full, partial, skipped] = mask.count();
  entry("full", Twine(full) + " full tiles");
  entry("partial", Twine(partial) + " partial tiles");
  if (showsPairs(mask))
    entry("kept", "kept pairs in them");
  entry("skipped", Twine(skipped) + " skipped tiles");
}

void Drawing::draw(double top) {
  origin = top;
  text("title", 16, top + 26, titleOf(mask));
  text("tick", 16, top + 46, maskOf(mask) + (mask.note.empty() ? "" : "; " + mask.note));
  tiles();
  if (showsPairs(mask))
    pairs();
  axes();
  legend();
}

void attn::drawSVG(ArrayRef<MaskTiles> masks, raw_ostream &out) {
  constexpr double kWidth = 760;
  double height = 0;
  ArrayRef<MaskTiles> shown = masks.take_front(kMostPictures);
  for (const MaskTiles &mask : shown)
    height += Drawing(mask, out).totalHeight();
  bool leavesOut = shown.size() < masks.size() || masks.empty();
  out << formatv("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:f0}\" height=\"{1:f0}\" "
                 "viewBox=\"0 0 {0:f0} {1:f0}\">\n",
                 kWidth, height + (leavesOut ? 40 : 0))
      << R"(<style>
  text { font-family: sans-serif; fill: #1a1a1a }
  .title { font-size: 15px; font-weight: bold } .axis { font-size: 14px } .tick { font-size: 12px }
  .middle { text-anchor: middle } .end { text-anchor: end }
  .full { fill: #1f5fa8; stroke: #ffffff; stroke-width: 1 }
  .partial { fill: #cfe0f3; stroke: #ffffff; stroke-width: 1 }
  .kept { fill: #6fa3d8 } .skipped { fill: #f1f1ee; stroke: #b8b8b4; stroke-width: 1 }
</style>
<rect width="100%" height="100%" fill="#ffffff"/>
)";
  double top = 0;
  for (const MaskTiles &mask : shown) {
    Drawing drawing(mask, out);
    drawing.draw(top);
    top += drawing.totalHeight();
  }
  if (leavesOut)
    out << formatv(
        "<text class=\"tick\" x=\"16\" y=\"{0:f1}\">{1}</text>\n", top + 20,
        masks.empty()
            ? "no attention found"
            : (Twine(masks.size() - shown.size()) + " more pictures are not shown").str());
  out << "</svg>\n";
}
