#include "mha.h"

#include <attn.hpp>

#include <cstdio>

int main() {
  attn::rt::Library library = attn::rt::openLibrary(attn_query_mha);
  std::printf("app %s, library %s\n", VERSION, attn_library_name(library.get()));
}
