//===- CallTest.cpp - results, options, workspace, queries, threads -------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "Fixture.h"

#include <thread>

#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

using CallTest = ForwardTest;

struct Workspace {
  size_t bytes;
  char *data;
  explicit Workspace(int64_t size)
      : bytes(size), data(static_cast<char *>(std::aligned_alloc(64, (bytes + 127) / 64 * 64))) {}
  ~Workspace() { std::free(data); }
};

attn_call_options callOptions() {
  attn_call_options options = {};
  options.size = sizeof options;
  return options;
}

TEST_F(CallTest, Result) {
  ASSERT_EQ(call(forward.get(), weights.get()), ATTN_OK) << attn_last_error();
  expectResult();
}

TEST_F(CallTest, NullFunction) {
  EXPECT_EQ(attn_call(nullptr, nullptr, nullptr, 0, nullptr, 0, nullptr), ATTN_ERROR_USAGE);
  EXPECT_STREQ(attn_last_error(), "attn_call: expected a function, got null");
}

TEST_F(CallTest, WithoutChecks) {
  attn_call_options options = callOptions();
  options.skip_checks = 1;
  ASSERT_EQ(call(forward.get(), weights.get(), &options), ATTN_OK) << attn_last_error();
  expectResult();
}

TEST_F(CallTest, KeptWorkspaceGrowsAndIsUsedAgain) {
  for (int64_t batch : {2, 200, 3, 200, 900}) {
    ForwardArguments some(batch, 7);
    ASSERT_EQ(some.call(forward.get(), weights.get()), ATTN_OK) << attn_last_error();
    some.expectResult();
  }
}

TEST_F(CallTest, WorkspaceSize) {
  attn_workspace size = {};
  size.size = sizeof size;
  x.dl.data = nullptr; // not read
  ASSERT_EQ(attn_workspace_size(forward.get(), inputs.data(), 3, 4, &size), ATTN_OK)
      << attn_last_error();
  EXPECT_EQ(size.per_call, 64);    // 4 * 3, rounded up
  EXPECT_EQ(size.per_worker, 192); // 16 * 5, rounded up, and the worker's counts of tiles
  EXPECT_EQ(size.total, 64 + 4 * 192);
}

TEST_F(CallTest, WorkspaceSizeChecks) {
  attn_workspace size = {};
  EXPECT_EQ(attn_workspace_size(forward.get(), inputs.data(), 3, 1, &size), ATTN_ERROR_USAGE);
  EXPECT_STREQ(attn_last_error(),
               "attn_workspace: expected a struct that starts with its size, got 0");
  size.size = sizeof size;
  EXPECT_EQ(attn_workspace_size(forward.get(), inputs.data(), 3, 0, &size), ATTN_ERROR_USAGE);
  EXPECT_STREQ(attn_last_error(), "attn_workspace_size: expected at least 1 worker, got 0");
  EXPECT_EQ(attn_workspace_size(nullptr, inputs.data(), 3, 1, &size), ATTN_ERROR_USAGE);
  EXPECT_STREQ(attn_last_error(), "attn_workspace_size: expected a function, got null");
  EXPECT_EQ(attn_workspace_size(forward.get(), inputs.data(), 2, 1, &size), ATTN_ERROR_COUNT);
  EXPECT_EQ(attn_workspace_size(forward.get(), inputs.data(), 3, INT64_MAX, &size),
            ATTN_ERROR_WORKSPACE);
  EXPECT_STREQ(attn_last_error(),
               "forward: expected a workspace of less than 2^63 bytes, got more");
}

TEST_F(CallTest, WorkspaceFormulaOverflows) {
  Function halve = createFunction(library.get(), "halve");
  Tensor<int64_t> ids({1000});
  const DLTensor *in[] = {&ids.dl};
  attn_workspace size = {};
  size.size = sizeof size;
  EXPECT_EQ(attn_workspace_size(halve.get(), in, 1, 1, &size), ATTN_ERROR_WORKSPACE);
}

TEST_F(CallTest, CallersWorkspace) {
  Workspace workspace(64 + 192);
  attn_call_options options = callOptions();
  options.workspace = workspace.data;
  options.workspace_bytes = 64 + 192;
  ASSERT_EQ(call(forward.get(), weights.get(), &options), ATTN_OK) << attn_last_error();
  expectResult();
}

TEST_F(CallTest, CallersWorkspaceNeedsNoSystemCall) {
  if (underThreadSanitizer)
    GTEST_SKIP() << "ThreadSanitizer has a thread of its own, which outlives SYS_exit";
  Workspace workspace(64 + 192);
  attn_call_options options = callOptions();
  options.workspace = workspace.data;
  options.workspace_bytes = 64 + 192;
  ASSERT_EQ(call(forward.get(), weights.get(), &options), ATTN_OK) << attn_last_error();
  pid_t child = fork();
  if (!child) {
    alarm(60);
    // From here on, any system call other than read, write and exit kills the process.
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
    syscall(SYS_exit, call(forward.get(), weights.get(), &options));
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status)) << "killed by signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), ATTN_OK);
}

