#pragma once
#include <stddef.h>
#include <stdint.h>

// Pictures, read and written by Debian's libjpeg-turbo and libpng. Both report errors by longjmp, which must not cross
// Swift: everything that can fail is behind these functions, and a picture that cannot be read is a 0.

typedef struct {
  // Of `pixels`: 3 bytes each, red, green, blue, row by row without gaps. Owned; palbe_picture_free.
  uint32_t width, height;
  uint8_t *pixels;
  // Of the file.
  uint32_t full_width, full_height;
} palbe_picture;

// Reads a JPEG, made smaller while it is decoded as far as its longer side keeps `least_side` pixels.
// A file with more than `pixel_limit` pixels, or more than `scans_pixel_limit` when it has several scans (all of it is in
// memory then), is not read; nor is one that libjpeg warns of, such as a truncated one. 1 or 0.
int palbe_jpeg_read(const uint8_t *bytes, size_t count, uint32_t least_side, uint64_t pixel_limit,
                    uint64_t scans_pixel_limit, palbe_picture *picture);

// Reads a PNG of at most `pixel_limit` pixels; what shows through shows white. 1 or 0.
int palbe_png_read(const uint8_t *bytes, size_t count, uint64_t pixel_limit, palbe_picture *picture);

// Writes a JPEG without metadata into `out`; returns its length, 0 when there is not enough room.
size_t palbe_jpeg_write(const uint8_t *pixels, uint32_t width, uint32_t height, int quality, uint8_t *out,
                        size_t capacity);

void palbe_picture_free(palbe_picture *picture);
