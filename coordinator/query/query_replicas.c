/* SPDX-License-Identifier: Apache-2.0 */
/* QUERY_REPLICAS: each tablet as the log has it, with its replicas. */
#include <stdio.h>
#include <string.h>

#include "coordinator/query/query_call.h"
#include "coordinator/query/query_result.h"

static void member(struct json_writer *out, const char *name, uint64_t value)
{
    json_writer_key(out, name);
    json_writer_uint(out, value);
}

/* Nothing where the log does not know it: see struct tablet. */
static void print_digest(const struct tablet *tablet, struct json_writer *out)
{
    char text[2 * sizeof tablet->chain.bytes + 1];

    for (size_t i = 0; i < sizeof tablet->chain.bytes; i++)
        snprintf(text + 2 * i, 3, "%02x", tablet->chain.bytes[i]);
    json_writer_key(out, "digest");
    if (tablet->chain_known)
        json_writer_str(out, text);
    else
        json_writer_null(out);
}

static void print_tablet(const struct table *table, const struct tablet *tablet,
                         struct json_writer *out)
{
    json_writer_object(out);
    member(out, "tablet", tablet->id);
    json_writer_key(out, "table");
    json_writer_str(out, table->name);
    member(out, "bucket", tablet->bucket);
    member(out, "version", tablet_need(tablet, UINT64_MAX));
    print_digest(tablet, out);
    json_writer_key(out, "replicas");
    json_writer_array(out);
    for (unsigned i = 0; i < tablet->replica_count; i++) {
        const struct replica *replica = &tablet->replicas[i];

        if (replica->node == 0) /* a free slot */
            continue;
        json_writer_object(out);
        member(out, "participant", replica->node);
        json_writer_key(out, "standing");
        json_writer_str(out, replica->catching ? "catching" : replica->behind ? "behind" : "good");
        member(out, "lacks_from", replica->behind_version);
        json_writer_object_end(out);
    }
    json_writer_array_end(out);
    json_writer_object_end(out);
}

int query_print_replicas(const struct query_call *call, struct json_writer *out,
                         struct tg_errmsg *msg)
{
    const struct catalog *catalog = &query_state(call)->catalog;
    uint64_t count = 0;
    int err = 0;

    json_writer_object(out);
    json_writer_key(out, "tablets");
    json_writer_array(out);
    for (const struct database *db = catalog->databases; db != NULL; db = db->hh.next) {
        if (call->db[0] != '\0' && strcmp(call->db, db->name) != 0)
            continue;
        for (const struct table *table = db->tables; table != NULL && err == 0;
             table = table->hh_name.next) {
            bool wanted = call->table[0] == '\0' || strcmp(call->table, table->name) == 0;

            for (uint32_t i = 0; wanted && i < table->bucket_count; i++)
                if (count++ < QUERY_ROWS_MAX)
                    print_tablet(table, table->tablets[i], out);
            err = query_check_size(out, msg);
        }
    }
    json_writer_array_end(out);
    member(out, "tablets_left_off", count > QUERY_ROWS_MAX ? count - QUERY_ROWS_MAX : 0);
    json_writer_object_end(out);
    return err;
}
