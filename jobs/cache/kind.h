/*
 * Compiler kinds: everything that stoker knows about one compiler's cache and
 * its log, as one row of functions. A new kind is one row in kind.c and one
 * file; nothing else in stoker asks which kind it has.
 *
 * Rows and their sources of truth: `none` (nothing is compiled ahead), `jax`
 * (jax.c: JAX's persistent compilation cache) and `neuron` (neuron.c: the Neuron
 * persistent cache of torch-neuronx, filled by neuron_parallel_compile).
 */
#ifndef STK_CACHE_KIND_H
#define STK_CACHE_KIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "jobs/base/err.h"
#include "jobs/base/json.h"

/* Longest graph key and module name that is believed; longer ones are noise. */
#define GRAPH_KEY_MAX  512
#define GRAPH_NAME_MAX 1024

/* A piece of somebody else's text: bytes, not a string. */
struct words {
	const char *text; /* NULL: not said */
	size_t len;
};

/* What one message in a job's log says about one graph. */
enum note_kind {
	NOTE_HIT,         /* key, name: found in the cache */
	NOTE_MISS,        /* key, name: not there; its compilation starts now */
	NOTE_STORED,      /* key, name: about to be written; no proof that it was */
	NOTE_NOT_STORED,  /* key or name or neither, why: will not be written */
	NOTE_COMPILED,    /* key or name, seconds: ready; with a name alone kinds may say
			   * this of hits too, with a key it was compiled */
	NOTE_READ_ERROR,  /* name, why: an entry was there and could not be used */
	NOTE_WRITE_ERROR, /* name, why: writing the entry failed */
	NOTE_BYPASS,      /* why: one graph went past the cache, nameless */

	NOTE_EXTRACTED,      /* key: traced and written down, not compiled */
	NOTE_FAILED,         /* key or none, why: the compiler failed on it */
	NOTE_CACHED_FAILURE, /* key: an older failure is stored, and was replayed */
	NOTE_WAITING,        /* key, seconds so far: somebody else compiles it; neither hit
			      * nor miss */
	NOTE_CACHE,          /* why: the URL of the cache in use */
	NOTE_TOTALS,         /* one of graphs, good, bad: a line of the front-end's sums */
	NOTE_REMAINING,      /* graphs: the front-end still has so many to compile */
	NOTE_NOTHING,        /* the front-end found nothing to do: no sums will come */
	NOTE_WORKER_DIED,    /* why: one of the front-end's workers gave up */
	NOTE_SCRIPT_FAILED,  /* the script broke off while its graphs were collected */
	NOTE_KINDS
};

struct graph_note {
	enum note_kind kind;
	struct words key, name, why; /* spans of the scanned text */
	/* The folder of the cache that the graph lies in, where graphs of one name
	 * may lie in several (see compile_kind.placed). */
	struct words place;
	double seconds;            /* NOTE_COMPILED (0: not said), NOTE_WAITING; else 0 */
	int64_t stamp_ms;          /* time stamp of the message, by the clock of its node and in
				    * its time zone: only for differences; 0: none */
	int64_t graphs, good, bad; /* NOTE_TOTALS: -1 what this message does not say */
	/* NOTE_COMPILED, NOTE_FAILED: by the front-end's summary, not the compiler. */
	bool summary;
	/* NOTE_MISS: the compiler itself is called now, by whoever holds the graph's lock. */
	bool called;
	/* NOTE_FAILED: the system ended the compiler, as it does when memory is short. */
	bool killed;
	/* NOTE_READ_ERROR: the entry's form was bad, which inspect() can see too,
	 * and which passes if it was only read while another rank wrote it. */
	bool bad_form;
	/* NOTE_NOT_STORED: for a reason that will be the same in every run. */
	bool lasting;
};

/* The condition of a graph in a cache. */
enum entry_state {
	ENTRY_DONE,    /* compiled, usable as far as one can see */
	ENTRY_EMPTY,   /* there, with zero bytes */
	ENTRY_PARTIAL, /* there, cut off or damaged */
	ENTRY_FAILED,  /* a stored failure of the compiler */
	ENTRY_LOCKED,  /* somebody compiles it, or died while doing so */
	ENTRY_TODO,    /* known to the cache, not compiled */
	ENTRY_MISSING, /* nothing there */
	ENTRY_STATES
};

const char *entry_state_name(enum entry_state state); /* "done", "empty", … */

/* What one object of a listing is. A graph may consist of several. */
enum entry_role {
	ROLE_COMPILED = 1 << 0, /* the compiled graph: the object that a lock pins */
	ROLE_INPUT = 1 << 1,    /* what is to be compiled */
	ROLE_MARKER = 1 << 2,   /* says that the compiled graph is good */
	ROLE_LOG = 1 << 3,      /* a stored failure */
	ROLE_LOCK = 1 << 4,     /* being compiled */
	ROLE_FLAGS = 1 << 5,    /* how it is to be compiled */
	ROLE_OLD = 1 << 6,      /* beside another role: of a layout without markers */
};

struct entry_object {
	struct words graph; /* its graph key: a span of the object's key */
	unsigned role;      /* ROLE_COMPILED never comes with another bit */
};

/* Where a spec's program is to be looked for: as the job will see it. Strings
 * may be NULL where there is none, except program. */
struct program_place {
	const char *program;     /* command[0] */
	const char *cwd;         /* the source folder */
	const char *path;        /* PATH of the job */
	const char *home;        /* HOME of the job */
	const char *python_path; /* PYTHONPATH of the job */
};

struct kind_variable {
	const char *name;
	const char *value; /* NULL: where the cache is */
};

