//===- array.h - Python arrays as tensors of attn.h --------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_PYTHON_ARRAY_H
#define ATTN_PYTHON_ARRAY_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "dlpack.h"

enum { MAX_RANK = 16 };

/// A view of the memory of a Python array. It is valid until array_release, as long as the Python array is alive.
typedef struct {
  DLTensor tensor;
  const DLPackExchangeAPI *api; ///< DLPack's functions of the array's type, or null
  PyObject *memory;             ///< the capsule through which the array is viewed, or null
  Py_buffer buffer;             ///< released if buffer.obj is not null
  int read_only;
  int64_t shape[MAX_RANK], strides[MAX_RANK];
} Array;

typedef enum { ARRAY_OK, ARRAY_NONE, ARRAY_ERROR } ArrayResult;

/// Fills `array` from `object` without a copy. Returns ARRAY_NONE without an exception if `object` is not an array, and
/// ARRAY_ERROR with an exception if its memory cannot be viewed. Call array_release only after ARRAY_OK.
ArrayResult array_view(PyObject *object, Array *array);
void array_release(Array *array);

/// Makes an uninitialised array on the device of `like`, and fills `array` with a view of the new array. The new array
/// is of the package of `like` if the type of `like` has DLPack's functions in C, and otherwise of NumPy. Returns null
/// with an exception on failure.
PyObject *array_make(PyObject *like, const Array *view_of_like, DLDataType dtype, int32_t rank, const int64_t *shape,
                     Array *array);

/// Returns the array that the caller gets for `made`, an output from array_make: an array of the package of `like` with
/// the same elements if `like` was viewed through a capsule, and otherwise `made`. Takes ownership of `made`.
PyObject *array_finish(PyObject *like, const Array *view_of_like, PyObject *made);

#endif // ATTN_PYTHON_ARRAY_H
