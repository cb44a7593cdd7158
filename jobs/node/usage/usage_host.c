/* Reads what the host does: see usage_host.h. */
#include "jobs/node/usage/usage_host.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "jobs/base/auto.h"
#include "jobs/base/mem.h"
#include "jobs/base/sb.h"

#define TEXT_MAX      ((size_t)128 << 10)
#define PROCESSES_MAX 32768
#define DEEP_MAX      64    /* generations between a process and the agent */
#define CLOSE_MAX     1024  /* processes of the command that are looked at closely */
#define TICKS         100.0 /* a second: USER_HZ, by which /proc counts on every machine */
#define WORKS         3.0   /* % of the time from which on a loader works */
#define LAUNCHER      0.02  /* of its children's CPU time: less, and it has only started them */
#define MEAN_SECONDS  20.0
#define MIB           1048576.0

struct usage_process {
	pid_t pid, parent;
	uint64_t started, ticks;  /* CPU time of all its threads */
	uint64_t run_ns, wait_ns; /* of its main thread; 0: not known */
	double pages;
	bool is_ours;
	double cpu, busy;           /* % of the time since the last reading; NAN: not known */
	double mean_cpu, mean_busy; /* the same over about MEAN_SECONDS */
};

void usage_readings_add(struct usage_readings *readings, size_t figure, double value)
{
	if (readings->count < STK_LENGTH(readings->list) && isfinite(value))
		readings->list[readings->count++] = (struct usage_reading){ figure, value };
}

/* ---- files ---- */

/* Reads a file beneath proc, up to its room. Returns its text, or NULL. */
static char *read_text(struct usage_host *host, const char *path)
{
	AUTO(auto_close) int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t len = 0;
	ssize_t got = 0;

	while (fd >= 0 && len < TEXT_MAX && (got = read(fd, host->text + len, TEXT_MAX - len)) > 0)
		len += (size_t)got;
	host->text[len] = '\0';
	return fd >= 0 && got >= 0 && len > 0 ? host->text : NULL;
}

static char *read_file(struct usage_host *host, const char *name)
{
	char path[128];

	snprintf(path, sizeof path, "%s/%s", host->proc, name);
	return read_text(host, path);
}

static char *read_of(struct usage_host *host, pid_t pid, const char *name)
{
	char path[128];

	snprintf(path, sizeof path, "%s/%ld/%s", host->proc, (long)pid, name);
	return read_text(host, path);
}

/* Returns the number behind the word that begins a line; NAN: there is none. */
static double number_after(const char *text, const char *word)
{
	size_t len = strlen(word);

	for (; text; text = strchr(text, '\n') ? strchr(text, '\n') + 1 : NULL)
		if (strncmp(text, word, len) == 0 && strchr(" :\t", text[len]))
			return strtod(text + len + (text[len] == ':'), NULL);
	return NAN;
}

/* ---- the node ---- */

static double count_usable(struct usage_host *host)
{
	cpu_set_t cpus;
	double usable = sched_getaffinity(0, sizeof cpus, &cpus) == 0 ? CPU_COUNT(&cpus) : 1;
	/* A container's quota: "QUOTA PERIOD", or "max PERIOD"
	 * (Documentation/admin-guide/cgroup-v2). */
	const char *limit = read_text(host, "/sys/fs/cgroup/cpu.max");
	double quota = limit ? strtod(limit, NULL) : 0;
	const char *period = limit ? strchr(limit, ' ') : NULL;

	if (quota > 0 && period && strtod(period, NULL) > 0 &&
	    quota / strtod(period, NULL) < usable)
		usable = quota / strtod(period, NULL);
	return usable;
}

/* Reads `cpuN user nice system idle iowait irq softirq steal …`; false at the last such line. */
static bool read_core(const char **at, size_t *ret_index, struct usage_core *ret)
{
	char *next;

	*at = strchr(*at, '\n');
	if (!*at || strncmp(++*at, "cpu", 3) != 0)
		return false;
	*ret = (struct usage_core){ 0 };
	*ret_index = (size_t)strtoul(*at + 3, &next, 10);
	for (int i = 0; i < 8 && *next == ' '; i++) {
		uint64_t ticks = strtoull(next, &next, 10);

		ret->all += ticks;
		ret->idle += i == 3 ? ticks : 0;
		ret->wait += i == 4 ? ticks : 0;
	}
	return *ret_index < USAGE_CORES_MAX;
}

static void read_cores(struct usage_host *host, struct usage_readings *ret)
{
	const char *at = read_file(host, "stat");
	double least = INFINITY, most = -INFINITY, waited = 0, all = 0;
	struct usage_core now;
	size_t index;

	while (at && read_core(&at, &index, &now)) {
		struct usage_core *before = &host->cores[index];
		double passed = (double)(now.all - before->all);
		double rest = (double)(now.idle - before->idle) + (double)(now.wait - before->wait);

		if (before->all > 0 && now.all > before->all && rest >= 0 && rest <= passed) {
			double busy = 100 * (1 - rest / passed);

			least = fmin(least, busy);
			most = fmax(most, busy);
			waited += (double)(now.wait - before->wait);
			all += passed;
		}
		*before = now;
	}
	usage_readings_add(ret, USAGE_CPU_BUSIEST, most);
	usage_readings_add(ret, USAGE_CPU_IDLEST, least);
	if (all > 0)
		usage_readings_add(ret, USAGE_IO_WAIT, 100 * waited / all);
}

