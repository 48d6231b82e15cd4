//===- workspace.c - size and reuse of the scratch memory of a call -------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "internal.h"

#include <inttypes.h>

attn_status attnrt_size_workspace(const attn_function *function, const int64_t *dims,
                                  int64_t workers, attn_workspace *size) {
  int64_t bytes[2], all_workers;
  function->variant->workspace(dims, bytes);
  bool on_gpu = function->device.device_type != kDLCPU;
  const uint64_t most = INT64_MAX - ATTN_ALIGNMENT - sizeof(attn_tile_counts);
  bool fits = (uint64_t)bytes[0] <= most && (uint64_t)bytes[1] <= most;
  if (fits) {
    size->per_call = attnrt_round_up(bytes[0]);
    // Tasks on a GPU need no workspace of their own: their temporaries are in registers and shared memory.
    size->per_worker = on_gpu ? 0 : attnrt_round_up(bytes[1]) + (int64_t)sizeof(attn_tile_counts);
    fits = !__builtin_mul_overflow(workers, size->per_worker, &all_workers) &&
           !__builtin_add_overflow(size->per_call, all_workers, &size->total);
  }
  if (!fits)
    return attnrt_fail(ATTN_ERROR_WORKSPACE,
                       "%s: expected a workspace of less than 2^63 bytes, got more",
                       function->info->name);
  return ATTN_OK;
}

attn_status attn_workspace_size(const attn_function *function, const DLTensor *const *inputs,
                                int32_t num_inputs, int64_t workers, attn_workspace *workspace) {
  attnrt_symbols symbols;
  attn_workspace known;
  attn_status status =
      attnrt_bind_inputs("attn_workspace_size", function, inputs, num_inputs, &symbols);
  if (!status)
    status = attnrt_read("attn_workspace", workspace, &known, sizeof known);
  if (!status && workers < 1)
    status = attnrt_fail(ATTN_ERROR_USAGE,
                         "attn_workspace_size: expected at least 1 worker, got %" PRId64, workers);
  if (!status)
    status = attnrt_size_workspace(function, symbols.values, workers, &known);
  if (!status)
    attnrt_write(workspace, &known, sizeof known);
  return status;
}

void attnrt_free_block(attnrt_block *block) {
  if (block)
    attnrt_free(block, sizeof *block + (size_t)block->bytes, ATTN_ALIGNMENT);
}

attnrt_block *attnrt_take_block(attn_function *function, int64_t bytes) {
  attnrt_block *block = atomic_exchange(&function->spare, NULL);
  if (block && block->bytes >= bytes)
    return block;
  attnrt_free_block(block);
  block = attnrt_allocate(sizeof *block + (size_t)bytes, ATTN_ALIGNMENT);
  if (block)
    block->bytes = bytes;
  return block;
}

void attnrt_keep_block(attn_function *function, attnrt_block *block) {
  attnrt_free_block(atomic_exchange(&function->spare, block));
}
