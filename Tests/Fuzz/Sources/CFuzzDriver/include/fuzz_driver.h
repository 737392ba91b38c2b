#pragma once
#include <stddef.h>
#include <stdint.h>

/// libFuzzer's entry point; `callback` is called with each input.
int LLVMFuzzerRunDriver(int *argc, char ***argv, int (*callback)(const uint8_t *data, size_t size));
