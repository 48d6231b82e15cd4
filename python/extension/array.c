//===- array.c - Python arrays as tensors of attn.h --------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// An array is viewed without a copy, in one of three ways: through DLPack's functions in C (PyTorch since 2.10),
// through the buffer protocol (NumPy), or through a capsule from `__dlpack__` (JAX, CuPy, older PyTorch).
//
//===----------------------------------------------------------------------===//

#include "array.h"

#include <stdbool.h>
#include <string.h>

enum { COMPLEX = 5 }; // DLPack's kDLComplex

//===-- DLPack's functions in C --------------------------------------------===//

/// How arrays of a type are viewed.
typedef struct {
  PyTypeObject *type;
  const DLPackExchangeAPI *api; ///< may be null
  bool by_buffer;               ///< through the buffer protocol, not through a capsule
  bool is_immutable;            ///< read-only, which DLPack does not report
} Route;

/// Whether both types have the same attribute of this name, or both lack it.
static bool share(PyObject *type, PyObject *base, const char *name) {
  PyObject *of_type = PyObject_GetAttrString(type, name), *of_base = PyObject_GetAttrString(base, name);
  PyErr_Clear();
  bool result = of_type == of_base;
  Py_XDECREF(of_type);
  Py_XDECREF(of_base);
  return result;
}

/// Returns the functions of DLPack that `type` itself defines, without those of its bases, or null.
static const DLPackExchangeAPI *find_own_api(PyObject *type) {
  const DLPackExchangeAPI *api = NULL;
  PyObject *dict = PyObject_GetAttrString(type, "__dict__");
  PyObject *capsule = dict ? PyMapping_GetItemString(dict, "__dlpack_c_exchange_api__") : NULL;
  if (capsule && PyCapsule_IsValid(capsule, "dlpack_exchange_api"))
    api = PyCapsule_GetPointer(capsule, "dlpack_exchange_api");
  PyErr_Clear();
  Py_XDECREF(capsule);
  Py_XDECREF(dict);
  while (api && api->version.major != DLPACK_MAJOR)
    api = api->previous;
  return api && api->borrow ? api : NULL;
}

/// Returns DLPack's functions of a type or of one of its bases, or null. A subclass of PyTorch's tensor that replaces
/// the dispatch of ops, such as FakeTensor, may have no memory, so it does not get the functions of its base.
static const DLPackExchangeAPI *find_api(PyTypeObject *type) {
  const DLPackExchangeAPI *api = NULL;
  PyObject *bases = PyObject_GetAttrString((PyObject *)type, "__mro__");
  for (Py_ssize_t i = 0; bases && !api && i < PyTuple_Size(bases); ++i) {
    PyObject *base = PyTuple_GetItem(bases, i);
    api = find_own_api(base);
    if (api && !share((PyObject *)type, base, "__torch_dispatch__")) {
      api = NULL;
      break;
    }
  }
  PyErr_Clear();
  Py_XDECREF(bases);
  return api;
}

/// The package that defines `type`, such as "numpy"; a new reference, or null without an exception.
static PyObject *find_package(PyTypeObject *type) {
  PyObject *module = PyObject_GetAttrString((PyObject *)type, "__module__");
  PyObject *names = module ? PyObject_CallMethod(module, "split", "s", ".") : NULL;
  PyObject *package = names ? PySequence_GetItem(names, 0) : NULL;
  PyErr_Clear();
  Py_XDECREF(names);
  Py_XDECREF(module);
  return package;
}

/// Chooses how to view arrays of `type`. Arrays of some packages, such as JAX, support both capsules and buffers. Such
/// arrays are viewed through capsules, except NumPy's: the outputs of a call must be arrays of the package of its first
/// input, but if this input is viewed as a buffer, they are arrays of NumPy.
static Route find_route(PyTypeObject *type) {
  // A program uses few types of arrays, so a small table suffices. The table keeps the types alive.
  enum { KNOWN_TYPES = 8 };
  static Route known[KNOWN_TYPES];
  static int num_known;
  for (int i = 0; i < num_known; ++i)
    if (known[i].type == type)
      return known[i];

  Route route = {type, find_api(type), false, false};
  PyObject *package = find_package(type);
  route.by_buffer = !PyObject_HasAttrString((PyObject *)type, "__dlpack__") ||
                    (package && PyUnicode_CompareWithASCIIString(package, "numpy") == 0);
  static const char *const immutable[] = {"jax", "jaxlib", "tensorflow"};
  for (size_t i = 0; package && i < sizeof immutable / sizeof *immutable; ++i)
    route.is_immutable |= PyUnicode_CompareWithASCIIString(package, immutable[i]) == 0;
  Py_XDECREF(package);
  if (num_known < KNOWN_TYPES) {
    Py_INCREF((PyObject *)type);
    known[num_known++] = route;
  }
  return route;
}

