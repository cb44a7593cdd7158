/* Interface, address and names of nodes: see network.h. */
#include "jobs/node/setup/network.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "jobs/base/auto.h"
#include "jobs/base/clock.h"
#include "jobs/base/fs/fs.h"
#include "jobs/base/process/cancel.h"

#define ROUTES_MAX ((size_t)1 << 20)
#define RETRY_MS   500
#define LOOKS      3 /* at what the kernel tells, after one that failed */

struct route {
	char name[IF_NAMESIZE];
	unsigned metric;
};

/* Flag 1: the route is up. */
#define IS_UP 1U

/* True if the line is a default route. */
typedef bool (*route_fn)(const char *line, struct route *ret);

static bool read_route(const char *line, struct route *ret)
{
	unsigned long to, mask;
	unsigned flags;

	/* Iface Destination Gateway Flags RefCnt Use Metric Mask … */
	return sscanf(line, "%15s %lx %*x %x %*d %*d %u %lx", ret->name, &to, &flags, &ret->metric,
		      &mask) == 5 &&
	       to == 0 && mask == 0 && (flags & IS_UP);
}

static bool read_route6(const char *line, struct route *ret)
{
	char to[33];
	unsigned bits, flags;

	/* Destination, its bits, source, its bits, next hop, metric, RefCnt, Use, flags, iface */
	return sscanf(line, "%32s %x %*s %*x %*s %x %*x %*x %x %15s", to, &bits, &ret->metric,
		      &flags, ret->name) == 5 &&
	       strspn(to, "0") == 32 && bits == 0 && (flags & IS_UP);
}

static char *best_route(const char *folder, const char *name, route_fn read)
{
	AUTO(auto_free) char *path = fs_join(folder, name);
	AUTO(sb_release) struct sb text = SB_INIT_MAX(ROUTES_MAX);
	AUTO(err_freep) struct err *ignored = NULL;
	struct route best = { .name = "" };
	char *save = NULL;

	for (int i = 0; fs_read(path, ROUTES_MAX, &text, &ignored) < 0; i++) {
		if (i == LOOKS || !err_passes(ignored))
			return NULL;
		err_freep(&ignored);
	}
	for (char *line = strtok_r(text.text, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save)) {
		struct route route = { .name = "" };

		if (read(line, &route) && (!best.name[0] || route.metric < best.metric))
			best = route;
	}
	return best.name[0] ? mem_copy(best.name) : NULL;
}

/* Returns the interface of the default route, of IPv4 before IPv6 and the one with the lowest
 * metric (the files "route" and "ipv6_route" of `folder`; proc(5)); NULL if there is none. The
 * caller frees it. */
static char *default_route(const char *folder)
{
	char *found = best_route(folder, "route", read_route);

	return found ? found : best_route(folder, "ipv6_route", read_route6);
}

static char *figures(const struct sockaddr *at)
{
	char text[INET6_ADDRSTRLEN];
	const void *bytes;

	if (at->sa_family == AF_INET)
		bytes = &((const struct sockaddr_in *)(const void *)at)->sin_addr;
	else
		bytes = &((const struct sockaddr_in6 *)(const void *)at)->sin6_addr;
	return inet_ntop(at->sa_family, bytes, text, sizeof text) ? mem_copy(text) : NULL;
}

/* A link-local address is of no use to other nodes: they must know the link as well. */
static bool is_of_family(const struct ifaddrs *entry, int family)
{
	const struct sockaddr_in6 *six = (const void *)entry->ifa_addr;

	return entry->ifa_addr && entry->ifa_addr->sa_family == family &&
	       (family != AF_INET6 || !IN6_IS_ADDR_LINKLOCAL(&six->sin6_addr));
}

/* Returns the first address of an interface, IPv4 before IPv6, in figures; NULL if it has none but
 * link-local ones. The caller frees it. */
