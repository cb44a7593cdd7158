/* Interface, address and names of nodes: see network.h. */
#include "jobs/node/network.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "jobs/base/auto.h"
#include "jobs/base/clock.h"
#include "jobs/base/fs.h"

#define ROUTES_MAX ((size_t)1 << 20)
#define RETRY_MS   500

char *network_route_in(const char *path)
{
	AUTO(sb_release) struct sb text = SB_INIT_MAX(ROUTES_MAX);
	AUTO(err_freep) struct err *ignored = NULL;
	char best[IF_NAMESIZE] = "";
	unsigned best_metric = 0;
	char *save = NULL;

	if (fs_read(path, ROUTES_MAX, &text, &ignored) < 0)
		return NULL;
	for (char *line = strtok_r(text.text, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save)) {
		unsigned long to, mask;
		unsigned flags, metric;
		char name[IF_NAMESIZE];

		/* Iface Destination Gateway Flags RefCnt Use Metric Mask … */
		if (sscanf(line, "%15s %lx %*x %x %*d %*d %u %lx", name, &to, &flags, &metric,
			   &mask) != 5)
			continue;
		/* Flag 1: the route is up. */
		if (to != 0 || mask != 0 || !(flags & 1) || (best[0] && metric >= best_metric))
			continue;
		memcpy(best, name, sizeof best);
		best_metric = metric;
	}
	return best[0] ? mem_copy(best) : NULL;
}

char *network_route(void)
{
	return network_route_in("/proc/net/route");
}

char *network_interface(const struct platform *platform)
{
	return platform->interface ? mem_copy(platform->interface) : network_route();
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

/* An address of which others must know the link as well is of no use to them. */
static bool is_of_family(const struct ifaddrs *entry, int family)
{
	const struct sockaddr_in6 *six = (const void *)entry->ifa_addr;

	return entry->ifa_addr && entry->ifa_addr->sa_family == family &&
	       (family != AF_INET6 || !IN6_IS_ADDR_LINKLOCAL(&six->sin6_addr));
}

char *network_address(const char *interface)
{
	static const int families[] = { AF_INET, AF_INET6 };
	struct ifaddrs *all;
	char *found = NULL;

	if (getifaddrs(&all) < 0)
		return NULL;
	for (size_t i = 0; i < STK_LENGTH(families) && !found; i++)
		for (const struct ifaddrs *at = all; at && !found; at = at->ifa_next)
			if (strcmp(at->ifa_name, interface) == 0 && is_of_family(at, families[i]))
				found = figures(at->ifa_addr);
	freeifaddrs(all);
	return found;
}

int network_wait(char *const *hosts, size_t count, int64_t wait_ms, struct err **err)
{
	int64_t end = mono_now().ms + wait_ms;

	for (size_t i = 0; i < count;) {
		struct addrinfo want = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM };
		struct addrinfo *found = NULL;
		int outcome = getaddrinfo(hosts[i], NULL, &want, &found);

		if (outcome == 0) {
			freeaddrinfo(found);
			i++;
			continue;
		}
		if (mono_now().ms >= end) {
			err_set(err, EXIT_UNREACHABLE,
				"the name of node %zu, '%s', is not known after %lld s: %s", i,
				hosts[i], (long long)(wait_ms / 1000), gai_strerror(outcome));
			return err_hint(err, "its machine may not have started");
		}
		(void)!poll(NULL, 0, RETRY_MS);
	}
	return 0;
}
