//===- Failure.h - why something failed -------------------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TOOLS_CALL_FAILURE_H
#define ATTN_TOOLS_CALL_FAILURE_H

#include <string>

namespace attn {

/// The result of a function that can fail. A Failure is true if the function failed; `message` is then one sentence
/// with the reason.
struct [[nodiscard]] Failure {
  std::string message;
  explicit operator bool() const { return !message.empty(); }
};

/// The text that printf would print.
[[gnu::format(printf, 1, 2)]] std::string format(const char *format, ...);

/// Returns a failure whose message is what printf would print. Control characters become spaces: a message is one line,
/// and the names in it may come from hostile files.
[[gnu::format(printf, 1, 2)]] Failure refuse(const char *format, ...);

/// The sizes as a list in brackets: "[2, 3]".
template <typename Sizes> std::string toText(const Sizes &sizes) {
  std::string text = "[";
  for (auto size : sizes)
    text += (text.size() > 1 ? ", " : "") + std::to_string(size);
  return text + "]";
}

} // namespace attn

#endif // ATTN_TOOLS_CALL_FAILURE_H
