/* SPDX-License-Identifier: Apache-2.0 */
/* The links between coordinators: raft's connections over TCP without delay, handed to raft only
 * after both sides have proven the cluster secret and the connecting side has said, under the same
 * proof, who it is and whom it wants.
 *
 *   connecting side                         accepting side
 *     ◀──── hello (common/net/rpc_hello, service "raft") ────▶
 *     identity, 120 bytes ────────────────────▶
 *     ◀───────────────────────── verdict, 8 bytes
 *     raft's messages ────────────────────────▶
 *
 *   identity, little-endian: magic "TGRI" u32, version 2 u32, from u64, to u64, the address of
 *   from's raft port (64 bytes, zeros behind it), and HMAC-SHA256(secret, "raft identity", nonces of
 *   the hello, from, to, address) in 32 bytes.
 *   verdict: magic "TGRV" u32, 0 or an enum tg_err as u32.
 *
 * A server that is not known here, but proves the secret, is taken for a newer member, which has
 * said where it is; one that was a member and is none any more is refused.
 *
 * raft uses each link in one direction, so two servers have two links. */
#ifndef TG_COORDINATOR_CONSENSUS_RAFT_TRANSPORT_H
#define TG_COORDINATOR_CONSENSUS_RAFT_TRANSPORT_H

#include <raft/uv.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/model/ids.h"
#include "common/net/loop.h"

enum {
    RAFT_TRANSPORT_CONNECT_MS_MAX = 2000, /* connect, hello and verdict together */
    RAFT_TRANSPORT_ACCEPT_MS_MAX = 5000,  /* hello and identity of a connection that came in */
    RAFT_TRANSPORT_SERVERS_MAX = 2 * COORDINATORS_MAX, /* named by the options and by the log */
    RAFT_TRANSPORT_PENDING_MAX = 64 /* connections that have not proven themselves yet */
};

struct raft_transport_server {
    uint64_t id;
    char address[ADDRESS_BYTES]; /* host:port */
};

struct raft_transport_options {
    const char *secret;         /* the cluster's; must outlive the transport */
    const char *listen_address; /* host:port; port 0 is for tests */
    const char *own_address;    /* told to peers that do not know this server; copied */
};

struct raft_transport;

/* Why connections were refused, since the start. */
struct raft_transport_stats {
    uint64_t accepted, connected;
    uint64_t refused_garbage, refused_proof, refused_identity, refused_late, refused_crowd;
    uint64_t connect_failed;
};

/* Listens at once (so that the port is known), but speaks only after raft started it. TG_IO,
 * TG_INVALID, TG_NOMEM. */
int raft_transport_open(struct loop *loop, const struct raft_transport_options *options,
                        struct raft_transport **out, struct tg_errmsg *msg);
/* All that are known, this one included; copied. Any other id below next_id was a member once. */
void raft_transport_set_servers(struct raft_transport *transport,
                                const struct raft_transport_server *servers, uint32_t count,
                                uint64_t next_id);
uint16_t raft_transport_port(const struct raft_transport *transport);
/* What raft_uv_init takes. */
struct raft_uv_transport *raft_transport_uv(struct raft_transport *transport);
const struct raft_transport_stats *raft_transport_stats(const struct raft_transport *transport);
/* Frees when the loop has let the handles go; closes them if raft did not. */
void raft_transport_close(struct raft_transport *transport);

#endif
