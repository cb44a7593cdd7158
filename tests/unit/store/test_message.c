/*
 * The promises of jobs/store/message.h, for every row of the tables: what is encoded decodes to the
 * same, byte for byte; a wrong type is an error that names the member; docs/protocol.md has each
 * row. The files in messages/ were written by earlier versions and decode for ever.
 *
 * With the argument --print it prints the tables of docs/protocol.md.
 */
#include "jobs/store/message.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "jobs/base/fs/fs.h"
#include "jobs/base/sb.h"
#include "jobs/store/node_report.h"
#include "jobs/store/order.h"

#define DOCUMENT SOURCE_ROOT "/docs/protocol.md"

static const struct message *tables(size_t i)
{
	const struct message *const all[] = { order_message, node_report_message };

	return i < STK_LENGTH(all) ? all[i] : NULL;
}

/* ---- samples made from the rows ---- */

static json_t *sample_of(const struct message *message);

static json_t *value_of(const struct message_field *field)
{
	switch (field->type) {
	case MESSAGE_INT:
		return json_integer(-7);
	case MESSAGE_BOOL:
		return json_true();
	case MESSAGE_TEXT:
		return json_string("a text \xc3\xa4");
	case MESSAGE_TEXTS:
		return json_pack("[s, s]", "one", "two");
	case MESSAGE_MAP:
		return json_pack("{s:s, s:s}", "b", "1", "a", "");
	case MESSAGE_PAIRS:
		return json_pack("[[s, s]]", "name", "/target");
	case MESSAGE_JSON:
		return json_pack("{s:[f]}", "any", 0.5);
	case MESSAGE_OBJECT:
	case MESSAGE_SHAPE:
		return sample_of(field->of);
	case MESSAGE_LIST:
	case MESSAGE_SHAPES:
		return json_pack("[o, o]", sample_of(field->of), sample_of(field->of));
	}
	return NULL;
}

/* Has every member, the last row first: the order of the rows means nothing. */
static json_t *sample_of(const struct message *message)
{
	json_t *sample = json_object();

	for (size_t i = message->count; i-- > 0;)
		js_put(sample, message->fields[i].name, value_of(&message->fields[i]));
	return sample;
}

static char *decoded_and_encoded(const struct message *message, const json_t *json)
{
	void *decoded = mem_zero(1, message->size);
	struct err *err = NULL;
	json_auto_t *again = NULL;

	if (message_decode(message, json, decoded, &err) < 0)
		fail_msg("%s", err->message);
	again = message_encode(message, decoded);
	message_release(message, decoded);
	free(decoded);
	return js_line(again);
}

static void every_row_comes_back_as_it_was(void **state)
{
	(void)state;
	for (size_t i = 0; tables(i); i++) {
		json_auto_t *sample = sample_of(tables(i));
		AUTO(auto_free) char *before = js_line(sample);
		AUTO(auto_free) char *after = decoded_and_encoded(tables(i), sample);

		assert_string_equal(after, before);
	}
}

static void a_member_that_is_absent_null_or_unknown_is_not_encoded(void **state)
{
	(void)state;
	for (size_t i = 0; tables(i); i++) {
		json_auto_t *sample = sample_of(tables(i));
		AUTO(auto_free) char *before = js_line(sample);

		json_object_set_new(sample, "of_a_newer_version", json_true());
		for (size_t row = 0; row < tables(i)->count; row++) {
			const struct message_field *field = &tables(i)->fields[row];
			json_auto_t *less = json_deep_copy(sample), *without = NULL;
			AUTO(auto_free) char *after = NULL;
			AUTO(auto_free) char *wanted = NULL;

			if (field->presence == MESSAGE_NEEDED)
				continue;
			json_object_set_new(less, field->name, json_null());
			after = decoded_and_encoded(tables(i), less);
			without = json_loads(before, 0, NULL);
			json_object_del(without, field->name);
			wanted = js_line(without);
			assert_string_equal(after, wanted);
		}
	}
}

/* ---- errors ---- */

static void assert_refused(const struct message *message, const json_t *json, const char *words)
{
	void *decoded = mem_zero(1, message->size);
	struct err *err = NULL;

	assert_int_equal(message_decode(message, json, decoded, &err), -1);
	if (!strstr(err->message, words))
		fail_msg("'%s' does not contain '%s'", err->message, words);
	err_free(err);
	message_release(message, decoded);
	free(decoded);
}

