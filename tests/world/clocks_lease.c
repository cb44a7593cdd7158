/*
 * C2. Lease: at most 30 s between two renewals of a lease that is valid for 60 s, also while a
 * takeover reads gigabytes of log. Nobody acts without it.
 *
 * What counts as a renewal is the object in the store, as the world sees it: who wrote it, and
 * when. To act is to start or to stop a job. On a local disk with SQLite the lease is a lock, which
 * the kernel keeps: nothing is renewed there. A stop that a user has asked for needs no lease,
 * whoever carries it out: see jobs/run/beside.h.
 */
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/base/mem.h"
#include "jobs/base/text/js.h"
#include "tests/world/bucket.h"
#include "tests/world/clocks_rules.h"
#include "tests/world/clocks_time.h"
#include "tests/world/faults.h"
#include "tests/world/play.h"
#include "tests/world/rules.h"
#include "tests/world/tree.h"

#define LEASE "lease.json"

/* A driver that has looked at a clock so often since its lease was over knows it. */
#define CALLS_TO_KNOW 100

static struct {
	char text[1024];              /* the object, as it was seen last */
	const struct process *holder; /* who wrote it; NULL: nobody, or nobody that is known */
	int64_t written_ns;
	struct stretch since; /* the same, of the holder's time */
} lease;

/* Drivers that had it, and what became of that. */
#define DRIVERS_MAX 1024
static struct had {
	const struct process *who;
	bool over;      /* another has it, or its time is over */
	bool told;      /* a user has told it to stop the run */
	uint64_t calls; /* that it had made when that was seen */
} had[DRIVERS_MAX];
static size_t had_count;

static void reset(void)
{
	memset(&lease, 0, sizeof lease);
	had_count = 0;
}

/* The place of the state, as calls name it. */
static const char *const roots[STATE_KINDS] = {
	[STATE_FOLDER] = "/srv/user/state",
	[STATE_SHARE] = "/shared/state",
	[STATE_BUCKET] = "state",
};

/* The caller frees it; NULL: there is none. */
static char *lease_text(void)
{
	const char *root = roots[playing->setting.state], *there;
	AUTO(auto_free) char *path = NULL;

	if (!root)
		return NULL;
	path = mem_format("%s/runs/%s/" LEASE, root, playing->run);
	if (playing->setting.state != STATE_BUCKET)
		return tree_get(playing->hosts[0], path, NULL);
	there = bucket_get("bucket", path, NULL);
	return there ? mem_copy(there) : NULL;
}

static const struct process *holder_of(const json_t *object)
{
	const char *host = js_str(object, "host");

	if (!js_bool(object, "held", false) || !host)
		return NULL;
	for (const struct process *p = processes; p; p = p->next)
		if (p->state == PROCESS_ALIVE && p->pid == (pid_t)js_int(object, "pid", 0) &&
		    strcmp(p->machine->host, host) == 0 && fault_target_of(p) == TARGET_DRIVER)
			return p;
	return NULL;
}

static struct had *had_by(const struct process *who)
{
	for (size_t i = 0; i < had_count; i++)
		if (had[i].who == who)
			return &had[i];
	return NULL;
}

static void look_at_object(void)
{
	AUTO(auto_free) char *text = lease_text();
	json_auto_t *object = NULL;
	struct had *known;

	if (!text || strcmp(text, lease.text) == 0)
		return;
	snprintf(lease.text, sizeof lease.text, "%s", text);
	object = json_loads(text, 0, NULL);
	lease.holder = holder_of(object);
	lease.written_ns = now_ns;
	stretch_begin(&lease.since, lease.holder);
	known = lease.holder ? had_by(lease.holder) : NULL;
	if (known)
		known->over = false;
	else if (lease.holder && had_count < DRIVERS_MAX)
		had[had_count++].who = lease.holder;
}

/* Drivers that have lost it, or let it run out, by the clock of their machine. */
static void look(void)
{
	look_at_object();
	for (size_t i = 0; i < had_count; i++) {
		bool over = had[i].who != lease.holder ||
			    now_ns - lease.written_ns > figure_ns(C2_VALID);

		if (over && !had[i].over)
			had[i].calls = had[i].who->calls;
		had[i].over = over;
	}
}

static void on_second(const struct story *story)
{
	(void)story;
	look();
	if (faults_fill_disk()) /* it cannot be written */
		stretch_begin(&lease.since, lease.holder);
	if (lease.holder && lease.holder->state == PROCESS_ALIVE &&
	    stretch_ns(&lease.since) > figure_ns(C2_RENEWED))
		rule_breaks("C2", "the lease was renewed %.1f s ago",
			    (double)stretch_ns(&lease.since) / 1e9);
}

/* A refused renewal is tried again soon. A lease that cannot be written is refused at its folder,
 * too, or under the name that the file has first. */
static void on_refusal(const struct refusal *refusal)
{
	const char *root = roots[playing->setting.state];

	if (refusal->who == lease.holder && root && strstr(refusal->about, root))
		stretch_begin(&lease.since, refusal->who);
}

static void on_signal(const struct process *to, int signo)
{
	struct had *known = had_by(to);

	if (known && (signo == SIGINT || signo == SIGUSR1))
		known->told = true;
}

static void on_act(const struct process *who, const char *what)
{
	const struct had *known;

	if (fault_target_of(who) != TARGET_DRIVER || playing->setting.state == STATE_SQLITE)
		return;
	look();
	known = had_by(who);
	if (!known)
		rule_breaks("C2", "a driver %s a job and never had the lease", what);
	else if (known->over && !(known->told && strcmp(what, "stops") == 0) &&
		 who->calls - known->calls > CALLS_TO_KNOW)
		rule_breaks("C2", "a driver %s a job although its lease was over %d calls before",
			    what, (int)(who->calls - known->calls));
}

const struct clock_rule clock_lease = {
	.reset = reset,
	.on_second = on_second,
	.on_refusal = on_refusal,
	.on_act = on_act,
	.on_signal = on_signal,
};
