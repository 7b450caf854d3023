/* SPDX-License-Identifier: Apache-2.0 */
/* Commands and batches survive their bytes, and bad bytes are refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "common/base/msgpack.h"
#include "coordinator/state/command.h"

static void encode_again(const struct command *command, struct buf *first, struct buf *second)
{
    command_encode(command, first);
    struct cursor cursor;
    cursor_init(&cursor, first->data, first->len);
    struct command decoded;
    assert_int_equal(command_decode(&cursor, &decoded), 0);
    assert_int_equal(cursor_finish(&cursor), 0);
    assert_int_equal(decoded.type, command->type);
    command_encode(&decoded, second);
    command_close(&decoded);
}

/* The same bytes come out again, and no shorter prefix decodes. Returns the size. */
static size_t check_round_trip(const struct command *command)
{
    struct buf first = BUF_INIT;
    struct buf second = BUF_INIT;
    encode_again(command, &first, &second);
    assert_int_equal(first.len, second.len);
    assert_memory_equal(first.data, second.data, first.len);
    for (size_t len = 0; len < first.len; len++) {
        struct cursor cursor;
        cursor_init(&cursor, first.data, len);
        struct command decoded;
        assert_int_equal(command_decode(&cursor, &decoded), TG_CORRUPT);
    }
    size_t len = first.len;
    buf_close(&first);
    buf_close(&second);
    return len;
}

static const struct request_key KEY = {3, 77, UINT64_C(0x123456789)};

static void test_every_small_command_comes_back(void **state)
{
    (void)state;
    struct command init = {.type = COMMAND_CLUSTER_INIT};
    strcpy(init.cluster_init.uuid, "0a1b2c3d-0000-4000-8000-000000000001");
    check_round_trip(&init);

    struct command limits = {.type = COMMAND_SET_LIMITS};
    limits.limits.limits = (struct limits){1, UINT32_MAX, UINT64_MAX};
    check_round_trip(&limits);
    struct command member = {.type = COMMAND_MEMBER_REGISTER};
    member.member.message = (struct msg_register){.wanted = 2,
                                                  .previous_nonce = UINT64_MAX,
                                                  .new_nonce = 9,
                                                  .http = "127.0.0.1:8040",
                                                  .rpc = "127.0.0.1:8060"};
    check_round_trip(&member);

    const enum command_type names[] = {COMMAND_CREATE_DB, COMMAND_DROP_DB, COMMAND_DROP_TABLE,
                                       COMMAND_TRUNCATE_TABLE};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct command name = {.type = names[i], .name = {.if_exists = true, .force = true}};
        strcpy(name.name.db, "d");
        strcpy(name.name.table, "t");
        check_round_trip(&name);
    }
    const enum command_type ends[] = {COMMAND_TXN_PRECOMMIT, COMMAND_TXN_COMMIT, COMMAND_TXN_ABORT};
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        struct command end = {.type = ends[i]};
        end.finish = (struct command_finish){.txn = 5,
                                             .db = 1,
                                             .key = KEY,
                                             .expect_state = TXN_PRECOMMITTED,
                                             .expect_seq = 8,
                                             .reason = "timeout by txn manager"};
        check_round_trip(&end);
    }
    struct command failed = {.type = COMMAND_LOAD_FAILED};
    failed.load_failed =
        (struct command_load_failed){.key = KEY, .txn = 1, .rowset = 2, .reason = "sender is gone"};
    check_round_trip(&failed);
    struct command behind = {.type = COMMAND_REPLICA_BEHIND, .behind = {1, 2, 3}};
    check_round_trip(&behind);
    const enum command_type coordinators[] = {COMMAND_COORDINATOR_FOUND, COMMAND_COORDINATOR_ADD,
                                              COMMAND_COORDINATOR_PROMOTE, COMMAND_COORDINATOR_DROP,
                                              COMMAND_COORDINATOR_GONE};
    for (size_t i = 0; i < sizeof coordinators / sizeof coordinators[0]; i++) {
        struct command coordinator = {.type = coordinators[i],
                                      .coordinator = {.id = 4,
                                                      .nonce = UINT64_MAX,
                                                      .raft = "10.0.0.4:9010",
                                                      .rpc = "10.0.0.4:9020",
                                                      .http = "10.0.0.4:8030"}};
        check_round_trip(&coordinator);
    }
    const enum command_type replicas[] = {COMMAND_REPLICA_LACKS, COMMAND_REPLICA_CATCH,
                                          COMMAND_REPLICA_HEALED};
    for (size_t i = 0; i < sizeof replicas / sizeof replicas[0]; i++) {
        struct command replica = {.type = replicas[i], .replica = {1, 2, UINT64_MAX}};
        check_round_trip(&replica);
    }
    struct command proven = {.type = COMMAND_REPLICA_PROVEN, .proven = {1, 2, 3, 4, {{5, 6}}}};
    check_round_trip(&proven);
    struct command lost = {.type = COMMAND_DECLARE_LOST, .lost = {1, UINT64_MAX}};
    check_round_trip(&lost);
    struct command drain = {.type = COMMAND_NODE_DRAIN, .node = {3, 0, true}};
    check_round_trip(&drain);
    struct command drop = {.type = COMMAND_NODE_DROP, .node = {3, UINT64_MAX, false}};
    check_round_trip(&drop);
    struct command add = {.type = COMMAND_REPLICA_ADD, .move = {1, 2, UINT64_MAX}};
    check_round_trip(&add);
    add.type = COMMAND_REPLICA_REMOVE;
    check_round_trip(&add);
}