static void read_memory(struct usage_host *host, struct usage_readings *ret)
{
	const char *text = read_file(host, "meminfo");
	double all = number_after(text, "MemTotal"), left = number_after(text, "MemAvailable");

	if (all > 0)
		usage_readings_add(ret, USAGE_MEMORY_AVAILABLE, 100 * left / all);
}

/* Returns true if pages have moved since the last reading. */
static bool read_swap(struct usage_host *host, double seconds, struct usage_readings *ret)
{
	const char *text = read_file(host, "vmstat");
	double in = number_after(text, "pswpin"), out = number_after(text, "pswpout");
	double more_in = in - (double)host->swapped_in, more_out = out - (double)host->swapped_out;

	if (!isfinite(in) || !isfinite(out) || in < 0 || out < 0)
		return false;
	host->swapped_in = (uint64_t)in;
	host->swapped_out = (uint64_t)out;
	if (seconds <= 0 || more_in < 0 || more_out < 0)
		return false;
	usage_readings_add(ret, USAGE_SWAP_IN, more_in * (double)getpagesize() / MIB / seconds);
	usage_readings_add(ret, USAGE_SWAP_OUT, more_out * (double)getpagesize() / MIB / seconds);
	return more_in + more_out > 0;
}

/* ---- processes ---- */

/* Reads the fields after the name in brackets, which may hold anything itself. */
static bool read_process(struct usage_host *host, pid_t pid, struct usage_process *ret)
{
	char *at = read_of(host, pid, "stat");

	at = at ? strrchr(at, ')') : NULL;
	if (!at || strlen(at) < 5 || at[2] == 'Z' || at[2] == 'X')
		return false;
	*ret = (struct usage_process){ .pid = pid, .cpu = NAN, .busy = NAN };
	at += 3;
	for (int number = 4; number <= 24 && *at == ' '; number++) {
		char *end;
		long long value = strtoll(at, &end, 10);

		if (number == 4)
			ret->parent = (pid_t)value;
		if (number == 14 || number == 15)
			ret->ticks += (uint64_t)value;
		if (number == 22)
			ret->started = (uint64_t)value;
		if (number == 24)
			ret->pages = (double)value;
		at = end;
	}
	return true;
}

static int compare(const void *a, const void *b)
{
	const struct usage_process *x = a, *y = b;

	return (x->pid > y->pid) - (x->pid < y->pid);
}

static struct usage_process *find(struct usage_process *list, size_t count, pid_t pid)
{
	struct usage_process key = { .pid = pid };

	return count > 0 ? bsearch(&key, list, count, sizeof *list, compare) : NULL;
}

static size_t list_processes(struct usage_host *host, struct usage_process **ret)
{
	DIR *folder = opendir(host->proc);
	struct usage_process *list = NULL;
	struct dirent *entry;
	size_t count = 0;

	while (folder && count < PROCESSES_MAX && (entry = readdir(folder))) {
		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		list = mem_room(list, count, sizeof *list);
		if (read_process(host, (pid_t)strtol(entry->d_name, NULL, 10), &list[count]))
			count++;
	}
	if (folder)
		closedir(folder);
	if (count > 0)
		qsort(list, count, sizeof *list, compare);
	*ret = list;
	return count;
}

static bool is_in(pid_t pid, const pid_t *list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (list[i] == pid)
			return true;
	return false;
}

/* True if the process descends from the root, and from none that is spared. */
static bool is_ours(const struct usage_process *process, struct usage_process *list, size_t count,
		    pid_t root, const pid_t *spared, size_t spared_count)
{
	for (int deep = 0; process && deep < DEEP_MAX; deep++) {
		if (process->pid == root || is_in(process->pid, spared, spared_count))
			return false;
		if (process->parent == root)
			return true;
		process = find(list, count, process->parent);
	}
	return false;
}

static void read_schedule(struct usage_host *host, struct usage_process *process)
{
	char *at = read_of(host, process->pid, "schedstat");

	if (!at)
		return;
	process->run_ns = strtoull(at, &at, 10);
	process->wait_ns = strtoull(at, &at, 10);
}

/* Rates how busy the process was, by what it had used at the last reading; one that began since
 * then had used nothing. The main thread is busy while it waits for a core, too, so that a crowded
 * machine does not make a process look idle. */
