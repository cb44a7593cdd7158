/* Loading: files of every kind, typed access, places, overrides, bounds. */
#include "tests/unit/spec/spec_fixture.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "jobs/base/fs/fs.h"
#include "jobs/base/sb.h"

static char folder[] = "/tmp/stoker-load-XXXXXX";

static int make_folder(void **state)
{
	(void)state;
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	return fs_remove_tree(folder, &err);
}

/* Loading it must fail without a problem list; returns message and hint. */
static char *refused(const char *path)
{
	AUTO(problems_release) struct problems problems = { 0 };
	AUTO(spec_freep) struct spec *spec = NULL;
	AUTO(err_freep) struct err *err = NULL;
	AUTO(auto_free) char *message = NULL;

	assert_int_equal(spec_load(path, NULL, no_variables, &spec, &problems, &err), -1);
	assert_non_null(err);
	assert_int_equal(err->code, EXIT_SPEC);
	assert_string_equal(err->file, path);
	assert_int_equal(problems.count, 0);
	assert_non_null(err->hint);
	message = err_format(err);
	return mem_format("%s; %s", message, err->hint);
}

static void a_missing_file_is_refused_with_a_cure(void **state)
{
	AUTO(auto_free) char *path = fs_join(folder, "nowhere.yaml");
	AUTO(auto_free) char *said = refused(path);

	(void)state;
	assert_non_null(strstr(said, "No such file"));
	assert_non_null(strstr(said, "stoker init"));
}

static void folders_pipes_and_devices_are_refused_without_waiting(void **state)
{
	AUTO(auto_free) char *pipe_path = fs_join(folder, "pipe");
	AUTO(auto_free) char *about_folder = refused(folder);
	AUTO(auto_free) char *about_pipe = NULL;
	AUTO(auto_free) char *about_device = refused("/dev/zero");

	(void)state;
	assert_int_equal(mkfifo(pipe_path, 0600), 0);
	about_pipe = refused(pipe_path);
	assert_non_null(strstr(about_folder, "a directory"));
	assert_non_null(strstr(about_pipe, "a pipe"));
	assert_non_null(strstr(about_device, "a device"));
}

static void a_file_without_rights_is_refused(void **state)
{
	AUTO(auto_free) char *path = fs_join(folder, "secret.yaml");
	AUTO(auto_free) char *said = NULL;
	AUTO(err_freep) struct err *err = NULL;
	bool root = geteuid() == 0;

	(void)state;
	assert_int_equal(fs_write_atomic(path, HEAD, strlen(HEAD), 0000, &err), 0);
	assert_int_equal(chmod(folder, 0755), 0);
	if (root) /* who may read everything */
		assert_int_equal(seteuid(65534), 0);
	said = refused(path);
	if (root)
		assert_int_equal(seteuid(0), 0);
	assert_non_null(strstr(said, "Permission denied"));
	assert_non_null(strstr(said, "chmod"));
}

static void values_come_back_in_their_types(void **state)
{
	AUTO(spec_freep)
	struct spec *spec =
		good_spec(HEAD "resources: {nodes: 3, price: 2}\nsource: {allow_dirty: true}\n"
			       "compile: {timeout: 90s}\nlimits: {cost: 1.5}\n"
			       "evaluate: {command: [a], metric: m, max_drop: 0.1%}\n",
			  NULL);

	(void)state;
	assert_int_equal(spec_int(spec, SPEC_RESOURCES_NODES), 3);
	assert_true(spec_real(spec, SPEC_RESOURCES_PRICE) == 2.0);
	assert_true(spec_bool(spec, SPEC_SOURCE_ALLOW_DIRTY));
	assert_int_equal(spec_ms(spec, SPEC_COMPILE_TIMEOUT), 90000);
	assert_int_equal(spec_bytes(spec, SPEC_RESOURCES_SHM), INT64_C(8) << 30);
	assert_int_equal(spec_ms(spec, SPEC_COMPILE_QUIET_PERIOD), SPEC_WORD);
	assert_true(spec_says(spec, SPEC_COMPILE_QUIET_PERIOD, "auto"));
	assert_string_equal(spec_str(spec, SPEC_NAME), "x");
	assert_null(spec_get(spec, SPEC_WORKSPACE));
	assert_null(spec_get(spec, SPEC_METRICS_NAME));
	assert_int_equal(json_array_size(spec_get(spec, SPEC_COMMAND)), 2);
	assert_string_equal(spec_file(spec), "spec.yaml");
}

