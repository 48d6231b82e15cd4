//===- Failure.cpp - why something failed ---------------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "tools/call/Failure.h"

#include <cstdarg>
#include <cstdio>

using namespace attn;

static std::string formatList(const char *format, va_list arguments) {
  va_list again;
  va_copy(again, arguments);
  std::string text(std::vsnprintf(nullptr, 0, format, arguments), '\0');
  std::vsnprintf(text.data(), text.size() + 1, format, again);
  va_end(again);
  return text;
}

std::string attn::format(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  std::string text = formatList(format, arguments);
  va_end(arguments);
  return text;
}

Failure attn::refuse(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  std::string text = formatList(format, arguments);
  va_end(arguments);
  for (char &c : text)
    if (static_cast<unsigned char>(c) < ' ')
      c = ' ';
  return {text};
}
