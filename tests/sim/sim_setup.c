/* SPDX-License-Identifier: Apache-2.0 */
/* Registration, heartbeats, tables. */
#include "tests/sim/sim_setup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/check.h"
#include "common/proto/message.h"
#include "common/proto/msg_query.h"

enum {
    HEARTBEAT_US = 300 * 1000,
    REGISTER_US = 20 * 1000,
    SETUP_US_MAX = 30 * 1000 * 1000,
    SETUP_STEP_US = 10 * 1000
};

/* ---- heartbeats ---- */

struct sim_heartbeat {
    struct sim_setup *setup;
    unsigned participant, coordinator;
    uint64_t life;
    struct buf message;
    struct msg_heartbeat_reply reply;
    int err;
};

static void heartbeat_drop(void *data)
{
    struct sim_heartbeat *heartbeat = data;
    buf_close(&heartbeat->message);
    msg_heartbeat_reply_close(&heartbeat->reply);
    free(heartbeat);
}

static void take_answer(struct sim_participant *participant, void *data)
{
    struct sim_heartbeat *heartbeat = data;
    struct msg_heartbeat_reply reply = heartbeat->reply;
    memset(&heartbeat->reply, 0, sizeof heartbeat->reply);
    heartbeat_drop(heartbeat);
    sim_participant_heartbeat_answer(participant, &reply);
}

static void on_heartbeat_answer(void *data)
{
    struct sim_heartbeat *heartbeat = data;
    struct sim_participant *participant = &heartbeat->setup->participants[heartbeat->participant];
    bool current = participant->up && participant->process.life == heartbeat->life;
    if (current && heartbeat->err == TG_FENCED)
        sim_net_fail(participant->net, "participant %u is fenced although there is only one",
                     participant->node);
    if (current && heartbeat->err == 0)
        sim_participant_do(participant, take_answer, heartbeat);
    else
        heartbeat_drop(heartbeat);
}

static void on_heartbeat_answered(void *data, int err, struct slice head)
{
    struct sim_heartbeat *heartbeat = data;
    heartbeat->err = err;
    if (err == 0)
        TG_CHECK(msg_heartbeat_reply_decode(head, &heartbeat->reply) == 0);
    sim_net_send(heartbeat->setup->net, (int)heartbeat->coordinator,
                 sim_node(heartbeat->participant), on_heartbeat_answer, heartbeat, heartbeat_drop);
}

static void on_heartbeat(void *data)
{
    struct sim_heartbeat *heartbeat = data;
    struct sim_coordinator *coordinator = heartbeat->setup->coordinators[heartbeat->coordinator];
    if (!sim_coordinator_is_up(coordinator))
        heartbeat_drop(heartbeat);
    else
        sim_coordinator_call(coordinator, MSG_HEARTBEAT,
                             slice_of(heartbeat->message.data, heartbeat->message.len),
                             on_heartbeat_answered, heartbeat);
}

static void send_heartbeats(struct sim_participant *participant, void *data)
{
    struct sim_setup *setup = data;
    struct msg_heartbeat message;
    if (participant->epoch == 0)
        return;
    sim_participant_fill_heartbeat(participant, &message);
    for (unsigned k = 0; k < SIM_COORDINATORS; k++) {
        if (!setup->net->present[k])
            continue;
        struct sim_heartbeat *heartbeat = calloc(1, sizeof *heartbeat);
        TG_CHECK(heartbeat != NULL);
        heartbeat->setup = setup;
        heartbeat->participant = participant->node - 1;
        heartbeat->coordinator = k;
        heartbeat->life = participant->process.life;
        msg_heartbeat_encode(&message, &heartbeat->message);
        sim_net_send(setup->net, sim_node(participant->node - 1), (int)k, on_heartbeat, heartbeat,
                     heartbeat_drop);
    }
    msg_heartbeat_close(&message);
}

struct sim_pulse {
    struct sim_setup *setup;
    unsigned participant;
    uint64_t life;
};

static void on_pulse(void *data)
{
    struct sim_pulse *pulse = data;
    struct sim_participant *participant = &pulse->setup->participants[pulse->participant];
    if (!participant->up || participant->process.life != pulse->life) {
        free(pulse);
        return;
    }
    sim_participant_do(participant, send_heartbeats, pulse->setup);
    sim_world_after(&pulse->setup->net->world, HEARTBEAT_US, on_pulse, pulse, free);
}

/* ---- registration ---- */

struct sim_registration {
    struct sim_setup *setup;
    unsigned participant;
    uint64_t life;
    struct msg_register_reply reply;
};

static void register_soon(struct sim_setup *setup, unsigned i);

static void take_registration(struct sim_participant *participant, void *data)
{
    struct sim_registration registration = *(struct sim_registration *)data;
    struct sim_setup *setup = registration.setup;
    free(data);
    if (!sim_participant_accept(participant, &registration.reply)) {
        register_soon(setup, registration.participant);
        return;
    }
    sim_world_trace(&setup->net->world, "joined participant=%u epoch=%lu", participant->node,
                    (unsigned long)participant->epoch);
    struct sim_pulse *pulse = malloc(sizeof *pulse);
    TG_CHECK(pulse != NULL);
    *pulse = (struct sim_pulse){setup, registration.participant, registration.life};
    sim_world_after(&setup->net->world, 1000, on_pulse, pulse, free);
}

