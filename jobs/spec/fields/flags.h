/*
 * Variables that hold a compiler's flags, in the form of the graph key: two texts with the same
 * meaning give the same text.
 *
 *   NEURON_CC_FLAGS   as Python's shlex.split() takes it apart, less the flags of the wrapper,
 *                     which never reach the compiler (Neuron SDK, neuron-caching.rst)
 *   XLA_FLAGS         blanks separate, quotes protect (tsl/platform, parse_flags_from_env); a text
 *                     that does not begin with a dash names a file, and stays as it is
 *
 * The rule: a flag and the words behind it that are not flags stay together, and flags are sorted
 * by name. Flags that may set the same thing keep their order, because the last one wins: the same
 * flag again, --enable-x, --disable-x and --no-x, -O and --optlevel; and a flag that is a prefix of
 * another, since it could be the short form (--auto-cast is known to be a flag of its own).
 * Words before the first flag come first, words behind a bare "--" last, in their order. A word
 * with a blank in its name, or that is a number, is a value though it begins with a dash: as
 * Python's argparse takes it. A text with a quote that is never closed stays as it is.
 */
#ifndef STK_SPEC_FIELDS_FLAGS_H
#define STK_SPEC_FIELDS_FLAGS_H

#include <stdbool.h>

/* True for a word that is a flag, by the rule above. */
bool flags_is_flag(const char *word);

/* Returns NULL if the variable does not hold flags. The caller frees it. */
char *flags_in_key(const char *variable, const char *text);

#endif
