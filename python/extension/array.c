//===- array.c - Python arrays as tensors of attn.h --------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// An array is viewed without a copy, in one of three ways: through DLPack's functions in C (PyTorch since 2.10),
// through the buffer protocol (NumPy), or through a capsule from `__dlpack__` (JAX, CuPy, older PyTorch).
//
//===----------------------------------------------------------------------===//

#include "extension.h"

#include <stdbool.h>
#include <string.h>

enum { COMPLEX = 5 }; // DLPack's kDLComplex

static ArrayResult refuse(Array *array, const char *reason) {
  array->reason = reason;
  return ARRAY_REFUSED;
}

//===-- DLPack's functions in C --------------------------------------------===//

/// How arrays of a type are viewed.
typedef struct {
  PyTypeObject *type;
  const DLPackExchangeAPI *api; ///< may be null
  bool by_buffer;               ///< through the buffer protocol, not through a capsule
  bool is_immutable;            ///< read-only, which DLPack does not report
  PyCFunction is_neg;           ///< the function of PyTorch's method of this name; null for other packages
  bool is_masked;               ///< arrays with a mask, such as numpy.ma's
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

/// Returns the C function of a method without arguments; null if there is none. It is faster than a call of the method.
static PyCFunction find_method(PyObject *object, const char *name) {
  PyObject *method = PyObject_GetAttrString(object, name);
  PyErr_Clear();
  bool is_plain = method && PyCFunction_Check(method) && PyCFunction_GetFlags(method) == METH_NOARGS;
  PyCFunction function = is_plain ? PyCFunction_GetFunction(method) : NULL;
  Py_XDECREF(method);
  return function;
}

/// Chooses how to view arrays of the type of `object`. Arrays of some packages, such as JAX, support both capsules and
/// buffers. Such arrays are viewed through capsules, except NumPy's: the outputs of a call must be arrays of the
/// package of its first input, but if this input is viewed as a buffer, they are arrays of NumPy.
static Route find_route(PyObject *object) {
  // A program uses few types of arrays, so a small table suffices. The table keeps the types alive.
  enum { KNOWN_TYPES = 8 };
  static Route known[KNOWN_TYPES];
  static int num_known;
  PyTypeObject *type = Py_TYPE(object);
  for (int i = 0; i < num_known; ++i)
    if (known[i].type == type)
      return known[i];

  Route route = {.type = type, .api = find_api(type)};
  PyObject *package = find_package(type);
  route.is_neg = find_method(object, "is_neg");
  route.is_masked =
      PyObject_HasAttrString((PyObject *)type, "mask") && PyObject_HasAttrString((PyObject *)type, "filled");
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
  bool is_whole = true;
  ArrayResult result = ARRAY_OK;
  if (dtype.code == 255) { // an element may have size 0
    PyErr_Format(PyExc_TypeError, "expected elements that are numbers in this machine's byte order, got format '%s'",
                 buffer->format);
    result = ARRAY_ERROR;
  } else if (buffer->ndim > MAX_RANK) {
    result = refuse(array, "expected at most 16 dimensions, got more"); // MAX_RANK
  }
  for (int i = 0; result == ARRAY_OK && i < buffer->ndim; ++i) {
    array->shape[i] = buffer->shape[i];
    if (buffer->strides) { // ctypes' arrays have none
      array->strides[i] = buffer->strides[i] / buffer->itemsize;
      is_whole &= buffer->strides[i] % buffer->itemsize == 0;
    }
  }
  if (!is_whole)
    result = refuse(array, "expected strides of whole elements, got others; pass numpy.ascontiguousarray(x)");
  if (result != ARRAY_OK) {
    PyBuffer_Release(buffer);
    buffer->obj = NULL;
    return result;
  }
  array->tensor = (DLTensor){.data = buffer->buf, .device = {kDLCPU, 0}, .ndim = buffer->ndim, .dtype = dtype,
                             .shape = array->shape, .strides = buffer->strides ? array->strides : NULL};
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

//===-- PyTorch's tensors --------------------------------------------------===//

/// Sets array->bits. DLPack does not report these bits: it gives the memory as it is. Returns -1 with an exception on
/// failure.
static int find_bits(PyObject *tensor, Array *array) {
  PyObject *negative = array->is_neg(tensor, NULL);
  bool is_complex = negative && array->tensor.dtype.code == COMPLEX;
  PyObject *conjugate = is_complex ? PyObject_CallMethod(tensor, "is_conj", NULL) : NULL;
  array->bits = (negative == Py_True ? NEGATIVE : 0) | (conjugate == Py_True ? CONJUGATE : 0);
  int result = negative && (conjugate || !is_complex) ? 0 : -1;
  Py_XDECREF(negative);
  Py_XDECREF(conjugate);
  return result;
}

/// Whether forward-mode differentiation has given `tensor` a tangent. Returns -1 with an exception on failure.
static int has_tangent(PyObject *tensor) {
  static PyObject *names, *level_name; // of torch.autograd.forward_ad
  if (!names) {
    PyObject *module = PyImport_ImportModule("torch.autograd.forward_ad");
    if (!module)
      return -1;
    level_name = PyUnicode_InternFromString("_current_level");
    names = PyModule_GetDict(module);
  }
  PyObject *level = PyDict_GetItemWithError(names, level_name);
  if (level && PyLong_AsLong(level) < 0) // no code inside forward_ad.dual_level() is running
    return 0;
  PyObject *unpack = PyDict_GetItemString(names, "unpack_dual");
  PyObject *dual = unpack ? PyObject_CallFunctionObjArgs(unpack, tensor, NULL) : NULL;
  PyObject *tangent = dual ? PyObject_GetAttrString(dual, "tangent") : NULL;
  int result = tangent ? tangent != Py_None : -1;
  Py_XDECREF(tangent);
  Py_XDECREF(dual);
  return result;
}

/// Whether a function runs that torch.func transforms, for example with vmap or grad. Keeps the current exception.
static bool is_in_transform(void) {
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  PyObject *module = PyImport_ImportModule("torch._C._functorch");
  PyObject *level = module ? PyObject_CallMethod(module, "maybe_current_level", NULL) : NULL;
  bool result = level && level != Py_None;
  Py_XDECREF(level);
  Py_XDECREF(module);
  PyErr_Restore(type, value, trace);
  return result;
}

//===-- Any array ----------------------------------------------------------===//

/// Turns a view of complex numbers into a view with one more dimension, which has the real and the imaginary part. This
/// is the form in which a compiled function takes complex numbers.
static bool split_complex(Array *array) {
  DLTensor *tensor = &array->tensor;
  if (tensor->ndim >= MAX_RANK)
    return false;
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

/// Views the memory of an array.
static ArrayResult view(PyObject *object, Array *array) {
  array->memory = NULL;
  array->buffer.obj = NULL;
  array->read_only = 0;
  array->bits = 0;
  Route route = find_route(object);
  array->api = route.api;
  array->is_neg = route.is_neg;
  if (route.is_masked)
    return refuse(array, "expected an array without a mask, got a masked array; pass x.filled(value) or x.data");
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
  if (result == ARRAY_ERROR && array->is_neg && is_in_transform()) {
    PyErr_Clear();
    return refuse(array, "expected a tensor outside of the transforms of torch.func, such as vmap and grad, got one "
                         "inside");
  }
  if (result == ARRAY_OK && array->is_neg) {
    int tangent = has_tangent(object);
    if (tangent > 0)
      result = refuse(array, "expected a tensor without a tangent, because attn computes none, got one with a tangent "
                             "of torch.autograd.forward_ad; pass unpack_dual(x).primal");
    else if (tangent < 0 || find_bits(object, array) < 0)
      result = ARRAY_ERROR;
  }
  if (result == ARRAY_OK && array->tensor.dtype.code == COMPLEX && !split_complex(array))
    result = refuse(array, "expected at most 15 dimensions of complex numbers, got more");
  if (result != ARRAY_OK)
    array_release(array);
  return result;
}

ArrayResult array_resolve(PyObject *object, Array *array) {
  if (!array->bits)
    return ARRAY_OK;
  array_release(array);
  PyObject *real = PyObject_CallMethod(object, "resolve_conj", NULL);
  PyObject *copy = real ? PyObject_CallMethod(real, "resolve_neg", NULL) : NULL;
  Py_XDECREF(real);
  ArrayResult result = copy ? array_view(copy, array) : ARRAY_ERROR;
  if (result == ARRAY_OK && !array->memory) // a capsule keeps the copy alive
    array->memory = copy;
  else
    Py_XDECREF(copy);
  return result;
}

int array_finish_write(PyObject *object, const Array *array) {
  if (!array->is_neg)
    return 0;
  static PyObject *increment_version;
  if (!increment_version) {
    PyObject *graph = PyImport_ImportModule("torch.autograd.graph");
    increment_version = graph ? PyObject_GetAttrString(graph, "increment_version") : NULL;
    Py_XDECREF(graph);
  }
  PyObject *changed = increment_version ? PyObject_CallFunctionObjArgs(increment_version, object, NULL) : NULL;
  Py_XDECREF(changed);
  // The written elements are those of the memory: -x in place gives x to a tensor with the negative bit.
  if (changed && array->bits & NEGATIVE) {
    changed = PyObject_CallMethod(object, "neg_", NULL);
    Py_XDECREF(changed);
  }
  if (changed && array->bits & CONJUGATE) {
    changed = PyObject_CallMethod(object, "conj_physical_", NULL);
    Py_XDECREF(changed);
  }
  return changed ? 0 : -1;
}

void array_release(Array *array) {
  if (array->buffer.obj)
    PyBuffer_Release(&array->buffer); // also sets buffer.obj to null
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
    else if (view_of_like->is_neg && is_in_transform()) {
      PyErr_Clear();
      raise_error(ATTN_ERROR_USAGE, "expected a call outside of the transforms of torch.func, such as vmap and grad, "
                                    "got one inside");
    }
  } else if (view_of_like && view_of_like->tensor.device.device_type != kDLCPU) {
    PyErr_Format(PyExc_TypeError, "expected PyTorch's tensors on a GPU, got an array of type %R", Py_TYPE(like));
  } else {
    made = make_numpy(dtype, rank, shape);
  }
  if (!made)
    return NULL;
  if (view(made, array) != ARRAY_OK) { // a new array needs no further checks
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
