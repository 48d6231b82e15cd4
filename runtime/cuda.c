//===- cuda.c - kernels on NVIDIA GPUs, through the driver library --------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// The driver, libcuda.so.1, is opened when a function for a GPU is first created, so the runtime builds and runs
// without it. The first call in a CUDA context loads the code into the context, and the first call with given packed
// weights copies the weights there. Any other call only adds work to its stream. Tensor maps, which kernels get by
// value, are encoded when an argument changes.
//
//===----------------------------------------------------------------------===//

#include "internal.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

//===-- The driver --------------------------------------------------------===//

// The types and numbers of the driver's ABI.
typedef int cu_result; ///< 0: success
typedef uint64_t cu_pointer;
enum {
  CU_MULTIPROCESSORS = 16,
  CU_CAPABILITY_MAJOR = 75,
  CU_CAPABILITY_MINOR = 76,
  CU_FUNCTION_SHARED_BYTES = 8,
  // These numbers are for tensor maps. The type of elements matters only for the value of elements outside of a tensor,
  // which is 0 here.
  CU_TENSOR_UINT8 = 0,
  CU_TENSOR_UINT16 = 1,
  CU_TENSOR_UINT32 = 2,
  CU_SWIZZLE_128_BYTES = 3,
  CU_L2_PROMOTION_256_BYTES = 3,
};
/// The CUtensorMap of the driver.
typedef struct cu_tensor_map {
  _Alignas(64) uint64_t opaque[16];
} cu_tensor_map;

/// The functions of the driver that the runtime calls, by the names of their symbols.
#define DRIVER_FUNCTIONS(X)                                                                        \
  X(init, "cuInit", (unsigned flags))                                                              \
  X(error_name, "cuGetErrorName", (cu_result error, const char **name))                            \
  X(device, "cuDeviceGet", (int *device, int number))                                              \
  X(attribute, "cuDeviceGetAttribute", (int *value, int attribute, int device))                    \
  X(context, "cuCtxGetCurrent", (void **context))                                                  \
  X(device_of_context, "cuCtxGetDevice", (int *device))                                            \
  X(context_id, "cuCtxGetId", (void *context, unsigned long long *id))                             \
  X(push, "cuCtxPushCurrent_v2", (void *context))                                                  \
  X(pop, "cuCtxPopCurrent_v2", (void **context))                                                   \
  X(load, "cuModuleLoadData", (void **module, const void *image))                                  \
  X(unload, "cuModuleUnload", (void *module))                                                      \
  X(get_function, "cuModuleGetFunction", (void **function, void *module, const char *name))        \
  X(set_attribute, "cuFuncSetAttribute", (void *function, int attribute, int value))               \
  X(launch, "cuLaunchKernel",                                                                      \
    (void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,          \
     unsigned block_y, unsigned block_z, unsigned shared_bytes, void *stream, void **arguments,    \
     void **extra))                                                                                \
  X(encode, "cuTensorMapEncodeTiled",                                                              \
    (cu_tensor_map * map, int type, uint32_t rank, void *address, const uint64_t *sizes,           \
     const uint64_t *strides, const uint32_t *box, const uint32_t *steps, int interleave,          \
     int swizzle, int promotion, int fill))                                                        \
  X(allocate, "cuMemAlloc_v2", (cu_pointer * memory, size_t bytes))                                \
  X(release, "cuMemFree_v2", (cu_pointer memory))                                                  \
  X(copy_in, "cuMemcpyHtoDAsync_v2",                                                               \
    (cu_pointer to, const void *from, size_t bytes, void *stream))                                 \
  X(wait, "cuStreamSynchronize", (void *stream))                                                   \
  X(allocate_async, "cuMemAllocAsync", (cu_pointer * memory, size_t bytes, void *stream))          \
  X(release_async, "cuMemFreeAsync", (cu_pointer memory, void *stream))

#define DECLARE(member, symbol, parameters) cu_result(*member) parameters;
static struct driver {
  DRIVER_FUNCTIONS(DECLARE)
} cu;

static pthread_once_t opened = PTHREAD_ONCE_INIT;
static char absence[256]; ///< why there is no driver; empty if there is one

