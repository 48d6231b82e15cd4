//===- Json.h - parse JSON of untrusted files --------------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_SUPPORT_JSON_H
#define ATTN_SUPPORT_JSON_H

#include "llvm/Support/JSON.h"

namespace attn {

/// Parses JSON with a limit on nesting that no file of attn or torch reaches. The parser of LLVM is
/// recursive, so a long text of opening brackets would overflow the stack.
inline llvm::Expected<llvm::json::Value> parseJSON(llvm::StringRef text) {
  constexpr unsigned kMaxNesting = 128;
  unsigned depth = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (quoted && c == '\\')
      ++i;
    else if (c == '"')
      quoted = !quoted;
    else if (!quoted && (c == '[' || c == '{') && ++depth > kMaxNesting)
      return llvm::createStringError("expected JSON nested at most " + llvm::Twine(kMaxNesting) +
                                     " deep");
    else if (!quoted && (c == ']' || c == '}') && depth > 0)
      --depth;
  }
  llvm::Expected<llvm::json::Value> value = llvm::json::parse(text);
  if (!value)
    return llvm::createStringError("expected JSON, got " + llvm::toString(value.takeError()));
  return value;
}

} // namespace attn

#endif // ATTN_SUPPORT_JSON_H
