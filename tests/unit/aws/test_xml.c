/* The promises of xml.h. */
#include "aws/xml.h"

#include "jobs/base/sb.h"
#include "tests/unit/base/unit.h"

/* "path=text;" for each element, in the order of their ends. */
static bool write_down(void *arg, const char *path, const char *text, size_t len)
{
	struct sb *seen = arg;

	sb_addf(seen, "%s=", path);
	sb_add(seen, text, len);
	sb_addc(seen, ';');
	return true;
}

static void each_element_is_told_with_its_path_and_its_own_text(void **state)
{
	static const char text[] = "\n  <?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!-- x "
				   "--><A xmlns=\"u\">1<B q='z'>"
				   "two &amp; &#233;</B>3<C/><![CDATA[<4>]]></A>\n";
	AUTO(sb_release) struct sb seen = SB_INIT;
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	assert_int_equal(xml_parse(text, sizeof text - 1, "it", write_down, &seen, &err), 0);
	assert_string_equal(seen.text, "A/B=two & é;A/C=;A=13<4>;");
}

/* The error of a text; "" if there is none. */
static char *complaint(const char *text, size_t len, xml_fn fn)
{
	AUTO(sb_release) struct sb seen = SB_INIT_MAX(1 << 16);
	AUTO(err_freep) struct err *err = NULL;

	if (xml_parse(text, len, "the list", fn, &seen, &err) == 0)
		return mem_copy("");
	assert_int_equal(err->code, EXIT_UNREACHABLE);
	return err_format(err);
}

static void what_is_no_whole_document_is_an_error(void **state)
{
	static const struct {
		const char *text, *want;
	} rows[] = {
		{ "", "the end is missing" },
		{ "<A><B>x</B>", "the end is missing" },
		{ "<A><B>x</B", "the end is missing" },
		{ "<A>\xC3", "the end is missing" },
		{ "<A></B>", "line 1: mismatched tag" },
		{ "{\"a\":1}", "not well-formed" },
		{ "<A/><A/>", "junk after document element" },
		{ "<A>&unknown;</A>", "undefined entity" },
		{ "<A>\xff</A>", "not well-formed" },
		{ "<!DOCTYPE A [<!ENTITY b \"bbbb\">]><A>&b;&b;</A>",
		  "a document type is defined" },
		{ "<!DOCTYPE A SYSTEM \"file:///etc/passwd\"><A/>", "a document type is defined" },
	};

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		AUTO(auto_free)
		char *said = complaint(rows[i].text, strlen(rows[i].text), write_down);

		assert_contains(said, "the list cannot be read as XML: ");
		assert_contains(said, rows[i].want);
	}
}

static void a_document_that_would_grow_is_stopped(void **state)
{
	AUTO(sb_release) struct sb deep = SB_INIT, names = SB_INIT, text = SB_INIT;
	AUTO(auto_free) char *said_deep = NULL, *said_names = NULL, *said_text = NULL;

	(void)state;
	for (int i = 0; i < 33; i++)
		sb_adds(&deep, "<A>");
	said_deep = complaint(deep.text, deep.len, write_down);
	assert_contains(said_deep, "nested too deeply");
	sb_addc(&names, '<');
	for (int i = 0; i < 3000; i++)
		sb_addc(&names, 'n');
	sb_adds(&names, "/>");
	said_names = complaint(names.text, names.len, write_down);
	assert_contains(said_names, "names of its elements are too long");
	sb_adds(&text, "<A>");
	for (int i = 0; i < (1 << 20) + 1; i++)
		sb_addc(&text, 't');
	sb_adds(&text, "</A>");
	said_text = complaint(text.text, text.len, write_down);
	assert_contains(said_text, "a text in it is too long");
}

static bool refuse_second(void *arg, const char *path, const char *text, size_t len)
{
	struct sb *seen = arg;

	write_down(arg, path, text, len);
	return seen->len < 8;
}

static void a_reader_may_stop_and_is_told_no_more(void **state)
{
	static const char text[] = "<A><B>1</B><B>2</B><B>3</B></A>";
	AUTO(sb_release) struct sb seen = SB_INIT;
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	assert_int_equal(xml_parse(text, sizeof text - 1, "it", refuse_second, &seen, &err), -1);
	assert_contains(err->message, "not the requested document");
	assert_string_equal(seen.text, "A/B=1;A/B=2;");
}

static void what_is_written_is_read_back(void **state)
{
	static const char text[] = "a<b>&\"'\xC3\xA9 \t\r\n";
	AUTO(sb_release) struct sb document = SB_INIT, seen = SB_INIT;
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	sb_adds(&document, "<K>");
	xml_escape(&document, text);
	sb_adds(&document, "</K>");
	assert_int_equal(xml_parse(document.text, document.len, "it", write_down, &seen, &err), 0);
	assert_int_equal(seen.len, sizeof text - 1 + 3);
	assert_memory_equal(seen.text + 2, text, sizeof text - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_element_is_told_with_its_path_and_its_own_text),
		cmocka_unit_test(what_is_no_whole_document_is_an_error),
		cmocka_unit_test(a_document_that_would_grow_is_stopped),
		cmocka_unit_test(a_reader_may_stop_and_is_told_no_more),
		cmocka_unit_test(what_is_written_is_read_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
