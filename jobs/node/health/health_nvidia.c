/*
 * GPUs of this machine: how many there are, who is on them, which errors they have counted, and
 * what the kernel says of them. See health.h.
 *
 * XIDs that mean a GPU is broken or must be reset, as opposed to what a program did wrong: "XID
 * Errors" of NVIDIA's deployment guides. A page (before Ampere) or row (from then on) that waits to
 * be taken out of use is in use until the next reset: "Dynamic Page Retirement" and "GPU Memory
 * Error Management" of the same. Exit statuses of nvidia-smi: its manual page.
 */
#include <stdlib.h>
#include <string.h>

#include "jobs/base/fs/fs.h"
#include "jobs/base/text/text.h"
#include "jobs/node/health/health_internal.h"
#include "jobs/node/health/health_smi.h"

#define SMI        "nvidia-smi"
#define SMI_MS     60000 /* nvidia-smi asks each GPU; more is a hang */
#define INFOROM    14 /* exit status of nvidia-smi: the figures are there, an infoROM is corrupted */
#define LOG_MS     20000
#define FIELDS_MAX 8
#define SHOWN_MAX  3 /* lines of the kernel that are shown */

#define UNCORRECTED "ecc.errors.uncorrected.volatile.total"
#define RETIRED     "retired_pages.pending"
#define REMAPPED    "remapped_rows.pending"
#define FAILED      "remapped_rows.failure"

/* ---- calls of nvidia-smi ------------------------------------------------------------- */

struct answer {
	json_t *rows; /* owned; NULL: it gave none that can be read */
	char *words;  /* owned: why, of no rows */
	bool hung;    /* and had the time not to be */
	int status;
};

static void answer_release(struct answer *answer)
{
	json_decref(answer->rows);
	free(answer->words);
	*answer = (struct answer){ 0 };
}

/* Runs a program until it ends, or has taken `limit_ms` or all the time there is. Returns false
 * with words if it was not run to its end. */
static bool run(struct checkup *c, char *const *argv, int64_t limit_ms, struct tool_result *result,
		struct answer *ret)
{
	AUTO(err_freep) struct err *why = NULL;
	struct mono from = clock_mono_now(), end = { from.ms + limit_ms };

	if (end.ms > c->end.ms)
		end = c->end;
	if (health_tool_run(&c->env, c->folder, argv, end, result, &why) < 0) {
		ret->words = mem_format("%s: %s", fs_basename(argv[0]), why->message);
		return false;
	}
	ret->status = result->status;
	if (!result->hung)
		return true;
	ret->hung = end.ms - from.ms >= limit_ms || health_checkup_had_time(c, from, end);
	ret->words = ret->hung ? mem_format("%s hangs, stopped after %lld s", fs_basename(argv[0]),
					    (long long)(end.ms - from.ms) / 1000)
			       : mem_format("no time left for %s", fs_basename(argv[0]));
	return false;
}

/* Leaves the field that the driver does not know out of the list. Returns false if there is none.
 */
static bool leave_out(const struct tool_result *result, const char *fields[], size_t *count)
{
	AUTO(auto_free) char *out = health_smi_unknown(result->out.text, result->out.len);
	AUTO(auto_free) char *err = health_smi_unknown(result->err.text, result->err.len);
	const char *name = out ? out : err;

	for (size_t i = 0; name && i < *count; i++)
		if (strcmp(fields[i], name) == 0) {
			memmove(&fields[i], &fields[i + 1], (--*count - i) * sizeof *fields);
			return *count > 0;
		}
	return false;
}

/* A driver may name the GPU that it lost in front of the rows of the others. */
static char *last_words(const struct tool_result *result, const char *aside)
{
	AUTO(sb_release) struct sb words = SB_INIT_MAX(300);

	if (!aside || result->err.len > 0)
		return health_tool_last_words(result);
	text_escape(&words, aside, strlen(aside), false);
	return sb_take(&words);
}

/* Asks for fields, of which the first is known to each driver; those that this one does not know
 * are missing in the rows. The list is NULL-terminated. */
