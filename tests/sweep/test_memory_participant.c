/* SPDX-License-Identifier: Apache-2.0 */
/* No memory, at every allocation: parsers of loads, and the store, which keeps what it said. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "common/base/json.h"
#include "participant/ingest/csv_splitter.h"
#include "participant/ingest/json_parser.h"
#include "participant/tablet/publish.h"
#include "tests/sweep/memory_sweep.h"
#include "tests/unit/participant/store/store_fixture.h"
#include "tests/unit/participant/tablet/publish_fixture.h"

static int run_document(void *data)
{
    static const char text[] =
        "{\"stmt\": \"SELECT \\u00e4\", \"a\": [1, 2.5, null, {\"b\": true}]}";
    struct json_doc *doc;
    struct tg_errmsg msg;
    (void)data;
    int err = json_doc_parse(text, sizeof text - 1, NULL, &doc, &msg);
    if (err == 0)
        json_doc_close(doc);
    return err;
}

static void test_documents(void **unused)
{
    (void)unused;
    memory_sweep(&(struct memory_sweep){.run = run_document}, "JSON document");
}

static int run_csv(void *data)
{
    static const char body[] =
        "1,one\n2,\"t,wo\"\n3,three with more text than the first chunk has\n";
    struct csv_format format = {.columns = 2, .enclose = '"', .escape = -1};
    struct csv_splitter *splitter;
    size_t at = 0;
    bool final = false;
    (void)data;
    format.column = (struct load_separator){.bytes = {','}, .len = 1};
    format.line = (struct load_separator){.bytes = {'\n'}, .len = 1};
    int err = csv_splitter_open(&format, 16, &splitter);
    if (err != 0)
        return err;
    while (!final && err == 0) {
        uint8_t *to;
        size_t room;
        struct field_rows rows = {0};
        err = csv_splitter_room(splitter, &to, &room);
        if (err != 0)
            break;
        size_t n = sizeof body - 1 - at < room ? sizeof body - 1 - at : room;
        memcpy(to, body + at, n);
        csv_splitter_filled(splitter, n);
        at += n;
        final = at == sizeof body - 1;
        do {
            err = csv_splitter_split(splitter, final, &rows);
        } while (err == 0 && !rows.done);
    }
    csv_splitter_close(splitter);
    return err;
}

static void test_csv(void **unused)
{
    (void)unused;
    memory_sweep(&(struct memory_sweep){.run = run_csv}, "CSV");
}

static const char *json_option(void *ctx, const char *name)
{
    (void)ctx;
    if (strcmp(name, "format") == 0)
        return "json";
    if (strcmp(name, "jsonpaths") == 0)
        return "[\"$.a\",\"$.b[0].c\"]";
    return strcmp(name, "read_json_by_line") == 0 ? "true" : NULL;
}

static int parse_json(const struct row_mapping *mapping, const struct load_options *options)
{
    static const char body[] =
        "{\"a\": 1, \"b\": [{\"c\": \"x\"}]}\n{\"a\": \"a\\u00e4\", \"b\": []}\n";
    struct json_parser *parser;
    size_t at = 0;
    bool final = false;
    int err = json_parser_open(mapping, options, 16, &parser);
    if (err != 0)
        return err;
    while (!final && err == 0) {
        uint8_t *to;
        size_t room;
        struct field_rows rows = {0};
        err = json_parser_room(parser, &to, &room);
        if (err != 0)
            break;
        size_t n = sizeof body - 1 - at < room ? sizeof body - 1 - at : room;
        memcpy(to, body + at, n);
        json_parser_filled(parser, n);
        at += n;
        final = at == sizeof body - 1;
        do {
            err = json_parser_split(parser, final, &rows);
            if (err == 0 && rows.bad_count > 0)
                err = TG_DATA_QUALITY; /* no row of these is bad */
        } while (err == 0 && !rows.done);
    }
    json_parser_close(parser);
    return err;
}

static int run_json(void *data)
{
    struct schema schema;
    struct load_options options;
    struct row_mapping mapping;
    (void)data;
    schema_init(&schema);
    schema.key_model = KEY_DUPLICATE;
    int err = 0;
    for (int i = 0; i < 2 && err == 0; i++) {
        struct schema_column column = {.type = {.kind = TYPE_STRING}, .nullable = i > 0};
        snprintf(column.name, sizeof column.name, "%c", 'a' + i);
        err = schema_add_column(&schema, &column, NULL);
    }
    if (err == 0 && (err = load_options_parse(json_option, NULL, "L", &options, NULL)) == 0) {
        if ((err = row_mapping_build(&schema, &options, 0, &mapping, NULL)) == 0) {
            err = parse_json(&mapping, &options);
            row_mapping_close(&mapping);
        }
        load_options_close(&options);
    }
    schema_close(&schema);
    return err;
}

static void test_json_loads(void **unused)
{
    (void)unused;
    memory_sweep(&(struct memory_sweep){.run = run_json}, "JSON load");
}

/* ---- the store ---- */

/* What a run shares with the parent that looks at it afterwards. */
struct shared {
    bool sealed[4];
    uint32_t bound;
};

enum { STORE_TABLET = 5, STORE_BYTES = 60000 };

struct store_sweep {
    struct fixture fixture;
    struct shared *shared;
};

