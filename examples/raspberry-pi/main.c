//===- main.c - a program for a small machine -------------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// Calls the layer a thousand times, and prints the ISA level of its code, a checksum of the result, and the median time
// of a call. The program contains the weights.
//
//===----------------------------------------------------------------------===//

#include "mha.h"

#include <attn.h>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { kCount = 2 * 14 * 64, kCalls = 1000 };

static void check(attn_status status) {
  if (status == ATTN_OK)
    return;
  fprintf(stderr, "raspberry-pi: %s\n", attn_last_error());
  exit(1);
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static int compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

int main(void) {
  attn_library *library;
  attn_function *forward;
  attn_weights *weights;
  check(attn_library_from_query(attn_query_mha, &library));
  check(attn_function_create(library, "forward", NULL, &forward));
  check(attn_weights_create_embedded(forward, &weights));

  static float x[kCount], out[kCount];
  static double seconds[kCalls];
  for (int i = 0; i < kCount; ++i)
    x[i] = (float)(i % 17 - 8) / 8;
  for (int call = 0; call < kCalls; ++call) {
    double start = now();
    check(mha_forward(forward, weights, x, out, NULL));
    seconds[call] = now() - start;
  }
  double sum = 0;
  for (int i = 0; i < kCount; ++i)
    sum += out[i] * (double)(i % 5 - 2);
  qsort(seconds, kCalls, sizeof *seconds, compare);
  printf("level %s, checksum %.4f, median %.3f ms\n", attn_function_level(forward), sum, 1e3 * seconds[kCalls / 2]);

  attn_weights_release(weights);
  attn_function_release(forward);
  attn_library_release(library);
  return 0;
}
