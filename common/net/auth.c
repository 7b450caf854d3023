/* SPDX-License-Identifier: Apache-2.0 */
/* Credentials of users (Basic) and proofs of nodes (HMAC). */
#include "common/net/auth.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <sodium.h>
#include <string.h>
#include <strings.h>

#include "common/base/check.h"

enum {
    AUTH_DECODED_BYTES = AUTH_USER_BYTES + AUTH_PASSWORD_BYTES,
    AUTH_PROVED_BYTES_MAX = 256 /* role, its zero and the nonces */
};

static int auth_no_basic(struct tg_errmsg *msg)
{
    return tg_fail(msg, TG_DENIED, "no valid Basic authorization");
}

int auth_parse_basic(const char *header, struct auth_basic *basic, struct tg_errmsg *msg)
{
    memset(basic, 0, sizeof *basic);
    if (header == NULL || strncasecmp(header, "Basic ", 6) != 0)
        return auth_no_basic(msg);
    const char *encoded = header + 6;
    encoded += strspn(encoded, " ");
    char text[AUTH_DECODED_BYTES];
    size_t len = 0;
    if (sodium_base642bin((unsigned char *)text, sizeof text - 1, encoded, strlen(encoded), NULL,
                          &len, NULL, sodium_base64_VARIANT_ORIGINAL) != 0 ||
        memchr(text, '\0', len) != NULL) {
        sodium_memzero(text, sizeof text);
        return auth_no_basic(msg);
    }
    text[len] = '\0';
    /* The first colon ends the user; a password may hold more of them. A user "name@cluster" is
     * "name". */
    char *colon = strchr(text, ':');
    size_t user_len = colon == NULL ? 0 : strcspn(text, "@:");
    size_t password_len = colon == NULL ? 0 : strlen(colon + 1);
    int err = 0;
    if (colon == NULL || user_len == 0 || user_len >= AUTH_USER_BYTES ||
        password_len >= AUTH_PASSWORD_BYTES) {
        err = auth_no_basic(msg);
    } else {
        memcpy(basic->user, text, user_len);
        memcpy(basic->password, colon + 1, password_len);
    }
    sodium_memzero(text, sizeof text);
    return err;
}

bool auth_equal(const void *a, size_t a_len, const void *b, size_t b_len)
{
    /* Lengths may differ visibly, contents may not. */
    return a_len == b_len && CRYPTO_memcmp(a, b, a_len) == 0;
}

void auth_prove(const char *secret, const char *role, const void *nonces, size_t len,
                unsigned char proof[AUTH_PROOF_BYTES])
{
    unsigned char text[AUTH_PROVED_BYTES_MAX];
    size_t role_len = strlen(role) + 1;
    TG_CHECK(role_len + len <= sizeof text);
    memcpy(text, role, role_len);
    memcpy(text + role_len, nonces, len);
    unsigned int proof_len = 0;
    TG_CHECK(HMAC(EVP_sha256(), secret, (int)strlen(secret), text, role_len + len, proof,
                  &proof_len) != NULL);
    TG_CHECK(proof_len == AUTH_PROOF_BYTES);
}
