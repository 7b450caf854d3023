/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a configuration file: values within their bounds, or a sentence. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/base/check.h"
#include "common/base/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct values {
    char text[24];
    uint64_t number;
    uint64_t bytes;
    bool flag;
};

static const struct config_option options[] = {
    {"name", CONFIG_STRING, offsetof(struct values, text), 24, 0, 0, "none", "A name.", "Names"},
    {"port", CONFIG_UINT, offsetof(struct values, number), 0, 1, 65535, "8030", "A port.", NULL},
    {"memory", CONFIG_BYTES, offsetof(struct values, bytes), 0, 1024, UINT64_C(1) << 40, "1m",
     "Memory.", NULL},
    {"bootstrap", CONFIG_BOOL, offsetof(struct values, flag), 0, 0, 0, "false", "Or not.", NULL},
};
enum { OPTIONS = sizeof options / sizeof options[0] };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int file = -1;
    struct values values;
    struct tg_errmsg msg = {""};
    char path[64];
    if (file < 0)
        file = memfd_create("config", MFD_CLOEXEC);
    TG_CHECK(file >= 0 && ftruncate(file, 0) == 0);
    TG_CHECK(pwrite(file, data, size, 0) == (ssize_t)size);
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    TG_CHECK(config_defaults(options, OPTIONS, &values, &msg) == 0);
    if (config_read_file(options, OPTIONS, path, &values, &msg) != 0)
        TG_CHECK(msg.text[0] != '\0');
    TG_CHECK(values.number >= 1 && values.number <= 65535);
    TG_CHECK(values.bytes >= 1024 && values.bytes <= UINT64_C(1) << 40);
    return 0;
}
