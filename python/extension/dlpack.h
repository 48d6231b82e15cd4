//===- dlpack.h - the parts of DLPack 1.3 that Python packages exchange ------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// attn.h declares DLTensor. This header declares the structs with which a package passes its tensors to another one:
// those in a capsule that `__dlpack__` returns, and the table of C functions in a type's attribute
// `__dlpack_c_exchange_api__`, which is faster. The layouts of the structs are those of DLPack's own dlpack.h, whose
// license (Apache-2.0) covers the interface; the declarations are our own.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_PYTHON_DLPACK_H
#define ATTN_PYTHON_DLPACK_H

#define ATTN_OWN_DLPACK
#include "attn.h"

/// The struct to which a capsule named "dltensor" points.
typedef struct DLManagedTensor {
  DLTensor dl_tensor;
  void *manager_ctx;
  void (*deleter)(struct DLManagedTensor *self); ///< may be null
} DLManagedTensor;

typedef struct {
  uint32_t major, minor;
} DLPackVersion;

/// The struct to which a capsule named "dltensor_versioned" points.
typedef struct DLManagedTensorVersioned {
  DLPackVersion version;
  void *manager_ctx;
  void (*deleter)(struct DLManagedTensorVersioned *self); ///< may be null
  uint64_t flags;                                         ///< DLPACK_READ_ONLY
  DLTensor dl_tensor;
} DLManagedTensorVersioned;

enum { DLPACK_MAJOR = 1, DLPACK_MINOR = 3, DLPACK_READ_ONLY = 1 };

typedef void (*DLPackSetError)(void *context, const char *kind, const char *message);

/// The functions that a type offers. They return 0, or -1 after an error. They set a Python exception for the error,
/// except `allocate`, which calls `set_error`.
typedef struct DLPackExchangeAPI {
  DLPackVersion version;
  struct DLPackExchangeAPI *previous; ///< the functions of an older major version; may be null
  int (*allocate)(DLTensor *prototype, DLManagedTensorVersioned **tensor, void *error_context,
                  DLPackSetError set_error);
  int (*from_object)(void *object, DLManagedTensorVersioned **tensor);
  int (*to_object)(DLManagedTensorVersioned *tensor, void **object); ///< takes ownership of the tensor
  int (*borrow)(void *object, DLTensor *tensor);                     ///< may be null; the object must stay alive
  int (*current_stream)(DLDeviceType device, int32_t id, void **stream);
} DLPackExchangeAPI;

#endif // ATTN_PYTHON_DLPACK_H
