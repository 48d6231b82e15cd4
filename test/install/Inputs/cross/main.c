// Calls `forward` of test/runtime/kernel.c with a length within the sequence, and then with a length beyond it.
#include <attn.h>

#include <stdio.h>

const struct attn_library_info *attn_query_kernel(void);

static DLTensor tensor(void *data, uint8_t code, int32_t rank, int64_t *shape) {
  return (DLTensor){data, {kDLCPU, 0}, rank, {code, 32, 1}, shape, NULL, 0};
}

int main(void) {
  float scale[] = {1, 2, 3, 4}, bias[] = {10, 20, 30, 40};
  float x[8] = {1, 1, 1, 1, 1, 1, 1, 1}, residual[8] = {0}, y[8], total[1];
  int32_t lengths[] = {1};
  int64_t bsc[] = {1, 2, 4}, b[] = {1}, c[] = {4};

  attn_library *library = NULL;
  attn_function *forward = NULL;
  attn_weights *weights = NULL;
  attn_pool *pool = NULL;
  const char *names[] = {"scale", "bias"};
  DLTensor weight[] = {tensor(scale, kDLFloat, 1, c), tensor(bias, kDLFloat, 1, c)};
  const DLTensor *tensors[] = {&weight[0], &weight[1]};
  DLTensor input[] = {tensor(x, kDLFloat, 3, bsc), tensor(residual, kDLFloat, 3, bsc),
                      tensor(lengths, kDLInt, 1, b)};
  const DLTensor *inputs[] = {&input[0], &input[1], &input[2]};
  DLTensor output[] = {tensor(y, kDLFloat, 3, bsc), tensor(total, kDLFloat, 1, b)};
  const DLTensor *outputs[] = {&output[0], &output[1]};
  attn_call_options options = {.size = sizeof options, .parallel_for = attn_pool_parallel_for};

  int failed = attn_library_from_query(attn_query_kernel, &library) ||
               attn_function_create(library, "forward", NULL, &forward) ||
               attn_weights_create(forward, names, tensors, 2, &weights) ||
               attn_pool_create(2, &pool);
  options.pool = pool;
  failed = failed || attn_call(forward, weights, inputs, 3, outputs, 2, &options);
  if (!failed)
    printf("%s: %g %g %g %g, %g %g %g %g, total %g\n", attn_function_level(forward), y[0], y[1],
           y[2], y[3], y[4], y[5], y[6], y[7], total[0]);
  lengths[0] = 3;
  failed = failed || attn_call(forward, weights, inputs, 3, outputs, 2, &options);
  if (failed)
    fprintf(stderr, "cross: %s\n", attn_last_error());
  attn_pool_release(pool);
  attn_weights_release(weights);
  attn_function_release(forward);
  attn_library_release(library);
  return failed;
}
