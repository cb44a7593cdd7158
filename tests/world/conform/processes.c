/* Operations on processes and signals: see player.h. */
#include <stddef.h>

#include "tests/world/conform/player.h"

const struct operation process_operations[] = {
	{ NULL, 0, NULL },
};