//===-- The buffer protocol ------------------------------------------------===//

/// The element type for a format of the module `struct`. The code is 255 if attn has no such type.
static DLDataType parse_format(const char *format, Py_ssize_t item_size) {
  DLDataType dtype = {255, (uint8_t)(8 * item_size), 1};
  if (!format)
    format = "B";
  if (*format == '@' || *format == '=' || *format == '<') // this machine is little-endian
    ++format;
  if (format[0] == 'Z' && strchr("fd", format[1]) && format[1] && !format[2])
    dtype.code = COMPLEX;
  if (!*format || format[1])
    return dtype;
  if (*format == '?')
    dtype.code = kDLBool;
  else if (strchr("efd", *format))
    dtype.code = kDLFloat;
  else if (strchr("bhilqn", *format))
    dtype.code = kDLInt;
  else if (strchr("BHILQN", *format))
    dtype.code = kDLUInt;
  return dtype;
}

static ArrayResult view_buffer(PyObject *object, Array *array) {
  if (PyObject_GetBuffer(object, &array->buffer, PyBUF_STRIDES | PyBUF_FORMAT) < 0) {
    array->buffer.obj = NULL;
    return ARRAY_ERROR;
  }
  Py_buffer *buffer = &array->buffer;
  array->read_only = buffer->readonly;
  DLDataType dtype = parse_format(buffer->format, buffer->itemsize);
  bool whole = buffer->ndim <= MAX_RANK;
  for (int i = 0; whole && dtype.code != 255 && i < buffer->ndim; ++i) { // an element of code 255 may have size 0
    array->shape[i] = buffer->shape[i];
    array->strides[i] = buffer->strides[i] / buffer->itemsize;
    whole = buffer->strides[i] % buffer->itemsize == 0;
  }
  if (dtype.code == 255)
    PyErr_Format(PyExc_TypeError, "expected elements that are numbers in this machine's byte order, got format '%s'",
                 buffer->format);
  else if (!whole)
    PyErr_Format(PyExc_TypeError, "expected at most %d dimensions and strides of whole elements", MAX_RANK);
  if (PyErr_Occurred()) {
    PyBuffer_Release(buffer);
    buffer->obj = NULL;
    return ARRAY_ERROR;
  }
  array->tensor = (DLTensor){.data = buffer->buf, .device = {kDLCPU, 0}, .ndim = buffer->ndim, .dtype = dtype,
                             .shape = array->shape, .strides = array->strides};
  return ARRAY_OK;
}

/// NumPy has no bfloat16. Arrays of ml_dtypes' bfloat16 refuse the buffer protocol, so their bits are viewed as uint16.
/// Returns a new reference, or null without an exception if `object` is no such array.
static PyObject *view_bits_of_bfloat16(PyObject *object) {
  PyObject *dtype = PyObject_GetAttrString(object, "dtype"), *bits = NULL;
  PyObject *name = dtype ? PyObject_GetAttrString(dtype, "name") : NULL;
  if (name && PyUnicode_Check(name) && PyUnicode_CompareWithASCIIString(name, "bfloat16") == 0)
    bits = PyObject_CallMethod(object, "view", "s", "uint16");
  PyErr_Clear();
  Py_XDECREF(name);
  Py_XDECREF(dtype);
  return bits;
}

//===-- __dlpack__ ---------------------------------------------------------===//