static void ask(struct checkup *c, const char *option, const char *const *wanted,
		struct answer *ret)
{
	AUTO(auto_free) char *program = health_tool_find(&c->env, SMI);
	const char *fields[FIELDS_MAX];
	size_t count = 0;

	*ret = (struct answer){ 0 };
	for (; wanted[count]; count++)
		fields[count] = wanted[count];
	if (!program)
		ret->words = mem_copy(SMI " not found");
	while (!ret->rows && !ret->words) {
		AUTO(health_tool_release) struct tool_result result = { 0 };
		AUTO(sb_release) struct sb query = SB_INIT;
		AUTO(auto_free) char *aside = NULL;
		AUTO(err_freep) struct err *why = NULL;
		char *argv[] = { program, NULL, (char[]){ "--format=csv" }, NULL };

		sb_addf(&query, "--%s=", option);
		for (size_t i = 0; i < count; i++)
			sb_addf(&query, "%s%s", i > 0 ? "," : "", fields[i]);
		argv[1] = query.text;
		if (!run(c, argv, SMI_MS, &result, ret) || leave_out(&result, fields, &count))
			continue;
		ret->rows =
			health_smi_parse(result.out.text, result.out.len, fields[0], &aside, &why);
		if (ret->rows && (result.status == 0 || result.status == INFOROM))
			return;
		if (result.status == 0)
			ret->words = mem_copy(why->message);
		else
			ret->words = last_words(&result, ret->rows ? aside : NULL);
	}
}

/* ---- devices ------------------------------------------------------------------------- */

/* Counts the GPUs by their device files if nvidia-smi shows nothing; `why`: the reason. */
static void count_files(struct checkup *c, const char *why)
{
	int found = fs_count_numbered("/dev", "nvidia");

	if (found <= 0)
		health_checkup_say(c, "devices", ROW_UNCHECKED, "%s, and /dev has no nvidia0", why);
	else if (!health_say_devices(c, "/dev", found))
		health_checkup_say(c, "devices", ROW_OK, "%d GPUs (by /dev: %s)", found, why);
}

/* Returns the number of the GPU with this id. */
static int64_t number_of(const json_t *gpus, const char *uuid)
{
	const json_t *gpu;
	int64_t number = -1;
	size_t i;

	json_array_foreach (gpus, i, gpu)
		if (uuid && js_is(gpu, "uuid", uuid))
			(void)!health_smi_count(js_str(gpu, "index"), &number);
	return number;
}

/* Says what the driver shows in place of a figure. */
static void say_silent(struct checkup *c, const char *check, const char *shown, const char *of)
{
	AUTO(sb_release) struct sb safe = SB_INIT_MAX(100);

	text_escape(&safe, shown, strlen(shown), false);
	health_checkup_say(c, check, ROW_UNCHECKED, SMI " shows %s for %s", safe.text, of);
}

/* Nothing of ours is on them yet: whoever is, is foreign. */
static void check_users(struct checkup *c, const json_t *gpus)
{
	static const char *const fields[] = { "gpu_uuid", "pid", "process_name", NULL };
	AUTO(answer_release) struct answer apps = { 0 };
	json_auto_t *processes = json_array();
	const char *silent = NULL;
	const json_t *app;
	int64_t pid;
	size_t i;

	ask(c, "query-compute-apps", fields, &apps);
	if (apps.words) {
		health_checkup_say(c, "processes", apps.hung ? ROW_SICK : ROW_UNCHECKED, "%s",
				   apps.words);
		return;
	}
	json_array_foreach (apps.rows, i, app) {
		json_t *one;

		/* A GPU that does not tell its processes has a row all the same. */
		if (!health_smi_count(js_str(app, "pid"), &pid)) {
			silent = js_str(app, "pid");
			continue;
		}
		one = json_object();
		js_put(one, "device", json_integer(number_of(gpus, js_str(app, "gpu_uuid"))));
		js_put(one, "pid", json_integer(pid));
		js_put_str(one, "command", js_str(app, "process_name"));
		json_array_append_new(processes, one);
	}
	health_say_processes(c, processes);
	if (silent && json_array_size(processes) == 0)
		say_silent(c, "processes", silent, "the process of a GPU");
}

