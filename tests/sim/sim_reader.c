/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and statements. */
#include "tests/sim/sim_reader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/check.h"
#include "common/proto/message.h"
#include "tests/sim/sim_call.h"
#include "tests/sim/sim_rpc.h"
#include "tests/sim/sim_serve.h"
#include "tests/sim/sim_setup.h"

enum { READ_US_MAX = 500 * 1000, TIME_SPREAD_US = 3 * 1000 * 1000 };

enum read_kind { READ_NEWEST, READ_OLD, READ_AS_OF, READ_FOLLOW, READ_KINDS };

/* Follows one table by name: where it stands. */
struct follower {
    table_id table;
    version_t cursor;
    int skew; /* planted */
    bool busy;
};

struct sim_readers {
    struct sim_net *net;
    struct sim_coordinator **coordinators;
    struct sim_participant *participants;
    struct sim_check *check;
    struct follower followers[SIM_TABLES];
    uint32_t under_way;
    bool strict; /* the last reads are */
};

struct read {
    struct sim_readers *readers;
    enum read_kind kind;
    unsigned number; /* of the table */
    struct sim_floors floors;
    uint64_t asked; /* version or time */
    int from;
    struct msg_read_point_reply point;
    uint32_t left; /* tablets */
    bool refused;
};

struct tablet_read {
    struct read *read;
    uint32_t bucket;
    unsigned attempt;
};

static void read_free(struct read *read)
{
    if (read->kind == READ_FOLLOW)
        read->readers->followers[read->number].busy = false;
    read->readers->under_way--;
    msg_read_point_reply_close(&read->point);
    free(read);
}

static void read_end(struct read *read)
{
    struct sim_readers *readers = read->readers;
    struct cluster_sim_result *result = readers->net->result;
    if (read->refused) {
        result->refused_reads++;
    } else {
        result->reads++;
        result->as_of += read->kind == READ_AS_OF;
        result->pulls += read->kind == READ_FOLLOW;
    }
    if (read->kind == READ_FOLLOW && !read->refused) {
        struct follower *follower = &readers->followers[read->number];
        unsigned mutant = readers->net->options->mutant;
        if (mutant == MUTANT_PULL_SKIPS && sim_world_chance(&readers->net->world, 200))
            follower->skew = 1;
        if (mutant == MUTANT_PULL_REPEATS && read->point.version > 0 &&
            sim_world_chance(&readers->net->world, 200))
            follower->skew = -1;
        if (read->point.after != follower->cursor)
            sim_net_fail(
                readers->net, "a follower of t%u stood at %lu and got what comes after %lu",
                read->number, (unsigned long)follower->cursor, (unsigned long)read->point.after);
        follower->cursor = read->point.version;
    }
    read_free(read);
}

static void tablet_ask(struct tablet_read *part);

static void on_tablet(void *data, int err, struct slice head, struct slice payload)
{
    struct tablet_read *part = data;
    struct read *read = part->read;
    const struct read_point_tablet *tablet = &read->point.tablets[part->bucket];
    (void)head;
    if (err != 0 && ++part->attempt < tablet->replica_count) {
        tablet_ask(part);
        return;
    }
    if (err == 0) {
        static const char *const names[READ_KINDS] = {"newest", "old", "as of", "changes"};
        struct version_rowset *rowsets = malloc(payload.len + 1);
        TG_CHECK(rowsets != NULL);
        if (payload.len > 0)
            memcpy(rowsets, payload.data, payload.len);
        sim_check_rowsets(read->readers->check, names[read->kind], read->point.table,
                          tablet->tablet, read->kind == READ_FOLLOW, read->point.after,
                          read->point.version, rowsets, (uint32_t)(payload.len / sizeof *rowsets));
        free(rowsets);
    } else {
        read->refused = true;
    }
    free(part);
    if (--read->left == 0)
        read_end(read);
}

static void tablet_ask(struct tablet_read *part)
{
    struct read *read = part->read;
    struct sim_readers *readers = read->readers;
    const struct read_point_tablet *tablet = &read->point.tablets[part->bucket];
    struct sim_read_question ask = {.tablet = tablet->tablet,
                                    .version = read->point.version,
                                    .need = tablet->need,
                                    .after = read->point.after,
                                    .changes = read->kind == READ_FOLLOW};
    struct buf head = BUF_INIT;
    struct buf none = BUF_INIT;
    buf_append(&head, &ask, sizeof ask);
    sim_rpc_call(readers->net, read->from,
                 &readers->participants[tablet->replicas[part->attempt] - 1], SIM_MSG_READ, &head,
                 &none, READ_US_MAX, on_tablet, part);
}

