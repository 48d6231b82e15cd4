//===- safetensors.c - named tensors in a file ----------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   u64, little endian: bytes of the header
//   {"__metadata__": {"key": "text"}, "name": {"dtype": "F32", "shape": [192, 64],
//    "data_offsets": [0, 49152]}, ...}
//   data; offsets count from here
//
// https://github.com/huggingface/safetensors#format. The file is not trusted: every size is
// compared with the size of the file before it is used.
//
//===----------------------------------------------------------------------===//

#include "internal.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

enum { MAX_RANK = 16 };

typedef struct tensor {
  char *name;
  DLTensor view;
  int64_t shape[MAX_RANK];
} tensor;

typedef struct reader {
  const char *path;
  char *memory; ///< `bytes` bytes; the pointers below point into it
  size_t bytes;
  const char *at, *end;        ///< the rest of the header
  const char *data, *data_end; ///< the data of all tensors
  char *text;                  ///< room for the strings of the rest of the header
  tensor *tensors;
  int32_t count, room;
} reader;

static attn_status malformed(const reader *r, const char *expected) {
  if (r->at == r->end)
    return attnrt_fail(ATTN_ERROR_FILE, "'%s': header expected %s, got its end", r->path, expected);
  return attnrt_fail(ATTN_ERROR_FILE, "'%s': header expected %s, got '%c'", r->path, expected,
                     *r->at);
}

static void skip_space(reader *r) {
  while (r->at < r->end && (*r->at == ' ' || *r->at == '\t' || *r->at == '\n' || *r->at == '\r'))
    ++r->at;
}

/// Skips `c` if it is the next character; returns whether it was.
static bool take(reader *r, char c) {
  skip_space(r);
  if (r->at == r->end || *r->at != c)
    return false;
  ++r->at;
  return true;
}

static attn_status expect(reader *r, char c) {
  char expected[] = {'\'', c, '\'', '\0'};
  return take(r, c) ? ATTN_OK : malformed(r, expected);
}

/// Reads four hexadecimal digits.
static attn_status read_code_unit(reader *r, uint32_t *unit) {
  *unit = 0;
  for (int i = 0; i < 4; ++i, ++r->at) {
    static const char digits[] = "0123456789abcdef0123456789ABCDEF";
    const char *digit = r->at < r->end && *r->at ? strchr(digits, *r->at) : NULL;
    if (!digit)
      return malformed(r, "a hexadecimal digit");
    *unit = *unit << 4 | (uint32_t)((digit - digits) % 16);
  }
  return ATTN_OK;
}

/// Reads the digits after "\u" and writes the character as UTF-8, which is never longer than the
/// escape, so there is room for it.
static attn_status read_escaped_unicode(reader *r, char **out) {
  uint32_t code, low;
  attn_status status = read_code_unit(r, &code);
  if (status)
    return status;
  if (code >= 0xd800 && code < 0xe000) { // a surrogate, which must be the first of a pair
    bool pair = code < 0xdc00 && r->end - r->at >= 6 && r->at[0] == '\\' && r->at[1] == 'u';
    if (!pair)
      return malformed(r, "a surrogate pair");
    r->at += 2;
    if ((status = read_code_unit(r, &low)))
      return status;
    if (low < 0xdc00 || low >= 0xe000)
      return malformed(r, "a surrogate pair");
    code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
  }
  if (!code)
    return malformed(r, "a name without zeros");
  char *o = *out;
  if (code < 0x80) {
    *o++ = (char)code;
  } else {
    int tail = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    static const unsigned char lead[] = {0, 0xc0, 0xe0, 0xf0};
    *o++ = (char)(lead[tail] | code >> 6 * tail);
    while (tail--)
      *o++ = (char)(0x80 | (code >> 6 * tail & 0x3f));
  }
  *out = o;
  return ATTN_OK;
}