void health_nvidia_devices(struct checkup *c)
{
	static const char *const fields[] = { "index", "uuid", "name", NULL };
	AUTO(answer_release) struct answer gpus = { 0 };
	int found;

	ask(c, "query-gpu", fields, &gpus);
	found = (int)json_array_size(gpus.rows);
	if (gpus.hung) {
		health_checkup_say(c, "devices", ROW_SICK, "%s", gpus.words);
	} else if (gpus.words && gpus.status != 0) {
		health_checkup_say(c, "devices", ROW_SICK, SMI " ended with %d: %s", gpus.status,
				   gpus.words);
	} else if (gpus.words) {
		count_files(c, gpus.words);
	} else {
		const char *name = js_str(json_array_get(gpus.rows, 0), "name");

		js_put(c->told, "cores", json_integer(found));
		c->cores = found;
		if (gpus.status == INFOROM)
			health_checkup_say(c, "devices", ROW_WARNED,
					   SMI " says that the infoROM of a GPU is corrupted");
		if (!health_say_devices(c, SMI, found) && gpus.status != INFOROM)
			health_checkup_say(c, "devices", found > 0 ? ROW_OK : ROW_SICK,
					   "%d GPUs%s%s", found, name ? ", " : "",
					   name ? name : "");
		check_users(c, gpus.rows);
	}
	c->hangs = gpus.hung;
}

/* ---- counters ------------------------------------------------------------------------ */

static const struct gpu_counter {
	const char *column, *check, *words;
} counters[] = {
	{ UNCORRECTED, "counters", "errors that were not corrected: have it reset, or replaced" },
	{ RETIRED, "repairs", "pages of memory that wait to be retired: have it reset" },
	{ REMAPPED, "repairs", "rows of memory that wait to be remapped: have it reset" },
	{ FAILED, "repairs", "rows of memory that could not be remapped: have it replaced" },
};

/* Says what is wrong by the counters of a check. Returns the number of GPUs for which the driver
 * shows none of them; *ret_shown: what it shows of such a one instead, borrowed. */
static int look_at(struct checkup *c, const json_t *gpus, const char *check, const char **ret_shown)
{
	int silent = 0;
	const json_t *gpu;
	size_t i, n;

	json_array_foreach (gpus, i, gpu) {
		bool is_told = false;

		for (n = 0; n < STK_LENGTH(counters); n++) {
			const char *shown = js_str(gpu, counters[n].column);
			const char *broken = health_smi_broken(shown);
			int64_t count;

			if (strcmp(counters[n].check, check) != 0)
				continue;
			*ret_shown = shown ? shown : *ret_shown;
			/* Said once: the first of the counters has a check to itself. */
			if (broken && n == 0)
				health_checkup_say(c, check, ROW_SICK,
						   SMI " says of GPU %zu: %s; have the machine "
						       "restarted, or replaced",
						   i, broken);
			if (!health_smi_count(shown, &count))
				continue;
			/* A count of failed repairs that is 0 does not say that no repair waits. */
			is_told |= strcmp(counters[n].column, FAILED) != 0;
			if (count > 0)
				health_checkup_say(c, check, ROW_SICK, "GPU %zu has %s%s%s", i,
						   count > 1 ? shown : "", count > 1 ? " " : "",
						   counters[n].words);
		}
		silent += !is_told;
	}
	return silent;
}

static void check_counters(struct checkup *c, const json_t *gpus, const char *check,
			   const char *none)
{
	size_t before = json_array_size(c->rows), count = json_array_size(gpus);
	const char *shown = NULL;
	int silent = look_at(c, gpus, check, &shown);
	AUTO(auto_free) char *of = mem_format("%d of %zu GPUs", silent, count);

	if (silent > 0)
		say_silent(c, check, shown ? shown : "nothing", of);
	else if (json_array_size(c->rows) == before)
		health_checkup_say(c, check, ROW_OK, "%zu GPUs without %s", count, none);
}

/* Drivers that do not tell it among the figures of a GPU have a query of its own for it, with a row
 * for each GPU in the same order. */