/* ---- the version ---- */

static void check_point(struct read *read)
{
    struct sim_readers *readers = read->readers;
    const struct msg_read_point_reply *point = &read->point;
    switch (read->kind) {
    case READ_NEWEST:
        sim_check_newest(readers->check, &read->floors, point->table, point->version);
        break;
    case READ_OLD:
        if (point->version != read->asked)
            sim_net_fail(readers->net, "version %lu was asked for and %lu given",
                         (unsigned long)read->asked, (unsigned long)point->version);
        break;
    case READ_AS_OF:
        sim_check_as_of(readers->check, point->table, read->asked, point->version);
        break;
    case READ_FOLLOW:
        sim_check_versions(readers->check, point);
        break;
    case READ_KINDS:
        TG_UNREACHABLE();
    }
}

static void on_point(void *data, int err, struct slice head)
{
    struct read *read = data;
    struct sim_readers *readers = read->readers;
    if (err != 0) {
        read->refused = true;
        read_end(read);
        return;
    }
    TG_CHECK(msg_read_point_reply_decode(head, &read->point) == 0);
    if (read->kind == READ_FOLLOW && readers->followers[read->number].table != read->point.table) {
        /* The table was made anew: from its beginning, with the next read. */
        readers->followers[read->number] =
            (struct follower){.table = read->point.table, .busy = true};
        read_free(read);
        return;
    }
    check_point(read);
    read->left = read->point.tablet_count;
    for (uint32_t i = 0; i < read->point.tablet_count; i++) {
        struct tablet_read *part = calloc(1, sizeof *part);
        TG_CHECK(part != NULL);
        part->read = read;
        part->bucket = i;
        tablet_ask(part);
    }
}

static bool fill_message(struct read *read, struct msg_read_point *message)
{
    struct sim_readers *readers = read->readers;
    struct sim_world *world = &readers->net->world;
    struct follower *follower = &readers->followers[read->number];
    memset(message, 0, sizeof *message);
    snprintf(message->db, sizeof message->db, "db");
    snprintf(message->table, sizeof message->table, "t%u", read->number);
    switch (read->kind) {
    case READ_OLD: {
        version_t visible = sim_check_visible(readers->check, follower->table);
        read->asked = visible == 0 ? 0 : sim_world_between(world, 0, visible);
        message->bound = (struct read_bound){READ_VERSION, read->asked};
        break;
    }
    case READ_AS_OF:
        read->asked = (uint64_t)SIM_CLOCK_EPOCH_S * 1000000 + world->now_us + TIME_SPREAD_US / 8 -
                      sim_world_below(world, TIME_SPREAD_US);
        message->bound = (struct read_bound){READ_TIME, read->asked};
        if (readers->net->options->mutant == MUTANT_AS_OF_NOW)
            message->bound.at = READ_LATEST;
        break;
    case READ_FOLLOW:
        if (follower->busy)
            return false;
        follower->busy = true;
        message->with_changes = true;
        message->after = (struct read_bound){
            READ_VERSION, (uint64_t)((int64_t)follower->cursor + follower->skew)};
        break;
    default:
        message->local = readers->net->options->mutant == MUTANT_READS_EARLY;
        break;
    }
    return true;
}

static void read_begin(struct sim_readers *readers, enum read_kind kind, unsigned number)
{
    struct sim_world *world = &readers->net->world;
    struct read *read = calloc(1, sizeof *read);
    struct msg_read_point message;
    struct buf head = BUF_INIT;
    TG_CHECK(read != NULL);
    read->readers = readers;
    read->kind = kind;
    read->number = number;
    read->from = sim_node((unsigned)sim_world_below(world, SIM_PARTICIPANTS));
    msg_read_point_reply_init(&read->point);
    if (!fill_message(read, &message)) {
        free(read);
        return;
    }
    readers->under_way++;
    sim_check_floors(readers->check, &read->floors);
    msg_read_point_encode(&message, &head);
    sim_call_start(readers->net, readers->coordinators, read->from, MSG_READ_POINT, &head, on_point,
                   read);
}

void sim_readers_read(struct sim_readers *readers)
{
    struct sim_world *world = &readers->net->world;
    read_begin(readers, (enum read_kind)sim_world_below(world, READ_KINDS),
               (unsigned)sim_world_below(world, SIM_TABLES));
}

/* ---- statements ---- */

struct statement {
    struct sim_readers *readers;
    bool create; /* follows a DROP */
};

static void on_statement(void *data, int err, struct slice head);

