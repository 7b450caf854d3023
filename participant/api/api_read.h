/* SPDX-License-Identifier: Apache-2.0 */
/* GET _scan, _get, _range, _changes on a participant: asks the leader which version is meant, reads
 * on a bounded pool of threads, streams text.
 *
 * Small answers go out whole; from READ_STREAM_BYTES on an answer is streamed. One that fails in
 * the middle is broken off, so that a client never takes a part for the whole. */
#ifndef TG_PARTICIPANT_API_API_READ_H
#define TG_PARTICIPANT_API_API_READ_H

#include "common/net/http_router.h"
#include "common/net/loop.h"
#include "participant/link/coordinator_client.h"
#include "participant/read/table_reader.h"

enum {
    READ_POINT_TIMEOUT_MS = 10000,
    READ_QUEUE_MAX = 4096 /* reads waiting for a thread; more are refused with 503 */
};

struct api_read;

/* threads: reads that run at once. */
int api_read_open(struct loop *loop, struct coordinator_client *coordinators,
                  const struct table_reader_context *context, unsigned threads,
                  struct api_read **api);
/* After the HTTP server closed, on any thread (the loop goes on where it is another one): waits for
 * the reads, which find their clients gone. Reads that still wait for a coordinator's answer keep
 * what they need until it comes, or the coordinators' client closes. */
void api_read_close(struct api_read *api);

/* Route handlers behind authentication. params: database, table. */
void api_read_scan(struct api_read *api, struct http_exchange *exchange,
                   const struct http_params *params);
void api_read_get(struct api_read *api, struct http_exchange *exchange,
                  const struct http_params *params);
void api_read_range(struct api_read *api, struct http_exchange *exchange,
                    const struct http_params *params);
void api_read_changes(struct api_read *api, struct http_exchange *exchange,
                      const struct http_params *params);

#endif