static void *find_symbol(void *library, const char *name) {
  void *symbol = dlsym(library, name);
  if (!symbol && !*absence)
    snprintf(absence, sizeof absence, "libcuda.so.1 has no '%s'", name);
  return symbol;
}

static const char *name_of(cu_result error) {
  const char *name = NULL;
  return cu.error_name(error, &name) == 0 && name ? name : "an error without a name";
}

static void open_driver(void) {
  void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    snprintf(absence, sizeof absence, "%s", dlerror());
    return;
  }
#define FIND(member, symbol, parameters) *(void **)&cu.member = find_symbol(library, symbol);
  DRIVER_FUNCTIONS(FIND)
  cu_result error = *absence ? 0 : cu.init(0);
  if (error)
    snprintf(absence, sizeof absence, "cuInit failed with %s", name_of(error));
}

/// Returns why the driver cannot be used, or null if it can.
static const char *no_driver(void) {
  pthread_once(&opened, open_driver);
  return *absence ? absence : NULL;
}

static attn_status fail(const attn_function_info *info, const char *action, cu_result error) {
  return attnrt_fail(ATTN_ERROR_DRIVER, "%s: expected the driver to %s, got %s", info->name, action,
                     name_of(error));
}

attn_status attnrt_cuda_check(const attn_function_info *info, const attn_variant_info *variant,
                              int device_id, bool *runs) {
  const char *reason = no_driver();
  if (reason)
    return attnrt_fail(ATTN_ERROR_DRIVER, "%s: expected a GPU driver, got: %s", info->name, reason);
  int device, major = 0, minor = 0;
  cu_result error = cu.device(&device, device_id);
  if (!error)
    error = cu.attribute(&major, CU_CAPABILITY_MAJOR, device);
  if (!error)
    error = cu.attribute(&minor, CU_CAPABILITY_MINOR, device);
  if (error)
    return fail(info, "describe the device", error);
  // The feature is "sm_80" or "sm_90a". If it ends in a letter, the code runs on GPUs of this capability only.
  char *end;
  long needed = strtol(variant->features + strcspn(variant->features, "0123456789"), &end, 10),
       capability = 10 * major + minor;
  *runs = *end ? capability == needed : capability >= needed;
  return ATTN_OK;
}

//===-- Code and weights in a context -------------------------------------===//

/// A tensor map, and the address, sizes and strides that it describes. Calls with the same arguments encode it once.
typedef struct cached_map {
  cu_tensor_map map;
  const void *address; ///< null: nothing is cached
  int64_t sizes[ATTN_TENSOR_MAP_RANK], strides[ATTN_TENSOR_MAP_RANK];
} cached_map;

/// A kernel in a context.
typedef struct loaded_kernel {
  void *function;
  cached_map *maps; ///< one for each tensor map of the kernel
} loaded_kernel;

