/* SPDX-License-Identifier: Apache-2.0 */
/* TCP sockets as all of ours want them. */
#include "common/net/tcp.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int tcp_split_address(const char *address, char host[TCP_HOST_BYTES], uint16_t *port,
                      struct tg_errmsg *msg)
{
    const char *colon = strrchr(address, ':');
    size_t host_len = colon == NULL ? 0 : (size_t)(colon - address);
    if (colon == NULL || host_len == 0 || host_len >= TCP_HOST_BYTES)
        return tg_fail(msg, TG_INVALID, "address '%.200s' is not host:port", address);
    unsigned long value = 0;
    const char *digit = colon + 1;
    while (*digit >= '0' && *digit <= '9' && value <= UINT16_MAX)
        value = value * 10 + (unsigned long)(*digit++ - '0');
    if (digit == colon + 1 || *digit != '\0' || value == 0 || value > UINT16_MAX)
        return tg_fail(msg, TG_INVALID, "address '%.200s' has no port in 1..65535", address);
    if (address[0] == '[' && host_len > 2 && address[host_len - 1] == ']') {
        address++;
        host_len -= 2;
    }
    memcpy(host, address, host_len);
    host[host_len] = '\0';
    *port = (uint16_t)value;
    return 0;
}

int tcp_resolve(const char *host, uint16_t port, struct sockaddr_storage *address,
                struct tg_errmsg *msg)
{
    memset(address, 0, sizeof *address);
    if (uv_ip4_addr(host, port, (struct sockaddr_in *)address) == 0)
        return 0;
    if (uv_ip6_addr(host, port, (struct sockaddr_in6 *)address) == 0)
        return 0;
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    char service[8];
    snprintf(service, sizeof service, "%u", (unsigned)port);
    int rc = getaddrinfo(host, service, &hints, &found);
    if (rc != 0)
        return tg_fail(msg, TG_INVALID, "host '%.200s' is not known: %s", host, gai_strerror(rc));
    memcpy(address, found->ai_addr, found->ai_addrlen);
    freeaddrinfo(found);
    return 0;
}

static uint16_t tcp_bound_port(const uv_tcp_t *handle)
{
    struct sockaddr_storage address;
    int len = sizeof address;
    if (uv_tcp_getsockname(handle, (struct sockaddr *)&address, &len) != 0)
        return 0;
    if (address.ss_family == AF_INET6)
        return ntohs(((struct sockaddr_in6 *)&address)->sin6_port);
    return ntohs(((struct sockaddr_in *)&address)->sin_port);
}

int tcp_listen(struct loop *loop, uv_tcp_t *handle, const char *host, uint16_t port,
               uv_connection_cb on_connection, uv_close_cb on_close, uint16_t *bound,
               struct tg_errmsg *msg)
{
    struct sockaddr_storage address;
    int err = tcp_resolve(host, port, &address, msg);
    int rc = uv_tcp_init(loop_uv(loop), handle);
    if (rc != 0)
        return tg_fail(msg, TG_IO, "cannot make a socket: %s", uv_strerror(rc));
    if (err == 0) {
        rc = uv_tcp_bind(handle, (struct sockaddr *)&address, 0);
        if (rc == 0)
            rc = uv_listen((uv_stream_t *)handle, TCP_BACKLOG, on_connection);
        if (rc != 0)
            err = tg_fail(msg, TG_IO, "cannot listen on %s:%u: %s", host, (unsigned)port,
                          uv_strerror(rc));
    }
    if (err != 0) {
        uv_close((uv_handle_t *)handle, on_close);
        return err;
    }
    *bound = tcp_bound_port(handle);
    return 0;
}

void tcp_prepare(uv_tcp_t *handle)
{
    uv_tcp_nodelay(handle, 1);
}

void tcp_prepare_peer(uv_tcp_t *handle)
{
    tcp_prepare(handle);
    uv_tcp_keepalive(handle, 1, TCP_KEEPALIVE_S);
    uv_os_fd_t fd;
    unsigned limit = TCP_UNACKNOWLEDGED_MS;
    if (uv_fileno((uv_handle_t *)handle, &fd) == 0)
        setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &limit, sizeof limit);
}

void tcp_peer(const uv_tcp_t *handle, char *out, size_t cap)
{
    struct sockaddr_storage address;
    int len = sizeof address;
    out[0] = '\0';
    if (uv_tcp_getpeername(handle, (struct sockaddr *)&address, &len) == 0)
        uv_ip_name((struct sockaddr *)&address, out, cap);
    if (strncmp(out, "::ffff:", 7) == 0)
        memmove(out, out + 7, strlen(out + 7) + 1);
}