static void rate(const struct usage_host *host, struct usage_process *process, double seconds)
{
	const struct usage_process none = { 0 }, *was;
	double ticks, run = 0, wait = 0, old = exp(-seconds / MEAN_SECONDS);

	was = find(host->before, host->before_count, process->pid);
	if (!was || was->started != process->started)
		was = &none;
	if (process->run_ns >= was->run_ns && process->wait_ns >= was->wait_ns) {
		run = (double)(process->run_ns - was->run_ns) / 1e9;
		wait = (double)(process->wait_ns - was->wait_ns) / 1e9;
	}
	ticks = process->ticks > was->ticks ? (double)(process->ticks - was->ticks) : 0;
	process->cpu = 100 * fmax(ticks / TICKS, run) / seconds;
	process->busy = fmax(process->cpu, fmin(100, 100 * (run + wait) / seconds));
	if (was == &none)
		old = 0;
	process->mean_cpu = old * was->mean_cpu + (1 - old) * process->cpu;
	process->mean_busy = old * was->mean_busy + (1 - old) * process->busy;
}

/* Returns the process that has children and works itself; NULL: there is none. A process that works
 * next to nothing beside its children has only started them. */
static const struct usage_process *find_trainer(struct usage_process *list, size_t count)
{
	const struct usage_process *trainer = NULL;
	double used = 0;

	for (size_t i = 0; i < count; i++) {
		struct usage_process *parent =
			list[i].is_ours ? find(list, count, list[i].parent) : NULL;

		if (parent && parent->is_ours && parent->mean_cpu > 0 &&
		    (!trainer || parent->mean_cpu > trainer->mean_cpu))
			trainer = parent;
	}
	for (size_t i = 0; trainer && i < count; i++)
		if (list[i].is_ours && list[i].parent == trainer->pid)
			used += list[i].mean_cpu;
	return trainer && trainer->mean_cpu >= LAUNCHER * used ? trainer : NULL;
}

/* Adds how busy that process is, and how busy those are that it started. On a crowded machine its
 * CPU time counts as much more as they want than they get: its own waits for a core would count
 * many short ones after each wait for data. */
static void add_loaders(struct usage_process *list, size_t count, struct usage_readings *ret)
{
	const struct usage_process *trainer = find_trainer(list, count);
	double cpu = 0, busy = 0, working = 0;

	if (!trainer)
		return;
	for (size_t i = 0; i < count; i++)
		if (list[i].is_ours && list[i].parent == trainer->pid &&
		    list[i].mean_busy >= WORKS) {
			working++;
			cpu += list[i].cpu;
			busy += list[i].busy;
		}
	usage_readings_add(ret, USAGE_TRAINER,
			   cpu > 0 ? fmin(trainer->cpu * busy / cpu, fmax(trainer->cpu, 100))
				   : trainer->busy);
	usage_readings_add(ret, USAGE_LOADERS, working > 0 ? busy / working : 0);
}

static void read_processes(struct usage_host *host, const pid_t *spared, size_t spared_count,
			   pid_t root, double seconds, bool swaps, struct usage_readings *ret)
{
	struct usage_process *list;
	size_t count = list_processes(host, &list), looked = 0;
	double cpu = 0, pages = 0, swapped = 0;

	for (size_t i = 0; i < count; i++) {
		double kib = NAN;

		list[i].is_ours = is_ours(&list[i], list, count, root, spared, spared_count);
		if (!list[i].is_ours)
			continue;
		if (looked++ < CLOSE_MAX) {
			read_schedule(host, &list[i]);
			if (swaps)
				kib = number_after(read_of(host, list[i].pid, "status"), "VmSwap");
		}
		swapped += isfinite(kib) ? kib / 1024 : 0;
		pages += list[i].pages;
		if (seconds > 0) {
			rate(host, &list[i], seconds);
			cpu += list[i].cpu;
		}
	}
	if (seconds > 0) {
		usage_readings_add(ret, USAGE_CPU, cpu);
		usage_readings_add(ret, USAGE_CPU_CORES, host->usable);
		add_loaders(list, count, ret);
	}
	usage_readings_add(ret, USAGE_MEMORY, pages * (double)getpagesize() / MIB);
	if (swaps)
		usage_readings_add(ret, USAGE_SWAPPED, swapped);
	free(host->before);
	host->before = list;
	host->before_count = count;
}

/* ---- all ---- */

void usage_host_init(struct usage_host *host, const char *proc)
{
	*host = (struct usage_host){ .proc = proc };
	host->text = mem_alloc(TEXT_MAX + 1);
	host->cores = mem_zero(USAGE_CORES_MAX, sizeof *host->cores);
	host->usable = count_usable(host);
}

void usage_host_release(struct usage_host *host)
{
	free(host->before);
	free(host->cores);
	free(host->text);
	*host = (struct usage_host){ 0 };
}

void usage_host_read(struct usage_host *host, pid_t root, const pid_t *spared, size_t spared_count,
		     struct usage_readings *ret)
{
	struct mono now = clock_mono_now();
	double seconds = host->at.ms > 0 ? (double)(now.ms - host->at.ms) / 1000 : 0;
	bool swaps;

	host->at = now;
	read_cores(host, ret);
	read_memory(host, ret);
	swaps = read_swap(host, seconds, ret);
	read_processes(host, spared, spared_count, root, seconds, swaps, ret);
}
