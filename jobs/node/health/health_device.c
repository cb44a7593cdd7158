/* Checks of this machine: space, clock, Neuron devices and their counters. See health.h. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

#include "jobs/base/fs/fs.h"
#include "jobs/base/text/text.h"
#include "jobs/node/health/health_internal.h"
#include "jobs/node/health/health_parse.h"

#define DISK_LEAST    ((uint64_t)1 << 30)   /* bytes that a command must find free */
#define MEMORY_LEAST  ((uint64_t)256 << 20) /* bytes of memory that must be available */
#define CLOCK_SKEW_MS 30000 /* distance from the workspace's clock that is reported */
#define SYSFS         "/sys/devices/virtual/neuron_device"
#define SYSFS_ENV     "NEURON_SYSFS_ROOT"
#define COUNTER_BYTES 64
#define LS_MS         60000 /* neuron-ls opens each device; more is a hang */

/* ---- space and time ------------------------------------------------------------- */

static void check_disk(struct checkup *c)
{
	AUTO(auto_free) char *text = NULL;
	struct statvfs fs;
	uint64_t room;

	if (statvfs(c->config->dir, &fs) < 0) {
		health_checkup_say(c, "disk", ROW_UNCHECKED,
				   "cannot read the free space of '%s': %s", c->config->dir,
				   strerror(errno));
		return;
	}
	room = (uint64_t)fs.f_bavail * fs.f_frsize;
	text = text_format_bytes(room);
	if (room < DISK_LEAST)
		health_checkup_say(c, "disk", ROW_SICK, "only %s are free in '%s'", text,
				   c->config->dir);
	else
		health_checkup_say(c, "disk", ROW_OK, "%s free", text);
}

/* Reads MemAvailable of proc(5), in bytes. Returns false if it is not known. */
static bool memory_left(uint64_t *ret)
{
	AUTO(auto_fclose) FILE *file = fopen("/proc/meminfo", "re");
	char line[256];
	unsigned long long kib;

	while (file && fgets(line, sizeof line, file))
		if (sscanf(line, "MemAvailable: %llu kB", &kib) == 1) {
			*ret = kib << 10;
			return true;
		}
	return false;
}

static void check_memory(struct checkup *c)
{
	AUTO(auto_free) char *text = NULL;
	uint64_t left;

	if (!memory_left(&left)) {
		health_checkup_say(c, "memory", ROW_UNCHECKED, "/proc/meminfo has no MemAvailable");
		return;
	}
	text = text_format_bytes(left);
	if (left < MEMORY_LEAST)
		health_checkup_say(c, "memory", ROW_SICK, "only %s of memory are left", text);
	else
		health_checkup_say(c, "memory", ROW_OK, "%s available", text);
}

/* Compares with the clock of the workspace: an object written now has that clock's time. */
static void check_clock(struct checkup *c)
{
	AUTO(auto_free) char *key = agent_config_node_key(c->config, HEALTH_FILE);
	AUTO(err_freep) struct err *why = NULL;
	AUTO(auto_free) char *text = NULL;
	struct utc before = clock_utc_now();
	struct store_object object;
	int64_t clock_skew;

	if (health_tell_own(c, "begun", &why) < 0 ||
	    store_stat(c->store, key, &object, &why) <= 0) {
		health_checkup_say(c, "clock", ROW_UNCHECKED,
				   "the time of the workspace is not known%s%s", why ? ": " : "",
				   why ? why->message : "");
		return;
	}
	clock_skew = before.ms - object.modified.ms;
	text = text_format_duration(clock_skew < 0 ? -clock_skew : clock_skew);
	if (clock_skew > CLOCK_SKEW_MS || clock_skew < -CLOCK_SKEW_MS)
		health_checkup_say(c, "clock", ROW_WARNED,
				   "the clock is %s %s that of the workspace", text,
				   clock_skew < 0 ? "behind" : "ahead of");
	else
		health_checkup_say(c, "clock", ROW_OK, "%s from the workspace's", text);
}

