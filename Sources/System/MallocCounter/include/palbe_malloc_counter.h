#pragma once
#include <stdint.h>

/// Heap allocations (malloc, calloc, realloc, aligned) made by this process's calling thread since it started.
uint64_t palbe_malloc_count(void);
