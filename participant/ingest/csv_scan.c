/* SPDX-License-Identifier: Apache-2.0 */
/* Bit masks of separators. SSE2 is enough (measured: AVX2 gains little); elsewhere the compiler's
 * vectors do it. The loops exist twice, once with the processor's bit counting, chosen at run time.
 */
#include "participant/ingest/csv_scan.h"

#include <string.h>

#ifdef __SSE2__
#include <emmintrin.h>

/* Four registers by name: an array of them would live in memory. */
struct lane {
    __m128i a, b, c, d;
};

static inline struct lane lane_load(const uint8_t *at)
{
    const __m128i *from = (const __m128i *)(const void *)at;
    return (struct lane){_mm_loadu_si128(from), _mm_loadu_si128(from + 1),
                         _mm_loadu_si128(from + 2), _mm_loadu_si128(from + 3)};
}

static inline uint64_t part_equal(__m128i part, __m128i wanted)
{
    return (uint64_t)(uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(part, wanted));
}

static inline uint64_t lane_equal(const struct lane *lane, uint8_t byte)
{
    __m128i wanted = _mm_set1_epi8((char)byte);
    return part_equal(lane->a, wanted) | part_equal(lane->b, wanted) << 16 |
           part_equal(lane->c, wanted) << 32 | part_equal(lane->d, wanted) << 48;
}

static inline uint64_t lane_high(const struct lane *lane)
{
    __m128i any = _mm_or_si128(_mm_or_si128(lane->a, lane->b), _mm_or_si128(lane->c, lane->d));
    return (uint64_t)(uint32_t)_mm_movemask_epi8(any);
}
#define HAVE_POPCNT_VARIANT 1
#else
struct lane {
    uint8_t bytes[64];
};

static inline struct lane lane_load(const uint8_t *at)
{
    struct lane lane;
    memcpy(lane.bytes, at, sizeof lane.bytes);
    return lane;
}

static inline uint64_t lane_equal(const struct lane *lane, uint8_t byte)
{
    uint64_t mask = 0;
    for (int i = 0; i < 64; i++)
        mask |= (uint64_t)(lane->bytes[i] == byte) << i;
    return mask;
}

static inline uint64_t lane_high(const struct lane *lane)
{
    uint8_t any = 0;
    for (int i = 0; i < 64; i++)
        any |= lane->bytes[i];
    return any >> 7;
}
#define HAVE_POPCNT_VARIANT 0
#endif

#define ALWAYS_INLINE static inline __attribute__((always_inline))

/* Bits of the first n bytes. */
static inline uint64_t low_bits(size_t n)
{
    return n >= 64 ? ~UINT64_C(0) : (UINT64_C(1) << n) - 1;
}

/* Writes the places of mask's bits. Eight at a time, more than are there: the surplus is
 * overwritten by the next call (this is what CSV_SCAN_SLACK is for). */
ALWAYS_INLINE void write_places(uint64_t mask, uint32_t base, uint32_t count, uint32_t *ends)
{
#define WRITE_PLACE(i)                                                        \
    do {                                                                      \
        ends[i] = base + (uint32_t)__builtin_ctzll(mask | UINT64_C(1) << 63); \
        mask &= mask - 1;                                                     \
    } while (0)
    for (uint32_t done = 0; done < count; done += 8, ends += 8) {
        WRITE_PLACE(0);
        WRITE_PLACE(1);
        WRITE_PLACE(2);
        WRITE_PLACE(3);
        WRITE_PLACE(4);
        WRITE_PLACE(5);
        WRITE_PLACE(6);
        WRITE_PLACE(7);
    }
#undef WRITE_PLACE
}

/* Whole groups of four, a few more than there are: the slack has room for them. */
static void begins_from_ends(size_t from, const uint32_t *ends, uint32_t count, uint32_t *begins)
{
    begins[0] = (uint32_t)from;
    for (uint32_t i = 0; i < count; i += 4) {
        begins[i + 1] = ends[i] + 1;
        begins[i + 2] = ends[i + 1] + 1;
        begins[i + 3] = ends[i + 2] + 1;
        begins[i + 4] = ends[i + 3] + 1;
    }
}