TEST_F(CallTest, WorkspaceTooSmall) {
  Workspace workspace(64 + 192);
  attn_call_options options = callOptions();
  options.workspace = workspace.data;
  options.workspace_bytes = 64 + 191;
  expectRefused(ATTN_ERROR_WORKSPACE, "forward: workspace expected at least 256 bytes, got 255",
                &options);
}

TEST_F(CallTest, WorkspaceMisaligned) {
  Workspace workspace(64 + 192);
  attn_call_options options = callOptions();
  options.workspace = workspace.data + 4;
  options.workspace_bytes = 64 + 192;
  EXPECT_EQ(call(forward.get(), weights.get(), &options), ATTN_ERROR_WORKSPACE);
  EXPECT_EQ(std::string(attn_last_error())
                .find("forward: workspace expected aligned to 64 bytes, "
                      "got 0x"),
            0u);
  expectUntouched();
}

TEST_F(CallTest, WorkspaceOverlapsArgument) {
  Workspace workspace(64 + 192);
  attn_call_options options = callOptions();
  options.workspace = workspace.data;
  options.workspace_bytes = 64 + 192;
  std::fill_n(workspace.data, 256, 0);
  lengths.dl.data = workspace.data + 180;
  expectRefused(ATTN_ERROR_OVERLAP,
                "forward: workspace expected memory of its own, got memory of 'lengths'", &options);
}

TEST_F(CallTest, OptionsWithoutSize) {
  attn_call_options options = {};
  expectRefused(ATTN_ERROR_USAGE,
                "attn_call_options: expected a struct that starts with its size, got 0", &options);
}

TEST_F(CallTest, OlderOptionsAreShorter) {
  attn_call_options options = callOptions();
  options.size = offsetof(attn_call_options, parallel_for);
  options.stream = this; // must be ignored: it is beyond the size that this caller passes
  ASSERT_EQ(call(forward.get(), weights.get(), &options), ATTN_OK) << attn_last_error();
  expectResult();
}

TEST_F(CallTest, NewerOptionsMustBeUnused) {
  struct {
    attn_call_options known;
    int64_t later;
  } options = {callOptions(), 0};
  options.known.size = sizeof options;
  EXPECT_EQ(call(forward.get(), weights.get(), &options.known), ATTN_OK) << attn_last_error();
  options.later = 1;
  EXPECT_EQ(call(forward.get(), weights.get(), &options.known), ATTN_ERROR_USAGE);
  std::string known = std::to_string(sizeof(attn_call_options));
  std::string given = std::to_string(sizeof options);
  EXPECT_EQ(attn_last_error(), "attn_call_options: expected a struct of " + known +
                                   " bytes, got one of " + given +
                                   " with fields of a newer version");
}

TEST_F(CallTest, StreamIsReserved) {
  attn_call_options options = callOptions();
  options.stream = this;
  expectRefused(ATTN_ERROR_USAGE,
                "forward: expected null stream, range_errors and tile_counts for a CPU, got one "
                "that is not null",
                &options);
}

TEST_F(CallTest, WorkersWithoutParallelFor) {
  attn_call_options options = callOptions();
  options.workers = 4;
  expectRefused(ATTN_ERROR_USAGE,
                "forward: expected a parallel_for that uses the pool or workers, got null",
                &options);
}

TEST_F(CallTest, ParallelForWithoutWorkers) {
  attn_call_options options = callOptions();
  options.parallel_for = [](void *, attn_task_fn, void *, int64_t) { FAIL(); };
  expectRefused(ATTN_ERROR_USAGE, "forward: expected workers of at least 1, got 0", &options);
}

TEST_F(CallTest, FewerWorkersThanThePoolHas) {
  Pool pool = createPool(3);
  attn_call_options options = callOptions();
  options.parallel_for = attn_pool_parallel_for;
  options.workers = 2;
  expectRefused(ATTN_ERROR_USAGE, "forward: expected a pool, got null", &options);
  options.pool = pool.get();
  expectRefused(ATTN_ERROR_USAGE, "forward: expected workers of at least 3, got 2", &options);
}

TEST_F(CallTest, OwnParallelFor) {
  attn_call_options options = callOptions();
  int64_t loops = 0;
  options.pool = &loops;
  options.workers = 2;
  // Run the tasks from the last to the first, and on both workers in turn.
  options.parallel_for = [](void *pool, attn_task_fn task, void *context, int64_t count) {
    ++*static_cast<int64_t *>(pool);
    while (count--)
      task(context, count, count % 2);
  };
  ASSERT_EQ(call(forward.get(), weights.get(), &options), ATTN_OK) << attn_last_error();
  expectResult();
  EXPECT_EQ(loops, 1);
}

