//===- JSON.cpp - write JSON ----------------------------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "tools/call/JSON.h"
#include "tools/call/Failure.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

using namespace attn;

/// The number of bytes of the UTF-8 character at `i`, or 0 if there is no such character.
static size_t getCharacterLength(const std::string &text, size_t i) {
  auto byte = [&](size_t j) -> unsigned { return j < text.size() ? (unsigned char)text[j] : 0; };
  unsigned lead = byte(i), second = byte(i + 1);
  size_t length = lead < 0x80                   ? 1
                  : lead >= 0xc2 && lead < 0xe0 ? 2
                  : lead >= 0xe0 && lead < 0xf0 ? 3
                  : lead >= 0xf0 && lead < 0xf5 ? 4
                                                : 0;
  for (size_t j = 1; j < length; ++j)
    if ((byte(i + j) & 0xc0) != 0x80)
      return 0;
  // UTF-8 has no overlong forms, no surrogates, and no code points above U+10FFFF.
  bool isWrong = (lead == 0xe0 && second < 0xa0) || (lead == 0xed && second >= 0xa0) ||
                 (lead == 0xf0 && second < 0x90) || (lead == 0xf4 && second >= 0x90);
  return isWrong ? 0 : length;
}

std::string attn::quoteJSON(const std::string &text) {
  std::string quoted = "\"";
  for (size_t i = 0; i < text.size();) {
    size_t length = getCharacterLength(text, i);
    unsigned char c = text[i];
    if (length == 0)
      quoted += "\\ufffd";
    else if (c == '"' || c == '\\')
      quoted += {'\\', char(c)};
    else if (c < ' ')
      quoted += format("\\u%04x", c);
    else
      quoted += text.substr(i, length);
    i += std::max<size_t>(length, 1);
  }
  return quoted + "\"";
}

std::string attn::toJSONNumber(double number) {
  if (!std::isfinite(number))
    return "null";
  for (int digits = 6;; ++digits)
    if (std::string text = format("%.*g", digits, number);
        digits == 17 || std::strtod(text.c_str(), nullptr) == number)
      return text;
}

std::string attn::toJSONObject(const JSONMembers &members) {
  std::string object;
  for (const auto &[name, value] : members)
    object += format("%s\"%s\":%s", object.empty() ? "" : ",", name, value.c_str());
  return "{" + object + "}";
}
