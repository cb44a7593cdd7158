/*
 * What goes together: machines, images, frameworks and versions of the Neuron SDK. The rules are
 * data, configs/catalogue/compatibility.yaml, which says what they are about and what holds when;
 * here they are held against facts, which a spec gives, and whoever has asked a service adds to.
 */
#ifndef STK_SPEC_MACHINES_COMPATIBILITY_H
#define STK_SPEC_MACHINES_COMPATIBILITY_H

#include "jobs/base/text/js.h"

/* The facts of a job that are known; all but the engine may be NULL. */
struct compatibility_job {
	const char *engine, *compiler, *image, *type;
	const char *accelerator; /* "neuron", "gpu" or "nvidia" */
};

/* Returns the facts about a job: name → text, as the file lists them, and "type" and "image" as
 * given. What is not known is absent. More may be put in ("ami"). A new reference. */
json_t *compatibility_facts(const struct compatibility_job *job);

/* Holds the rules against the facts. Returns those that apply, in the order of the file:
 *   {"id", "state": "fail" | "warn" | "note", "says", "cure", "of": the facts that it is about,
 *    as [name…], "source", "dated"}
 * A new reference. */
json_t *compatibility_check(const json_t *facts);

/* Returns what the tag of an image says: {"framework" (absent: not known), "framework_version",
 * "device", "python", "sdk" (absent: not one for Neuron)}. A new reference; NULL if it says
 * nothing. */
json_t *compatibility_image(const char *image);

/* True if one version is older than the other: "2.9.0" than "2.10". */
bool compatibility_is_older(const char *version, const char *other);

#endif