/* Replaces each member of `message`, which lies in `part` of `whole`, by a value of no type that it
 * may have. */
static void spoil(const struct message *top, json_t *whole, const struct message *message,
		  json_t *part)
{
	for (size_t i = 0; i < message->count; i++) {
		const struct message_field *field = &message->fields[i];
		json_auto_t *right = json_incref(json_object_get(part, field->name));
		AUTO(auto_free) char *words = mem_format("%s' is no ", field->name);

		if (field->type == MESSAGE_JSON)
			continue;
		json_object_set_new(part, field->name, json_real(0.5));
		assert_refused(top, whole, words);
		json_object_set(part, field->name, right);
		if (field->of)
			spoil(top, whole, field->of,
			      json_is_array(right) ? json_array_get(right, 1) : right);
	}
}

static void a_wrong_type_is_an_error_that_names_the_member(void **state)
{
	(void)state;
	for (size_t i = 0; tables(i); i++) {
		json_auto_t *sample = sample_of(tables(i));

		spoil(tables(i), sample, tables(i), sample);
	}
}

static void a_needed_member_that_is_absent_is_an_error_that_names_it(void **state)
{
	(void)state;
	for (size_t i = 0; tables(i); i++)
		for (size_t row = 0; row < tables(i)->count; row++) {
			const struct message_field *field = &tables(i)->fields[row];
			json_auto_t *sample = sample_of(tables(i));
			AUTO(auto_free) char *words = mem_format("'%s' is missing", field->name);

			json_object_del(sample, field->name);
			if (field->presence == MESSAGE_NEEDED)
				assert_refused(tables(i), sample, words);
		}
}

static void members_are_encoded_in_the_order_in_which_they_were_set(void **state)
{
	struct node_report report = { 0 };

	(void)state;
	MESSAGE_SET(&report, exit, 3);
	MESSAGE_MARK(&report, silence);
	MESSAGE_SET(&report.silence, since, 1);
	MESSAGE_SET_TEXT(&report, state, REPORT_RUNNING);
	MESSAGE_SET_TEXT(&report, host, NULL);
	MESSAGE_SET(&report, exit, 0);
	message_remove(node_report_message, &report, "silence");
	MESSAGE_MARK(&report, silence);
	message_renew(node_report_message, &report, "state");
	MESSAGE_SET_TEXT(&report, state, "a\xff");
	{
		json_auto_t *json = message_encode(node_report_message, &report);
		AUTO(auto_free) char *text = js_line(json);

		assert_string_equal(text,
				    "{\"exit\":0,\"state\":\"a\xef\xbf\xbd\",\"silence\":{}}");
	}
	node_report_release(&report);
}

/* ---- files of earlier versions ---- */

static void check_file(const struct message *message, const char *name)
{
	AUTO(auto_free) char *path = mem_format(TEST_DATA "/messages/%s", name);
	AUTO(sb_release) struct sb text = SB_INIT_MAX((size_t)1 << 20);
	AUTO(auto_free) char *again = NULL;
	struct err *err = NULL;
	json_auto_t *json = NULL;

	assert_int_equal(fs_read(path, (size_t)1 << 20, &text, &err), 0);
	assert_int_equal(js_parse(text.text, text.len, name, &json, &err), 0);
	again = decoded_and_encoded(message, json);
	assert_string_equal(again, text.text);
}

static void files_of_earlier_versions_decode_and_are_encoded_as_they_were(void **state)
{
	static const char *const orders[] = { "order-train-compile.json", "order-precompile.json",
					      "order-health.json", "order-resume.json" };
	static const char *const reports[] = { "report-sick.json",
					       "report-health-node-0.json",
					       "report-partial-passed-outputs.json",
					       "report-passed-first.json",
					       "report-signal.json",
					       "report-compiler.json" };

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(orders); i++)
		check_file(order_message, orders[i]);
	for (size_t i = 0; i < STK_LENGTH(reports); i++)
		check_file(node_report_message, reports[i]);
}

/* ---- the document ---- */

