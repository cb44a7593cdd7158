/* Hosts that did not answer a process of limited patience: see http/patience.h. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "aws/http/patience.h"
#include "aws/request.h"
#include "jobs/base/auto.h"

#define HOSTS_MAX 16

static struct {
	pthread_mutex_t lock;
	struct {
		char *host, *why; /* owned, to the end of the process */
	} away[HOSTS_MAX];
	size_t count;
} brief = { .lock = PTHREAD_MUTEX_INITIALIZER };

void brief_add_unreachable(const char *host, const char *why)
{
	pthread_mutex_lock(&brief.lock);
	if (patience_is_limited() && brief.count < HOSTS_MAX) {
		brief.away[brief.count].host = mem_copy(host);
		brief.away[brief.count++].why = mem_copy(why);
	}
	pthread_mutex_unlock(&brief.lock);
}

int brief_check(const char *host, struct err **err)
{
	const char *why = NULL;

	pthread_mutex_lock(&brief.lock);
	for (size_t i = 0; i < brief.count; i++)
		if (strcmp(brief.away[i].host, host) == 0)
			why = brief.away[i].why;
	pthread_mutex_unlock(&brief.lock);
	if (!why)
		return 0;
	err_set(err, EXIT_UNREACHABLE, "no usable reply from '%s' a moment ago: %s", host, why);
	return err_hint(err, "check the network, HTTPS_PROXY and the endpoint, then try again");
}
