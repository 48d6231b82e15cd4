//===- function.c - compiled functions as Python objects ---------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// Library and Function own the handles of attn.h. A call converts its arguments to tensors without a copy, makes the
// outputs, and releases the interpreter's lock while the function runs. attn.Kernel, in Python, extends Function with
// all methods that need not be fast.
//
//===----------------------------------------------------------------------===//

#include "extension.h"

#include <stdbool.h>
#include <string.h>

//===-- Library ------------------------------------------------------------===//

typedef struct {
  PyObject_HEAD
  attn_library *library;
} Library;

static PyObject *library_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
  static char *names[] = {"path", NULL};
  PyObject *path;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O&:Library", names, PyUnicode_FSConverter, &path))
    return NULL;
  Library *self = (Library *)PyType_GenericAlloc(type, 0);
  if (self && check(attn_library_load(PyBytes_AsString(path), &self->library)) < 0)
    Py_CLEAR(self);
  Py_DECREF(path);
  return (PyObject *)self;
}

static void library_dealloc(Library *self) {
  PyTypeObject *type = Py_TYPE((PyObject *)self);
  attn_library_release(self->library);
  freefunc release = PyType_GetSlot(type, Py_tp_free);
  release(self);
  Py_DECREF((PyObject *)type);
}

static PyObject *library_name(Library *self, void *closure) {
  return PyUnicode_FromString(attn_library_name(self->library));
}

static PyObject *library_compiler(Library *self, void *closure) {
  return PyUnicode_FromString(attn_library_compiler(self->library));
}

static PyObject *library_manifest(Library *self, void *closure) {
  return PyUnicode_FromString(attn_library_manifest(self->library));
}

static PyGetSetDef library_properties[] = {
    {"name", (getter)library_name, NULL, "The library's name.", NULL},
    {"compiler", (getter)library_compiler, NULL, "The version of the compiler that wrote the library.", NULL},
    {"manifest", (getter)library_manifest, NULL, "The description of the library's functions, as JSON.", NULL},
    {0}};

static PyType_Slot library_slots[] = {
    {Py_tp_new, library_new},
    {Py_tp_dealloc, library_dealloc},
    {Py_tp_getset, library_properties},
    {Py_tp_doc, "Library(path)\n\n"
                "A library that attnc wrote. Loading a library runs its code: load only libraries that you trust."},
    {0, NULL}};

PyType_Spec library_spec = {"attn._attn.Library", sizeof(Library), 0, Py_TPFLAGS_DEFAULT, library_slots};

//===-- Function -----------------------------------------------------------===//

typedef struct {
  PyObject_HEAD
  PyObject *library;
  attn_function *function;
  attn_weights *weights;
  DLDevice device;
  int32_t num_inputs, num_outputs;
  bool is_plain; ///< one output, called "out", and no input that a call writes to
  bool *in_out;  ///< for each input, whether a call writes to it
  bool has_in_out;
  long num_threads; ///< 0: PyTorch's number if the first input is a PyTorch tensor, otherwise all CPUs of the process
} Function;

static int describe(attn_function *function, attn_role role, int32_t index, attn_argument *argument) {
  *argument = (attn_argument){.size = sizeof *argument};
  return check(attn_function_argument(function, role, index, argument));
}

/// Raises attn.Error about an argument, and returns -1. `reason` says what was expected and what was given.
static int refuse(const Function *self, attn_role role, int32_t index, const char *reason) {
  attn_argument argument;
  if (describe(self->function, role, index, &argument) < 0)
    return -1;
  const char *name = attn_function_name(self->function);
  PyObject *text = PyUnicode_FromFormat("%s: argument '%s' %s", name, argument.name, reason);
  if (text)
    raise_error(ATTN_ERROR_USAGE, PyUnicode_AsUTF8AndSize(text, NULL));
  Py_XDECREF(text);
  return -1;
}