static ArrayResult view_capsule(PyObject *object, Array *array) {
  // Packages from before DLPack 1.0 do not accept max_version.
  PyObject *method = PyObject_GetAttrString(object, "__dlpack__");
  if (!method)
    return ARRAY_ERROR;
  PyObject *version = Py_BuildValue("{s(ii)}", "max_version", DLPACK_MAJOR, 0), *none = PyTuple_New(0);
  PyObject *capsule = version && none ? PyObject_Call(method, none, version) : NULL;
  if (!capsule && PyErr_ExceptionMatches(PyExc_TypeError)) {
    PyErr_Clear();
    capsule = PyObject_CallNoArgs(method);
  }
  Py_XDECREF(version);
  Py_XDECREF(none);
  Py_DECREF(method);
  if (!capsule)
    return ARRAY_ERROR;
  if (PyCapsule_IsValid(capsule, "dltensor_versioned")) {
    DLManagedTensorVersioned *managed = PyCapsule_GetPointer(capsule, "dltensor_versioned");
    if (managed->version.major == DLPACK_MAJOR) {
      array->tensor = managed->dl_tensor;
      array->read_only = (managed->flags & DLPACK_READ_ONLY) != 0;
      array->memory = capsule; // deleting the capsule releases the tensor, because the capsule was not renamed
      return ARRAY_OK;
    }
  } else if (PyCapsule_IsValid(capsule, "dltensor")) {
    array->tensor = ((DLManagedTensor *)PyCapsule_GetPointer(capsule, "dltensor"))->dl_tensor;
    array->memory = capsule;
    return ARRAY_OK;
  }
  Py_DECREF(capsule);
  PyErr_SetString(PyExc_TypeError, "expected a tensor of DLPack 0 or 1 from __dlpack__");
  return ARRAY_ERROR;
}

//===-- Any array ----------------------------------------------------------===//

/// Turns a view of complex numbers into a view with one more dimension, which has the real and the imaginary part. This
/// is the form in which a compiled function takes complex numbers.
static bool split_complex(Array *array) {
  DLTensor *tensor = &array->tensor;
  if (tensor->ndim >= MAX_RANK) {
    PyErr_Format(PyExc_TypeError, "expected fewer than %d dimensions of complex numbers", MAX_RANK);
    return false;
  }
  int64_t elements = 1;
  for (int32_t i = tensor->ndim; i-- > 0;) {
    array->strides[i] = 2 * (tensor->strides ? tensor->strides[i] : elements);
    elements *= tensor->shape[i];
    array->shape[i] = tensor->shape[i];
  }
  array->shape[tensor->ndim] = 2;
  array->strides[tensor->ndim++] = 1;
  tensor->shape = array->shape;
  tensor->strides = array->strides;
  tensor->dtype = (DLDataType){kDLFloat, tensor->dtype.bits / 2, 1};
  return true;
}

static ArrayResult view(PyObject *object, Array *array) {
  array->memory = NULL;
  array->buffer.obj = NULL;
  array->read_only = 0;
  Route route = find_route(Py_TYPE(object));
  array->api = route.api;
  if (route.api)
    return route.api->borrow(object, &array->tensor) ? ARRAY_ERROR : ARRAY_OK;
  if (!route.by_buffer) {
    ArrayResult viewed = view_capsule(object, array);
    array->read_only |= route.is_immutable;
    return viewed;
  }
  if (!PyObject_CheckBuffer(object) || PyBytes_Check(object))
    return ARRAY_NONE;
  ArrayResult result = view_buffer(object, array);
  if (result != ARRAY_ERROR || !PyErr_ExceptionMatches(PyExc_ValueError))
    return result;
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  PyObject *bits = view_bits_of_bfloat16(object);
  if (!bits) {
    PyErr_Restore(type, value, trace);
    return ARRAY_ERROR;
  }
  Py_XDECREF(type);
  Py_XDECREF(value);
  Py_XDECREF(trace);
  result = view_buffer(bits, array);
  array->tensor.dtype = (DLDataType){kDLBfloat, 16, 1};
  Py_DECREF(bits); // array->buffer keeps bits alive
  return result;
}

ArrayResult array_view(PyObject *object, Array *array) {
  ArrayResult result = view(object, array);
  if (result == ARRAY_OK && array->tensor.dtype.code == COMPLEX && !split_complex(array)) {
    array_release(array);
    return ARRAY_ERROR;
  }
  return result;
}

void array_release(Array *array) {
  if (array->buffer.obj)
    PyBuffer_Release(&array->buffer);
  Py_CLEAR(array->memory);
}

//===-- Outputs ------------------------------------------------------------===//

static const char *name_dtype(DLDataType dtype) {
  static const struct {
    uint8_t code, bits;
    const char *name;
  } names[] = {{kDLFloat, 32, "float32"}, {kDLFloat, 16, "float16"}, {kDLFloat, 64, "float64"}, {kDLBool, 8, "bool"},
               {kDLInt, 64, "int64"},     {kDLInt, 32, "int32"},     {kDLInt, 16, "int16"},     {kDLInt, 8, "int8"},
               {kDLUInt, 8, "uint8"},     {kDLUInt, 16, "uint16"},   {kDLUInt, 32, "uint32"},   {kDLUInt, 64, "uint64"}};
  for (size_t i = 0; i < sizeof names / sizeof *names; ++i)
    if (names[i].code == dtype.code && names[i].bits == dtype.bits)
      return names[i].name;
  return NULL;
}

