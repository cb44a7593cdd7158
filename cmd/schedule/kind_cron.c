/*
 * Alarms of cron: one line of the user's crontab, marked at its end. It goes by the clock of this
 * machine (Debian's cron knows no other zone), so it names local times of this machine.
 *
 * {"line": the whole line, without its newline, "marker": its end}
 *
 * Sources: crontab(1), crontab(5) of Debian's cron 3.0pl1.
 */
#include <stdlib.h>
#include <string.h>

#include "cmd/schedule/kind.h"
#include "cmd/schedule/tool.h"
#include "cmd/screen/out.h"
#include "jobs/base/fs/zoneinfo.h"
#include "jobs/calendar/alarm_text.h"

#define CRONTAB_MAX ((size_t)4 << 20)
#define LINE_MAX_   998 /* MAX_COMMAND of Debian's cron is 1000, with its end */
#define TRIES       5

/* ---- the line ---- */

static bool is_plain(const char *word)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				    "_./:=@,+-";

	return *word && word[strspn(word, plain)] == '\0';
}

/* Adds a word for sh. cron takes a '%' for the end of the command, unless a backslash precedes it,
 * which it removes. */
static void add_word(struct sb *line, const char *word)
{
	bool plain = is_plain(word);

	if (!plain)
		sb_addc(line, '\'');
	for (; *word; word++)
		if (*word == '\'')
			sb_adds(line, "'\\''");
		else if (*word == '%')
			sb_adds(line, "\\%");
		else
			sb_addc(line, *word);
	if (!plain)
		sb_addc(line, '\'');
}

/* Reads the zone by which cron goes. */
static int own_zone(struct sb *bytes, struct zone *ret, struct err **err)
{
	int found = zoneinfo_read_own(bytes, err);

	if (found < 0)
		return -1;
	if (found == 0)
		zone_utc(ret);
	else if (!zone_read(bytes->text, bytes->len, ret)) {
		err_set(err, EXIT_REFUSED,
			"the time zone of this machine, /etc/localtime, is "
			"damaged");
		return err_hint(err, "set it again: timedatectl set-timezone ZONE");
	}
	return 0;
}

static int make(const struct alarm_setting *setting, json_t **ret, struct err **err)
{
	AUTO(sb_release) struct sb line = SB_INIT, bytes = SB_INIT;
	AUTO(auto_free) char *marker = mem_format(" # stoker schedule %s", setting->name);
	char times[ALARM_TEXT];
	struct cron cron;
	struct zone own;

	if (kind_check_words(setting, err) < 0 || own_zone(&bytes, &own, err) < 0)
		return -1;
	alarms_elsewhere(&setting->cron, setting->zone, &own, setting->from, &cron);
	alarm_text_cron(&cron, times);
	sb_addf(&line, "%s ", times);
	if (setting->path) {
		sb_adds(&line, "PATH=");
		add_word(&line, setting->path);
		sb_addc(&line, ' ');
	}
	for (size_t i = 0; setting->command[i]; i++) {
		if (i > 0)
			sb_addc(&line, ' ');
		add_word(&line, setting->command[i]);
	}
	sb_adds(&line, marker);
	if (line.len - strlen(times) > LINE_MAX_) {
		err_set(err, EXIT_REFUSED,
			"the line for cron is too long: %zu bytes, and cron "
			"takes a command of %d",
			line.len, LINE_MAX_);
		return err_hint(err, "shorten PATH or --state, or use --to systemd");
	}
	if (setting->jitter_ms > 0)
		out_warning("cron has no random delay: schedule.jitter is left out");
	*ret = json_object();
	js_put_str(*ret, "line", line.text);
	js_put_str(*ret, "marker", marker);
	return 0;
}

static void print(const json_t *alarm)
{
	out_line("%s", js_str(alarm, "line"));
}

/* ---- the crontab ---- */

