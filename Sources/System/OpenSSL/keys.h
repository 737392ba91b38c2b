#pragma once
#include <openssl/core_dispatch.h>
#include <openssl/evp.h>

// What EVP_PKEY_fromdata imports; the macros are expressions that Swift does not see.
static const int palbe_pkey_public_key = EVP_PKEY_PUBLIC_KEY;
static const int palbe_pkey_key_pair = EVP_PKEY_KEYPAIR;
