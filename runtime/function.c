//===- function.c - one function at one level, and its signature ----------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/// Writes the levels of the function to `text`, as in "x86-64-v4, x86-64".
static void list_levels(const attn_function_info *info, char *text, size_t size) {
  text[0] = '\0';
  for (int32_t i = 0; i < info->num_variants; ++i) {
    size_t used = strlen(text);
    snprintf(text + used, size - used, "%s%s", i ? ", " : "", info->variants[i].level);
  }
}

/// Sets `lacking` to the first feature that the variant needs and the device lacks, or to null if the device runs the
/// variant.
static attn_status find_lacking(const attn_function_info *info, const attn_variant_info *variant,
                                int device_id, const char **lacking, size_t *length) {
  if (variant->device_type == kDLCPU) {
    *lacking = attnrt_cpu_lacks(variant->features, length);
    return ATTN_OK;
  }
  bool runs = false;
  attn_status status = attnrt_cuda_check(info, variant, device_id, &runs);
  *lacking = runs ? NULL : variant->features;
  *length = strlen(variant->features);
  return status;
}

static const char *name_device(int32_t type) { return type == kDLCPU ? "CPU" : "GPU"; }

/// Finds the code for the requested level, or for the best level that the device supports. A device of type 0 gets the
/// type of the level; without a level, it is the CPU.
static attn_status choose_variant(const attn_function_info *info, const char *level,
                                  DLDevice *device, const attn_variant_info **variant) {
  const char *asked = "level", *environment = getenv("ATTN_LEVEL");
  if (!level && !device->device_type && environment && *environment) {
    asked = "ATTN_LEVEL";
    level = environment;
  }
  int32_t type = device->device_type ? (int32_t)device->device_type : kDLCPU;

  char levels[256];
  list_levels(info, levels, sizeof levels);
  const char *lacking = NULL;
  size_t length = 0;
  for (int32_t i = 0; i < info->num_variants; ++i) {
    const attn_variant_info *candidate = &info->variants[i];
    if (level ? strcmp(candidate->level, level) : candidate->device_type != type)
      continue;
    if (device->device_type && candidate->device_type != type)
      return attnrt_fail(ATTN_ERROR_LEVEL, "%s: %s expected a level for a %s, got '%s'", info->name,
                         asked, name_device(type), level);
    attn_status status = find_lacking(info, candidate, device->device_id, &lacking, &length);
    if (status)
      return status;
    if (!lacking) {
      *variant = candidate;
      device->device_type = candidate->device_type == kDLCPU ? kDLCPU : kDLCUDA;
      return ATTN_OK;
    }
    if (level)
      return attnrt_fail(
          ATTN_ERROR_LEVEL, "%s: %s expected a level that this %s runs, got '%s', which needs %.*s",
          info->name, asked, name_device(candidate->device_type), level, (int)length, lacking);
  }
  if (level)
    return attnrt_fail(ATTN_ERROR_LEVEL, "%s: %s expected one of %s, got '%s'", info->name, asked,
                       levels, level);
  if (!lacking)
    return attnrt_fail(ATTN_ERROR_LEVEL, "%s: expected a level for a %s among %s, got none",
                       info->name, name_device(type), levels);
  return attnrt_fail(ATTN_ERROR_LEVEL,
                     "%s: expected a %s that runs one of %s, got one without %.*s", info->name,
                     name_device(type), levels, (int)length, lacking);
}

static attn_status find_function(const attn_library_info *library, const char *name,
                                 const attn_function_info **function) {
  for (int32_t i = 0; i < library->num_functions; ++i) {
    const attn_function_info *info = &library->functions[i];
    if (strcmp(info->name, name))
      continue;
    if (info->num_inputs + info->num_outputs > ATTNRT_MAX_ARGUMENTS)
      return attnrt_fail(ATTN_ERROR_LIBRARY, "%s: expected at most %d inputs and outputs, got %d",
                         name, ATTNRT_MAX_ARGUMENTS, info->num_inputs + info->num_outputs);
    if (info->num_symbols > ATTNRT_MAX_SYMBOLS)
      return attnrt_fail(ATTN_ERROR_LIBRARY, "%s: expected at most %d symbols, got %d", name,
                         ATTNRT_MAX_SYMBOLS, info->num_symbols);
    *function = info;
    return ATTN_OK;
  }
  return attnrt_fail(ATTN_ERROR_NAME, "library '%s': expected one of its functions, got '%s'",
                     library->name, name);
}

attn_status attn_function_create(attn_library *library, const char *name,
                                 const attn_function_options *given, attn_function **function) {
  if (!library || !name || !function)
    return attnrt_fail(ATTN_ERROR_USAGE, "attn_function_create: expected a library, a name and a "
                                         "place for the function, got null");
  attn_function_options options;
  const attn_function_info *info = NULL;
  const attn_variant_info *variant = NULL;
  attn_status status = attnrt_read("attn_function_options", given, &options, sizeof options);
  if (!status)
    status = find_function(library->info, name, &info);
  if (!status)
    status = choose_variant(info, options.level, &options.device, &variant);
  if (status)
    return status;

  attn_function *created = ATTNRT_NEW(attn_function, 1);
  if (!created)
    return attnrt_fail(ATTN_ERROR_RESOURCE, "%s: expected %zu bytes of memory, got none", name,
                       sizeof *created);
  created->library = attnrt_retain(library);
  created->info = info;
  created->variant = variant;
  created->device = options.device;
  atomic_init(&created->spare, NULL);
  *function = created;
  return ATTN_OK;
}