/// Returns numpy.empty(shape, dtype).
static PyObject *make_numpy(DLDataType dtype, int32_t rank, const int64_t *shape) {
  static PyObject *empty, *bfloat16; // looked up once
  if (!empty) {
    PyObject *numpy = PyImport_ImportModule("numpy");
    empty = numpy ? PyObject_GetAttrString(numpy, "empty") : NULL;
    Py_XDECREF(numpy);
    if (!empty)
      return NULL;
  }
  PyObject *name;
  if (dtype.code == kDLBfloat) {
    if (!bfloat16) {
      PyObject *types = PyImport_ImportModule("ml_dtypes");
      bfloat16 = types ? PyObject_GetAttrString(types, "bfloat16") : NULL;
      Py_XDECREF(types);
      if (!bfloat16)
        return NULL;
    }
    Py_INCREF(bfloat16);
    name = bfloat16;
  } else {
    name = PyUnicode_FromString(name_dtype(dtype));
  }
  PyObject *sizes = PyTuple_New(rank);
  for (int32_t i = 0; sizes && i < rank; ++i)
    PyTuple_SetItem(sizes, i, PyLong_FromLongLong(shape[i]));
  PyObject *made = sizes && name ? PyObject_CallFunctionObjArgs(empty, sizes, name, NULL) : NULL;
  Py_XDECREF(sizes);
  Py_XDECREF(name);
  return made;
}

static void set_error(void *context, const char *kind, const char *message) {
  (void)context;
  (void)kind;
  PyErr_Format(PyExc_MemoryError, "cannot allocate an output: %s", message);
}

PyObject *array_make(PyObject *like, const Array *view_of_like, DLDataType dtype, int32_t rank, const int64_t *shape,
                     Array *array) {
  const DLPackExchangeAPI *api = view_of_like ? view_of_like->api : NULL;
  PyObject *made = NULL;
  if (api) {
    int64_t strides[MAX_RANK], elements = 1;
    for (int32_t i = rank; i-- > 0; elements *= shape[i] > 0 ? shape[i] : 1)
      strides[i] = elements;
    DLTensor prototype = {.device = view_of_like->tensor.device, .ndim = rank, .dtype = dtype,
                          .shape = (int64_t *)shape, .strides = strides};
    DLManagedTensorVersioned *tensor = NULL;
    if (!api->allocate(&prototype, &tensor, NULL, set_error) && tensor)
      api->to_object(tensor, (void **)&made);
  } else if (view_of_like && view_of_like->tensor.device.device_type != kDLCPU) {
    PyErr_Format(PyExc_TypeError, "expected PyTorch's tensors on a GPU, got an array of type %R", Py_TYPE(like));
  } else {
    made = make_numpy(dtype, rank, shape);
  }
  if (!made)
    return NULL;
  if (array_view(made, array) != ARRAY_OK) {
    Py_DECREF(made);
    return NULL;
  }
  return made;
}

PyObject *array_finish(PyObject *like, const Array *view_of_like, PyObject *made) {
  // Convert `made`, an array of NumPy, only if `like` was viewed through a capsule, because then `like` is not
  // an array of NumPy.
  if (!view_of_like || view_of_like->api || !view_of_like->memory || view_of_like->buffer.obj)
    return made;
  PyObject *space = PyObject_CallMethod(like, "__array_namespace__", NULL);
  if (!space) { // an older PyTorch, which has from_dlpack in its module
    PyErr_Clear();
    PyObject *package = find_package(Py_TYPE(like));
    space = package ? PyImport_Import(package) : NULL;
    Py_XDECREF(package);
  }
  PyObject *finished = space ? PyObject_CallMethod(space, "from_dlpack", "O", made) : NULL;
  if (space && !finished && PyErr_ExceptionMatches(PyExc_BufferError)) { // NumPy exports no bfloat16
    PyErr_Clear();
    finished = PyObject_CallMethod(space, "asarray", "O", made);
  }
  Py_XDECREF(space);
  Py_DECREF(made);
  return finished;
}
