#pragma once
#include <openssl/sha.h>

// The SHA states as plain values. A state that can be copied makes an HMAC keyed once reusable without a heap
// allocation; EVP_MD_CTX_copy_ex of OpenSSL 3.0 allocates at every copy. OpenSSL 3 marks these calls deprecated
// in favour of EVP, so they are wrapped here one by one and the deprecation of everything else stays visible.
#define PALBE_DIGEST(name, State, Init, Update, Final)                                         \
  static inline void palbe_##name##_init(State *_Nonnull state) { (void)Init(state); }         \
  static inline void palbe_##name##_update(State *_Nonnull state, const void *_Nonnull bytes,  \
                                           size_t count) {                                     \
    (void)Update(state, bytes, count);                                                         \
  }                                                                                            \
  static inline void palbe_##name##_final(State *_Nonnull state,                               \
                                          unsigned char *_Nonnull digest) {                    \
    (void)Final(digest, state);                                                                \
  }

#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wdeprecated-declarations"
PALBE_DIGEST(sha1, SHA_CTX, SHA1_Init, SHA1_Update, SHA1_Final)
PALBE_DIGEST(sha256, SHA256_CTX, SHA256_Init, SHA256_Update, SHA256_Final)
PALBE_DIGEST(sha384, SHA512_CTX, SHA384_Init, SHA384_Update, SHA384_Final)
PALBE_DIGEST(sha512, SHA512_CTX, SHA512_Init, SHA512_Update, SHA512_Final)
#pragma clang diagnostic pop
