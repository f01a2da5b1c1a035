/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libpmi2.so.0 and libpmi.so.0 in one process: two names, each with its own SONAME, and one state. The program is
 * linked with libpmi2 alone, as PMI-2 programs are, and loads both names later.
 */
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <pmi.h>
#include <stdio.h>
#include <string.h>

static int n_failures;

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            n_failures++;                                                                                              \
            fprintf(stderr, "pmi_two_names: line %d: not true: %s\n", __LINE__, #condition);                           \
        }                                                                                                              \
    } while (0)

/* DT_SONAME of a loaded library. */
static const char *soname_of(void *handle)
{
    struct link_map *map = NULL;
    const char *strings = NULL;
    size_t at = 0;

    if (dlinfo(handle, RTLD_DI_LINKMAP, &map) < 0)
        return "";
    for (const ElfW(Dyn) *entry = map->l_ld; entry->d_tag != DT_NULL; entry++) {
        if (entry->d_tag == DT_STRTAB)
            strings = (const char *)entry->d_un.d_ptr; /* glibc has relocated it */
        else if (entry->d_tag == DT_SONAME)
            at = entry->d_un.d_val;
    }
    return strings != NULL && at != 0 ? strings + at : "";
}

int main(void)
{
    static const char *const names[] = { "PMI2_Init", "PMI_Init", "PMI_Allgather", "cnos_get_rank" };
    void *pmi, *pmi2;
    int (*initialized)(PMI_BOOL *);
    PMI_BOOL flag = -1;

    CHECK(PMI2_Init(NULL, NULL, NULL, NULL) == PMI2_SUCCESS);
    pmi = dlopen("libpmi.so.0", RTLD_NOW | RTLD_LOCAL);
    pmi2 = dlopen("libpmi2.so.0", RTLD_NOW | RTLD_LOCAL);
    CHECK(pmi != NULL && pmi2 != NULL);
    if (n_failures > 0)
        return 1;
    CHECK(strcmp(soname_of(pmi), "libpmi.so.0") == 0);
    CHECK(strcmp(soname_of(pmi2), "libpmi2.so.0") == 0);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        CHECK(dlsym(pmi, names[i]) != NULL && dlsym(pmi, names[i]) == dlsym(pmi2, names[i]));
    CHECK(dlsym(pmi, "PMI2_Init") == (void *)PMI2_Init);
    *(void **)&initialized = dlsym(pmi, "PMI_Initialized");
    CHECK(initialized(&flag) == PMI_SUCCESS && flag == PMI_TRUE);
    CHECK(PMI2_Finalize() == PMI2_SUCCESS);
    CHECK(initialized(&flag) == PMI_SUCCESS && flag == PMI_FALSE);
    return n_failures == 0 ? 0 : 1;
}
