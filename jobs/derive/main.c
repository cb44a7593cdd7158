/*
 * stoker-derive: works out one derived value of a spec, by libjq. A program of its own, because an
 * expression is text from outside: it gets a process without environment, files and descriptors,
 * with little time and memory, which may be killed or crash.
 *
 * Input: one JSON object {"expression", "values": {NAME: value of $NAME}, "spec": what . is}.
 * Output: one JSON object:
 *   {"number" | "string" | "boolean": the value}
 *   {"not": what it gives instead: "null", "an array", "no value" …}
 *   {"invalid": libjq's words about the expression}
 *   {"error": words of an error while it was worked out}
 *   {"memory": true}
 * Nothing: the process was killed, or is broken; its status says how.
 *
 * jq.h of jq 1.6 documents none of its functions: a jv is consumed by the function that gets it,
 * unless it is one of those that read a number, a kind or a text. Numbers are doubles.
 */
#include <jq.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#define INPUT_MAX    ((size_t)4 << 20)
#define TEXT_MAX     4096 /* bytes of a text that goes back */
#define CPU_SECONDS  1
#define MEMORY_BYTES ((rlim_t)64 << 20)

/* The process ends without a word: the caller sees that there is no answer. */
static bool limit(unsigned what, rlim_t soft, rlim_t hard)
{
	const struct rlimit limits = { soft, hard };

	return setrlimit(what, &limits) == 0;
}

/* SIGXCPU, which comes at the soft limit of processor time, ends the process. */
static bool limit_all(void)
{
	return limit(RLIMIT_CORE, 0, 0) && limit(RLIMIT_CPU, CPU_SECONDS, CPU_SECONDS + 1) &&
	       limit(RLIMIT_AS, MEMORY_BYTES, MEMORY_BYTES) && limit(RLIMIT_FSIZE, 0, 0) &&
	       limit(RLIMIT_NPROC, 0, 0) && limit(RLIMIT_NOFILE, 3, 3) &&
	       prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;
}

/* Called by libjq, which cannot go on. */
static void no_memory(void *arg)
{
	static const char answer[] = "{\"memory\":true}\n";

	(void)arg;
	_exit(write(STDOUT_FILENO, answer, sizeof answer - 1) == (ssize_t)sizeof answer - 1 ? 0
											    : 1);
}

/* Reads the request; an invalid jv if it is none. */
static jv read_request(void)
{
	size_t len = 0, size = 0;
	char *text = NULL;
	jv request;

	for (;;) {
		ssize_t n;

		if (len == size) {
			char *more = size < INPUT_MAX ? realloc(text, size + 65536) : NULL;

			if (!more) {
				free(text);
				return jv_invalid();
			}
			text = more;
			size += 65536;
		}
		n = read(STDIN_FILENO, text + len, size - len);
		if (n <= 0)
			break;
		len += (size_t)n;
	}
	request = jv_parse_sized(text, (int)len);
	free(text);
	return request;
}

/* Prints {KEY: value}; consumes the value. */
static void answer(const char *key, jv value)
{
	jv line = jv_dump_string(jv_object_set(jv_object(), jv_string(key), value), JV_PRINT_ASCII);

	printf("%s\n", jv_string_value(line));
	jv_free(line);
}

static void answer_text(const char *key, const char *text)
{
	size_t len = strnlen(text, TEXT_MAX);

	answer(key, jv_string_sized(text, (int)len));
}

/* Keeps the first message about an expression that cannot be compiled; the last one counts them. */
static void on_message(void *arg, jv message)
{
	jv *first = arg, text = jv_copy(message);

	text = jq_format_error(text);
	jv_free(message);
	if (jv_get_kind(*first) == JV_KIND_NULL)
		*first = text;
	else
		jv_free(text);
}

static void answer_number(double number)
{
	if (isnan(number))
		answer_text("not", "nan");
	else if (isinf(number))
		answer_text("not", "an infinite number");
	else
		printf("{\"number\":%.17g}\n", number);
}

static void answer_string(jv string)
{
	int len = jv_string_length_bytes(jv_copy(string));

	if (len > TEXT_MAX)
		answer_text("not", "a longer string");
	else if (memchr(jv_string_value(string), '\0', (size_t)len)) /* no text of a spec has one */
		answer_text("not", "a string with a zero byte");
	else
		answer("string", jv_copy(string));
}

/* Reads the value; consumes it. */
static void answer_value(jv value)
{
	switch (jv_get_kind(value)) {
	case JV_KIND_NUMBER:
		answer_number(jv_number_value(value));
		break;
	case JV_KIND_STRING:
		answer_string(value);
		break;
	case JV_KIND_TRUE:
	case JV_KIND_FALSE:
		answer("boolean", jv_copy(value));
		break;
	case JV_KIND_ARRAY:
		answer_text("not", "an array");
		break;
	case JV_KIND_OBJECT:
		answer_text("not", "an object");
		break;
	case JV_KIND_NULL:
	case JV_KIND_INVALID:
		answer_text("not", "null");
		break;
	}
	jv_free(value);
}

/* Tells the error in an invalid jv, which is consumed. */
static void answer_error(jv invalid)
{
	jv message = jv_invalid_get_msg(invalid);

	if (jv_get_kind(message) != JV_KIND_STRING)
		message = jv_dump_string(message, 0);
	answer_text("error", jv_string_value(message));
	jv_free(message);
}

/* Works the expression out; `spec` is consumed. */
static void evaluate(jq_state *jq, jv spec)
{
	jv value, next;

	jq_start(jq, spec, 0);
	value = jq_next(jq);
	if (!jv_is_valid(value)) {
		if (jv_invalid_has_msg(jv_copy(value))) {
			answer_error(value);
			return;
		}
		jv_free(value);
		answer_text("not", "no value");
		return;
	}
	next = jq_next(jq);
	if (jv_is_valid(next)) {
		jv_free(next);
		jv_free(value);
		answer_text("not", "more than one value");
	} else if (jv_invalid_has_msg(jv_copy(next))) {
		jv_free(value);
		answer_error(next);
	} else {
		jv_free(next);
		answer_value(value);
	}
}

int main(void)
{
	static char *nothing[] = { NULL };
	jv request, expression, message = jv_null();
	jq_state *jq;

	jv_nomem_handler(no_memory, NULL);
	if (!limit_all())
		return 1;
	environ = nothing; /* libjq reads it as it is, and NULL would crash it */
	request = read_request();
	if (!jv_is_valid(request) || close(STDIN_FILENO) < 0)
		return 1;
	expression = jv_object_get(jv_copy(request), jv_string("expression"));
	jq = jq_init();
	if (!jq || jv_get_kind(expression) != JV_KIND_STRING)
		return 1;
	/* jq_next() installs this one in place of the other, and jq_init() leaves it unset. */
	jq_set_nomem_handler(jq, no_memory, NULL);
	jq_set_error_cb(jq, on_message, &message);
	if (jq_compile_args(jq, jv_string_value(expression),
			    jv_object_get(jv_copy(request), jv_string("values"))))
		evaluate(jq, jv_object_get(jv_copy(request), jv_string("spec")));
	else
		answer_text("invalid",
			    jv_get_kind(message) == JV_KIND_STRING ? jv_string_value(message) : "");
	jv_free(message);
	jv_free(expression);
	jv_free(request);
	jq_teardown(&jq);
	return fflush(stdout) == 0 ? 0 : 1;
}
