//===- unload.cpp - a library is released while its code runs ----------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   unload mha.so
//
// The layer is examples/models/mha.pt2. Every thread has its own function and weights. The main thread releases its
// function, its weights and the library, in each order, while other threads make calls; one of these calls is paused in
// the middle. The other threads then release their functions and weights, in either order and at the same time. The
// last release unloads the library.
//
//===----------------------------------------------------------------------===//

#include "Mha.h"

#include <algorithm>
#include <dlfcn.h>
#include <unistd.h>

constexpr int kCallers = 4, kCallsAfter = 8;

bool isLoaded(const char *path) {
  void *handle = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
  if (handle)
    dlclose(handle);
  return handle;
}

int main(int argc, char **argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: unload mha.so\n");
    return 1;
  }
  alarm(60); // a bug may make threads wait for each other forever
  attn_pool *pool;
  check(attn_pool_create(2, &pool));
  std::vector<float> x = randomInput();
  WeightSet set(1);
  std::vector<double> answer = set.answer(x);

  int orders = 0, unloads = 0;
  std::atomic<int64_t> wrong{0};
  int order[] = {0, 1, 2};
  do {
    attn_library *library;
    attn_function *layer;
    check(attn_library_load(argv[1], &library));
    check(attn_function_create(library, "forward", nullptr, &layer));
    attn_weights *weights = set.pack(layer);

    Pause pause(pool);
    std::atomic<bool> released{false};
    std::atomic<int> calling{0}, finished{0};
    std::vector<std::thread> callers;
    for (int i = 0; i < kCallers; ++i) {
      attn_function *own;
      check(attn_function_create(library, "forward", nullptr, &own));
      attn_weights *ownWeights = set.pack(layer);
      callers.emplace_back([&, i, own, ownWeights] {
        Caller caller(x);
        auto call = [&](const attn_call_options *options) {
          caller.call(own, ownWeights, options);
          wrong += !caller.got(answer);
        };
        if (i == 0) {
          attn_call_options options = pause.options();
          call(&options);
        }
        for (int after = 0; after < kCallsAfter; after += released) {
          call(nullptr);
          calling |= 1 << i;
        }
        ++finished;
        while (finished < kCallers)
          std::this_thread::yield();
        if (i % 2)
          attn_weights_release(ownWeights);
        attn_function_release(own);
        if (i % 2 == 0)
          attn_weights_release(ownWeights);
      });
    }
    pause.awaitStop();
    while (calling != (1 << kCallers) - 2)
      std::this_thread::yield();
    for (int object : order)
      object == 0   ? attn_library_release(library)
      : object == 1 ? attn_function_release(layer)
                    : attn_weights_release(weights);
    pause.resume();
    released = true;
    for (std::thread &caller : callers)
      caller.join();
    ++orders;
    unloads += !isLoaded(argv[1]);
  } while (std::next_permutation(order, order + 3));
  std::printf("orders: %d; libraries unloaded: %d; wrong results: %lld\n", orders, unloads,
              (long long)wrong);
  attn_pool_release(pool);
  return unloads != orders || wrong;
}