static attn_status read_string(reader *r, char **string) {
  attn_status status = ATTN_OK;
  if (!take(r, '"'))
    return malformed(r, "a string");
  char *out = r->text;
  *string = out;
  while (!status) {
    if (r->at == r->end || (unsigned char)*r->at < ' ')
      return malformed(r, "a string without control characters");
    char c = *r->at++;
    if (c == '"')
      break;
    if (c != '\\') {
      *out++ = c;
      continue;
    }
    static const char escapes[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
    const char *escape = r->at < r->end && *r->at ? strchr(escapes, *r->at) : NULL;
    if (escape) {
      *out++ = values[escape - escapes];
      ++r->at;
    } else if (r->at < r->end && *r->at == 'u') {
      ++r->at;
      status = read_escaped_unicode(r, &out);
    } else {
      status = malformed(r, "an escape");
    }
  }
  *out++ = '\0';
  r->text = out;
  return status;
}

static attn_status read_size(reader *r, int64_t *size) {
  skip_space(r);
  if (r->at == r->end || *r->at < '0' || *r->at > '9')
    return malformed(r, "a whole number");
  *size = 0;
  for (; r->at < r->end && *r->at >= '0' && *r->at <= '9'; ++r->at)
    if (__builtin_mul_overflow(*size, 10, size) ||
        __builtin_add_overflow(*size, *r->at - '0', size))
      return malformed(r, "a number below 2^63");
  return ATTN_OK;
}

/// Reads a list such as "[1, 2]" of at most `room` sizes.
static attn_status read_sizes(reader *r, int64_t *sizes, int32_t room, int32_t *count) {
  attn_status status = expect(r, '[');
  *count = 0;
  if (status || take(r, ']'))
    return status;
  do {
    if (*count == room)
      return malformed(r, room == 2 ? "two data_offsets" : "at most 16 sizes");
    status = read_size(r, &sizes[(*count)++]);
  } while (!status && take(r, ','));
  return status ? status : expect(r, ']');
}

static bool find_dtype(const char *name, DLDataType *dtype) {
  static const struct {
    const char *name;
    DLDataType dtype;
  } dtypes[] = {
      {"F64", {2, 64, 1}}, {"F32", {2, 32, 1}}, {"F16", {2, 16, 1}}, {"BF16", {4, 16, 1}},
      {"I64", {0, 64, 1}}, {"I32", {0, 32, 1}}, {"I16", {0, 16, 1}}, {"I8", {0, 8, 1}},
      {"U64", {1, 64, 1}}, {"U32", {1, 32, 1}}, {"U16", {1, 16, 1}}, {"U8", {1, 8, 1}},
      {"BOOL", {6, 8, 1}},
  };
  for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; ++i)
    if (!strcmp(dtypes[i].name, name)) {
      *dtype = dtypes[i].dtype;
      return true;
    }
  return false;
}

/// Reads the value of a name: the dtype, shape and data_offsets of a tensor.
static attn_status read_tensor(reader *r, tensor *t) {
  char *dtype = NULL;
  int64_t offsets[2];
  int32_t rank = -1, num_offsets = 0;
  attn_status status = expect(r, '{');
  if (status)
    return status;
  do {
    char *key;
    if ((status = read_string(r, &key)) || (status = expect(r, ':')))
      return status;
    if (!strcmp(key, "dtype") && !dtype)
      status = read_string(r, &dtype);
    else if (!strcmp(key, "shape") && rank < 0)
      status = read_sizes(r, t->shape, MAX_RANK, &rank);
    else if (!strcmp(key, "data_offsets") && !num_offsets)
      status = read_sizes(r, offsets, 2, &num_offsets);
    else
      return attnrt_fail(ATTN_ERROR_FILE,
                         "'%s': '%s' expected dtype, shape and data_offsets, got '%s'", r->path,
                         t->name, key);
    if (status)
      return status;
  } while (take(r, ','));
  if ((status = expect(r, '}')))
    return status;
  if (!dtype || rank < 0 || num_offsets != 2)
    return attnrt_fail(ATTN_ERROR_FILE,
                       "'%s': '%s' expected dtype, shape and two data_offsets, got fewer", r->path,
                       t->name);
  if (!find_dtype(dtype, &t->view.dtype))
    return attnrt_fail(ATTN_ERROR_DTYPE, "'%s': '%s' expected a dtype such as F32 or I64, got '%s'",
                       r->path, t->name, dtype);
  int64_t bytes = t->view.dtype.bits / 8;
  bool fits = true;
  for (int32_t axis = 0; axis < rank; ++axis)
    fits = fits && !__builtin_mul_overflow(bytes, t->shape[axis], &bytes);
  if (!fits || offsets[0] > offsets[1] || offsets[1] - offsets[0] != bytes)
    return attnrt_fail(ATTN_ERROR_FILE,
                       "'%s': '%s' expected data of its shape, got bytes %" PRId64 " to %" PRId64,
                       r->path, t->name, offsets[0], offsets[1]);
  if (offsets[1] > r->data_end - r->data)
    return attnrt_fail(ATTN_ERROR_FILE,
                       "'%s': '%s' expected data within %td bytes, got bytes %" PRId64
                       " to %" PRId64,
                       r->path, t->name, r->data_end - r->data, offsets[0], offsets[1]);
  if (offsets[0] % (t->view.dtype.bits / 8))
    return attnrt_fail(
        ATTN_ERROR_ALIGNMENT,
        "'%s': '%s' expected data aligned to %d bytes in the file, got byte %" PRId64, r->path,
        t->name, t->view.dtype.bits / 8, offsets[0]);
  t->view.data = (char *)r->data + offsets[0];
  t->view.device = (DLDevice){kDLCPU, 0};
  t->view.ndim = rank;
  return ATTN_OK;
}

static attn_status skip_metadata(reader *r) {
  char *text;
  attn_status status = expect(r, '{');
  if (status || take(r, '}'))
    return status;
  do {
    if ((status = read_string(r, &text)) || (status = expect(r, ':')) ||
        (status = read_string(r, &text)))
      return status;
  } while (take(r, ','));
  return expect(r, '}');
}