static PyObject *function_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
  static char *names[] = {"library", "name", "level", "device_type", "device_id", NULL};
  PyObject *library;
  const char *name, *level = NULL;
  int device_type = 0, device_id = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!s|zii:Function", names, library_type, &library, &name, &level,
                                   &device_type, &device_id))
    return NULL;
  Function *self = (Function *)PyType_GenericAlloc(type, 0);
  if (!self)
    return NULL;
  attn_function_options options = {.size = sizeof options, .level = level, .device = {device_type, device_id}};
  if (check(attn_function_create(((Library *)library)->library, name, &options, &self->function)) < 0) {
    Py_DECREF(self);
    return NULL;
  }
  Py_INCREF(library);
  self->library = library;
  self->device = (DLDevice){device_type ? device_type : kDLCPU, device_id};
  self->num_inputs = attn_function_num_arguments(self->function, ATTN_INPUT);
  self->num_outputs = attn_function_num_arguments(self->function, ATTN_OUTPUT);
  self->is_plain = self->num_outputs == 1;
  if (!(self->in_out = PyMem_Calloc(self->num_inputs + 1, sizeof *self->in_out))) {
    Py_DECREF(self);
    return PyErr_NoMemory();
  }
  for (int32_t i = 0; i < self->num_inputs + self->num_outputs; ++i) {
    bool is_input = i < self->num_inputs;
    attn_argument argument;
    if (describe(self->function, is_input ? ATTN_INPUT : ATTN_OUTPUT, is_input ? i : i - self->num_inputs, &argument) < 0) {
      Py_DECREF(self);
      return NULL;
    }
    if (is_input) {
      self->in_out[i] = argument.in_out;
      self->has_in_out |= argument.in_out;
    }
    self->is_plain &= is_input ? !argument.in_out : strcmp(argument.name, "out") == 0;
  }
  return (PyObject *)self;
}

static void function_dealloc(Function *self) {
  PyTypeObject *type = Py_TYPE((PyObject *)self);
  attn_weights_release(self->weights);
  attn_function_release(self->function);
  PyMem_Free(self->in_out);
  Py_XDECREF(self->library);
  freefunc release = PyType_GetSlot(type, Py_tp_free);
  release(self);
  Py_DECREF((PyObject *)type);
}

/// Clears the current exception, which array_view raised. Returns a text for an error of attn, a new reference, or null
/// with an exception.
static PyObject *take_reason(void) {
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  PyObject *text = value ? PyObject_Str(value) : NULL;
  const char *lines = text ? PyUnicode_AsUTF8AndSize(text, NULL) : NULL;
  PyObject *line = lines ? PyUnicode_FromStringAndSize(lines, strcspn(lines, "\n")) : NULL; // PyTorch adds a trace
  bool is_own = lines && strncmp(lines, "expected", strlen("expected")) == 0;
  const char *what = is_own ? "" : "expected an array of numbers in memory, got one that cannot be read: ";
  PyObject *reason = line ? PyUnicode_FromFormat("%s%U", what, line) : NULL;
  Py_XDECREF(line);
  Py_XDECREF(text);
  Py_XDECREF(type);
  Py_XDECREF(value);
  Py_XDECREF(trace);
  return reason;
}

//===-- Weights ------------------------------------------------------------===//

/// Makes `weights` the weights of the function. Calls that are running keep the old weights until they end.
static PyObject *take_weights(Function *self, attn_weights *weights) {
  if (!self->weights) {
    self->weights = weights;
    Py_RETURN_NONE;
  }
  attn_status status;
  Py_BEGIN_ALLOW_THREADS
  status = attn_weights_swap(self->weights, weights);
  attn_weights_release(weights);
  Py_END_ALLOW_THREADS
  if (check(status) < 0)
    return NULL;
  Py_RETURN_NONE;
}