/// The parameter of the kernel that checks ranges, range_check_ptx. Thread i of the kernel checks that value i lies in
/// [-below, span - below].
struct range_check {
  const void *data;
  int64_t count, below, span;
  uint32_t *word;
  uint32_t bit, element_bytes; ///< 1, 2, 4 or 8
  /// Shifts by this number of bits to the left and to the right extend the sign of a value to 64 bits.
  uint32_t shift;
};
#define THREADS_OF_CHECK 256
static const char range_check_ptx[] =
    ".version 7.0\n.target sm_80\n.address_size 64\n"
    ".visible .entry attn_check(\n.param .align 8 .b8 attn_check_param_0[56]\n)\n{\n"
    ".reg .pred %p<4>;\n.reg .b16 %rs<2>;\n.reg .b32 %r<6>;\n.reg .b64 %rd<9>;\n"
    "ld.param.b64 %rd1, [attn_check_param_0];\n"
    "ld.param.b64 %rd2, [attn_check_param_0+8];\n"
    "ld.param.b64 %rd8, [attn_check_param_0+16];\n"
    "ld.param.b64 %rd3, [attn_check_param_0+24];\n"
    "ld.param.b64 %rd4, [attn_check_param_0+32];\n"
    "ld.param.b32 %r1, [attn_check_param_0+40];\n"
    "ld.param.b32 %r2, [attn_check_param_0+44];\n"
    "ld.param.b32 %r5, [attn_check_param_0+48];\n"
    "cvta.to.global.u64 %rd1, %rd1;\n"
    "cvta.to.global.u64 %rd4, %rd4;\n"
    "mov.u32 %r3, %ctaid.x;\n"
    "mov.u32 %r4, %tid.x;\n"
    "mul.wide.u32 %rd5, %r3, 256;\n"
    "cvt.u64.u32 %rd6, %r4;\n"
    "add.s64 %rd5, %rd5, %rd6;\n"
    "setp.ge.s64 %p1, %rd5, %rd2;\n"
    "@%p1 bra $end;\n"
    "cvt.u64.u32 %rd6, %r2;\n"
    "mul.lo.s64 %rd6, %rd5, %rd6;\n"
    "add.s64 %rd6, %rd1, %rd6;\n"
    "setp.eq.s32 %p2, %r2, 8;\n"
    "@%p2 bra $eight;\n"
    "setp.eq.s32 %p2, %r2, 4;\n"
    "@%p2 bra $four;\n"
    "setp.eq.s32 %p2, %r2, 2;\n"
    "@%p2 bra $two;\n"
    "ld.global.u8 %rs1, [%rd6];\n"
    "cvt.u64.u16 %rd7, %rs1;\n"
    "bra $compare;\n"
    "$two:\n"
    "ld.global.u16 %rs1, [%rd6];\n"
    "cvt.u64.u16 %rd7, %rs1;\n"
    "bra $compare;\n"
    "$four:\n"
    "ld.global.b32 %r4, [%rd6];\n"
    "cvt.u64.u32 %rd7, %r4;\n"
    "bra $compare;\n"
    "$eight:\n"
    "ld.global.b64 %rd7, [%rd6];\n"
    "$compare:\n" // as unsigned numbers, values below -below are greater than the span
    "shl.b64 %rd7, %rd7, %r5;\n"
    "shr.s64 %rd7, %rd7, %r5;\n"
    "add.s64 %rd7, %rd7, %rd8;\n"
    "setp.le.u64 %p3, %rd7, %rd3;\n"
    "@%p3 bra $end;\n"
    "red.global.or.b32 [%rd4], %r1;\n"
    "$end:\n"
    "ret;\n}\n";

struct attnrt_loaded {
  attnrt_loaded *next;
  unsigned long long context_id;
  void *context, *module;
  void *check_module; ///< contains the kernel `check`; null until the first call with range_errors
  void *check;
  const char *image;
  pthread_mutex_t cache; ///< protects `check`, `check_module` and `maps`
  cached_map *maps;      ///< the tensor maps of all kernels
  size_t num_maps;
  int multiprocessors;
  size_t bytes;            ///< size of this struct
  loaded_kernel kernels[]; ///< by the number of the kernel
};

struct attnrt_uploaded {
  attnrt_uploaded *next;
  unsigned long long context_id;
  void *context;
  cu_pointer data;
  int32_t count;
  const void *tensors[]; ///< where each packed tensor lies in `data`
};

/// Protects the lists of all libraries and weights. One lock is enough, because a list grows only at the first call of
/// a library, or with packed weights, in a context.
static pthread_mutex_t lists = PTHREAD_MUTEX_INITIALIZER;

static attnrt_loaded *find_loaded(attn_library *library, const char *image,
                                  unsigned long long context_id) {
  attnrt_loaded *entry = atomic_load(&library->loaded);
  while (entry && (entry->context_id != context_id || entry->image != image))
    entry = entry->next;
  return entry;
}

/// A failure that happened while a lock was held. It is reported after the lock is released, because the application's
/// error handler may call the library.
typedef struct failure {
  const char *action; ///< what the driver failed to do; null if the allocation of `bytes` failed
  cu_result error;
  size_t bytes; ///< 0 with a null action: nothing failed
} failure;

