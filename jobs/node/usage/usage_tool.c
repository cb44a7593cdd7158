/* Runs the tools that watch devices: see usage_tool.h. */
#include "jobs/node/usage/usage_tool.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "jobs/base/process/proc.h"
#include "jobs/node/health/health_tool.h"
#include "jobs/node/report.h"

#define LINE_MAX_BYTES ((size_t)1 << 20) /* a report about 64 runtimes has 200 KiB */
#define READ_BYTES     ((size_t)64 << 10)
#define FLOOD_BYTES    ((size_t)8 << 20) /* between two ticks */
#define WRONG_LINES    20
#define SILENT_MS      60000 /* twelve times the pause between two lines */
#define AGAIN_MS       30000 /* from the end of one to the start of the next */

/* The pause between two lines is 5 s: the tools ask drivers, which costs nvidia-smi tens of
 * milliseconds of CPU time with eight GPUs. */
#define PERIOD "5"

struct usage_tool_kind {
	const char *name;
	const char *options[5];
	const char *input; /* the text of the tool's stdin; NULL: none */
	const char *only;  /* variable of the command that names the devices which it gets */
	const char *only_option;
	int (*parse)(const char *line, size_t len, struct usage_devices *ret);
};

static const struct usage_tool_kind kinds[USAGE_TOOLS] = {
	{ .name = "neuron-monitor",
	  .options = { "-c", "/proc/self/fd/0" },
	  .input = "{\"period\":\"" PERIOD "s\",\"neuron_runtimes\":[{\"tag_filter\":\".*\","
		   "\"metrics\":[{\"type\":\"neuroncore_counters\"},{\"type\":\"memory_used\"}]}],"
		   "\"system_metrics\":[]}\n",
	  .parse = usage_parse_neuron },
	{ .name = "nvidia-smi",
	  .options = { "--query-gpu=index,utilization.gpu,memory.used,memory.total",
		       "--format=csv,noheader,nounits", "-l", PERIOD },
	  .only = "CUDA_VISIBLE_DEVICES",
	  .only_option = "-i",
	  .parse = usage_parse_nvidia },
};

/* ---- end of a tool ---- */

static void close_output(struct usage_tool *tool)
{
	loop_remove(tool->loop, tool->watch);
	tool->watch = NULL;
	auto_close(&tool->fd);
	sb_clear(&tool->line);
}

/* Kills the tool with all that it has started. */
static void kill_tool(struct usage_tool *tool)
{
	if (tool->pid > 0)
		kill(-tool->pid, SIGKILL);
	close_output(tool);
}

static void give_up(struct usage_tool *tool, const char *why)
{
	kill_tool(tool);
	if (tool->program)
		report_complain("%s %s; what its devices do is not recorded", tool->kind->name,
				why);
	free(TAKE(tool->program));
}

/* ---- lines of a tool ---- */

static void take_line(struct usage_tool *tool, const char *line, size_t len)
{
	if (tool->kind->parse(line, len, &tool->devices) == 0) {
		tool->heard = clock_mono_now();
		tool->wrong = 0;
	} else if (++tool->wrong >= WRONG_LINES) {
		give_up(tool, "prints lines that are not understood");
	}
}

static void take(struct usage_tool *tool, const char *bytes, size_t len)
{
	const char *end;

	while (tool->program && (end = memchr(bytes, '\n', len))) {
		size_t part = (size_t)(end - bytes);

		sb_add(&tool->line, bytes, part);
		if (tool->line.len > 0)
			take_line(tool, tool->line.text, tool->line.len);
		sb_clear(&tool->line);
		len -= part + 1;
		bytes = end + 1;
	}
	if (!tool->program)
		return;
	sb_add(&tool->line, bytes, len);
	if (tool->line.len >= LINE_MAX_BYTES)
		give_up(tool, "prints a line without an end");
}

static void on_output(void *arg)
{
	struct usage_tool *tool = arg;
	char buffer[READ_BYTES];
	ssize_t len = read(tool->fd, buffer, sizeof buffer);

	if (len > 0) {
		tool->bytes += (size_t)len;
		take(tool, buffer, (size_t)len);
		if (tool->bytes >= FLOOD_BYTES)
			give_up(tool, "prints too much");
	} else if (len == 0 || !err_errno_passes(errno)) {
		close_output(tool);
	}
}

/* ---- start of a tool ---- */

/* Returns a descriptor from which the text can be read; -1: there is none. */
static int input_of(const struct usage_tool_kind *kind)
{
	int fd = kind->input ? memfd_create("stoker-monitor", MFD_CLOEXEC) : -1;

	if (fd >= 0 && (write(fd, kind->input, strlen(kind->input)) < 0 || lseek(fd, 0, SEEK_SET)))
		auto_close(&fd);
	return fd;
}