static void what_is_left_out_gets_its_default(void **state)
{
	AUTO(spec_freep) struct spec *spec = good_spec(HEAD, NULL);

	(void)state;
	assert_string_equal(spec_str(spec, SPEC_ENGINE), "local");
	assert_string_equal(spec_str(spec, SPEC_SOURCE_PATH), ".");
	assert_int_equal(spec_int(spec, SPEC_RETRY_ATTEMPTS), 20);
	assert_int_equal(spec_ms(spec, SPEC_RETRY_BACKOFF_FIRST), 30000);
	assert_int_equal(json_array_size(spec_get(spec, SPEC_COMPILE_IGNORE)), 3);
	assert_true(json_is_object(spec_get(spec, SPEC_ENV)));
	assert_true(json_is_array(spec_get(spec, SPEC_METRICS)));
	/* Parts that a spec does not have are not there: no phase, no engine by default. */
	assert_null(json_object_get(spec_root(spec), "evaluate"));
	assert_null(json_object_get(spec_root(spec), "schedule"));
	assert_null(json_object_get(spec_root(spec), "sagemaker"));
	assert_false(spec_is_set(spec, SPEC_ENGINE));
	assert_true(spec_is_set(spec, SPEC_NAME));
}

static void an_engine_brings_the_defaults_of_its_section(void **state)
{
	AUTO(spec_freep)
	struct spec *spec =
		good_spec(HEAD "engine: sagemaker\nworkspace: s3://bucket\nimage: i:1\n"
			       "resources: {instance: ml.trn1.2xlarge}\n"
			       "sagemaker: {role: \"arn:aws:iam::123456789012:role/x\"}\n",
			  NULL);

	(void)state;
	assert_string_equal(spec_str(spec, SPEC_SAGEMAKER_LAUNCHER), "node");
	assert_null(json_object_get(spec_root(spec), "batch"));
}

static void places_are_those_of_the_text(void **state)
{
	AUTO(spec_freep)
	struct spec *spec = good_spec(HEAD "retry:\n  backoff: {first: 1s}\nenv: {a: b}\n"
					   "hyperparameters: {x.y: [1, 2]}\n"
					   "metrics:\n  - {name: m, regex: '(.)'}\n",
				      (char *[]){ "resources.nodes=2", NULL });
	int line, column;

	(void)state;
	assert_true(spec_position(spec, "retry.backoff.first", NULL, &line, &column));
	assert_true(line == 5 && column == 20);
	assert_true(spec_position(spec, "retry.backoff", NULL, &line, &column));
	assert_true(line == 5 && column == 3);
	assert_true(spec_position(spec, "env.a", NULL, &line, &column));
	assert_true(line == 6 && column == 10);
	assert_true(spec_position(spec, "hyperparameters.x.y", NULL, &line, &column));
	assert_true(line == 7 && column == 19);
	assert_true(spec_position(spec, "metrics[0].regex", NULL, &line, &column));
	assert_true(line == 9 && column == 22);
	assert_true(spec_position(spec, "resources.nodes", NULL, &line, &column));
	assert_true(line == 0 && column == 0);
	assert_false(spec_position(spec, "metrics[1].regex", NULL, &line, &column));
	assert_false(spec_position(spec, "compile.kind", NULL, &line, &column));
	assert_false(spec_position(spec, "env.b", NULL, &line, &column));
}

static void later_overrides_win_and_anchors_stay_apart(void **state)
{
	AUTO(spec_freep)
	struct spec *spec = good_spec(HEAD "env: &e {A: one}\ntags: *e\n",
				      (char *[]){ "env.A=two", "env.A=three", "name=later", NULL });
	const json_t *tags = spec_get(spec, SPEC_TAGS), *env = spec_get(spec, SPEC_ENV);

	(void)state;
	assert_string_equal(json_string_value(json_object_get(env, "A")), "three");
	assert_string_equal(json_string_value(json_object_get(tags, "A")), "one");
	assert_string_equal(spec_str(spec, SPEC_NAME), "later");
}

