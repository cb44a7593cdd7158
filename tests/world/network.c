/* The network as far as an agent asks for it: each machine has one interface with an address, a
 * socket can be bound, the way to an address is known. Names are not found, and nobody answers. See
 * kernel.h. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "tests/world/kernel_internal.h"

#define INTERFACE "eth0"

CALL_WRAPS(getaddrinfo);
CALL_WRAPS(freeaddrinfo);
CALL_WRAPS(getifaddrs);
CALL_WRAPS(freeifaddrs);
CALL_WRAPS(if_nameindex);
CALL_WRAPS(if_freenameindex);
/* glibc declares their addresses as unions, for C alone. */
int __wrap_socket(int family, int type, int protocol);
int __wrap_bind(int fd, const struct sockaddr *address, socklen_t len);
int __wrap_connect(int fd, const struct sockaddr *address, socklen_t len);
int __wrap_getsockname(int fd, struct sockaddr *ret, socklen_t *ret_len);

/* The address of a machine's eth0. */
static struct sockaddr_in address_of(const struct machine *machine)
{
	struct sockaddr_in at = { .sin_family = AF_INET };
	unsigned number = (unsigned)machine->number;

	at.sin_addr.s_addr = htonl(0x0a000000u + (number / 250 << 8) + number % 250 + 1);
	return at;
}

int __wrap_getaddrinfo(const char *restrict host, const char *restrict service,
		       const struct addrinfo *restrict hints, struct addrinfo **restrict ret)
{
	struct sockaddr_in at = { .sin_family = AF_INET };
	struct {
		struct addrinfo info;
		struct sockaddr_in at;
	} * found;

	(void)service;
	call_enter(CALL_getaddrinfo, host, -1);
	if (inet_pton(AF_INET, host, &at.sin_addr) != 1) {
		world_spend(20 * WORLD_MS);
		return EAI_AGAIN;
	}
	found = world_zero(sizeof *found);
	found->at = at;
	found->info = (struct addrinfo){ .ai_family = AF_INET,
					 .ai_socktype = hints ? hints->ai_socktype : 0,
					 .ai_addrlen = sizeof found->at,
					 .ai_addr = (struct sockaddr *)&found->at };
	*ret = &found->info;
	return 0;
}

void __wrap_freeaddrinfo(struct addrinfo *list)
{
	call_enter(CALL_freeaddrinfo, NULL, -1);
	free(list);
}

int __wrap_getifaddrs(struct ifaddrs **ret)
{
	struct call call = call_enter(CALL_getifaddrs, NULL, -1);
	struct {
		struct ifaddrs entry;
		struct sockaddr_in at;
	} * found;

	if (call.error)
		return call_fail(&call);
	found = world_zero(sizeof *found);
	found->at = address_of(self->machine);
	found->entry = (struct ifaddrs){ .ifa_name = (char *)(uintptr_t)INTERFACE,
					 .ifa_flags = IFF_UP | IFF_RUNNING,
					 .ifa_addr = (struct sockaddr *)&found->at };
	*ret = &found->entry;
	return (int)call_return(&call, 0);
}

void __wrap_freeifaddrs(struct ifaddrs *list)
{
	call_enter(CALL_freeifaddrs, NULL, -1);
	free(list);
}

struct if_nameindex *__wrap_if_nameindex(void)
{
	struct call call = call_enter(CALL_if_nameindex, NULL, -1);

	if (!call.error)
		return calloc(1, sizeof(struct if_nameindex));
	call_fail(&call);
	return NULL;
}

void __wrap_if_freenameindex(struct if_nameindex *list)
{
	call_enter(CALL_if_freenameindex, NULL, -1);
	free(list);
}

/* ---- sockets ---- */

struct socket {
	in_port_t port; /* in host order; 0: not bound */
	bool sends;     /* datagrams: no connection, only a way */
	bool has_way;
};

static void socket_release(struct file *file)
{
	free(file->data);
}

static const struct file_ops socket_ops = { .kind = "socket", .release = socket_release };

int __wrap_socket(int family, int type, int protocol)
{
	struct call call = call_enter(CALL_socket, NULL, -1);
	struct socket *socket;

	(void)protocol;
	if (call.error)
		return call_fail(&call);
	if (family != AF_INET && family != AF_INET6)
		return (int)call_return(&call, -EAFNOSUPPORT);
	socket = calloc(1, sizeof *socket);
	if (!socket)
		world_broken("no memory");
	socket->sends = (type & ~SOCK_CLOEXEC) == SOCK_DGRAM;
	return (int)call_return(
		&call, fd_install(file_new(&socket_ops, O_RDWR, socket), 0, type & SOCK_CLOEXEC));
}

static struct socket *socket_of(int fd)
{
	struct file *file = fd_file(fd);

	return file && file->ops == &socket_ops ? file->data : NULL;
}

int __wrap_bind(int fd, const struct sockaddr *address, socklen_t len)
{
	struct call call = call_enter(CALL_bind, NULL, fd);
	struct socket *socket = socket_of(fd);
	struct sockaddr_in at;

	if (call.error)
		return call_fail(&call);
	if (!socket || len < sizeof at)
		return (int)call_return(&call, socket ? -EINVAL : -ENOTSOCK);
	memcpy(&at, address, sizeof at);
	socket->port = ntohs(at.sin_port);
	if (socket->port == 0)
		socket->port = (in_port_t)(32768 + chance_below(28000));
	return (int)call_return(&call, 0);
}

int __wrap_connect(int fd, const struct sockaddr *address, socklen_t len)
{
	struct call call = call_enter(CALL_connect, NULL, fd);
	struct socket *socket = socket_of(fd);

	(void)address, (void)len;
	if (call.error)
		return call_fail(&call);
	if (socket)
		socket->has_way = socket->sends;
	return (int)call_return(&call, !socket ? -ENOTSOCK : socket->sends ? 0 : -ECONNREFUSED);
}

int __wrap_getsockname(int fd, struct sockaddr *ret, socklen_t *ret_len)
{
	struct call call = call_enter(CALL_getsockname, NULL, fd);
	struct socket *socket = socket_of(fd);
	struct sockaddr_in at = { .sin_family = AF_INET };

	if (!socket)
		return (int)call_return(&call, -ENOTSOCK);
	if (socket->has_way)
		at = address_of(self->machine);
	at.sin_port = htons(socket->port);
	memcpy(ret, &at, *ret_len < sizeof at ? *ret_len : sizeof at);
	*ret_len = sizeof at;
	return (int)call_return(&call, 0);
}
