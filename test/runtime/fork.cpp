//===- fork.cpp - a process forks while its threads are in calls -------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   fork mha.so
//
// The layer is examples/models/mha.pt2. At each fork, one call is inside a loop of the pool, a swap of
// weights waits for that call, and three other threads keep calling. The child then calls the layer
// with the same pool and the same weights; the pool creates new workers for it.
//
//===----------------------------------------------------------------------===//

#include "Mha.h"

#include <sys/wait.h>
#include <unistd.h>

constexpr int kCallers = 3, kWorkers = 3, kForks = 20;

/// A task of a loop of kWorkers tasks. It ends only after every task has started, each on its own thread.
void meet(void *met, int64_t, int64_t) {
  auto *count = static_cast<std::atomic<int64_t> *>(met);
  ++*count;
  while (*count < kWorkers)
    std::this_thread::yield();
}

/// Calls the layer in the child process, and exits with 0 if everything is right. If the child waits for a thread of
/// the parent, SIGALRM ends it.
[[noreturn]] void runChild(attn_function *layer, const attn_weights *weights, attn_pool *pool,
                           Caller &caller, const std::vector<double> &answer) {
  alarm(20);
  attn_call_options options = inPool(pool);
  caller.call(layer, weights, &options);
  if (!caller.got(answer))
    _exit(1);
  std::atomic<int64_t> met{0};
  attn_pool_parallel_for(pool, meet, &met, kWorkers);
  attn_pool_release(pool);
  _exit(0);
}

int main(int argc, char **argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: fork mha.so\n");
    return 1;
  }
  alarm(60); // a bug may make threads wait for each other forever
  attn_library *library;
  attn_function *layer;
  attn_pool *pool;
  check(attn_library_load(argv[1], &library));
  check(attn_function_create(library, "forward", nullptr, &layer));
  check(attn_pool_create(kWorkers, &pool));

  std::vector<float> x = randomInput();
  WeightSet sets[] = {WeightSet(1), WeightSet(2)};
  std::vector<double> answers[] = {sets[0].answer(x), sets[1].answer(x)};
  attn_weights *shared = sets[0].pack(layer), *other = sets[1].pack(layer);

  Pause pause(pool);
  bool former = false;
  std::thread paused([&] {
    Caller caller(x);
    attn_call_options options = pause.options();
    caller.call(layer, shared, &options);
    former = caller.got(answers[0]);
  });
  pause.awaitStop();
  std::thread swapper([&] { check(attn_weights_swap(shared, other)); });
  Caller caller(x);
  do
    caller.call(layer, shared);
  while (caller.got(answers[0]));

  std::atomic<bool> stop{false};
  std::atomic<int64_t> wrong{0};
  std::vector<std::thread> callers;
  for (int i = 0; i < kCallers; ++i)
    callers.emplace_back([&] {
      Caller own(x);
      while (!stop) {
        own.call(layer, shared);
        wrong += !own.got(answers[1]);
      }
    });

  int right = 0, status = 0; // the number of children with the right result, and the last status
  while (right < kForks) {
    pid_t child = fork();
    if (!child)
      runChild(layer, shared, pool, caller, answers[1]);
    if (waitpid(child, &status, 0) != child || status)
      break;
    ++right;
  }
  stop = true;
  pause.resume();
  for (std::thread *thread : {&paused, &swapper})
    thread->join();
  for (std::thread &thread : callers)
    thread.join();
  std::printf("children with the right result: %d of %d; wrong results in the parent: %lld\n",
              right, kForks, (long long)(wrong + !former));
  if (WIFSIGNALED(status))
    std::printf("signal %d ended a child\n", WTERMSIG(status));
  attn_pool_release(pool);
  attn_weights_release(other);
  attn_weights_release(shared);
  attn_function_release(layer);
  attn_library_release(library);
  return right != kForks || wrong || !former;
}
