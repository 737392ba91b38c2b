#include "fuzz_driver.h"

// The runtime archive holds a main of its own that refers to this; ours runs instead, through LLVMFuzzerRunDriver.
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  (void)data;
  (void)size;
  return 0;
}
