/* SPDX-License-Identifier: Apache-2.0 */
/* The first bytes of a link between nodes: each side proves that it knows the cluster secret before
 * either reads anything else. Pure: random numbers are handed in.
 *
 *   accepting side                              connecting side
 *     magic, version, nonce A ───────────────────▶
 *     ◀──────────────── magic, version, nonce B, HMAC(secret, "<service> connect", A B)
 *     magic, version, HMAC(secret, "<service> accept", A B) ─▶
 *
 * The connecting side proves itself first, so that a stranger who knocks learns a random number
 * only. */
#ifndef TG_COMMON_NET_RPC_HELLO_H
#define TG_COMMON_NET_RPC_HELLO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/buf.h"
#include "common/net/auth.h"

enum {
    RPC_HELLO_PREFIX_BYTES = 8,
    RPC_HELLO_MESSAGE_BYTES_MAX = RPC_HELLO_PREFIX_BYTES + AUTH_NONCE_BYTES + AUTH_PROOF_BYTES,
    RPC_HELLO_MS_MAX = 5000 /* for all of it */
};

struct rpc_hello {
    const char *service; /* "rpc", "raft" */
    const char *secret;
    bool accepting;
    bool answered; /* connecting side: the first message came */
    bool done;
    unsigned char nonces[2 * AUTH_NONCE_BYTES]; /* A, then B */
    uint8_t in[RPC_HELLO_MESSAGE_BYTES_MAX];
    size_t in_len;
    const char *why; /* after an error */
};

/* service and secret must outlive the hello. nonce: fresh random bytes, see rpc_hello_nonce. What
 * is to be sent at once (the accepting side's first message) is appended to out. */
void rpc_hello_init(struct rpc_hello *hello, const char *service, const char *secret,
                    bool accepting, const unsigned char nonce[AUTH_NONCE_BYTES], struct buf *out);
/* Takes bytes from the peer; *used of them belonged to the hello. Appends what is to be sent to
 * out. 0: done, the rest of the bytes are the link's; TG_INCOMPLETE: more is needed; TG_CORRUPT,
 * TG_UNSUPPORTED (version), TG_DENIED (wrong proof): close, hello->why says why. */
int rpc_hello_feed(struct rpc_hello *hello, const uint8_t *bytes, size_t len, size_t *used,
                   struct buf *out);
/* Random bytes from the kernel. 0 or TG_IO. */
int rpc_hello_nonce(unsigned char nonce[AUTH_NONCE_BYTES]);

#endif
