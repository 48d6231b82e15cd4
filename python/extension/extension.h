//===- extension.h - declarations that the files of the extension share ------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_PYTHON_EXTENSION_H
#define ATTN_PYTHON_EXTENSION_H

#include "array.h"

extern PyType_Spec library_spec, function_spec;
extern PyObject *library_type;

/// The class attn.Error.
extern PyObject *error_type;

/// Raises attn.Error with this message and status, and returns -1.
int raise_error(attn_status status, const char *message);

/// Returns 0, or raises attn.Error with the runtime's last message and returns -1.
int check(attn_status status);

/// Like check, but if a type or a stride is wrong, the message also says how to convert the input.
int check_call(attn_status status);

#endif // ATTN_PYTHON_EXTENSION_H
