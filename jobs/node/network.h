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

/* The interface that the default route goes over (/proc/net/route, the one with the lowest
 * metric); NULL: there is none. Yours to free. */
char *network_route(void);
/* The same from another file of that form. */
char *network_route_in(const char *path);

/* By which the nodes of an attempt see each other: what the platform says, else the route.
 * NULL: neither says. Yours to free. */
char *network_interface(const struct platform *platform);

/* The first address of an interface, IPv4 before IPv6, in figures; NULL: it has none but
 * those that end at the link. Yours to free. */
char *network_address(const char *interface);

/* Names of peers may come late: wait until all can be resolved, for `wait_ms`. This waits
 * for the network, so it is for a process of its own. EXIT_UNREACHABLE: which cannot. */
int network_wait(char *const *hosts, size_t count, int64_t wait_ms, struct err **err);

#endif
