/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libyaml looks at all open brackets for each token and compares each anchor with all before, so the time to load a
 * file grows with the square of its depth and of its anchors. Its events come one by one: they are counted, and the
 * first that is too much ends the reading.
 */
#include "emunic/fabric/yaml_bounds.h"

#include <stdbool.h>

#define DEPTH_MAX   32u
#define ANCHORS_MAX 256u

struct counts {
    unsigned depth;
    unsigned n_anchors;
};

static const char *count(struct counts *c, const yaml_event_t *event)
{
    switch (event->type) {
    case YAML_SEQUENCE_START_EVENT:
        c->depth++;
        c->n_anchors += event->data.sequence_start.anchor ? 1 : 0;
        break;
    case YAML_MAPPING_START_EVENT:
        c->depth++;
        c->n_anchors += event->data.mapping_start.anchor ? 1 : 0;
        break;
    case YAML_SCALAR_EVENT:
        c->n_anchors += event->data.scalar.anchor ? 1 : 0;
        break;
    case YAML_ALIAS_EVENT:
        c->n_anchors++;
        break;
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        c->depth--;
        break;
    default:
        break;
    }
    return c->depth > DEPTH_MAX ? "nested too deeply" : c->n_anchors > ANCHORS_MAX ? "too many anchors" : NULL;
}

const char *emu_yaml_excess(FILE *file, yaml_mark_t *where_out)
{
    struct counts counts = { 0 };
    const char *excess = NULL;
    bool is_over = false;
    yaml_parser_t parser;
    yaml_event_t event;

    if (!yaml_parser_initialize(&parser))
        return "out of memory";
    yaml_parser_set_input_file(&parser, file);
    while (!excess && !is_over && yaml_parser_parse(&parser, &event)) {
        is_over = event.type == YAML_STREAM_END_EVENT;
        excess = count(&counts, &event);
        *where_out = event.start_mark;
        yaml_event_delete(&event);
    }
    yaml_parser_delete(&parser);
    rewind(file);
    return excess;
}
