/* /proc and /dev, made up from what the world knows: see tree_internal.h and proc(5).
 *
 * A row of the table below is a path beneath /proc, or beneath /proc/PID. Folders are those that a
 * row lies in.
 */
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <time.h>

#include "tests/world/tree_internal.h"

#define TICK_NS (10 * WORLD_MS) /* of the start time: sysconf(_SC_CLK_TCK) is 100 */
#define INIT    ((pid_t)1)

struct text {
	char *bytes;
	size_t len, room;
};

/* Where a node is: of the whole machine where `of` is NULL. */
typedef void (*proc_text_fn)(struct text *text, const struct process *of,
			     const struct machine *machine);

struct proc_row {
	const char *path;
	mode_t mode;
	proc_text_fn text;
	const char *target; /* of a link that says always the same */
};

static const struct made_ops folder_ops, text_ops, link_ops, fd_ops;

static void add_bytes(struct text *text, const void *bytes, size_t len)
{
	if (text->len + len + 1 > text->room) {
		text->room = 2 * (text->len + len + 1);
		text->bytes = realloc(text->bytes, text->room);
		if (!text->bytes)
			abort();
	}
	memcpy(text->bytes + text->len, bytes, len);
	text->len += len;
	text->bytes[text->len] = '\0';
}

__attribute__((format(printf, 2, 3))) static void addf(struct text *text, const char *format, ...)
{
	char line[PATH_MAX + 256];
	va_list args;
	int len;

	va_start(args, format);
	len = vsnprintf(line, sizeof line, format, args);
	va_end(args);
	add_bytes(text, line, (size_t)len < sizeof line ? (size_t)len : sizeof line - 1);
}

/* ---- what a process's files say ---- */

static char state_of(const struct process *of)
{
	if (of->state == PROCESS_ZOMBIE)
		return 'Z';
	if (of->stopped)
		return 'T';
	return of == self ? 'R' : 'S';
}

static void text_stat(struct text *text, const struct process *of, const struct machine *machine)
{
	int64_t ticks = of->cpu_ns / TICK_NS;

	/* Fields 1 to 52: proc_pid_stat(5); what nobody here has is 0. */
	addf(text, "%d (%s) %c %d %d %d 0 -1 4194304 0 0 0 0 %lld 0 0 0 20 0 1 0 %lld ", of->pid,
	     of->name, state_of(of), of->parent, of->group, of->session, (long long)ticks,
	     (long long)((of->started_ns - machine->booted_ns) / TICK_NS));
	addf(text,
	     "0 0 18446744073709551615 0 0 0 0 0 %llu %llu %llu %llu 0 0 0 17 0 0 0 0 0 0 "
	     "0 0 0 0 0 0 0 %d\n",
	     (unsigned long long)of->pending & 0x7fffffff,
	     (unsigned long long)of->blocked & 0x7fffffff,
	     (unsigned long long)of->ignored & 0x7fffffff,
	     (unsigned long long)of->caught & 0x7fffffff, of->status);
}

static void add_list(struct text *text, char *const *list)
{
	for (; list && *list; list++)
		add_bytes(text, *list, strlen(*list) + 1);
}

static void text_cmdline(struct text *text, const struct process *of, const struct machine *machine)
{
	(void)machine;
	if (of->state == PROCESS_ALIVE)
		add_list(text, of->argv);
}

static void text_environ(struct text *text, const struct process *of, const struct machine *machine)
{
	(void)machine;
	if (of->state == PROCESS_ALIVE)
		add_list(text, of->envp);
}

static void text_comm(struct text *text, const struct process *of, const struct machine *machine)
{
	(void)machine;
	addf(text, "%s\n", of->name);
}

