/* SPDX-License-Identifier: Apache-2.0 */
/* Credentials of users (Basic) and proofs of nodes (HMAC). */
#ifndef TG_COMMON_NET_AUTH_H
#define TG_COMMON_NET_AUTH_H

#include <stdbool.h>
#include <stddef.h>

#include "common/base/err.h"

enum { AUTH_USER_BYTES = 128, AUTH_PASSWORD_BYTES = 256 };

struct auth_basic {
    char user[AUTH_USER_BYTES]; /* what follows '@' is dropped, as Doris does */
    char password[AUTH_PASSWORD_BYTES];
};

/* header: the Authorization value or NULL. TG_DENIED with "no valid Basic authorization" in msg. */
int auth_parse_basic(const char *header, struct auth_basic *basic, struct tg_errmsg *msg);
/* Equal without telling by time where they differ. */
bool auth_equal(const void *a, size_t a_len, const void *b, size_t b_len);

/* HMAC-SHA256 challenge used on RPC and raft links: both sides prove they know the cluster secret.
 */
enum { AUTH_NONCE_BYTES = 32, AUTH_PROOF_BYTES = 32 };
void auth_prove(const char *secret, const char *role, const void *nonces, size_t len,
                unsigned char proof[AUTH_PROOF_BYTES]);

#endif
