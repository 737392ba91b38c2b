#pragma once
#include <stdint.h>

/// Heap allocations (malloc, calloc, realloc, aligned) made by this process's calling thread since it started.
uint64_t palbe_malloc_count(void);

/// Gives memory that nobody uses back to the system, so that what is resident is in use.
void palbe_malloc_release(void);