static void an_override_cures_what_the_file_has_wrong(void **state)
{
	AUTO(spec_freep)
	struct spec *spec = good_spec(HEAD "resources: {nodes: many}\n",
				      (char *[]){ "resources.nodes=2", NULL });

	(void)state;
	assert_int_equal(spec_int(spec, SPEC_RESOURCES_NODES), 2);
}

static void norway_is_no_boolean(void **state)
{
	AUTO(spec_freep)
	struct spec *spec = good_spec(
		HEAD "env: {COUNTRY: no, ON: on}\nhyperparameters: {y: yes, on: off}\n", NULL);
	const json_t *env = spec_get(spec, SPEC_ENV);
	AUTO(auto_strv) char **argv = spec_arguments(spec, false);

	(void)state;
	assert_string_equal(json_string_value(json_object_get(env, "COUNTRY")), "no");
	assert_string_equal(json_string_value(json_object_get(env, "ON")), "on");
	assert_string_equal(argv[2], "--y");
	assert_string_equal(argv[3], "yes");
	assert_string_equal(argv[5], "off");
}

static const char *one_variable(const char *name)
{
	return strcmp(name, "EVIL") == 0 ? "${STOKER_RUN}$$" : NULL;
}

/* People and checks see the text; the agent can tell it from a reference, and so
 * can the graph key. */
static void what_only_looks_like_a_reference_is_told_from_one(void **state)
{
	static const char text[] = HEAD "env:\n"
					"  A: $${STOKER_RUN}-${STOKER_RUN}-$$$${STOKER_RUN}\n"
					"  B: ${EVIL}\n"
					"  C: $$${STOKER_RUN}\n"
					"  D: ${STOKER_X:-$$y}$$\n";
	static const char *const wanted[][3] = {
		{ "A", "${STOKER_RUN}-${STOKER_RUN}-$${STOKER_RUN}",
		  "$${STOKER_RUN}-${STOKER_RUN}-$$$${STOKER_RUN}" },
		{ "B", "${STOKER_RUN}$$", "$${STOKER_RUN}$$" },
		{ "C", "$${STOKER_RUN}", "$$${STOKER_RUN}" },
		{ "D", "${STOKER_X:-$y}$", "${STOKER_X:-$y}$" },
	};
	AUTO(problems_release) struct problems problems = { 0 };
	AUTO(spec_freep) struct spec *spec = NULL;
	json_auto_t *env = NULL;
	json_auto_t *key = NULL;
	AUTO(auto_free) char *deferred = spec_deferred("/a/$${STOKER_X}");

	(void)state;
	assert_int_equal(spec_parse("s", text, strlen(text), NULL, one_variable, &spec, &problems),
			 0);
	env = spec_env(spec, false);
	key = spec_key_ingredients(spec);
	for (size_t i = 0; i < STK_LENGTH(wanted); i++) {
		AUTO(auto_free) char *ingredient = mem_format("env.%s", wanted[i][0]);

		assert_string_equal(js_str(spec_get(spec, SPEC_ENV), wanted[i][0]), wanted[i][1]);
		assert_string_equal(js_str(env, wanted[i][0]), wanted[i][2]);
		assert_string_equal(js_str(key, ingredient), wanted[i][2]);
	}
	assert_string_equal(deferred, "/a/$$$${STOKER_X}");
}

static void an_override_without_path_or_value_is_refused(void **state)
{
	static const char *const sets[] = { "resources.nodes", "=5", "" };

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(sets); i++) {
		AUTO(auto_free)
		char *said = bad_spec(HEAD, (char *[]){ (char *)(uintptr_t)sets[i], NULL });

		assert_non_null(strstr(said, "--set: "));
		assert_non_null(strstr(said, "path=value"));
	}
}

