/* SPDX-License-Identifier: Apache-2.0 */
/* Registration, heartbeats, tables. */
#include "tests/sim/sim_setup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/check.h"
#include "tests/sim/sim_call.h"

enum { HEARTBEAT_US = 300 * 1000, SETUP_US_MAX = 30 * 1000 * 1000, SETUP_STEP_US = 10 * 1000 };

void sim_setup_init(struct sim_setup *setup, struct sim_net *net,
                    struct sim_coordinator **coordinators, struct sim_participant *participants)
{
    memset(setup, 0, sizeof *setup);
    setup->net = net;
    setup->coordinators = coordinators;
    setup->participants = participants;
}

/* ---- heartbeats ---- */

struct sim_heartbeat {
    struct sim_setup *setup;
    unsigned participant, coordinator;
    uint64_t epoch;
    struct msg_heartbeat message;
    struct msg_heartbeat_reply reply;
};

static void sim_heartbeat_drop(void *data)
{
    struct sim_heartbeat *heartbeat = data;
    msg_heartbeat_close(&heartbeat->message);
    msg_heartbeat_reply_close(&heartbeat->reply);
    free(heartbeat);
}

static bool sim_heartbeat_is_cut(const struct sim_heartbeat *heartbeat)
{
    return heartbeat->setup->net->cut[heartbeat->coordinator][heartbeat->participant];
}

static void on_heartbeat_answer(void *data)
{
    struct sim_heartbeat *heartbeat = data;
    struct sim_participant *participant = &heartbeat->setup->participants[heartbeat->participant];
    if (participant->up && participant->epoch == heartbeat->epoch &&
        !sim_heartbeat_is_cut(heartbeat))
        sim_participant_heartbeat_answer(participant, &heartbeat->reply);
    sim_heartbeat_drop(heartbeat);
}

static void on_heartbeat(void *data)
{
    struct sim_heartbeat *heartbeat = data;
    struct sim_coordinator *coordinator = heartbeat->setup->coordinators[heartbeat->coordinator];
    if (sim_heartbeat_is_cut(heartbeat) || !sim_coordinator_is_up(coordinator) ||
        !sim_coordinator_heartbeat(coordinator, &heartbeat->message, &heartbeat->reply))
        sim_heartbeat_drop(heartbeat);
    else
        sim_net_send(heartbeat->setup->net, on_heartbeat_answer, heartbeat, sim_heartbeat_drop);
}

struct sim_pulse {
    struct sim_setup *setup;
    unsigned participant;
    uint64_t epoch;
};

static void on_pulse(void *data)
{
    struct sim_pulse *pulse = data;
    struct sim_setup *setup = pulse->setup;
    struct sim_participant *participant = &setup->participants[pulse->participant];
    if (!participant->up || participant->epoch != pulse->epoch) {
        free(pulse);
        return;
    }
    for (unsigned k = 0; k < SIM_COORDINATORS; k++) {
        struct sim_heartbeat *heartbeat = calloc(1, sizeof *heartbeat);
        TG_CHECK(heartbeat != NULL);
        heartbeat->setup = setup;
        heartbeat->participant = pulse->participant;
        heartbeat->coordinator = k;
        heartbeat->epoch = pulse->epoch;
        sim_participant_fill_heartbeat(participant, &heartbeat->message);
        sim_net_send(setup->net, on_heartbeat, heartbeat, sim_heartbeat_drop);
    }
    sim_world_after(&setup->net->world, HEARTBEAT_US, on_pulse, pulse, free);
}

/* ---- registration ---- */

struct sim_registration {
    struct sim_setup *setup;
    unsigned participant;
    uint64_t nonce;
};

