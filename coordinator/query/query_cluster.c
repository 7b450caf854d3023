/* SPDX-License-Identifier: Apache-2.0 */
/* Participants, and the cluster as its leader sees it. */
#include <stdlib.h>
#include <string.h>

#include "coordinator/query/query_call.h"

static bool is_alive(const struct query_call *call, const struct member *member)
{
    return health_is_alive(call->context.health, member->node, query_now_ms(call));
}

int query_print_backends(const struct query_call *call, struct json_writer *out,
                         struct tg_errmsg *msg)
{
    const struct members *members = &query_state(call)->members;
    bool alive_only = slice_equal_str(slice_of(call->text.data, call->text.len), "alive");

    (void)msg;
    json_writer_object(out);
    json_writer_key(out, "backends");
    json_writer_array(out);
    for (uint32_t i = 0; i < members->count; i++) {
        const struct member *member = &members->list[i];
        const char *colon = strrchr(member->http, ':');
        bool alive = health_is_reachable(call->context.health, member->node, query_now_ms(call));

        /* No client should begin anything on one that is on its way out. */
        if (colon == NULL || member->draining || (alive_only && !alive))
            continue;
        json_writer_object(out);
        json_writer_key(out, "ip");
        json_writer_slice(out, slice_of(member->http, (size_t)(colon - member->http)));
        json_writer_key(out, "http_port");
        json_writer_uint(out, strtoull(colon + 1, NULL, 10));
        json_writer_key(out, "is_alive");
        json_writer_bool(out, alive);
        json_writer_object_end(out);
    }
    json_writer_array_end(out);
    json_writer_object_end(out);
    return 0;
}

int query_print_health(const struct query_call *call, struct json_writer *out,
                       struct tg_errmsg *msg)
{
    const struct members *members = &query_state(call)->members;
    uint32_t online = 0;

    (void)msg;
    for (uint32_t i = 0; i < members->count; i++)
        online += is_alive(call, &members->list[i]);
    json_writer_object(out);
    json_writer_key(out, "online_backend_num");
    json_writer_uint(out, online);
    json_writer_key(out, "total_backend_num");
    json_writer_uint(out, members->count);
    json_writer_object_end(out);
    return 0;
}

static void print_participant(const struct query_call *call, const struct member *member,
                              struct json_writer *out)
{
    const struct health_node *seen = health_find(call->context.health, member->node);

    json_writer_object(out);
    json_writer_key(out, "id");
    json_writer_uint(out, member->node);
    json_writer_key(out, "http");
    json_writer_str(out, member->http);
    json_writer_key(out, "rpc");
    json_writer_str(out, member->rpc);
    json_writer_key(out, "alive");
    json_writer_bool(out, is_alive(call, member));
    json_writer_key(out, "epoch");
    json_writer_uint(out, member->epoch);
    json_writer_key(out, "heard_ms_ago");
    if (seen != NULL)
        json_writer_uint(out, query_now_ms(call) - seen->heard_ms);
    else
        json_writer_null(out);
    json_writer_key(out, "live_loads");
    json_writer_uint(out, seen != NULL ? seen->live_count : 0);
    json_writer_key(out, "disk_free_bytes");
    json_writer_uint(out, seen != NULL ? seen->disk_free_bytes : 0);
    json_writer_key(out, "disk_total_bytes");
    json_writer_uint(out, seen != NULL ? seen->disk_total_bytes : 0);
    json_writer_object_end(out);
}

/* Replicas of the table that are behind, or catching. */
static uint64_t replicas_in(const struct table *table, uint8_t (*slots)(const struct tablet *))
{
    uint64_t count = 0;

    for (uint32_t i = 0; i < table->bucket_count; i++)
        count += (uint64_t)__builtin_popcount(slots(table->tablets[i]));
    return count;
}

static void print_table(const struct database *db, const struct table *table,
                        struct json_writer *out)
{
    json_writer_object(out);
    json_writer_key(out, "db");
    json_writer_str(out, db->name);
    json_writer_key(out, "table");
    json_writer_str(out, table->name);
    json_writer_key(out, "id");
    json_writer_uint(out, table->id);
    json_writer_key(out, "buckets");
    json_writer_uint(out, table->bucket_count);
    json_writer_key(out, "replication");
    json_writer_uint(out, table->replication);
    json_writer_key(out, "version");
    json_writer_uint(out, table->visible);
    json_writer_key(out, "committed");
    json_writer_uint(out, table->committed);
    json_writer_key(out, "rows");
    json_writer_uint(out, table->row_estimate);
    json_writer_key(out, "replicas_behind");
    json_writer_uint(out, replicas_in(table, tablet_behind));
    json_writer_key(out, "replicas_catching");
    json_writer_uint(out, replicas_in(table, tablet_catching));
    json_writer_object_end(out);
}

/* At most QUERY_ROWS_MAX tables; tables_left_off says how many more there are. */
static int print_tables(const struct query_call *call, struct json_writer *out,
                        struct tg_errmsg *msg)
{
    const struct catalog *catalog = &query_state(call)->catalog;
    uint64_t count = 0;
    int err = 0;

    json_writer_key(out, "tables");
    json_writer_array(out);
    for (const struct database *db = catalog->databases; db != NULL; db = db->hh.next)
        for (const struct table *table = db->tables; table != NULL && err == 0;
             table = table->hh_name.next) {
            if (count++ < QUERY_ROWS_MAX)
                print_table(db, table, out);
            err = query_check_size(out, msg);
        }
    json_writer_array_end(out);
    json_writer_key(out, "tables_left_off");
    json_writer_uint(out, count > QUERY_ROWS_MAX ? count - QUERY_ROWS_MAX : 0);
    return err;
}

int query_print_cluster(const struct query_call *call, struct json_writer *out,
                        struct tg_errmsg *msg)
{
    const struct consensus *consensus = call->context.consensus;
    const struct state *state = query_state(call);

    json_writer_object(out);
    json_writer_key(out, "cluster_uuid");
    json_writer_str(out, state->cluster_uuid);
    json_writer_key(out, "leader");
    json_writer_uint(out, call->context.self);
    json_writer_key(out, "term");
    json_writer_uint(out, consensus->ops->term(consensus));
    json_writer_key(out, "applied_index");
    json_writer_uint(out, consensus->ops->applied_index(consensus));
    json_writer_key(out, "closed_us");
    json_writer_uint(out, state->stamp_us);
    json_writer_key(out, "participants");
    json_writer_array(out);
    for (uint32_t i = 0; i < state->members.count; i++)
        print_participant(call, &state->members.list[i], out);
    json_writer_array_end(out);
    json_writer_key(out, "replicas_behind");
    json_writer_uint(out, state->catalog.behind_count);
    json_writer_key(out, "transactions");
    json_writer_object(out);
    json_writer_key(out, "open");
    json_writer_uint(out, state->txns.open.count);
    json_writer_key(out, "publishing");
    json_writer_uint(out, state->txns.publishing.count);
    json_writer_key(out, "finished");
    json_writer_uint(out, state->txns.finished.count);
    json_writer_object_end(out);
    int err = print_tables(call, out, msg);
    json_writer_object_end(out);
    return err;
}
