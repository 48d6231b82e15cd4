#include "archive.h"
#include "island.h"
#include "object.h"
#include "shared.h"

#include <stdio.h>

typedef attn_status (*attend_fn)(attn_function *, int64_t, const float *, const float *,
                                 const float *, float *, const attn_call_options *);

enum { LENGTH = 9, COUNT = 4 * LENGTH * 64 };
static float q[COUNT], k[COUNT], v[COUNT], expected[COUNT], out[COUNT];

static void compare(const char *name, const char *level) {
  double worst = 0;
  for (int i = 0; i < COUNT; ++i) {
    double error = out[i] < expected[i] ? expected[i] - out[i] : out[i] - expected[i];
    worst = error <= worst ? worst : error;
    out[i] = -1;
  }
  printf("%s, %s: %s\n", name, level, worst < 1e-6 ? "as expected" : "other numbers");
}

static void attend(attn_query_fn query, attend_fn call) {
  attn_library *library = NULL;
  attn_function *function = NULL;
  attn_function_options options = {sizeof options, "x86-64"};
  attn_library_from_query(query, &library);
  attn_function_create(library, "attend", &options, &function);
  if (call(function, LENGTH, q, k, v, out, NULL))
    printf("%s\n", attn_last_error());
  compare(attn_library_name(library), attn_function_level(function));
  attn_function_release(function);
  attn_library_release(library);
}

static void print(attn_status status, const char *message, void *data) {
  (void)status;
  (void)data;
  printf("seen: %s\n", message);
}

int main(void) {
  for (int i = 0; i < COUNT; ++i) {
    q[i] = (float)(i % 7) / 7;
    k[i] = (float)(i % 5) / 5;
    v[i] = (float)(i % 3) / 3;
  }
  attend(attn_query_object, object_attend);
  attn_library *library = NULL;
  attn_function *function = NULL;
  attn_library_from_query(attn_query_object, &library);
  attn_function_create(library, "attend", NULL, &function);
  object_attend(function, LENGTH, q, k, v, expected, NULL);
  attn_function_release(function);

  attend(attn_query_object, object_attend);
  attend(attn_query_archive, archive_attend);
  attend(attn_query_shared, shared_attend);
  island_attend(LENGTH, q, k, v, out);
  compare("hidden", "in the island");

  // The runtime of the program and that of the island each have their own error handler and their own last error.
  attn_set_error_handler(print);
  printf("island: %s\n", island_refused());
  printf("program: '%s'\n", attn_last_error());
  attn_function_create(library, "main", NULL, &function);
  attn_library_release(library);
}