typedef void (*kind_variable_fn)(void *arg, const char *name, const char *value);

/* Messages that span lines of one node's log. The memory of what was read so far
 * is bounded, and dropped with its log. */
struct line_reader {
	void *(*memory)(void); /* for one node; yours to hand to forget() */
	void (*forget)(void *memory);
	/* As compile_kind.scan, which sees the same pieces and reads all the rest. A
	 * piece that does not begin at 0 goes on in the piece of the call before. */
	bool (*scan)(void *memory, const char *text, size_t len, size_t *at,
		     struct graph_note *ret);
};

struct compile_kind {
	const char *name;

	/* Has a cache at all; false only for `none`, whose functions say nothing. */
	bool caches;
	/* What to do about graphs that are never stored (`lasting`); may be NULL. */
	const char *lasting_hint;
	/* A graph lies in one of several folders of the cache, one a compiler's
	 * version: logs name it `NAME`, perhaps with its place, but in listings, locks
	 * and verdicts its key is `PLACE/NAME`. */
	bool placed;

	/* What the compiler is told of its cache may be a URL of an object store, which its
	 * own libraries read and write, locks included. Where it is false and the cache is
	 * no directory, the agents keep a folder of each node in step with it. */
	bool opens_urls;

	/* The program that is put in front of the command in phase 1, NULL: none; and
	 * its option for how many graphs it compiles at a time. */
	const char *front_end, *workers_option;
	/* The variable by which launchers are told of it: "1" in phase 1, never set in
	 * training; NULL: none. */
	const char *front_variable;
	/* Words in a variable of the job that make the compiler try again what is
	 * stored as failed; NULL: failures are not stored. They change no key. */
	const char *retry_variable, *retry_words;
	/* The command that clears the locks of a whole cache, NULL: there is none. */
	const char *unlock_command;
	/* What beats the cache that `environment` sets, for a hint; may be NULL. */
	const char *other_cache_hint;

	/* Variables that must be set alike in both phases, whatever the spec's
	 * env says: where the cache is, that everything is stored, and that the
	 * messages which scan() reads are printed. A row without a name is the
	 * last; NULL: none. */
	const struct kind_variable *environment;

	/* Variables of the job that cannot change a graph of this kind, beyond those:
	 * names, or prefixes that end in '*'. NULL is the last; NULL: none. */
	const char *const *neutral;
	/* One that such a prefix has and that changes graphs all the same, or NULL. */
	const char *not_neutral;

	/* The next message at or after `*at` in a piece of log, which is usually
	 * one line but may be cut or hold several merged ones; advances `*at`
	 * behind it. Anything may stand before a message. Bytes in, spans out;
	 * no allocation, time linear in `len`. A message that is cut before its
	 * key ends is none. */
	bool (*scan)(const char *text, size_t len, size_t *at, struct graph_note *ret);

	/* What scan() cannot see; NULL: no message of this kind spans lines. */
	const struct line_reader *lines;

	/* Whether an object of the cache, by its key, is part of a graph. */
	bool (*object)(const char *key, struct entry_object *ret);

	/* State of a graph from the roles seen and the size of ROLE_COMPILED. */
	enum entry_state (*state)(unsigned roles, uint64_t compiled_size);

	/* Key of the only object of a graph, where it follows from the graph's
	 * key (yours to free). NULL function: a graph has several objects. */
	char *(*path)(const char *graph);

	/* What the keys of all objects of a graph begin with and of no other's: its
	 * folder, with a slash at the end (yours to free); NULL if that is no graph's key. NULL
	 * function: path() is there, or only a listing of everything can tell. */
	char *(*prefix)(const char *graph);

	/* The compiler that wrote an entry, as the entry's place says it: the version, and
	 * in `ret_package` its name in the fingerprint; len 0: it does not say. NULL
	 * function: places of this kind never do. `path` is an object's key or a graph's
	 * with its place. */
	struct words (*writer)(const char *path, const char **ret_package);

	/* Read a compiled graph to its end and judge its form: ENTRY_DONE,
	 * ENTRY_EMPTY or ENTRY_PARTIAL with a reason (static text). -1 only if it
	 * cannot be read. NULL function: nothing can be told from the form. */
	int (*inspect)(int fd, enum entry_state *ret_state, const char **ret_why);

	/* The compiler's own first words on what went wrong, out of the log that it
	 * stored with a failure; len 0: none. NULL function: no such logs. */
	struct words (*first_error)(const char *log, size_t len);

	/* Versions of compiler and framework, and what else decides about the
	 * code they make, as a flat object of strings: {"jax":"0.7.2", …}. Looks
	 * at files; runs nothing, except a version manager's `python` shim. A
	 * program that is not there gives {"program":…, "found":false}: the run
	 * will say so in its phase. Errors are failed reads only. */
	int (*fingerprint)(const struct program_place *place, json_t **ret, struct err **err);
};

/* The row of a name ("none", "jax", "neuron"); NULL if this version has no such kind. */
const struct compile_kind *compile_kind_find(const char *name);
/* The n-th row from 0, NULL behind the last. */
const struct compile_kind *compile_kind_at(size_t n);

/* Tell `fn` each variable of the kind's environment; `cache` is an absolute path or URL. */
void compile_kind_environment(const struct compile_kind *kind, const char *cache,
			      kind_variable_fn fn, void *arg);

/* True for a variable of the job that changes no graph of any kind (log
 * levels, tracking services…) or none of this kind: not part of a graph key. */
bool compile_kind_neutral(const struct compile_kind *kind, const char *variable);

#endif
