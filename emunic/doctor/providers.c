/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Providers of libfabric that are here and can carry emunic's traffic between hosts, in the order in which transport
 * takes them.
 */
#include <errno.h>
#include <rdma/fabric.h>
#include <rdma/fi_errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emunic/doctor/doctor.h"
#include "emunic/transport/provider.h"

static int compare(const void *a, const void *b)
{
    const struct emu_doctor_provider *x = a;
    const struct emu_doctor_provider *y = b;

    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    if (x->gbit_per_s != y->gbit_per_s)
        return x->gbit_per_s > y->gbit_per_s ? -1 : 1;
    return strcmp(x->name, y->name) != 0 ? strcmp(x->name, y->name) : strcmp(x->domain, y->domain);
}

static void copy_name(char to[EMU_DOCTOR_NAME_MAX], const char *from)
{
    snprintf(to, EMU_DOCTOR_NAME_MAX, "%s", from ? from : "");
}

static bool is_known(const struct emu_doctor_provider *providers, int n, const struct emu_doctor_provider *provider)
{
    for (int i = 0; i < n; i++) {
        if (strcmp(providers[i].name, provider->name) == 0 && strcmp(providers[i].domain, provider->domain) == 0)
            return true;
    }
    return false;
}

static struct emu_doctor_provider describe(const struct fi_info *info)
{
    struct emu_doctor_provider provider = {
        .gbit_per_s = info->nic && info->nic->link_attr ? (double)info->nic->link_attr->speed / 1e9 : 0,
        .max_message_bytes = info->ep_attr->max_msg_size,
        .rank = emu_provider_rank(info->fabric_attr->prov_name),
    };

    copy_name(provider.name, info->fabric_attr->prov_name);
    copy_name(provider.domain, info->domain_attr->name);
    copy_name(provider.fabric, info->fabric_attr->name);
    return provider;
}

int emu_doctor_providers(struct emu_doctor_provider providers_out[EMU_DOCTOR_PROVIDERS_MAX])
{
    struct fi_info *hints = emu_provider_hints();
    struct fi_info *list = NULL;
    int n = 0;
    int r;

    if (!hints)
        return -ENOMEM;
    r = fi_getinfo(EMU_PROVIDER_API, NULL, NULL, 0, hints, &list);
    fi_freeinfo(hints);
    if (r == -FI_ENODATA)
        return 0;
    if (r < 0)
        return r;
    for (const struct fi_info *info = list; info && n < EMU_DOCTOR_PROVIDERS_MAX; info = info->next) {
        struct emu_doctor_provider provider;

        if (!info->fabric_attr || !info->fabric_attr->prov_name || !info->domain_attr || !info->ep_attr)
            continue;
        provider = describe(info);
        if (!is_known(providers_out, n, &provider))
            providers_out[n++] = provider;
    }
    fi_freeinfo(list);
    qsort(providers_out, (size_t)n, sizeof(*providers_out), compare);
    return n;
}
