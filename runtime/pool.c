//===- pool.c - worker threads --------------------------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// One atomic word is the state of the pool: the number of the loop, whether the loop is open, and how many workers have
// joined it. A worker increments the count to join an open loop, takes indices until none are left, and leaves the
// loop. The calling thread opens the loop, takes indices too, closes the loop, and waits for the workers that joined
// it. No thread waits for a worker that is still asleep, because a worker that wakes late finds the loop closed.
//
// Each worker has a share of the indices: a contiguous range, which is the same in loops of equal
// counts. It takes the indices of its share in order: neighbouring indices read the same keys or
// rows, and the next loop finds the data of this loop in the cache of the same core. A worker that
// has finished its share takes indices from the ends of the other shares.
//
//===----------------------------------------------------------------------===//

#define _GNU_SOURCE // CPU_SET

#include "internal.h"

#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>

enum {
  MAX_WORKERS = 1024,
  SPINS_PER_US = 50,
  // A thread spins this number of times before it sleeps. A spin takes 10 to 40 ns on x86; on a
  // virtual machine, sleeping and waking took 300 us. During a loop, spinning bridges the time by which
  // one task is longer than another.
  BUSY_SPINS = 100000,
  // Between loops, spinning bridges the time from the call of one layer to the call of the next layer.
  IDLE_SPINS = 5000,
  // A thread that spins longer yields: it may occupy the core that another thread waits for.
  SPINS_BEFORE_YIELD = 1000,
};

// The state: bits 0-15 count the workers in the loop, bits 16-18 are flags, bits 32-63 are the
// number of the loop.
#define JOINED UINT64_C(0xffff)
#define OPEN (UINT64_C(1) << 16)
#define CALLER_SLEEPS (UINT64_C(1) << 17)
#define STOP (UINT64_C(1) << 18)
#define LOOP_SHIFT 32

typedef struct worker {
  attn_pool *pool;
  int64_t number;
  pthread_t thread; ///< unused for number 0, the calling thread of a loop

  // The share of this worker: the indices [next, end), of which `left` are not claimed yet. A
  // worker first claims an index. Then it takes the first index of its own share or the last index
  // of another share, so that the two ends never cross. The share has a cache line of its own,
  // which other workers write only when they help.
  _Alignas(64) atomic_llong left;
  atomic_llong end;
  int64_t next; ///< only the owner uses it
} worker;

struct attn_pool {
  int64_t workers;
  int busy_spins, idle_spins; ///< how long a thread spins during and after a loop
  int64_t num_cpus;           ///< 0 if threads are not bound
  int32_t *cpus;

  // The loop that runs; there is one at a time.
  attn_task_fn task;
  void *context;

  atomic_llong owner;    ///< 0: free; else 1 + `forks` of the process whose thread runs a loop
  long long forks;       ///< `forks` of the process that started the threads; used by the owner
  int64_t threads;       ///< number of threads that were started
  pthread_mutex_t mutex; ///< protects only sleeping and waking
  pthread_cond_t opened, finished;
  atomic_int sleepers;

  _Alignas(64) _Atomic(uint64_t) state; ///< on its own cache line, as all workers write it
  worker members[];
};

/// The number of forks between the process that loaded the runtime and this process.
static atomic_llong forks;

static void count_fork(void) { atomic_fetch_add(&forks, 1); }

static int fork_watch_error;

static void watch_forks(void) { fork_watch_error = pthread_atfork(NULL, NULL, count_fork); }

static inline void pause_briefly(int spins) {
  if (spins > SPINS_BEFORE_YIELD && spins % 64 == 0)
    sched_yield();
#if defined __x86_64__
  __builtin_ia32_pause();
#elif defined __aarch64__
  __asm__ volatile("isb"); // `yield` would not pause
#endif
}

