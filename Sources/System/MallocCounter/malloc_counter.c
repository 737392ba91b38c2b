// Counts heap allocations by interposing the allocator's entry points. Linked into tests and benchmarks only.
#define _GNU_SOURCE
#include "palbe_malloc_counter.h"

#include <malloc.h>
#include <stdatomic.h>
#include <stddef.h>
#include <unistd.h>

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *pointer, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);
extern void __libc_free(void *pointer);

// Under a sanitizer its own allocator must stay in place: nothing is counted then.
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define PALBE_UNDER_SANITIZER 1
#endif
#endif

static __thread uint64_t allocations __attribute__((tls_model("initial-exec")));
static __thread int64_t live __attribute__((tls_model("initial-exec")));

// Where other threads' counters are.
enum { thread_limit = 256 };
static struct {
  _Atomic int thread;
  uint64_t *allocations;
  int64_t *live;
} threads[thread_limit];
static _Atomic int thread_count;

uint64_t palbe_malloc_count(void) { return allocations; }

static int find(int thread) {
  int count = atomic_load(&thread_count);
  for (int index = (count < thread_limit ? count : thread_limit) - 1; index >= 0; index--)
    if (atomic_load(&threads[index].thread) == thread) return index;
  return -1;
}

uint64_t palbe_malloc_count_of(int thread) {
  int index = find(thread);
  return index < 0 ? 0 : *(volatile uint64_t *)threads[index].allocations;
}

int64_t palbe_malloc_live_of(int thread) {
  int index = find(thread);
  return index < 0 ? 0 : *(volatile int64_t *)threads[index].live;
}

void palbe_malloc_release(void) { malloc_trim(0); }

#ifndef PALBE_UNDER_SANITIZER

static void *counted(void *pointer) {
  if (allocations++ == 0) {
    int index = atomic_fetch_add(&thread_count, 1);
    if (index < thread_limit) {
      threads[index].allocations = &allocations;
      threads[index].live = &live;
      atomic_store(&threads[index].thread, gettid());
    }
  }
  if (pointer) live += (int64_t)malloc_usable_size(pointer) + 8;
  return pointer;
}

static void released(void *pointer) {
  if (pointer) live -= (int64_t)malloc_usable_size(pointer) + 8;
}

void *malloc(size_t size) { return counted(__libc_malloc(size)); }

void *calloc(size_t count, size_t size) { return counted(__libc_calloc(count, size)); }

void *realloc(void *pointer, size_t size) {
  released(pointer);
  return counted(__libc_realloc(pointer, size));
}

void *aligned_alloc(size_t alignment, size_t size) { return counted(__libc_memalign(alignment, size)); }

int posix_memalign(void **out, size_t alignment, size_t size) {
  void *pointer = counted(__libc_memalign(alignment, size));
  if (pointer == NULL) return 12;  // ENOMEM
  *out = pointer;
  return 0;
}

void free(void *pointer) {
  released(pointer);
  __libc_free(pointer);
}

#endif
