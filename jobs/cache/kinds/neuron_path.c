/* Names of graphs and version folders in the Neuron persistent cache: see neuron_path.h. */
#include "jobs/cache/kinds/neuron_path.h"

#include <string.h>

#define MODULE_WORD  "MODULE_"
#define GRAPH_DIGITS 40 /* most digits of a graph's hash; 20 were seen */
#define FLAGS_DIGITS 8

static size_t hex_digits(const char *text, size_t len)
{
	size_t n = 0;

	while (n < len &&
	       ((text[n] >= '0' && text[n] <= '9') || (text[n] >= 'a' && text[n] <= 'f')))
		n++;
	return n;
}

static bool is_word(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       c == '_';
}

size_t neuron_module_len(const char *text, size_t len)
{
	size_t at = strlen(MODULE_WORD), digits;

	if (len <= at || memcmp(text, MODULE_WORD, at) != 0)
		return 0;
	digits = hex_digits(text + at, len - at);
	if (digits == 0 || digits > GRAPH_DIGITS)
		return 0;
	at += digits;
	if (at == len || text[at++] != '+' || hex_digits(text + at, len - at) != FLAGS_DIGITS)
		return 0;
	at += FLAGS_DIGITS;
	return at < len && is_word(text[at]) ? 0 : at;
}

static bool is_place_char(char c)
{
	return is_word(c) || c == '.' || c == '+' || c == '-';
}

bool neuron_is_place(const char *text, size_t len)
{
	size_t word = strlen(NEURON_PLACE_WORD);

	if (len <= word || len > NEURON_PLACE_MAX || memcmp(text, NEURON_PLACE_WORD, word) != 0)
		return false;
	for (size_t i = word; i < len; i++)
		if (!is_place_char(text[i]))
			return false;
	return true;
}

/* The name of the folder right before `module`, if it is a place. */
static struct compile_kind_words place_before(const char *text, const char *module)
{
	const char *end = module - 1, *start = end;

	if (module == text || *end != '/')
		return (struct compile_kind_words){ 0 };
	while (start > text && end - start < NEURON_PLACE_MAX && is_place_char(start[-1]))
		start--;
	if (!neuron_is_place(start, (size_t)(end - start)))
		return (struct compile_kind_words){ 0 };
	return (struct compile_kind_words){ start, (size_t)(end - start) };
}

bool neuron_find_graph(const char *text, size_t len, struct compile_kind_words *ret_module,
		       struct compile_kind_words *ret_place)
{
	const char *at = text, *end = text + len;

	while ((at = memmem(at, (size_t)(end - at), MODULE_WORD, strlen(MODULE_WORD)))) {
		size_t module = neuron_module_len(at, (size_t)(end - at));

		/* A file name must follow: a name alone may have been cut, and the digits of
		 * another line been taken for its end. */
		if (module > 0 && (at == text || !is_word(at[-1])) && at + module < end &&
		    (at[module] == '/' || at[module] == '.')) {
			*ret_module = (struct compile_kind_words){ at, module };
			*ret_place = place_before(text, at);
			return true;
		}
		at += strlen(MODULE_WORD);
	}
	return false;
}
