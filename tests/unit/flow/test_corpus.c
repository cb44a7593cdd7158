/*
 * The failure texts in tests/corpus, judged: how many as their sources diagnosed them, how many
 * are left unknown (and retried), and how many are taken for something else. No transient failure
 * may stop a run. The form of the files is in tests/corpus/README.md.
 * STOKER_LIST_VERDICTS=1 lists each text with its verdict.
 */
#include "tests/unit/flow/story.h"

#include <dirent.h>
#include <stdlib.h>

#include "jobs/flow/failure.h"

#define LINES_MAX  40
#define NODES_MAX  4
#define EXPECT_MAX 3
#define FILE_MAX   ((size_t)256 << 10)

/* The shares in percent: at least so many are right; at most so many are taken for something
 * else. */
#define RIGHT_MIN   75
#define WRONG_MAX   3
#define ENTRIES_MIN 2000

struct entry {
	const char *id, *from, *says, *finds;
	enum failure_class class[EXPECT_MAX];
	enum action action[EXPECT_MAX];
	int expected;
	struct failure_evidence evidence;
	struct failure_log logs[NODES_MAX];
	struct failure_line lines[LINES_MAX];
	size_t line_count;
	bool has_node;
};

struct tally {
	int entries, right, unknown, wrong, stopped;
};

static void expect(struct entry *entry, char *words)
{
	char *action = strchr(words, ' ');
	int class, number;

	assert_non_null(action);
	*action++ = '\0';
	class = flow_name_find(flow_class_names, CLASS_COUNT, words);
	number = flow_name_find(flow_action_names, ACTION_COUNT, action);
	if (class < 0 || number < 0 || entry->expected == EXPECT_MAX)
		fail_msg("%s: no such class or action: %s %s", entry->id, words, action);
	entry->class[entry->expected] = (enum failure_class) class;
	entry->action[entry->expected++] = (enum action)number;
}

static void begin_node(struct entry *entry, const char *words)
{
	struct failure_log *log = &entry->logs[entry->evidence.log_count];
	const char *signal = strstr(words, "signal="), *ended = strstr(words, "ended=");

	assert_true(entry->evidence.log_count < NODES_MAX);
	entry->evidence.log_count++;
	*log = (struct failure_log){ .lines = &entry->lines[entry->line_count] };
	log->node = (int)strtol(words, NULL, 10);
	log->signal = signal ? (int)strtol(signal + 7, NULL, 10) : 0;
	log->ended_ms = ended ? strtoll(ended + 6, NULL, 10) * 1000 : 0;
}

static void add_line(struct entry *entry, const char *text)
{
	assert_true(entry->line_count < LINES_MAX);
	if (entry->evidence.log_count == 0)
		begin_node(entry, "0");
	if (*text == ' ')
		text++;
	entry->lines[entry->line_count++] = (struct failure_line){ text, strlen(text) };
	entry->logs[entry->evidence.log_count - 1].count++;
}

static void set_agent(struct entry *entry, char *words)
{
	char *message = strstr(words, ": ");
	int class;

	assert_non_null(message);
	*message = '\0';
	class = flow_name_find(flow_class_names, CLASS_COUNT, words);
	assert_true(class > 0);
	entry->evidence.agent_class = (enum failure_class) class;
	entry->evidence.agent_message = message + 2;
}

static void set_field(struct entry *entry, const char *name, char *value)
{
	struct failure_evidence *e = &entry->evidence;

	if (strcmp(name, "from") == 0)
		entry->from = value;
	else if (strcmp(name, "says") == 0)
		entry->says = value;
	else if (strcmp(name, "finds") == 0)
		entry->finds = value;
	else if (strcmp(name, "expect") == 0)
		expect(entry, value);
	else if (strcmp(name, "phase") == 0)
		e->phase = (enum phase)flow_name_find(flow_phase_names, PHASE_COUNT, value);
	else if (strcmp(name, "exit") == 0)
		e->exit_known = strcmp(value, "none") != 0,
		e->exit = e->exit_known ? (int)strtol(value, NULL, 10) : 0;
	else if (strcmp(name, "signal") == 0)
		e->signal = (int)strtol(value, NULL, 10);
	else if (strcmp(name, "whose") == 0)
		e->node = (int)strtol(value, NULL, 10);
	else if (strcmp(name, "engine") == 0)
		e->engine_reason = value;
	else if (strcmp(name, "agent") == 0)
		set_agent(entry, value);
	else if (strcmp(name, "oom") == 0)
		e->out_of_memory = strcmp(value, "yes") == 0;
	else if (strcmp(name, "mount") == 0)
		e->agent_mount = value;
	else if (strcmp(name, "node") == 0)
		begin_node(entry, value);
	else
		fail_msg("%s: there is no field '%s'", entry->id, name);
}

/* The user's code and the user's settings both stop the run, and often the source itself does
 * not tell them apart: here they are one. */