void attn_function_release(attn_function *function) {
  if (!function)
    return;
  attnrt_free_block(atomic_load(&function->spare));
  attn_library_release(function->library);
  ATTNRT_DELETE(attn_function, 1, function);
}

const char *attn_function_name(const attn_function *function) { return function->info->name; }

const char *attn_function_level(const attn_function *function) { return function->variant->level; }

const char *attn_function_report(const attn_function *function) {
  return function->variant->report;
}

const char *attn_function_workspace_formula(const attn_function *function) {
  return function->variant->workspace_text;
}

int32_t attn_function_num_levels(const attn_function *function) {
  return function->info->num_variants;
}

const char *attn_function_level_name(const attn_function *function, int32_t index) {
  if (index < 0 || index >= function->info->num_variants)
    return NULL;
  return function->info->variants[index].level;
}

/// The arguments of one role; `count` is 0 for a role that does not exist.
static const attn_tensor_info *arguments(const attn_function_info *info, attn_role role,
                                         int32_t *count) {
  switch (role) {
  case ATTN_INPUT:
    *count = info->num_inputs;
    return info->inputs;
  case ATTN_OUTPUT:
    *count = info->num_outputs;
    return info->outputs;
  case ATTN_WEIGHT:
    *count = info->num_weights;
    return info->weights;
  }
  *count = 0;
  return NULL;
}

static attn_status check_index(const char *who, const char *what, int32_t index, int32_t count) {
  if (index >= 0 && index < count)
    return ATTN_OK;
  return attnrt_fail(ATTN_ERROR_USAGE, "%s: expected %s in [0, %d), got %d", who, what, count,
                     index);
}

static attn_dim describe_symbol(const attn_symbol_info *symbol) {
  return (attn_dim){symbol->name, symbol->min, symbol->max};
}

static attn_dim describe_dim(const attn_function_info *info, const attn_dim_info *dim) {
  if (dim->symbol < 0)
    return (attn_dim){NULL, dim->size, dim->size};
  return describe_symbol(&info->symbols[dim->symbol]);
}

int32_t attn_function_num_arguments(const attn_function *function, attn_role role) {
  int32_t count;
  arguments(function->info, role, &count);
  return count;
}

attn_status attn_function_argument(const attn_function *function, attn_role role, int32_t index,
                                   attn_argument *argument) {
  int32_t count;
  attn_argument known;
  const attn_tensor_info *info = arguments(function->info, role, &count);
  attn_status status = check_index("attn_function_argument", "an index", index, count);
  if (!status)
    status = attnrt_read("attn_argument", argument, &known, sizeof known);
  if (status)
    return status;
  info += index;
  known.name = info->name;
  known.dtype = (DLDataType){info->dtype_code, info->dtype_bits, 1};
  known.rank = info->rank;
  known.bounded = info->bounded != 0;
  if (info->bounded) {
    attn_dim_info below = attnrt_below(info);
    known.bound = describe_dim(function->info, &info->bound);
    known.below = describe_dim(function->info, &below);
  }
  known.in_out = info->in_out;
  attnrt_write(argument, &known, sizeof known);
  return ATTN_OK;
}

attn_status attn_function_dim(const attn_function *function, attn_role role, int32_t index,
                              int32_t axis, attn_dim *dim) {
  int32_t count;
  const attn_tensor_info *info = arguments(function->info, role, &count);
  attn_status status = check_index("attn_function_dim", "an index", index, count);
  if (!status)
    status = check_index("attn_function_dim", "an axis", axis, info[index].rank);
  if (!status)
    *dim = describe_dim(function->info, &info[index].shape[axis]);
  return status;
}

int32_t attn_function_num_symbols(const attn_function *function) {
  int32_t count = 0;
  while (count < function->info->num_symbols && !function->info->symbols[count].formula)
    ++count;
  return count;
}

attn_status attn_function_symbol(const attn_function *function, int32_t index, attn_dim *symbol) {
  attn_status status =
      check_index("attn_function_symbol", "an index", index, attn_function_num_symbols(function));
  if (!status)
    *symbol = describe_symbol(&function->info->symbols[index]);
  return status;
}

attn_status attn_output_shape(const attn_function *function, const DLTensor *const *inputs,
                              int32_t num_inputs, int32_t index, int64_t *shape) {
  attnrt_symbols symbols;
  attn_status status =
      attnrt_bind_inputs("attn_output_shape", function, inputs, num_inputs, &symbols);
  if (!status)
    status = check_index("attn_output_shape", "an index", index, function->info->num_outputs);
  if (!status && !shape && function->info->outputs[index].rank > 0)
    status = attnrt_fail(ATTN_ERROR_NULL, "attn_output_shape: expected an array for the shape, got null");
  if (status)
    return status;
  const attn_tensor_info *output = &function->info->outputs[index];
  for (int32_t axis = 0; axis < output->rank; ++axis)
    shape[axis] = attnrt_size(&output->shape[axis], &symbols);
  return ATTN_OK;
}
