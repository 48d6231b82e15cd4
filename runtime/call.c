//===- call.c - one call, and its statistics ------------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// For a call on a CPU, if the caller passes a workspace, the code of this file does not allocate memory, take a lock or
// make a system call, and all its state is on the stack.
//
//===----------------------------------------------------------------------===//

#include "internal.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

/// The arguments of a call: first the inputs, then the outputs.
typedef struct arguments {
  attnrt_symbols symbols;
  void *data[ATTNRT_MAX_ARGUMENTS];
  int64_t bytes[ATTNRT_MAX_ARGUMENTS]; ///< 0 if checks are skipped, so that nothing overlaps
} arguments;

static const attn_tensor_info *info_of(const attn_function_info *info, int32_t i) {
  return i < info->num_inputs ? &info->inputs[i] : &info->outputs[i - info->num_inputs];
}

static bool is_written(const attn_function_info *info, int32_t i) {
  return i >= info->num_inputs || info->inputs[i].in_out;
}

/// An argument that the call writes must not overlap any other argument.
static attn_status check_overlap(const attn_function_info *info, const arguments *a) {
  for (int32_t j = 0; j < info->num_inputs + info->num_outputs; ++j)
    for (int32_t i = 0; i < j; ++i) {
      int32_t written = is_written(info, j) ? j : i, other = i + j - written;
      if (is_written(info, written) &&
          attnrt_overlap(a->data[i], a->bytes[i], a->data[j], a->bytes[j]))
        return attnrt_fail(ATTN_ERROR_OVERLAP,
                           "%s: argument '%s' expected memory of its own, got memory of '%s'",
                           info->name, info_of(info, written)->name, info_of(info, other)->name);
    }
  return ATTN_OK;
}

static attn_status check_arguments(const attn_function *function, const DLTensor *const *inputs,
                                   const DLTensor *const *outputs, arguments *a) {
  const attn_function_info *info = function->info;
  memset(a->symbols.origins, 0, sizeof a->symbols.origins);
  attn_status status = attnrt_check_shapes(info, info->inputs, inputs, info->num_inputs,
                                           function->device, &a->symbols);
  if (!status)
    status = attnrt_compute_symbols(info, &a->symbols);
  if (!status)
    status = attnrt_check_shapes(info, info->outputs, outputs, info->num_outputs, function->device,
                                 &a->symbols);
  for (int32_t i = 0; i < info->num_inputs + info->num_outputs && !status; ++i) {
    const DLTensor *tensor = i < info->num_inputs ? inputs[i] : outputs[i - info->num_inputs];
    attnrt_argument argument = {info, info_of(info, i), tensor, function->device};
    status = attnrt_check_memory(&argument, &a->data[i], &a->bytes[i]);
    if (!status && i < info->num_inputs)
      status = attnrt_check_values(&argument, a->data[i], &a->symbols);
  }
  return status ? status : check_overlap(info, a);
}

/// Takes the data and the sizes of `tensors` without checks.
static void trust(const attn_tensor_info *infos, const DLTensor *const *tensors, int32_t count,
                  int64_t *symbols, void **data, int64_t *bytes) {
  for (int32_t i = 0; i < count; ++i) {
    for (int32_t axis = 0; axis < infos[i].rank; ++axis)
      if (infos[i].shape[axis].symbol >= 0)
        symbols[infos[i].shape[axis].symbol] = tensors[i]->shape[axis];
    data[i] = attnrt_data(tensors[i]);
    bytes[i] = 0;
  }
}

static void trust_arguments(const attn_function_info *info, const DLTensor *const *inputs,
                            const DLTensor *const *outputs, arguments *a) {
  int32_t n = info->num_inputs;
  trust(info->inputs, inputs, n, a->symbols.values, a->data, a->bytes);
  trust(info->outputs, outputs, info->num_outputs, a->symbols.values, a->data + n, a->bytes + n);
}

static attn_status check_weights(const attn_function *function, const attnrt_packed *weights) {
  const attn_function_info *info = function->info;
  const char *level = function->variant->level;
  if (!info->num_weights && weights)
    return attnrt_fail(ATTN_ERROR_WEIGHTS, "%s: expected no weights, got those of '%s'", info->name,
                       weights->function->name);
  if (info->num_weights && !weights)
    return attnrt_fail(ATTN_ERROR_WEIGHTS, "%s: expected weights, got null", info->name);
  // Functions may share weights if they read the same layout.
  if (weights && weights->variant->packed_hash != function->variant->packed_hash)
    return attnrt_fail(ATTN_ERROR_WEIGHTS,
                       "%s: expected weights packed for '%s' at level %s, got those for '%s' at %s",
                       info->name, info->name, level, weights->function->name,
                       weights->variant->level);
  return ATTN_OK;
}