static PyObject *function_set_weights(Function *self, PyObject *tensors) {
  if (!PyDict_Check(tensors))
    return PyErr_Format(PyExc_TypeError, "expected a dictionary of names and arrays");
  Py_ssize_t size = PyDict_Size(tensors), count = 0, position = 0;
  Array *arrays = PyMem_Calloc(size + 1, sizeof *arrays);
  const char **names = PyMem_Calloc(size + 1, sizeof *names);
  const DLTensor **pointers = PyMem_Calloc(size + 1, sizeof *pointers);
  attn_weights *weights = NULL;
  PyObject *key, *value;
  bool is_ok = arrays && names && pointers;
  while (is_ok && PyDict_Next(tensors, &position, &key, &value)) {
    ArrayResult result = array_view(value, &arrays[count]);
    if (result == ARRAY_OK)
      result = array_resolve(value, &arrays[count]);
    if (result == ARRAY_NONE)
      PyErr_Format(PyExc_TypeError, "expected an array for weight '%S', got an object of type %R", key, Py_TYPE(value));
    PyObject *reason = result == ARRAY_REFUSED ? PyUnicode_FromString(arrays[count].reason)
                       : result == ARRAY_ERROR ? take_reason() : NULL;
    if (reason)
      PyErr_Format(error_type, "%s: weight '%S' %U", attn_function_name(self->function), key, reason);
    Py_XDECREF(reason);
    is_ok = result == ARRAY_OK;
    if (is_ok) {
      pointers[count] = &arrays[count].tensor;
      names[count++] = PyUnicode_AsUTF8AndSize(key, NULL);
      is_ok = names[count - 1] != NULL;
    }
  }
  if (is_ok) {
    attn_status status;
    Py_BEGIN_ALLOW_THREADS
    status = attn_weights_create(self->function, names, pointers, (int32_t)count, &weights);
    Py_END_ALLOW_THREADS
    check(status);
  } else if (!PyErr_Occurred()) {
    PyErr_NoMemory();
  }
  for (Py_ssize_t i = 0; i < count; ++i)
    array_release(&arrays[i]);
  PyMem_Free(arrays);
  PyMem_Free(names);
  PyMem_Free(pointers);
  return weights ? take_weights(self, weights) : NULL;
}

static PyObject *function_load_weights(Function *self, PyObject *path) {
  PyObject *bytes;
  if (!PyUnicode_FSConverter(path, &bytes))
    return NULL;
  attn_weights *weights = NULL;
  attn_status status;
  const char *name = PyBytes_AsString(bytes);
  Py_BEGIN_ALLOW_THREADS
  status = attn_weights_load(self->function, name, &weights);
  Py_END_ALLOW_THREADS
  Py_DECREF(bytes);
  return check(status) < 0 ? NULL : take_weights(self, weights);
}

static PyObject *function_use_embedded_weights(Function *self, PyObject *unused) {
  attn_weights *weights = NULL;
  if (check(attn_weights_create_embedded(self->function, &weights)) < 0)
    return NULL;
  return take_weights(self, weights);
}

//===-- Calls --------------------------------------------------------------===//

/// The number of threads of a call whose first input is `first`.
static long count_threads(const Function *self, const Array *first) {
  if (self->num_threads || !first || !first->api)
    return self->num_threads;
  static PyObject *get_num_threads;
  if (!get_num_threads) {
    PyObject *torch = PyImport_ImportModule("torch");
    get_num_threads = torch ? PyObject_GetAttrString(torch, "get_num_threads") : NULL;
    Py_XDECREF(torch);
  }
  PyObject *count = get_num_threads ? PyObject_CallNoArgs(get_num_threads) : NULL;
  long threads = count ? PyLong_AsLong(count) : 0;
  Py_XDECREF(count);
  PyErr_Clear(); // there is no torch; another package has DLPack's functions
  return threads;
}

/// Returns the pool with this number of threads, which all functions share. Returns null with an exception on failure.
static attn_pool *find_pool(long threads) {
  enum { KNOWN_POOLS = 64 };
  static attn_pool *pools[KNOWN_POOLS];
  static long sizes[KNOWN_POOLS];
  static int num_pools;
  for (int i = 0; i < num_pools; ++i)
    if (sizes[i] == threads)
      return pools[i];
  attn_pool *pool;
  if (num_pools == KNOWN_POOLS) {
    PyErr_Format(PyExc_RuntimeError, "expected at most %d different numbers of threads in a process", KNOWN_POOLS);
    return NULL;
  }
  if (check(attn_pool_create(threads, &pool)) < 0)
    return NULL;
  sizes[num_pools] = threads;
  pools[num_pools++] = pool;
  return pool;
}

