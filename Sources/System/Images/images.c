#include "palbe_images.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>
#include <jerror.h>
#include <png.h>

// A file may repeat a progressive scan without end.
enum { scan_limit = 64 };

struct failure {
  struct jpeg_error_mgr manager;
  jmp_buf out;
};

static void leave(j_common_ptr info) { longjmp(((struct failure *)info->err)->out, 1); }
static void say_nothing(j_common_ptr info) { (void)info; }
// What libjpeg warns of is damage: the rest would be grey.
static void refuse_damage(j_common_ptr info, int level) {
  if (level < 0) leave(info);
}

static void watch_scans(j_common_ptr info) {
  if (info->is_decompressor && ((j_decompress_ptr)info)->input_scan_number > scan_limit) leave(info);
}

static void handle_failures(struct failure *failure) {
  jpeg_std_error(&failure->manager);
  failure->manager.error_exit = leave;
  failure->manager.output_message = say_nothing;
  failure->manager.emit_message = refuse_damage;
}

int palbe_jpeg_read(const uint8_t *bytes, size_t count, uint32_t least_side, uint64_t pixel_limit,
                    uint64_t scans_pixel_limit, palbe_picture *picture) {
  memset(picture, 0, sizeof *picture);
  // Lives across the longjmp, so it is not in a register.
  uint8_t *volatile line = NULL;
  struct jpeg_decompress_struct info;
  struct jpeg_progress_mgr progress;
  struct failure failure;
  memset(&info, 0, sizeof info);
  memset(&progress, 0, sizeof progress);
  handle_failures(&failure);
  info.err = &failure.manager;
  if (setjmp(failure.out)) {
    jpeg_destroy_decompress(&info);
    free(line);
    palbe_picture_free(picture);
    return 0;
  }
  jpeg_create_decompress(&info);
  progress.progress_monitor = watch_scans;
  info.progress = &progress;
  jpeg_mem_src(&info, bytes, (unsigned long)count);
  if (jpeg_read_header(&info, TRUE) != JPEG_HEADER_OK) leave((j_common_ptr)&info);
  picture->full_width = info.image_width;
  picture->full_height = info.image_height;
  uint64_t pixels = (uint64_t)info.image_width * info.image_height;
  if (pixels == 0 || pixels > (jpeg_has_multiple_scans(&info) ? scans_pixel_limit : pixel_limit))
    leave((j_common_ptr)&info);
  uint32_t side = info.image_width > info.image_height ? info.image_width : info.image_height;
  info.scale_denom = 8;
  info.scale_num = 8;
  while (info.scale_num > 1 && (uint64_t)side * (info.scale_num / 2) / 8 >= least_side) info.scale_num /= 2;
  int is_cmyk = info.jpeg_color_space == JCS_CMYK || info.jpeg_color_space == JCS_YCCK;
  info.out_color_space = is_cmyk ? JCS_CMYK : JCS_RGB;
  info.dct_method = JDCT_ISLOW;
  jpeg_start_decompress(&info);
  picture->width = info.output_width;
  picture->height = info.output_height;
  size_t row = (size_t)info.output_width * 3;
  picture->pixels = malloc(row * info.output_height);
  if (is_cmyk) line = malloc((size_t)info.output_width * 4);
  if (!picture->pixels || (is_cmyk && !line)) leave((j_common_ptr)&info);
  while (info.output_scanline < info.output_height) {
    uint8_t *target = picture->pixels + row * info.output_scanline;
    JSAMPROW rows[1] = {is_cmyk ? line : target};
    if (jpeg_read_scanlines(&info, rows, 1) != 1) leave((j_common_ptr)&info);
    if (!is_cmyk) continue;
    for (uint32_t x = 0; x < info.output_width; x++) {
      const uint8_t *ink = line + (size_t)x * 4;
      for (int color = 0; color < 3; color++) {
        // Adobe's files hold what is left of the light.
        unsigned light = info.saw_Adobe_marker ? ink[color] : 255u - ink[color];
        unsigned black = info.saw_Adobe_marker ? ink[3] : 255u - ink[3];
        target[(size_t)x * 3 + (size_t)color] = (uint8_t)(light * black / 255);
      }
    }
  }
  jpeg_finish_decompress(&info);
  jpeg_destroy_decompress(&info);
  free(line);
  return 1;
}

int palbe_png_read(const uint8_t *bytes, size_t count, uint64_t pixel_limit, palbe_picture *picture) {
  memset(picture, 0, sizeof *picture);
  png_image image;
  memset(&image, 0, sizeof image);
  image.version = PNG_IMAGE_VERSION;
  if (!png_image_begin_read_from_memory(&image, bytes, count)) return 0;
  uint64_t pixels = (uint64_t)image.width * image.height;
  if (pixels == 0 || pixels > pixel_limit) {
    png_image_free(&image);
    return 0;
  }
  image.format = PNG_FORMAT_RGB;
  picture->pixels = malloc((size_t)pixels * 3);
  png_color white = {255, 255, 255};
  if (!picture->pixels || !png_image_finish_read(&image, &white, picture->pixels, 0, NULL) ||
      PNG_IMAGE_FAILED(image)) {
    png_image_free(&image);
    palbe_picture_free(picture);
    return 0;
  }
  picture->width = picture->full_width = image.width;
  picture->height = picture->full_height = image.height;
  png_image_free(&image);
  return 1;
}

static void ignore(j_compress_ptr info) { (void)info; }
static boolean no_room(j_compress_ptr info) {
  leave((j_common_ptr)info);
  return FALSE;
}

size_t palbe_jpeg_write(const uint8_t *pixels, uint32_t width, uint32_t height, int quality, uint8_t *out,
                        size_t capacity) {
  struct jpeg_compress_struct info;
  struct jpeg_destination_mgr destination;
  struct failure failure;
  memset(&info, 0, sizeof info);
  memset(&destination, 0, sizeof destination);
  handle_failures(&failure);
  info.err = &failure.manager;
  if (setjmp(failure.out)) {
    jpeg_destroy_compress(&info);
    return 0;
  }
  jpeg_create_compress(&info);
  destination.next_output_byte = out;
  destination.free_in_buffer = capacity;
  destination.init_destination = ignore;
  destination.empty_output_buffer = no_room;
  destination.term_destination = ignore;
  info.dest = &destination;
  info.image_width = width;
  info.image_height = height;
  info.input_components = 3;
  info.in_color_space = JCS_RGB;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, quality, TRUE);
  info.optimize_coding = TRUE;
  jpeg_start_compress(&info, TRUE);
  while (info.next_scanline < info.image_height) {
    JSAMPROW rows[1] = {(JSAMPROW)(pixels + (size_t)info.next_scanline * width * 3)};
    jpeg_write_scanlines(&info, rows, 1);
  }
  jpeg_finish_compress(&info);
  size_t length = capacity - destination.free_in_buffer;
  jpeg_destroy_compress(&info);
  return length;
}

void palbe_picture_free(palbe_picture *picture) {
  free(picture->pixels);
  picture->pixels = NULL;
}