static void text_status(struct text *text, const struct process *of, const struct machine *machine)
{
	static const char *const words[] = {
		['R'] = "running", ['S'] = "sleeping", ['T'] = "stopped", ['Z'] = "zombie"
	};
	char state = state_of(of);

	(void)machine;
	addf(text,
	     "Name:\t%s\nUmask:\t%04o\nState:\t%c (%s)\nTgid:\t%d\nNgid:\t0\nPid:\t%d\nPPid:\t%d\n"
	     "TracerPid:\t0\nUid:\t0\t0\t0\t0\nGid:\t0\t0\t0\t0\nFDSize:\t%d\n",
	     of->name, of->umask, state, words[(unsigned char)state], of->pid, of->pid, of->parent,
	     PROCESS_FDS);
	addf(text, "Threads:\t1\nSigQ:\t0/1000\nSigPnd:\t%016llx\nShdPnd:\t%016llx\n", 0ULL,
	     (unsigned long long)of->pending);
	addf(text, "SigBlk:\t%016llx\nSigIgn:\t%016llx\nSigCgt:\t%016llx\n",
	     (unsigned long long)of->blocked, (unsigned long long)of->ignored,
	     (unsigned long long)of->caught);
}

static void text_cgroup(struct text *text, const struct process *of, const struct machine *machine)
{
	(void)of;
	(void)machine;
	addf(text, "0::/\n");
}

/* Blanks are \040: proc_pid_mountinfo(5). */
static void add_escaped(struct text *text, const char *path)
{
	for (; *path; path++)
		if (strchr(" \t\n\\", *path))
			addf(text, "\\%03o", (unsigned char)*path);
		else
			add_bytes(text, path, 1);
}

static const char *type_of(const struct tree *tree, const struct mount *mount)
{
	if (mount->disk == tree->proc)
		return "proc";
	return mount->disk->kind == DISK_SHARE    ? "nfs4"
	       : mount->disk->kind == DISK_MEMORY ? "tmpfs"
						  : "ext4";
}

static void text_mountinfo(struct text *text, const struct process *of,
			   const struct machine *machine)
{
	const struct tree *tree = tree_of(machine);

	(void)of;
	for (int i = 0; i < tree->mount_count; i++) {
		const struct mount *mount = &tree->mounts[i];

		addf(text, "%d %d %u:%u / ", 20 + i, i ? 20 : 1, major(mount->disk->device),
		     minor(mount->disk->device));
		add_escaped(text, mount->path);
		addf(text, " rw,relatime shared:%d - %s ", i + 1, type_of(tree, mount));
		add_escaped(text, mount->disk->name);
		addf(text, " rw\n");
	}
}

/* ---- what the machine's files say ---- */

static void text_boot_id(struct text *text, const struct process *of, const struct machine *machine)
{
	(void)of;
	addf(text, "%s\n", machine->boot_id);
}

static void text_meminfo(struct text *text, const struct process *of, const struct machine *machine)
{
	(void)of;
	(void)machine;
	addf(text, "MemTotal:       263856284 kB\nMemFree:        201348112 kB\n"
		   "MemAvailable:   248113940 kB\nBuffers:           51200 kB\n"
		   "Cached:         40122316 kB\nSwapTotal:             0 kB\n"
		   "SwapFree:              0 kB\n");
}

static void text_cpuinfo(struct text *text, const struct process *of, const struct machine *machine)
{
	(void)of;
	(void)machine;
	addf(text, "processor\t: 0\nvendor_id\t: GenuineIntel\nmodel name\t: Simulated CPU\n"
		   "flags\t\t: fpu sse sse2 avx avx2\n\n");
}

static void text_uptime(struct text *text, const struct process *of, const struct machine *machine)
{
	int64_t up = machine_clock_ns(machine, CLOCK_BOOTTIME);

	(void)of;
	addf(text, "%lld.%02lld 0.00\n", (long long)(up / WORLD_S),
	     (long long)(up % WORLD_S / TICK_NS));
}

static void text_route(struct text *text, const struct process *of, const struct machine *machine)
{
	(void)of;
	(void)machine;
	addf(text, "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\t"
		   "IRTT\n"
		   "eth0\t00000000\t0100000A\t0003\t0\t0\t0\t00000000\t0\t0\t0\n"
		   "eth0\t0000000A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n");
}

static void text_empty(struct text *text, const struct process *of, const struct machine *machine)
{
	(void)of;
	(void)machine;
	add_bytes(text, "", 0);
}

