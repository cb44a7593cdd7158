/* The network that the world has not: names are not found, nobody answers. A socket can be bound,
 * so that an agent may choose a port. See kernel.h. */
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

int __wrap_getaddrinfo(const char *restrict host, const char *restrict service,
		       const struct addrinfo *restrict hints, struct addrinfo **restrict ret)
{
	(void)service, (void)hints, (void)ret;
	call_enter(CALL_getaddrinfo, host, -1);
	world_spend(20 * WORLD_MS);
	return EAI_AGAIN;
}

void __wrap_freeaddrinfo(struct addrinfo *list)
{
	(void)list;
	call_enter(CALL_freeaddrinfo, NULL, -1);
}

int __wrap_getifaddrs(struct ifaddrs **ret)
{
	struct call call = call_enter(CALL_getifaddrs, NULL, -1);

	if (call.error)
		return call_fail(&call);
	*ret = NULL;
	return (int)call_return(&call, 0);
}

void __wrap_freeifaddrs(struct ifaddrs *list)
{
	(void)list;
	call_enter(CALL_freeifaddrs, NULL, -1);
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

	(void)address, (void)len;
	return (int)call_return(&call, socket_of(fd) ? -ECONNREFUSED : -ENOTSOCK);
}

int __wrap_getsockname(int fd, struct sockaddr *ret, socklen_t *ret_len)
{
	struct call call = call_enter(CALL_getsockname, NULL, fd);
	struct socket *socket = socket_of(fd);
	struct sockaddr_in at = { .sin_family = AF_INET };

	if (!socket)
		return (int)call_return(&call, -ENOTSOCK);
	at.sin_port = htons(socket->port);
	memcpy(ret, &at, *ret_len < sizeof at ? *ret_len : sizeof at);
	*ret_len = sizeof at;
	return (int)call_return(&call, 0);
}
