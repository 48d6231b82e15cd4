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

/// An ISA level: the features that it adds to the level `base`, as bits of CPUID registers, and the register state that
/// the operating system must save for them (XCR0). Levels form a tree: two levels may extend the same one.
typedef struct level {
  const char *name, *base;
  uint32_t leaf1_ecx, leaf7_ebx, leaf7_1_eax, extended_ecx, xcr0;
} level;

#define BIT(n) (1u << (n))

/// In order of preference, the best one last; each after its base.
static const level levels[] = {
    {.name = "x86-64"},
    {.name = "x86-64-v2",
     .base = "x86-64",
     // SSE3, SSSE3, CMPXCHG16B, SSE4.1, SSE4.2, POPCNT
     .leaf1_ecx = BIT(0) | BIT(9) | BIT(13) | BIT(19) | BIT(20) | BIT(23),
     // LAHF
     .extended_ecx = BIT(0)},
    {.name = "x86-64-v3",
     .base = "x86-64-v2",
     // FMA, MOVBE, OSXSAVE, AVX, F16C
     .leaf1_ecx = BIT(12) | BIT(22) | BIT(27) | BIT(28) | BIT(29),
     // BMI1, AVX2, BMI2
     .leaf7_ebx = BIT(3) | BIT(5) | BIT(8),
     // LZCNT
     .extended_ecx = BIT(5),
     // SSE and AVX registers
     .xcr0 = BIT(1) | BIT(2)},
    {.name = "x86-64-v4",
     .base = "x86-64-v3",
     // AVX512: F, DQ, CD, BW, VL
     .leaf7_ebx = BIT(16) | BIT(17) | BIT(28) | BIT(30) | BIT(31),
     // mask registers, upper halves of ZMM0-15, ZMM16-31
     .xcr0 = BIT(5) | BIT(6) | BIT(7)},
    {.name = "x86-64-v4-bf16",
     .base = "x86-64-v4",
     // AVX512_BF16
     .leaf7_1_eax = BIT(5)},
};
enum { NUM_LEVELS = sizeof levels / sizeof *levels };

/// The features of this CPU, in the same registers.
static level detect(void) {
  level cpu = {0};
  uint32_t a, b, c, d;
  if (__get_cpuid(1, &a, &b, &c, &d))
    cpu.leaf1_ecx = c;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d)) {
    cpu.leaf7_ebx = b;
    if (a >= 1 && __get_cpuid_count(7, 1, &a, &b, &c, &d))
      cpu.leaf7_1_eax = a;
  }
  if (__get_cpuid(0x80000001, &a, &b, &c, &d))
    cpu.extended_ecx = c;
  if (cpu.leaf1_ecx & BIT(27)) // OSXSAVE: xgetbv exists
    __asm__("xgetbv" : "=a"(cpu.xcr0), "=d"(d) : "c"(0));
  return cpu;
}

static bool has(const level *cpu, const char *name) {
  if (!name)
    return true;
  for (size_t i = 0; i < NUM_LEVELS; ++i) {
    const level *l = &levels[i];
    if (!strcmp(l->name, name))
      return !((l->leaf1_ecx & ~cpu->leaf1_ecx) | (l->leaf7_ebx & ~cpu->leaf7_ebx) |
               (l->leaf7_1_eax & ~cpu->leaf7_1_eax) | (l->extended_ecx & ~cpu->extended_ecx) |
               (l->xcr0 & ~cpu->xcr0)) &&
             has(cpu, l->base);
  }
  return false;
}

bool attnrt_cpu_supports(const char *name) {
  level cpu = detect();
  return has(&cpu, name);
}

const char *attnrt_cpu_level(void) {
  level cpu = detect();
  size_t best = NUM_LEVELS - 1;
  while (!has(&cpu, levels[best].name))
    --best; // every CPU of this architecture has the first level
  return levels[best].name;
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
