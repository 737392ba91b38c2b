#pragma once
#include <stdint.h>

// Makes the wall clock of libraries in this process show `microseconds` since 1970 until the next call. For usrsctp,
// which reads it beside the time that it is given.
void palbe_wall_clock_set(int64_t microseconds);

// Shows the real time again.
void palbe_wall_clock_release(void);

// Bytes that are allocated now; 0 under a sanitizer.
int64_t palbe_live_bytes(void);
