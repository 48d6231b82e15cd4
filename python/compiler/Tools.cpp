//===- Tools.cpp - all tools in one program, for the wheel -----------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   attn-tools attnc model.pt2 -o model.so
//
// All tools share one copy of LLVM and MLIR. Each tool has its own source in tools/. Tools.cmake renames the main
// functions of these sources.
//
//===----------------------------------------------------------------------===//

#include <cstdio>
#include <cstring>

int attn_call_main(int argc, char **argv);
int attn_import_main(int argc, char **argv);
int attn_lsp_server_main(int argc, char **argv);
int attn_opt_main(int argc, char **argv);
int attn_reduce_main(int argc, char **argv);
int attn_run_main(int argc, char **argv);
int attnc_main(int argc, char **argv);

static const struct {
  const char *name;
  int (*run)(int, char **);
} tools[] = {{"attn-call", attn_call_main},
             {"attn-import", attn_import_main},
             {"attn-lsp-server", attn_lsp_server_main},
             {"attn-opt", attn_opt_main},
             {"attn-reduce", attn_reduce_main},
             {"attn-run", attn_run_main},
             {"attnc", attnc_main}};

// LLVM's archives call this function of Polly when lld compiles bitcode. attn passes only machine code to lld, so this
// replacement is never called.
extern "C" void noPolly() __asm__("_Z18getPollyPluginInfov");
extern "C" void noPolly() { __builtin_trap(); }

int main(int argc, char **argv) {
  for (const auto &tool : tools)
    if (argc > 1 && !std::strcmp(argv[1], tool.name))
      return tool.run(argc - 1, argv + 1);
  std::fprintf(stderr, "attn-tools: expected the name of a tool as the first argument:");
  for (const auto &tool : tools)
    std::fprintf(stderr, " %s", tool.name);
  std::fprintf(stderr, "\n");
  return 1;
}
