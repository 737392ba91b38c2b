#pragma once
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/srtp.h>
#include <openssl/ssl.h>
#include <stdint.h>
#include <sys/time.h>

// DTLS calls that are macros.

static inline int palbe_dtls_configure(SSL_CTX *context, const char *groups, long certificate_limit) {
  SSL_CTX_set_options(context, SSL_OP_NO_QUERY_MTU | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_TICKET |
                                   SSL_OP_NO_COMPRESSION | SSL_OP_CIPHER_SERVER_PREFERENCE);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_max_cert_list(context, certificate_limit);
  return SSL_CTX_set_min_proto_version(context, DTLS1_2_VERSION) == 1 &&
         SSL_CTX_set_max_proto_version(context, DTLS1_2_VERSION) == 1 &&
         SSL_CTX_set1_groups_list(context, groups) == 1;
}

static inline long palbe_dtls_set_mtu(SSL *ssl, long mtu) { return SSL_set_mtu(ssl, mtu); }

// Microseconds until OpenSSL's retransmission timer runs out, -1 while it does not run.
static inline int64_t palbe_dtls_timeout(SSL *ssl) {
  struct timeval left = {0, 0};
  if (DTLSv1_get_timeout(ssl, &left) != 1) return -1;
  return (int64_t)left.tv_sec * 1000000 + left.tv_usec;
}

static inline long palbe_dtls_handle_timeout(SSL *ssl) { return DTLSv1_handle_timeout(ssl); }

static inline long palbe_dtls_has_extended_master_secret(SSL *ssl) { return SSL_get_extms_support(ssl); }

static inline int palbe_err_reason(unsigned long code) { return ERR_GET_REASON(code); }

static inline void palbe_bio_set_retry_read(BIO *bio) { BIO_set_retry_read(bio); }
static inline void palbe_bio_clear_retry(BIO *bio) { BIO_clear_retry_flags(bio); }
