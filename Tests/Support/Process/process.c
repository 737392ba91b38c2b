#include "palbe_process.h"

#include <malloc.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static _Atomic int64_t shown = -1;

void palbe_wall_clock_set(int64_t microseconds) { atomic_store(&shown, microseconds); }

void palbe_wall_clock_release(void) { atomic_store(&shown, -1); }

// In place of the C library's, for every library that this program loads.
int gettimeofday(struct timeval *restrict time, void *restrict zone) {
  (void)zone;
  int64_t microseconds = atomic_load(&shown);
  if (microseconds < 0) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    microseconds = (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
  }
  time->tv_sec = microseconds / 1000000;
  time->tv_usec = microseconds % 1000000;
  return 0;
}

int64_t palbe_live_bytes(void) {
  struct mallinfo2 info = mallinfo2();
  return (int64_t)(info.uordblks + info.hblkhd);
}

void palbe_use_one_arena(void) { mallopt(M_ARENA_MAX, 1); }

void palbe_release_free_memory(void) { malloc_trim(0); }

int64_t palbe_resident_bytes(void) {
  long pages = 0, resident = 0;
  FILE *file = fopen("/proc/self/statm", "r");
  if (file == NULL) return 0;
  if (fscanf(file, "%ld %ld", &pages, &resident) != 2) resident = 0;
  fclose(file);
  return (int64_t)resident * sysconf(_SC_PAGESIZE);
}
