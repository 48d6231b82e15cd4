//===- cpu.h - the features and the number of CPUs of this process -*- C -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// For the runtime, and for the compiler, which runs on the CPU that `--target=native` names. Not installed.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_RUNTIME_CPU_H
#define ATTN_RUNTIME_CPU_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Returns the first feature that this CPU or its operating system lacks, and sets `length` to the length of the
/// feature's name. Returns null if none is missing. `features` holds names with one space between them. The runtime
/// counts a feature whose name it does not recognise as missing.
const char *attnrt_cpu_lacks(const char *features, size_t *length);

int64_t attnrt_cpu_count(void); ///< number of CPUs that this process may use at a time

#ifdef __cplusplus
}
#endif

#endif // ATTN_RUNTIME_CPU_H
