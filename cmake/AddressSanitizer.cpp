// In a build with AddressSanitizer, this file is linked into every program that attn_tool() defines. Inline functions
// in LLVM's headers poison memory that LLVM's allocators have not handed out. The sanitizer instruments these functions
// in the programs, but not in libLLVM. So libLLVM could hand out memory that a program has poisoned, without
// unpoisoning it, and the sanitizer would report valid accesses as errors.

extern "C" const char *__asan_default_options() { return "allow_user_poisoning=0"; }