static void test_load_commands_come_back_and_are_small(void **state)
{
    (void)state;
    struct command begin = {.type = COMMAND_TXN_BEGIN};
    begin.begin = (struct command_begin){.key = KEY, .two_phase = true, .timeout_ms = 600000};
    strcpy(begin.begin.db, "database");
    strcpy(begin.begin.table, "orders");
    strcpy(begin.begin.label, "123e4567-e89b-12d3-a456-426614174000");
    strcpy(begin.begin.user, "root");
    assert_true(check_round_trip(&begin) < 200);

    struct command start = {.type = COMMAND_LOAD_START};
    start.load_start =
        (struct command_load_start){.key = KEY, .txn = 12345, .db = "d", .table = "t"};
    assert_true(check_round_trip(&start) < 200);

    struct load_report_tablet tablets[4] = {0};
    for (int i = 0; i < 4; i++) {
        tablets[i] = (struct load_report_tablet){
            .tablet = 100u + (unsigned)i, .sealed = 7, .rows = 1000, .bytes = 70000};
        memset(tablets[i].digest.bytes, 0xA0 + i, sizeof tablets[i].digest.bytes);
    }
    struct command done = {.type = COMMAND_LOAD_DONE};
    done.load_done.message = (struct msg_load_done){.node = 1,
                                                    .epoch = 4,
                                                    .request_id = 9,
                                                    .txn = 12345,
                                                    .rowset = 23456,
                                                    .placement_epoch = 1,
                                                    .finish = LOAD_FINISH_COMMIT,
                                                    .rows = 4000,
                                                    .bytes = 280000,
                                                    .tablet_count = 4,
                                                    .tablets = tablets};
    assert_true(check_round_trip(&done) < 200);
}

static void test_lists_come_back(void **state)
{
    (void)state;
    uint8_t bits[3] = {7, 3, 6};
    struct visible_txn txns[2] = {{.txn = 4, .tablet_count = 3, .confirmed = bits},
                                  {.txn = 5, .one_is_enough = true}};
    struct command visible = {.type = COMMAND_TXN_VISIBLE};
    visible.visible = (struct command_visible){.count = 2, .txns = txns};
    check_round_trip(&visible);
    visible.type = COMMAND_TXN_CONFIRM;
    check_round_trip(&visible);

    txn_id ids[] = {1, 2, UINT64_MAX};
    struct command forget = {.type = COMMAND_FORGET, .forget = {.count = 3, .txns = ids}};
    check_round_trip(&forget);
    forget.forget.count = 0;
    check_round_trip(&forget);
}

static void test_create_table_comes_back_with_schema_and_comment(void **state)
{
    (void)state;
    struct command create = {.type = COMMAND_CREATE_TABLE};
    struct command_create_table *table = &create.create_table;
    strcpy(table->db, "d");
    strcpy(table->table, "t");
    schema_init(&table->schema);
    struct schema_column column = {.name = "k", .type = {.kind = TYPE_INT}, .is_key = true};
    assert_int_equal(schema_add_column(&table->schema, &column, NULL), 0);
    table->distribution_count = 1;
    table->bucket_count = 4;
    table->replication = 2;
    table->occ = true;
    table->candidate_count = 2;
    table->candidates[0] = 1;
    table->candidates[1] = 2;
    check_round_trip(&create);
    table->comment = strdup("what it is for");
    check_round_trip(&create);
    command_close(&create);
}

static void test_unknown_numbers_stop_the_reader(void **state)
{
    (void)state;
    struct buf bytes = BUF_INIT;
    mp_uint(&bytes, 99);
    mp_array(&bytes, 0);
    struct cursor cursor;
    struct command command;
    cursor_init(&cursor, bytes.data, bytes.len);
    assert_int_equal(command_decode(&cursor, &command), TG_UNSUPPORTED);

    buf_clear(&bytes);
    struct batch_header header = {.stamp_us = 5, .elapsed_delta_ms = 6, .count = 0};
    batch_begin(&header, &bytes);
    bytes.data[0] = COMMAND_FORMAT + 1;
    cursor_init(&cursor, bytes.data, bytes.len);
    assert_int_equal(batch_decode_header(&cursor, &header), TG_UNSUPPORTED);
    buf_close(&bytes);
}

static void test_a_batch_is_padded_and_its_padding_checked(void **state)
{
    (void)state;
    struct buf bytes = BUF_INIT;
    struct batch_header header = {
        .stamp_us = UINT64_C(1) << 50, .elapsed_delta_ms = 17, .count = 1};
    struct command behind = {.type = COMMAND_REPLICA_BEHIND, .behind = {1, 2, 3}};
    batch_begin(&header, &bytes);
    assert_int_equal(bytes.len, BATCH_HEADER_BYTES);
    command_encode(&behind, &bytes);
    batch_end(&bytes);
    assert_int_equal(bytes.len % BATCH_ALIGN, 0);

    for (int damage = 0; damage < 2; damage++) {
        if (damage)
            bytes.data[bytes.len - 1] = 1;
        struct cursor cursor;
        struct command command;
        struct batch_header got;
        cursor_init(&cursor, bytes.data, bytes.len);
        assert_int_equal(batch_decode_header(&cursor, &got), 0);
        assert_int_equal(got.stamp_us, header.stamp_us);
        assert_int_equal(got.elapsed_delta_ms, 17);
        assert_int_equal(got.count, 1);
        assert_int_equal(command_decode(&cursor, &command), 0);
        assert_int_equal(batch_decode_end(&cursor), damage ? TG_CORRUPT : 0);
    }
    buf_close(&bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_small_command_comes_back),
        cmocka_unit_test(test_load_commands_come_back_and_are_small),
        cmocka_unit_test(test_lists_come_back),
        cmocka_unit_test(test_create_table_comes_back_with_schema_and_comment),
        cmocka_unit_test(test_unknown_numbers_stop_the_reader),
        cmocka_unit_test(test_a_batch_is_padded_and_its_padding_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
