/*
 * JAX's messages about its compilation cache, as jax/_src/compiler.py,
 * compilation_cache.py, dispatch.py and interpreters/pxla.py of JAX 0.10 print
 * them (read there and seen in runs):
 *
 *   Persistent compilation cache hit for 'jit_f' with key 'jit_f-<64 hex>'
 *   PERSISTENT COMPILATION CACHE MISS for 'jit_f' with key 'jit_f-<64 hex>'
 *   Writing jit_f to persistent compilation cache with key 'jit_f-<64 hex>'
 *   Not writing persistent cache entry with key 'jit_f-<64 hex>' since …
 *   Not writing persistent cache entry for 'jit_f' because …
 *   Not writing persistent cache entry since process_id != 0
 *   Error reading persistent compilation cache entry for 'jit_f': Type: text
 *   Error writing persistent compilation cache entry for 'jit_f': Type: text
 *   compile_or_get_cached: unable to generate cache key, skipping the cache: …
 *   Finished XLA compilation of jit(f) in 0.041103840 sec
 *
 * A miss is printed before its compilation and "Finished" after it, but
 * "Finished" follows a hit as well. "Writing" comes before the write and also
 * if an entry exists already and therefore stays as it is. Python writes a key with '…', or with
 * "…" if it holds a ' itself. Any text may precede a message: log formats, warning locations,
 * launchers' tags.
 */
#include "jobs/cache/kinds/jax.h"

#include <string.h>

#include "jobs/base/text/text.h"
#include "jobs/cache/kinds/cursor.h"

static bool eat_quoted(struct cursor *in, size_t max, struct compile_kind_words *ret)
{
	if (cursor_accept(in, "'"))
		return cursor_accept_until(in, "'", max, ret);
	return cursor_accept(in, "\"") && cursor_accept_until(in, "\"", max, ret);
}

bool jax_is_graph_key(const char *text, size_t len)
{
	if (len < 66 || len > GRAPH_KEY_MAX || text[len - 65] != '-')
		return false;
	for (size_t i = len - 64; i < len; i++)
		if (!memchr("0123456789abcdef", text[i], 16))
			return false;
	/* The key is a file name; it must not lead to another folder. */
	return text[0] != '.' && !memchr(text, '/', len) && !memchr(text, '\0', len);
}

static bool eat_key(struct cursor *in, struct compile_kind_words *ret)
{
	return eat_quoted(in, GRAPH_KEY_MAX, ret) && jax_is_graph_key(ret->text, ret->len);
}

static bool name_and_key(struct cursor *in, enum note_kind kind, struct graph_note *ret)
{
	ret->kind = kind;
	return eat_quoted(in, GRAPH_NAME_MAX, &ret->name) && cursor_accept(in, " with key ") &&
	       eat_key(in, &ret->key);
}

static bool read_hit(struct cursor *in, struct graph_note *ret)
{
	return name_and_key(in, NOTE_HIT, ret);
}

static bool read_miss(struct cursor *in, struct graph_note *ret)
{
	return name_and_key(in, NOTE_MISS, ret);
}

static bool read_writing(struct cursor *in, struct graph_note *ret)
{
	/* Many programs print that they are writing something. A module's name has no blank, so
	 * this cannot swallow another message on the same line. */
	ret->kind = NOTE_STORED;
	return cursor_accept_until(in, " ", GRAPH_NAME_MAX, &ret->name) &&
	       cursor_accept(in, "to persistent compilation cache with key ") &&
	       eat_key(in, &ret->key);
}

static bool read_not_writing(struct cursor *in, struct graph_note *ret)
{
	ret->kind = NOTE_NOT_STORED;
	if (cursor_accept(in, "with key ")) {
		if (!eat_key(in, &ret->key) || !cursor_accept(in, " "))
			return false;
	} else if (cursor_accept(in, "for ")) {
		if (!eat_quoted(in, GRAPH_NAME_MAX, &ret->name) || !cursor_accept(in, " "))
			return false;
	}
	if (!cursor_accept(in, "since ") && !cursor_accept(in, "because "))
		return false;
	ret->why = cursor_accept_why(in);
	ret->lasting = memmem(ret->why.text, ret->why.len, "host callbacks", 14);
	return ret->why.len > 0;
}