ALWAYS_INLINE void scan_plain(const uint8_t *text, size_t from, size_t len, uint8_t column,
                              uint8_t line, uint32_t *ends, uint32_t capacity,
                              struct csv_found *found)
{
    uint32_t count = 0;
    uint32_t lines = 0;
    uint64_t high = 0;
    size_t at = from;

    for (; at < len && count + 64 <= capacity; at += 64) {
        struct lane lane = lane_load(text + at);
        uint64_t lines_here = lane_equal(&lane, line);
        uint64_t mask = lane_equal(&lane, column) | lines_here;
        high |= lane_high(&lane);
        if (len - at < 64) {
            mask &= low_bits(len - at);
            lines_here &= low_bits(len - at);
        }
        uint32_t here = (uint32_t)__builtin_popcountll(mask);
        write_places(mask, (uint32_t)at, here, ends + count);
        count += here;
        lines += (uint32_t)__builtin_popcountll(lines_here);
    }
    found->count = count;
    found->lines = lines;
    found->scanned = at < len ? at : len;
    found->high = high != 0;
}

/* Bit i of the answer: parity of bits 0..i. */
static inline uint64_t prefix_xor(uint64_t bits)
{
    bits ^= bits << 1;
    bits ^= bits << 2;
    bits ^= bits << 4;
    bits ^= bits << 8;
    bits ^= bits << 16;
    bits ^= bits << 32;
    return bits;
}

/* Quotes toggle "inside". That is right if every quote that opens stands at the start of a field,
 * or right behind one that closed (a doubled quote: a quote as data). */
ALWAYS_INLINE void scan_quoted(const uint8_t *text, size_t from, size_t len, uint8_t column,
                               uint8_t line, uint8_t enclose, uint32_t *ends, uint32_t capacity,
                               struct csv_found *found)
{
    uint32_t count = 0;
    uint32_t lines = 0;
    uint64_t high = 0;
    uint64_t seen = 0;
    uint64_t wrong = 0;
    uint64_t inside_before = 0;   /* all ones while inside */
    uint64_t may_open_before = 1; /* the byte before this lane ended a field or closed a quote */
    size_t at = from;

    for (; at < len && count + 64 <= capacity; at += 64) {
        struct lane lane = lane_load(text + at);
        uint64_t valid = low_bits(len - at);
        uint64_t quotes = lane_equal(&lane, enclose) & valid;
        uint64_t inside = prefix_xor(quotes) ^ inside_before;
        uint64_t lines_here = lane_equal(&lane, line) & valid & ~inside;
        uint64_t mask = (lane_equal(&lane, column) & valid & ~inside) | lines_here;
        uint64_t closing = quotes & ~inside;
        uint64_t may_open = mask | closing;

        high |= lane_high(&lane);
        seen |= quotes;
        wrong |= (quotes & inside) & ~(may_open << 1 | may_open_before);
        inside_before = 0 - (inside >> 63);
        may_open_before = may_open >> 63;
        uint32_t here = (uint32_t)__builtin_popcountll(mask);
        write_places(mask, (uint32_t)at, here, ends + count);
        count += here;
        lines += (uint32_t)__builtin_popcountll(lines_here);
    }
    found->count = count;
    found->lines = lines;
    found->scanned = at < len ? at : len;
    found->high = high != 0;
    found->quotes = seen != 0;
    found->irregular = wrong != 0;
}

typedef void plain_function(const uint8_t *, size_t, size_t, uint8_t, uint8_t, uint32_t *, uint32_t,
                            struct csv_found *);
typedef void quoted_function(const uint8_t *, size_t, size_t, uint8_t, uint8_t, uint8_t, uint32_t *,
                             uint32_t, struct csv_found *);

