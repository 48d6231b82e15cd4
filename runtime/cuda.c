//===- cuda.c - kernels on NVIDIA GPUs, through the driver library --------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// The driver, libcuda.so.1, is opened when a GPU is first asked for, so the runtime builds and runs without it. Code is
// loaded once into each CUDA context, at the first call there, and weights are copied there once. After that, a call
// only adds work to its stream.
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
  CU_CAPABILITY_MAJOR = 75,
  CU_CAPABILITY_MINOR = 76,
  CU_FUNCTION_SHARED_BYTES = 8,
};

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

/// Why no GPU can be used; null if one might.
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
  // The feature is "sm_80" or "sm_90a": code with a letter runs on GPUs of this capability only.
  char *end;
  long needed = strtol(variant->features + strcspn(variant->features, "0123456789"), &end, 10),
       capability = 10 * major + minor;
  *runs = *end ? capability == needed : capability >= needed;
  return ATTN_OK;
}

//===-- Code and weights in a context -------------------------------------===//

struct attnrt_loaded {
  attnrt_loaded *next;
  unsigned long long context_id;
  void *context, *module;
  const char *image;
  size_t bytes;    ///< of this struct
  void *kernels[]; ///< by number
};

struct attnrt_uploaded {
  attnrt_uploaded *next;
  unsigned long long context_id;
  void *context;
  cu_pointer data;
};

/// Serves all lists: they only grow, and only at the first call in a context.
static pthread_mutex_t lists = PTHREAD_MUTEX_INITIALIZER;

static attnrt_loaded *find_loaded(attn_library *library, const char *image,
                                  unsigned long long context_id) {
  attnrt_loaded *entry = atomic_load(&library->loaded);
  while (entry && (entry->context_id != context_id || entry->image != image))
    entry = entry->next;
  return entry;
}

/// What failed while a lock was held. It is reported after that: the application's handler of errors may call the
/// library.
typedef struct failure {
  const char *action; ///< of the driver; null: the allocation of `bytes`
  cu_result error;
  size_t bytes; ///< 0 with a null action: nothing failed
} failure;

static attn_status report(const attn_function_info *info, failure failure) {
  if (failure.action)
    return fail(info, failure.action, failure.error);
  if (failure.bytes)
    return attnrt_fail(ATTN_ERROR_RESOURCE, "%s: expected %zu bytes of memory, got none",
                       info->name, failure.bytes);
  return ATTN_OK;
}

static failure load_kernels(const attn_variant_info *variant, attnrt_loaded *entry) {
  cu_result error = cu.load(&entry->module, variant->image);
  if (error)
    return (failure){"load the kernels", error, 0};
  for (int32_t i = 0; i < variant->num_kernels; ++i) {
    const attn_kernel_info *kernel = &variant->kernels[i];
    const char *action = "find a kernel";
    error = cu.get_function(&entry->kernels[i], entry->module, kernel->name);
    if (!error) {
      action = "give a kernel its shared memory";
      error =
          cu.set_attribute(entry->kernels[i], CU_FUNCTION_SHARED_BYTES, (int)kernel->shared_bytes);
    }
    if (error) {
      cu.unload(entry->module);
      return (failure){action, error, 0};
    }
  }
  return (failure){NULL, 0, 0};
}