static bool registration_is_over(const struct sim_registration *registration)
{
    const struct sim_participant *participant =
        &registration->setup->participants[registration->participant];
    return !participant->up || participant->process.life != registration->life ||
           participant->epoch != 0;
}

static void on_registered(void *data, int err, struct slice head)
{
    struct sim_registration *registration = data;
    struct sim_setup *setup = registration->setup;
    unsigned i = registration->participant;
    if (registration_is_over(registration)) {
        free(registration);
        return;
    }
    if (err == TG_FENCED)
        sim_net_fail(setup->net, "participant %u is fenced although there is only one", i + 1);
    if (err != 0) {
        free(registration);
        register_soon(setup, i);
        return;
    }
    TG_CHECK(msg_register_reply_decode(head, &registration->reply) == 0);
    sim_participant_do(&setup->participants[i], take_registration, registration);
}

static void on_register(void *data)
{
    struct sim_registration *registration = data;
    struct sim_setup *setup = registration->setup;
    struct msg_register message;
    struct buf head = BUF_INIT;
    if (registration_is_over(registration)) {
        free(registration);
        return;
    }
    sim_participant_fill_register(&setup->participants[registration->participant], &message);
    msg_register_encode(&message, &head);
    sim_call_start(setup->net, setup->coordinators, sim_node(registration->participant),
                   MSG_REGISTER, &head, on_registered, registration);
}

static void register_soon(struct sim_setup *setup, unsigned i)
{
    struct sim_registration *registration = calloc(1, sizeof *registration);
    TG_CHECK(registration != NULL);
    registration->setup = setup;
    registration->participant = i;
    registration->life = setup->participants[i].process.life;
    sim_world_after(&setup->net->world, REGISTER_US, on_register, registration, free);
}

static void on_opened(void *data, unsigned i)
{
    register_soon(data, i);
}

void sim_setup_init(struct sim_setup *setup, struct sim_net *net,
                    struct sim_coordinator **coordinators, struct sim_participant *participants)
{
    memset(setup, 0, sizeof *setup);
    setup->net = net;
    setup->coordinators = coordinators;
    setup->participants = participants;
    for (unsigned i = 0; i < SIM_PARTICIPANTS; i++) {
        participants[i].opened = on_opened;
        participants[i].data = setup;
    }
}

/* ---- tables ---- */

void sim_setup_statement(struct sim_net *net, struct sim_coordinator **coordinators,
                         struct buf *text, sim_call_done *done, void *data)
{
    struct msg_query message = {.kind = QUERY_STATEMENT, .text = *text};
    struct buf head = BUF_INIT;
    snprintf(message.db, sizeof message.db, "db");
    snprintf(message.user, sizeof message.user, "root");
    msg_query_encode(&message, &head);
    msg_query_close(&message);
    buf_init(text);
    sim_call_start(net, coordinators, SIM_CLIENT, MSG_QUERY, &head, done, data);
}

void sim_setup_create_text(const struct sim_net *net, unsigned number, struct buf *text)
{
    bool all = number == 1 && net->options->seed % 4 == 0;
    buf_printf(text,
               "CREATE TABLE IF NOT EXISTS t%u (k INT) DUPLICATE KEY(k) DISTRIBUTED BY HASH(k) "
               "BUCKETS %d PROPERTIES (\"replication_num\" = \"3\"%s)",
               number, SIM_BUCKETS, all ? ", \"write_quorum\" = \"all\"" : "");
}

static void on_statement(void *data, int err, struct slice head)
{
    struct sim_setup *setup = data;
    (void)head;
    setup->done = true;
    setup->err = err;
}

static bool sim_setup_do(struct sim_setup *setup, struct buf *text)
{
    uint64_t until = setup->net->world.now_us + SETUP_US_MAX;
    while (setup->net->world.now_us < until) {
        struct buf copy = BUF_INIT;
        buf_append(&copy, text->data, text->len);
        setup->done = false;
        sim_setup_statement(setup->net, setup->coordinators, &copy, on_statement, setup);
        while (!setup->done)
            sim_world_run(&setup->net->world, SETUP_STEP_US);
        if (setup->err == 0 || setup->err == TG_EXISTS)
            break;
    }
    buf_close(text);
    return setup->err == 0 || setup->err == TG_EXISTS;
}

bool sim_setup_prepare(struct sim_setup *setup)
{
    struct buf text = BUF_INIT;
    uint64_t until = setup->net->world.now_us + SETUP_US_MAX;
    for (unsigned i = 0; i < SIM_PARTICIPANTS; i++)
        sim_participant_start(&setup->participants[i]);
    for (unsigned i = 0; i < SIM_PARTICIPANTS; i++)
        while (setup->participants[i].epoch == 0) {
            if (setup->net->world.now_us >= until)
                return false;
            sim_world_run(&setup->net->world, SETUP_STEP_US);
        }
    buf_append_str(&text, "CREATE DATABASE IF NOT EXISTS db");
    if (!sim_setup_do(setup, &text))
        return false;
    for (unsigned table = 0; table < SIM_TABLES; table++) {
        sim_setup_create_text(setup->net, table, &text);
        if (!sim_setup_do(setup, &text))
            return false;
    }
    return true;
}
