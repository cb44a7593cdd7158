/*
 * What users lose: a file of the cache or of a marked checkpoint is removed by somebody, or gone
 * after a power cut. The world's own hand does it and notes when, so that the rules know what was
 * really there.
 */
#ifndef STK_TESTS_WORLD_LOSSES_H
#define STK_TESTS_WORLD_LOSSES_H

#include <stdint.h>

struct machine;

void losses_reset(void);
/* Somebody removes a file: of a graph in the cache, or of the newest marked checkpoint. */
void losses_remove(uint64_t chance);
/* A machine has lost its power: the marked checkpoints that it had are looked at. */
void losses_after_power(struct machine *machine);
/* When a file of the cache was removed last; -1: never. */
int64_t losses_of_cache_ns(void);
/* When the checkpoint of that URL was damaged; -1: never. */
int64_t losses_of_checkpoint_ns(const char *url);
/* The URL of a marked checkpoint that was not whole after a power cut; NULL: there is none. */
const char *losses_by_power(void);

#endif
