/* Which texts mean the same to Python, and which only look so. */
#include "jobs/source/python_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "jobs/base/auto.h"
#include "jobs/base/sb.h"

/* Is the text taken for `want`, byte by byte? NULL: it is left as it is. */
static bool stands_for(const char *text, size_t len, const char *want)
{
	char *whole = mem_copy_n(text, len); /* of its very length, for the sanitizer */
	char got[SHA256_HEX], wanted[SHA256_HEX];

	python_text_digest(whole, len, got);
	hash_sha256_hex(want ? want : whole, want ? strlen(want) : len, wanted);
	free(whole);
	return strcmp(got, wanted) == 0;
}

static void comments_and_blank_lines_go_and_all_else_stays(void **state)
{
	static const struct {
		const char *text, *want;
	} rows[] = {
		{ "", "" },
		{ "\n\n  \n\t\f\n# a\n", "" },
		{ "x = 1", "x = 1\n" },
		{ "x = 1  # one\n", "x = 1\n" },
		{ "x = 1 \t\n", "x = 1\n" },
		{ "x = 1\r\n\r\n# a\r\ny = 2\r\n", "x = 1\ny = 2\n" },
		{ "if x:\n    # a\n\n    y\n  # b\nz\n", "if x:\n    y\nz\n" },
		{ "if x:\n\ty\n", "if x:\n\ty\n" },
		{ "\f x\n", "\f x\n" },
		{ "f(1,  # one\n\n  # two\n  2)\n", "f(1,\n  2)\n" },
		/* strings: a docstring is one */
		{ "x = '# a'  # b\n", "x = '# a'\n" },
		{ "x = \"it's # a\"\n", "x = \"it's # a\"\n" },
		{ "'''\n\n # a \n'''\n", "'''\n\n # a \n'''\n" },
		{ "'''a\r\n\r\nb'''\r\n", "'''a\n\nb'''\n" },
		{ "x = ''  # a\n", "x = ''\n" },
		{ "x = ''''a'''  # ''' b\n", "x = ''''a'''\n" },
		{ "x = '\\'# a'  # b\n", "x = '\\'# a'\n" },
		{ "x = r'\\'  # a'  # b\n", "x = r'\\'  # a'\n" },
		{ "x = 'a\\\n# b'\n", "x = 'a\\\n# b'\n" },
		{ "x = rb'#'\ny = B\"#\"#\n", "x = rb'#'\ny = B\"#\"\n" },
		/* lines that go on */
		{ "x = 1 + \\\n  2  # a\n", "x = 1 + \\\n  2\n" },
		{ "x = 1 \\\n\ny\n", "x = 1 \\\n\ny\n" },
		{ "x = 1 \\\n  # a\ny\n", "x = 1 \\\n\ny\n" },
		/* fields of f-strings */
		{ "f'{x}'  # a\n", "f'{x}'\n" },
		{ "f'{{#}} {d[\"a\"]:#x} {y!r:>{w}}'  # a\n",
		  "f'{{#}} {d[\"a\"]:#x} {y!r:>{w}}'\n" },
		{ "f\"{d['}'] + '#'}\"  # a\n", "f\"{d['}'] + '#'}\"\n" },
		{ "f'{d['a'] + '#'}'  # as of 3.12\n", "f'{d['a'] + '#'}'\n" },
		{ "f'''{\nx}'''#\n", "f'''{\nx}'''\n" },
		{ "f'\\N{NUMBER SIGN}\\{x}'  # a\n", "f'\\N{NUMBER SIGN}\\{x}'\n" },
		{ "rf'\\{x}' # a\n", "rf'\\{x}'\n" },
		{ "f'{ {1: [2]}[1][0] }'# a\n", "f'{ {1: [2]}[1][0] }'\n" },
		{ "f'{x:'  # an error of its own\n", NULL },
		{ "of'{'  # a\n", "of'{'\n" },
		{ "'{'  # a\n", "'{'\n" },
		{ "t'{x}'  # as of 3.14\n", "t'{x}'\n" },
		/* what the first two lines say */
		{ "#!/usr/bin/python3 -O\n# a\nx\n", "#!/usr/bin/python3 -O\nx\n" },
		{ "# a\n#!/usr/bin/python3\nx\n", "x\n" },
		{ "# -*- coding: Latin_1 -*-\nx\n", "# coding: Latin_1\nx\n" },
		{ "# coding: cp1252\nx\n", "# coding: cp1252\nx\n" },
		{ "\n# vim: set fileencoding=utf-8 :\nx\n", "# coding: utf-8\nx\n" },
		{ "# a\n# b\n# coding: utf-7\nx\n", "x\n" },
		{ "# coding utf-7\nx\n", "x\n" },
		{ "\xef\xbb\xbf# a\nx\n", "\xef\xbb\xbfx\n" },
		/* what is not certain */
		{ "# coding: utf-7\nx\n", NULL },
		{ "x = 1\n# coding: shift_jis\n", NULL },
		{ "x = '\n", NULL },
		{ "x = '''\n# a\n", NULL },
		{ "x \\ # a\n", NULL },
		{ "x \\", NULL },
		{ "x \\\n", NULL },
		{ "# a\rx = 1\n", NULL },
		{ "# \xff\n", NULL },
		{ "f'''{x  # a\n}'''\n", NULL },
		{ "f'{(x]}'\n", NULL },
		{ "f'{x'\n", NULL },
	};

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		const char *text = rows[i].text, *want = rows[i].want;

		if (!stands_for(text, strlen(text), want))
			fail_msg("[%s] is not taken for [%s]", text, want ? want : "(left)");
		if (want && !stands_for(want, strlen(want), want))
			fail_msg("[%s] is not as it stays", want);
	}
}

static void a_nul_is_left(void **state)
{
	(void)state;
	assert_true(stands_for("x\0# a", 5, NULL));
}

static void strings_in_fields_in_strings_end_somewhere(void **state)
{
	AUTO(sb_release) struct sb deep = SB_INIT;

	(void)state;
	for (int i = 0; i < 100000; i++)
		sb_adds(&deep, "f'{");
	assert_true(stands_for(deep.text, deep.len, NULL));
	sb_clear(&deep);
	sb_adds(&deep, "f'{");
	for (int i = 0; i < 100000; i++)
		sb_addc(&deep, '(');
	assert_true(stands_for(deep.text, deep.len, NULL));
}

/* Nothing is read beyond the end of a text, wherever it is cut off. */
static void any_beginning_of_a_text_is_a_text(void **state)
{
	static const char text[] = "#!/x\n# coding: utf-8\nx = f'{a[\"b\"]:>{w}}' \\\r\n  # a\r\n"
				   "'''\n# b\n'''\ny = rf'''{\n{1: 2}}\\{z}'''  # c\n";

	(void)state;
	for (size_t len = 0; len < sizeof text; len++) {
		char digest[SHA256_HEX];
		AUTO(auto_free) char *part = mem_copy_n(text, len);

		python_text_digest(part, len, digest);
	}
}

static void only_names_in_py_are_python(void **state)
{
	(void)state;
	assert_true(python_text_is("a/b.py"));
	assert_false(python_text_is("a/b.pyc"));
	assert_false(python_text_is("a/b.pyi"));
	assert_false(python_text_is(".py"));
	assert_false(python_text_is("py"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(comments_and_blank_lines_go_and_all_else_stays),
		cmocka_unit_test(a_nul_is_left),
		cmocka_unit_test(strings_in_fields_in_strings_end_somewhere),
		cmocka_unit_test(any_beginning_of_a_text_is_a_text),
		cmocka_unit_test(only_names_in_py_are_python),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
