// Counts heap allocations by interposing the allocator's entry points. Linked into tests and benchmarks only.
#define _GNU_SOURCE
#include "palbe_malloc_counter.h"

#include <malloc.h>
#include <stddef.h>

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *pointer, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);

// Under a sanitizer its own allocator must stay in place: nothing is counted then.
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define PALBE_UNDER_SANITIZER 1
#endif
#endif

static __thread uint64_t allocations __attribute__((tls_model("initial-exec")));

uint64_t palbe_malloc_count(void) { return allocations; }

void palbe_malloc_release(void) { malloc_trim(0); }

#ifndef PALBE_UNDER_SANITIZER

void *malloc(size_t size) {
  allocations += 1;
  return __libc_malloc(size);
}

void *calloc(size_t count, size_t size) {
  allocations += 1;
  return __libc_calloc(count, size);
}

void *realloc(void *pointer, size_t size) {
  allocations += 1;
  return __libc_realloc(pointer, size);
}

void *aligned_alloc(size_t alignment, size_t size) {
  allocations += 1;
  return __libc_memalign(alignment, size);
}

int posix_memalign(void **out, size_t alignment, size_t size) {
  allocations += 1;
  void *pointer = __libc_memalign(alignment, size);
  if (pointer == NULL) return 12;  // ENOMEM
  *out = pointer;
  return 0;
}

#endif
