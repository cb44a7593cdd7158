/*
 * From a run's events to the state of its driver. Where the journal is long, most of
 * them need not be read: what they came to is kept beside them now and then.
 *
 * What is kept is the flow as it lies in memory. So only the very program that wrote it
 * uses it, and only if it is whole and of this run; anything else reads all events, and
 * is right too. Losing it costs time and nothing else.
 */
#include <link.h>
#include <string.h>

#include "jobs/base/hash.h"
#include "jobs/run/driver_inside.h"
#include "jobs/run/notify.h"

#define KEEP_EVERY 1000 /* events */
#define MAKER_MAX  32   /* bytes of a build id that count */
#define FORM       1    /* of struct kept */

struct kept {
	int64_t form;
	unsigned char maker[MAKER_MAX];
	char run[JOURNAL_RUN_MAX];
	int64_t progress_ms; /* UTC of driver.progress_at; 0: none */
	int64_t resume_step;
	bool continuity_known;
	struct flow flow;
	char sum[SHA256_HEX]; /* of all before */
};

/* The run has begun: from its plan come the rules that the flow decides by. */
static void adopt_plan(struct driver *driver, json_t *plan)
{
	struct flow_policy policy;

	json_incref(plan);
	json_decref(driver->plan);
	driver->plan = plan;
	plan_policy(plan, driver->run, &policy);
	flow_init(&driver->flow, &policy);
}

/* When, by the clock of this process, what another may have journalled was. */
static struct mono mono_of(struct utc at)
{
	struct mono now = mono_now();
	int64_t age = utc_now().ms - at.ms;

	if (age > 0)
		now.ms = age < now.ms ? now.ms - age : 0;
	return now;
}

void replay_take_in(struct driver *driver, const struct event *ev)
{
	if (ev->kind == EV_RUN_CREATED)
		adopt_plan(driver, ev->plan);
	flow_apply(&driver->flow, ev);
	notify_note(driver, ev);
	driver->seq_at = mono_now();
	if (ev->kind == EV_TRAIN_PROGRESS)
		driver->progress_at = mono_of(ev->at);
	if (ev->kind == EV_ATTEMPT_INTENDED) {
		driver->progress_at.ms = 0; /* its first step is news at once */
		driver->resume_step = EVENT_HAS(ev, step) ? ev->step : -1;
		driver->continuity_known = false;
	} else if (ev->kind == EV_TRAIN_CONTINUITY) {
		driver->continuity_known = true;
	}
}

/* ---- what is kept ---------------------------------------------------------------- */

static int find_build_id(struct dl_phdr_info *info, size_t size, void *arg)
{
	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const char *at = (const char *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
		const char *end = at + info->dlpi_phdr[i].p_memsz;

		while (info->dlpi_phdr[i].p_type == PT_NOTE && at + sizeof(ElfW(Nhdr)) <= end) {
			ElfW(Nhdr) note;
			const char *name = at + sizeof note, *text;

			memcpy(&note, at, sizeof note);
			text = name + ((note.n_namesz + 3) & ~3u);
			at = text + ((note.n_descsz + 3) & ~3u);
			if (at > end || note.n_type != NT_GNU_BUILD_ID || note.n_namesz != 4 ||
			    memcmp(name, ELF_NOTE_GNU, 4) != 0)
				continue;
			memcpy(arg, text, note.n_descsz < MAKER_MAX ? note.n_descsz : MAKER_MAX);
			return 1;
		}
	}
	return -1; /* the program comes first; no other object is looked at */
}

/* Which program this is, to the byte. False: it has no build id. */
static bool find_maker(unsigned char ret[MAKER_MAX])
{
	memset(ret, 0, MAKER_MAX);
	return dl_iterate_phdr(find_build_id, ret) > 0;
}

static void sum_of(const struct kept *kept, char sum[SHA256_HEX])
{
	sha256_hex(kept, offsetof(struct kept, sum), sum);
}

