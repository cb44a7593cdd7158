/*
 * Memory of the chain of providers in this process: see credentials.h.
 *
 * Two locks: `state` guards the remembered state and is only held for moments; `fetching` is held
 * while providers are asked, so that they are asked once. A caller that needs keys while the old
 * ones are still valid does not wait for `fetching`.
 */
#include "aws/credentials/credentials.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "aws/credentials/credentials_internal.h"
#include "aws/http/patience.h"

#define MINUTE ((int64_t)60 * 1000)
/* Keys are fetched again this long before they expire; an error is ignored until MANDATORY
 * before. */
#define ADVISORY  (15 * MINUTE)
#define MANDATORY (10 * MINUTE)
/* Wait after an ignored error. */
#define TRY_AGAIN MINUTE
/* Wait after a provider returned the same keys that a service had called expired. */
#define UNCHANGED ((int64_t)10 * 1000)

static struct {
	pthread_mutex_t state, fetching;
	struct credentials now; /* access_key NULL: none yet */
	bool fixed;
	bool refused;       /* a service has called the keys expired */
	bool worked;        /* some keys have been accepted in this process */
	struct err *failed; /* why there are none, if providers are not asked again (patience.h) */
	struct mono advisory, mandatory, forgiven_until;
	struct mono unchanged_until; /* a provider returned the same keys: not asked before then */
} memory = { .state = PTHREAD_MUTEX_INITIALIZER, .fetching = PTHREAD_MUTEX_INITIALIZER };

static void copy(struct credentials *ret, const struct credentials *from)
{
	*ret = (struct credentials){
		.access_key = mem_copy(from->access_key),
		.secret_key = mem_copy(from->secret_key),
		.token = from->token ? mem_copy(from->token) : NULL,
		.expires = from->expires,
		.provider = from->provider,
		.account = from->account ? mem_copy(from->account) : NULL,
	};
}

static bool same_text(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

static bool same(const struct credentials *a, const struct credentials *b)
{
	return same_text(a->access_key, b->access_key) && same_text(a->secret_key, b->secret_key) &&
	       same_text(a->token, b->token);
}

static int64_t smaller(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* Called with `state` held. Keys that live shorter than the windows are used for a part of their
 * life: otherwise each request would fetch new ones. Time is counted from now on, so that a
 * change of the clock in between does no harm. */
static void remember(struct credentials *fresh, bool fixed)
{
	int64_t life = fresh->expires.ms - clock_utc_now().ms;
	struct mono now = clock_mono_now();

	memory.unchanged_until.ms =
		memory.refused && same(&memory.now, fresh) ? now.ms + UNCHANGED : 0;
	memory.refused = false;
	memory.fixed = fixed;
	memory.forgiven_until = (struct mono){ 0 };
	memory.advisory.ms = now.ms + life - smaller(ADVISORY, life / 2);
	memory.mandatory.ms = now.ms + life - smaller(MANDATORY, life / 3);
	if (fresh->expires.ms == 0 || fixed)
		memory.advisory.ms = memory.mandatory.ms = INT64_MAX;
	credentials_release(&memory.now);
	memory.now = *fresh;
	*fresh = (struct credentials){ 0 };
}

enum need { NO_NEED, WOULD_HELP, MUST };

/* Called with `state` held. */
static enum need need(void)
{
	struct mono now = clock_mono_now();

	if (!memory.now.access_key || memory.refused || now.ms >= memory.mandatory.ms)
		return MUST;
	if (now.ms >= memory.advisory.ms && now.ms >= memory.forgiven_until.ms)
		return WOULD_HELP;
	return NO_NEED;
}

/* Called with `fetching` held. */
static int fetch(struct err **err)
{
	AUTO(credentials_release) struct credentials fresh = { 0 };
	bool fixed = false;

	if (memory.failed)
		return err_again(err, memory.failed);
	if (credentials_chain_get(&fresh, &fixed, err) < 0) {
		if (patience_is_limited())
			err_again(&memory.failed, *err);
		return -1;
	}
	if (fresh.expires.ms != 0 && fresh.expires.ms <= clock_utc_now().ms) {
		char at[UTC_TEXT];

		err_set(err, EXIT_REFUSED, "the AWS credentials of '%s' have expired, at %s",
			fresh.provider, clock_utc_format(fresh.expires, at));
		return err_hint(
			err,
			"renew the credentials at their source, and check this machine's clock");
	}
	pthread_mutex_lock(&memory.state);
	remember(&fresh, fixed);
	pthread_mutex_unlock(&memory.state);
	return 0;
}

static enum need copy_now(struct credentials *ret)
{
	enum need now;

	pthread_mutex_lock(&memory.state);
	now = need();
	if (now != MUST)
		copy(ret, &memory.now);
	pthread_mutex_unlock(&memory.state);
	return now;
}

/* `ret` holds valid keys; newer ones would be better. */
static void try_newer(struct credentials *ret)
{
	AUTO(err_freep) struct err *forgiven = NULL;

	if (pthread_mutex_trylock(&memory.fetching) != 0)
		return; /* another thread is fetching */
	if (fetch(&forgiven) < 0) {
		pthread_mutex_lock(&memory.state);
		memory.forgiven_until.ms = clock_mono_now().ms + TRY_AGAIN;
		pthread_mutex_unlock(&memory.state);
	} else {
		credentials_release(ret);
		copy_now(ret);
	}
	pthread_mutex_unlock(&memory.fetching);
}

static bool keys_can_renew(void)
{
	bool can_renew;

	pthread_mutex_lock(&memory.state);
	can_renew = memory.worked && !memory.fixed;
	pthread_mutex_unlock(&memory.state);
	return can_renew;
}

int credentials_get(struct credentials *ret, struct err **err)
{
	enum need now;
	int outcome = 0;

	if (patience_check(err) < 0)
		return -1;
	now = copy_now(ret);
	if (now == WOULD_HELP)
		try_newer(ret);
	if (now != MUST && ret->access_key)
		return 0;
	pthread_mutex_lock(&memory.fetching);
	now = copy_now(ret); /* another thread may have fetched meanwhile */
	if (now == MUST)
		outcome = fetch(err);
	if (now == MUST && outcome == 0) {
		pthread_mutex_lock(&memory.state);
		copy(ret, &memory.now);
		pthread_mutex_unlock(&memory.state);
	}
	pthread_mutex_unlock(&memory.fetching);
	if (outcome < 0 && keys_can_renew())
		err_code(err, EXIT_UNREACHABLE);
	return outcome;
}

static void keys_worked(void)
{
	pthread_mutex_lock(&memory.state);
	memory.worked = true;
	pthread_mutex_unlock(&memory.state);
}

static bool keys_expired(const char *access_key)
{
	bool may_change;

	pthread_mutex_lock(&memory.state);
	if (!same_text(memory.now.access_key, access_key)) {
		may_change = true; /* the keys have changed already */
	} else {
		may_change = !memory.fixed && clock_mono_now().ms >= memory.unchanged_until.ms;
		memory.refused = memory.refused || may_change;
	}
	pthread_mutex_unlock(&memory.state);
	return may_change;
}

const struct credentials_source credentials_default = {
	.get = credentials_get,
	.expired = keys_expired,
	.worked = keys_worked,
	.can_renew = keys_can_renew,
};

void credentials_forget(void)
{
	pthread_mutex_lock(&memory.state);
	credentials_release(&memory.now);
	memory.fixed = memory.refused = memory.worked = false;
	memory.unchanged_until = memory.forgiven_until = (struct mono){ 0 };
	err_freep(&memory.failed);
	pthread_mutex_unlock(&memory.state);
}