static void create_again(struct statement *statement)
{
    struct sim_readers *readers = statement->readers;
    struct buf text = BUF_INIT;
    statement->create = false;
    sim_setup_create_text(readers->net, SIM_TABLES - 1, &text);
    sim_setup_statement(readers->net, readers->coordinators, &text, on_statement, statement);
}

static void on_statement(void *data, int err, struct slice head)
{
    struct statement *statement = data;
    (void)head;
    sim_world_trace(&statement->readers->net->world, "statement ended err=%d", err);
    if (statement->create) {
        create_again(statement);
        return;
    }
    statement->readers->under_way--;
    free(statement);
}

void sim_readers_statement(struct sim_readers *readers)
{
    struct sim_world *world = &readers->net->world;
    struct statement *statement = calloc(1, sizeof *statement);
    struct buf text = BUF_INIT;
    TG_CHECK(statement != NULL);
    statement->readers = readers;
    statement->create = sim_world_chance(world, 400);
    if (statement->create)
        buf_printf(&text, "DROP TABLE IF EXISTS t%d", SIM_TABLES - 1);
    else
        buf_printf(&text, "TRUNCATE TABLE t%u", (unsigned)sim_world_below(world, SIM_TABLES));
    readers->under_way++;
    readers->net->result->statements++;
    sim_setup_statement(readers->net, readers->coordinators, &text, on_statement, statement);
}

/* ---- the end ---- */

struct last_read {
    struct sim_readers *readers;
    table_id table;
    tablet_id tablet;
    version_t version;
    node_id node;
};

static void on_last(void *data, int err, struct slice head, struct slice payload)
{
    struct last_read *last = data;
    struct sim_readers *readers = last->readers;
    char who[64];
    (void)head;
    snprintf(who, sizeof who, "in the end participant %u", last->node);
    if (err != 0 && readers->strict)
        sim_net_fail(readers->net, "%s does not show tablet %lu: %s", who,
                     (unsigned long)last->tablet, tg_err_name(err));
    struct version_rowset *rowsets = malloc(payload.len + 1);
    TG_CHECK(rowsets != NULL);
    if (payload.len > 0)
        memcpy(rowsets, payload.data, payload.len);
    if (err == 0)
        sim_check_rowsets(readers->check, who, last->table, last->tablet, true, 0, last->version,
                          rowsets, (uint32_t)(payload.len / sizeof *rowsets));
    free(rowsets);
    readers->under_way--;
    free(last);
}

static void finish_tablet(struct sim_readers *readers, const struct table *table,
                          const struct tablet *tablet)
{
    for (unsigned i = 0; i < tablet->replica_count; i++) {
        struct last_read *last = malloc(sizeof *last);
        struct sim_read_question ask = {.tablet = tablet->id,
                                        .version = table->visible,
                                        .need = tablet_need(tablet, table->visible),
                                        .changes = true};
        struct buf head = BUF_INIT;
        struct buf none = BUF_INIT;
        TG_CHECK(last != NULL);
        *last = (struct last_read){readers, table->id, tablet->id, table->visible,
                                   tablet->replicas[i].node};
        buf_append(&head, &ask, sizeof ask);
        readers->under_way++;
        sim_rpc_call(readers->net, SIM_CLIENT, &readers->participants[last->node - 1], SIM_MSG_READ,
                     &head, &none, 10 * READ_US_MAX, on_last, last);
    }
}

void sim_readers_finish(struct sim_readers *readers, bool strict)
{
    readers->strict = strict;
    const struct state *state =
        sim_coordinator_state(sim_coordinator_newest(readers->coordinators));
    for (const struct table *table = state->catalog.tables; table != NULL; table = table->hh.next)
        for (uint32_t bucket = 0; bucket < table->bucket_count; bucket++)
            finish_tablet(readers, table, table->tablets[bucket]);
    for (unsigned number = 0; strict && number < SIM_TABLES; number++) {
        read_begin(readers, READ_FOLLOW, number);
        read_begin(readers, READ_NEWEST, number);
    }
}

uint32_t sim_readers_under_way(const struct sim_readers *readers)
{
    return readers->under_way;
}

struct sim_readers *sim_readers_open(struct sim_net *net, struct sim_coordinator **coordinators,
                                     struct sim_participant *participants, struct sim_check *check)
{
    struct sim_readers *readers = calloc(1, sizeof *readers);
    TG_CHECK(readers != NULL);
    readers->net = net;
    readers->coordinators = coordinators;
    readers->participants = participants;
    readers->check = check;
    return readers;
}

void sim_readers_close(struct sim_readers *readers)
{
    free(readers);
}