static void on_registered(void *data, int err, struct slice head)
{
    struct sim_registration *registration = data;
    struct sim_setup *setup = registration->setup;
    struct sim_participant *participant = &setup->participants[registration->participant];
    unsigned i = registration->participant;
    bool current =
        participant->up && participant->new_nonce == registration->nonce && participant->epoch == 0;
    free(registration);
    if (!current)
        return;
    if (err == TG_FENCED)
        sim_net_fail(setup->net, "participant %u is fenced although there is only one", i + 1);
    if (err != 0) {
        sim_setup_register(setup, i);
        return;
    }
    struct msg_register_reply reply;
    TG_CHECK(msg_register_reply_decode(head, &reply) == 0);
    sim_participant_registered(participant, &reply);
    struct sim_pulse *pulse = malloc(sizeof *pulse);
    TG_CHECK(pulse != NULL);
    *pulse = (struct sim_pulse){setup, i, participant->epoch};
    sim_world_after(&setup->net->world, 1000, on_pulse, pulse, free);
}

static void on_register_again(void *data)
{
    struct sim_registration *registration = data;
    struct sim_setup *setup = registration->setup;
    const struct sim_participant *participant = &setup->participants[registration->participant];
    struct command command = {.type = COMMAND_MEMBER_REGISTER};
    if (!participant->up || participant->new_nonce != registration->nonce ||
        participant->epoch != 0) {
        free(registration);
        return;
    }
    sim_participant_fill_register(participant, &command.member.message);
    sim_call_start(setup->net, setup->coordinators, (int)registration->participant,
                   SIM_CALL_COMMAND, &command, on_registered, registration);
}

void sim_setup_register(struct sim_setup *setup, unsigned i)
{
    struct sim_registration *registration = malloc(sizeof *registration);
    TG_CHECK(registration != NULL);
    *registration = (struct sim_registration){setup, i, setup->participants[i].new_nonce};
    sim_world_after(&setup->net->world, 20 * 1000, on_register_again, registration, free);
}

/* ---- tables ---- */

static void on_ddl(void *data, int err, struct slice head)
{
    struct sim_setup *setup = data;
    (void)head;
    setup->done = true;
    setup->err = err;
}

static bool sim_setup_do(struct sim_setup *setup, const struct command *command)
{
    uint64_t until = setup->net->world.now_us + SETUP_US_MAX;
    while (setup->net->world.now_us < until) {
        setup->done = false;
        sim_call_start(setup->net, setup->coordinators, -1, SIM_CALL_COMMAND, command, on_ddl,
                       setup);
        while (!setup->done)
            sim_world_run(&setup->net->world, SETUP_STEP_US);
        if (setup->err == 0 || setup->err == TG_EXISTS)
            return true;
    }
    return false;
}

static bool sim_setup_table(struct sim_setup *setup, unsigned table)
{
    struct command command = {.type = COMMAND_CREATE_TABLE};
    struct command_create_table *create = &command.create_table;
    struct schema_column key = {.type = {.kind = TYPE_INT}, .nullable = true, .is_key = true};
    snprintf(create->db, sizeof create->db, "db");
    snprintf(create->table, sizeof create->table, "t%u", table);
    snprintf(key.name, sizeof key.name, "k");
    schema_init(&create->schema);
    TG_CHECK(schema_add_column(&create->schema, &key, NULL) == 0);
    create->distribution_count = 1;
    create->bucket_count = SIM_BUCKETS;
    create->replication = SIM_PARTICIPANTS;
    for (node_id node = 1; node <= SIM_PARTICIPANTS; node++)
        create->candidates[create->candidate_count++] = node;
    bool made = sim_setup_do(setup, &command);
    command_close(&command);
    return made;
}

bool sim_setup_prepare(struct sim_setup *setup)
{
    struct command command = {.type = COMMAND_CREATE_DB};
    for (unsigned i = 0; i < SIM_PARTICIPANTS; i++) {
        sim_participant_start(&setup->participants[i]);
        sim_setup_register(setup, i);
    }
    uint64_t until = setup->net->world.now_us + SETUP_US_MAX;
    for (unsigned i = 0; i < SIM_PARTICIPANTS; i++)
        while (setup->participants[i].epoch == 0) {
            if (setup->net->world.now_us >= until)
                return false;
            sim_world_run(&setup->net->world, SETUP_STEP_US);
        }
    snprintf(command.name.db, sizeof command.name.db, "db");
    if (!sim_setup_do(setup, &command))
        return false;
    for (unsigned table = 0; table < SIM_TABLES; table++)
        if (!sim_setup_table(setup, table))
            return false;
    return true;
}