/* Whether these bytes are a state that this program kept of this run. */
static bool is_good(const struct driver *driver, const struct sb *bytes, struct kept *ret)
{
	unsigned char maker[MAKER_MAX];
	char sum[SHA256_HEX];

	if (bytes->len != sizeof *ret || !find_maker(maker))
		return false;
	memcpy(ret, bytes->text, sizeof *ret);
	sum_of(ret, sum);
	return ret->form == FORM && memcmp(ret->maker, maker, sizeof maker) == 0 &&
	       memcmp(ret->sum, sum, sizeof sum) == 0 &&
	       strncmp(ret->run, driver->run, sizeof ret->run) == 0;
}

/* The first event: the plan, and the seed by which a run is told from one that had its
 * id before. */
struct first {
	struct driver *driver;
	int64_t seed;
};

static int read_first(void *arg, const struct event *ev, json_t *row, struct err **err)
{
	struct first *first = arg;

	(void)row;
	(void)err;
	if (ev && ev->kind == EV_RUN_CREATED) {
		adopt_plan(first->driver, ev->plan);
		first->seed = ev->seed;
	}
	return 1;
}

/* Take the driver to where the kept state is; it stays at the beginning if there is none. */
static int take_up(struct driver *driver, struct err **err)
{
	AUTO(sb_release) struct sb bytes = SB_INIT;
	AUTO(err_freep) struct err *ignored = NULL;
	AUTO(auto_free) struct kept *kept = mem_alloc(sizeof *kept);
	struct first first = { driver, -1 };
	int64_t seq = 0;

	if (journal_kept(driver->journal, driver->run, &seq, &bytes, &ignored) <= 0 || seq <= 0 ||
	    !is_good(driver, &bytes, kept))
		return 0;
	if (journal_read(driver->journal, driver->run, 1, read_first, &first, err) < 0)
		return -1;
	if (!driver->plan || first.seed != kept->flow.seed)
		return 0;
	driver->flow = kept->flow;
	driver->seq = driver->kept_seq = seq;
	driver->seq_at = mono_now();
	driver->progress_at.ms = 0;
	if (kept->progress_ms > 0)
		driver->progress_at = mono_of((struct utc){ kept->progress_ms });
	driver->resume_step = kept->resume_step;
	driver->continuity_known = kept->continuity_known;
	return 0;
}

void replay_keep(struct driver *driver)
{
	AUTO(err_freep) struct err *ignored = NULL;
	AUTO(auto_free) struct kept *kept = NULL;

	/* Who is still to be told of something is not kept: then later. */
	if (driver->seq - driver->kept_seq < KEEP_EVERY || notify_pending(driver))
		return;
	driver->kept_seq = driver->seq; /* what cannot be kept is tried again much later */
	kept = mem_zero(1, sizeof *kept);
	kept->form = FORM;
	if (!find_maker(kept->maker))
		return;
	snprintf(kept->run, sizeof kept->run, "%s", driver->run);
	if (driver->progress_at.ms > 0)
		kept->progress_ms = utc_now().ms - (mono_now().ms - driver->progress_at.ms);
	kept->resume_step = driver->resume_step;
	kept->continuity_known = driver->continuity_known;
	memcpy(&kept->flow, &driver->flow, sizeof kept->flow);
	sum_of(kept, kept->sum);
	(void)!journal_keep(driver->journal, driver->run, driver->seq, kept, sizeof *kept,
			    &ignored);
}

/* ---- events ------------------------------------------------------------------------ */

static int replay_event(void *arg, const struct event *ev, json_t *row, struct err **err)
{
	struct driver *driver = arg;

	(void)err;
	driver->seq = (int64_t)js_int(row, "seq", driver->seq);
	if (!ev)
		return 0;
	/* Another driver took over while we thought that we drive. */
	if (ev->kind == EV_DRIVER_TOOK_OVER && driver->live)
		driver->stood_down = true;
	replay_take_in(driver, ev);
	if (driver->live && driver->options->on_event)
		driver->options->on_event(driver->options->arg, ev, row);
	return 0;
}

int replay_rest(struct driver *driver, struct err **err)
{
	return journal_read(driver->journal, driver->run, driver->seq + 1, replay_event, driver,
			    err);
}

int replay_all(struct driver *driver, struct err **err)
{
	if (take_up(driver, err) < 0 || replay_rest(driver, err) < 0)
		return -1;
	replay_keep(driver);
	return 0;
}
