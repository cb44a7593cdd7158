/*
 * This node among the others: by which interface and address they reach it, and whether
 * their names are known yet.
 */
#ifndef STK_NODE_NETWORK_H
#define STK_NODE_NETWORK_H

#include <stddef.h>
#include <stdint.h>

#include "jobs/base/err.h"
#include "jobs/node/platform.h"

/* The interface that the default route goes over, of IPv4 before IPv6 and the one with the
 * lowest metric (the files "route" and "ipv6_route" of `folder`; proc(5)); NULL: there is
 * none. Yours to free. */
char *network_route(const char *folder);

/* By which the nodes of an attempt see each other: what the platform says, if it has an
 * address here, else the route; if that has none either, what the platform says. NULL:
 * neither says. Yours to free. */
char *network_interface(const struct platform *platform, const char *folder);

#define NETWORK_FOLDER "/proc/net"

/* The first address of an interface, IPv4 before IPv6, in figures; NULL: it has none but
 * those that end at the link. Yours to free. */
char *network_address(const char *interface);

/* Where the other nodes reach this one, for node 0 of several on machines of their own: the
 * address of network_interface(), else the name that the platform has for node 0. Yours to
 * free; NULL and EXIT_REFUSED: nowhere, with the interfaces that were looked at. */
char *network_reached(const struct platform *platform, const char *folder, struct err **err);

/* The address by which this machine reaches that one, and so by which it is reached from
 * there; NULL: it knows no way. Nothing is sent. Yours to free. */
char *network_towards(const char *address);

/* "address:port", with brackets around an IPv6 address (RFC 3986, 3.2.2). Yours to free. */
char *network_join(const char *address, int64_t port);

/* Names of peers may come late: wait until all can be resolved, for `wait_ms`. This waits
 * for the network, so it is for a process of its own. EXIT_UNREACHABLE: which cannot. */
int network_wait(char *const *hosts, size_t count, int64_t wait_ms, struct err **err);

#endif
