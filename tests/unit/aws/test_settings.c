/* Where profile, region and endpoints come from, and how the shared files are read. */
#include "tests/unit/aws/world.h"

#include "aws/credentials/profile.h"
#include "jobs/base/text/shell_words.h"

static const char *region(void)
{
	AUTO(err_freep) struct err *err = NULL;
	const char *name = aws_region(&err);

	assert_no_error(err);
	return name;
}

/* The whole error of a config file with this text. */
static char *complaint(void **state, const char *text)
{
	AUTO(err_freep) struct err *err = NULL;

	write_shared(state, "config", text);
	assert_int_equal(aws_settings_check(&err), -1);
	assert_int_equal(err->code, EXIT_REFUSED);
	assert_non_null(err->hint);
	return err_format(err);
}

static void without_anything_the_profile_is_default_and_there_is_no_region(void **state)
{
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	assert_string_equal(aws_profile(), "default");
	assert_false(aws_profile_is_explicit());
	assert_null(aws_region(&err));
	assert_error(err, EXIT_REFUSED, "no AWS region is set");
	assert_null(aws_endpoint_configured("S3"));
	assert_null(aws_ca_bundle());
}

static void a_region_is_taken_from_option_spec_environment_and_profile_in_this_order(void **state)
{
	write_shared(state, "config", "[default]\nregion = eu-west-1\n");
	assert_string_equal(region(), "eu-west-1");
	setenv("AWS_DEFAULT_REGION", "eu-west-2", 1);
	aws_settings_forget();
	assert_string_equal(region(), "eu-west-2");
	setenv("AWS_REGION", "eu-west-3", 1);
	aws_settings_forget();
	assert_string_equal(region(), "eu-west-3");
	aws_settings_forget();
	aws_settings_spec("us-west-2");
	assert_string_equal(region(), "us-west-2");
	aws_settings_forget();
	aws_settings_option(NULL, "us-east-2");
	aws_settings_spec("us-west-2");
	assert_string_equal(region(), "us-east-2");
}

static void a_spec_that_is_read_late_still_sets_the_region(void **state)
{
	(void)state;
	setenv("AWS_REGION", "eu-west-3", 1);
	assert_string_equal(region(), "eu-west-3");
	aws_settings_spec("us-west-2");
	assert_string_equal(region(), "us-west-2");
}

static void a_profile_is_taken_from_option_and_environment(void **state)
{
	write_shared(state, "config",
		     "[profile a]\nregion=r-a\n[profile b]\nregion=r-b\n"
		     "[profile c]\nregion=r-c\n");
	setenv("AWS_PROFILE", "a", 1);
	assert_string_equal(region(), "r-a");
	setenv("AWS_DEFAULT_PROFILE", "b", 1);
	aws_settings_forget();
	assert_string_equal(region(), "r-b");
	assert_false(aws_profile_is_explicit());
	aws_settings_forget();
	aws_settings_option("c", NULL);
	assert_string_equal(region(), "r-c");
	assert_true(aws_profile_is_explicit());
}

static void a_region_that_is_no_name_gets_into_no_host(void **state)
{
	static const char *const bad[] = { "us west", "evil.example#", "-a", "a-", "a/b", "ü" };

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(bad); i++) {
		AUTO(err_freep) struct err *err = NULL;

		setenv("AWS_REGION", bad[i], 1);
		aws_settings_forget();
		assert_null(aws_region(&err));
		assert_error(err, EXIT_REFUSED, "is not the name of an AWS region");
	}
}

static void a_profile_that_does_not_exist_is_an_error_that_lists_those_there_are(void **state)
{
	AUTO(err_freep) struct err *err = NULL;

	write_shared(state, "config", "[profile one]\nregion = x\n[sso-session s]\na = b\n");
	write_shared(state, "credentials", "[two]\naws_access_key_id = a\n");
	setenv("AWS_PROFILE", "tow", 1);
	aws_settings_forget();
	assert_int_equal(aws_settings_check(&err), -1);
	assert_error(err, EXIT_REFUSED, "the AWS profile 'tow' is neither in");
	assert_string_equal(err->hint, "choose one of: one, two");
}

