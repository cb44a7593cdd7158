/*
 * The tag of a container image, as far as AWS publishes what such tags mean
 * (configs/catalogue/compatibility.yaml, `registries` and `tags`).
 */
#ifndef STK_SPEC_MACHINES_IMAGE_TAG_H
#define STK_SPEC_MACHINES_IMAGE_TAG_H

#include "jobs/base/text/js.h"

/* Puts into the facts what name and tag of an image tell: registry, repository, tag, framework,
 * framework_version, device, python, sdk, and "example": a tag of the published form, where this
 * one has none. An image by digest has no tag. */
void image_tag_read(const char *image, json_t *facts);

#endif
