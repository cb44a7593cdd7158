/* The lease as an object that is compared and swapped: see lease.h. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "jobs/base/fs/fs.h"
#include "jobs/base/process/proc.h"
#include "jobs/base/text/js.h"
#include "jobs/run/journal/lease_internal.h"

#define OBJECT_BYTES_MAX   ((size_t)64 << 10)
#define WATCH_LIMIT_MAX_MS 600000 /* upper limit, whatever an object says */
#define REFUSED_MS         100 /* pause after the first refusal of a right condition; then doubled */
#define REFUSED_MAX_MS     5000

/* The scope in which process ids and the monotonic clock mean the same as here: one boot, one
 * namespace of each. "" if the system does not say. The caller frees it. */
static char *our_scope(void)
{
	struct proc_id self;
	char pids[64] = "", times[64] = "";

	if (proc_identify(getpid(), &self) < 0 ||
	    readlink("/proc/self/ns/pid", pids, sizeof pids - 1) < 0)
		return mem_copy("");
	/* Kernels without time namespaces have one clock. */
	if (readlink("/proc/self/ns/time", times, sizeof times - 1) < 0)
		times[0] = '\0';
	return mem_format("%s %s %s", self.boot_id, pids, times);
}

/* The object that we would write now. The caller frees it. */
static char *our_object(const struct lease *lease, bool held, struct mono now)
{
	AUTO(auto_free) char *place = our_scope();
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

/* Reads the object. Returns 1 with its tag in the lease, 0 if absent, -1. An object that no driver
 * has written gives an empty `*ret`. */
static int read_object(struct lease *lease, struct sb *text, json_t **ret, struct err **err)
{
	AUTO(err_freep) struct err *garbage = NULL;
	int found = store_get(lease->store, lease->key, OBJECT_BYTES_MAX, text, lease->tag, err);

	if (found == 0 && store_directory(lease->store))
		return lease_pass_obstacle(lease, store_directory(lease->store), lease->key,
					   lease->rules.over_damage, err);
	if (found <= 0)
		return found;
	if (js_parse(text->text, text->len, "a lease", ret, &garbage) < 0 ||
	    !js_str(*ret, "nonce")) {
		json_decref(*ret);
		*ret = json_object();
	}
	return 1;
}

static bool is_damaged(const json_t *object)
{
	return json_object_size(object) == 0;
}

static int fail_damaged(const struct lease *lease, struct err **err)
{
	err_freep(err);
	err_set(err, EXIT_REFUSED, "the lease of run %s is damaged: '%s' in '%s' is not a lease",
		lease->run, lease->key, store_url(lease->store));
	err_damage(err);
	return err_hint(err, "delete '%s' in '%s' if no process drives the run", lease->key,
			store_url(lease->store));
}

int lease_refused(const struct lease *lease, struct err **err)
{
	err_set(err, EXIT_UNREACHABLE,
		"the lease of run %s can be neither read nor acquired: '%s' in '%s' is unchanged, "
		"but a conditional write to it is refused (412)",
		lease->run, lease->key, store_url(lease->store));
	return err_hint(err, "keep the state in a store with conditional writes, such as Amazon "
			     "S3, or in a folder");
}

static bool is_ours(const struct lease *lease, const json_t *object)
{
	return js_is(object, "nonce", lease->nonce);
}

static void set_holder(struct lease *lease, const json_t *object)
{
	const char *host = js_str(object, "host");

	free(lease->holder);
	lease->holder =
		host ? mem_format("pid %lld on %s", (long long)js_int(object, "pid", 0), host)
		     : NULL;
}

enum swap_object {
	SWAP_UNKNOWN = -1, /* with an error */
	SWAP_OTHERS,       /* another process was faster */
	SWAP_OURS,
	SWAP_REFUSED, /* although the object is still the one to be replaced */
};

/* Judges the object that was found after a write of ours that is not in it. */
static enum swap_object classify_swap(struct lease *lease, const json_t *object, bool is_refused,
				      struct err **err)
{
	if (is_refused) {
		if (lease->refusals++ == 0)
			lease->refused_at = clock_mono_now();
		return SWAP_REFUSED;
	}
	lease->refusals = 0;
	if (object && is_damaged(object))
		return fail_damaged(lease, err);
	if (object && !is_ours(lease, object)) {
		err_freep(err);
		set_holder(lease, object);
		return SWAP_OTHERS;
	}
	if (*err)
		return SWAP_UNKNOWN;
	if (!object)
		return SWAP_OTHERS;
	/* Ours, of an earlier write with a lost answer: the tag is known now. */
	return err_set(err, EXIT_UNREACHABLE, "the lease in '%s' was written late",
		       store_url(lease->store));
}

/* Writes our object over the one that lease->tag names (`make`: only if absent). The object read
 * back decides, not the answer to the write: that may be lost although the write was done. */
static enum swap_object swap_object(struct lease *lease, bool make, struct err **err)
{
	struct mono before = clock_mono_now();
	AUTO(auto_free) char *body = our_object(lease, true, before);
	AUTO(auto_free) char *tag = mem_copy(lease->tag);
	AUTO(sb_release) struct sb text = SB_INIT;
	AUTO(err_freep) struct err *unread = NULL;
	json_auto_t *object = NULL;
	int written = make ? store_put_if_absent(lease->store, lease->key, body, strlen(body), err)
			   : store_replace_if_same(lease->store, lease->key, lease->tag, body,
						   strlen(body), err);
	int found = read_object(lease, &text, &object, &unread);
	bool is_same = make ? found == 0 : found > 0 && strcmp(tag, lease->tag) == 0;

	if (found > 0 && strcmp(text.text, body) == 0) {
		err_freep(err);
		lease->refusals = 0;
		lease->since = before;
		lease->next.ms = before.ms + lease->rules.renew_ms;
		return SWAP_OURS;
	}
	if (found < 0) {
		if (written >= 0)
			*err = TAKE(unread);
		return SWAP_UNKNOWN;
	}
	/* The write failed, and nothing has changed: nobody else was faster. */
	if (written < 0 && is_same)
		return SWAP_UNKNOWN;
	return classify_swap(lease, object, written == 0 && is_same, err);
}

/* State of the holder, as a foreign object tells it. */
enum holder { HOLDER_GONE, HOLDER_ALIVE, HOLDER_UNKNOWN };

static enum holder classify_holder(struct lease *lease, const json_t *object)
{
	AUTO(auto_free) char *place = our_scope();
	const char *theirs = js_str(object, "place");
	struct proc_id id = { .pid = (pid_t)js_int(object, "pid", 0),
			      .start_ticks = (uint64_t)js_int(object, "started", 0) };
	int64_t age = clock_mono_now().ms - js_int(object, "clock", 0);

	lease->process = (struct proc_id){ 0 };
	if (json_object_get(object, "held") && !js_bool(object, "held", true))
		return HOLDER_GONE;
	if (!theirs || !*place || strcmp(theirs, place) != 0)
		return HOLDER_UNKNOWN;
	snprintf(id.boot_id, sizeof id.boot_id, "%.36s", place);
	if (!proc_alive(&id))
		return HOLDER_GONE;
	lease->process = id;
	/* Fresh, and by a clock that is ours too: no need to see a renewal. */
	return age >= 0 && age < lease->rules.renew_ms ? HOLDER_ALIVE : HOLDER_UNKNOWN;
}

/* Returns how long the object must stay unchanged: the longer of the holder's limit and ours. */
static int64_t watch_limit_ms(const struct lease *lease, const json_t *object)
{
	int64_t theirs = js_int(object, "valid_ms", 0), ours = lease->rules.valid_ms;

	return theirs > ours && theirs <= WATCH_LIMIT_MAX_MS ? theirs : ours;
}

/* Watches a foreign object of an unknown holder: HOLDER_GONE once it has stayed unchanged for long
 * enough. `read_at` is from before it was read. */
static enum holder watch_object(struct lease *lease, const char *text, int64_t valid_ms,
				struct mono read_at, int64_t *ret_wait_ms)
{
	int64_t left, pause = lease->rules.renew_ms / 4;

	if (lease->seen && strcmp(lease->seen, text) != 0)
		return HOLDER_ALIVE; /* renewed during the watch */
	if (!lease->seen) {
		lease->seen = mem_copy(text);
		lease->seen_at = clock_mono_now();
	}
	left = valid_ms - (read_at.ms - lease->seen_at.ms);
	if (left <= 0)
		return HOLDER_GONE;
	*ret_wait_ms = left < pause ? left : pause;
	return HOLDER_UNKNOWN;
}

static int64_t refused_pause_ms(const struct lease *lease)
{
	int64_t ms = REFUSED_MS;

	for (int i = 1; i < lease->refusals && ms < REFUSED_MAX_MS; i++)
		ms *= 2;
	return ms < REFUSED_MAX_MS ? ms : REFUSED_MAX_MS;
}

/* Takes a lease that is free or has lost its holder. Returns 1 if taken, 0 to look again, -1. */
static int seize_lease(struct lease *lease, const json_t *old, int64_t *ret_wait_ms,
		       struct err **err)
{
	lease->epoch = js_int(old, "epoch", 0) + 1;
	lease->renewed = 0;
	*ret_wait_ms = 1;
	switch (swap_object(lease, old == NULL, err)) {
	case SWAP_OURS:
		lease->held = true;
		return 1;
	case SWAP_REFUSED: /* a stale read may show the old object for a moment */
		*ret_wait_ms = refused_pause_ms(lease);
		return 0;
	case SWAP_OTHERS:
		free(TAKE(lease->seen));
		return 0;
	case SWAP_UNKNOWN:
		break;
	}
	free(TAKE(lease->seen));
	return -1;
}

/* Finds the holder from the current object; NULL in `*ret` if absent. */
static int find_holder(struct lease *lease, json_t **ret, enum holder *ret_holder,
		       int64_t *ret_wait_ms, struct err **err)
{
	AUTO(sb_release) struct sb text = SB_INIT;
	struct mono read_at = clock_mono_now();
	int found = read_object(lease, &text, ret, err);

	*ret_holder = HOLDER_GONE;
	if (found <= 0)
		return found;
	if (is_damaged(*ret) && !lease->rules.over_damage)
		return fail_damaged(lease, err);
	set_holder(lease, *ret);
	if (!is_ours(lease, *ret))
		*ret_holder = classify_holder(lease, *ret);
	if (*ret_holder == HOLDER_UNKNOWN)
		*ret_holder = watch_object(lease, text.text, watch_limit_ms(lease, *ret), read_at,
					   ret_wait_ms);
	return 0;
}

int lease_object_check(struct lease *lease, struct err **err)
{
	json_auto_t *object = NULL;
	enum holder holder;
	int64_t wait_ms;

	if (find_holder(lease, &object, &holder, &wait_ms, err) < 0)
		return -1;
	if (holder == HOLDER_ALIVE)
		free(TAKE(lease->seen)); /* the next watch starts from here */
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
		return seize_lease(lease, object, ret_wait_ms, err);
	case HOLDER_ALIVE:
		return lease_busy(lease, err);
	case HOLDER_UNKNOWN:
		break;
	}
	return 0;
}