#define LINK        (S_IFLNK | 0777)
#define FILE_OF_ALL (S_IFREG | 0444)

static const struct proc_row rows_of_process[] = {
	{ "stat", FILE_OF_ALL, text_stat, NULL },
	{ "cmdline", FILE_OF_ALL, text_cmdline, NULL },
	{ "environ", S_IFREG | 0400, text_environ, NULL },
	{ "comm", S_IFREG | 0644, text_comm, NULL },
	{ "status", FILE_OF_ALL, text_status, NULL },
	{ "cgroup", FILE_OF_ALL, text_cgroup, NULL },
	{ "mountinfo", FILE_OF_ALL, text_mountinfo, NULL },
	{ "exe", LINK, NULL, NULL },
	{ "cwd", LINK, NULL, NULL },
	{ "fd", S_IFDIR | 0500, NULL, NULL },
	{ "ns/pid", LINK, NULL, "pid:[4026531836]" },
	{ "ns/time", LINK, NULL, "time:[4026531834]" },
};

static const struct proc_row rows_of_machine[] = {
	{ "self", LINK, NULL, NULL },
	{ "meminfo", FILE_OF_ALL, text_meminfo, NULL },
	{ "cpuinfo", FILE_OF_ALL, text_cpuinfo, NULL },
	{ "uptime", FILE_OF_ALL, text_uptime, NULL },
	{ "net/route", FILE_OF_ALL, text_route, NULL },
	{ "net/ipv6_route", FILE_OF_ALL, text_empty, NULL },
	{ "sys/kernel/random/boot_id", FILE_OF_ALL, text_boot_id, NULL },
};

/* ---- nodes ---- */

static const struct proc_row *rows(const struct process *of, size_t *ret_count)
{
	*ret_count = of ? sizeof rows_of_process / sizeof *rows_of_process
			: sizeof rows_of_machine / sizeof *rows_of_machine;
	return of ? rows_of_process : rows_of_machine;
}

static const struct proc_row *find_row(const struct process *of, const char *path)
{
	size_t count;
	const struct proc_row *list = rows(of, &count);

	for (size_t i = 0; i < count; i++)
		if (strcmp(list[i].path, path) == 0)
			return &list[i];
	return NULL;
}

/* True if a row lies within the path. */
static bool is_way(const struct process *of, const char *path)
{
	size_t count, len = strlen(path);
	const struct proc_row *list = rows(of, &count);

	if (len == 0)
		return true;
	for (size_t i = 0; i < count; i++)
		if (strncmp(list[i].path, path, len) == 0 && list[i].path[len] == '/')
			return true;
	return false;
}

/* One inode for each place that was ever looked for. */
static struct inode *node(struct tree *tree, struct process *of, const char *path, mode_t mode,
			  const struct made_ops *ops)
{
	struct inode *inode, *folder = tree->proc->root;

	for (size_t i = 0; i < tree->made_count; i++)
		if (tree->made[i]->made_of == of && strcmp(tree->made[i]->made_path, path) == 0)
			return tree->made[i];
	inode = inode_new(tree->proc, mode, tree->machine);
	inode->links = 1;
	inode->made = ops;
	inode->made_of = of;
	inode->made_path = strdup(path);
	inode->parent = folder;
	tree->made = realloc(tree->made, (tree->made_count + 1) * sizeof(struct inode *));
	if (!tree->made || !inode->made_path)
		abort();
	tree->made[tree->made_count++] = inode;
	return inode;
}

static bool is_gone(const struct inode *inode)
{
	return inode->made_of && inode->made_of->state == PROCESS_GONE;
}

static struct tree *tree_of_node(const struct inode *inode)
{
	return inode->disk->tree;
}

static int look_fd(struct inode *folder, const char *text, struct inode **ret)
{
	struct process *of = folder->made_of;
	char path[32], *end;
	long fd = strtol(text, &end, 10);

	if (!isdigit((unsigned char)*text) || *end || fd < 0 || fd >= PROCESS_FDS ||
	    !of->fds[fd].file)
		return -ENOENT;
	snprintf(path, sizeof path, "fd/%ld", fd);
	*ret = node(tree_of_node(folder), of, path, S_IFLNK | 0700, &fd_ops);
	return 0;
}