static attn_status report(const attn_function_info *info, failure what) {
  if (what.action)
    return fail(info, what.action, what.error);
  if (what.bytes)
    return attnrt_fail(ATTN_ERROR_RESOURCE, "%s: expected %zu bytes of memory, got none",
                       info->name, what.bytes);
  return ATTN_OK;
}

static void free_loaded(attnrt_loaded *entry) {
  if (entry->maps)
    ATTNRT_DELETE(cached_map, entry->num_maps, entry->maps);
  pthread_mutex_destroy(&entry->cache);
  attnrt_free(entry, entry->bytes, _Alignof(attnrt_loaded));
}

static failure load_kernels(const attn_variant_info *variant, int device, attnrt_loaded *entry) {
  cu_result error = cu.attribute(&entry->multiprocessors, CU_MULTIPROCESSORS, device);
  if (error)
    return (failure){"describe the device", error, 0};
  for (int32_t i = 0; i < variant->num_kernels; ++i)
    entry->num_maps += (size_t)variant->kernels[i].num_maps;
  if (entry->num_maps) {
    entry->maps = ATTNRT_NEW(cached_map, entry->num_maps);
    if (!entry->maps)
      return (failure){NULL, 0, entry->num_maps * sizeof *entry->maps};
    memset(entry->maps, 0, entry->num_maps * sizeof *entry->maps);
  }
  cached_map *maps = entry->maps;
  error = cu.load(&entry->module, variant->image);
  if (error)
    return (failure){"load the kernels", error, 0};
  for (int32_t i = 0; i < variant->num_kernels; ++i) {
    const attn_kernel_info *kernel = &variant->kernels[i];
    const char *action = "find a kernel";
    entry->kernels[i].maps = maps;
    maps += kernel->num_maps;
    error = cu.get_function(&entry->kernels[i].function, entry->module, kernel->name);
    if (!error) {
      action = "give a kernel its shared memory";
      error = cu.set_attribute(entry->kernels[i].function, CU_FUNCTION_SHARED_BYTES,
                               (int)kernel->shared_bytes);
    }
    if (error) {
      cu.unload(entry->module);
      return (failure){action, error, 0};
    }
  }
  return (failure){NULL, 0, 0};
}

/// Loads the code of the function into the current context, unless it is already there.
static attn_status load(const attn_function *function, void *context, unsigned long long context_id,
                        int device, attnrt_loaded **loaded) {
  const attn_variant_info *variant = function->variant;
  *loaded = find_loaded(function->library, variant->image, context_id);
  if (*loaded)
    return ATTN_OK;
  failure failed = {NULL, 0, 0};
  pthread_mutex_lock(&lists);
  *loaded = find_loaded(function->library, variant->image, context_id);
  if (!*loaded) {
    size_t bytes = sizeof **loaded + (size_t)variant->num_kernels * sizeof(loaded_kernel);
    attnrt_loaded *entry = attnrt_allocate(bytes, _Alignof(attnrt_loaded));
    if (!entry) {
      failed.bytes = bytes;
    } else {
      *entry = (attnrt_loaded){.context_id = context_id,
                               .context = context,
                               .image = variant->image,
                               .cache = PTHREAD_MUTEX_INITIALIZER,
                               .bytes = bytes};
      failed = load_kernels(variant, device, entry);
    }
    if (failed.action || failed.bytes) {
      if (entry)
        free_loaded(entry);
    } else {
      entry->next = atomic_load(&function->library->loaded);
      atomic_store(&function->library->loaded, entry);
      *loaded = entry;
    }
  }
  pthread_mutex_unlock(&lists);
  return report(function->info, failed);
}

static attnrt_uploaded *find_uploaded(attnrt_packed *packed, unsigned long long context_id) {
  attnrt_uploaded *entry = atomic_load(&packed->uploaded);
  while (entry && entry->context_id != context_id)
    entry = entry->next;
  return entry;
}

static size_t uploaded_size(int32_t num_packed) {
  return sizeof(attnrt_uploaded) + (size_t)num_packed * sizeof(void *);
}

static void free_uploaded(attnrt_uploaded *uploaded) {
  attnrt_free(uploaded, uploaded_size(uploaded->count), _Alignof(attnrt_uploaded));
}

