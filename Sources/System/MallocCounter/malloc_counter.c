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

// What each thread has done; it stays when the thread ends, so that the sum is right. Threads beyond share the last.
// A whole test run starts thousands; memory is taken only by those that there were.
enum { thread_limit = 1 << 16 };
struct account {
  _Atomic int thread;
  _Atomic uint64_t allocations;
  _Atomic int64_t live;
};
static struct account accounts[thread_limit + 1];
static _Atomic int thread_count;
static __thread struct account *mine __attribute__((tls_model("initial-exec")));

static uint64_t allocations_of(struct account *account) {
  return account ? atomic_load_explicit(&account->allocations, memory_order_relaxed) : 0;
}

static int64_t live_of(struct account *account) {
  return account ? atomic_load_explicit(&account->live, memory_order_relaxed) : 0;
}

static struct account *find(int thread) {
  int count = atomic_load(&thread_count);
  for (int index = (count < thread_limit ? count : thread_limit) - 1; index >= 0; index--)
    if (atomic_load(&accounts[index].thread) == thread) return &accounts[index];
  return NULL;
}

uint64_t palbe_malloc_count(void) { return allocations_of(mine); }

uint64_t palbe_malloc_count_of(int thread) { return allocations_of(find(thread)); }

int64_t palbe_malloc_live_of(int thread) { return live_of(find(thread)); }

int64_t palbe_malloc_live(void) {
  int64_t sum = 0;
  int count = atomic_load(&thread_count);
  for (int index = 0; index <= thread_limit && index < count; index++) sum += live_of(&accounts[index]);
  return sum;
}

void palbe_malloc_release(void) { malloc_trim(0); }

#ifndef PALBE_UNDER_SANITIZER

static void change(uint64_t allocations, int64_t live) {
  if (mine == NULL) {
    int index = atomic_fetch_add(&thread_count, 1);
    if (index > thread_limit) index = thread_limit;
    mine = &accounts[index];
    if (index < thread_limit) atomic_store(&mine->thread, gettid());
  }
  if (mine == &accounts[thread_limit]) {
    atomic_fetch_add(&mine->allocations, allocations);
    atomic_fetch_add(&mine->live, live);
    return;
  }
  // Nobody else writes here: no locked instruction is needed.
  atomic_store_explicit(&mine->allocations, allocations_of(mine) + allocations, memory_order_relaxed);
  atomic_store_explicit(&mine->live, live_of(mine) + live, memory_order_relaxed);
}

static int64_t size_of(void *pointer) { return (int64_t)malloc_usable_size(pointer) + 8; }

static void *counted(void *pointer) {
  change(1, pointer ? size_of(pointer) : 0);
  return pointer;
}

static void released(void *pointer) {
  if (pointer) change(0, -size_of(pointer));
}

void *malloc(size_t size) { return counted(__libc_malloc(size)); }

void *calloc(size_t count, size_t size) { return counted(__libc_calloc(count, size)); }

void *realloc(void *pointer, size_t size) {
  released(pointer);
  return counted(__libc_realloc(pointer, size));
}

void *memalign(size_t alignment, size_t size) { return counted(__libc_memalign(alignment, size)); }

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