static int look_process(struct tree *tree, const char *text, struct inode **ret)
{
	char *end;
	long pid = strtol(text, &end, 10);
	struct process *of;

	if (!isdigit((unsigned char)*text) || *text == '0' || *end)
		return -ENOENT;
	of = process_find(tree->machine, (pid_t)pid);
	if (!of)
		return -ENOENT;
	*ret = node(tree, of, "", S_IFDIR | 0555, &folder_ops);
	return 0;
}

static int look(struct inode *folder, const char *text, struct process *by, struct inode **ret)
{
	struct process *of = folder->made_of;
	struct tree *tree = tree_of_node(folder);
	const char *within = folder->made_path ? folder->made_path : "";
	const struct proc_row *row;
	char path[NAME_MAX + 64];

	(void)by;
	if (is_gone(folder))
		return -ENOENT;
	if (strcmp(within, "fd") == 0)
		return look_fd(folder, text, ret);
	snprintf(path, sizeof path, "%s%s%s", within, *within ? "/" : "", text);
	row = find_row(of, path);
	if (row)
		*ret = node(tree, of, path, row->mode,
			    S_ISLNK(row->mode)   ? &link_ops
			    : S_ISDIR(row->mode) ? &folder_ops
						 : &text_ops);
	else if (is_way(of, path))
		*ret = node(tree, of, path, S_IFDIR | 0555, &folder_ops);
	else if (!of && !*within)
		return look_process(tree, text, ret);
	else
		return -ENOENT;
	return 0;
}

static void list_name(struct inode *folder, struct names *names, const char *text)
{
	struct inode *inode = NULL;
	uint64_t hash = name_hash(folder, text);
	size_t at = names_after(names, hash - 1);

	if (at < names->count && names->list[at].hash == hash)
		return;
	if (look(folder, text, self, &inode) == 0)
		names_add(names, hash, text, inode);
}

static void list(struct inode *folder, struct process *by, struct names *ret)
{
	struct process *of = folder->made_of;
	const char *within = folder->made_path ? folder->made_path : "";
	size_t count, len = strlen(within);
	const struct proc_row *list_of = rows(of, &count);
	char text[NAME_MAX + 1];

	(void)by;
	if (is_gone(folder))
		return;
	for (int fd = 0; strcmp(within, "fd") == 0 && fd < PROCESS_FDS; fd++) {
		snprintf(text, sizeof text, "%d", fd);
		list_name(folder, ret, text);
	}
	for (size_t i = 0; i < count; i++) {
		const char *rest = list_of[i].path + len + (len > 0);

		if (len > 0 &&
		    (strncmp(list_of[i].path, within, len) != 0 || list_of[i].path[len] != '/'))
			continue;
		snprintf(text, sizeof text, "%.*s", (int)strcspn(rest, "/"), rest);
		list_name(folder, ret, text);
	}
	for (struct process *at = processes; at && !of && len == 0; at = at->next)
		if (at->machine == tree_of_node(folder)->machine && at->state != PROCESS_GONE) {
			snprintf(text, sizeof text, "%d", at->pid);
			list_name(folder, ret, text);
		}
}

static char *text_of(struct inode *file, struct process *by, size_t *ret_len)
{
	const struct proc_row *row = find_row(file->made_of, file->made_path);
	struct text text = { 0 };

	(void)by;
	if (is_gone(file))
		return NULL;
	add_bytes(&text, "", 0);
	row->text(&text, file->made_of, tree_of_node(file)->machine);
	*ret_len = text.len;
	return text.bytes;
}

static ssize_t say(char *text, size_t size, const char *what)
{
	size_t len = strlen(what);

	len = len < size ? len : size;
	memcpy(text, what, len);
	return (ssize_t)len;
}

