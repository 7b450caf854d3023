/* SPDX-License-Identifier: Apache-2.0 */
/* Reads over HTTP without a cluster: two participants with one small table (read_node.h), the HTTP
 * routes of reads on the first, and a coordinator that answers read points from the table. */
#ifndef TG_TESTS_LIB_READ_API_H
#define TG_TESTS_LIB_READ_API_H

#include "participant/api/api_read.h"
#include "tests/lib/fake_coordinator.h"
#include "tests/lib/read_node.h"

enum { READ_API_HELD_MAX = 64 };

struct read_api {
    struct loop_thread thread;
    struct fake_coordinator coordinator;
    struct coordinator_client *client;
    struct read_node nodes[2];
    struct api_read *api;
    struct http_server *server;
    uint16_t port;
    atomic_bool server_closed;

    pthread_mutex_t lock; /* of what follows, which the loop looks at too */
    struct read_table table;
    int point_err; /* read points fail with it; 0: they do not */
    bool hold;     /* read points are not answered */
    struct rpc_request *held[READ_API_HELD_MAX];
    unsigned held_count;
    unsigned points; /* asked for */
};

/* Database "db", table "t". */
void read_api_open(struct read_api *api, bool unique, uint32_t tablets, unsigned threads);
void read_api_close(struct read_api *api);
/* Closes the HTTP server with that grace, and waits for it. */
void read_api_close_http(struct read_api *api, uint64_t grace_ms);
/* Whichever is left is closed by read_api_close. */
void read_api_close_api(struct read_api *api);
void read_api_close_client(struct read_api *api);
/* As read_table_load and _truncate, while reads run. */
void read_api_load(struct read_api *api, const struct made_row *rows, uint32_t count,
                   uint32_t block_rows);
void read_api_truncate(struct read_api *api);

#endif