/// Checks the options of a call on a GPU, which has no workers.
static attn_status check_stream(const attn_function_info *info, const attn_call_options *options) {
  if (options->parallel_for || options->pool || options->workers)
    return attnrt_fail(ATTN_ERROR_USAGE,
                       "%s: expected no parallel_for, pool or workers for a GPU, got at least one",
                       info->name);
  return ATTN_OK;
}

/// Checks the options of a call on a CPU. The default number of workers is that of the attn_pool, or 1 without a
/// parallel_for.
static attn_status check_workers(const attn_function_info *info, attn_call_options *options) {
  if (options->stream || options->range_errors || options->tile_counts)
    return attnrt_fail(ATTN_ERROR_USAGE,
                       "%s: expected null stream, range_errors and tile_counts for a CPU, got one "
                       "that is not null",
                       info->name);
  if (!options->parallel_for) {
    if (options->pool || options->workers > 1)
      return attnrt_fail(ATTN_ERROR_USAGE,
                         "%s: expected a parallel_for that uses the pool or workers, got null",
                         info->name);
    options->parallel_for = attnrt_serial_for;
    options->workers = 1;
    return ATTN_OK;
  }
  int64_t least = 1;
  if (options->parallel_for == attn_pool_parallel_for) {
    if (!options->pool)
      return attnrt_fail(ATTN_ERROR_USAGE, "%s: expected a pool, got null", info->name);
    least = attn_pool_workers(options->pool);
    if (!options->workers)
      options->workers = least;
  }
  if (options->workers < least)
    return attnrt_fail(ATTN_ERROR_USAGE,
                       "%s: expected workers of at least %" PRId64 ", got %" PRId64, info->name,
                       least, options->workers);
  return ATTN_OK;
}

static attn_status check_workspace(const attn_function_info *info, const arguments *a,
                                   const attn_call_options *options, int64_t needed) {
  if (options->workspace_bytes < needed)
    return attnrt_fail(ATTN_ERROR_WORKSPACE,
                       "%s: workspace expected at least %" PRId64 " bytes, got %" PRId64,
                       info->name, needed, options->workspace_bytes);
  if ((uintptr_t)options->workspace % ATTN_ALIGNMENT)
    return attnrt_fail(ATTN_ERROR_WORKSPACE, "%s: workspace expected aligned to %d bytes, got %p",
                       info->name, ATTN_ALIGNMENT, options->workspace);
  for (int32_t i = 0; i < info->num_inputs + info->num_outputs; ++i)
    if (attnrt_overlap(options->workspace, needed, a->data[i], a->bytes[i]))
      return attnrt_fail(ATTN_ERROR_OVERLAP,
                         "%s: workspace expected memory of its own, got memory of '%s'", info->name,
                         info_of(info, i)->name);
  return ATTN_OK;
}

/// The pool of counted_for(), which wraps parallel_for to count the tasks of each worker.
typedef struct counter {
  attn_parallel_for_fn parallel_for;
  void *pool;
  int64_t *worker_tasks;
} counter;

typedef struct counted_loop {
  int64_t *worker_tasks;
  attn_task_fn task;
  void *context;
} counted_loop;

static void counted_task(void *context, int64_t index, int64_t worker) {
  counted_loop *loop = context;
  ++loop->worker_tasks[worker];
  loop->task(loop->context, index, worker);
}

static void counted_for(void *pool, attn_task_fn task, void *context, int64_t count) {
  counter *c = pool;
  counted_loop loop = {c->worker_tasks, task, context};
  c->parallel_for(c->pool, counted_task, &loop, count);
}

/// Runs the kernel. The workspace consists of the tile counts of all workers, the workspace of the
/// call and the workspace of each worker. The worker parts come last, so that a kernel that
/// overruns them does not overwrite data of the runtime.
static void run(const attn_function *function, const attnrt_packed *weights, const arguments *a,
                const attn_call_options *options, const attn_workspace *size, char *workspace,
                attn_statistics *statistics) {
  int64_t stride = size->per_worker - (int64_t)sizeof(attn_tile_counts);
  int64_t *worker_tasks = statistics->worker_tasks;
  attn_tile_counts *tiles = (attn_tile_counts *)workspace;
  workspace += (size_t)options->workers * sizeof *tiles;
  char *tasks = workspace + size->per_call;
  counter c = {options->parallel_for, options->pool, worker_tasks};
  attn_kernel_call call = {.inputs = a->data,
                           .outputs = a->data + function->info->num_inputs,
                           .weights = weights ? weights->data : NULL,
                           .dims = a->symbols.values,
                           .workspace = workspace,
                           .task_workspace = tasks,
                           .task_stride = stride,
                           .parallel_for = worker_tasks ? counted_for : options->parallel_for,
                           .pool = worker_tasks ? &c : options->pool,
                           .tiles = tiles};
  if (worker_tasks)
    memset(worker_tasks, 0, (size_t)options->workers * sizeof *worker_tasks);
  memset(tiles, 0, (size_t)options->workers * sizeof *tiles);
  function->variant->run(&call);
  statistics->tiles_run = statistics->tiles_skipped = 0;
  for (int64_t worker = 0; worker < options->workers; ++worker) {
    statistics->tiles_run += tiles[worker].run;
    statistics->tiles_skipped += tiles[worker].skipped;
  }
}

