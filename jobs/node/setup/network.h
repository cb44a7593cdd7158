/*
 * Network of this node: the interface and address at which the other nodes reach it, and whether
 * their names are known yet.
 */
#ifndef STK_NODE_SETUP_NETWORK_H
#define STK_NODE_SETUP_NETWORK_H

#include <stddef.h>
#include <stdint.h>

#include "jobs/base/err.h"
#include "jobs/node/setup/engine_env.h"

/* Returns the interface by which the nodes of an attempt see each other: the platform's, if it has
 * an address here, else the default route's, of IPv4 before IPv6 and the one with the lowest metric
 * (the files "route" and "ipv6_route" of `folder`; proc(5)); if that has no address either, the
 * platform's. NULL if there is neither. The caller frees it. */
char *network_interface(const struct engine_env *platform, const char *folder);

#define NETWORK_FOLDER "/proc/net"

/* Returns the address at which the other nodes reach this one, for node 0 of several on machines of
 * their own: that of network_interface(), else the platform's name for node 0. The caller frees it.
 * NULL with EXIT_REFUSED if there is none; the error lists the interfaces. */
char *network_reached(const struct engine_env *platform, const char *folder, struct err **err);

/* Returns the address by which this machine reaches `address`, and by which it is reached from
 * there; NULL if it knows no way. Nothing is sent. The caller frees it. */
char *network_towards(const char *address);

/* Returns "address:port", with brackets around an IPv6 address (RFC 3986, 3.2.2). The
 * caller frees it. */
char *network_join(const char *address, int64_t port);

/* Waits up to `wait_ms` until the names of all peers can be resolved; they may come late. The
 * network is waited for, so it is for a process of its own. EXIT_UNREACHABLE: the error says
 * which name cannot. */
int network_wait(char *const *hosts, size_t count, int64_t wait_ms, struct err **err);

#endif