static enum failure_class of_user(enum failure_class class)
{
	return class == CLASS_USER_CODE ? CLASS_USER_CONFIG : class;
}

static bool is_right(const struct entry *entry, const struct failure_classification *verdict)
{
	if (entry->finds && !strstr(verdict->evidence, entry->finds))
		return false;
	for (int i = 0; i < entry->expected; i++)
		if (of_user(entry->class[i]) == of_user(verdict->class))
			return true;
	return false;
}

/* True if the failure comes from outside of the program, and may go away by itself. */
static bool is_transient(const struct entry *entry)
{
	for (int i = 0; i < entry->expected; i++)
		if (entry->action[i] == ACTION_STOP || entry->action[i] == ACTION_FALL_BACK ||
		    entry->class[i] == CLASS_COMPILE)
			return false;
	return true;
}

static void judge(struct entry *entry, struct tally *tally)
{
	struct failure_classification verdict;
	bool right, stopped;

	if (!entry->from || strncmp(entry->from, "https://", 8) != 0 || !entry->says ||
	    entry->expected == 0)
		fail_msg("%s: needs from, says and expect", entry->id);
	assert_true(entry->line_count > 0 || entry->evidence.engine_reason);
	entry->evidence.logs = entry->logs;
	failure_classify(&entry->evidence, &verdict);
	right = is_right(entry, &verdict);
	stopped = retry_rows[verdict.class].action == ACTION_STOP && is_transient(entry);
	tally->entries++;
	tally->right += right;
	tally->unknown += !right && verdict.class == CLASS_UNKNOWN;
	tally->wrong += !right && verdict.class != CLASS_UNKNOWN;
	tally->stopped += stopped;
	if (getenv("STOKER_LIST_VERDICTS") || stopped || (!right && verdict.class != CLASS_UNKNOWN))
		print_message("%s%s: %s (%s), not %s\n", stopped ? "TRANSIENT, STOPPED: " : "",
			      entry->id, flow_class_names[verdict.class], verdict.rule,
			      flow_class_names[entry->class[0]]);
}

static void begin_entry(struct entry *entry, const char *id)
{
	memset(entry, 0, sizeof *entry);
	entry->id = id;
	entry->evidence =
		(struct failure_evidence){ .phase = PHASE_TRAIN, .exit_known = true, .exit = 1 };
}

static void read_entries(char *text, struct tally *tally)
{
	static struct entry entry;
	char *next;

	entry.id = NULL;
	for (char *line = text; line && *line; line = next) {
		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		if (strncmp(line, "== ", 3) == 0) {
			if (entry.id)
				judge(&entry, tally);
			begin_entry(&entry, line + 3);
		} else if (*line == '|') {
			add_line(&entry, line + 1);
		} else if (*line != '\0' && *line != '#') {
			char *value = strstr(line, ": ");

			if (!entry.id || !value) {
				fail_msg("not a line of an entry: %s", line);
				return;
			}
			*value = '\0';
			set_field(&entry, line, value + 2);
		}
	}
	if (entry.id)
		judge(&entry, tally);
}

static void read_file(const char *folder, const char *name, struct tally *tally)
{
	static char text[FILE_MAX];
	char path[1024];
	FILE *file;
	size_t len;

	snprintf(path, sizeof path, "%s/%s", folder, name);
	file = fopen(path, "re");
	assert_non_null(file);
	len = fread(text, 1, sizeof text - 1, file);
	fclose(file);
	assert_true(len < sizeof text - 1);
	text[len] = '\0';
	read_entries(text, tally);
}

static void read_folder(const char *folder, struct tally *tally)
{
	struct dirent **names;
	int count = scandir(folder, &names, NULL, alphasort);

	assert_true(count > 0);
	for (int i = 0; i < count; i++) {
		const char *end = strrchr(names[i]->d_name, '.');

		if (end && strcmp(end, ".txt") == 0)
			read_file(folder, names[i]->d_name, tally);
		free(names[i]);
	}
	free(names);
}

static void the_corpus_is_judged_as_its_sources_did(void **state)
{
	struct tally t = { 0 };

	(void)state;
	read_folder(SOURCE_ROOT "/tests/corpus", &t);
	read_folder(SOURCE_ROOT "/tests/corpus/blind", &t);
	assert_true(t.entries >= ENTRIES_MIN);
	print_message(
		"%d failure texts: %d judged as their sources did (%.1f %%), %d left unknown "
		"(%.1f %%), %d taken for something else (%.1f %%), %d transient ones stopped\n",
		t.entries, t.right, 100.0 * t.right / t.entries, t.unknown,
		100.0 * t.unknown / t.entries, t.wrong, 100.0 * t.wrong / t.entries, t.stopped);
	assert_true(t.right * 100 >= RIGHT_MIN * t.entries);
	assert_true(t.wrong * 100 <= WRONG_MAX * t.entries);
	assert_int_equal(t.stopped, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_corpus_is_judged_as_its_sources_did),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
