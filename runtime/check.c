//===- check.c - check tensors against the signature ----------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// No function here trusts a tensor or writes to it. Shapes are checked first, because these checks need no data.
// Queries, such as attn_output_shape(), check nothing else. A message reads "forward: argument 'x' expected rank 3, got
// 2".
//
//===----------------------------------------------------------------------===//

#include "internal.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

__attribute__((format(printf, 3, 4))) static attn_status
refuse(const attnrt_argument *argument, attn_status status, const char *format, ...) {
  char expectation[384];
  va_list values;
  va_start(values, format);
  vsnprintf(expectation, sizeof expectation, format, values);
  va_end(values);
  const attn_function_info *f = argument->function;
  bool weight = argument->info >= f->weights && argument->info < f->weights + f->num_weights;
  return attnrt_fail(status, "%s: %s '%s' expected %s", f->name, weight ? "weight" : "argument",
                     argument->info->name, expectation);
}

enum { DTYPE_INT = 0, DTYPE_UINT = 1, DTYPE_BOOL = 6 }; // kDLBool, which DLPack 0.6 lacks

typedef struct dtype_name {
  char text[24];
} dtype_name;

/// Returns a name such as "float32".
static dtype_name name_dtype(unsigned code, unsigned bits) {
  static const char *const kinds[] = {"int",    "uint",    "float", "handle",
                                      "bfloat", "complex", "bool"};
  dtype_name name;
  if (code >= sizeof kinds / sizeof *kinds)
    snprintf(name.text, sizeof name.text, "dtype code %u", code);
  else if (code == DTYPE_BOOL && bits == 8)
    snprintf(name.text, sizeof name.text, "bool");
  else
    snprintf(name.text, sizeof name.text, "%s%u", kinds[code], bits);
  return name;
}

static attn_status check_dim(const attnrt_argument *argument, int32_t axis,
                             attnrt_symbols *symbols) {
  const attn_dim_info *dim = &argument->info->shape[axis];
  int64_t size = argument->tensor->shape[axis];
  if (dim->symbol < 0) {
    if (size != dim->size)
      return refuse(argument, ATTN_ERROR_SHAPE, "size %" PRId64 " in dimension %d, got %" PRId64,
                    dim->size, axis, size);
    return ATTN_OK;
  }
  const attn_symbol_info *symbol = &argument->function->symbols[dim->symbol];
  int64_t *value = &symbols->values[dim->symbol];
  if (symbol->formula) {
    if (size != *value)
      return refuse(argument, ATTN_ERROR_SHAPE,
                    "size %" PRId64 " in dimension %d, which is %s, got %" PRId64, *value, axis,
                    symbol->name, size);
    return ATTN_OK;
  }
  if (symbols->origins[dim->symbol].name) {
    if (size != *value)
      return refuse(argument, ATTN_ERROR_SHAPE,
                    "size %" PRId64 " in dimension %d, as in dimension %d of '%s', got %" PRId64,
                    *value, axis, symbols->origins[dim->symbol].axis,
                    symbols->origins[dim->symbol].name, size);
    return ATTN_OK;
  }
  if (size < symbol->min || size > symbol->max)
    return refuse(argument, ATTN_ERROR_SHAPE,
                  "size in [%" PRId64 ", %" PRId64 "] in dimension %d, got %" PRId64, symbol->min,
                  symbol->max, axis, size);
  *value = size;
  symbols->origins[dim->symbol].name = argument->info->name;
  symbols->origins[dim->symbol].axis = axis;
  return ATTN_OK;
}

