//===- Report.cpp - the contents of attn.report ----------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// A stage file may hold any dictionary as its report. If a field is missing or has another type than the compiler
// writes, the text leaves it out, or has 0 or "?" in its place.
//
//===----------------------------------------------------------------------===//

#include "dialect/Report.h"

#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace attn;

std::string attn::getSource(Location loc) {
  if (auto file = loc->findInstanceOf<FileLineColLoc>())
    return (llvm::sys::path::filename(file.getFilename()) + ":" + Twine(file.getLine())).str();
  return "unknown source";
}

static std::string printed(Attribute attribute) {
  std::string text;
  llvm::raw_string_ostream(text) << attribute;
  return text;
}

llvm::json::Value attn::toJSON(Attribute attribute) {
  return llvm::TypeSwitch<Attribute, llvm::json::Value>(attribute)
      .Case(
          [](StringAttr text) -> llvm::json::Value { return llvm::json::fixUTF8(text.getValue()); })
      .Case([](BoolAttr value) -> llvm::json::Value { return value.getValue(); })
      .Case([](IntegerAttr value) -> llvm::json::Value {
        return value.getValue().isSignedIntN(64) ? llvm::json::Value(value.getInt())
                                                 : llvm::json::Value(printed(value));
      })
      .Case([](FloatAttr value) -> llvm::json::Value {
        return value.getValue().isFinite() ? llvm::json::Value(value.getValueAsDouble())
                                           : llvm::json::Value(printed(value));
      })
      .Case([](ArrayAttr list) -> llvm::json::Value {
        llvm::json::Array result;
        for (Attribute element : list)
          result.push_back(toJSON(element));
        return result;
      })
      .Case([](DictionaryAttr fields) -> llvm::json::Value {
        llvm::json::Object result;
        for (NamedAttribute field : fields)
          // A StringRef as key would refer to text of the MLIR context, which may be destroyed before the result.
          result[field.getName().str()] = toJSON(field.getValue());
        return result;
      })
      .Default([](Attribute other) -> llvm::json::Value { return printed(other); });
}

static StringRef getText(DictionaryAttr fields, StringRef name) {
  auto text = fields.getAs<StringAttr>(name);
  return text ? text.getValue() : "";
}

static int64_t getNumber(DictionaryAttr fields, StringRef name) {
  auto number = fields.getAs<IntegerAttr>(name);
  return number && number.getValue().isSignedIntN(64) ? number.getInt() : 0;
}

SmallVector<DictionaryAttr> attn::getList(DictionaryAttr fields, StringRef name) {
  SmallVector<DictionaryAttr> result;
  if (auto list = fields ? fields.getAs<ArrayAttr>(name) : ArrayAttr())
    for (Attribute element : list)
      if (auto entry = dyn_cast<DictionaryAttr>(element))
        result.push_back(entry);
  return result;
}

bool attn::isFused(DictionaryAttr attention) {
  auto fused = attention.getAs<BoolAttr>("fused");
  return fused && fused.getValue();
}

/// Prints the plan in `fields`, if there is one.
static void printPlan(llvm::raw_ostream &out, DictionaryAttr fields) {
  if (StringRef schedule = getText(fields, "schedule"); !schedule.empty())
    out << ", schedule " << schedule << ", tiles of " << getNumber(fields, "query_tile")
        << (getNumber(fields, "query_tile") == 1 ? " query and " : " queries and ")
        << getNumber(fields, "key_tile") << " keys";
  if (int64_t stages = getNumber(fields, "stages"))
    out << ", " << stages << " stages";
  if (int64_t part = getNumber(fields, "part"))
    out << ", parts of " << part << " keys";
}