static int fail_lost(struct lease *lease, struct err **err)
{
	lease->held = false;
	return lease_busy(lease, err);
}

/* Sets the error for a lease that has expired, though no other process is known to have taken it:
 * the tag is kept, and as long as the object has it, the next renewal restores the lease. */
static int fail_late(const struct lease *lease, struct err **err)
{
	if (!*err)
		err_set(err, EXIT_UNREACHABLE, "'%s' has not answered", store_url(lease->store));
	err_code(err, EXIT_UNREACHABLE);
	return err_wrap(err, "could not renew the lease on run %s in time", lease->run);
}

int lease_object_keep(struct lease *lease, struct err **err)
{
	struct mono now = clock_mono_now();
	enum swap_object renewed = SWAP_UNKNOWN;

	if (!lease->held)
		return lease_busy(lease, err);
	if (now.ms < lease->next.ms)
		return lease_is_mine(lease) ? 0 : fail_late(lease, err);
	/* Twice, because after a lost answer the first try only finds out the state of the object.
	 * A damaged object has no holder: it is rewritten. */
	for (int i = 0; i < 2; i++) {
		err_freep(err);
		lease->renewed++;
		renewed = swap_object(lease, false, err);
		if (renewed >= 0 || !lease_is_mine(lease))
			break;
	}
	if (renewed == SWAP_OURS)
		return 0;
	if (renewed == SWAP_OTHERS)
		return fail_lost(lease, err);
	if (renewed == SWAP_REFUSED)
		lease_refused(lease, err);
	lease->next.ms = clock_mono_now().ms + lease->rules.renew_ms / 4;
	if (!lease_is_mine(lease))
		return fail_late(lease, err);
	/* No other process may take it for a while yet: try again soon. */
	err_freep(err);
	return 0;
}

void lease_object_release(struct lease *lease)
{
	AUTO(auto_free) char *body = our_object(lease, false, clock_mono_now());
	AUTO(err_freep) struct err *err = NULL;

	/* On failure a successor has to wait. */
	if (store_replace_if_same(lease->store, lease->key, lease->tag, body, strlen(body), &err) <
	    0)
		err_freep(&err);
}

bool lease_object_signal(const struct lease *lease, int signo)
{
	return lease->process.pid > 1 && proc_alive(&lease->process) &&
	       kill(lease->process.pid, signo) == 0;
}
