//===- Mutate.cpp - mutations that keep the brackets of texts ---------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// The files that the targets read are texts, or begin with a text: JSON, MLIR, Python literals. A byte that is changed
// at random usually breaks the syntax, and then only the parser is tested. Therefore this mutator splits a text into
// units (words, numbers, strings, everything between two matching brackets). It replaces a unit by another unit, mostly
// of the same kind, or by a number such as a limit of an integer type, or it removes or repeats the unit. One call in
// four lets libFuzzer change bytes instead.
//
//===----------------------------------------------------------------------===//

#include "test/fuzz/Fuzz.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"

#include <random>
#include <vector>

using llvm::StringRef;

namespace {
struct Unit {
  enum Kind { Word, Number, String, Brackets } kind;
  size_t begin, end;
};
} // namespace

static std::vector<Unit> unitsOf(StringRef text) {
  std::vector<Unit> units;
  llvm::SmallVector<size_t> open;
  auto isWord = [](char c) { return llvm::isAlnum(c) || StringRef("_.$%#@!^").contains(c); };
  for (size_t i = 0; i < text.size();) {
    size_t begin = i;
    char c = text[i++];
    if (c == '"' || c == '\'') {
      while (i < text.size() && text[i] != c)
        i += text[i] == '\\' ? 2 : 1;
      i = std::min(i + 1, text.size());
      units.push_back({Unit::String, begin, i});
    } else if (isWord(c) || (c == '-' && i < text.size() && llvm::isDigit(text[i]))) {
      while (i < text.size() && isWord(text[i]))
        ++i;
      units.push_back({llvm::isDigit(text[i - 1]) && (c == '-' || llvm::isDigit(c)) ? Unit::Number : Unit::Word, begin, i});
    } else if (StringRef("([{<").contains(c)) {
      open.push_back(begin);
    } else if (StringRef(")]}>").contains(c) && !open.empty() && !(c == '>' && begin && text[begin - 1] == '-')) {
      units.push_back({Unit::Brackets, open.pop_back_val(), i});
    }
  }
  return units;
}

/// Returns `text` with one unit changed. If another unit replaces that unit, the replacement comes from `other`.
static std::string changeUnit(StringRef text, StringRef other, std::mt19937 &generator) {
  static constexpr llvm::StringLiteral kNumbers[] = {
      "0",          "1",          "-1",         "2",           "7",  "-9223372036854775808", "9223372036854775807",
      "2147483647", "2147483648", "4294967296", "-2147483648", "64", "9223372036854775808",  "4611686018427387904",
      "1e308",      "0.5",        "1048576",    "65536"};
  auto below = [&](size_t bound) { return generator() % bound; };
  std::vector<Unit> units = unitsOf(text), others = unitsOf(other);
  if (units.empty() || others.empty())
    return text.str();
  // Choose the kind of the unit first, so that numbers change more often than if every unit had the same chance.
  Unit unit = units[below(units.size())];
  auto kind = Unit::Kind(below(4));
  for (int tries = 0; tries < 32 && unit.kind != kind; ++tries)
    unit = units[below(units.size())];
  StringRef before = text.take_front(unit.begin), after = text.drop_front(unit.end), own = text.slice(unit.begin, unit.end);
  switch (below(unit.kind == Unit::Number ? 10 : 5)) {
  case 0: // leave the unit out, with the comma after or before it
    if (size_t comma = after.find_first_not_of(" \n"); comma != StringRef::npos && after[comma] == ',')
      return (before + after.drop_front(comma + 1)).str();
    return (before.rtrim(" \n").ends_with(",") ? before.rtrim(" \n").drop_back() + after : before + after).str();
  case 1: // repeat the unit
    return (before + own + (below(4) ? ", " : " ") + own + after).str();
  case 2: // change a unit inside a string, because the string may be a text too
    if (unit.kind == Unit::String && own.size() > 8)
      return (before + own.take_front(1) + changeUnit(own.drop_front().drop_back(), other, generator) +
              own.take_back(1) + after)
          .str();
    [[fallthrough]];
  case 3:
  case 4: {
    Unit by = others[below(others.size())];
    // Choose a unit of the same kind in most cases.
    for (int tries = 0; tries < 32 && by.kind != unit.kind && below(16); ++tries)
      by = others[below(others.size())];
    return (before + other.slice(by.begin, by.end) + after).str();
  }
  default:
    return (before + kNumbers[below(std::size(kNumbers))] + after).str();
  }
}

static size_t store(StringRef text, uint8_t *data, size_t size, size_t maxSize) {
  if (text.size() > maxSize)
    return size;
  std::copy(text.begin(), text.end(), data);
  return text.size();
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t maxSize, unsigned seed) {
  std::mt19937 generator(seed);
  if (generator() % 4 == 0)
    return LLVMFuzzerMutate(data, size, maxSize);
  std::string text = attn::fuzz::toText(data, size).str();
  for (unsigned changes = 1 + generator() % 3; changes; --changes)
    text = changeUnit(text, text, generator);
  return store(text, data, size, maxSize);
}

extern "C" size_t LLVMFuzzerCustomCrossOver(const uint8_t *first, size_t firstSize, const uint8_t *second, size_t secondSize,
                                            uint8_t *out, size_t maxSize, unsigned seed) {
  std::mt19937 generator(seed);
  std::string text = attn::fuzz::toText(first, firstSize).str();
  for (unsigned changes = 1 + generator() % 3; changes; --changes)
    text = changeUnit(text, attn::fuzz::toText(second, secondSize), generator);
  return store(text, out, 0, maxSize);
}