/// Raises an error if `tensor` requires a gradient: attn computes none, so it would be missing without notice.
static int check_gradients(PyObject *tensor, bool is_input) {
  static PyObject *requires_grad, *is_grad_enabled;
  if (!requires_grad && !(requires_grad = PyUnicode_InternFromString("requires_grad")))
    return -1;
  PyObject *requires = PyObject_GetAttr(tensor, requires_grad);
  if (!requires) {
    PyErr_Clear(); // not a tensor of PyTorch
    return 0;
  }
  bool is_required = requires == Py_True;
  Py_DECREF(requires);
  if (!is_required)
    return 0;
  if (!is_grad_enabled) {
    PyObject *torch = PyImport_ImportModule("torch");
    is_grad_enabled = torch ? PyObject_GetAttrString(torch, "is_grad_enabled") : NULL;
    Py_XDECREF(torch);
    if (!is_grad_enabled)
      return -1;
  }
  PyObject *enabled = PyObject_CallNoArgs(is_grad_enabled);
  if (!enabled)
    return -1;
  bool is_enabled = enabled == Py_True;
  Py_DECREF(enabled);
  if (!is_enabled)
    return 0;
  return raise_error(ATTN_ERROR_USAGE,
                     is_input ? "expected inputs without gradients, because attn computes none; call inside "
                                "torch.no_grad() or torch.inference_mode(), or pass x.detach()"
                              : "expected outputs without gradients, because attn computes none; call inside "
                                "torch.no_grad() or torch.inference_mode(), or pass out.detach()");
}

/// Says why a call cannot take the input `index`, which is viewed; null if it can.
static const char *why_not(const Function *self, int32_t index, const Array *array) {
  if (array->read_only && index < self->num_inputs && self->in_out[index])
    return "expected a writable array, because the call writes to it, got a read-only array";
  // A copy without bits does not suffice if the call writes to this input, or to another one with the same memory.
  if (array->bits && self->has_in_out)
    return array->bits & NEGATIVE ? "expected a tensor without the negative bit, because the call writes to inputs, "
                                    "got one with this bit; pass x.resolve_neg()"
                                  : "expected a tensor without the conjugate bit, because the call writes to inputs, "
                                    "got one with this bit; pass x.resolve_conj()";
  return NULL;
}

static ArrayResult view_input(const Function *self, int32_t index, PyObject *object, Array *array) {
  ArrayResult result = array_view(object, array);
  if (result == ARRAY_OK) {
    if (array->is_neg && check_gradients(object, /*is_input=*/true) < 0)
      result = ARRAY_ERROR;
    else if ((array->reason = why_not(self, index, array)))
      result = ARRAY_REFUSED;
    if (result != ARRAY_OK)
      array_release(array);
    else
      result = array_resolve(object, array);
  }
  if (result == ARRAY_REFUSED) {
    refuse(self, ATTN_INPUT, index, array->reason);
    result = ARRAY_ERROR;
  }
  return result;
}

/// Views the array that the caller gave for the output `index`. Returns -1 with an exception on failure.
static int view_output(const Function *self, int32_t index, PyObject *object, Array *array) {
  ArrayResult result = array_view(object, array);
  PyObject *reason = NULL;
  if (result == ARRAY_OK && !array->read_only) {
    if (!array->is_neg || check_gradients(object, /*is_input=*/false) == 0)
      return 0;
  } else if (result == ARRAY_OK) {
    reason = PyUnicode_FromString("expected a writable array, got a read-only array");
  } else if (result == ARRAY_NONE) {
    reason = PyUnicode_FromFormat("expected an array, got an object of type %R", Py_TYPE(object));
  } else {
    reason = result == ARRAY_REFUSED ? PyUnicode_FromString(array->reason) : take_reason();
  }
  if (reason)
    refuse(self, ATTN_OUTPUT, index, PyUnicode_AsUTF8AndSize(reason, NULL));
  Py_XDECREF(reason);
  if (result == ARRAY_OK)
    array_release(array);
  return -1;
}

