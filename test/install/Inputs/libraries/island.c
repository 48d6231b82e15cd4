#include "island.h"
#include "hidden.h"

static attn_function *create(const char *name) {
  attn_library *library = NULL;
  attn_function *function = NULL;
  attn_library_from_query(attn_query_hidden, &library);
  attn_function_create(library, name, NULL, &function);
  attn_library_release(library);
  return function;
}

void island_attend(long length, const float *q, const float *k, const float *v, float *out) {
  attn_function *attend = create("attend");
  hidden_attend(attend, length, q, k, v, out, NULL);
  attn_function_release(attend);
}

const char *island_refused(void) {
  create("island");
  return attn_last_error();
}