/// Copies the weights to the device, and waits for the copy, because calls on other streams may use the weights
/// afterwards.
static failure upload(attnrt_packed *packed, void *context, unsigned long long context_id,
                      void *stream) {
  const attn_variant_info *variant = packed->variant;
  attnrt_uploaded *entry = attnrt_allocate(uploaded_size(variant->num_packed), _Alignof(attnrt_uploaded));
  if (!entry)
    return (failure){NULL, 0, uploaded_size(variant->num_packed)};
  size_t bytes = (size_t)attnrt_kept_bytes(variant);
  *entry = (attnrt_uploaded){.context_id = context_id, .context = context, .count = variant->num_packed};
  cu_result error = bytes ? cu.allocate(&entry->data, bytes) : 0;
  if (!error && bytes) {
    const int64_t *offsets = variant->packed_offsets;
    for (int32_t i = 0; i < entry->count && !error; ++i) {
      cu_pointer place = entry->data + (cu_pointer)offsets[i];
      entry->tensors[i] = (const void *)(uintptr_t)place;
      if (offsets[i + 1] > offsets[i])
        error = cu.copy_in(place, packed->data[i], (size_t)(offsets[i + 1] - offsets[i]), stream);
    }
    if (!error)
      error = cu.wait(stream);
    if (error)
      cu.release(entry->data);
  }
  if (error) {
    free_uploaded(entry);
    return (failure){"copy the weights to the device", error, 0};
  }
  entry->next = atomic_load(&packed->uploaded);
  atomic_store(&packed->uploaded, entry);
  return (failure){NULL, 0, 0};
}

/// Finds the weights in the memory of the current context, and copies them there if they are not there yet.
static attn_status find_weights(const attnrt_packed *given, void *context,
                                unsigned long long context_id, void *stream,
                                const void *const **data) {
  attnrt_packed *packed = (attnrt_packed *)given; // the list of copies changes, but no weight does
  failure failed = {NULL, 0, 0};
  attnrt_uploaded *entry = find_uploaded(packed, context_id);
  if (!entry) {
    pthread_mutex_lock(&lists);
    entry = find_uploaded(packed, context_id);
    if (!entry) {
      failed = upload(packed, context, context_id, stream);
      entry = find_uploaded(packed, context_id);
    }
    pthread_mutex_unlock(&lists);
  }
  *data = entry ? entry->tensors : NULL;
  return report(packed->function, failed);
}

/// Makes the context of an entry current. Returns false if the application has destroyed the context, and with it all
/// modules and memory. The id distinguishes the context from a new context at the same address.
static bool enter(void *context, unsigned long long context_id) {
  unsigned long long id;
  return !cu.context_id(context, &id) && id == context_id && !cu.push(context);
}

void attnrt_cuda_unload(attnrt_loaded *loaded) {
  while (loaded) {
    attnrt_loaded *next = loaded->next;
    if (enter(loaded->context, loaded->context_id)) {
      cu.unload(loaded->module);
      if (loaded->check_module)
        cu.unload(loaded->check_module);
      cu.pop(&loaded->context);
    }
    free_loaded(loaded);
    loaded = next;
  }
}

void attnrt_cuda_release_weights(attnrt_uploaded *uploaded) {
  while (uploaded) {
    attnrt_uploaded *next = uploaded->next;
    if (uploaded->data && enter(uploaded->context, uploaded->context_id)) {
      cu.release(uploaded->data);
      cu.pop(&uploaded->context);
    }
    free_uploaded(uploaded);
    uploaded = next;
  }
}

//===-- Calls -------------------------------------------------------------===//

static int64_t size_of(const attn_dim_info *dim, const int64_t *symbols) {
  return dim->symbol < 0 ? dim->size : symbols[dim->symbol];
}

/// The state of a call that launches kernels.
typedef struct launches {
  const attn_function *function;
  attnrt_loaded *loaded;
  void *stream;
  attn_status status; ///< status of the first launch that failed
} launches;

