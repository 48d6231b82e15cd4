/* Two threads call the attention layer of examples/ with argv[2] outputs: each with its own, or both with the same. */
#include "attn.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static attn_function *layer;
static attn_weights *weights;
static float x[2 * 14 * 64], y[2][2 * 14 * 64];

static void check(attn_status status) {
  if (status) {
    fprintf(stderr, "%s\n", attn_last_error());
    exit(2);
  }
}

static void *call(void *output) {
  int64_t shape[] = {2, 14, 64};
  DLTensor in = {x, {kDLCPU, 0}, 3, {kDLFloat, 32, 1}, shape, NULL, 0}, out = in;
  out.data = output;
  const DLTensor *inputs[] = {&in}, *outputs[] = {&out};
  attn_workspace size = {.size = sizeof size};
  check(attn_workspace_size(layer, inputs, 1, 1, &size));
  /* Each call has its own workspace: a workspace that the calls share would order their writes and hide the race. */
  void *workspace = aligned_alloc(64, size.total);
  attn_call_options options = {
      .size = sizeof options, .workspace = workspace, .workspace_bytes = size.total};
  check(attn_call(layer, weights, inputs, 1, outputs, 1, &options));
  free(workspace);
  return NULL;
}

int main(int argc, char **argv) {
  attn_library *library;
  pthread_t threads[2];
  if (argc != 3)
    return 2;
  check(attn_library_load(argv[1], &library));
  check(attn_function_create(library, "forward", NULL, &layer));
  check(attn_weights_create_embedded(layer, &weights));
  int outputs = atoi(argv[2]);
  for (int i = 0; i < 2; ++i)
    pthread_create(&threads[i], NULL, call, y[i % outputs]);
  for (int i = 0; i < 2; ++i)
    pthread_join(threads[i], NULL);
  puts("done");
  attn_weights_release(weights);
  attn_function_release(layer);
  attn_library_release(library);
}
