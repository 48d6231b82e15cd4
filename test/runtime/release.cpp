//===- release.cpp - weights are released as early as allowed ----------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   release mha.so PACKED [misuse]
//
// The layer is examples/models/mha.pt2. The program releases weights right after the end of a swap that began during a
// call, and right after a call in a pool, whose workers may still be awake. Every second set of weights is mapped from
// the file PACKED, which this program writes. With `misuse`, it releases weights during a call, which attn.h forbids: a
// sanitizer must report this.
//
//===----------------------------------------------------------------------===//

#include "Mha.h"

#include <unistd.h>

constexpr int kCallers = 2, kSwaps = 20;

/// Releases the weights, then runs the tasks of the call.
void releaseFirst(void *weights, attn_task_fn task, void *context, int64_t count) {
  auto *held = static_cast<attn_weights **>(weights);
  attn_weights_release(*held);
  *held = nullptr;
  for (int64_t i = 0; i < count; ++i)
    task(context, i, 0);
}

int main(int argc, char **argv) {
  if (argc != 3 && argc != 4) {
    std::fprintf(stderr, "usage: release mha.so PACKED [misuse]\n");
    return 1;
  }
  alarm(60); // a bug may make threads wait for each other forever
  attn_library *library;
  attn_function *layer;
  attn_pool *pool, *pausePool;
  check(attn_library_load(argv[1], &library));
  check(attn_function_create(library, "forward", nullptr, &layer));
  check(attn_pool_create(3, &pool));
  check(attn_pool_create(2, &pausePool));

  std::vector<float> x = randomInput();
  WeightSet sets[] = {WeightSet(1), WeightSet(2)};
  std::vector<double> answers[] = {sets[0].answer(x), sets[1].answer(x)};

  if (argc == 4) {
    attn_weights *weights = sets[0].pack(layer);
    attn_call_options options = {};
    options.size = sizeof options;
    options.parallel_for = releaseFirst;
    options.pool = &weights;
    options.workers = 1;
    Caller(x).call(layer, weights, &options);
    return 0;
  }

  std::atomic<bool> stop{false};
  std::atomic<int64_t> wrong{0};
  std::vector<std::thread> callers;
  for (int i = 0; i < kCallers; ++i)
    callers.emplace_back([&] {
      attn_call_options options = inPool(pool);
      Caller caller(x);
      while (!stop) {
        attn_weights *own = sets[0].pack(layer);
        caller.call(layer, own, &options);
        attn_weights_release(own);
        wrong += !caller.got(answers[0]);
      }
    });

  attn_weights *shared = sets[1].pack(layer);
  check(attn_weights_save(shared, argv[2]));
  for (int i = 1; i <= kSwaps; ++i) {
    // A call with the current set pauses in the middle.
    Pause pause(pausePool);
    std::thread paused([&, i] {
      Caller caller(x);
      attn_call_options options = pause.options();
      caller.call(layer, shared, &options);
      wrong += !caller.got(answers[i % 2]);
    });
    pause.awaitStop();
    // Swap to the next set. The paused call must keep its own set.
    std::thread swapper([&, i] {
      attn_weights *next;
      if (i % 2)
        next = sets[0].pack(layer);
      else
        check(attn_weights_map(layer, argv[2], &next));
      check(attn_weights_swap(shared, next));
      attn_weights_release(next);
    });
    Caller caller(x);
    do
      caller.call(layer, shared);
    while (caller.got(answers[i % 2]));
    wrong += !caller.got(answers[(i + 1) % 2]);
    pause.resume();
    swapper.join();
    paused.join();
  }
  stop = true;
  for (std::thread &caller : callers)
    caller.join();
  std::printf("swaps: %d; wrong results: %lld\n", kSwaps, (long long)wrong);
  attn_pool_release(pausePool);
  attn_pool_release(pool);
  attn_weights_release(shared);
  attn_function_release(layer);
  attn_library_release(library);
  return wrong != 0;
}