std::string attn::printAttention(DictionaryAttr attention) {
  std::string text;
  llvm::raw_string_ostream out(text);
  out << getText(attention, "source") << ": "
      << (isFused(attention) ? "attention fused" : "attention left unfused");
  if (StringRef reason = getText(attention, "reason"); !reason.empty())
    out << ": " << reason;
  printPlan(out, attention);
  if (Attribute mask = attention.get("mask"))
    out << ", mask " << mask;
  if (auto fill = attention.getAs<FloatAttr>("fill")) {
    auto added = attention.getAs<BoolAttr>("fill_added");
    out << " with fill " << llvm::format("%g", fill.getValueAsDouble())
        << (added && added.getValue() ? " added" : "");
  }
  if (auto share = attention.getAs<FloatAttr>("skipped_share")) {
    auto atCall = attention.getAs<BoolAttr>("skipped_at_call");
    bool isLeast = atCall && atCall.getValue();
    out << ", tiles skipped: ";
    if (isLeast && share.getValue().isZero())
      out << "known at the call";
    else
      out << llvm::format("%.1f %%", 100 * share.getValueAsDouble()) << (isLeast ? " or more" : "");
  }
  return text;
}

/// Text about the ops that the operands come from and the ops on the scores; empty if a field for an operand is
/// missing.
static std::string printFeatures(DictionaryAttr attention) {
  std::string text;
  llvm::raw_string_ostream out(text);
  StringRef query = getText(attention, "query"), key = getText(attention, "key"),
            value = getText(attention, "value");
  if (query.empty() || key.empty() || value.empty())
    return "";
  if (query == "none" && key == "none")
    out << "scores from memory, value from " << value;
  else if (query == key && key == value)
    out << "query, key and value each from " << query;
  else
    out << "query from " << query << ", key from " << key << ", value from " << value;
  if (auto ops = attention.getAs<ArrayAttr>("score_ops")) {
    out << "; scores through ";
    llvm::interleaveComma(ops, out, [&](Attribute op) {
      auto name = dyn_cast<StringAttr>(op);
      out << (name ? name.getValue() : "?");
    });
  }
  auto isSet = [&](StringRef name) {
    auto flag = attention.getAs<BoolAttr>(name);
    return flag && flag.getValue();
  };
  if (isSet("sink"))
    out << "; a sink";
  if (isSet("returns_probabilities"))
    out << "; probabilities returned";
  return text;
}

std::string attn::printReport(DictionaryAttr report) {
  std::string text;
  llvm::raw_string_ostream out(text);
  llvm::ListSeparator newline("\n");
  for (DictionaryAttr attention : getList(report, "attentions")) {
    out << newline << printAttention(attention);
    SmallVector<DictionaryAttr> predictions = getList(attention, "predictions");
    if (!predictions.empty())
      out << newline << "  predicted Mcycles: ";
    llvm::interleaveComma(predictions, out, [&](DictionaryAttr prediction) {
      auto cost = prediction.getAs<FloatAttr>("mcycles");
      out << getText(prediction, "schedule") << " "
          << llvm::format("%.3g", cost ? cost.getValueAsDouble() : 0);
    });
    if (auto plan = attention.getAs<DictionaryAttr>("one_query")) {
      out << newline << "  with one query";
      printPlan(out, plan);
    }
    if (std::string features = printFeatures(attention); !features.empty())
      out << newline << "  " << features;
  }
  if (auto compute = report.getAs<TypeAttr>("compute"))
    out << newline << "products of f32 round their factors to " << compute.getValue();
  SmallVector<DictionaryAttr> products = getList(report, "products");
  size_t numPacked = llvm::count_if(products, [](DictionaryAttr product) {
    return getText(product, "packed") == "with the weights";
  });
  if (numPacked < products.size())
    out << newline << "products outside attentions: " << products.size() << ", of which "
        << numPacked << " have weights that are packed once";
  for (DictionaryAttr group : getList(report, "groups")) {
    int64_t numProducts = getNumber(group, "products");
    out << newline << numProducts << (numProducts == 1 ? " product" : " products")
        << " and the ops between share tasks of " << getNumber(group, "rows") << " rows: ";
    if (auto sources = group.getAs<ArrayAttr>("sources"))
      llvm::interleaveComma(sources, out, [&](Attribute source) {
        auto name = dyn_cast<StringAttr>(source);
        out << (name ? name.getValue() : "?");
      });
  }
  for (StringRef list : {"extra_work", "slow_loops", "unchecked"})
    for (DictionaryAttr entry : getList(report, list)) {
      out << newline << getText(entry, "source") << ": " << getText(entry, "reason");
      if (auto share = entry.getAs<FloatAttr>("share"))
        out << llvm::format(" (%.0f %% of the predicted time)", 100 * share.getValueAsDouble());
    }
  return text;
}
