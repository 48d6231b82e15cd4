//===- PoolTest.cpp - each index runs once, workers in range, fork --------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "Fixture.h"

#include <atomic>
#include <chrono>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

/// A loop in a pool. `runs` counts the runs of each task; `inside` detects two tasks on one worker at the same time.
struct Loop {
  int64_t workers;
  std::vector<std::atomic<int>> runs;
  std::vector<std::atomic<int>> inside;
  std::atomic<int> faults{0};
  std::function<void(int64_t)> body = [](int64_t) {};

  Loop(int64_t count, int64_t workers) : workers(workers), runs(count), inside(workers) {}

  void run(attn_pool *pool) {
    attn_pool_parallel_for(
        pool,
        [](void *context, int64_t index, int64_t worker) {
          Loop &loop = *static_cast<Loop *>(context);
          if (worker < 0 || worker >= loop.workers || index < 0 ||
              index >= int64_t(loop.runs.size()) || loop.inside[worker]++) {
            ++loop.faults;
            return;
          }
          ++loop.runs[index];
          loop.body(index);
          --loop.inside[worker];
        },
        this, int64_t(runs.size()));
  }

  bool isRight() const {
    return !faults && std::all_of(runs.begin(), runs.end(), [](auto &n) { return n == 1; });
  }
};

TEST(PoolTest, EveryIndexOnce) {
  for (int64_t workers : {1, 2, 7}) {
    Pool pool = createPool(workers);
    EXPECT_EQ(attn_pool_workers(pool.get()), workers);
    for (int64_t count : {0, 1, 2, 3, 100, 5000}) {
      Loop loop(count, workers);
      loop.run(pool.get());
      EXPECT_TRUE(loop.isRight()) << workers << " workers, " << count << " indices";
    }
  }
}

/// Runs a loop in which each thread waits in its first task until `workers` threads have begun. Returns the index of
/// the first task of each thread.
std::map<std::thread::id, int64_t> firstIndices(attn_pool *pool, int64_t count, int64_t workers) {
  Loop loop(count, workers);
  std::mutex mutex;
  std::map<std::thread::id, int64_t> first;
  std::atomic<int64_t> arrived{0};
  loop.body = [&](int64_t index) {
    {
      std::lock_guard lock(mutex);
      if (!first.emplace(std::this_thread::get_id(), index).second)
        return;
    }
    ++arrived;
    while (arrived < workers)
      std::this_thread::yield();
  };
  loop.run(pool);
  EXPECT_TRUE(loop.isRight());
  return first;
}

TEST(PoolTest, WorkersKeepTheirShares) {
  Pool pool = createPool(3);
  std::map<std::thread::id, int64_t> first = firstIndices(pool.get(), 31, 3);
  std::set<int64_t> starts;
  for (auto [thread, index] : first)
    starts.insert(index);
  EXPECT_EQ(starts, (std::set<int64_t>{0, 11, 21}));
  EXPECT_EQ(first, firstIndices(pool.get(), 31, 3));
}

TEST(PoolTest, WhoHasFinishedHelps) {
  Pool pool = createPool(3);
  Loop loop(100, 3);
  std::atomic<int> others{0};
  // The first task ends after all others, so other workers must take the remaining tasks of its worker's share.
  auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  loop.body = [&](int64_t index) {
    if (index) {
      ++others;
      return;
    }
    while (others < 99 && std::chrono::steady_clock::now() < end)
      std::this_thread::yield();
    loop.faults += others < 99;
  };
  loop.run(pool.get());
  EXPECT_TRUE(loop.isRight());
}

TEST(PoolTest, ManyShortLoops) {
  Pool pool = createPool(4);
  for (int i = 0; i < 5000; ++i) {
    Loop loop(2 + i % 7, 4);
    loop.run(pool.get());
    ASSERT_TRUE(loop.isRight()) << "loop " << i;
  }
}

TEST(PoolTest, WakesAndWaitsForSleepers) {
  using namespace std::chrono_literals;
  Pool pool = createPool(3);
  for (int i = 0; i < 5; ++i) {
    std::this_thread::sleep_for(5ms); // long enough for the workers to sleep
    Loop loop(3, 3);
    std::atomic<int> arrived{0};
    // No task ends before all three have begun, so each needs its own worker. Then the tasks of the
    // other workers last long enough for the caller to sleep.
    std::thread::id caller = std::this_thread::get_id();
    loop.body = [&](int64_t) {
      ++arrived;
      while (arrived < 3)
        std::this_thread::yield();
      if (std::this_thread::get_id() != caller)
        std::this_thread::sleep_for(50ms);
    };
    loop.run(pool.get());
    EXPECT_TRUE(loop.isRight());
  }
}

