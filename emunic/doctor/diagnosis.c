/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The report of `emunic doctor`: what was found, which provider between hosts would be chosen and why, and what would
 * help.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "emunic/doctor/doctor.h"

struct findings {
    struct emu_doctor_cores cores;
    struct emu_doctor_device devices[EMU_DOCTOR_DEVICES_MAX];
    struct emu_doctor_provider providers[EMU_DOCTOR_PROVIDERS_MAX];
    struct emu_doctor_check checks[EMU_DOCTOR_CHECKS_MAX];
    int cores_error; /* negative errno, or 0 */
    int n_devices;   /* or negative errno */
    int n_providers; /* likewise */
    unsigned n_checks;
};

static void advise(json_t *advice, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void advise(json_t *advice, const char *format, ...)
{
    char text[512];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    json_array_append_new(advice, json_string(text));
}

static json_t *cores_json(const struct emu_doctor_cores *cores)
{
    json_t *caches = json_array();

    for (unsigned i = 0; i < cores->n_caches; i++) {
        const struct emu_doctor_cache *c = &cores->caches[i];

        json_array_append_new(caches, json_pack("{s:i, s:i, s:I, s:i}", "level", (int)c->level, "count", (int)c->n,
                                                "bytes", (json_int_t)c->bytes, "processors", (int)c->processors));
    }
    return json_pack("{s:i, s:i, s:i, s:i, s:i, s:s, s:I, s:I, s:o}", "packages", (int)cores->packages, "numa_nodes",
                     (int)cores->numa_nodes, "cores", (int)cores->cores, "processors", (int)cores->processors,
                     "allowed", (int)cores->allowed, "allowed_set", cores->allowed_set, "memory_bytes",
                     (json_int_t)cores->memory_bytes, "yield_ns", (json_int_t)cores->yield_ns, "caches", caches);
}

static json_t *device_json(const struct emu_doctor_device *device)
{
    json_t *ports = json_array();
    json_t *object;

    for (unsigned i = 0; i < device->n_ports; i++) {
        const struct emu_doctor_rdma_port *p = &device->ports[i];

        json_array_append_new(ports, json_pack("{s:i, s:s, s:s, s:f, s:i, s:i, s:s}", "port", (int)p->number, "state",
                                               p->state, "link", p->link, "gbit_per_s", p->gbit_per_s, "mtu_bytes",
                                               (int)p->mtu_bytes, "lid", (int)p->lid, "gid", p->gid));
    }
    object = json_pack("{s:s, s:s, s:i, s:s, s:o}", "name", device->name, "firmware", device->firmware, "numa_node",
                       device->numa_node, "near", device->near_set, "ports", ports);
    if (object && !device->is_open)
        json_object_set_new(object, "error", json_string(strerror(device->error)));
    return object;
}

static json_t *provider_json(const struct emu_doctor_provider *p)
{
    return json_pack("{s:s, s:s, s:s, s:f, s:I}", "provider", p->name, "domain", p->domain, "fabric", p->fabric,
                     "gbit_per_s", p->gbit_per_s, "max_message_bytes",
                     (json_int_t)(p->max_message_bytes > INT64_MAX ? INT64_MAX : p->max_message_bytes));
}

static json_t *check_json(const struct emu_doctor_check *check)
{
    static const char *const states[] = { "good", "slow", "missing" };

    return json_pack("{s:s, s:s, s:s, s:s, s:s}", "name", check->name, "state", states[check->state], "found",
                     check->found, "purpose", check->purpose, "remedy",
                     check->state == EMU_DOCTOR_GOOD ? "" : check->remedy);
}

/* The best, or the best whose name contains what the user wants. */
static const struct emu_doctor_provider *choose(const struct findings *f, const char *wanted)
{
    for (int i = 0; i < f->n_providers; i++) {
        if (!wanted || strstr(f->providers[i].name, wanted))
            return &f->providers[i];
    }
    return NULL;
}

/* The device behind a provider's domain ("mlx5_0", or "mlx5_0-dgram"), if it is one of libibverbs. */
static const struct emu_doctor_device *device_of(const struct findings *f, const struct emu_doctor_provider *provider)
{
    for (int i = 0; i < f->n_devices; i++) {
        size_t len = strlen(f->devices[i].name);

        if (strncmp(provider->domain, f->devices[i].name, len) == 0 &&
            (provider->domain[len] == '\0' || provider->domain[len] == '-'))
            return &f->devices[i];
    }
    return NULL;
}

static json_t *chosen_json(const struct findings *f, const char *wanted, json_t *advice)
{
    const struct emu_doctor_provider *provider = choose(f, wanted);
    const struct emu_doctor_device *device;
    char why[512];

    if (!provider) {
        if (wanted)
            advise(advice, "no provider of libfabric here is named '%s'", wanted);
        else
            advise(advice,
                   "install libfabric with its tcp provider (Debian: libfabric1): nothing can go between hosts");
        return NULL;
    }
    device = device_of(f, provider);
    if (wanted)
        snprintf(why, sizeof(why), "the best whose name contains '%s'", wanted);
    else if (device)
        snprintf(why, sizeof(why), "moves data without the processor, on device %s", device->name);
    else if (strncmp(provider->name, "tcp", 3) == 0)
        snprintf(why, sizeof(why), "no faster one was found, and tcp runs everywhere");
    else
        snprintf(why, sizeof(why), "first in the order of preference");
    return json_pack("{s:s, s:s, s:s, s:s}", "provider", provider->name, "domain", provider->domain, "device",
                     device ? device->name : "", "why", why);
}

static void advise_on_devices(const struct findings *f, json_t *advice)
{
    if (f->n_devices < 0)
        advise(advice, "the list of RDMA devices cannot be had: %s", strerror(-f->n_devices));
    for (int i = 0; i < f->n_devices; i++) {
        const struct emu_doctor_device *device = &f->devices[i];
        unsigned n_active = 0;

        for (unsigned p = 0; p < device->n_ports; p++)
            n_active += strcmp(device->ports[p].state, "active") == 0;
        if (!device->is_open)
            advise(advice, "device %s cannot be opened (%s): check the rights of /dev/infiniband", device->name,
                   strerror(device->error));
        else if (n_active == 0)
            advise(advice, "no port of device %s is active: check its cable and subnet manager", device->name);
    }
}

static unsigned advise_on_checks(const struct findings *f, json_t *advice)
{
    unsigned missing = 0;

    for (unsigned i = 0; i < f->n_checks; i++) {
        const struct emu_doctor_check *check = &f->checks[i];

        /* Locked memory matters to devices only. */
        if (check->state == EMU_DOCTOR_GOOD || (f->n_devices <= 0 && strcmp(check->name, "memlock") == 0))
            continue;
        missing += check->state == EMU_DOCTOR_MISSING;
        advise(advice, "%s (%s): %s", check->name, check->purpose, check->remedy);
    }
    return missing;
}

static void advise_on_cores(const struct findings *f, json_t *advice)
{
    if (f->cores_error == 0 && f->cores.allowed > 0 && f->cores.allowed < 3)
        advise(advice,
               "%u processor%s: emunic and two ranks share them; transfers that go through emunic cost a switch",
               f->cores.allowed, f->cores.allowed == 1 ? "" : "s");
}

/* Of emunic between hosts, by the provider that was chosen. */
static json_t *placement_json(const json_t *chosen, json_t *advice)
{
    const char *device = json_string_value(json_object_get(chosen, "domain"));
    struct emu_doctor_placement placement;
    int r = emu_doctor_placement(device ? device : "", &placement);

    if (r < 0) {
        advise(advice, "no place for emunic can be chosen: %s", strerror(-r));
        return json_null();
    }
    if (placement.is_near_elsewhere)
        advise(advice, "%s is near processors %s, none of which may be used here: widen the control group", device,
               placement.near_set);
    return json_pack("{s:s, s:s, s:s}", "processors", placement.processors, "why", placement.why, "near",
                     placement.near_set);
}

static json_t *make_report(const struct findings *f, const char *wanted)
{
    json_t *advice = json_array();
    json_t *devices = json_array();
    json_t *providers = json_array();
    json_t *permissions = json_array();
    json_t *chosen = chosen_json(f, wanted, advice);
    json_t *placement = placement_json(chosen, advice);
    unsigned missing = advise_on_checks(f, advice) + (chosen ? 0 : 1);

    advise_on_devices(f, advice);
    advise_on_cores(f, advice);
    if (f->cores_error < 0)
        advise(advice, "hwloc cannot read this host: %s", strerror(-f->cores_error));
    for (int i = 0; i < f->n_devices; i++)
        json_array_append_new(devices, device_json(&f->devices[i]));
    for (int i = 0; i < f->n_providers; i++)
        json_array_append_new(providers, provider_json(&f->providers[i]));
    for (unsigned i = 0; i < f->n_checks; i++)
        json_array_append_new(permissions, check_json(&f->checks[i]));
    return json_pack("{s:i, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:i}", "schema", 1, "cores", cores_json(&f->cores),
                     "devices", devices, "providers", providers, "permissions", permissions, "chosen",
                     chosen ? chosen : json_null(), "placement", placement, "advice", advice, "missing", (int)missing);
}

json_t *emu_doctor_report(const char *provider)
{
    struct findings f = { 0 };

    f.cores_error = emu_doctor_cores(&f.cores);
    f.n_devices = emu_doctor_devices(f.devices);
    f.n_providers = emu_doctor_providers(f.providers);
    f.n_checks = emu_doctor_permissions(f.checks);
    return make_report(&f, provider);
}
