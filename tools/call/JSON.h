//===- JSON.h - write JSON --------------------------------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TOOLS_CALL_JSON_H
#define ATTN_TOOLS_CALL_JSON_H

#include <string>
#include <utility>
#include <vector>

namespace attn {

/// `text` as a JSON string. Bytes that are not UTF-8 become U+FFFD.
std::string quoteJSON(const std::string &text);

/// `number` with the fewest digits, from 6 to 17, that read back as the same value; "null" if `number` is not finite,
/// because JSON has only finite numbers.
std::string toJSONNumber(double number);

/// The names and JSON values of an object, in order.
using JSONMembers = std::vector<std::pair<const char *, std::string>>;

std::string toJSONObject(const JSONMembers &members);

} // namespace attn

#endif // ATTN_TOOLS_CALL_JSON_H
