/*
 * Alarms of systemd: a service that calls stoker and a timer that starts it, for the user or, with
 * --system, for the machine.
 *
 * {"scope": "user" | "system", "folder": absolute, "service", "timer": names of the files,
 *  "service_text", "timer_text"}
 *
 * Sources: systemd.unit(5), systemd.service(5), systemd.timer(5), systemd.time(7) of systemd 252.
 */
#include <errno.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/schedule/kind.h"
#include "cmd/schedule/tool.h"
#include "cmd/screen/out.h"
#include "jobs/base/fs/fs.h"
#include "jobs/calendar/alarm_text.h"

#define UNIT_MAX ((size_t)64 << 10)

/* ---- the units ---- */

/* Adds a word of a command line: in quotes, and without anything that systemd would expand. */
static void add_word(struct sb *line, const char *word)
{
	sb_addc(line, '"');
	for (; *word; word++)
		if (*word == '"' || *word == '\\')
			sb_addf(line, "\\%c", *word);
		else if (*word == '%' || *word == '$')
			sb_addf(line, "%c%c", *word, *word);
		else
			sb_addc(line, *word);
	sb_addc(line, '"');
}

static char *service_text(const struct alarm_setting *setting)
{
	struct sb text = SB_INIT;

	sb_addf(&text,
		"# Written by stoker. 'stoker schedule rm %s' removes it.\n"
		"[Unit]\n"
		"Description=stoker: turn of %s\n"
		"\n"
		"[Service]\n"
		"Type=oneshot\n"
		/* Jobs of the local engine outlive their driver, which another one takes over. */
		"KillMode=process\n",
		setting->name, setting->name);
	if (setting->path) {
		AUTO(sb_release) struct sb word = SB_INIT;

		/* A '$' is nothing special here. */
		sb_adds(&word, "PATH=");
		sb_adds(&word, setting->path);
		sb_adds(&text, "Environment=\"");
		for (const char *c = word.text; *c; c++)
			sb_addf(&text,
				*c == '"' || *c == '\\' ? "\\%c"
				: *c == '%'             ? "%%%c"
							: "%c",
				*c);
		sb_adds(&text, "\"\n");
	}
	sb_adds(&text, "ExecStart=");
	for (size_t i = 0; setting->command[i]; i++) {
		if (i > 0)
			sb_addc(&text, ' ');
		add_word(&text, setting->command[i]);
	}
	sb_addc(&text, '\n');
	return sb_take(&text);
}

static char *timer_text(const struct alarm_setting *setting)
{
	struct alarm alarms[ALARMS_MAX];
	size_t count = alarms_in_zone(&setting->cron, setting->zone, setting->from, alarms);
	struct sb text = SB_INIT;

	sb_addf(&text,
		"# Written by stoker. 'stoker schedule rm %s' removes it.\n"
		"[Unit]\n"
		"Description=stoker: alarms of %s\n"
		"\n"
		"[Timer]\n",
		setting->name, setting->name);
	for (size_t i = 0; i < count; i++) {
		char times[ALARM_TEXT];

		alarm_text_systemd(&alarms[i], setting->timezone, times);
		sb_addf(&text, "OnCalendar=%s\n", times);
	}
	sb_addf(&text, "Persistent=true\nAccuracySec=1s\n");
	if (setting->jitter_ms > 0)
		sb_addf(&text, "RandomizedDelaySec=%lldms\n", (long long)setting->jitter_ms);
	sb_adds(&text, "\n[Install]\nWantedBy=timers.target\n");
	return sb_take(&text);
}

/* Returns the folder of the user's units, or that of the machine's. */
static char *unit_folder(bool system, struct err **err)
{
	const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");

	if (system)
		return mem_copy("/etc/systemd/system");
	if (config && *config == '/')
		return fs_join(config, "systemd/user");
	if (home && *home == '/')
		return fs_join(home, ".config/systemd/user");
	err_set(err, EXIT_REFUSED, "HOME is not set: no folder is known for the user's units");
	err_hint(err, "set HOME, or use --system as root");
	return NULL;
}

/* Without lingering a user's timers stop when the user logs out: loginctl(1). */
static void warn_of_lingering(void)
{
	const struct passwd *user = getpwuid(geteuid());
	AUTO(auto_free) char *path = NULL;

	if (!user || strchr(user->pw_name, '/'))
		return;
	path = fs_join("/var/lib/systemd/linger", user->pw_name);
	if (!fs_exists(path)) {
		out_warning("alarms of user '%s' ring only while that user is logged in",
			    user->pw_name);
		out_hint("'loginctl enable-linger %s' changes that; --system sets the alarms for "
			 "the machine",
			 user->pw_name);
	}
}

static int make(const struct alarm_setting *setting, json_t **ret, struct err **err)
{
	AUTO(auto_free) char *folder = NULL, *service = NULL, *timer = NULL;
	AUTO(auto_free) char *service_name = mem_format("stoker-%s.service", setting->name);
	AUTO(auto_free) char *timer_name = mem_format("stoker-%s.timer", setting->name);

	if (kind_check_words(setting, err) < 0)
		return -1;
	folder = unit_folder(setting->system, err);
	if (!folder)
		return -1;
	if (!setting->system)
		warn_of_lingering();
	service = service_text(setting);
	timer = timer_text(setting);
	*ret = json_object();
	js_put_str(*ret, "scope", setting->system ? "system" : "user");
	js_put_str(*ret, "folder", folder);
	js_put_str(*ret, "service", service_name);
	js_put_str(*ret, "timer", timer_name);
	js_put_str(*ret, "service_text", service);
	js_put_str(*ret, "timer_text", timer);
	return 0;
}