/// Adds the values of `from` to the dictionary `statistics`.
static int fill_statistics(PyObject *statistics, const attn_statistics *from) {
  PyObject *values = Py_BuildValue("{sL sL ss ss sL sL}", "nanoseconds", (long long)from->nanoseconds, "workspace_bytes",
                                   (long long)from->workspace_bytes, "level", from->level, "schedules",
                                   from->schedules ? from->schedules : "", "tiles_run", (long long)from->tiles_run,
                                   "tiles_skipped", (long long)from->tiles_skipped);
  int result = values ? PyDict_Update(statistics, values) : -1;
  Py_XDECREF(values);
  return result;
}

enum { FEW = 16 }; ///< a call with at most this many arguments allocates no memory for them

/// Calls the function with `inputs`. `outputs` is null or has arrays to write to. Returns a tuple of the outputs, or
/// the output alone if `is_single`. If an input is not an array, sets *none to its index and *result to ARRAY_NONE, and
/// returns null without an exception.
static PyObject *run(Function *self, PyObject *inputs, PyObject *outputs, PyObject *statistics, bool is_single,
                     ArrayResult *result, int32_t *none) {
  int32_t num_inputs = (int32_t)PyTuple_Size(inputs), num_outputs = self->num_outputs, num_views = 0, num_made = 0;
  int32_t count = num_inputs + num_outputs;
  Array few[FEW], *arrays = few;
  const DLTensor *few_pointers[FEW], **pointers = few_pointers;
  PyObject *few_made[FEW], **made = few_made, *returned = NULL;
  *result = ARRAY_ERROR;
  if (count > FEW) {
    arrays = PyMem_Calloc(count, sizeof *arrays);
    pointers = PyMem_Calloc(count, sizeof *pointers);
    made = PyMem_Calloc(count, sizeof *made);
    if (!arrays || !pointers || !made) {
      PyErr_NoMemory();
      goto end;
    }
  }
  for (int32_t i = 0; i < num_inputs; ++i) {
    *result = view_input(self, i, PyTuple_GetItem(inputs, i), &arrays[i]);
    if (*result != ARRAY_OK) {
      *none = i;
      goto end;
    }
    pointers[i] = &arrays[i].tensor;
    ++num_views;
  }
  *result = ARRAY_ERROR;
  const Array *first = num_inputs ? &arrays[0] : NULL;
  PyObject *like = num_inputs ? PyTuple_GetItem(inputs, 0) : NULL;

  for (int32_t i = 0; i < num_outputs; ++i) {
    Array *array = &arrays[num_inputs + i];
    if (outputs) {
      PyObject *output = PyTuple_GetItem(outputs, i);
      if (view_output(self, i, output, array) < 0)
        goto end;
      Py_INCREF(output);
      made[num_made++] = output;
      ++num_views;
    } else {
      attn_argument argument;
      int64_t shape[MAX_RANK];
      if (describe(self->function, ATTN_OUTPUT, i, &argument) < 0 ||
          check_call(attn_output_shape(self->function, pointers, num_inputs, i, shape)) < 0)
        goto end;
      if (!(made[num_made] = array_make(like, first, argument.dtype, argument.rank, shape, array)))
        goto end;
      ++num_made;
      ++num_views;
    }
    pointers[num_inputs + i] = &array->tensor;
  }

  attn_statistics measured = {.size = sizeof measured};
  attn_call_options options = {.size = sizeof options, .statistics = statistics ? &measured : NULL};
  if (self->device.device_type == kDLCPU) {
    long threads = count_threads(self, first);
    if (threads != 1) {
      if (!(options.pool = find_pool(threads)))
        goto end;
      options.parallel_for = attn_pool_parallel_for;
    }
  } else if (first && first->api &&
             first->api->current_stream(self->device.device_type, self->device.device_id, &options.stream)) {
    goto end;
  }
  attn_status status;
  Py_BEGIN_ALLOW_THREADS
  status = attn_call(self->function, self->weights, pointers, num_inputs, pointers + num_inputs, num_outputs, &options);
  Py_END_ALLOW_THREADS
  if (check_call(status) < 0 || (statistics && fill_statistics(statistics, &measured) < 0))
    goto end;
  for (int32_t i = 0; outputs && i < num_outputs; ++i)
    if (array_finish_write(made[i], &arrays[num_inputs + i]) < 0)
      goto end;
  for (int32_t i = 0; self->has_in_out && i < num_inputs; ++i)
    if (self->in_out[i] && array_finish_write(PyTuple_GetItem(inputs, i), &arrays[i]) < 0)
      goto end;

  returned = is_single ? NULL : PyTuple_New(num_outputs);
  for (int32_t i = 0; i < num_outputs; ++i) {
    PyObject *output = made[i];
    made[i] = NULL;
    if (!outputs)
      output = array_finish(like, first, output);
    if (is_single)
      returned = output;
    else if (output && returned)
      PyTuple_SetItem(returned, i, output);
    else {
      Py_XDECREF(output);
      Py_CLEAR(returned);
      break; // with an exception; the other outputs are released below
    }
  }

end:
  for (int32_t i = 0; i < num_views; ++i)
    array_release(&arrays[i]);
  for (int32_t i = 0; i < num_made; ++i)
    Py_XDECREF(made[i]);
  if (count > FEW) {
    PyMem_Free(arrays);
    PyMem_Free(pointers);
    PyMem_Free(made);
  }
  return returned;
}

