/* A library with the function y = x of 5 floats. The kernel ends with the statement STRAY, such as a forbidden access,
   which the command line of the compiler defines. */
#include "attn_kernel.h"

#include <stddef.h>

static void run(const attn_kernel_call *call) {
  const float *x = call->inputs[0];
  float *y = call->outputs[0];
  char *workspace = call->workspace;
  workspace[63] = 0;
  for (int i = 0; i < 5; ++i)
    y[i] = x[i];
  STRAY;
}
static void workspace(const int64_t *dims, int64_t bytes[2]) { bytes[0] = 64, bytes[1] = 0 * (dims != NULL); }

static const attn_dim_info shape[] = {{5, -1, 0}};
static const attn_tensor_info x = {"x", shape, 1, 2, 32, 0, 0, {0, -1, 0}}, y = {"y", shape, 1, 2, 32, 0, 0, {0, -1, 0}};
#if defined __x86_64__
#define LEVEL "x86-64"
#else
#define LEVEL "aarch64"
#endif
static const attn_variant_info variant = {LEVEL, "", run, workspace, NULL, 0, 0, "", "", "", 1, 0, NULL, NULL};
static const attn_function_info f = {"f", 1, 1, 0, 0, 1, 0, &x, &y, NULL, NULL, &variant, NULL};
static const attn_library_info library = {ATTN_ABI_VERSION, sizeof(attn_library_info), "stray", "", "{}", 1, 0, &f};
const attn_library_info *attn_query(void) { return &library; }