void health_check_place(struct checkup *c)
{
	check_disk(c);
	check_memory(c);
	check_clock(c);
}

/* ---- devices --------------------------------------------------------------------- */

void health_say_processes(struct checkup *c, const json_t *processes)
{
	AUTO(sb_release) struct sb words = SB_INIT;
	const json_t *one;
	size_t i;

	if (json_array_size(processes) == 0)
		return;
	json_array_foreach (processes, i, one) {
		const char *command = js_str(one, "command");
		int64_t device = js_int(one, "device", -1);

		sb_adds(&words, i ? ", " : "");
		if (device >= 0)
			sb_addf(&words, "device %lld is", (long long)device);
		else
			sb_adds(&words, "a device that is not listed is");
		sb_addf(&words, " in use by process %lld", (long long)js_int(one, "pid", 0));
		if (command) {
			sb_adds(&words, " (");
			text_escape(&words, command, strlen(command), false);
			sb_adds(&words, ")");
		}
	}
	health_checkup_say(c, "processes", ROW_SICK, "%s", words.text);
}

/* A queue may give a larger machine. */
bool health_say_devices(struct checkup *c, const char *who, int found)
{
	const char *noun = c->accelerator->noun;
	int devices = (int)c->config->order->devices;

	js_put(c->told, "devices", json_integer(found));
	if (devices == 0 || found == devices)
		return false;
	if (found < devices)
		health_checkup_say(c, "devices", ROW_SICK, "%s shows %d of %d %ss", who, found,
				   devices, noun);
	else
		health_checkup_say(c, "devices", ROW_WARNED, "%s shows %d %ss instead of %d", who,
				   found, noun, devices);
	return true;
}

static void check_device_list(struct checkup *c, const struct neuron_ls *ls)
{
	int devices = (int)c->config->order->devices;
	int cores = (int)c->config->order->cores;
	bool said = health_say_devices(c, "neuron-ls", ls->devices);

	js_put(c->told, "cores", json_integer(ls->cores));
	if (!said && ls->devices == 0)
		health_checkup_say(c, "devices", ROW_SICK, "neuron-ls shows no Neuron device");
	else if (!said && devices > 0 && cores > 0 && ls->cores > 0 && ls->cores != cores)
		health_checkup_say(c, "devices", ROW_WARNED,
				   "%d devices, but %d cores instead of %d", ls->devices, ls->cores,
				   cores);
	else if (!said)
		health_checkup_say(c, "devices", ROW_OK, "%d devices with %d cores", ls->devices,
				   ls->cores);
	if (ls->cores > 0)
		c->cores = ls->cores;
	health_say_processes(c, ls->processes);
}

static const char *sysfs_root(const struct checkup *c)
{
	const char *root = command_env_get(&c->env, SYSFS_ENV);

	return root && *root ? root : SYSFS;
}

/* Counts the devices by the kernel if neuron-ls shows nothing; `why`: the reason for that. */
static void count_devices(struct checkup *c, const char *why)
{
	int found = fs_count_numbered(sysfs_root(c), "neuron");

	if (found < 0)
		health_checkup_say(c, "devices", ROW_UNCHECKED, "%s, and '%s' is missing too", why,
				   sysfs_root(c));
	else if (!health_say_devices(c, "the kernel", found))
		health_checkup_say(c, "devices", ROW_OK, "%d devices (by the kernel: %s)", found,
				   why);
}

static void read_devices(struct checkup *c, const struct tool_result *result)
{
	AUTO(health_neuron_ls_release) struct neuron_ls ls = { 0 };
	AUTO(err_freep) struct err *why = NULL;
	AUTO(auto_free) char *words = NULL;

	if (health_neuron_ls_parse(result->out.text, result->out.len, &ls, &why) == 0) {
		check_device_list(c, &ls);
		return;
	}
	words = mem_format("cannot read the output of neuron-ls: %s", why->message);
	count_devices(c, words);
}