static void print_one(const json_t *alarm, const char *name, const char *text)
{
	AUTO(auto_free) char *path = fs_join(js_str(alarm, "folder"), js_str(alarm, name));

	out_line("# %s", path);
	out_block(js_str(alarm, text));
}

static void print(const json_t *alarm)
{
	print_one(alarm, "service", "service_text");
	out_line("%s", "");
	print_one(alarm, "timer", "timer_text");
}

/* ---- the manager ---- */

static int control(const json_t *alarm, const char *verb, const char *option, const char *unit,
		   struct err **err)
{
	const char *argv[7] = { "systemctl" };
	AUTO(sb_release) struct sb out = SB_INIT;
	size_t count = 1;

	argv[count++] = js_is(alarm, "scope", "system") ? "--system" : "--user";
	argv[count++] = "--quiet";
	argv[count++] = verb;
	if (option)
		argv[count++] = option;
	argv[count] = unit;
	if (tool_must(argv, NULL, &out, err) == 0)
		return 0;
	return err_hint(err,
			"systemd must run, for this user or with --system for the machine; else "
			"use --to cron");
}

static int write_unit(const json_t *alarm, const char *name, const char *text, struct err **err)
{
	AUTO(auto_free) char *path = fs_join(js_str(alarm, "folder"), js_str(alarm, name));

	return fs_write_atomic(path, js_str(alarm, text), strlen(js_str(alarm, text)), 0644, err);
}

static int remove_unit(const json_t *alarm, const char *name, struct err **err)
{
	AUTO(auto_free) char *path = fs_join(js_str(alarm, "folder"), js_str(alarm, name));

	if (unlink(path) < 0 && errno != ENOENT)
		return fs_error(err, errno, "cannot remove '%s'", path);
	return 0;
}

static int set(const json_t *alarm, struct err **err)
{
	const char *timer = js_str(alarm, "timer");
	AUTO(err_freep) struct err *ignored = NULL;

	if (fs_mkdirs_open(js_str(alarm, "folder"), 0755, err) < 0 ||
	    write_unit(alarm, "service", "service_text", err) < 0 ||
	    write_unit(alarm, "timer", "timer_text", err) < 0)
		return -1;
	if (control(alarm, "daemon-reload", NULL, NULL, err) < 0) {
		/* If systemd does not run, no unit stays. */
		(void)!(remove_unit(alarm, "timer", &ignored) < 0 ||
			remove_unit(alarm, "service", &ignored) < 0);
		return -1;
	}
	if (control(alarm, "enable", NULL, timer, err) < 0)
		return -1;
	/* A timer that is active already would keep its former times. */
	return control(alarm, "restart", NULL, timer, err);
}

static int looks_like(const json_t *alarm, const char *name, const char *text, struct err **err)
{
	AUTO(auto_free) char *path = fs_join(js_str(alarm, "folder"), js_str(alarm, name));
	AUTO(sb_release) struct sb found = SB_INIT;
	int there = fs_look(path, err);

	if (there <= 0)
		return there;
	if (fs_read(path, UNIT_MAX, &found, err) < 0)
		return -1;
	return strcmp(found.text, js_str(alarm, text)) == 0;
}

static int look(const json_t *alarm, struct err **err)
{
	const char *argv[] = { "systemctl",
			       js_is(alarm, "scope", "system") ? "--system" : "--user",
			       "--quiet",
			       "is-active",
			       js_str(alarm, "timer"),
			       NULL };
	AUTO(sb_release) struct sb out = SB_INIT, words = SB_INIT;
	int good = looks_like(alarm, "service", "service_text", err);

	if (good > 0)
		good = looks_like(alarm, "timer", "timer_text", err);
	if (good > 0)
		good = tool_run(argv, NULL, &out, &words, err);
	else
		return good;
	return good < 0 ? -1 : good == 0;
}

/* Removes what systemd keeps of a persistent timer: when it last rang. Only a manager that is on
 * the bus is able to: systemctl(1), clean. Without one the file goes, whose name is of
 * timer_setup_persistent() in systemd's src/core/timer.c. */
static void forget_last_ring(const json_t *alarm)
{
	AUTO(auto_free) char *stamp = mem_format("stamp-%s", js_str(alarm, "timer"));
	const char *data = getenv("XDG_DATA_HOME"), *home = getenv("HOME");
	AUTO(err_freep) struct err *ignored = NULL;
	AUTO(auto_free) char *path = NULL;

	if (control(alarm, "clean", "--what=state", js_str(alarm, "timer"), &ignored) == 0)
		return;
	if (js_is(alarm, "scope", "system"))
		path = fs_join("/var/lib/systemd/timers", stamp);
	else if (data && *data == '/')
		path = mem_format("%s/systemd/timers/%s", data, stamp);
	else
		path = mem_format("%s/.local/share/systemd/timers/%s", home ? home : "", stamp);
	(void)!unlink(path);
}

static int clear(const json_t *alarm, struct err **err)
{
	AUTO(auto_free) char *path = fs_join(js_str(alarm, "folder"), js_str(alarm, "timer"));

	/* The manager knows a unit by its file. */
	if (fs_exists(path) && control(alarm, "disable", "--now", js_str(alarm, "timer"), err) < 0)
		return -1;
	forget_last_ring(alarm);
	if (remove_unit(alarm, "timer", err) < 0 || remove_unit(alarm, "service", err) < 0)
		return -1;
	return control(alarm, "daemon-reload", NULL, NULL, err);
}

const struct schedule_kind kind_systemd_row = { .name = "systemd",
						.has_system = true,
						.make = make,
						.print = print,
						.set = set,
						.look = look,
						.remove = clear };
