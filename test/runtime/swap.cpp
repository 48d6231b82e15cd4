//===- swap.cpp - a layer is called by eight threads while its weights change ===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   attn-swap-test mha.so SECONDS
//
// The layer is examples/models/mha.pt2. Each result must be that of one of two sets of weights, computed here in
// double. A mixture of both sets would give a very different result. The callers share a pool: a call that finds the
// pool busy runs on its own thread.
//
//===----------------------------------------------------------------------===//

#include "Mha.h"

#include <chrono>

constexpr int kCallers = 8;

int main(int argc, char **argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: attn-swap-test mha.so SECONDS\n");
    return 1;
  }
  attn_library *library;
  attn_function *layer;
  attn_pool *pool;
  check(attn_library_load(argv[1], &library));
  check(attn_function_create(library, "forward", nullptr, &layer));
  check(attn_pool_create(3, &pool));

  std::vector<float> x = randomInput();
  WeightSet sets[] = {WeightSet(1), WeightSet(2)};
  std::vector<double> answers[] = {sets[0].answer(x), sets[1].answer(x)};
  attn_weights *shared = sets[0].pack(layer);

  std::atomic<bool> stop{false};
  std::atomic<int64_t> seen[2] = {}, wrong{0};
  std::vector<std::thread> callers;
  for (int i = 0; i < kCallers; ++i)
    callers.emplace_back([&] {
      Caller caller(x);
      attn_call_options options = inPool(pool);
      while (!stop) {
        caller.call(layer, shared, &options);
        if (caller.got(answers[0]))
          ++seen[0];
        else if (caller.got(answers[1]))
          ++seen[1];
        else
          ++wrong;
      }
    });

  int64_t swaps = 0;
  auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(std::atof(argv[2]));
  while (std::chrono::steady_clock::now() < end) {
    attn_weights *next = sets[++swaps % 2].pack(layer);
    check(attn_weights_swap(shared, next));
    attn_weights_release(next);
  }
  stop = true;
  for (std::thread &caller : callers)
    caller.join();
  std::printf(
      "%lld swaps; results of the first weights %lld, of the second %lld, of neither %lld\n",
      (long long)swaps, (long long)seen[0], (long long)seen[1], (long long)wrong);
  attn_pool_release(pool);
  attn_weights_release(shared);
  attn_function_release(layer);
  attn_library_release(library);
  return wrong || !seen[0] || !seen[1];
}