static void before_store(void *data)
{
    struct store_sweep *s = data;
    test_dir_make(&s->fixture.dir);
    memset(s->shared, 0, sizeof *s->shared);
}

/* Puts a rowset as fixture_put does, but says what went wrong. */
static int put(struct store_sweep *s, rowset_id rowset)
{
    struct buf content = BUF_INIT;
    struct rowset_meta meta;
    long at = memory_sweep_pause(); /* the making of content is not the store's */
    fixture_content(rowset, STORE_BYTES, &content);
    fixture_meta(&meta, rowset, rowset, STORE_TABLET, slice_of(content.data, content.len));
    memory_sweep_go_on(at);
    int err = fixture_send(&s->fixture, rowset, rowset, STORE_TABLET, 0,
                           slice_of(content.data, content.len), &meta);
    if (err == 0)
        s->shared->sealed[rowset] = true;
    rowset_meta_close(&meta);
    buf_close(&content);
    return err;
}

static int bind(struct store_sweep *s, struct tablet_set *set, version_t version)
{
    struct publish_wait wait;
    long at = memory_sweep_pause();
    struct publish_rowset rowset = {.rowset = version,
                                    .digest = fixture_digest(version, STORE_BYTES)};
    struct publish_bind one = publish_bind_of(STORE_TABLET, version, version - 1, version, &rowset);
    memory_sweep_go_on(at);
    struct msg_publish message = {.bind_count = 1};
    message.binds = calloc(1, sizeof one);
    struct publish_rowset *rowsets = malloc(sizeof rowset);
    if (message.binds == NULL || rowsets == NULL) {
        free(message.binds);
        free(rowsets);
        return TG_NOMEM;
    }
    *rowsets = rowset;
    message.binds[0] = one;
    message.binds[0].rowsets = rowsets;
    memset(&wait, 0, sizeof wait);
    pthread_mutex_init(&wait.lock, NULL);
    pthread_cond_init(&wait.finished, NULL);
    publish_apply(s->fixture.store, set, clock_system(), &message, publish_wait_done, &wait);
    pthread_mutex_lock(&wait.lock);
    while (!wait.is_done)
        pthread_cond_wait(&wait.finished, &wait.lock);
    pthread_mutex_unlock(&wait.lock);
    if (wait.err == 0 && wait.status[0] == PUBLISH_BOUND)
        s->shared->bound = (uint32_t)version;
    return wait.err;
}

static int read_back(struct store_sweep *s, rowset_id rowset)
{
    struct rowset_reader reader;
    struct buf scratch = BUF_INIT;
    struct slice bytes;
    int err = rowset_reader_open(s->fixture.store, STORE_TABLET, rowset, &reader);
    if (err != 0)
        return err;
    for (uint32_t i = 0; i < reader.meta->block_count && err == 0; i++)
        err = rowset_reader_block(&reader, i, &scratch, &bytes);
    if (err == 0)
        err = rowset_reader_verify(&reader);
    buf_close(&scratch);
    rowset_reader_close(&reader);
    return err;
}

static int run_store(void *data)
{
    struct store_sweep *s = data;
    struct store_identity identity;
    struct tablet_set *set = NULL;
    struct tg_errmsg msg;
    int err = store_open(s->fixture.dir.path, &s->fixture.options, &s->fixture.store, &msg);
    if (err != 0)
        return err;
    err = store_identity_load(s->fixture.store, &identity);
    if (err == 0)
        err = tablet_set_open(s->fixture.store, &set);
    for (rowset_id i = 1; i <= 2 && err == 0; i++) {
        err = put(s, i);
        if (err == 0)
            err = bind(s, set, i);
    }
    if (err == 0)
        err = put(s, 3);
    if (err == 0)
        err = read_back(s, 2);
    store_close(s->fixture.store);
    tablet_set_close(set);
    return err;
}

/* What was sealed and bound is there, whatever failed. */
static void after_store(void *data)
{
    struct store_sweep *s = data;
    struct tablet_set *set;
    struct version_map map;
    fixture_open(&s->fixture);
    for (rowset_id i = 1; i <= 3; i++)
        if (s->shared->sealed[i])
            assert_int_equal(fixture_check(&s->fixture, STORE_TABLET, i, STORE_BYTES), 0);
    assert_int_equal(tablet_set_open(s->fixture.store, &set), 0);
    tablet_set_share(set, STORE_TABLET, &map);
    assert_true(version_map_last(&map) >= s->shared->bound);
    version_map_close(&map);
    fixture_close(&s->fixture);
    tablet_set_close(set);
    test_dir_remove(&s->fixture.dir);
}

static void test_the_store_keeps_what_it_acknowledged(void **unused)
{
    (void)unused;
    struct store_sweep s = {0};
    s.shared =
        mmap(NULL, sizeof *s.shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(s.shared != MAP_FAILED);
    store_options_init(&s.fixture.options);
    s.fixture.options.meta_map_bytes = 64u << 20;
    s.fixture.options.blocks_map_bytes = 256u << 20;
    s.fixture.options.disk_reserve_bytes = 0;
    memory_sweep(&(struct memory_sweep){run_store, before_store, after_store, &s}, "store");
    munmap(s.shared, sizeof *s.shared);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_documents),
        cmocka_unit_test(test_csv),
        cmocka_unit_test(test_json_loads),
        cmocka_unit_test(test_the_store_keeps_what_it_acknowledged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