static void add_remapped(struct checkup *c, json_t *gpus)
{
	static const char *const fields[] = { "gpu_uuid", REMAPPED, FAILED, NULL };
	AUTO(answer_release) struct answer more = { 0 };
	json_t *row, *gpu;
	size_t i;

	if (json_object_get(json_array_get(gpus, 0), REMAPPED))
		return;
	ask(c, "query-remapped-rows", fields, &more);
	if (json_array_size(more.rows) != json_array_size(gpus))
		return;
	json_array_foreach (more.rows, i, row) {
		gpu = json_array_get(gpus, i);
		if (js_str(row, "gpu_uuid") && js_is(gpu, "uuid", js_str(row, "gpu_uuid")))
			json_object_update_missing(gpu, row);
	}
}

/* ---- the kernel's log ---------------------------------------------------------------- */

static const int broken[] = { 48, 61, 62, 64, 74, 79, 94, 95, 119, 120, 145 };

/* Returns the XID of "NVRM: Xid (PCI:0000:b3:00): 79, pid=…", -1 for another line. */
static int xid_of(const char *line)
{
	const char *at = strstr(line, "NVRM: Xid (");

	at = at ? strstr(at, "): ") : NULL;
	return at ? (int)strtol(at + 3, NULL, 10) : -1;
}

static bool is_broken(int xid)
{
	for (size_t i = 0; i < STK_LENGTH(broken); i++)
		if (broken[i] == xid)
			return true;
	return false;
}

static void read_log(struct checkup *c, const struct sb *log)
{
	AUTO(auto_free) char *copy = mem_copy_n(log->text, log->len);
	AUTO(sb_release) struct sb words = SB_INIT_MAX(1000);
	int found = 0;
	char *save = NULL;

	for (char *line = strtok_r(copy, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		if (is_broken(xid_of(line)) && ++found <= SHOWN_MAX) {
			const char *from = strstr(line, "NVRM: ");

			sb_adds(&words, found > 1 ? "; " : "");
			text_escape(&words, from, strlen(from), false);
		}
	if (found == 0)
		health_checkup_say(c, "xid", ROW_OK, "the kernel reports no broken GPU");
	else
		health_checkup_say(c, "xid", ROW_SICK,
				   "the kernel reports %d since it started: %s; have the machine "
				   "restarted, or replaced",
				   found, words.text);
}

/* Only root may read the log on many machines, and in most containers nobody. */
static void check_log(struct checkup *c)
{
	AUTO(auto_free) char *program = health_tool_find(&c->env, "dmesg");
	AUTO(health_tool_release) struct tool_result result = { 0 };
	AUTO(answer_release) struct answer answer = { 0 };
	char *argv[] = { program, NULL };

	if (!program) {
		health_checkup_say(c, "xid", ROW_UNCHECKED, "dmesg not found");
	} else if (!run(c, argv, LOG_MS, &result, &answer)) {
		health_checkup_say(c, "xid", ROW_UNCHECKED, "%s", answer.words);
	} else if (result.status != 0 || result.out.len == 0) {
		answer.words = health_tool_last_words(&result);
		health_checkup_say(c, "xid", ROW_UNCHECKED, "the kernel's log cannot be read: %s",
				   answer.words);
	} else {
		read_log(c, &result.out);
	}
}

static void ask_counters(struct checkup *c)
{
	static const char *const fields[] = { "index",  "uuid", UNCORRECTED, RETIRED,
					      REMAPPED, FAILED, NULL };
	AUTO(answer_release) struct answer gpus = { 0 };

	ask(c, "query-gpu", fields, &gpus);
	if (gpus.words || json_array_size(gpus.rows) == 0) {
		const char *why = gpus.words ? gpus.words : "no GPU to ask";

		health_checkup_say(c, "counters", gpus.hung ? ROW_SICK : ROW_UNCHECKED, "%s", why);
		health_checkup_say(c, "repairs", ROW_UNCHECKED, "%s", why);
	} else {
		add_remapped(c, gpus.rows);
		check_counters(c, gpus.rows, "counters", "uncorrected errors");
		check_counters(c, gpus.rows, "repairs", "pages or rows that wait");
	}
}

void health_nvidia_counters(struct checkup *c)
{
	if (!c->hangs)
		ask_counters(c);
	check_log(c);
}
