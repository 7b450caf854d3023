/* SPDX-License-Identifier: Apache-2.0 */
/* The quick way through JSON lines that are all made alike: flat objects with the keys of the row
 * before in the same order, no blanks between tokens, plain ASCII strings without escapes. Whatever
 * is not exactly so is left to the real parser, which also says what is wrong with it. */
#ifndef TG_PARTICIPANT_INGEST_JSON_FLAT_H
#define TG_PARTICIPANT_INGEST_JSON_FLAT_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "common/base/buf.h"
#include "common/base/json.h"

enum {
    FLAT_KEYS_FIRST = 32,
    FLAT_KEYS_MAX = 512,      /* objects with more are the parser's */
    FLAT_KEY_WORD_BYTES = 16, /* of a key that are compared at once */
    FLAT_SLACK = 24,          /* bytes behind a line that are read ahead */
    FLAT_REST_MAX = 64        /* rows that are not tried after many failures */
};

struct flat_key {
    uint64_t words[2]; /* the text's first bytes, quotes and colon included, … */
    uint64_t masks[2]; /* … and which of them count */
    uint32_t len;
    uint32_t at;   /* the whole text, in texts */
    int32_t field; /* -1: of no column */
};

struct json_flat {
    uint32_t count; /* 0: nothing was learned */
    uint32_t capacity;
    struct flat_key *keys;
    struct buf texts;
    uint32_t rest;     /* rows that are not tried */
    uint32_t failures; /* in a row */
};

struct flat_value {
    enum json_kind kind; /* JSON_NULL, JSON_BOOL, JSON_NUMBER, JSON_STRING */
    const uint8_t *text;
    uint32_t len;
    bool truth; /* JSON_BOOL */
};

void json_flat_close(struct json_flat *flat);

/* Learning: begin, each key of a row in order, end. What cannot be learned makes all of it fail. */
void json_flat_learn_begin(struct json_flat *flat);
void json_flat_learn(struct json_flat *flat, struct slice name, int32_t field);
void json_flat_learn_end(struct json_flat *flat);

/* Whether a row should be tried, and how it went: failures make rests that get longer. */
bool json_flat_should_try(struct json_flat *flat);
void json_flat_tried(struct json_flat *flat, bool good);

/* Behind the key at p, or NULL if it is not this one. end: of the line; FLAT_SLACK bytes behind it
 * are readable, here and below. */
const uint8_t *json_flat_key(const struct json_flat *flat, const struct flat_key *key,
                             const uint8_t *p, const uint8_t *end);
/* Behind the value at p, or NULL if it is not a plain one. What is read may end behind the line:
 * whoever then is not exactly at its end has read too far. */
const uint8_t *json_flat_value(const uint8_t *p, const uint8_t *end, struct flat_value *value);

#endif
