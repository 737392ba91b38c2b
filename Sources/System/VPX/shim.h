#pragma once
#include <vpx/vp8cx.h>
#include <vpx/vp8dx.h>
#include <vpx/vpx_decoder.h>
#include <vpx/vpx_encoder.h>

// The init functions are macros that add the ABI version, vpx_codec_control is variadic and packets hold a
// union; Swift sees these instead.

static inline vpx_codec_err_t palbe_vp8_encoder_init(
    vpx_codec_ctx_t *context, const vpx_codec_enc_cfg_t *cfg) {
  return vpx_codec_enc_init(context, vpx_codec_vp8_cx(), cfg, 0);
}

static inline vpx_codec_err_t palbe_vp8_decoder_init(
    vpx_codec_ctx_t *context, const vpx_codec_dec_cfg_t *cfg) {
  return vpx_codec_dec_init(context, vpx_codec_vp8_dx(), cfg, 0);
}

static inline vpx_codec_err_t palbe_vpx_set(vpx_codec_ctx_t *context, int control, int value) {
  return vpx_codec_control_(context, control, value);
}

static inline vpx_codec_err_t palbe_vpx_get(vpx_codec_ctx_t *context, int control, int *value) {
  return vpx_codec_control_(context, control, value);
}

/// The next encoded frame, or NULL when there is none; other packets (statistics) are skipped.
static inline const void *palbe_vpx_next_frame(
    vpx_codec_ctx_t *context, vpx_codec_iter_t *iterator, size_t *byte_count, int *is_key_frame) {
  const vpx_codec_cx_pkt_t *packet;
  while ((packet = vpx_codec_get_cx_data(context, iterator)) != NULL) {
    if (packet->kind != VPX_CODEC_CX_FRAME_PKT) continue;
    *byte_count = packet->data.frame.sz;
    *is_key_frame = (packet->data.frame.flags & VPX_FRAME_IS_KEY) != 0;
    return packet->data.frame.buf;
  }
  return NULL;
}

/// Describes an I420 picture in the caller's memory; the encoder only reads it.
static inline void palbe_vpx_wrap_i420(
    vpx_image_t *image, unsigned int width, unsigned int height, const unsigned char *y,
    const unsigned char *u, const unsigned char *v) {
  *image = (vpx_image_t){0};
  image->fmt = VPX_IMG_FMT_I420;
  image->bit_depth = 8;
  image->bps = 12;
  image->w = image->d_w = width;
  image->h = image->d_h = height;
  image->x_chroma_shift = 1;
  image->y_chroma_shift = 1;
  image->planes[VPX_PLANE_Y] = (unsigned char *)y;
  image->planes[VPX_PLANE_U] = (unsigned char *)u;
  image->planes[VPX_PLANE_V] = (unsigned char *)v;
  image->stride[VPX_PLANE_Y] = (int)width;
  image->stride[VPX_PLANE_U] = image->stride[VPX_PLANE_V] = (int)((width + 1) / 2);
}

static inline const unsigned char *palbe_vpx_plane(const vpx_image_t *image, int plane) {
  return image->planes[plane];
}

static inline int palbe_vpx_stride(const vpx_image_t *image, int plane) { return image->stride[plane]; }