static bool name_and_error(struct cursor *in, enum note_kind kind, struct graph_note *ret)
{
	ret->kind = kind;
	if (!eat_quoted(in, GRAPH_NAME_MAX, &ret->name) || !cursor_accept(in, ": "))
		return false;
	ret->why = cursor_accept_why(in);
	return true;
}

static bool read_read_error(struct cursor *in, struct graph_note *ret)
{
	if (!name_and_error(in, NOTE_READ_ERROR, ret))
		return false;
	ret->bad_form = memmem(ret->why.text, ret->why.len, " while decompressing ", 21) ||
			memmem(ret->why.text, ret->why.len, "ZstdError", 9);
	return true;
}

static bool read_write_error(struct cursor *in, struct graph_note *ret)
{
	return name_and_error(in, NOTE_WRITE_ERROR, ret);
}

static bool read_bypass(struct cursor *in, struct graph_note *ret)
{
	ret->kind = NOTE_BYPASS;
	ret->why = cursor_accept_why(in);
	return true;
}

static bool read_finished(struct cursor *in, struct graph_note *ret)
{
	size_t number;

	ret->kind = NOTE_COMPILED;
	if (!cursor_accept_until(in, " in ", GRAPH_NAME_MAX, &ret->name) || ret->name.len == 0)
		return false;
	/* A function's name may hold blanks ("<unnamed wrapped function>"), but
	 * not the beginning of the message that cut this one. */
	if (memmem(ret->name.text, ret->name.len, "Finished ", 9))
		return false;
	number = text_float(in->at, (size_t)(in->end - in->at), &ret->seconds);
	if (number == 0 || number > 32)
		return false;
	in->at += number;
	return cursor_accept(in, " sec") && ret->seconds >= 0 && ret->seconds < 1e9;
}

static const struct jax_log_message {
	const char *start;
	size_t len;
	bool (*read)(struct cursor *in, struct graph_note *ret);
} messages[] = {
#define MESSAGE(start, read)                                                                       \
	{                                                                                          \
		start, sizeof(start) - 1, read                                                     \
	}
	MESSAGE("Persistent compilation cache hit for ", read_hit),
	MESSAGE("PERSISTENT COMPILATION CACHE MISS for ", read_miss),
	MESSAGE("Writing ", read_writing),
	MESSAGE("Not writing persistent cache entry ", read_not_writing),
	MESSAGE("Error reading persistent compilation cache entry for ", read_read_error),
	MESSAGE("Error writing persistent compilation cache entry for ", read_write_error),
	MESSAGE("compile_or_get_cached: unable to generate cache key, skipping the cache: ",
		read_bypass),
	MESSAGE("Finished XLA compilation of ", read_finished),
#undef MESSAGE
};

static bool read_message(struct cursor *in, struct graph_note *ret)
{
	size_t left = (size_t)(in->end - in->at);

	for (size_t i = 0; i < STK_LENGTH(messages); i++) {
		const struct jax_log_message *message = &messages[i];
		struct cursor rest_of = *in;

		/* Most candidates differ in the first letters. */
		if (left < message->len || in->at[0] != message->start[0] ||
		    in->at[1] != message->start[1] ||
		    memcmp(in->at, message->start, message->len) != 0)
			continue;
		rest_of.at += message->len;
		*ret = (struct graph_note){ 0 };
		if (!message->read(&rest_of, ret))
			continue;
		*in = rest_of;
		return true;
	}
	return false;
}

bool jax_scan(const char *text, size_t len, size_t *at, struct graph_note *ret)
{
	/* Every message begins with one of these; each position is tried once, and a failed attempt
	 * reads at most about GRAPH_NAME_MAX bytes. */
	for (size_t i = *at; i < len; i++) {
		struct cursor in = { text + i, text + len };

		switch (text[i]) {
		case 'P':
		case 'W':
		case 'N':
		case 'E':
		case 'c':
		case 'F':
			if (read_message(&in, ret)) {
				*at = (size_t)(in.at - text);
				return true;
			}
			break;
		default:
			break;
		}
	}
	*at = len;
	return false;
}