/* True for a list of numbers and names, as a tool takes it. */
static bool is_list(const char *text)
{
	return text && *text && *text != '-' &&
	       !text[strspn(text, "0123456789abcdefABCDEFGPUMIgpumi-/,")];
}

/* True if the command gets none of the devices: what they do is not its doing. An index that is
 * none ends the list (CUDA C++ Programming Guide, "CUDA Environment Variables"). */
static bool gets_none(const struct usage_tool_kind *kind, const struct command_env *env)
{
	const char *only = kind->only ? command_env_get(env, kind->only) : NULL;

	return only && (!*only || *only == '-');
}

static void start(struct usage_tool *tool, const struct command_env *env)
{
	AUTO(err_freep) struct err *why = NULL;
	AUTO(auto_close) int in = input_of(tool->kind);
	const char *only = tool->kind->only ? command_env_get(env, tool->kind->only) : NULL;
	const char *argv[STK_LENGTH(tool->kind->options) + 4] = { tool->program };
	struct proc_start how = {
		.program = tool->program, .envp = env->list, .cwd = "/", .in = in, .err = -1
	};
	size_t count = 1;
	int fds[2];

	for (size_t i = 0; i < STK_LENGTH(tool->kind->options) && tool->kind->options[i]; i++)
		argv[count++] = tool->kind->options[i];
	if (is_list(only)) {
		argv[count++] = tool->kind->only_option;
		argv[count++] = only;
	}
	tool->starts++;
	tool->ended = tool->heard = clock_mono_now();
	if (pipe2(fds, O_CLOEXEC) < 0)
		return;
	fcntl(fds[0], F_SETFL, O_NONBLOCK);
	how.argv = (char *const *)argv;
	how.out = fds[1];
	if (proc_spawn(&how, &tool->pid, &why) < 0) {
		tool->pid = 0;
		close(fds[0]);
	} else {
		tool->fd = fds[0];
		tool->watch = loop_on_readable(tool->loop, tool->fd, on_output, tool);
	}
	close(fds[1]);
}

void usage_tools_start(struct usage_tool *tools, const struct command_env *env, struct loop *loop)
{
	for (size_t i = 0; i < USAGE_TOOLS; i++) {
		struct usage_tool *tool = &tools[i];

		*tool = (struct usage_tool){ .kind = &kinds[i], .loop = loop, .fd = -1 };
		tool->line = SB_INIT_MAX(LINE_MAX_BYTES);
		tool->devices.in_use_only = command_env_get(env, "NEURON_RT_VISIBLE_CORES") ||
					    command_env_get(env, "NEURON_RT_NUM_CORES");
		if (!gets_none(tool->kind, env))
			tool->program = health_tool_find(env, tool->kind->name);
		if (tool->program)
			start(tool, env);
	}
}

/* ---- tools of a node ---- */

void usage_tools_stop(struct usage_tool *tools)
{
	for (size_t i = 0; i < USAGE_TOOLS; i++) {
		kill_tool(&tools[i]);
		free(TAKE(tools[i].program));
	}
}

bool usage_tools_reaped(struct usage_tool *tools, pid_t pid)
{
	for (size_t i = 0; i < USAGE_TOOLS; i++)
		if (pid > 0 && tools[i].pid == pid) {
			kill_tool(&tools[i]);
			tools[i].pid = 0;
			tools[i].ended = clock_mono_now();
			return true;
		}
	return false;
}

void usage_tools_tick(struct usage_tool *tools, const struct command_env *env)
{
	struct mono now = clock_mono_now();

	for (size_t i = 0; i < USAGE_TOOLS; i++) {
		struct usage_tool *tool = &tools[i];

		tool->bytes = 0;
		if (!tool->program)
			continue;
		if (tool->pid > 0 && now.ms - tool->heard.ms >= SILENT_MS)
			kill_tool(tool);
		if (tool->pid == 0 && tool->starts >= USAGE_TOOL_STARTS)
			give_up(tool, "ends, or says nothing, again and again");
		else if (tool->pid == 0 && now.ms - tool->ended.ms >= AGAIN_MS)
			start(tool, env);
	}
}

void usage_tools_release(struct usage_tool *tools)
{
	for (size_t i = 0; i < USAGE_TOOLS; i++) {
		if (!tools[i].kind)
			continue;
		kill_tool(&tools[i]);
		free(TAKE(tools[i].program));
		sb_release(&tools[i].line);
	}
}
