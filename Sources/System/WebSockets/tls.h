#pragma once
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <stdint.h>
#include <time.h>

// A passphrase is never asked for.
static inline int palbe_tls_no_passphrase(char *buffer, int size, int writing, void *context) {
  (void)buffer, (void)size, (void)writing, (void)context;
  return 0;
}

static inline X509 *palbe_tls_read_leaf(BIO *input) {
  return input ? PEM_read_bio_X509_AUX(input, NULL, palbe_tls_no_passphrase, NULL) : NULL;
}

// Puts a certificate with its chain and a key, both PEM, into a TLS context for connections to come, or only checks
// them when `context` is NULL. 0 on success, 1 for a bad certificate, 2 for a bad key, 3 when they do not match.
static inline int palbe_tls_install(SSL_CTX *context, const uint8_t *certificate, int certificate_count,
                                    const uint8_t *key, int key_count) {
  int result = 1;
  BIO *input = BIO_new_mem_buf(certificate, certificate_count);
  BIO *key_input = BIO_new_mem_buf(key, key_count);
  X509 *leaf = palbe_tls_read_leaf(input);
  STACK_OF(X509) *chain = sk_X509_new_null();
  EVP_PKEY *private_key = NULL;
  if (leaf && chain && key_input) {
    X509 *next;
    while ((next = PEM_read_bio_X509(input, NULL, palbe_tls_no_passphrase, NULL)))
      if (!sk_X509_push(chain, next)) X509_free(next);
    // The end of the file is the one error there may be.
    unsigned long error = ERR_peek_last_error();
    if (ERR_GET_LIB(error) == ERR_LIB_PEM && ERR_GET_REASON(error) == PEM_R_NO_START_LINE) {
      result = 2;
      private_key = PEM_read_bio_PrivateKey(key_input, NULL, palbe_tls_no_passphrase, NULL);
    }
    if (private_key) result = X509_check_private_key(leaf, private_key) == 1 ? 0 : 3;
    if (result == 0 && context) {
      SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
      if (SSL_CTX_use_cert_and_key(context, leaf, private_key, chain, 1) != 1) result = 3;
    }
  }
  ERR_clear_error();
  EVP_PKEY_free(private_key);
  sk_X509_pop_free(chain, X509_free);
  X509_free(leaf);
  BIO_free(key_input);
  BIO_free(input);
  return result;
}

// When a PEM certificate ends, in seconds since 1970; 0 when that cannot be read.
static inline int64_t palbe_tls_expiry(const uint8_t *certificate, int count) {
  BIO *input = BIO_new_mem_buf(certificate, count);
  X509 *leaf = palbe_tls_read_leaf(input);
  struct tm time = {0};
  int64_t seconds = leaf && ASN1_TIME_to_tm(X509_get0_notAfter(leaf), &time) == 1 ? (int64_t)timegm(&time) : 0;
  ERR_clear_error();
  X509_free(leaf);
  BIO_free(input);
  return seconds;
}