static attn_status check_shape(const attnrt_argument *argument, attnrt_symbols *symbols) {
  const attn_tensor_info *info = argument->info;
  const DLTensor *tensor = argument->tensor;
  if (!tensor)
    return refuse(argument, ATTN_ERROR_NULL, "a tensor, got null");
  DLDevice device = argument->device;
  if (device.device_type && tensor->device.device_type != device.device_type)
    return refuse(argument, ATTN_ERROR_DEVICE, "device type %d (%s), got %d",
                  (int)device.device_type, device.device_type == kDLCPU ? "CPU" : "CUDA",
                  (int)tensor->device.device_type);
  if (device.device_type == kDLCUDA && tensor->device.device_id != device.device_id)
    return refuse(argument, ATTN_ERROR_DEVICE, "device %d, got %d", (int)device.device_id,
                  (int)tensor->device.device_id);
  if (tensor->dtype.code != info->dtype_code || tensor->dtype.bits != info->dtype_bits)
    return refuse(argument, ATTN_ERROR_DTYPE, "%s, got %s",
                  name_dtype(info->dtype_code, info->dtype_bits).text,
                  name_dtype(tensor->dtype.code, tensor->dtype.bits).text);
  if (tensor->dtype.lanes != 1)
    return refuse(argument, ATTN_ERROR_DTYPE, "1 lane, got %d", tensor->dtype.lanes);
  if (tensor->ndim != info->rank)
    return refuse(argument, ATTN_ERROR_RANK, "rank %d, got %d", info->rank, tensor->ndim);
  if (info->rank && !tensor->shape)
    return refuse(argument, ATTN_ERROR_NULL, "a shape, got null");
  for (int32_t axis = 0; axis < info->rank; ++axis) {
    attn_status status = check_dim(argument, axis, symbols);
    if (status)
      return status;
  }
  return ATTN_OK;
}

attn_status attnrt_check_count(const attn_function_info *info, const char *what, int32_t expected,
                               int32_t got, const DLTensor *const *tensors) {
  if (got != expected)
    return attnrt_fail(ATTN_ERROR_COUNT, "%s: expected %d %s, got %d", info->name, expected, what,
                       got);
  if (expected && !tensors)
    return attnrt_fail(ATTN_ERROR_NULL, "%s: expected %d %s, got null", info->name, expected, what);
  return ATTN_OK;
}

attn_status attnrt_check_shapes(const attn_function_info *info, const attn_tensor_info *infos,
                                const DLTensor *const *tensors, int32_t count, DLDevice device,
                                attnrt_symbols *symbols) {
  attn_status status = ATTN_OK;
  for (int32_t i = 0; i < count && !status; ++i)
    status = check_shape(&(attnrt_argument){info, &infos[i], tensors[i], device}, symbols);
  return status;
}

/// Computes one step of a formula; `top` is the index of the top of the stack. Returns false if the
/// result exceeds 64 bits or a divisor is not positive.
static bool compute_step(const attn_formula_step *step, const int64_t *values, int64_t *stack,
                         int32_t *top) {
  if (step->op == ATTN_FORMULA_NUMBER || step->op == ATTN_FORMULA_SYMBOL) {
    stack[++*top] = step->op == ATTN_FORMULA_NUMBER ? step->operand : values[step->operand];
    return true;
  }
  int64_t b = stack[*top];
  if (step->op == ATTN_FORMULA_NOT) {
    stack[*top] = !b;
    return true;
  }
  int64_t *result = &stack[--*top], a = *result;
  switch ((attn_formula_op)step->op) {
  case ATTN_FORMULA_ADD:
    return !__builtin_add_overflow(a, b, result);
  case ATTN_FORMULA_SUBTRACT:
    return !__builtin_sub_overflow(a, b, result);
  case ATTN_FORMULA_MULTIPLY:
    return !__builtin_mul_overflow(a, b, result);
  case ATTN_FORMULA_DIVIDE:
    *result = b > 0 ? a / b - (a % b < 0) : 0;
    return b > 0;
  case ATTN_FORMULA_MODULO:
    *result = b > 0 ? a % b + (a % b < 0 ? b : 0) : 0;
    return b > 0;
  case ATTN_FORMULA_MAX:
    *result = a > b ? a : b;
    return true;
  case ATTN_FORMULA_MIN:
    *result = a < b ? a : b;
    return true;
  case ATTN_FORMULA_EQUAL:
    *result = a == b;
    return true;
  case ATTN_FORMULA_LESS:
    *result = a < b;
    return true;
  case ATTN_FORMULA_AT_MOST:
    *result = a <= b;
    return true;
  case ATTN_FORMULA_AND:
    *result = a && b;
    return true;
  case ATTN_FORMULA_OR:
    *result = a || b;
    return true;
  default:
    return false;
  }
}

