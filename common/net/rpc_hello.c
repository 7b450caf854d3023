/* SPDX-License-Identifier: Apache-2.0 */
/* Mutual proof of the cluster secret at the start of a link. */
#include "common/net/rpc_hello.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "common/base/endian.h"
#include "common/base/err.h"

enum {
    RPC_HELLO_MAGIC = 0x48524754, /* "TGRH" */
    RPC_HELLO_VERSION = 1,
    RPC_HELLO_ROLE_BYTES = 64
};

static void rpc_hello_prefix(struct buf *out)
{
    buf_append_u32le(out, RPC_HELLO_MAGIC);
    buf_append_u32le(out, RPC_HELLO_VERSION);
}

static void rpc_hello_proof(const struct rpc_hello *hello, const char *side,
                            unsigned char proof[AUTH_PROOF_BYTES])
{
    char role[RPC_HELLO_ROLE_BYTES];
    snprintf(role, sizeof role, "%s %s", hello->service, side);
    auth_prove(hello->secret, role, hello->nonces, sizeof hello->nonces, proof);
}

void rpc_hello_init(struct rpc_hello *hello, const char *service, const char *secret,
                    bool accepting, const unsigned char nonce[AUTH_NONCE_BYTES], struct buf *out)
{
    memset(hello, 0, sizeof *hello);
    hello->service = service;
    hello->secret = secret;
    hello->accepting = accepting;
    memcpy(hello->nonces + (accepting ? 0 : AUTH_NONCE_BYTES), nonce, AUTH_NONCE_BYTES);
    if (accepting) {
        rpc_hello_prefix(out);
        buf_append(out, nonce, AUTH_NONCE_BYTES);
    }
}

static int rpc_hello_refuse(struct rpc_hello *hello, int err, const char *why)
{
    hello->why = why;
    return err;
}

static int rpc_hello_check_proof(struct rpc_hello *hello, const char *side, const uint8_t *proof)
{
    unsigned char expected[AUTH_PROOF_BYTES];
    rpc_hello_proof(hello, side, expected);
    if (!auth_equal(expected, sizeof expected, proof, AUTH_PROOF_BYTES))
        return rpc_hello_refuse(hello, TG_DENIED, "the peer does not know the cluster secret");
    return 0;
}

/* The accepting side has got the peer's nonce and proof. */
static int rpc_hello_accept(struct rpc_hello *hello, const uint8_t *body, struct buf *out)
{
    memcpy(hello->nonces + AUTH_NONCE_BYTES, body, AUTH_NONCE_BYTES);
    int err = rpc_hello_check_proof(hello, "connect", body + AUTH_NONCE_BYTES);
    if (err != 0)
        return err;
    unsigned char proof[AUTH_PROOF_BYTES];
    rpc_hello_proof(hello, "accept", proof);
    rpc_hello_prefix(out);
    buf_append(out, proof, sizeof proof);
    hello->done = true;
    return 0;
}

/* The connecting side: first a nonce comes and is answered, then the peer's proof, both of one
 * size. */
static int rpc_hello_connect(struct rpc_hello *hello, const uint8_t *body, struct buf *out)
{
    if (!hello->answered) {
        memcpy(hello->nonces, body, AUTH_NONCE_BYTES);
        unsigned char proof[AUTH_PROOF_BYTES];
        rpc_hello_proof(hello, "connect", proof);
        rpc_hello_prefix(out);
        buf_append(out, hello->nonces + AUTH_NONCE_BYTES, AUTH_NONCE_BYTES);
        buf_append(out, proof, sizeof proof);
        hello->answered = true;
        hello->in_len = 0;
        return 0;
    }
    int err = rpc_hello_check_proof(hello, "accept", body);
    hello->done = err == 0;
    return err;
}

int rpc_hello_feed(struct rpc_hello *hello, const uint8_t *bytes, size_t len, size_t *used,
                   struct buf *out)
{
    size_t want = RPC_HELLO_PREFIX_BYTES + AUTH_NONCE_BYTES;
    if (hello->accepting)
        want += AUTH_PROOF_BYTES;
    *used = 0;
    while (!hello->done) {
        size_t n = want - hello->in_len < len - *used ? want - hello->in_len : len - *used;
        if (n > 0)
            memcpy(hello->in + hello->in_len, bytes + *used, n);
        hello->in_len += n;
        *used += n;
        /* The prefix is looked at as soon as it is there: a stranger need not send the rest. */
        if (hello->in_len >= RPC_HELLO_PREFIX_BYTES) {
            if (load_u32le(hello->in) != RPC_HELLO_MAGIC)
                return rpc_hello_refuse(hello, TG_CORRUPT, "the peer does not speak this protocol");
            if (load_u32le(hello->in + 4) != RPC_HELLO_VERSION)
                return rpc_hello_refuse(hello, TG_UNSUPPORTED, "unknown version of the hello");
        }
        if (hello->in_len < want)
            return TG_INCOMPLETE;
        const uint8_t *body = hello->in + RPC_HELLO_PREFIX_BYTES;
        int err = hello->accepting ? rpc_hello_accept(hello, body, out)
                                   : rpc_hello_connect(hello, body, out);
        if (err != 0)
            return err;
    }
    return 0;
}

int rpc_hello_nonce(unsigned char nonce[AUTH_NONCE_BYTES])
{
    size_t have = 0;
    while (have < AUTH_NONCE_BYTES) {
        ssize_t n = getrandom(nonce + have, AUTH_NONCE_BYTES - have, 0);
        if (n < 0)
            return TG_IO;
        have += (size_t)n;
    }
    return 0;
}