void health_neuron_devices(struct checkup *c)
{
	AUTO(auto_free) char *program = health_tool_find(&c->env, "neuron-ls");
	AUTO(health_tool_release) struct tool_result result = { 0 };
	AUTO(err_freep) struct err *why = NULL;
	AUTO(auto_free) char *words = NULL;
	char *argv[] = { program, (char[]){ "-j" }, NULL };
	struct mono from = clock_mono_now(), end = { from.ms + LS_MS };

	if (!program) {
		count_devices(c, "neuron-ls not found");
		return;
	}
	if (end.ms > c->end.ms)
		end = c->end;
	if (health_tool_run(&c->env, c->folder, argv, end, &result, &why) < 0) {
		words = mem_format("neuron-ls: %s", why->message);
		count_devices(c, words);
		return;
	}
	words = health_tool_last_words(&result);
	if (result.hung && end.ms - from.ms < LS_MS && !health_checkup_had_time(c, from, end))
		count_devices(c, "no time left for neuron-ls");
	else if (result.hung)
		health_checkup_say(c, "devices", ROW_SICK, "neuron-ls hangs, stopped after %lld s",
				   (long long)(end.ms - from.ms) / 1000);
	else if (result.status != 0)
		health_checkup_say(c, "devices", ROW_SICK, "neuron-ls ended with %d: %s",
				   result.status, words);
	else
		read_devices(c, &result);
}

/* ---- counters --------------------------------------------------------------------- */

struct counter {
	const char *path; /* beneath a device's folder */
	const char *words;
	bool reload; /* a new load of the driver cures it; else the device is broken */
};

static const struct counter counters[] = {
	{ "stats/hardware/mem_ecc_uncorrected", "uncorrected errors in its memory", false },
	{ "stats/hardware/sram_ecc_uncorrected", "uncorrected errors in its SRAM", false },
	{ "stats/hardware/mem_ecc_repairable_uncorrected",
	  "uncorrected errors in its memory that a new load of the driver repairs", true },
};

/* Reads a file with a number, or the file "total" of a folder. Returns false if there is none. */
static bool read_counter(const char *path, unsigned long long *ret)
{
	AUTO(auto_free) char *total = fs_join(path, "total");
	AUTO(auto_fclose) FILE *file = fopen(fs_is_dir(path) ? total : path, "re");
	char text[COUNTER_BYTES];

	return file && fgets(text, sizeof text, file) && sscanf(text, "%20llu", ret) == 1;
}

/* Returns the number of counters that the device has. */
static int check_device(struct checkup *c, const char *device)
{
	int found = 0;

	for (size_t i = 0; i < STK_LENGTH(counters); i++) {
		AUTO(auto_free)
		char *path = mem_format("%s/%s/%s", sysfs_root(c), device, counters[i].path);
		unsigned long long count;

		if (!read_counter(path, &count))
			continue;
		found++;
		if (count > 0)
			health_checkup_say(c, "counters", ROW_SICK, "device %s has %llu %s%s",
					   device + 6, count, counters[i].words,
					   counters[i].reload ? "" : ": have it replaced");
	}
	return found;
}

void health_neuron_counters(struct checkup *c)
{
	DIR *dir = opendir(sysfs_root(c));
	bool fine = !c->sick;
	struct dirent *entry;
	int found = 0;

	while (dir && (entry = readdir(dir)))
		if (strncmp(entry->d_name, "neuron", 6) == 0 && entry->d_name[6] >= '0' &&
		    entry->d_name[6] <= '9')
			found += check_device(c, entry->d_name);
	if (dir)
		closedir(dir);
	if (found == 0)
		health_checkup_say(c, "counters", ROW_UNCHECKED, "'%s' shows none", sysfs_root(c));
	else if (fine && !c->sick)
		health_checkup_say(c, "counters", ROW_OK,
				   "%d counters of uncorrected errors are zero", found);
}