static bool compute_formula(const attn_symbol_info *symbol, const int64_t *values,
                            int64_t *result) {
  int64_t stack[ATTN_FORMULA_STEPS];
  int32_t top = -1;
  for (int32_t i = 0; i < symbol->num_steps; ++i)
    if (!compute_step(&symbol->formula[i], values, stack, &top))
      return false;
  *result = stack[0];
  return *result >= symbol->min && *result <= symbol->max;
}

/// Reports the sizes for which `symbol` is out of range.
static attn_status refuse_sizes(const attn_function_info *info, const attn_symbol_info *symbol,
                                const int64_t *values) {
  char sizes[256] = "";
  size_t used = 0;
  bool named[ATTNRT_MAX_SYMBOLS] = {false};
  for (int32_t i = 0; i < symbol->num_steps && used < sizeof sizes; ++i) {
    int64_t operand = symbol->formula[i].operand;
    if (symbol->formula[i].op != ATTN_FORMULA_SYMBOL || named[operand])
      continue;
    named[operand] = true;
    used += (size_t)snprintf(sizes + used, sizeof sizes - used, "%s%s = %" PRId64,
                             used ? ", " : "", info->symbols[operand].name, values[operand]);
  }
  if (symbol->is_condition)
    return attnrt_fail(ATTN_ERROR_SHAPE, "%s: expected sizes with %s, got %s", info->name,
                       symbol->name, sizes);
  return attnrt_fail(ATTN_ERROR_SHAPE,
                     "%s: expected a size %s in [%" PRId64 ", %" PRId64 "], got %s", info->name,
                     symbol->name, symbol->min, symbol->max, sizes);
}

attn_status attnrt_compute_symbols(const attn_function_info *info, attnrt_symbols *symbols) {
  for (int32_t i = 0; i < info->num_symbols; ++i) {
    const attn_symbol_info *symbol = &info->symbols[i];
    if (symbol->formula && !compute_formula(symbol, symbols->values, &symbols->values[i]))
      return refuse_sizes(info, symbol, symbols->values);
  }
  return ATTN_OK;
}

attn_status attnrt_bind_inputs(const char *who, const attn_function *function,
                               const DLTensor *const *inputs, int32_t num_inputs,
                               attnrt_symbols *symbols) {
  if (!function)
    return attnrt_fail(ATTN_ERROR_USAGE, "%s: expected a function, got null", who);
  const attn_function_info *info = function->info;
  memset(symbols->origins, 0, sizeof symbols->origins);
  attn_status status = attnrt_check_count(info, "inputs", info->num_inputs, num_inputs, inputs);
  if (!status)
    status = attnrt_check_shapes(info, info->inputs, inputs, num_inputs, (DLDevice){0}, symbols);
  for (int32_t i = 0; i < info->num_symbols && !status; ++i)
    if (!symbols->origins[i].name && !info->symbols[i].formula)
      status = attnrt_fail(ATTN_ERROR_SHAPE, "%s: expected '%s' to be a size of an input, got none",
                           info->name, info->symbols[i].name);
  return status ? status : attnrt_compute_symbols(info, symbols);
}

static attn_status check_strides(const attnrt_argument *argument) {
  const DLTensor *tensor = argument->tensor;
  int64_t expected = 1;
  for (int32_t axis = tensor->ndim - 1; axis >= 0; --axis) {
    // The stride of a dimension of size 1 is never used.
    if (tensor->shape[axis] != 1 && tensor->strides[axis] != expected)
      return refuse(argument, ATTN_ERROR_STRIDE,
                    "stride %" PRId64 " in dimension %d (compact row-major), got %" PRId64,
                    expected, axis, tensor->strides[axis]);
    expected *= tensor->shape[axis];
  }
  return ATTN_OK;
}

