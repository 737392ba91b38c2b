#pragma once
#include <curl/curl.h>
#include <stdint.h>
#include <stdlib.h>

// A transfer's number and its headers, kept as long as the transfer.
struct palbe_curl_tag {
  uint64_t number;
  struct curl_slist *headers;
};

// An answer's body is of no interest, and longer than this a reason to hang up.
enum { palbe_curl_answer_limit = 65536 };

static inline size_t palbe_curl_discard(char *bytes, size_t size, size_t count, void *received) {
  (void)bytes;
  size_t *total = (size_t *)received;
  *total += size * count;
  return *total > palbe_curl_answer_limit ? 0 : size * count;
}

// Starts a POST on `multi`; options are variadic in C. The bytes are copied. NULL when there is no memory.
static inline CURL *palbe_curl_post(CURLM *multi, const char *url, const char *const *headers, int header_count,
                                    const void *body, long byte_count, long timeout_ms, const char *authorities,
                                    uint64_t number) {
  struct {
    struct palbe_curl_tag tag;
    size_t received;
  } *state = calloc(1, sizeof *state);
  CURL *easy = curl_easy_init();
  if (!state || !easy) goto failed;
  state->tag.number = number;
  for (int index = 0; index < header_count; index++) {
    struct curl_slist *longer = curl_slist_append(state->tag.headers, headers[index]);
    if (!longer) goto failed;
    state->tag.headers = longer;
  }
  curl_easy_setopt(easy, CURLOPT_PRIVATE, &state->tag);
  curl_easy_setopt(easy, CURLOPT_URL, url);
  curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(easy, CURLOPT_HTTPHEADER, state->tag.headers);
  curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, timeout_ms);
  curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, timeout_ms / 2);
  curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, palbe_curl_discard);
  curl_easy_setopt(easy, CURLOPT_WRITEDATA, &state->received);
  if (authorities) curl_easy_setopt(easy, CURLOPT_CAINFO, authorities);
  curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE, byte_count);
  if (curl_easy_setopt(easy, CURLOPT_COPYPOSTFIELDS, body) != CURLE_OK) goto failed;
  if (curl_multi_add_handle(multi, easy) != CURLM_OK) goto failed;
  return easy;
failed:
  if (state) curl_slist_free_all(state->tag.headers);
  free(state);
  if (easy) curl_easy_cleanup(easy);
  return NULL;
}

// Takes a transfer out and frees it.
static inline void palbe_curl_end(CURLM *multi, CURL *easy) {
  struct palbe_curl_tag *tag = NULL;
  curl_easy_getinfo(easy, CURLINFO_PRIVATE, &tag);
  curl_multi_remove_handle(multi, easy);
  curl_easy_cleanup(easy);
  if (tag) curl_slist_free_all(tag->headers);
  free(tag);
}

// A transfer that is done, or NULL: its number, the HTTP status (0 without one) and what went wrong, if anything.
static inline CURL *palbe_curl_done(CURLM *multi, uint64_t *number, long *status, const char **reason) {
  int waiting = 0;
  CURLMsg *message;
  while ((message = curl_multi_info_read(multi, &waiting))) {
    if (message->msg != CURLMSG_DONE) continue;
    struct palbe_curl_tag *tag = NULL;
    curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &tag);
    curl_easy_getinfo(message->easy_handle, CURLINFO_RESPONSE_CODE, status);
    *number = tag ? tag->number : 0;
    *reason = message->data.result == CURLE_OK ? NULL : curl_easy_strerror(message->data.result);
    return message->easy_handle;
  }
  return NULL;
}

// curl_easy_setopt and curl_easy_getinfo are variadic in C; these are their forms by type.
static inline CURLcode palbe_curl_set_number(CURL *easy, CURLoption option, long value) {
  return curl_easy_setopt(easy, option, value);
}
static inline CURLcode palbe_curl_set_size(CURL *easy, CURLoption option, int64_t value) {
  return curl_easy_setopt(easy, option, (curl_off_t)value);
}
static inline CURLcode palbe_curl_set_text(CURL *easy, CURLoption option, const char *value) {
  return curl_easy_setopt(easy, option, value);
}
static inline CURLcode palbe_curl_set_pointer(CURL *easy, CURLoption option, const void *value) {
  return curl_easy_setopt(easy, option, value);
}

// Bytes of a header line or of a body, in or out.
typedef size_t (*palbe_curl_bytes)(char *bytes, size_t size, size_t count, void *user);
static inline CURLcode palbe_curl_set_bytes(CURL *easy, CURLoption option, palbe_curl_bytes function) {
  return curl_easy_setopt(easy, option, function);
}
// The source goes back to an offset.
typedef int (*palbe_curl_seek)(void *user, curl_off_t offset, int origin);
static inline CURLcode palbe_curl_set_seek(CURL *easy, palbe_curl_seek function) {
  return curl_easy_setopt(easy, CURLOPT_SEEKFUNCTION, function);
}
typedef int (*palbe_curl_progress)(void *user, curl_off_t receive_total, curl_off_t received, curl_off_t send_total,
                                   curl_off_t sent);
static inline CURLcode palbe_curl_set_progress(CURL *easy, palbe_curl_progress function) {
  return curl_easy_setopt(easy, CURLOPT_XFERINFOFUNCTION, function);
}
static inline long palbe_curl_get_number(CURL *easy, CURLINFO info) {
  long value = 0;
  curl_easy_getinfo(easy, info, &value);
  return value;
}
static inline CURLMcode palbe_curl_multi_set_number(CURLM *multi, CURLMoption option, long value) {
  return curl_multi_setopt(multi, option, value);
}

// A transfer that is done, or NULL: how it ended.
static inline CURL *palbe_curl_next_done(CURLM *multi, CURLcode *result) {
  int waiting = 0;
  CURLMsg *message;
  while ((message = curl_multi_info_read(multi, &waiting))) {
    if (message->msg != CURLMSG_DONE) continue;
    *result = message->data.result;
    return message->easy_handle;
  }
  return NULL;
}
