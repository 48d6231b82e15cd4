// This file is linked into every tool of the preset asan. LLVM's allocators poison memory that they have not handed
// out. They do so in inline functions, which are instrumented in these tools but not in libLLVM: memory that a tool has
// poisoned would be handed out by libLLVM without being unpoisoned.

extern "C" const char *__asan_default_options() { return "allow_user_poisoning=0"; }