/// Encodes the map of the tensor whose descriptor is in `context`, unless `cached` already holds this map. The driver
/// encodes no map for a tensor without elements, and the kernel copies nothing from such a tensor.
static cu_result encode(const attn_tensor_map_info *info, const char *context, cached_map *cached) {
  const char *descriptor = context + info->offset;
  const char *address;
  int64_t numbers[1 + 2 * ATTN_TENSOR_MAP_RANK]; // the offset, the sizes and the strides
  memcpy(&address, descriptor + sizeof address, sizeof address);
  memcpy(numbers, descriptor + 2 * sizeof address, (1 + 2 * (size_t)info->rank) * sizeof *numbers);
  address += numbers[0] * info->element_bytes;
  const int64_t *sizes = numbers + 1, *strides = sizes + info->rank;
  size_t bytes = (size_t)info->rank * sizeof *sizes;
  if (cached->address == address && !memcmp(cached->sizes, sizes, bytes) &&
      !memcmp(cached->strides, strides, bytes))
    return 0;
  // The driver counts dimensions from the last one on.
  uint64_t inner_sizes[ATTN_TENSOR_MAP_RANK], inner_strides[ATTN_TENSOR_MAP_RANK];
  uint32_t box[ATTN_TENSOR_MAP_RANK], steps[ATTN_TENSOR_MAP_RANK];
  for (int32_t i = 0; i < info->rank; ++i) {
    int32_t dim = info->rank - 1 - i;
    if (sizes[dim] == 0)
      return 0;
    inner_sizes[i] = (uint64_t)sizes[dim];
    box[i] = i == 0             ? 128u / (uint32_t)info->element_bytes
             : dim == info->dim ? (uint32_t)info->rows
                                : 1;
    steps[i] = 1;
    if (i > 0) // the innermost stride is one element
      inner_strides[i - 1] = (uint64_t)strides[dim] * (uint64_t)info->element_bytes;
  }
  int type = info->element_bytes == 1   ? CU_TENSOR_UINT8
             : info->element_bytes == 2 ? CU_TENSOR_UINT16
                                        : CU_TENSOR_UINT32;
  cached->address = NULL;
  cu_result error =
      cu.encode(&cached->map, type, (uint32_t)info->rank, (void *)address, inner_sizes,
                inner_strides, box, steps, 0, CU_SWIZZLE_128_BYTES, CU_L2_PROMOTION_256_BYTES, 0);
  if (!error) {
    cached->address = address;
    memcpy(cached->sizes, sizes, bytes);
    memcpy(cached->strides, strides, bytes);
  }
  return error;
}

/// An attn_launch_fn.
static void launch(void *device, int64_t number, int64_t count, const void *context) {
  launches *l = device;
  if (l->status || count <= 0)
    return;
  const attn_kernel_info *kernel = &l->function->variant->kernels[number];
  loaded_kernel *loaded = &l->loaded->kernels[number];
  if (count > INT32_MAX) {
    l->status = attnrt_fail(ATTN_ERROR_SHAPE, "%s: expected at most %d tasks, got %" PRId64,
                            l->function->info->name, INT32_MAX, count);
    return;
  }
  cu_tensor_map maps[ATTN_TENSOR_MAPS];
  void *arguments[1 + ATTN_TENSOR_MAPS] = {(void *)context};
  if (kernel->num_maps) {
    cu_result error = 0;
    pthread_mutex_lock(&l->loaded->cache);
    for (int32_t i = 0; i < kernel->num_maps && !error; ++i) {
      error = encode(&kernel->maps[i], context, &loaded->maps[i]);
      maps[i] = loaded->maps[i].map;
      arguments[1 + i] = &maps[i];
    }
    pthread_mutex_unlock(&l->loaded->cache);
    if (error) {
      l->status = fail(l->function->info, "describe a tensor", error);
      return;
    }
  }
  int64_t most = (int64_t)kernel->blocks * l->loaded->multiprocessors;
  unsigned blocks = (unsigned)(kernel->blocks && count > most ? most : count);
  cu_result error = cu.launch(loaded->function, blocks, 1, 1, (unsigned)kernel->threads, 1, 1,
                              (unsigned)kernel->shared_bytes, l->stream, arguments, NULL);
  if (error)
    l->status = fail(l->function->info, "launch a kernel", error);
}