static attn_status grow(reader *r) {
  int32_t room = r->room ? 2 * r->room : 16;
  tensor *grown = ATTNRT_NEW(tensor, (size_t)room);
  if (!grown)
    return attnrt_fail(ATTN_ERROR_RESOURCE, "'%s': expected memory for %d names, got none", r->path,
                       room);
  if (r->count)
    memcpy(grown, r->tensors, (size_t)r->count * sizeof *grown);
  ATTNRT_DELETE(tensor, (size_t)r->room, r->tensors);
  r->tensors = grown;
  r->room = room;
  return ATTN_OK;
}

static attn_status read_header(reader *r) {
  attn_status status = expect(r, '{');
  bool empty = !status && take(r, '}');
  while (!status && !empty) {
    tensor t = {0};
    if ((status = read_string(r, &t.name)) || (status = expect(r, ':')))
      return status;
    if (!strcmp(t.name, "__metadata__")) {
      status = skip_metadata(r);
    } else if (!(status = read_tensor(r, &t))) {
      if (r->count == r->room && (status = grow(r)))
        return status;
      r->tensors[r->count++] = t;
    }
    if (!status && !take(r, ','))
      break;
  }
  if (!status && !empty)
    status = expect(r, '}');
  skip_space(r);
  return status || r->at == r->end ? status : malformed(r, "its end");
}

static attn_status create_weights(const attn_function *function, reader *r,
                                  attn_weights **weights) {
  size_t room = r->count ? (size_t)r->count : 1;
  const char **names = ATTNRT_NEW(const char *, room);
  const DLTensor **views = ATTNRT_NEW(const DLTensor *, room);
  attn_status status;
  if (!names || !views) {
    status = attnrt_fail(ATTN_ERROR_RESOURCE, "'%s': expected memory for %d names, got none",
                         r->path, r->count);
  } else {
    for (int32_t i = 0; i < r->count; ++i) {
      tensor *t = &r->tensors[i];
      t->view.shape = t->shape;
      names[i] = t->name;
      views[i] = &t->view;
    }
    status = attn_weights_create(function, names, views, r->count, weights);
  }
  ATTNRT_DELETE(const char *, room, names);
  ATTNRT_DELETE(const DLTensor *, room, views);
  return status;
}

/// Copies the file to allocated memory, where no other process can change or truncate it. The
/// memory has the aligned data, the header, and room for the strings of the header. That room
/// suffices: the zero at the end of a string takes the place of a quote.
static attn_status read_file(reader *r, int descriptor, size_t size) {
  unsigned char length[8] = {0};
  uint64_t header = 0;
  attn_status status = ATTN_OK;
  if (size >= sizeof length)
    status = attnrt_read_at(r->path, descriptor, length, sizeof length, 0);
  if (status)
    return status;
  for (size_t i = 0; i < sizeof length; ++i)
    header |= (uint64_t)length[i] << 8 * i;
  if (size < sizeof length || header > size - sizeof length)
    return attnrt_fail(ATTN_ERROR_FILE,
                       "'%s': expected a safetensors file, got %zu bytes of which the header "
                       "takes %" PRIu64,
                       r->path, size, header);
  size_t data = size - sizeof length - header, room = (size_t)attnrt_round_up((int64_t)data);
  r->bytes = room + 2 * header + 1;
  r->memory = attnrt_allocate(r->bytes, ATTN_ALIGNMENT);
  if (!r->memory)
    return attnrt_fail(ATTN_ERROR_RESOURCE, "'%s': expected %zu bytes of memory, got none", r->path,
                       r->bytes);
  r->data = r->memory;
  r->data_end = r->data + data;
  r->at = r->memory + room;
  r->end = r->at + header;
  r->text = r->memory + room + header;
  status = attnrt_read_at(r->path, descriptor, r->memory + room, header, sizeof length);
  if (!status)
    status = attnrt_read_at(r->path, descriptor, r->memory, data, sizeof length + header);
  return status;
}

attn_status attn_weights_load(const attn_function *function, const char *path,
                              attn_weights **weights) {
  if (!function || !path || !weights)
    return attnrt_fail(ATTN_ERROR_USAGE, "attn_weights_load: expected a function, a path and a "
                                         "place for the weights, got null");
  int descriptor;
  size_t size;
  attn_status status = attnrt_check_has_weights(function);
  if (!status)
    status = attnrt_open(path, &descriptor, &size);
  if (status)
    return status;
  reader r = {.path = path};
  status = read_file(&r, descriptor, size);
  close(descriptor);
  if (!status && !(status = read_header(&r)))
    status = create_weights(function, &r, weights);
  ATTNRT_DELETE(tensor, (size_t)r.room, r.tensors);
  attnrt_free(r.memory, r.bytes, ATTN_ALIGNMENT);
  return status;
}