/// Gives each worker its share. Relaxed stores are enough: the loop is opened afterwards, so a worker
/// that joins sees them, and the next loop starts only when all workers have left this loop.
static void deal_indices(attn_pool *pool, int64_t count) {
  int64_t share = count / pool->workers, rest = count % pool->workers, next = 0;
  for (worker *it = pool->members; it < pool->members + pool->workers; ++it) {
    int64_t size = share + (rest-- > 0);
    it->next = next;
    atomic_store_explicit(&it->end, next += size, memory_order_relaxed);
    atomic_store_explicit(&it->left, size, memory_order_relaxed);
  }
}

static bool claim(worker *owner) {
  return atomic_load_explicit(&owner->left, memory_order_relaxed) > 0 &&
         atomic_fetch_sub_explicit(&owner->left, 1, memory_order_relaxed) > 0;
}

static void take_indices(attn_pool *pool, int64_t number) {
  worker *self = &pool->members[number];
  while (claim(self))
    pool->task(pool->context, self->next++, number);
  for (int64_t i = 1; i < pool->workers; ++i) {
    worker *other = &pool->members[(number + i) % pool->workers];
    while (claim(other))
      pool->task(pool->context, atomic_fetch_sub_explicit(&other->end, 1, memory_order_relaxed) - 1,
                 number);
  }
}

static bool is_news(uint64_t state, uint64_t last_loop) {
  return state & STOP || (state & OPEN && state >> LOOP_SHIFT != last_loop);
}

/// Spins, then sleeps, until a loop after `last_loop` is open or the pool stops.
static uint64_t await_news(attn_pool *pool, uint64_t last_loop) {
  uint64_t state;
  for (int busy = 0, idle = 0; busy <= pool->busy_spins && idle <= pool->idle_spins;) {
    if (is_news(state = atomic_load(&pool->state), last_loop))
      return state;
    pause_briefly(++*(state & (OPEN | JOINED) ? &busy : &idle));
  }
  pthread_mutex_lock(&pool->mutex);
  // The thread that opens a loop changes the state and then reads `sleepers`. This thread raises `sleepers` and then
  // reads the state, so that at least one of the two threads reads what the other has written.
  atomic_fetch_add(&pool->sleepers, 1);
  while (!is_news(state = atomic_load(&pool->state), last_loop))
    pthread_cond_wait(&pool->opened, &pool->mutex);
  atomic_fetch_sub(&pool->sleepers, 1);
  pthread_mutex_unlock(&pool->mutex);
  return state;
}

static void *work(void *argument) {
  worker *self = argument;
  attn_pool *pool = self->pool;
  for (uint64_t last_loop = 0;;) {
    uint64_t state = await_news(pool, last_loop);
    if (state & STOP)
      return NULL;
    // The exchange fails if another worker joined or the loop was closed. Then read the state again.
    if (!atomic_compare_exchange_weak(&pool->state, &state, state + 1))
      continue;
    last_loop = state >> LOOP_SHIFT;
    take_indices(pool, self->number);
    state = atomic_fetch_sub(&pool->state, 1);
    if (state & CALLER_SLEEPS && (state & JOINED) == 1) {
      pthread_mutex_lock(&pool->mutex);
      pthread_cond_signal(&pool->finished);
      pthread_mutex_unlock(&pool->mutex);
    }
  }
}

static void wake_sleepers(attn_pool *pool) {
  if (!atomic_load(&pool->sleepers))
    return;
  pthread_mutex_lock(&pool->mutex);
  pthread_cond_broadcast(&pool->opened);
  pthread_mutex_unlock(&pool->mutex);
}

/// Spins, then sleeps, until all workers that joined the closed loop have left it.
static void await_workers(attn_pool *pool) {
  for (int i = 0; i <= pool->busy_spins; ++i) {
    if (!(atomic_load(&pool->state) & JOINED))
      return;
    pause_briefly(i);
  }
  if (!(atomic_fetch_or(&pool->state, CALLER_SLEEPS) & JOINED))
    return;
  pthread_mutex_lock(&pool->mutex);
  while (atomic_load(&pool->state) & JOINED)
    pthread_cond_wait(&pool->finished, &pool->mutex);
  pthread_mutex_unlock(&pool->mutex);
}

