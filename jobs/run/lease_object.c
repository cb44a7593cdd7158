/* The lease as an object that is compared and swapped: see lease.h. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "jobs/base/json.h"
#include "jobs/base/proc.h"
#include "jobs/run/lease_inside.h"

#define OBJECT_BYTES_MAX ((size_t)64 << 10)
#define PATIENCE_MAX_MS  600000 /* whatever an object says */

/* Where process ids and the monotonic clock mean the same as here: one boot, one
 * namespace of each. "" where the system does not say. Yours to free. */
static char *our_place(void)
{
	struct proc_id self;
	char pids[64] = "", times[64] = "";

	if (proc_identify(getpid(), &self) < 0 ||
	    readlink("/proc/self/ns/pid", pids, sizeof pids - 1) < 0)
		return mem_copy("");
	/* Kernels without namespaces of time have one clock. */
	if (readlink("/proc/self/ns/time", times, sizeof times - 1) < 0)
		times[0] = '\0';
	return mem_format("%s %s %s", self.boot_id, pids, times);
}

/* The object as we would have it now. Yours to free. */
static char *our_object(const struct lease *lease, bool held, struct mono now)
{
	AUTO(auto_free) char *place = our_place();
	json_auto_t *object = json_object();
	struct proc_id self = { .pid = getpid() };
	char host[256] = "?";

	gethostname(host, sizeof host - 1);
	proc_identify(getpid(), &self);
	js_put(object, "v", json_integer(1));
	js_put_str(object, "run", lease->run);
	js_put(object, "held", json_boolean(held));
	js_put_str(object, "host", host);
	js_put(object, "pid", json_integer(self.pid));
	js_put(object, "started", json_integer((json_int_t)self.start_ticks));
	js_put_str(object, "place", place);
	js_put(object, "valid_ms", json_integer(lease->rules.valid_ms));
	js_put(object, "clock", json_integer(now.ms));
	js_put(object, "epoch", json_integer(lease->epoch));
	js_put(object, "renewed", json_integer(lease->renewed));
	js_put_str(object, "nonce", lease->nonce);
	return js_line(object);
}

/* The object as it is: 1 with its tag in the lease, 0 absent, -1. One that does
 * not parse gives an empty `*ret`: somebody's, nothing more is known. */
static int look(struct lease *lease, struct sb *text, json_t **ret, struct err **err)
{
	AUTO(err_freep) struct err *garbage = NULL;
	int found = store_get(lease->store, lease->key, OBJECT_BYTES_MAX, text, lease->tag, err);

	if (found <= 0)
		return found;
	if (js_parse(text->text, text->len, "a lease", ret, &garbage) < 0 ||
	    !json_is_object(*ret)) {
		json_decref(*ret);
		*ret = json_object();
	}
	return 1;
}

static bool is_ours(const struct lease *lease, const json_t *object)
{
	return js_is(object, "nonce", lease->nonce);
}

static void note_holder(struct lease *lease, const json_t *object)
{
	const char *host = js_str(object, "host");

	free(lease->holder);
	lease->holder =
		host ? mem_format("pid %lld on %s", (long long)js_int(object, "pid", 0), host)
		     : NULL;
}

/* Write our object over what lease->tag names (`make`: where there is none): 1 it
 * is there, 0 somebody else was faster, -1 unknown. What is there decides, not
 * the answer to the write: that may be lost although the write was done. */
static int swap(struct lease *lease, bool make, struct err **err)
{
	struct mono before = mono_now();
	AUTO(auto_free) char *body = our_object(lease, true, before);
	AUTO(sb_release) struct sb text = SB_INIT;
	AUTO(err_freep) struct err *unread = NULL;
	json_auto_t *object = NULL;
	int written = make ? store_put_if_absent(lease->store, lease->key, body, strlen(body), err)
			   : store_replace_if_same(lease->store, lease->key, lease->tag, body,
						   strlen(body), err);
	int found = look(lease, &text, &object, &unread);

	if (found > 0 && strcmp(text.text, body) == 0) {
		err_freep(err);
		lease->since = before;
		lease->next.ms = before.ms + lease->rules.renew_ms;
		return 1;
	}
	if (found > 0 && !is_ours(lease, object)) {
		err_freep(err);
		note_holder(lease, object);
		return 0;
	}
	if (written < 0)
		return -1;
	if (found < 0) {
		*err = TAKE(unread);
		return -1;
	}
	if (found == 0)
		return 0;
	/* Ours, of an earlier write whose answer was lost: the tag is known now. */
	return err_set(err, EXIT_UNREACHABLE, "the lease in '%s' was written late",
		       store_url(lease->store));
}

/* What a foreign object says about its holder. */
enum holder { HOLDER_GONE, HOLDER_ALIVE, HOLDER_UNKNOWN };

static enum holder judge(const struct lease *lease, const json_t *object)
{
	AUTO(auto_free) char *place = our_place();
	const char *theirs = js_str(object, "place");
	struct proc_id id = { .pid = (pid_t)js_int(object, "pid", 0),
			      .start_ticks = (uint64_t)js_int(object, "started", 0) };
	int64_t age = mono_now().ms - js_int(object, "clock", 0);

	if (json_object_get(object, "held") && !js_bool(object, "held", true))
		return HOLDER_GONE;
	if (!theirs || !*place || strcmp(theirs, place) != 0)
		return HOLDER_UNKNOWN;
	snprintf(id.boot_id, sizeof id.boot_id, "%.36s", place);
	if (!proc_alive(&id))
		return HOLDER_GONE;
	/* Fresh, and by a clock that is ours too: no need to see it renewed. */
	return age >= 0 && age < lease->rules.renew_ms ? HOLDER_ALIVE : HOLDER_UNKNOWN;
}