static void the_config_file_is_read_as_botocore_reads_it(void **state)
{
	write_shared(state, "config",
		     "\xef\xbb\xbf# a comment\n"
		     "; another\n"
		     "\n"
		     "[default] ; what stands behind is ignored\n"
		     "Region=us-west-2\n"
		     "output : json\n"
		     "note = a # b\n"
		     "  goes on\n"
		     "s3 =\n"
		     "  addressing_style = path\n"
		     "  # in between\n"
		     "  Case = Kept\n"
		     "  Case = last\n"
		     "after = 1\n"
		     "[profile \"with blank\"]\r\n"
		     "role_arn = arn:aws:iam::1:role/r\r\n"
		     "[profile not one name]\n"
		     "region = nowhere\n"
		     "[preview]\n"
		     "   [sso-session my]\n"
		     "   sso_region = us-east-1\n"
		     "[services local]\n"
		     "cloudwatch_logs =\n"
		     "  endpoint_url = http://127.0.0.1:5/\n");
	assert_string_equal(aws_config_value("default", "region"), "us-west-2");
	assert_string_equal(aws_config_value("default", "output"), "json");
	assert_string_equal(aws_config_value("default", "note"), "a # b\ngoes on");
	assert_string_equal(aws_config_value("default", "s3.addressing_style"), "path");
	assert_string_equal(aws_config_value("default", "s3.Case"), "last");
	assert_string_equal(aws_config_value("default", "after"), "1");
	assert_string_equal(aws_config_value("with blank", "role_arn"), "arn:aws:iam::1:role/r");
	assert_null(aws_config_value("not", "region"));
	assert_null(aws_config_value("preview", "x"));
	assert_string_equal(aws_section_value("sso-session", "my", "sso_region"), "us-east-1");
	assert_string_equal(aws_section_value("services", "local", "cloudwatch_logs.endpoint_url"),
			    "http://127.0.0.1:5/");
}

static void the_later_of_default_and_profile_default_counts(void **state)
{
	write_shared(state, "config",
		     "[default]\nregion = a\noutput = x\n[profile default]\nregion = b\n");
	assert_string_equal(region(), "b");
	assert_null(aws_config_value("default", "output"));
}

static void the_section_DEFAULT_holds_for_all(void **state)
{
	write_shared(state, "config",
		     "[DEFAULT]\nregion = a\n[profile p]\noutput = x\n"
		     "[profile q]\nregion = q\n");
	assert_string_equal(aws_config_value("p", "region"), "a");
	assert_string_equal(aws_config_value("q", "region"), "q");
}

static void the_credentials_file_beats_the_config_file_and_its_secrets_are_not_kept(void **state)
{
	write_shared(state, "config", "[profile p]\nregion = c\noutput = c\n");
	write_shared(state, "credentials",
		     "[p]\nregion = s\naws_secret_access_key = CANARY\n[profile q]\nregion = x\n");
	assert_string_equal(aws_config_value("p", "region"), "s");
	assert_string_equal(aws_config_value("p", "output"), "c");
	assert_null(aws_config_value("p", "aws_secret_access_key"));
	assert_string_equal(aws_shared_value("p", "aws_secret_access_key"), "");
	assert_true(aws_profile_exists("profile q"));
	assert_false(aws_profile_exists("q"));
}

static void the_two_files_are_where_the_variables_say(void **state)
{
	AUTO(auto_free) char *want = fs_join(*state, "x/conf");

	setenv("STK_PLACE", "x", 1);
	setenv("AWS_CONFIG_FILE", "~/${STK_PLACE}/conf", 1);
	setenv("AWS_SHARED_CREDENTIALS_FILE", "$STK_NOT_SET/$/cred", 1);
	aws_settings_forget();
	assert_string_equal(aws_config_path(), want);
	assert_string_equal(aws_shared_path(), "$STK_NOT_SET/$/cred");
	setenv("AWS_CONFIG_FILE", "/dev/null", 1);
	aws_settings_forget();
	assert_int_equal(aws_settings_check(NULL), 0);
}

static void a_bad_line_is_told_with_its_place_and_without_its_text(void **state)
{
	static const struct {
		const char *text, *place, *what;
	} rows[] = {
		{ "[default]\nCANARY\n", "config:2", "neither [a section] nor 'key = value'" },
		{ "# x\nCANARY = x\n", "config:2", "no [section] above" },
		{ "[default\nx = CANARY\n", "config:1", "does not end with ']'" },
		{ "[]\n", "config:1", "does not end with ']'" },
		{ "[default]\n\n= CANARY\n", "config:3", "no key before" },
		{ "[a]\n[default]\nk=1\n[a]\n", "config:4",
		  "the section stands in the file twice" },
		{ "[default]\nk = 1\nK = CANARY\n", "config:3",
		  "the key stands in its section twice" },
		{ "[default]\ns3 =\n  CANARY\n", "config:3", "neither" },
	};

	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		AUTO(auto_free) char *words = complaint(state, rows[i].text);

		assert_contains(words, rows[i].place);
		assert_contains(words, rows[i].what);
		assert_null(strstr(words, "CANARY"));
	}
}

static void a_file_that_is_too_large_or_no_text_is_refused(void **state)
{
	AUTO(auto_free) char *large = mem_zero(1, (2 << 20) + 1);
	AUTO(auto_free) char *path = fs_join(*state, ".aws/config"), *words = NULL;
	AUTO(err_freep) struct err *err = NULL;

	memset(large, '#', 2 << 20);
	words = complaint(state, large);
	assert_contains(words, "is larger than 1024 KiB");
	fs_write_atomic(path, "[default]\nregion = a\0b\n", 22, 0600, &err);
	assert_no_error(err);
	aws_settings_forget();
	assert_int_equal(aws_settings_check(&err), -1);
	assert_error(err, EXIT_REFUSED, "holds a NUL byte");
}