static const char *type_words(const struct message_field *field)
{
	static const char *const words[] = {
		[MESSAGE_INT] = "number",  [MESSAGE_BOOL] = "true or false",
		[MESSAGE_TEXT] = "text",   [MESSAGE_TEXTS] = "list of texts",
		[MESSAGE_MAP] = "object",  [MESSAGE_PAIRS] = "list of [text, text]",
		[MESSAGE_JSON] = "value",  [MESSAGE_OBJECT] = "object",
		[MESSAGE_LIST] = "list",   [MESSAGE_SHAPE] = "object",
		[MESSAGE_SHAPES] = "list",
	};

	return words[field->type];
}

static void add_presence(struct sb *ret, const struct message_field *field)
{
	static const char *const words[] = { [MESSAGE_NEEDED] = "needed",
					     [MESSAGE_ALWAYS] = "always",
					     [MESSAGE_OPTIONAL] = "optional" };

	if (field->presence == MESSAGE_ELSE)
		sb_addf(ret, "default %lld", (long long)field->fallback);
	else
		sb_adds(ret, words[field->presence]);
}

/* The words of the tables for people: a row with the title of a message, then one for each
 * member. */
static const struct {
	const char *title, *name, *help;
} docs[] = {
#define MESSAGE(m, title)                    { title, NULL, NULL },
#define FIELD(m, type, name, presence, help) { NULL, #name, help },
#define END(m)
#include "jobs/store/node_report.def"
#include "jobs/store/order.def"
#undef MESSAGE
#undef FIELD
#undef END
};

static const char *help_of(const struct message *message, const char *name)
{
	size_t i = 0;

	while (!docs[i].title || strcmp(docs[i].title, message->title) != 0)
		i++;
	for (i++; strcmp(docs[i].name, name) != 0;)
		i++;
	return docs[i].help;
}

/* Adds the rows of a message, and behind each object those of its message. */
static void add_rows(struct sb *ret, const struct message *message, const char *above)
{
	for (size_t i = 0; i < message->count; i++) {
		const struct message_field *field = &message->fields[i];
		AUTO(auto_free) char *path = mem_format("%s%s", above, field->name);
		AUTO(auto_free) char *beneath = NULL;

		sb_addf(ret, "| `%s` | %s | ", path, type_words(field));
		add_presence(ret, field);
		sb_addf(ret, " | %s |\n", help_of(message, field->name));
		if (!field->of)
			continue;
		beneath = mem_format(
			"%s%s.", path,
			field->type == MESSAGE_LIST || field->type == MESSAGE_SHAPES ? "[]" : "");
		add_rows(ret, field->of, beneath);
	}
}

static void add_table(struct sb *ret, const struct message *message)
{
	sb_adds(ret, "| Member | Type | Presence | Meaning |\n|---|---|---|---|\n");
	add_rows(ret, message, "");
}

static void the_document_has_the_tables(void **state)
{
	AUTO(sb_release) struct sb text = SB_INIT_MAX((size_t)1 << 20);
	struct err *err = NULL;

	(void)state;
	if (fs_read(DOCUMENT, (size_t)1 << 20, &text, &err) < 0)
		fail_msg("%s", err->message);
	for (size_t i = 0; tables(i); i++) {
		AUTO(sb_release) struct sb table = SB_INIT_MAX((size_t)1 << 20);

		add_table(&table, tables(i));
		if (!strstr(text.text, table.text))
			fail_msg("docs/protocol.md lacks the table of %s, which '%s --print' shows",
				 tables(i)->title, "unit_store_message");
	}
}

static int print_tables(void)
{
	for (size_t i = 0; tables(i); i++) {
		AUTO(sb_release) struct sb table = SB_INIT_MAX((size_t)1 << 20);

		add_table(&table, tables(i));
		printf("# %s\n\n%s\n", tables(i)->title, table.text);
	}
	return 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_row_comes_back_as_it_was),
		cmocka_unit_test(a_member_that_is_absent_null_or_unknown_is_not_encoded),
		cmocka_unit_test(a_wrong_type_is_an_error_that_names_the_member),
		cmocka_unit_test(a_needed_member_that_is_absent_is_an_error_that_names_it),
		cmocka_unit_test(members_are_encoded_in_the_order_in_which_they_were_set),
		cmocka_unit_test(files_of_earlier_versions_decode_and_are_encoded_as_they_were),
		cmocka_unit_test(the_document_has_the_tables),
	};

	if (argc > 1 && strcmp(argv[1], "--print") == 0)
		return print_tables();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
