/* A journal in a bucket: what is asked of the service when it is opened, and who can continue
 * without it. The service is a peer on loopback. See jobs/run/journal/journal.h. */
#include "jobs/run/journal/journal.h"

#include <sys/stat.h>

#include "jobs/run/journal/journal_internal.h"
#include "tests/unit/aws/peer.h"
#include "tests/unit/aws/world.h"

#define URL  "s3://bucket/state"
#define MARK "{\"v\":1,\"kind\":\"dir\"}"
#define LIST(of)                                                                                   \
	"<ListBucketResult><Name>b</Name><IsTruncated>false</IsTruncated>" of "</"                 \
	"ListBucketResult>"
#define FOLDER(name) "<CommonPrefixes><Prefix>state/runs/" name "/</Prefix></CommonPrefixes>"
#define ABSENT                                                                                     \
	{                                                                                          \
		.status = 404, .body = "<Error><Code>NoSuchKey</Code></Error>"                     \
	}
#define DENIED                                                                                     \
	{                                                                                          \
		.status = 403,                                                                     \
		.body = "<Error><Code>AccessDenied</Code><Message>not you</Message></Error>"       \
	}
#define EMPTY                                                                                      \
	{                                                                                          \
		.body = LIST("")                                                                   \
	}
#define DONE                                                                                       \
	{                                                                                          \
		.headers = "ETag: \"0\"\r\n"                                                       \
	}

static void use(void **state, const struct peer *peer)
{
	AUTO(auto_free) char *work = fs_join(*state, "local");

	setenv("AWS_ACCESS_KEY_ID", "AKID", 1);
	setenv("AWS_SECRET_ACCESS_KEY", "secret", 1);
	setenv("AWS_REGION", "eu-west-1", 1);
	setenv("AWS_ENDPOINT_URL", peer->url, 1);
	setenv("STOKER_WORK", work, 1);
	aws_settings_forget();
}

static struct journal *open_as(enum journal_mode mode)
{
	struct journal *journal = NULL;
	struct err *err = NULL;

	if (journal_open(URL "/", mode, &journal, &err) < 0)
		fail_msg("%s", err->message);
	return journal;
}

static void a_reader_makes_nothing(void **state)
{
	AUTO(peer_freep) struct peer *peer = PEER(ABSENT, EMPTY);
	AUTO(journal_freep) struct journal *journal = NULL;

	use(state, peer);
	journal = open_as(JOURNAL_READ);
	assert_true(journal_is_remote(journal));
	assert_string_equal(journal_url(journal), URL);
	assert_null(journal_store(journal));
	assert_contains(journal_dir(journal), "/local/");
	assert_false(fs_exists(journal_dir(journal)));
	assert_int_equal(peer->request_count, 2);
}

