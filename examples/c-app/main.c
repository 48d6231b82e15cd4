//===- main.c - call compiled attention from C ------------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   c-app [LENGTH]
//
// Computes attention over LENGTH positions with the function of attention.mlir, which is linked
// into the program.
//
//===----------------------------------------------------------------------===//

#include "attention.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { HEADS = 4, WIDTH = 64, LONGEST = 1024 };
static float q[HEADS * LONGEST * WIDTH], k[HEADS * LONGEST * WIDTH];
static float v[HEADS * LONGEST * WIDTH], out[HEADS * LONGEST * WIDTH];

int main(int argc, char **argv) {
  long length = argc > 1 ? atol(argv[1]) : 100;
  for (int i = 0; i < HEADS * LONGEST * WIDTH; ++i) {
    q[i] = (float)(i % 7) / 7;
    k[i] = (float)(i % 5) / 5;
    v[i] = (float)(i % 3) / 3;
  }

  attn_library *library = NULL;
  attn_function *attend = NULL;
  // Each function returns 0 or the status of an error. A call that fails writes no result.
  int failed = attn_library_from_query(attn_query_attention, &library) ||
               attn_function_create(library, "attend", NULL, &attend) ||
               attention_attend(attend, length, q, k, v, out, NULL);
  if (failed) {
    fprintf(stderr, "c-app: %s\n", attn_last_error());
  } else {
    // Query 0 sees only key 0, so its result is the value at position 0.
    float error = 0;
    for (int i = 0; length > 0 && i < WIDTH; ++i)
      if (fabsf(out[i] - v[i]) > error)
        error = fabsf(out[i] - v[i]);
    printf("%ld positions with code for %s, largest error in the first row %.0e\n", length,
           attn_function_level(attend), error);
  }
  attn_function_release(attend);
  attn_library_release(library);
  return failed;
}
