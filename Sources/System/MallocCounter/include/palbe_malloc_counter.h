#pragma once
#include <stdint.h>

/// Heap allocations (malloc, calloc, realloc, aligned) made by this process's calling thread since it started.
uint64_t palbe_malloc_count(void);

/// Gives memory that nobody uses back to the system, so that what is resident is in use.
void palbe_malloc_release(void);

/// The same for another thread of this process, by its kernel id; 0 for one that is not known.
uint64_t palbe_malloc_count_of(int thread);

/// Bytes that a thread has allocated less those that it has freed, the allocator's own eight a block included.
int64_t palbe_malloc_live_of(int thread);

/// The same for all threads together, those that have ended included: bytes that are allocated now. The C library's own
/// figure counts what its threads keep for reuse too, and so grows with what they happened to do.
int64_t palbe_malloc_live(void);
