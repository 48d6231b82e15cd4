//===- cpu.c - the ISA level and the number of CPUs of this process -------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#define _GNU_SOURCE // CPU_COUNT

#include "internal.h"

#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#if defined __x86_64__

#include <cpuid.h>

/// The features that an ISA level adds to the level before it, as bits of CPUID registers, and the
/// register state that the operating system must save for them (XCR0).
typedef struct level {
  const char *name;
  uint32_t leaf1_ecx, leaf7_ebx, leaf7_1_eax, extended_ecx, xcr0;
} level;

#define BIT(n) (1u << (n))

static const level levels[] = {
    {.name = "x86-64"},
    {.name = "x86-64-v2",
     // SSE3, SSSE3, CMPXCHG16B, SSE4.1, SSE4.2, POPCNT
     .leaf1_ecx = BIT(0) | BIT(9) | BIT(13) | BIT(19) | BIT(20) | BIT(23),
     // LAHF
     .extended_ecx = BIT(0)},
    {.name = "x86-64-v3",
     // FMA, MOVBE, OSXSAVE, AVX, F16C
     .leaf1_ecx = BIT(12) | BIT(22) | BIT(27) | BIT(28) | BIT(29),
     // BMI1, AVX2, BMI2
     .leaf7_ebx = BIT(3) | BIT(5) | BIT(8),
     // LZCNT
     .extended_ecx = BIT(5),
     // SSE and AVX registers
     .xcr0 = BIT(1) | BIT(2)},
    {.name = "x86-64-v4",
     // AVX512: F, DQ, CD, BW, VL
     .leaf7_ebx = BIT(16) | BIT(17) | BIT(28) | BIT(30) | BIT(31),
     // mask registers, upper halves of ZMM0-15, ZMM16-31
     .xcr0 = BIT(5) | BIT(6) | BIT(7)},
    // AVX512_BF16
    {.name = "x86-64-v4-bf16", .leaf7_1_eax = BIT(5)},
};

/// The last level that this CPU supports.
static const level *best_level(void) {
  uint32_t a, b, c, d, leaf1_ecx = 0, leaf7_ebx = 0, leaf7_1_eax = 0, extended_ecx = 0, xcr0 = 0;
  if (__get_cpuid(1, &a, &b, &c, &d))
    leaf1_ecx = c;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d)) {
    leaf7_ebx = b;
    if (a >= 1 && __get_cpuid_count(7, 1, &a, &b, &c, &d))
      leaf7_1_eax = a;
  }
  if (__get_cpuid(0x80000001, &a, &b, &c, &d))
    extended_ecx = c;
  if (leaf1_ecx & BIT(27)) // OSXSAVE: xgetbv exists
    __asm__("xgetbv" : "=a"(xcr0), "=d"(d) : "c"(0));

  const level *best = levels;
  for (size_t i = 0; i < sizeof levels / sizeof *levels; ++i) {
    const level *l = &levels[i];
    uint32_t missing = (l->leaf1_ecx & ~leaf1_ecx) | (l->leaf7_ebx & ~leaf7_ebx) |
                       (l->leaf7_1_eax & ~leaf7_1_eax) | (l->extended_ecx & ~extended_ecx) |
                       (l->xcr0 & ~xcr0);
    if (missing)
      break;
    best = l;
  }
  return best;
}

const char *attnrt_cpu_level(void) { return best_level()->name; }

bool attnrt_cpu_supports(const char *name) {
  for (const level *l = levels, *best = best_level(); l <= best; ++l)
    if (!strcmp(l->name, name))
      return true;
  return false;
}

#elif defined __aarch64__

const char *attnrt_cpu_level(void) { return "aarch64"; }

bool attnrt_cpu_supports(const char *name) { return !strcmp(name, "aarch64"); }

#else
#error "expected x86-64 or aarch64: name the levels of this architecture here"
#endif

/// The number of CPUs, rounded up, whose time the control groups of this process grant it (cgroup
/// version 2). INT64_MAX means unlimited.
static int64_t quota(void) {
  static const char root[] = "/sys/fs/cgroup";
  char group[PATH_MAX - 64], path[PATH_MAX];
  FILE *file = fopen("/proc/self/cgroup", "re");
  if (!file)
    return INT64_MAX;
  // The file has no line that starts with 0 if the process is only in groups of version 1.
  int found = fscanf(file, "0::%4031[^\n]", group);
  fclose(file);
  if (found != 1)
    return INT64_MAX;

  int64_t cpus = INT64_MAX;
  // The limits of the group and of all its parents apply. In a container the path may be a path of
  // the host, which does not exist in the container: then only the limit of the root is found.
  for (char *end = group + strlen(group); end; end = strrchr(group, '/')) {
    *end = '\0';
    snprintf(path, sizeof path, "%s%s/cpu.max", root, group);
    file = fopen(path, "re");
    if (!file)
      continue;
    long long time, period;
    if (fscanf(file, "%lld %lld", &time, &period) == 2 && period > 0) {
      int64_t limit = (time + period - 1) / period;
      if (limit < cpus)
        cpus = limit;
    }
    fclose(file);
  }
  return cpus;
}

int64_t attnrt_cpu_count(void) {
  cpu_set_t set;
  // sched_getaffinity fails if the machine has more CPUs than the set has room for.
  bool known = sched_getaffinity(0, sizeof set, &set) == 0;
  int64_t cpus = known ? CPU_COUNT(&set) : sysconf(_SC_NPROCESSORS_ONLN);
  int64_t limit = quota();
  return cpus < limit ? cpus : limit;
}
