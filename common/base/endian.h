/* SPDX-License-Identifier: Apache-2.0 */
/* Fixed-width loads and stores at any alignment; le for formats, be for keys that sort bytewise. */
#ifndef TG_COMMON_BASE_ENDIAN_H
#define TG_COMMON_BASE_ENDIAN_H

#include <endian.h>
#include <stdint.h>
#include <string.h>

#define TG_ENDIAN(bits, order)                                              \
    static inline uint##bits##_t load_u##bits##order(const void *from)      \
    {                                                                       \
        uint##bits##_t v;                                                   \
        memcpy(&v, from, sizeof v);                                         \
        return order##bits##toh(v);                                         \
    }                                                                       \
    static inline void store_u##bits##order(void *to, uint##bits##_t value) \
    {                                                                       \
        uint##bits##_t v = hto##order##bits(value);                         \
        memcpy(to, &v, sizeof v);                                           \
    }

TG_ENDIAN(16, le)
TG_ENDIAN(32, le)
TG_ENDIAN(64, le)
TG_ENDIAN(16, be)
TG_ENDIAN(32, be)
TG_ENDIAN(64, be)
#undef TG_ENDIAN

#endif