static void plain_any(const uint8_t *text, size_t from, size_t len, uint8_t column, uint8_t line,
                      uint32_t *ends, uint32_t capacity, struct csv_found *found)
{
    scan_plain(text, from, len, column, line, ends, capacity, found);
}

static void quoted_any(const uint8_t *text, size_t from, size_t len, uint8_t column, uint8_t line,
                       uint8_t enclose, uint32_t *ends, uint32_t capacity, struct csv_found *found)
{
    scan_quoted(text, from, len, column, line, enclose, ends, capacity, found);
}

#if HAVE_POPCNT_VARIANT
#define WITH_POPCNT __attribute__((target("popcnt,bmi")))

WITH_POPCNT static void plain_popcnt(const uint8_t *text, size_t from, size_t len, uint8_t column,
                                     uint8_t line, uint32_t *ends, uint32_t capacity,
                                     struct csv_found *found)
{
    scan_plain(text, from, len, column, line, ends, capacity, found);
}

WITH_POPCNT static void quoted_popcnt(const uint8_t *text, size_t from, size_t len, uint8_t column,
                                      uint8_t line, uint8_t enclose, uint32_t *ends,
                                      uint32_t capacity, struct csv_found *found)
{
    scan_quoted(text, from, len, column, line, enclose, ends, capacity, found);
}

static bool has_popcnt(void)
{
    return __builtin_cpu_supports("popcnt") && __builtin_cpu_supports("bmi");
}
#else
#define plain_popcnt  plain_any
#define quoted_popcnt quoted_any

static bool has_popcnt(void)
{
    return false;
}
#endif

void csv_scan_plain(const uint8_t *text, size_t from, size_t len, uint8_t column, uint8_t line,
                    uint32_t *begins, uint32_t *ends, uint32_t capacity, struct csv_found *found)
{
    plain_function *scan = has_popcnt() ? plain_popcnt : plain_any;

    *found = (struct csv_found){0};
    scan(text, from, len, column, line, ends, capacity, found);
    begins_from_ends(from, ends, found->count, begins);
}

void csv_scan_quoted(const uint8_t *text, size_t from, size_t len, uint8_t column, uint8_t line,
                     uint8_t enclose, uint32_t *begins, uint32_t *ends, uint32_t capacity,
                     struct csv_found *found)
{
    quoted_function *scan = has_popcnt() ? quoted_popcnt : quoted_any;

    *found = (struct csv_found){0};
    scan(text, from, len, column, line, enclose, ends, capacity, found);
    begins_from_ends(from, ends, found->count, begins);
}

uint32_t csv_scan_places(const uint8_t *text, size_t from, size_t len, const uint8_t *pattern,
                         uint32_t pattern_len, uint32_t *places, uint32_t capacity, size_t *scanned)
{
    uint32_t count = 0;
    size_t at = from;
    size_t limit = len >= pattern_len ? len - pattern_len + 1 : 0; /* places are below this */

    for (; at < limit && count + 64 <= capacity; at += 64) {
        struct lane lane = lane_load(text + at);
        uint64_t mask = lane_equal(&lane, pattern[0]) & low_bits(limit - at);
        if (pattern_len > 1 && mask != 0) {
            struct lane next = lane_load(text + at + 1);
            mask &= lane_equal(&next, pattern[1]);
        }
        for (; mask != 0; mask &= mask - 1)
            places[count++] = (uint32_t)(at + (size_t)__builtin_ctzll(mask));
    }
    *scanned = at < limit ? at : len;
    return count;
}

bool csv_scan_high(const uint8_t *text, size_t len)
{
    uint64_t high = 0;
    size_t at = 0;

    for (; at + 64 <= len; at += 64) {
        struct lane lane = lane_load(text + at);
        high |= lane_high(&lane);
    }
    for (; at < len; at++)
        high |= text[at] >> 7;
    return high != 0;
}