static void a_writer_begins_it_with_its_mark(void **state)
{
	AUTO(peer_freep) struct peer *peer = PEER(ABSENT, EMPTY, DONE);
	AUTO(journal_freep) struct journal *journal = NULL;
	struct stat st;

	use(state, peer);
	journal = open_as(JOURNAL_WRITE);
	assert_non_null(journal_store(journal));
	assert_true(journal_is_remote(journal));
	assert_string_equal(journal_url(journal), URL);
	assert_int_equal(stat(journal_dir(journal), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	assert_int_equal(peer->request_count, 3);
	assert_contains(peer->requests[2].text, "PUT ");
	assert_contains(peer->requests[2].text, "journal.json");
	assert_contains(peer->requests[2].text, MARK "\n");
	/* no condition is trusted before it was tried */
	assert_null(strstr(peer->requests[2].text, "If-None-Match"));
}

static void what_has_its_mark_is_opened(void **state)
{
	AUTO(peer_freep) struct peer *peer = PEER({ .headers = "ETag: \"0\"\r\n", .body = MARK });
	AUTO(journal_freep) struct journal *journal = NULL;

	use(state, peer);
	journal = open_as(JOURNAL_READ);
	assert_non_null(journal_store(journal));
	assert_int_equal(peer->request_count, 1);
}

static void later_nothing_is_asked_for_before_it_is_begun(void **state)
{
	AUTO(peer_freep) struct peer *peer = PEER({ .headers = "ETag: \"0\"\r\n", .body = MARK });
	AUTO(journal_freep) struct journal *journal = NULL;
	AUTO(err_freep) struct err *err = NULL;
	json_auto_t *runs = json_array();

	use(state, peer);
	journal = open_as(JOURNAL_LATER);
	assert_string_equal(journal_url(journal), URL);
	assert_true(fs_exists(journal_dir(journal)));
	assert_int_equal(journal_runs(journal, runs, &err), 0);
	assert_int_equal(json_array_size(runs), 0);
	assert_int_equal(peer->request_count, 0);
	assert_int_equal(journal_begin(journal, &err), 0);
	assert_non_null(journal_store(journal));
	assert_int_equal(journal_begin(journal, &err), 0);
	assert_int_equal(peer->request_count, 1);
}

/* A caller that can continue without it is told why it must. */
static void where_it_is_denied_some_can_continue_without(void **state)
{
	AUTO(peer_freep) struct peer *peer = PEER(DENIED);
	AUTO(err_freep) struct err *err = NULL, *why = NULL;
	AUTO(journal_freep) struct journal *journal = NULL;
	json_auto_t *runs = json_array();

	use(state, peer);
	for (int mode = JOURNAL_READ; mode <= JOURNAL_SALVAGE; mode++) {
		assert_int_equal(journal_open(URL, (enum journal_mode)mode, &journal, &err), -1);
		assert_error(err, EXIT_REFUSED, "not you");
		assert_null(journal);
		err_freep(&err);
	}
	assert_int_equal(journal_open_try(URL, &journal, &why, &err), 0);
	assert_null(err);
	assert_error(why, EXIT_REFUSED, "not you");
	assert_null(journal_store(journal));
	assert_int_equal(journal_runs(journal, runs, &err), 0);
	assert_int_equal(json_array_size(runs), 0);
	/* but not where nothing is named, nor on a disk */
	journal_freep(&journal);
	err_freep(&why);
	assert_int_equal(journal_open_try("s3://b", &journal, &why, &err), -1);
	assert_null(why);
	err_freep(&err);
	assert_int_equal(journal_open_try("moon:x", &journal, &why, &err), -1);
	assert_int_equal(err->code, EXIT_USAGE);
	assert_null(why);
	assert_null(journal);
}

static void what_is_in_the_way_of_its_local_folder_is_named(void **state)
{
	AUTO(peer_freep) struct peer *peer = PEER(ABSENT);
	AUTO(err_freep) struct err *err = NULL;
	struct journal *journal = NULL;

	use(state, peer);
	put(*state, "local", "a file");
	assert_int_equal(journal_open(URL, JOURNAL_WRITE, &journal, &err), -1);
	assert_contains(err->message, "cannot make the work folder");
	assert_null(journal);
	assert_int_equal(peer->request_count, 0);
}

/* Each look is a request: after some folders without events it is taken for a new one. */
static void only_some_folders_are_looked_into_for_events(void **state)
{
	AUTO(peer_freep)
	struct peer *peer =
		PEER(ABSENT,
		     { .body = LIST(FOLDER("Not-An-Id") FOLDER("a") FOLDER("b") FOLDER("c")
					    FOLDER("d") FOLDER("e") FOLDER("f") FOLDER("g")
						    FOLDER("h") FOLDER("i") FOLDER("j")) },
		     EMPTY);
	AUTO(journal_freep) struct journal *journal = NULL;

	use(state, peer);
	journal = open_as(JOURNAL_READ);
	assert_null(journal_store(journal));
	assert_int_equal(peer->request_count, 2 + 8);
}

static void a_mark_that_cannot_be_written_is_an_error(void **state)
{
	AUTO(peer_freep) struct peer *peer = PEER(ABSENT, EMPTY, DENIED);
	AUTO(err_freep) struct err *err = NULL;
	struct journal *journal = NULL;

	use(state, peer);
	assert_int_equal(journal_open(URL, JOURNAL_WRITE, &journal, &err), -1);
	assert_error(err, EXIT_REFUSED, "cannot begin a journal: ");
	assert_null(journal);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		test_in_world(a_reader_makes_nothing),
		test_in_world(a_writer_begins_it_with_its_mark),
		test_in_world(what_has_its_mark_is_opened),
		test_in_world(later_nothing_is_asked_for_before_it_is_begun),
		test_in_world(where_it_is_denied_some_can_continue_without),
		test_in_world(what_is_in_the_way_of_its_local_folder_is_named),
		test_in_world(only_some_folders_are_looked_into_for_events),
		test_in_world(a_mark_that_cannot_be_written_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