static void an_endpoint_is_found_in_the_order_of_the_sdks(void **state)
{
	write_shared(state, "config",
		     "[default]\nendpoint_url = http://all.example\nservices = mine\n"
		     "[services mine]\ns3 =\n  endpoint_url = http://s3.example:81//\n");
	assert_string_equal(aws_endpoint_configured("S3"), "http://s3.example:81");
	assert_string_equal(aws_endpoint_configured("STS"), "http://all.example");
	setenv("AWS_ENDPOINT_URL", "https://env.example", 1);
	aws_settings_forget();
	assert_string_equal(aws_endpoint_configured("S3"), "https://env.example");
	setenv("AWS_ENDPOINT_URL_S3", "https://env-s3.example/base/", 1);
	aws_settings_forget();
	assert_string_equal(aws_endpoint_configured("S3"), "https://env-s3.example/base");
	assert_string_equal(aws_endpoint_configured("CLOUDWATCH_LOGS"), "https://env.example");
	assert_null(aws_endpoint_configured("NO_SUCH"));
	setenv("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "TRUE", 1);
	aws_settings_forget();
	assert_null(aws_endpoint_configured("S3"));
	assert_null(aws_endpoint_configured("STS"));
}

static void an_endpoint_that_is_no_url_is_refused_and_not_shown(void **state)
{
	static const char *const bad[] = { "127.0.0.1:5",       "ftp://CANARY",
					   "http://u:CANARY@h", "http://h\nCANARY",
					   "http://",           "http:///CANARY",
					   "http://h/?CANARY",  "http://h#CANARY" };

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(bad); i++) {
		AUTO(err_freep) struct err *err = NULL;

		setenv("AWS_ENDPOINT_URL_STS", bad[i], 1);
		aws_settings_forget();
		assert_int_equal(aws_settings_check(&err), -1);
		assert_error(err, EXIT_REFUSED, "is not a URL of a service");
		assert_null(strstr(err->message, "CANARY"));
	}
}

static void certificates_are_those_of_the_variable_or_the_profile(void **state)
{
	setenv("REQUESTS_CA_BUNDLE", "/r", 1);
	aws_settings_forget();
	assert_string_equal(aws_ca_bundle(), "/r");
	write_shared(state, "config", "[default]\nca_bundle = /p\n");
	assert_string_equal(aws_ca_bundle(), "/p");
	setenv("AWS_CA_BUNDLE", "/e", 1);
	aws_settings_forget();
	assert_string_equal(aws_ca_bundle(), "/e");
}

static void words_are_split_as_a_shell_would(void **state)
{
	static const struct {
		const char *text, *want; /* words joined by '|' */
	} rows[] = {
		{ "a b  c", "a|b|c" },
		{ "  \t a\n", "a" },
		{ "", "" },
		{ "'a b' \"c d\"e", "a b|c de" },
		{ "a\\ b \"x\\\"y\\\\z\\n\" 'q\\'", "a b|x\"y\\z\\n|q\\" },
		{ "'' \"\"", "|" },
		{ "$HOME `x` ; & # *", "$HOME|`x`|;|&|#|*" },
	};
	size_t count;

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		AUTO(auto_strv) char **words = shell_words(rows[i].text, &count);
		AUTO(sb_release) struct sb all = SB_INIT;

		assert_non_null(words);
		for (size_t k = 0; k < count; k++)
			sb_addf(&all, "%s%s", k ? "|" : "", words[k]);
		assert_string_equal(all.text, rows[i].want);
	}
	assert_null(shell_words("'open", &count));
	assert_null(shell_words("\"open", &count));
	assert_null(shell_words("end\\", &count));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		test_in_world(without_anything_the_profile_is_default_and_there_is_no_region),
		test_in_world(
			a_region_is_taken_from_option_spec_environment_and_profile_in_this_order),
		test_in_world(a_spec_that_is_read_late_still_sets_the_region),
		test_in_world(a_profile_is_taken_from_option_and_environment),
		test_in_world(a_region_that_is_no_name_gets_into_no_host),
		test_in_world(a_profile_that_does_not_exist_is_an_error_that_lists_those_there_are),
		test_in_world(the_config_file_is_read_as_botocore_reads_it),
		test_in_world(the_later_of_default_and_profile_default_counts),
		test_in_world(the_section_DEFAULT_holds_for_all),
		test_in_world(
			the_credentials_file_beats_the_config_file_and_its_secrets_are_not_kept),
		test_in_world(the_two_files_are_where_the_variables_say),
		test_in_world(a_bad_line_is_told_with_its_place_and_without_its_text),
		test_in_world(a_file_that_is_too_large_or_no_text_is_refused),
		test_in_world(an_endpoint_is_found_in_the_order_of_the_sdks),
		test_in_world(an_endpoint_that_is_no_url_is_refused_and_not_shown),
		test_in_world(certificates_are_those_of_the_variable_or_the_profile),
		test_in_world(words_are_split_as_a_shell_would),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