static failure load_check(attnrt_loaded *loaded) {
  void *module;
  cu_result error = cu.load(&module, range_check_ptx);
  if (error)
    return (failure){"load the check of ranges", error, 0};
  error = cu.get_function(&loaded->check, module, "attn_check");
  if (error) {
    cu.unload(module);
    return (failure){"find the check of ranges", error, 0};
  }
  loaded->check_module = module;
  return (failure){NULL, 0, 0};
}

/// Launches the checks of the inputs whose values have a range.
static attn_status check_ranges(const launches *l, const attn_kernel_call *call, uint32_t *word) {
  const attn_function_info *info = l->function->info;
  for (int32_t i = 0; i < info->num_inputs; ++i) {
    const attn_tensor_info *input = &info->inputs[i];
    if (!input->bounded)
      continue;
    attnrt_loaded *loaded = l->loaded;
    failure failed = {NULL, 0, 0};
    pthread_mutex_lock(&loaded->cache);
    if (!loaded->check_module)
      failed = load_check(loaded);
    pthread_mutex_unlock(&loaded->cache);
    if (failed.action)
      return report(info, failed);
    attn_dim_info below = attnrt_below(input);
    struct range_check check = {.data = call->inputs[i],
                                .count = 1,
                                .below = size_of(&below, call->dims),
                                .word = word,
                                .bit = UINT32_C(1) << (i < 31 ? i : 31),
                                .element_bytes = input->dtype_bits / 8u,
                                .shift = input->dtype_code == 1 ? 0 : 64u - input->dtype_bits};
    check.span = check.below + size_of(&input->bound, call->dims);
    for (int32_t axis = 0; axis < input->rank; ++axis)
      check.count *= size_of(&input->shape[axis], call->dims);
    if (check.count == 0)
      continue;
    void *arguments[] = {&check};
    int64_t blocks = (check.count + THREADS_OF_CHECK - 1) / THREADS_OF_CHECK;
    cu_result error = cu.launch(loaded->check, (unsigned)blocks, 1, 1, THREADS_OF_CHECK, 1, 1, 0,
                                l->stream, arguments, NULL);
    if (error)
      return fail(info, "launch a kernel", error);
  }
  return ATTN_OK;
}

attn_status attnrt_cuda_run(const attn_function *function, const attnrt_packed *weights,
                            const attn_call_options *options, int64_t workspace_bytes,
                            attn_kernel_call *call) {
  void *stream = options->stream;
  void *context = NULL;
  int device = -1;
  unsigned long long context_id = 0;
  attnrt_loaded *loaded = NULL;
  cu_result error = cu.context(&context);
  if (!error && !context)
    return attnrt_fail(ATTN_ERROR_DEVICE,
                       "%s: expected a current CUDA context on the calling thread, got none",
                       function->info->name);
  if (!error)
    error = cu.device_of_context(&device);
  if (!error)
    error = cu.context_id(context, &context_id);
  if (error)
    return fail(function->info, "describe the current context", error);
  if (device != function->device.device_id)
    return attnrt_fail(ATTN_ERROR_DEVICE, "%s: expected a current context of device %d, got %d",
                       function->info->name, (int)function->device.device_id, device);
  attn_status status = load(function, context, context_id, device, &loaded);
  if (!status && weights)
    status = find_weights(weights, context, context_id, stream, &call->weights);
  if (status)
    return status;

  launches l = {function, loaded, stream, ATTN_OK};
  if (options->range_errors && (status = check_ranges(&l, call, options->range_errors)))
    return status;
  call->launch = launch;
  call->device = &l;
  cu_pointer own = 0;
  if (!call->workspace && workspace_bytes) {
    error = cu.allocate_async(&own, (size_t)workspace_bytes, stream);
    if (error)
      return fail(function->info, "allocate the workspace", error);
    call->workspace = (void *)(uintptr_t)own;
  }
  function->variant->run(call);
  if (own && (error = cu.release_async(own, stream)) && !l.status)
    return fail(function->info, "free the workspace", error);
  return l.status;
}
