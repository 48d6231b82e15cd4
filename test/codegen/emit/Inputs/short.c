/* Calls the attention layer of examples/ with an input whose memory is argv[2] elements too short. The runtime cannot
   detect this. */
#include "attn.h"

#include <stdio.h>
#include <stdlib.h>

static void check(attn_status status) {
  if (status) {
    fprintf(stderr, "%s\n", attn_last_error());
    exit(2);
  }
}

int main(int argc, char **argv) {
  attn_library *library;
  attn_function *layer;
  attn_weights *weights;
  if (argc != 3)
    return 2;
  check(attn_library_load(argv[1], &library));
  check(attn_function_create(library, "forward", NULL, &layer));
  check(attn_weights_create_embedded(layer, &weights));
  int64_t shape[] = {2, 14, 64}, count = 2 * 14 * 64;
  float *x = calloc(count - atoi(argv[2]), sizeof *x), *y = calloc(count, sizeof *y);
  DLTensor in = {x, {kDLCPU, 0}, 3, {kDLFloat, 32, 1}, shape, NULL, 0}, out = in;
  out.data = y;
  const DLTensor *inputs[] = {&in}, *outputs[] = {&out};
  check(attn_call(layer, weights, inputs, 1, outputs, 1, NULL));
  puts("done");
  attn_weights_release(weights);
  attn_function_release(layer);
  attn_library_release(library);
  free(x);
  free(y);
}