// A fault on a worker reaches the application's signal handler; timer signals do not reach a worker.
TEST(PoolTest, SignalsOfWorkers) {
  Pool pool = createPool(2);
  Loop loop(2, 2);
  std::atomic<int> arrived{0};
  std::atomic<bool> blocksFault{false}, blocksTimer{true};
  std::thread::id caller = std::this_thread::get_id();
  loop.body = [&](int64_t) {
    ++arrived;
    while (arrived < 2)
      std::this_thread::yield();
    if (std::this_thread::get_id() == caller)
      return;
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, nullptr, &mask);
    blocksFault = sigismember(&mask, SIGSEGV);
    blocksTimer = sigismember(&mask, SIGALRM);
  };
  loop.run(pool.get());
  EXPECT_FALSE(blocksFault);
  EXPECT_TRUE(blocksTimer);
}

TEST(PoolTest, Nested) {
  Pool pool = createPool(3);
  Loop outer(20, 3);
  outer.body = [&](int64_t) {
    Loop inner(30, 3);
    inner.run(pool.get());
    if (!inner.isRight())
      ++outer.faults;
  };
  outer.run(pool.get());
  EXPECT_TRUE(outer.isRight());
}

TEST(PoolTest, SharedByThreads) {
  Pool pool = createPool(3);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 500; ++i) {
        Loop loop(17, 3);
        loop.run(pool.get());
        ASSERT_TRUE(loop.isRight());
      }
    });
  for (std::thread &thread : threads)
    thread.join();
}

