//===- weights.c - named tensors, packed once -----------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "internal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/// Puts the tensors in the order of the signature.
static attn_status match_names(const attn_function_info *info, const char *const *names,
                               const DLTensor *const *tensors, int32_t count,
                               const DLTensor **ordered) {
  for (int32_t i = 0; i < count; ++i) {
    if (!names[i] || !tensors[i])
      return attnrt_fail(ATTN_ERROR_NULL, "%s: weight %d expected a name and a tensor, got null",
                         info->name, i);
    int32_t w = 0;
    while (w < info->num_weights && strcmp(info->weights[w].name, names[i]))
      ++w;
    if (w == info->num_weights)
      return attnrt_fail(ATTN_ERROR_NAME, "%s: expected weights of this function, got '%s'",
                         info->name, names[i]);
    if (ordered[w])
      return attnrt_fail(ATTN_ERROR_NAME, "%s: weight '%s' expected once, got twice", info->name,
                         names[i]);
    ordered[w] = tensors[i];
  }
  for (int32_t w = 0; w < info->num_weights; ++w)
    if (!ordered[w])
      return attnrt_fail(ATTN_ERROR_COUNT, "%s: weight '%s' expected a tensor, got none",
                         info->name, info->weights[w].name);
  return ATTN_OK;
}

static attn_status check_tensors(const attn_function_info *info, const DLTensor *const *tensors,
                                 void **data) {
  attnrt_symbols symbols = {0};
  attn_status status =
      attnrt_check_shapes(info, info->weights, tensors, info->num_weights, &symbols);
  for (int32_t w = 0; w < info->num_weights && !status; ++w) {
    attnrt_argument weight = {info, &info->weights[w], tensors[w]};
    int64_t bytes;
    status = attnrt_check_memory(&weight, &data[w], &bytes);
    if (!status)
      status = attnrt_check_values(&weight, data[w], &symbols);
  }
  return status;
}

static attn_status pack(const attn_function *function, void *const *data, attn_weights **weights) {
  const attn_variant_info *variant = function->variant;
  // At least a line: aligned_alloc(.., 0) may give null.
  int64_t bytes = attnrt_round_up(variant->packed_bytes ? variant->packed_bytes : 1);
  attn_weights *created = malloc(sizeof *created);
  void *packed = aligned_alloc(ATTN_ALIGNMENT, bytes);
  if (!created || !packed) {
    free(created);
    free(packed);
    return attnrt_fail(ATTN_ERROR_RESOURCE,
                       "%s: expected %" PRId64 " bytes of memory for weights, got none",
                       function->info->name, bytes);
  }
  variant->pack((const void *const *)data, packed);
  created->library = attnrt_retain(function->library);
  created->function = function->info;
  created->variant = variant;
  created->packed = packed;
  *weights = created;
  return ATTN_OK;
}

attn_status attn_weights_create(const attn_function *function, const char *const *names,
                                const DLTensor *const *tensors, int32_t count,
                                attn_weights **weights) {
  if (!function || !weights || (count > 0 && (!names || !tensors)))
    return attnrt_fail(ATTN_ERROR_USAGE, "attn_weights_create: expected a function, names, tensors "
                                         "and a place for the weights, got null");
  const attn_function_info *info = function->info;
  if (!info->num_weights)
    return attnrt_fail(ATTN_ERROR_WEIGHTS, "%s: expected a function with weights, got one without",
                       info->name);
  const DLTensor **ordered = calloc(info->num_weights, sizeof *ordered);
  void **data = calloc(info->num_weights, sizeof *data);
  attn_status status;
  if (!ordered || !data)
    status = attnrt_fail(ATTN_ERROR_RESOURCE, "%s: expected memory for %d pointers, got none",
                         info->name, 2 * info->num_weights);
  else if (!(status = match_names(info, names, tensors, count, ordered)) &&
           !(status = check_tensors(info, ordered, data)))
    status = pack(function, data, weights);
  free(ordered);
  free(data);
  return status;
}

void attn_weights_release(attn_weights *weights) {
  if (!weights)
    return;
  free(weights->packed);
  attn_library_release(weights->library);
  free(weights);
}
