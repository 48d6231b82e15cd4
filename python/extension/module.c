//===- module.c - the extension module attn._attn ----------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "extension.h"

PyObject *library_type;

PyObject *error_type;

static const char *name_status(attn_status status) {
  static const char *const names[] = {"OK",     "USAGE", "RESOURCE", "LIBRARY",   "NAME",    "LEVEL", "COUNT",
                                      "NULL",   "DEVICE", "DTYPE",   "RANK",      "SHAPE",   "STRIDE", "ALIGNMENT",
                                      "OVERLAP", "VALUE", "WEIGHTS", "WORKSPACE", "FILE",    "DRIVER"};
  return (size_t)status < sizeof names / sizeof *names ? names[status] : "UNKNOWN";
}

int raise_error(attn_status status, const char *message) {
  PyObject *error = PyObject_CallFunction(error_type, "s", message);
  PyObject *name = PyUnicode_FromString(name_status(status));
  if (error && name && PyObject_SetAttrString(error, "status", name) == 0)
    PyErr_SetObject(error_type, error);
  Py_XDECREF(name);
  Py_XDECREF(error);
  return -1;
}

int check(attn_status status) { return status == ATTN_OK ? 0 : raise_error(status, attn_last_error()); }

int check_call(attn_status status) {
  if (status != ATTN_ERROR_STRIDE && status != ATTN_ERROR_DTYPE)
    return check(status);
  PyObject *text = PyUnicode_FromFormat("%s; convert it, for example with %s, or call with copy=True", attn_last_error(),
                                        status == ATTN_ERROR_STRIDE ? "x.contiguous() or numpy.ascontiguousarray(x)"
                                                                    : "x.to(dtype) or x.astype(dtype)");
  if (text)
    raise_error(status, PyUnicode_AsUTF8AndSize(text, NULL));
  Py_XDECREF(text);
  return -1;
}

static int add(PyObject *module, const char *name, PyObject *object) {
  int result = object ? PyModule_AddObjectRef(module, name, object) : -1;
  return result;
}

static PyObject *packed_bytes(PyObject *module, PyObject *unused) {
  return PyLong_FromLongLong(attn_packed_bytes());
}

static PyMethodDef module_methods[] = {
    {"packed_bytes", packed_bytes, METH_NOARGS,
     "packed_bytes()\n\nThe size in bytes of all packed weights in memory. Weights that several functions pack alike count once."},
    {0}};

PyMODINIT_FUNC PyInit__attn(void) {
  static PyModuleDef definition = {PyModuleDef_HEAD_INIT, .m_name = "attn._attn",
                                   .m_doc = "The C runtime of attn.", .m_size = -1,
                                   .m_methods = module_methods};
  PyObject *module = PyModule_Create(&definition);
  if (!module)
    return NULL;
  error_type = PyErr_NewExceptionWithDoc(
      "attn.Error",
      "An error of attn. Its text says what was expected and what was given. `status` is the name of the error's\n"
      "status in attn.h without the prefix ATTN_ERROR_, such as \"SHAPE\", or \"COMPILE\" if the model cannot be\n"
      "exported or compiled.",
      PyExc_RuntimeError, NULL);
  if (error_type) { // the status of an error that sets none
    PyObject *status = PyUnicode_FromString(name_status(ATTN_ERROR_USAGE));
    PyObject_SetAttrString(error_type, "status", status);
    Py_XDECREF(status);
  }
  library_type = PyType_FromSpec(&library_spec);
  PyObject *function_type = PyType_FromSpec(&function_spec), *version = PyUnicode_FromString(attn_version());
  if (add(module, "Error", error_type) < 0 || add(module, "Library", library_type) < 0 ||
      add(module, "Function", function_type) < 0 || add(module, "version", version) < 0)
    Py_CLEAR(module);
  Py_XDECREF(function_type);
  Py_XDECREF(version);
  return module;
}
