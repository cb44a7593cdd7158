/* Reading XML replies by expat: see xml.h. */
#include "aws/xml.h"

#include <expat.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/base/sb.h"

#define DEPTH_MAX      32
#define PATH_BYTES_MAX 2048
#define TEXT_BYTES_MAX ((size_t)1 << 20) /* for the text of all open elements together */
#define PIECE_MAX      ((size_t)1 << 20) /* expat counts in int */

struct xml {
	XML_Parser parser;
	xml_fn fn;
	void *arg;
	struct sb path, text;
	/* Offsets of the name and text of each open element. */
	size_t depth, path_at[DEPTH_MAX], text_at[DEPTH_MAX];
	const char *refused; /* why parsing was stopped; NULL: it was not */
};

static void refuse(struct xml *xml, const char *why)
{
	if (!xml->refused)
		xml->refused = why;
	XML_StopParser(xml->parser, XML_FALSE);
}

static void XMLCALL on_start(void *arg, const XML_Char *name, const XML_Char **attributes)
{
	struct xml *xml = arg;

	(void)attributes;
	if (xml->refused)
		return;
	if (xml->depth == DEPTH_MAX) {
		refuse(xml, "nested too deeply");
		return;
	}
	xml->path_at[xml->depth] = xml->path.len;
	xml->text_at[xml->depth] = xml->text.len;
	xml->depth++;
	if (xml->path.len)
		sb_addc(&xml->path, '/');
	sb_adds(&xml->path, name);
	if (xml->path.truncated)
		refuse(xml, "the names of its elements are too long");
}

/* Truncates the text to `len`. */
static void cut(struct sb *sb, size_t len)
{
	if (sb->len > len) {
		sb->len = len;
		sb->text[len] = '\0';
	}
}

static void XMLCALL on_end(void *arg, const XML_Char *name)
{
	struct xml *xml = arg;
	size_t at;

	(void)name;
	if (xml->refused || !xml->depth)
		return;
	at = xml->text_at[--xml->depth];
	if (!xml->fn(xml->arg, xml->path.text, xml->text.text + at, xml->text.len - at)) {
		refuse(xml, "not the requested document");
		return;
	}
	cut(&xml->text, at);
	cut(&xml->path, xml->path_at[xml->depth]);
}

static void XMLCALL on_text(void *arg, const XML_Char *text, int len)
{
	struct xml *xml = arg;

	if (xml->refused)
		return;
	sb_add(&xml->text, text, (size_t)len);
	if (xml->text.truncated)
		refuse(xml, "a text in it is too long");
}

/* Refused, because a document type can define entities that grow. */
static void XMLCALL on_doctype(void *arg, const XML_Char *name, const XML_Char *system_id,
			       const XML_Char *public_id, int has_subset)
{
	(void)name;
	(void)system_id;
	(void)public_id;
	(void)has_subset;
	refuse(arg, "a document type is defined");
}

static struct xml *xml_new(xml_fn fn, void *arg)
{
	struct xml *xml = mem_zero(1, sizeof *xml);

	xml->fn = fn;
	xml->arg = arg;
	xml->path = SB_INIT_MAX(PATH_BYTES_MAX);
	xml->text = SB_INIT_MAX(TEXT_BYTES_MAX);
	xml->parser = XML_ParserCreate("UTF-8"); /* overrides the declared encoding */
	if (!xml->parser)
		abort(); /* out of memory: see auto.h */
	XML_SetUserData(xml->parser, xml);
	XML_SetElementHandler(xml->parser, on_start, on_end);
	XML_SetCharacterDataHandler(xml->parser, on_text);
	XML_SetStartDoctypeDeclHandler(xml->parser, on_doctype);
	return xml;
}

static void xml_freep(struct xml **xml)
{
	if (!*xml)
		return;
	XML_ParserFree((*xml)->parser);
	sb_release(&(*xml)->path);
	sb_release(&(*xml)->text);
	free(*xml);
	*xml = NULL;
}

static int of_no_use(const struct xml *xml, const char *what, struct err **err)
{
	enum XML_Error code = XML_GetErrorCode(xml->parser);
	unsigned long line = XML_GetCurrentLineNumber(xml->parser);
	const char *why = xml->refused;

	if (!why && (code == XML_ERROR_NO_ELEMENTS || code == XML_ERROR_UNCLOSED_TOKEN ||
		     code == XML_ERROR_PARTIAL_CHAR || code == XML_ERROR_UNCLOSED_CDATA_SECTION))
		why = "the end is missing";
	if (!why)
		why = XML_ErrorString(code);
	return err_set(err, EXIT_UNREACHABLE, "%s cannot be read as XML: line %lu: %s", what, line,
		       why ? why : "malformed");
}

int xml_parse(const void *bytes, size_t len, const char *what, xml_fn fn, void *arg,
	      struct err **err)
{
	AUTO(xml_freep) struct xml *xml = xml_new(fn, arg);
	const char *at = len ? bytes : "";

	/* S3 keeps a slow request's connection busy with blanks, which must not precede an XML
	 * declaration. */
	for (; len && strchr(" \t\r\n", *at) && *at; at++)
		len--;
	do {
		size_t piece = len < PIECE_MAX ? len : PIECE_MAX;

		len -= piece;
		if (XML_Parse(xml->parser, at, (int)piece, !len) != XML_STATUS_OK)
			return of_no_use(xml, what, err);
		at += piece;
	} while (len);
	return 0;
}

void xml_escape(struct sb *ret, const char *text)
{
	for (const char *at = text; *at; at++) {
		unsigned char byte = (unsigned char)*at;

		if (*at == '&')
			sb_adds(ret, "&amp;");
		else if (*at == '<')
			sb_adds(ret, "&lt;");
		else if (*at == '>')
			sb_adds(ret, "&gt;");
		else if (*at == '"')
			sb_adds(ret, "&quot;");
		else if (*at == '\'')
			sb_adds(ret, "&apos;");
		else if (byte < ' ') /* white space too, which parsers may change */
			sb_addf(ret, "&#%u;", byte);
		else
			sb_addc(ret, *at);
	}
}