/// Runs `body` in a forked child process, and returns whether `body` returned true.
template <typename Body> bool inChild(Body body) {
  pid_t child = fork();
  if (!child) {
    alarm(60);
    _exit(body() ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/// Runs a loop that one thread alone cannot finish. Returns whether all its tasks ran.
bool runsInParallel(attn_pool *pool) {
  Loop loop(2, 3);
  std::atomic<int> arrived{0};
  loop.body = [&](int64_t) {
    ++arrived;
    while (arrived < 2)
      std::this_thread::yield();
  };
  loop.run(pool);
  return loop.isRight();
}

TEST(PoolTest, RemadeAfterFork) {
  if (underThreadSanitizer)
    GTEST_SKIP() << "ThreadSanitizer cannot follow threads of a forked child";
  Pool pool = createPool(3);
  ASSERT_TRUE(runsInParallel(pool.get()));
  EXPECT_TRUE(inChild([&] {
    bool grandchild =
        runsInParallel(pool.get()) && inChild([&] { return runsInParallel(pool.get()); });
    pool.reset();
    return grandchild;
  }));
  EXPECT_TRUE(runsInParallel(pool.get()));
}

TEST(PoolTest, ReleasedUnusedAfterFork) {
  Pool pool = createPool(3);
  EXPECT_TRUE(inChild([&] {
    pool.reset();
    return true;
  }));
}

TEST(PoolTest, ForkedWhileAnotherThreadHasALoop) {
  if (underThreadSanitizer)
    GTEST_SKIP() << "ThreadSanitizer cannot follow threads of a forked child";
  Pool pool = createPool(3);
  std::atomic<bool> begun{false}, end{false};
  std::thread other([&] {
    Loop loop(3, 3);
    loop.body = [&](int64_t) {
      begun = true;
      while (!end)
        std::this_thread::yield();
    };
    loop.run(pool.get());
  });
  while (!begun)
    std::this_thread::yield();
  EXPECT_TRUE(inChild([&] { return runsInParallel(pool.get()); }));
  end = true;
  other.join();
}

TEST(PoolTest, AsManyWorkersAsCpus) {
  Pool pool = createPool(0);
  EXPECT_GE(attn_pool_workers(pool.get()), 1);
  EXPECT_LE(attn_pool_workers(pool.get()), int64_t(std::thread::hardware_concurrency()));
}

TEST(PoolTest, RefusesCounts) {
  attn_pool *pool = nullptr;
  EXPECT_EQ(attn_pool_create(-1, &pool), ATTN_ERROR_USAGE);
  EXPECT_STREQ(attn_last_error(), "attn_pool_create: expected workers in [0, 1024], got -1");
  EXPECT_EQ(attn_pool_create(2000, &pool), ATTN_ERROR_USAGE);
  EXPECT_EQ(attn_pool_create(1, nullptr), ATTN_ERROR_USAGE);
  EXPECT_STREQ(attn_last_error(), "attn_pool_create: expected a place for the pool, got null");
  EXPECT_EQ(pool, nullptr);
}

TEST(PoolTest, RefusesOptions) {
  attn_pool *pool = nullptr;
  int32_t none[] = {-1}, missing[] = {1023};
  attn_pool_options options = {sizeof options, 2, -2, nullptr, 0};
  EXPECT_EQ(attn_pool_create_with(&options, &pool), ATTN_ERROR_USAGE);
  EXPECT_STREQ(attn_last_error(), "attn_pool_create: expected spin_us in [-1, 42949672], got -2");
  options = {sizeof options, 2, 0, none, 0};
  EXPECT_EQ(attn_pool_create_with(&options, &pool), ATTN_ERROR_USAGE);
  EXPECT_STREQ(attn_last_error(),
               "attn_pool_create: expected cpus and their number, got an array and 0");
  options = {sizeof options, 2, 0, nullptr, 1};
  EXPECT_EQ(attn_pool_create_with(&options, &pool), ATTN_ERROR_USAGE);
  EXPECT_STREQ(attn_last_error(),
               "attn_pool_create: expected cpus and their number, got null and 1");
  for (int32_t *cpus : {none, missing}) {
    options = {sizeof options, 2, 0, cpus, 1};
    EXPECT_EQ(attn_pool_create_with(&options, &pool), ATTN_ERROR_USAGE);
    EXPECT_EQ(std::string(attn_last_error()),
              "attn_pool_create: expected CPUs that this process may use, got " +
                  std::to_string(cpus[0]));
  }
  EXPECT_EQ(pool, nullptr);
}

TEST(PoolTest, BindsThreads) {
  cpu_set_t allowed;
  ASSERT_EQ(sched_getaffinity(0, sizeof allowed, &allowed), 0);
  int32_t cpu = 0;
  while (!CPU_ISSET(cpu, &allowed))
    ++cpu;
  Pool pool = attn::rt::createPool({sizeof(attn_pool_options), 3, 0, &cpu, 1});
  std::atomic<int> bound = 0, others = 0;
  std::thread::id caller = std::this_thread::get_id();
  for (int64_t time = 0; time < 1000 && bound < 2; ++time) {
    Loop loop(30, 3);
    loop.body = [&](int64_t) {
      std::this_thread::yield();
      if (std::this_thread::get_id() == caller)
        return;
      cpu_set_t set;
      sched_getaffinity(0, sizeof set, &set);
      ++(CPU_COUNT(&set) == 1 && CPU_ISSET(cpu, &set) ? bound : others);
    };
    loop.run(pool.get());
    EXPECT_TRUE(loop.isRight());
  }
  EXPECT_GE(bound, 2);
  EXPECT_EQ(others, 0);
}

/// The CPU time that this process takes while it sleeps for 50 ms after a loop.
static double cpuTimeAfterLoop(int64_t spinUs) {
  Pool pool = attn::rt::createPool({sizeof(attn_pool_options), 2, spinUs, nullptr, 0});
  auto now = [] {
    timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return double(time.tv_sec) * 1e3 + double(time.tv_nsec) / 1e6;
  };
  double most = 0;
  for (int i = 0; i < 5; ++i) {
    Loop loop(100, 2);
    loop.run(pool.get());
    EXPECT_TRUE(loop.isRight());
    double before = now();
    usleep(50000);
    most = std::max(most, now() - before);
  }
  return most;
}

TEST(PoolTest, SpinsForTheGivenTime) {
  EXPECT_LT(cpuTimeAfterLoop(-1), 5);
  EXPECT_GT(cpuTimeAfterLoop(1000000), 10);
}

// A process without address space for stacks cannot start threads.
TEST(PoolTest, NoThreads) {
  if (underSanitizer)
    GTEST_SKIP() << "a sanitizer takes more address space than any limit";
  EXPECT_TRUE(inChild([] {
    rlimit limit = {1, 1};
    setrlimit(RLIMIT_AS, &limit);
    attn_pool *pool = nullptr;
    // The C library keeps some stacks of threads that ended, and reuses them: only a large number of threads fails.
    return attn_pool_create(1000, &pool) == ATTN_ERROR_RESOURCE && !pool &&
           std::string(attn_last_error()).find("attn_pool_create: expected 999 threads, got ") == 0;
  }));
}

} // namespace
