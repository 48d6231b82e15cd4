// Linked into every tool of the preset asan. LLVM's allocators poison what they have not handed out, in inline
// functions that are instrumented here and in libLLVM are not: what the one poisons the other hands out.

extern "C" const char *__asan_default_options() { return "allow_user_poisoning=0"; }