static char *address_of(const char *interface)
{
	static const int families[] = { AF_INET, AF_INET6 };
	struct ifaddrs *all;
	char *found = NULL;

	for (int i = 0; getifaddrs(&all) < 0; i++)
		if (i == LOOKS)
			return NULL;
	for (size_t i = 0; i < STK_LENGTH(families) && !found; i++)
		for (const struct ifaddrs *at = all; at && !found; at = at->ifa_next)
			if (strcmp(at->ifa_name, interface) == 0 && is_of_family(at, families[i]))
				found = figures(at->ifa_addr);
	freeifaddrs(all);
	return found;
}

static bool has_address(const char *interface)
{
	AUTO(auto_free) char *address = interface ? address_of(interface) : NULL;

	return address != NULL;
}

char *network_interface(const struct engine_env *platform, const char *folder)
{
	AUTO(auto_free) char *route = NULL;

	if (has_address(platform->interface))
		return mem_copy(platform->interface);
	route = default_route(folder);
	if (platform->interface && !has_address(route))
		return mem_copy(platform->interface);
	return TAKE(route);
}

static void list_interfaces(struct sb *words)
{
	struct if_nameindex *all = if_nameindex();

	for (const struct if_nameindex *at = all; at && at->if_name; at++)
		sb_addf(words, "%s%s%s", at == all ? "" : ", ", at->if_name,
			has_address(at->if_name) ? "" : " (no address)");
	if (all)
		if_freenameindex(all);
}

char *network_reached(const struct engine_env *platform, const char *folder, struct err **err)
{
	AUTO(auto_free) char *interface = network_interface(platform, folder);
	char *found = interface ? address_of(interface) : NULL;
	AUTO(sb_release) struct sb words = SB_INIT_MAX(1000);

	if (found)
		return found;
	if (platform->host_count > 0)
		return mem_copy(platform->hosts[0]);
	list_interfaces(&words);
	err_set(err, EXIT_REFUSED,
		"the other nodes cannot reach node 0: %s%s%s has no address; its interfaces are %s",
		interface ? "'" : "", interface ? interface : "without a default route, node 0",
		interface ? "'" : "", words.text);
	err_hint(err, "give the machines addresses and a default route in their network");
	return NULL;
}

char *network_towards(const char *address)
{
	struct addrinfo want = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_DGRAM };
	struct addrinfo *to = NULL;
	struct sockaddr_storage from = { 0 };
	socklen_t len = sizeof from;
	char *found = NULL;

	if (getaddrinfo(address, "9", &want, &to) != 0)
		return NULL;
	/* Nothing is sent: the kernel only chooses the way. */
	for (const struct addrinfo *at = to; at && !found; at = at->ai_next) {
		AUTO(auto_close)
		int fd = socket(at->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);

		if (fd >= 0 && connect(fd, at->ai_addr, at->ai_addrlen) == 0 &&
		    getsockname(fd, (struct sockaddr *)&from, &len) == 0)
			found = figures((struct sockaddr *)&from);
	}
	freeaddrinfo(to);
	return found;
}

char *network_join(const char *address, int64_t port)
{
	bool bare = strchr(address, ':') && address[0] != '[';

	return mem_format("%s%s%s:%lld", bare ? "[" : "", address, bare ? "]" : "",
			  (long long)port);
}

int network_wait(char *const *hosts, size_t count, int64_t wait_ms, struct err **err)
{
	int64_t end = clock_mono_now().ms + wait_ms;

	for (size_t i = 0; i < count;) {
		struct addrinfo want = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM };
		struct addrinfo *found = NULL;
		int outcome = getaddrinfo(hosts[i], NULL, &want, &found);

		if (outcome == 0) {
			freeaddrinfo(found);
			i++;
			continue;
		}
		if (clock_mono_now().ms >= end) {
			err_set(err, EXIT_UNREACHABLE,
				"the name of node %zu, '%s', is not known after %lld s: %s", i,
				hosts[i], (long long)(wait_ms / 1000), gai_strerror(outcome));
			return err_hint(err, "check if the machine of that node has started");
		}
		(void)cancel_pause(RETRY_MS);
	}
	return 0;
}