/// Loads the code of the function into the current context, if it is not there.
static attn_status load(const attn_function *function, void *context, unsigned long long context_id,
                        attnrt_loaded **loaded) {
  const attn_variant_info *variant = function->variant;
  *loaded = find_loaded(function->library, variant->image, context_id);
  if (*loaded)
    return ATTN_OK;
  failure failed = {NULL, 0, 0};
  pthread_mutex_lock(&lists);
  *loaded = find_loaded(function->library, variant->image, context_id);
  if (!*loaded) {
    size_t bytes = sizeof **loaded + (size_t)variant->num_kernels * sizeof(void *);
    attnrt_loaded *entry = attnrt_allocate(bytes, _Alignof(attnrt_loaded));
    if (!entry) {
      failed.bytes = bytes;
    } else {
      *entry =
          (attnrt_loaded){.context_id = context_id, .context = context, .image = variant->image};
      failed = load_kernels(variant, entry);
    }
    if (failed.action || failed.bytes) {
      attnrt_free(entry, bytes, _Alignof(attnrt_loaded));
    } else {
      entry->next = atomic_load(&function->library->loaded);
      entry->bytes = bytes;
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

/// Copies the weights, and waits for the copy: calls on other streams use them from then on.
static failure upload(attnrt_packed *packed, void *context, unsigned long long context_id,
                      void *stream) {
  attnrt_uploaded *entry = ATTNRT_NEW(attnrt_uploaded, 1);
  if (!entry)
    return (failure){NULL, 0, sizeof *entry};
  size_t bytes = (size_t)packed->variant->packed_bytes;
  *entry = (attnrt_uploaded){.context_id = context_id, .context = context};
  cu_result error = bytes ? cu.allocate(&entry->data, bytes) : 0;
  if (!error && bytes) {
    error = cu.copy_in(entry->data, packed->data, bytes, stream);
    if (!error)
      error = cu.wait(stream);
    if (error)
      cu.release(entry->data);
  }
  if (error) {
    ATTNRT_DELETE(attnrt_uploaded, 1, entry);
    return (failure){"copy the weights to the device", error, 0};
  }
  entry->next = atomic_load(&packed->uploaded);
  atomic_store(&packed->uploaded, entry);
  return (failure){NULL, 0, 0};
}

/// The weights in the memory of the current context, where they are copied if they are not there.
static attn_status find_weights(const attnrt_packed *given, void *context,
                                unsigned long long context_id, void *stream, const void **data) {
  attnrt_packed *packed = (attnrt_packed *)given; // its lists are internal
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
  *data = entry ? (const void *)(uintptr_t)entry->data : NULL;
  return report(packed->function, failed);
}

/// Makes the context of an entry current. Fails if its owner has destroyed it, and with it all modules and memory; a
/// new context may be at the same address.
static bool enter(void *context, unsigned long long context_id) {
  unsigned long long id;
  return !cu.context_id(context, &id) && id == context_id && !cu.push(context);
}

void attnrt_cuda_unload(attnrt_loaded *loaded) {
  while (loaded) {
    attnrt_loaded *next = loaded->next;
    if (enter(loaded->context, loaded->context_id)) {
      cu.unload(loaded->module);
      cu.pop(&loaded->context);
    }
    attnrt_free(loaded, loaded->bytes, _Alignof(attnrt_loaded));
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
    ATTNRT_DELETE(attnrt_uploaded, 1, uploaded);
    uploaded = next;
  }
}

//===-- Calls -------------------------------------------------------------===//

/// What a call needs to launch kernels.
typedef struct launches {
  const attn_function *function;
  const attnrt_loaded *loaded;
  void *stream;
  attn_status status; ///< of the first launch that failed
} launches;

/// An attn_launch_fn.
static void launch(void *device, int64_t number, int64_t count, const void *context) {
  launches *l = device;
  if (l->status || count <= 0)
    return;
  const attn_kernel_info *kernel = &l->function->variant->kernels[number];
  void *arguments[] = {(void *)context};
  if (count > INT32_MAX) {
    l->status = attnrt_fail(ATTN_ERROR_SHAPE, "%s: expected at most %d tasks, got %" PRId64,
                            l->function->info->name, INT32_MAX, count);
    return;
  }
  cu_result error =
      cu.launch(l->loaded->kernels[number], (unsigned)count, 1, 1, (unsigned)kernel->threads, 1, 1,
                (unsigned)kernel->shared_bytes, l->stream, arguments, NULL);
  if (error)
    l->status = fail(l->function->info, "launch a kernel", error);
}

attn_status attnrt_cuda_run(const attn_function *function, const attnrt_packed *weights,
                            void *stream, int64_t workspace_bytes, attn_kernel_call *call) {
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
  attn_status status = load(function, context, context_id, &loaded);
  if (!status && weights)
    status = find_weights(weights, context, context_id, stream, &call->weights);
  if (status)
    return status;

  launches l = {function, loaded, stream, ATTN_OK};
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