attn_status attnrt_check_memory(const attnrt_argument *argument, void **data, int64_t *bytes) {
  const DLTensor *tensor = argument->tensor;
  int64_t element = (argument->info->dtype_bits + 7) / 8, size = element;
  bool empty = false, overflow = false;
  for (int32_t axis = 0; axis < tensor->ndim; ++axis) {
    empty |= tensor->shape[axis] == 0;
    // The other sizes must not overflow even if one size is 0: the kernel multiplies them.
    overflow |= __builtin_mul_overflow(size, tensor->shape[axis] ? tensor->shape[axis] : 1, &size);
  }
  *data = attnrt_data(tensor);
  *bytes = 0;
  if (overflow)
    return refuse(argument, ATTN_ERROR_SHAPE, "less than 2^63 bytes, got more");
  // The kernel reads nothing of an empty tensor, so its data and strides may be anything.
  if (empty)
    return ATTN_OK;
  if (!tensor->data)
    return refuse(argument, ATTN_ERROR_NULL, "data, got null");
  uintptr_t begin, end;
  if (__builtin_add_overflow((uintptr_t)tensor->data, tensor->byte_offset, &begin) ||
      __builtin_add_overflow(begin, size, &end))
    return refuse(argument, ATTN_ERROR_SHAPE,
                  "%" PRId64 " bytes within the address space, got byte offset %" PRIu64, size,
                  tensor->byte_offset);
  int64_t alignment = argument->device.device_type == kDLCPU ? element : ATTNRT_GPU_ALIGNMENT;
  if (begin % (uintptr_t)alignment)
    return refuse(argument, ATTN_ERROR_ALIGNMENT, "data aligned to %" PRId64 " bytes, got %p",
                  alignment, *data);
  *bytes = size;
  return tensor->strides ? check_strides(argument) : ATTN_OK;
}

/// Reads element `i` into `value`. Returns false if the elements are not integers of a known size.
static bool read_integer(const attn_tensor_info *info, const void *data, int64_t i,
                         int64_t *value) {
  if (info->dtype_code == DTYPE_UINT && info->dtype_bits == 8)
    *value = ((const uint8_t *)data)[i];
  else if (info->dtype_code != DTYPE_INT)
    return false;
  else if (info->dtype_bits == 8)
    *value = ((const int8_t *)data)[i];
  else if (info->dtype_bits == 16)
    *value = ((const int16_t *)data)[i];
  else if (info->dtype_bits == 32)
    *value = ((const int32_t *)data)[i];
  else if (info->dtype_bits == 64)
    *value = ((const int64_t *)data)[i];
  else
    return false;
  return true;
}

attn_status attnrt_check_values(const attnrt_argument *argument, const void *data,
                                const attnrt_symbols *symbols) {
  const attn_tensor_info *info = argument->info;
  if (!info->bounded || argument->device.device_type != kDLCPU)
    return ATTN_OK;
  attn_dim_info below = attnrt_below(info);
  int64_t count = 1, least = -attnrt_size(&below, symbols),
          bound = attnrt_size(&info->bound, symbols);
  for (int32_t axis = 0; axis < info->rank; ++axis)
    count *= argument->tensor->shape[axis];
  for (int64_t i = 0; i < count; ++i) {
    int64_t value;
    if (!read_integer(info, data, i, &value))
      return refuse(argument, ATTN_ERROR_DTYPE, "integers where values are bounded, got %s",
                    name_dtype(info->dtype_code, info->dtype_bits).text);
    if (value < least || value > bound)
      return refuse(argument, ATTN_ERROR_VALUE,
                    "values in [%" PRId64 ", %" PRId64 "], got %" PRId64 " at element %" PRId64,
                    least, bound, value, i);
  }
  return ATTN_OK;
}

bool attnrt_overlap(const void *a, int64_t a_bytes, const void *b, int64_t b_bytes) {
  return a_bytes && b_bytes && (uintptr_t)a < (uintptr_t)b + (uintptr_t)b_bytes &&
         (uintptr_t)b < (uintptr_t)a + (uintptr_t)a_bytes;
}
