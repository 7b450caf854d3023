/* SPDX-License-Identifier: Apache-2.0 */
/* A leading coordinator for unit tests. */
#include "tests/lib/coordinator_scene.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/check.h"

void coordinator_scene_open(struct coordinator_scene *scene)
{
    struct state_builder builder;

    state_builder_init(&builder);
    state_builder_members(&builder, 1, 3);
    TG_CHECK(state_builder_db(&builder, "d") == 0);
    TG_CHECK(state_builder_table(
                 &builder, &(struct state_builder_table){
                               .db = "d", .table = "t", .buckets = 2, .replication = 3}) == 0);
    coordinator_scene_open_with(scene, &builder);
}

void coordinator_scene_open_with(struct coordinator_scene *scene, struct state_builder *builder)
{
    fake_clock_init(&scene->clock);
    scene->fake = fake_consensus_open(&scene->clock.clock);
    scene->consensus = fake_consensus_consensus(scene->fake);
    state_close(fake_consensus_state(scene->fake));
    *fake_consensus_state(scene->fake) = builder->state;
    TG_CHECK(state_init(&builder->state) == 0);
    state_builder_close(builder);
}

void coordinator_scene_close(struct coordinator_scene *scene)
{
    fake_consensus_close(scene->fake);
}

const struct state *coordinator_scene_state(const struct coordinator_scene *scene)
{
    return fake_consensus_state(scene->fake);
}

const struct txn *coordinator_scene_txn(const struct coordinator_scene *scene, txn_id txn)
{
    return txn_table_find(&coordinator_scene_state(scene)->txns, txn);
}

const struct table *coordinator_scene_table(const struct coordinator_scene *scene, const char *name)
{
    return catalog_table(catalog_database(&coordinator_scene_state(scene)->catalog, "d"), name);
}

static uint64_t epoch_of(const struct coordinator_scene *scene, node_id node)
{
    return members_find(&coordinator_scene_state(scene)->members, node)->epoch;
}

void coordinator_scene_begin(const struct coordinator_scene *scene, node_id node, uint64_t request,
                             const char *label, bool two_phase, struct msg_txn_begin *message)
{
    memset(message, 0, sizeof *message);
    message->node = node;
    message->epoch = epoch_of(scene, node);
    message->request_id = request;
    strcpy(message->db, "d");
    strcpy(message->table, "t");
    snprintf(message->label, sizeof message->label, "%s", label);
    strcpy(message->user, "root");
    message->two_phase = two_phase;
}

void coordinator_scene_done(const struct coordinator_scene *scene, node_id node, uint64_t request,
                            txn_id txn, rowset_id rowset, enum load_finish finish, uint8_t sealed,
                            struct msg_load_done *message)
{
    const struct table *table = coordinator_scene_table(scene, "t");

    memset(message, 0, sizeof *message);
    message->node = node;
    message->epoch = epoch_of(scene, node);
    message->request_id = request;
    message->txn = txn;
    message->rowset = rowset;
    message->placement_epoch = table->placement_epoch;
    message->finish = finish;
    message->rows = 10 * table->bucket_count;
    message->bytes = 100;
    message->tablet_count = table->bucket_count;
    message->tablets = calloc(table->bucket_count, sizeof *message->tablets);
    TG_CHECK(message->tablets != NULL);
    for (uint32_t i = 0; i < table->bucket_count; i++) {
        struct load_report_tablet *report = &message->tablets[i];

        report->tablet = table->tablets[i]->id;
        report->sealed = sealed;
        report->rows = 10;
        report->bytes = 50;
        memset(&report->digest, (int)(rowset * 7 + i + 1), sizeof report->digest);
    }
}

txn_id coordinator_scene_load(struct coordinator_scene *scene, uint64_t request, const char *label,
                              enum load_finish finish)
{
    struct command command = {.type = COMMAND_TXN_BEGIN};
    struct msg_txn_begin begin;
    struct apply_result result;

    coordinator_scene_begin(scene, 1, request, label, finish == LOAD_FINISH_PRECOMMIT, &begin);
    command.begin.key = (struct request_key){begin.node, begin.epoch, begin.request_id};
    strcpy(command.begin.db, begin.db);
    strcpy(command.begin.table, begin.table);
    memcpy(command.begin.label, begin.label, sizeof begin.label);
    command.begin.two_phase = begin.two_phase;
    command.begin.timeout_ms = 600000;
    result = fake_consensus_do(scene->fake, &command);
    TG_CHECK(result.err == 0);
    command = (struct command){.type = COMMAND_LOAD_DONE};
    coordinator_scene_done(scene, 1, request, result.txn, result.rowset, finish, 7,
                           &command.load_done.message);
    result = fake_consensus_do(scene->fake, &command);
    TG_CHECK(result.err == 0);
    command_close(&command);
    return result.txn;
}