/// Starts all threads, or fewer if the system fails to create one. A child of fork() calls this
/// too: it has a copy of the pool, in a state that another thread may have left half changed, but none of its threads.
static void start_threads(attn_pool *pool) {
  pool->forks = atomic_load(&forks);
  pool->threads = 0;
  pthread_mutex_init(&pool->mutex, NULL);
  pthread_cond_init(&pool->opened, NULL);
  pthread_cond_init(&pool->finished, NULL);
  atomic_init(&pool->sleepers, 0);
  atomic_init(&pool->state, 0);
  // The workers block signals, which the threads of the application should handle. The exceptions
  // are SIGPROF, for profilers, and signals that a thread itself causes: if a signal of this kind is
  // blocked, it kills the process without calling a handler.
  static const int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGPROF};
  sigset_t blocked, before;
  sigfillset(&blocked);
  for (size_t i = 0; i < sizeof own / sizeof own[0]; ++i)
    sigdelset(&blocked, own[i]);
  pthread_sigmask(SIG_SETMASK, &blocked, &before);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  for (int64_t i = 1; i < pool->workers; ++i) {
    pool->members[i] = (worker){.pool = pool, .number = i};
    if (pool->num_cpus) {
      cpu_set_t set;
      CPU_ZERO(&set);
      CPU_SET((size_t)pool->cpus[i % pool->num_cpus], &set);
      pthread_attr_setaffinity_np(&attributes, sizeof set, &set);
    }
    if (pthread_create(&pool->members[i].thread, &attributes, work, &pool->members[i]))
      break;
    ++pool->threads;
  }
  pthread_attr_destroy(&attributes);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/// Makes the calling thread the owner of the pool, unless a thread of this process already is its owner. An owner in
/// the parent process at the time of a fork does not count.
static bool acquire(attn_pool *pool) {
  long long self = atomic_load(&forks) + 1, owner = atomic_load(&pool->owner);
  if (owner == self || !atomic_compare_exchange_strong(&pool->owner, &owner, self))
    return false;
  if (pool->forks != self - 1)
    start_threads(pool);
  return true;
}

void attnrt_serial_for(void *pool, attn_task_fn task, void *context, int64_t count) {
  (void)pool;
  for (int64_t i = 0; i < count; ++i)
    task(context, i, 0);
}

void attn_pool_parallel_for(void *argument, attn_task_fn task, void *context, int64_t count) {
  attn_pool *pool = argument;
  if (count < 2 || pool->workers < 2 || !acquire(pool)) {
    attnrt_serial_for(NULL, task, context, count);
    return;
  }
  pool->task = task;
  pool->context = context;
  deal_indices(pool, count);
  uint64_t last_loop = atomic_load(&pool->state) >> LOOP_SHIFT;
  atomic_store(&pool->state, (last_loop + 1) << LOOP_SHIFT | OPEN);
  wake_sleepers(pool);
  take_indices(pool, 0);
  atomic_fetch_and(&pool->state, ~OPEN);
  await_workers(pool);
  atomic_store(&pool->owner, 0);
}

int64_t attn_pool_workers(const attn_pool *pool) { return pool->workers; }

static size_t pool_bytes(int64_t workers, int64_t cpus) {
  return sizeof(attn_pool) + (size_t)workers * sizeof(worker) + (size_t)cpus * sizeof(int32_t);
}

/// Fails if this process may not use one of the CPUs.
static attn_status check_cpus(const int32_t *cpus, int64_t count) {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  sched_getaffinity(0, sizeof allowed, &allowed);
  for (int64_t i = 0; i < count; ++i)
    if (cpus[i] < 0 || cpus[i] >= CPU_SETSIZE || !CPU_ISSET((size_t)cpus[i], &allowed))
      return attnrt_fail(ATTN_ERROR_USAGE,
                         "attn_pool_create: expected CPUs that this process may use, got %" PRId32,
                         cpus[i]);
  return ATTN_OK;
}

