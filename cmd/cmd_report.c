/* report: runs as one page of HTML. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd/cmd.h"
#include "cmd/compare/compare_runs.h"
#include "cmd/report/report_data.h"
#include "cmd/screen/out.h"
#include "jobs/base/fs/fs.h"
#include "jobs/base/process/loop.h"
#include "jobs/base/process/proc.h"
#include "jobs/report/page/page.h"

#define PAGE_MAX        ((size_t)256 << 20)
#define PAGE_LARGE      ((size_t)5 << 20)
#define OPENER          "xdg-open"
#define RENEW_MS        10000
#define RENEW_REMOTE_MS 30000
#define RENEW_SHARE     20 /* of the time a report is not being made, times that in which it is */

/* The request, in which operands are runs alone. */
struct report_task {
	const struct args *args;
	struct journal *journal;
	char *path, *opener; /* owned; path NULL: stdout */
	bool ended;          /* all runs have ended */
	size_t bytes;
};

static void report_release(struct report_task *report)
{
	free(report->path);
	free(report->opener);
	journal_freep(&report->journal);
}

/* ---- the file ---- */

/* True if the file is an earlier report, or begins as one. */
static bool is_report(const char *path)
{
	char begin[sizeof PAGE_BEGIN] = "";
	AUTO(auto_close) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	return fd >= 0 && fs_read_full(fd, begin, sizeof begin - 1, 0) > 0 &&
	       strcmp(begin, PAGE_BEGIN) == 0;
}

static int check_file(const char *path, struct err **err)
{
	struct stat st;

	if (lstat(path, &st) < 0 || (S_ISREG(st.st_mode) && is_report(path)))
		return 0;
	err_set(err, EXIT_REFUSED, "'%s' already exists, and is no report", path);
	return err_hint(err, "name another file with --output, or remove it first");
}

/* Takes the file out of the operands, as in "report --watch page.html": no run's name has a dot. */
static const char *take_file(struct args *args)
{
	const char *file = NULL, *dot;
	int count = 0;

	for (int i = 0; i < args->operand_count; i++) {
		dot = strrchr(args->operands[i], '.');
		if (!file && dot && strcmp(dot, ".html") == 0)
			file = args->operands[i];
		else
			args->operands[count++] = args->operands[i];
	}
	if (count == 0)
		args->operands[count++] = args->cmd->fallback;
	args->operand_count = count;
	return file;
}

/* Chooses the file, before anything is measured. */
static int choose_file(struct report_task *report, struct err **err)
{
	const struct args *args = report->args;
	const char *given = args->value[OPT_OUTPUT];
	char run[JOURNAL_RUN_MAX];

	if (given && strcmp(given, "-") == 0) {
		if (!args->given[OPT_WATCH] && !args->given[OPT_OPEN] && !out_is_json())
			return 0;
		err_set(err, EXIT_USAGE, "--output - excludes --watch, --open and --json");
		return err_hint(err, "name a file");
	}
	if (given && !*given) {
		err_set(err, EXIT_USAGE, "--output needs the name of a file");
		return err_hint(err, "such as --output report.html");
	}
	if (!given && compare_runs_name(report->journal, args->operands[0], run, err) < 0)
		return -1;
	report->path = given ? mem_copy(given) : mem_format("report-%s.html", run);
	return check_file(report->path, err);
}

static int find_opener(struct report_task *report, struct err **err)
{
	const char *path = getenv("PATH");

	if (!report->args->given[OPT_OPEN])
		return 0;
	report->opener = proc_find_program(OPENER, ".", path ? path : "");
	if (report->opener)
		return 0;
	err_set(err, EXIT_REFUSED, "nothing opens a page here: there is no %s in PATH", OPENER);
	return err_hint(err, "leave --open out, and open the file in a browser");
}

/* Opens the page, and does not wait for who shows it. */
static int open_page(const struct report_task *report, struct err **err)
{
	AUTO(auto_free) char *file = fs_absolute(report->path);
	char *const argv[] = { (char *)OPENER, file, NULL };
	const struct proc_start start = { .program = report->opener,
					  .argv = argv,
					  .envp = environ,
					  .in = -1,
					  .out = -1,
					  .err = -1 };
	pid_t pid;

	return proc_spawn(&start, &pid, err);
}

/* ---- the page ---- */

static int write_page(struct report_task *report, struct err **err)
{
	AUTO(sb_release) struct sb page = SB_INIT_MAX(PAGE_MAX);
	json_auto_t *data = NULL;
	mode_t mask;

	if (report_data_collect(report->args, report->journal, report->args->given[OPT_WATCH],
				&report->ended, &data, err) < 0)
		return -1;
	page_write(data, &page);
	report->bytes = page.len;
	if (!report->path) {
		out_bulk(true);
		out_finished(page.text);
		out_bulk(false);
		return 0;
	}
	mask = umask(077);
	umask(mask);
	if (fs_write_atomic(report->path, page.text, page.len, 0666 & ~mask, err) < 0)
		return (*err)->hint ? -1 : err_hint(err, "name a file in an existing folder");
	return 0;
}

static void tell(const struct report_task *report)
{
	json_auto_t *line = json_object();

	if (report->bytes > PAGE_LARGE)
		out_warning("the page has %.1f MB: name fewer runs for a smaller one",
			    (double)report->bytes / 1e6);
	if (!out_is_json())
		return;
	js_put_str(line, "file", report->path);
	js_put(line, "size_bytes", json_integer((json_int_t)report->bytes));
	js_put(line, "ended", json_boolean(report->ended));
	out_json(line);
}

/* Writes the page again while a run goes on. */
static int renew(struct report_task *report, int64_t took_ms, struct err **err)
{
	while (!report->ended) {
		int64_t pause = journal_is_remote(report->journal) ? RENEW_REMOTE_MS : RENEW_MS;
		struct mono begun;

		if (took_ms * RENEW_SHARE > pause)
			pause = took_ms * RENEW_SHARE;
		if (loop_pause(pause, err) < 0)
			return -1;
		begun = clock_mono_now();
		if (write_page(report, err) < 0)
			return -1;
		took_ms = clock_mono_now().ms - begun.ms;
		tell(report);
	}
	return 0;
}

int cmd_report(const struct args *args, struct err **err)
{
	struct args runs = *args;
	AUTO(report_release) struct report_task report = { .args = &runs };
	struct mono begun = clock_mono_now();

	if (!args->given[OPT_OUTPUT])
		runs.value[OPT_OUTPUT] = take_file(&runs);
	if (journal_open(args->value[OPT_STATE], JOURNAL_READ, &report.journal, err) < 0 ||
	    choose_file(&report, err) < 0 || find_opener(&report, err) < 0 ||
	    write_page(&report, err) < 0)
		return -1;
	if (!report.path)
		return EXIT_DONE;
	tell(&report);
	out_note("wrote %s%s", report.path,
		 args->given[OPT_WATCH] && !report.ended
			 ? "; it is written again until the runs have ended"
			 : "");
	if (report.opener && open_page(&report, err) < 0)
		return -1;
	if (args->given[OPT_WATCH] && renew(&report, clock_mono_now().ms - begun.ms, err) < 0)
		return -1;
	return EXIT_DONE;
}