TEST_F(CallTest, Statistics) {
  ForwardArguments many(1000, 64);
  Pool pool = createPool(4);
  int64_t tasks[4] = {-1, -1, -1, -1};
  attn_statistics statistics = {};
  statistics.size = sizeof statistics;
  statistics.worker_tasks = tasks;
  attn_call_options options = callOptions();
  options.parallel_for = attn_pool_parallel_for;
  options.pool = pool.get();
  options.statistics = &statistics;
  // The system decides which workers run: repeat the call until more than one worker has run tasks.
  int64_t busy = 0;
  for (int attempt = 0; attempt < 1000 && busy < 2; ++attempt) {
    ASSERT_EQ(many.call(forward.get(), weights.get(), &options), ATTN_OK) << attn_last_error();
    EXPECT_EQ(std::accumulate(tasks, tasks + 4, int64_t(0)), 1000);
    busy = std::count_if(tasks, tasks + 4, [](int64_t n) { return n > 0; });
  }
  EXPECT_GE(busy, 2);
  many.expectResult();
  EXPECT_GT(statistics.nanoseconds, 0);
  EXPECT_EQ(statistics.workspace_bytes, 4032 + 4 * (1024 + 64));
  EXPECT_STREQ(statistics.level, attn_function_level(forward.get()));
  EXPECT_STREQ(statistics.schedules, "per-head");
  int64_t kept = std::accumulate(many.lengths.elements.begin(), many.lengths.elements.end(), 0);
  EXPECT_EQ(statistics.tiles_run, kept);
  EXPECT_EQ(statistics.tiles_skipped, 1000 * 64 - kept);
}

TEST_F(CallTest, StatisticsOfCallingThread) {
  int64_t tasks = -1;
  attn_statistics statistics = {};
  statistics.size = sizeof statistics;
  statistics.worker_tasks = &tasks;
  attn_call_options options = callOptions();
  options.statistics = &statistics;
  ASSERT_EQ(call(forward.get(), weights.get(), &options), ATTN_OK) << attn_last_error();
  EXPECT_EQ(tasks, 3);
}

TEST_F(CallTest, ErrorHandler) {
  struct Seen {
    attn_status status = ATTN_OK;
    std::string message;
  } seen;
  attn_set_error_handler([](attn_status status, const char *message, void *data) {
    if (data)
      *static_cast<Seen *>(data) = {status, message};
  });
  attn_call_options options = callOptions();
  options.user_data = &seen;
  x.dl.ndim = 2;
  expectRefused(ATTN_ERROR_RANK, "forward: argument 'x' expected rank 3, got 2", &options);
  EXPECT_EQ(seen.status, ATTN_ERROR_RANK);
  EXPECT_EQ(seen.message, attn_last_error());
  seen = {};
  call(forward.get(), weights.get()); // a call without user data
  EXPECT_EQ(seen.status, ATTN_OK);
  attn_set_error_handler(nullptr);
}

TEST_F(CallTest, ErrorsStayOnTheirThread) {
  x.dl.ndim = 2;
  expectRefused(ATTN_ERROR_RANK, "forward: argument 'x' expected rank 3, got 2");
  std::thread([] { EXPECT_STREQ(attn_last_error(), ""); }).join();
}

TEST_F(CallTest, EightThreads) {
  Pool pool = createPool(3);
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      attn_call_options options = callOptions();
      if (t % 2) { // half of them share a pool
        options.parallel_for = attn_pool_parallel_for;
        options.pool = pool.get();
      }
      for (int i = 0; i < 200; ++i) {
        ForwardArguments own(1 + (t + i) % 9, 1 + i % 13);
        ASSERT_EQ(own.call(forward.get(), weights.get(), &options), ATTN_OK) << attn_last_error();
        own.expectResult();
      }
    });
  for (std::thread &thread : threads)
    thread.join();
}

TEST_F(CallTest, OutputShape) {
  x.dl.data = nullptr; // not read
  int64_t shape[3] = {-1, -1, -1};
  ASSERT_EQ(attn_output_shape(forward.get(), inputs.data(), 3, 0, shape), ATTN_OK)
      << attn_last_error();
  EXPECT_EQ(std::vector<int64_t>(shape, shape + 3), (std::vector<int64_t>{3, 5, 4}));
  ASSERT_EQ(attn_output_shape(forward.get(), inputs.data(), 3, 1, shape), ATTN_OK);
  EXPECT_EQ(shape[0], 3);
}

TEST_F(CallTest, OutputShapeChecks) {
  int64_t shape[3];
  EXPECT_EQ(attn_output_shape(forward.get(), inputs.data(), 3, 2, shape), ATTN_ERROR_USAGE);
  EXPECT_STREQ(attn_last_error(), "attn_output_shape: expected an index in [0, 2), got 2");
  EXPECT_EQ(attn_output_shape(forward.get(), inputs.data(), 3, 0, nullptr), ATTN_ERROR_NULL);
  EXPECT_STREQ(attn_last_error(),
               "attn_output_shape: expected an array for the shape, got null");
  residual.shape[0] = 2;
  EXPECT_EQ(attn_output_shape(forward.get(), inputs.data(), 3, 0, shape), ATTN_ERROR_SHAPE);
  Function unbound = createFunction(library.get(), "unbound");
  EXPECT_EQ(attn_output_shape(unbound.get(), nullptr, 0, 0, shape), ATTN_ERROR_SHAPE);
  EXPECT_STREQ(attn_last_error(), "unbound: expected 'n' to be a size of an input, got none");
}

} // namespace
