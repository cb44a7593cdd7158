/*
 * Why an attempt failed, out of what anybody may have printed. The input begins with
 * what is known without a log, up to the first FUZZ_PART:
 *
 *     PHASE EXIT SIGNAL and letters: m out of memory, t lines have times, e ends too
 *     the engine's words
 *     the node agent's words
 *     the mount point that is full
 *
 * and each part behind it is a node's log.
 */
#include "tests/fuzz/fuzz.h"

#include "jobs/base/text/text.h"
#include "jobs/flow/failure.h"
#include "jobs/flow/failure_internal.h"

#define LOGS  4
#define LINES 256

struct node_log {
	struct failure_line lines[LINES];
	int64_t at_ms[LINES];
};

static int take_number(struct span *line)
{
	int number = 0;

	while (line->len > 0 && *line->text == ' ') {
		line->text++;
		line->len--;
	}
	while (line->len > 0 && *line->text >= '0' && *line->text <= '9' && number < 1000) {
		number = number * 10 + (*line->text - '0');
		line->text++;
		line->len--;
	}
	return number;
}

static bool has_letter(struct span line, char letter)
{
	return line.len > 0 && memchr(line.text, letter, line.len);
}

/* The next line as a string, NULL if it is empty; yours to free. */
static char *next_words(struct span *rest)
{
	struct span line;

	if (!span_next(rest, '\n', &line) || line.len == 0)
		return NULL;
	return mem_copy_n(line.text, line.len);
}

/* Each line in a block of its own. */
static size_t read_lines(struct span text, struct node_log *log)
{
	struct span line;
	size_t count = 0;

	while (count < LINES && span_next(&text, '\n', &line)) {
		log->lines[count] = (struct failure_line){ span_copy(line), line.len };
		log->at_ms[count] = line.len > 0 ? 1000 * (unsigned char)line.text[0] : 0;
		count++;
	}
	return count;
}

/* Valid UTF-8 without controls but newline and tab. */
static void check_text(const char *text)
{
	size_t len = strlen(text);

	for (size_t at = 0, step; at < len; at += step) {
		uint32_t code = 0;

		step = text_utf8(text + at, len - at, &code);
		MUST(step > 0);
		MUST((code >= 0x20 && code != 0x7f && !(code >= 0x80 && code < 0xa0)) ||
		     code == '\n' || code == '\t');
	}
}

static bool is_node(const struct failure_evidence *evidence, int node)
{
	bool found = node == evidence->node;

	for (size_t i = 0; i < evidence->log_count; i++)
		found = found || evidence->logs[i].node == node;
	return found;
}

static void check_verdict(const struct failure_evidence *evidence,
			  const struct failure_classification *verdict)
{
	struct failure_classification again = *verdict;

	MUST((int)verdict->class >= 0 && verdict->class < CLASS_COUNT);
	MUST(verdict->rule && verdict->rule[0]);
	MUST(memchr(verdict->evidence, '\0', sizeof verdict->evidence));
	MUST(memchr(verdict->hint, '\0', sizeof verdict->hint));
	check_text(verdict->evidence);
	check_text(verdict->hint);
	MUST(verdict->decisive_bytes <= strlen(verdict->evidence));
	MUST(is_node(evidence, verdict->node));
	failure_sign(&again);
	MUST(strcmp(again.signature, verdict->signature) == 0);
}

static bool same_verdict(const struct failure_classification *a,
			 const struct failure_classification *b)
{
	return a->class == b->class && a->node == b->node &&
	       a->decisive_bytes == b->decisive_bytes && strcmp(a->rule, b->rule) == 0 &&
	       strcmp(a->evidence, b->evidence) == 0 && strcmp(a->hint, b->hint) == 0 &&
	       strcmp(a->signature, b->signature) == 0;
}

static void check_judgement(const struct failure_evidence *evidence)
{
	struct failure_classification verdict, again, without;
	struct failure_evidence bare = *evidence;

	memset(&again, 'x', sizeof again);
	failure_classify(evidence, &verdict);
	failure_classify(evidence, &again);
	check_verdict(evidence, &verdict);
	MUST(same_verdict(&verdict, &again));
	MUST(!evidence->exit_known || evidence->exit == 0 || verdict.class != CLASS_NONE);
	/* No log makes a failure a success, nor a success a failure. */
	bare.logs = NULL;
	bare.log_count = 0;
	failure_classify(&bare, &without);
	check_verdict(&bare, &without);
	MUST((verdict.class == CLASS_NONE) == (without.class == CLASS_NONE));
}

/* If it is known when each node ended, their order in the array decides nothing. */
static void check_order(const struct failure_evidence *evidence, const struct failure_log *logs)
{
	struct failure_log turned[LOGS];
	struct failure_evidence other = *evidence;
	struct failure_classification verdict, again;

	for (size_t i = 0; i < evidence->log_count; i++)
		turned[i] = logs[evidence->log_count - 1 - i];
	other.logs = turned;
	failure_classify(evidence, &verdict);
	failure_classify(&other, &again);
	MUST(same_verdict(&verdict, &again));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct node_log nodes[LOGS];
	struct failure_log logs[LOGS];
	struct span rest = { (const char *)data, size }, known, line, log;
	struct failure_evidence evidence = { .logs = logs };
	AUTO(auto_free) char *engine = NULL;
	AUTO(auto_free) char *agent = NULL;
	AUTO(auto_free) char *mount = NULL;

	span_next(&rest, FUZZ_PART, &known);
	span_next(&known, '\n', &line);
	evidence.phase = (enum phase)(take_number(&line) % PHASE_COUNT);
	evidence.exit = take_number(&line) % 256;
	evidence.exit_known = evidence.exit != 255;
	evidence.signal = take_number(&line) % 65;
	evidence.out_of_memory = has_letter(line, 'm');
	evidence.engine_reason = engine = next_words(&known);
	evidence.agent_message = agent = next_words(&known);
	evidence.agent_class =
		agent ? (enum failure_class)((unsigned char)agent[0] % CLASS_COUNT) : CLASS_NONE;
	evidence.agent_mount = mount = next_words(&known);
	while (evidence.log_count < LOGS && span_next(&rest, FUZZ_PART, &log)) {
		struct node_log *node = &nodes[evidence.log_count];
		int n = (int)evidence.log_count;

		logs[evidence.log_count++] = (struct failure_log){
			.node = n,
			.ended_ms = has_letter(line, 'e') ? 1000 + n : 0,
			.lines = node->lines,
			.at_ms = has_letter(line, 't') ? node->at_ms : NULL,
			.count = read_lines(log, node),
		};
	}
	check_judgement(&evidence);
	if (has_letter(line, 'e') && !has_letter(line, 't'))
		check_order(&evidence, logs);
	for (size_t i = 0; i < evidence.log_count; i++)
		for (size_t n = 0; n < logs[i].count; n++)
			free((char *)(uintptr_t)logs[i].lines[n].text);
	return 0;
}