static attn_status check_options(const attn_pool_options *options) {
  if (options->workers < 0 || options->workers > MAX_WORKERS)
    return attnrt_fail(ATTN_ERROR_USAGE,
                       "attn_pool_create: expected workers in [0, %d], got %" PRId64, MAX_WORKERS,
                       options->workers);
  if (options->spin_us < -1 || options->spin_us > INT32_MAX / SPINS_PER_US)
    return attnrt_fail(ATTN_ERROR_USAGE,
                       "attn_pool_create: expected spin_us in [-1, %d], got %" PRId64,
                       INT32_MAX / SPINS_PER_US, options->spin_us);
  if (options->num_cpus < 0 || !options->num_cpus != !options->cpus)
    return attnrt_fail(ATTN_ERROR_USAGE,
                       "attn_pool_create: expected cpus and their number, got %s and %" PRId64,
                       options->cpus ? "an array" : "null", options->num_cpus);
  return check_cpus(options->cpus, options->num_cpus);
}

attn_status attn_pool_create_with(const attn_pool_options *given, attn_pool **pool) {
  if (!pool)
    return attnrt_fail(ATTN_ERROR_USAGE,
                       "attn_pool_create: expected a place for the pool, got null");
  attn_pool_options options;
  attn_status status = attnrt_read("attn_pool_options", given, &options, sizeof options);
  if (!status)
    status = check_options(&options);
  if (status)
    return status;
  int64_t workers = options.workers;
  if (!workers && (workers = attnrt_cpu_count()) > MAX_WORKERS)
    workers = MAX_WORKERS;

  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, watch_forks);
  attn_pool *created = attnrt_allocate(pool_bytes(workers, options.num_cpus), _Alignof(attn_pool));
  if (fork_watch_error || !created) {
    attnrt_free(created, pool_bytes(workers, options.num_cpus), _Alignof(attn_pool));
    return attnrt_fail(ATTN_ERROR_RESOURCE, "attn_pool_create: expected memory, got none");
  }
  created->workers = workers;
  int spins = options.spin_us < 0 ? 0 : (int)options.spin_us * SPINS_PER_US;
  created->busy_spins = options.spin_us ? spins : BUSY_SPINS;
  created->idle_spins = options.spin_us ? spins : IDLE_SPINS;
  created->num_cpus = options.num_cpus;
  created->cpus = (int32_t *)&created->members[workers];
  for (int64_t i = 0; i < options.num_cpus; ++i)
    created->cpus[i] = options.cpus[i];
  atomic_init(&created->owner, 0);
  start_threads(created);
  if (created->threads < workers - 1) {
    status = attnrt_fail(ATTN_ERROR_RESOURCE,
                         "attn_pool_create: expected %" PRId64 " threads, got %" PRId64,
                         workers - 1, created->threads);
    attn_pool_release(created);
    return status;
  }
  *pool = created;
  return ATTN_OK;
}

attn_status attn_pool_create(int64_t workers, attn_pool **pool) {
  attn_pool_options options = {.size = sizeof options, .workers = workers};
  return attn_pool_create_with(&options, pool);
}

void attn_pool_release(attn_pool *pool) {
  if (!pool)
    return;
  // A child of fork that never used the pool has no threads to stop.
  if (pool->forks == atomic_load(&forks)) {
    atomic_fetch_or(&pool->state, STOP);
    wake_sleepers(pool);
    for (int64_t i = 1; i <= pool->threads; ++i)
      pthread_join(pool->members[i].thread, NULL);
    pthread_cond_destroy(&pool->finished);
    pthread_cond_destroy(&pool->opened);
    pthread_mutex_destroy(&pool->mutex);
  }
  attnrt_free(pool, pool_bytes(pool->workers, pool->num_cpus), _Alignof(attn_pool));
}