static int read_crontab(struct sb *ret, struct err **err)
{
	static const char *const argv[] = { "crontab", "-l", NULL };
	AUTO(sb_release) struct sb words = SB_INIT;
	int status;

	sb_clear(ret);
	status = tool_run(argv, NULL, ret, &words, err);
	if (status <= 0)
		return status;
	sb_clear(ret);
	if (strstr(words.text, "no crontab for"))
		return 0;
	err_set(err, EXIT_REFUSED, "'crontab -l' ended with %d: %.200s", status, words.text);
	return err_hint(err, "see crontab(1); /etc/cron.allow and /etc/cron.deny say who may use "
			     "cron");
}

static bool is_ours(const char *line, size_t len, const char *marker)
{
	size_t end = strlen(marker);

	return len > end && line[0] != '#' && memcmp(line + len - end, marker, end) == 0;
}

/* Writes the crontab with our line in place of those that have its marker, or at the end; `line`
 * NULL: without it. Every other line stays byte for byte. */
static void edit(const struct sb *crontab, const char *line, const char *marker, struct sb *ret)
{
	const char *at = crontab->text, *end = crontab->text + crontab->len;

	sb_clear(ret);
	while (at < end) {
		const char *stop = memchr(at, '\n', (size_t)(end - at));
		size_t len = (size_t)((stop ? stop : end) - at);

		if (!is_ours(at, len, marker)) {
			sb_add(ret, at, len + (stop != NULL));
		} else if (line) {
			sb_addf(ret, "%s\n", line);
			line = NULL;
		}
		at = stop ? stop + 1 : end;
	}
	if (!line)
		return;
	/* cron ignores a last line without an end. */
	if (ret->len > 0 && ret->text[ret->len - 1] != '\n')
		sb_addc(ret, '\n');
	sb_addf(ret, "%s\n", line);
}

static bool is_same(const struct sb *a, const struct sb *b)
{
	return a->len == b->len && memcmp(a->text, b->text, a->len) == 0;
}

static int write_crontab(const struct sb *text, struct err **err)
{
	static const char *const replace[] = { "crontab", "-", NULL };
	static const char *const remove[] = { "crontab", "-r", NULL };
	AUTO(sb_release) struct sb out = SB_INIT;

	return tool_must(text->len > 0 ? replace : remove, text->text, &out, err);
}

/* Makes the change to the crontab as it is, also if somebody changes it meanwhile. */
static int change(const char *line, const char *marker, struct err **err)
{
	AUTO(sb_release) struct sb before = SB_INIT_MAX(CRONTAB_MAX);
	AUTO(sb_release) struct sb again = SB_INIT_MAX(CRONTAB_MAX);
	AUTO(sb_release) struct sb after = SB_INIT_MAX(CRONTAB_MAX);

	if (read_crontab(&before, err) < 0)
		return -1;
	for (int i = 0; i < TRIES; i++) {
		edit(&before, line, marker, &after);
		if (memchr(before.text, '\0', before.len) || after.truncated)
			return err_set(err, EXIT_REFUSED, "the crontab is no text, or too long");
		if (is_same(&before, &after))
			return 0;
		if (read_crontab(&again, err) < 0)
			return -1;
		if (is_same(&before, &again))
			return write_crontab(&after, err);
		sb_clear(&before);
		sb_add(&before, again.text, again.len);
	}
	err_set(err, EXIT_REFUSED, "another program keeps changing the crontab");
	return err_hint(err, "try again later");
}

static int set(const json_t *alarm, struct err **err)
{
	return change(js_str(alarm, "line"), js_str(alarm, "marker"), err);
}

static int look(const json_t *alarm, struct err **err)
{
	AUTO(sb_release) struct sb crontab = SB_INIT_MAX(CRONTAB_MAX);
	AUTO(sb_release) struct sb after = SB_INIT_MAX(CRONTAB_MAX);

	if (read_crontab(&crontab, err) < 0)
		return -1;
	edit(&crontab, js_str(alarm, "line"), js_str(alarm, "marker"), &after);
	return is_same(&crontab, &after);
}

static int clear(const json_t *alarm, struct err **err)
{
	return change(NULL, js_str(alarm, "marker"), err);
}

const struct schedule_kind kind_cron_row = {
	.name = "cron", .make = make, .print = print, .set = set, .look = look, .remove = clear
};