/// Runs the kernels of a function for GPUs.
static attn_status run_on_gpu(const attn_function *function, const attnrt_packed *weights,
                              const arguments *a, const attn_call_options *options,
                              const attn_workspace *size, attn_statistics *statistics) {
  attn_kernel_call call = {.inputs = a->data,
                           .outputs = a->data + function->info->num_inputs,
                           .dims = a->symbols.values,
                           .workspace = options->workspace,
                           .tiles = options->tile_counts};
  statistics->tiles_run = statistics->tiles_skipped = 0; // the kernels count later, in tile_counts
  return attnrt_cuda_run(function, weights, options, size->total, &call);
}

static int64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

/// Makes all checks of a call. Sets the defaults of `options`, and fills `a` and `size`.
static attn_status prepare(const attn_function *function, const attnrt_packed *weights,
                           const DLTensor *const *inputs, int32_t num_inputs,
                           const DLTensor *const *outputs, int32_t num_outputs,
                           attn_call_options *options, arguments *a, attn_workspace *size) {
  const attn_function_info *info = function->info;
  attn_status status = function->device.device_type == kDLCPU ? check_workers(info, options)
                                                              : check_stream(info, options);
  if (!status)
    status = check_weights(function, weights);
  if (!status)
    status = attnrt_check_count(info, "inputs", info->num_inputs, num_inputs, inputs);
  if (!status)
    status = attnrt_check_count(info, "outputs", info->num_outputs, num_outputs, outputs);
  if (status)
    return status;
  if (options->skip_checks)
    trust_arguments(info, inputs, outputs, a);
  else
    status = check_arguments(function, inputs, outputs, a);
  if (!status)
    status = attnrt_size_workspace(function, a->symbols.values, options->workers, size);
  if (!status && options->workspace)
    status = check_workspace(info, a, options, size->total);
  return status;
}

static attn_status call(attn_function *function, const attnrt_packed *weights,
                        const DLTensor *const *inputs, int32_t num_inputs,
                        const DLTensor *const *outputs, int32_t num_outputs,
                        attn_call_options *options) {
  int64_t start = options->statistics ? now() : 0;
  attn_statistics statistics;
  arguments a;
  attn_workspace size;
  attn_status status =
      attnrt_read("attn_statistics", options->statistics, &statistics, sizeof statistics);
  if (!status)
    status =
        prepare(function, weights, inputs, num_inputs, outputs, num_outputs, options, &a, &size);
  if (status)
    return status;

  attnrt_block *block = NULL;
  bool on_gpu = function->device.device_type != kDLCPU;
  if (on_gpu)
    status = run_on_gpu(function, weights, &a, options, &size, &statistics);
  if (status)
    return status;
  if (!on_gpu && !options->workspace && !(block = attnrt_take_block(function, size.total)))
    return attnrt_fail(ATTN_ERROR_RESOURCE, "%s: expected %" PRId64 " bytes of workspace, got none",
                       function->info->name, size.total);
  if (!on_gpu)
    run(function, weights, &a, options, &size, block ? block->data : options->workspace,
        &statistics);
  if (block)
    attnrt_keep_block(function, block);

  if (options->statistics) {
    statistics.nanoseconds = now() - start;
    statistics.workspace_bytes = size.total;
    statistics.level = function->variant->level;
    statistics.schedules = function->variant->schedules;
    attnrt_write(options->statistics, &statistics, sizeof statistics);
  }
  return ATTN_OK;
}

attn_status attn_call(attn_function *function, const attn_weights *weights,
                      const DLTensor *const *inputs, int32_t num_inputs,
                      const DLTensor *const *outputs, int32_t num_outputs,
                      const attn_call_options *given) {
  if (!function)
    return attnrt_fail(ATTN_ERROR_USAGE, "attn_call: expected a function, got null");
  attn_call_options options;
  attn_status status = attnrt_read("attn_call_options", given, &options, sizeof options);
  if (status)
    return status;
  attnrt_set_user_data(options.user_data);
  attnrt_use use = attnrt_begin_use(weights);
  status = call(function, use.packed, inputs, num_inputs, outputs, num_outputs, &options);
  attnrt_end_use(use);
  attnrt_set_user_data(NULL);
  return status;
}
