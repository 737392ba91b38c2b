#pragma once
#include <stdint.h>

// Makes the wall clock of libraries in this process show `microseconds` since 1970 until the next call. For usrsctp,
// which reads it beside the time that it is given.
void palbe_wall_clock_set(int64_t microseconds);

// Shows the real time again.
void palbe_wall_clock_release(void);

// Bytes that are allocated now; 0 under a sanitizer.
int64_t palbe_live_bytes(void);

// From now on all threads allocate from one arena, so that `palbe_live_bytes` sees everything; to be called first of all.
void palbe_use_one_arena(void);

// Gives memory that nobody uses back to the system.
void palbe_release_free_memory(void);

// Bytes of memory that the process occupies now; 0 when the system does not tell.
int64_t palbe_resident_bytes(void);