static ssize_t link_target(struct inode *link, struct process *by, char *text, size_t size)
{
	const struct proc_row *row = find_row(link->made_of, link->made_path);
	const struct process *of = link->made_of;
	char pid[16];

	if (is_gone(link))
		return -ENOENT;
	if (row->target)
		return say(text, size, row->target);
	if (!of) { /* self */
		if (!by)
			return -ENOENT;
		snprintf(pid, sizeof pid, "%d", by->pid);
		return say(text, size, pid);
	}
	if (of->state != PROCESS_ALIVE)
		return -ENOENT;
	return say(text, size,
		   strcmp(row->path, "exe") == 0 ? of->program
		   : of->cwd                     ? of->cwd
						 : "/");
}

static struct file *file_of(const struct inode *link)
{
	long fd = strtol(link->made_path + strlen("fd/"), NULL, 10);

	return is_gone(link) ? NULL : link->made_of->fds[fd].file;
}

static ssize_t fd_target(struct inode *link, struct process *by, char *text, size_t size)
{
	const struct file *file = file_of(link);

	(void)by;
	return file ? say(text, size, tree_path(file)) : -ENOENT;
}

static int fd_magic(struct inode *link, struct file **ret)
{
	*ret = file_of(link);
	return *ret ? 0 : -ENOENT;
}

static const struct made_ops folder_ops = { .look = look, .list = list };
static const struct made_ops text_ops = { .text = text_of };
static const struct made_ops link_ops = { .target = link_target };
static const struct made_ops fd_ops = { .target = fd_target, .magic = fd_magic };

struct disk *proc_disk(struct tree *tree)
{
	struct disk *disk = disk_new(DISK_MEMORY, "proc");

	disk->tree = tree;
	disk->root->made = &folder_ops;
	disk->root->mode = S_IFDIR | 0555;
	return disk;
}

/* ---- /dev ---- */

static ssize_t read_null(struct inode *device, void *buffer, size_t len)
{
	(void)device;
	(void)buffer;
	(void)len;
	return 0;
}

static ssize_t read_zero(struct inode *device, void *buffer, size_t len)
{
	(void)device;
	memset(buffer, 0, len);
	return (ssize_t)len;
}

static ssize_t read_random(struct inode *device, void *buffer, size_t len)
{
	uint8_t *bytes = buffer;

	(void)device;
	for (size_t i = 0; i < len; i++)
		bytes[i] = (uint8_t)chance_next();
	return (ssize_t)len;
}

static ssize_t swallow(struct inode *device, size_t len)
{
	(void)device;
	return (ssize_t)len;
}

static ssize_t refuse(struct inode *device, size_t len)
{
	(void)device;
	(void)len;
	return -ENOSPC;
}

static const struct {
	const char *name;
	int minor;
	struct made_ops ops;
} devices[] = {
	{ "null", 3, { .read = read_null, .write = swallow } },
	{ "zero", 5, { .read = read_zero, .write = swallow } },
	{ "full", 7, { .read = read_zero, .write = refuse } },
	{ "random", 8, { .read = read_random, .write = swallow } },
	{ "urandom", 9, { .read = read_random, .write = swallow } },
};

struct disk *device_disk(void)
{
	static const char *const links[][2] = { { "fd", "/proc/self/fd" },
						{ "stdin", "/proc/self/fd/0" },
						{ "stdout", "/proc/self/fd/1" },
						{ "stderr", "/proc/self/fd/2" } };
	struct disk *disk = disk_new(DISK_MEMORY, "udev");

	for (size_t i = 0; i < sizeof devices / sizeof *devices; i++) {
		struct inode *inode = inode_new(disk, S_IFCHR | 0666, NULL);

		inode->device = makedev(1, (unsigned)devices[i].minor);
		inode->made = &devices[i].ops;
		names_set(disk->root, devices[i].name, inode);
	}
	for (size_t i = 0; i < sizeof links / sizeof *links; i++) {
		struct inode *inode = inode_new(disk, S_IFLNK | 0777, NULL);

		inode->target = strdup(links[i][1]);
		names_set(disk->root, links[i][0], inode);
	}
	return disk;
}