static PyObject *function_run(Function *self, PyObject *args, PyObject *kwargs) {
  static char *names[] = {"inputs", "outputs", "statistics", NULL};
  PyObject *inputs, *outputs = Py_None, *statistics = Py_None;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!|OO:run", names, &PyTuple_Type, &inputs, &outputs, &statistics))
    return NULL;
  if (outputs != Py_None && (!PyTuple_Check(outputs) || PyTuple_Size(outputs) != self->num_outputs)) {
    PyErr_Format(PyExc_TypeError, "expected a tuple of %d outputs", self->num_outputs);
    return NULL;
  }
  if (statistics != Py_None && !PyDict_Check(statistics)) {
    PyErr_SetString(PyExc_TypeError, "expected a dictionary for the statistics");
    return NULL;
  }
  ArrayResult result;
  int32_t none;
  PyObject *returned = run(self, inputs, outputs == Py_None ? NULL : outputs, statistics == Py_None ? NULL : statistics,
                           /*is_single=*/false, &result, &none);
  if (result == ARRAY_NONE && !returned)
    PyErr_Format(PyExc_TypeError, "expected an array for input %d, got an object of type %R", none,
                 Py_TYPE(PyTuple_GetItem(inputs, none)));
  return returned;
}

/// Runs the most common calls here in C: those with only arrays and one result, such as k(x, mask). Kernel._call, in
/// Python, runs all other calls.
static PyObject *function_call(Function *self, PyObject *args, PyObject *kwargs) {
  if (self->is_plain && PyTuple_Size(args) == self->num_inputs && (!kwargs || PyDict_Size(kwargs) == 0)) {
    ArrayResult result;
    int32_t none;
    PyObject *returned = run(self, args, /*outputs=*/NULL, /*statistics=*/NULL, /*is_single=*/true, &result, &none);
    // If a package of arrays raised an error, _call raises one that names the argument.
    bool is_foreign = !returned && result != ARRAY_NONE && !PyErr_ExceptionMatches(error_type) &&
                      (PyErr_ExceptionMatches(PyExc_RuntimeError) || PyErr_ExceptionMatches(PyExc_AttributeError) ||
                       PyErr_ExceptionMatches(PyExc_TypeError));
    if (returned || (result != ARRAY_NONE && !is_foreign))
      return returned;
    PyErr_Clear();
  }
  PyObject *call = PyObject_GetAttrString((PyObject *)self, "_call");
  PyObject *returned = call ? PyObject_Call(call, args, kwargs) : NULL;
  Py_XDECREF(call);
  return returned;
}

static PyObject *function_workspace_size(Function *self, PyObject *inputs) {
  int32_t count = PyTuple_Check(inputs) ? (int32_t)PyTuple_Size(inputs) : 0, num_views = 0;
  Array *arrays = PyMem_Calloc(count + 1, sizeof *arrays);
  const DLTensor **pointers = PyMem_Calloc(count + 1, sizeof *pointers);
  attn_workspace size = {.size = sizeof size};
  PyObject *returned = NULL;
  for (; arrays && pointers && num_views < count; ++num_views) {
    ArrayResult result = view_input(self, num_views, PyTuple_GetItem(inputs, num_views), &arrays[num_views]);
    if (result == ARRAY_NONE)
      PyErr_SetString(PyExc_TypeError, "expected a tuple of arrays");
    if (result != ARRAY_OK)
      break;
    pointers[num_views] = &arrays[num_views].tensor;
  }
  if (num_views == count && check(attn_workspace_size(self->function, pointers, count, 1, &size)) == 0)
    returned = PyLong_FromLongLong(size.total);
  for (int32_t i = 0; i < num_views; ++i)
    array_release(&arrays[i]);
  PyMem_Free(arrays);
  PyMem_Free(pointers);
  return returned;
}

