/* SPDX-License-Identifier: Apache-2.0 */
/* JSON writing: escapes, and commas and lines in the form that Doris's clients know. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "common/base/json.h"

static void strings_are(struct slice text, const char *want)
{
    struct buf out = BUF_INIT;
    json_append_string(&out, text);
    assert_string_equal(buf_cstr(&out), want);
    buf_close(&out);
}

static void strings_are_escaped(void **state)
{
    (void)state;
    strings_are(slice_str(""), "\"\"");
    strings_are(slice_of(NULL, 0), "\"\"");
    strings_are(slice_str("a/b"), "\"a/b\"");
    strings_are(slice_str("q\"b\\"), "\"q\\\"b\\\\\"");
    strings_are(slice_str("\b\f\n\r\t\x1F\x7F"), "\"\\b\\f\\n\\r\\t\\u001F\x7F\"");
    strings_are(slice_of("\0", 1), "\"\\u0000\"");
    strings_are(slice_str("\xC3\xA9\xF0\x9F\x98\x80"), "\"\xC3\xA9\xF0\x9F\x98\x80\"");
}

static void bytes_that_are_not_utf8_become_replacement_characters(void **state)
{
    (void)state;
    strings_are(slice_str("a\xFFz"), "\"a\xEF\xBF\xBDz\"");
    strings_are(slice_str("\xC3"), "\"\xEF\xBF\xBD\"");
    strings_are(slice_str("\xC0\x80"), "\"\xEF\xBF\xBD\xEF\xBF\xBD\"");
}

static void write_answer(struct json_writer *writer)
{
    json_writer_object(writer);
    json_writer_key(writer, "TxnId");
    json_writer_int(writer, -7);
    json_writer_key(writer, "Label");
    json_writer_str(writer, "a\"b");
    json_writer_key(writer, "Empty");
    json_writer_object(writer);
    json_writer_object_end(writer);
    json_writer_key(writer, "List");
    json_writer_array(writer);
    json_writer_uint(writer, UINT64_MAX);
    json_writer_bool(writer, true);
    json_writer_null(writer);
    json_writer_array(writer);
    json_writer_array_end(writer);
    json_writer_array_end(writer);
    json_writer_key(writer, "Raw");
    json_writer_raw(writer, slice_str("1.50"));
    json_writer_object_end(writer);
}

static void compact_answers_have_no_blanks(void **state)
{
    (void)state;
    struct buf out = BUF_INIT;
    struct json_writer writer;
    json_writer_init(&writer, &out, 0);
    write_answer(&writer);
    assert_string_equal(buf_cstr(&out), "{\"TxnId\":-7,\"Label\":\"a\\\"b\",\"Empty\":{},"
                                        "\"List\":[18446744073709551615,true,null,[]],"
                                        "\"Raw\":1.50}");
    buf_close(&out);
}

static void indented_answers_have_one_item_a_line(void **state)
{
    (void)state;
    struct buf out = BUF_INIT;
    struct json_writer writer;
    json_writer_init(&writer, &out, 4);
    write_answer(&writer);
    assert_string_equal(buf_cstr(&out), "{\n"
                                        "    \"TxnId\": -7,\n"
                                        "    \"Label\": \"a\\\"b\",\n"
                                        "    \"Empty\": {},\n"
                                        "    \"List\": [\n"
                                        "        18446744073709551615,\n"
                                        "        true,\n"
                                        "        null,\n"
                                        "        []\n"
                                        "    ],\n"
                                        "    \"Raw\": 1.50\n"
                                        "}");
    buf_close(&out);
}

static void what_was_written_can_be_read(void **state)
{
    (void)state;
    char every[256];
    for (int i = 0; i < 256; i++)
        every[i] = (char)i;
    struct buf out = BUF_INIT;
    json_append_string(&out, slice_of(every, sizeof every));
    struct json_doc *doc;
    struct tg_errmsg msg;
    assert_int_equal(json_doc_parse(out.data, out.len, NULL, &doc, &msg), 0);
    struct slice text = json_value_text(json_doc_root(doc));
    assert_int_equal(text.len, 128 + 128 * 3);
    assert_memory_equal(text.data, every, 128);
    json_doc_close(doc);
    buf_close(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strings_are_escaped),
        cmocka_unit_test(bytes_that_are_not_utf8_become_replacement_characters),
        cmocka_unit_test(compact_answers_have_no_blanks),
        cmocka_unit_test(indented_answers_have_one_item_a_line),
        cmocka_unit_test(what_was_written_can_be_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
