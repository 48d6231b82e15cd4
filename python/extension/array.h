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

/// The bits of a PyTorch tensor that say how its elements differ from those in its memory.
enum { CONJUGATE = 1, NEGATIVE = 2 };

/// A view of the memory of a Python array. It is valid until array_release, as long as the Python array is alive.
typedef struct {
  DLTensor tensor;
  const DLPackExchangeAPI *api; ///< DLPack's functions of the array's type, or null
  PyObject *memory;             ///< the capsule through which the array is viewed, or the copy that is viewed; or null
  Py_buffer buffer;             ///< released if buffer.obj is not null
  int read_only;
  PyCFunction is_neg; ///< the function of PyTorch's method of this name; null for arrays of other packages
  int bits;           ///< CONJUGATE and NEGATIVE, if the view is of memory with these bits
  const char *reason; ///< set by ARRAY_REFUSED: what was expected and what was given
  int64_t shape[MAX_RANK], strides[MAX_RANK];
} Array;

typedef enum { ARRAY_OK, ARRAY_NONE, ARRAY_REFUSED, ARRAY_ERROR } ArrayResult;

/// Fills `array` from `object` without a copy. Returns ARRAY_NONE without an exception if `object` is not an array,
/// ARRAY_REFUSED without an exception if array->reason says why it cannot be taken, and ARRAY_ERROR with an exception
/// if its memory cannot be viewed. Call array_release only after ARRAY_OK.
ArrayResult array_view(PyObject *object, Array *array);
void array_release(Array *array);

/// If the viewed array has bits, makes `array` a view of a copy of `object` without bits, which must not be written to.
ArrayResult array_resolve(PyObject *object, Array *array);

/// Must be called after writing to the memory of `object`. Changes the memory such that `object`, in spite of its bits,
/// has the elements that were written, and tells PyTorch's autograd that the tensor has changed. Returns 0, or -1 with
/// an exception.
int array_finish_write(PyObject *object, const Array *array);

/// Makes an uninitialised array on the device of `like`, and fills `array` with a view of the new array. The new array
/// is of the package of `like` if the type of `like` has DLPack's functions in C, and otherwise of NumPy. Returns null
/// with an exception on failure.
PyObject *array_make(PyObject *like, const Array *view_of_like, DLDataType dtype, int32_t rank, const int64_t *shape,
                     Array *array);

/// Returns the array that the caller gets for `made`, an output from array_make: an array of the package of `like` with
/// the same elements if `like` was viewed through a capsule, and otherwise `made`. Takes ownership of `made`.
PyObject *array_finish(PyObject *like, const Array *view_of_like, PyObject *made);

#endif // ATTN_PYTHON_ARRAY_H