//===-- Properties ---------------------------------------------------------===//

static PyObject *function_name(Function *self, void *closure) {
  return PyUnicode_FromString(attn_function_name(self->function));
}

static PyObject *function_level(Function *self, void *closure) {
  return PyUnicode_FromString(attn_function_level(self->function));
}

static PyObject *function_text(Function *self, void *closure) {
  return PyUnicode_FromString(attn_function_report(self->function));
}

static PyObject *function_get_threads(Function *self, void *closure) {
  if (!self->num_threads)
    Py_RETURN_NONE;
  return PyLong_FromLong(self->num_threads);
}

static int function_set_threads(Function *self, PyObject *value, void *closure) {
  long threads = 0;
  if (value && value != Py_None) {
    threads = PyLong_AsLong(value);
    if (threads == -1 && PyErr_Occurred())
      return -1;
    if (threads < 1 || threads > 4096)
      return raise_error(ATTN_ERROR_USAGE, "num_threads: expected a number from 1 to 4096, or None");
  }
  self->num_threads = threads;
  return 0;
}

static int function_set_plain(Function *self, PyObject *value, void *closure) {
  self->is_plain = value == Py_True;
  return 0;
}

static PyGetSetDef function_properties[] = {
    {"name", (getter)function_name, NULL, "The function's name in its library, such as \"forward\".", NULL},
    {"level", (getter)function_level, NULL, "The ISA level of the code that calls run, such as \"x86-64-v3\".", NULL},
    {"_is_plain", NULL, (setter)function_set_plain, "Whether calls may return the output as it is, without `_call`.", NULL},
    {"_report_text", (getter)function_text, NULL, NULL, NULL},
    {"num_threads", (getter)function_get_threads, (setter)function_set_threads,
     "The number of threads that compute a call together. None, the default, means torch.get_num_threads() if the\n"
     "first input is a tensor of PyTorch, and otherwise the number of CPUs that the process may use.",
     NULL},
    {0}};

static PyMethodDef function_methods[] = {
    {"run", (PyCFunction)(void (*)(void))function_run, METH_VARARGS | METH_KEYWORDS,
     "run(inputs, outputs=None, statistics=None)\n\n"
     "Calls the function with a tuple of arrays, in the order of the signature, and returns a tuple of its outputs.\n"
     "Writes the outputs to the arrays in `outputs`, a tuple, if it is given. Adds statistics of the call to the\n"
     "dictionary `statistics`, if it is given: nanoseconds, workspace_bytes, level, schedules, tiles_run and\n"
     "tiles_skipped."},
    {"workspace_size", (PyCFunction)function_workspace_size, METH_O,
     "workspace_size(inputs)\n\n"
     "The size in bytes of the workspace for a call with these inputs, a tuple of arrays, on one thread."},
    {"_set_weights", (PyCFunction)function_set_weights, METH_O, NULL},
    {"_load_weights", (PyCFunction)function_load_weights, METH_O, NULL},
    {"_use_embedded_weights", (PyCFunction)function_use_embedded_weights, METH_NOARGS, NULL},
    {0}};

static PyType_Slot function_slots[] = {
    {Py_tp_new, function_new},
    {Py_tp_dealloc, function_dealloc},
    {Py_tp_call, function_call},
    {Py_tp_getset, function_properties},
    {Py_tp_methods, function_methods},
    {Py_tp_doc, "A function of a library, for one ISA level or GPU; the base class of attn.Kernel."},
    {0, NULL}};

PyType_Spec function_spec = {"attn._attn.Function", sizeof(Function), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
                             function_slots};