/* How long the object must stay unchanged: what its holder counts on, or we. */
static int64_t patience(const struct lease *lease, const json_t *object)
{
	int64_t theirs = js_int(object, "valid_ms", 0), ours = lease->rules.valid_ms;

	return theirs > ours && theirs <= PATIENCE_MAX_MS ? theirs : ours;
}

/* A foreign object of which nothing is known: has it stayed as it was for long
 * enough? `read_at` is from before it was read. */
static enum holder watch(struct lease *lease, const char *text, int64_t valid_ms,
			 struct mono read_at, int64_t *ret_wait_ms)
{
	int64_t left, pause = lease->rules.renew_ms / 4;

	if (lease->seen && strcmp(lease->seen, text) != 0)
		return HOLDER_ALIVE; /* it was renewed before our eyes */
	if (!lease->seen) {
		lease->seen = mem_copy(text);
		lease->seen_at = mono_now();
	}
	left = valid_ms - (read_at.ms - lease->seen_at.ms);
	if (left <= 0)
		return HOLDER_GONE;
	*ret_wait_ms = left < pause ? left : pause;
	return HOLDER_UNKNOWN;
}

/* Nobody's, or its holder is gone: 1 ours, 0 look again, -1. */
static int seize(struct lease *lease, const json_t *old, int64_t *ret_wait_ms, struct err **err)
{
	int taken;

	lease->epoch = js_int(old, "epoch", 0) + 1;
	lease->renewed = 0;
	taken = swap(lease, old == NULL, err);
	if (taken > 0) {
		lease->held = true;
		return 1;
	}
	free(TAKE(lease->seen));
	*ret_wait_ms = 1;
	return taken;
}

/* Who has it, from the object as it is; NULL in `*ret` where there is none. */
static int find_holder(struct lease *lease, json_t **ret, enum holder *ret_holder,
		       int64_t *ret_wait_ms, struct err **err)
{
	AUTO(sb_release) struct sb text = SB_INIT;
	struct mono read_at = mono_now();
	int found = look(lease, &text, ret, err);

	*ret_holder = HOLDER_GONE;
	if (found <= 0)
		return found;
	note_holder(lease, *ret);
	if (!is_ours(lease, *ret))
		*ret_holder = judge(lease, *ret);
	if (*ret_holder == HOLDER_UNKNOWN)
		*ret_holder = watch(lease, text.text, patience(lease, *ret), read_at, ret_wait_ms);
	return 0;
}

int lease_object_look(struct lease *lease, struct err **err)
{
	json_auto_t *object = NULL;
	enum holder holder;
	int64_t wait_ms;

	if (find_holder(lease, &object, &holder, &wait_ms, err) < 0)
		return -1;
	if (holder == HOLDER_ALIVE)
		free(TAKE(lease->seen)); /* from here on anew */
	return holder == HOLDER_GONE;
}

int lease_object_try(struct lease *lease, int64_t *ret_wait_ms, struct err **err)
{
	json_auto_t *object = NULL;
	enum holder holder;

	if (find_holder(lease, &object, &holder, ret_wait_ms, err) < 0)
		return -1;
	switch (holder) {
	case HOLDER_GONE:
		return seize(lease, object, ret_wait_ms, err);
	case HOLDER_ALIVE:
		return lease_busy(lease, err);
	case HOLDER_UNKNOWN:
		break;
	}
	return 0;
}

static int lost(struct lease *lease, struct err **err)
{
	lease->held = false;
	return lease_busy(lease, err);
}

/* Its time is over, but nobody is known to have taken it: the tag is kept, and as long as
 * the object has it the next renewal makes it ours again. */
static int late(const struct lease *lease, struct err **err)
{
	if (!*err)
		err_set(err, EXIT_UNREACHABLE, "'%s' has not answered", store_url(lease->store));
	err_code(err, EXIT_UNREACHABLE);
	return err_wrap(err, "could not renew the lease on run %s in time", lease->run);
}

int lease_object_keep(struct lease *lease, struct err **err)
{
	struct mono now = mono_now();
	int renewed = -1;

	if (!lease->held)
		return lease_busy(lease, err);
	if (now.ms < lease->next.ms)
		return lease_is_mine(lease) ? 0 : late(lease, err);
	/* Twice, because after a write whose answer was lost the first only finds
	 * out what is there. */
	for (int i = 0; i < 2; i++) {
		err_freep(err);
		lease->renewed++;
		renewed = swap(lease, false, err);
		if (renewed >= 0 || !lease_is_mine(lease))
			break;
	}
	if (renewed > 0)
		return 0;
	if (renewed == 0)
		return lost(lease, err);
	lease->next.ms = mono_now().ms + lease->rules.renew_ms / 4;
	if (!lease_is_mine(lease))
		return late(lease, err);
	/* Others leave it alone for a while yet: try again soon. */
	err_freep(err);
	return 0;
}

void lease_object_release(struct lease *lease)
{
	AUTO(auto_free) char *body = our_object(lease, false, mono_now());
	AUTO(err_freep) struct err *err = NULL;

	/* If it does not work, a successor has to wait. */
	if (store_replace_if_same(lease->store, lease->key, lease->tag, body, strlen(body), &err) <
	    0)
		err_freep(&err);
}