static void problems_are_bounded_and_errors_are_kept_before_lints(void **state)
{
	AUTO(sb_release) struct sb text = SB_INIT;
	AUTO(problems_release) struct problems problems = { 0 };
	AUTO(spec_freep) struct spec *spec = NULL;
	bool listed = false;

	(void)state;
	sb_adds(&text, HEAD "env:\n");
	for (int i = 0; i < 300; i++)
		sb_addf(&text, "  V%d: \"\u201cquoted\u201d\"\n", i);
	sb_adds(&text, "retry: {attempts: none}\n");
	assert_int_equal(spec_parse("s", text.text, text.len, NULL, no_variables, &spec, &problems),
			 -1);
	assert_int_equal(problems.count, SPEC_PROBLEMS_MAX);
	assert_int_equal(problems.errors, 1);
	assert_int_equal(problems.dropped, 201);
	for (size_t i = 0; i < problems.count; i++)
		listed = listed || !problems.list[i].lint;
	assert_true(listed);
}

static void ten_thousand_unknown_names_are_answered_at_once(void **state)
{
	AUTO(sb_release) struct sb text = SB_INIT;
	AUTO(problems_release) struct problems problems = { 0 };
	AUTO(spec_freep) struct spec *spec = NULL;

	(void)state;
	sb_adds(&text, HEAD);
	for (int i = 0; i < 10000; i++)
		sb_addf(&text, "unknown_field_%d: 1\n", i);
	assert_int_equal(spec_parse("s", text.text, text.len, NULL, no_variables, &spec, &problems),
			 -1);
	assert_int_equal(problems.count, SPEC_PROBLEMS_MAX);
	assert_int_equal(problems.errors, 10000);
	assert_int_equal(problems.dropped, 10000 - SPEC_PROBLEMS_MAX);
	assert_int_equal(problems.list[0].line, 4);
}

static const char *huge_variable(const char *name)
{
	static char text[100001];

	if (strcmp(name, "HUGE") != 0)
		return NULL;
	memset(text, 'x', sizeof text - 1);
	return text;
}

static void variables_cannot_fill_the_memory(void **state)
{
	AUTO(sb_release) struct sb text = SB_INIT;
	AUTO(problems_release) struct problems problems = { 0 };
	AUTO(spec_freep) struct spec *spec = NULL;

	(void)state;
	sb_adds(&text, HEAD "env:\n");
	for (int i = 0; i < 1000; i++)
		sb_addf(&text, "  V%d: ${HUGE}\n", i);
	assert_int_equal(
		spec_parse("s", text.text, text.len, NULL, huge_variable, &spec, &problems), -1);
	assert_int_equal(problems.errors, 1);
	assert_non_null(strstr(problems.list[0].message, "8 MiB"));
}

static const char *latin1_variable(const char *name)
{
	(void)name;
	return "caf\xe9";
}

static void a_variable_that_is_not_utf_8_is_refused(void **state)
{
	static const char text[] = HEAD "env: {A: \"${WHERE}\"}\n";
	AUTO(problems_release) struct problems problems = { 0 };
	AUTO(spec_freep) struct spec *spec = NULL;

	(void)state;
	assert_int_equal(
		spec_parse("s", text, strlen(text), NULL, latin1_variable, &spec, &problems), -1);
	assert_non_null(strstr(problems.list[0].message, "not UTF-8"));
	assert_true(problems.list[0].line == 4 && problems.list[0].column == 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_missing_file_is_refused_with_a_cure),
		cmocka_unit_test(folders_pipes_and_devices_are_refused_without_waiting),
		cmocka_unit_test(a_file_without_rights_is_refused),
		cmocka_unit_test(values_come_back_in_their_types),
		cmocka_unit_test(what_is_left_out_gets_its_default),
		cmocka_unit_test(an_engine_brings_the_defaults_of_its_section),
		cmocka_unit_test(places_are_those_of_the_text),
		cmocka_unit_test(later_overrides_win_and_anchors_stay_apart),
		cmocka_unit_test(an_override_cures_what_the_file_has_wrong),
		cmocka_unit_test(norway_is_no_boolean),
		cmocka_unit_test(what_only_looks_like_a_reference_is_told_from_one),
		cmocka_unit_test(an_override_without_path_or_value_is_refused),
		cmocka_unit_test(problems_are_bounded_and_errors_are_kept_before_lints),
		cmocka_unit_test(ten_thousand_unknown_names_are_answered_at_once),
		cmocka_unit_test(variables_cannot_fill_the_memory),
		cmocka_unit_test(a_variable_that_is_not_utf_8_is_refused),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
