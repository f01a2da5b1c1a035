/* SPDX-License-Identifier: BSD-3-Clause */
/* Which programs name a library of Portals; files that lie or end early name none. */
#include "emunic/cli/program.h"

#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/common/seed.h"

#define BASE 0x400000u

/* A file as small as it can be: header, two segments, dynamic section, names. */
struct image {
    Elf64_Ehdr header;
    Elf64_Phdr load, dynamic;
    Elf64_Dyn entries[5];
    char names[64];
};

static char path[] = "/tmp/emunic-program-XXXXXX";

static struct image program_with(const char *library)
{
    struct image image = {
        .header = { .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB },
                    .e_phoff = offsetof(struct image, load),
                    .e_phentsize = sizeof(Elf64_Phdr),
                    .e_phnum = 2 },
        .load = { .p_type = PT_LOAD, .p_vaddr = BASE, .p_filesz = sizeof(image) },
        .dynamic = { .p_type = PT_DYNAMIC,
                     .p_offset = offsetof(struct image, entries),
                     .p_vaddr = BASE + offsetof(struct image, entries),
                     .p_filesz = sizeof(image.entries) },
        .entries = { { .d_tag = DT_NEEDED, .d_un.d_val = 1 },
                     { .d_tag = DT_NEEDED, .d_un.d_val = 11 },
                     { .d_tag = DT_STRTAB, .d_un.d_ptr = BASE + offsetof(struct image, names) } },
    };

    strcpy(image.names + 1, "libc.so.6");
    strcpy(image.names + 11, library);
    return image;
}

static bool needs(const void *bytes, size_t n)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, n, file), n);
    assert_int_equal(fclose(file), 0);
    return emu_program_needs_portals(path);
}

static bool names(const char *library)
{
    struct image image = program_with(library);

    return needs(&image, sizeof(image));
}

static void test_libraries_of_both_dialects_are_portals(void **state)
{
    (void)state;
    assert_true(names("libportals.so.1"));
    assert_true(names("libportals.so"));
    assert_true(names("libp3api.so.1"));
    assert_false(names("libportals4.so.1"));
    assert_false(names("libportals.something"));
    assert_false(names("libugni.so.0"));
    assert_false(names(""));
}

static void test_libsma_is_shmem(void **state)
{
    (void)state;
    names("libsma.so.1");
    assert_true(emu_program_needs_shmem(path));
    names("libsmartcols.so.1");
    assert_false(emu_program_needs_shmem(path));
    names("libugni.so.0");
    assert_false(emu_program_needs_shmem(path));
}

static void test_other_files_are_not(void **state)
{
    struct image image = program_with("libportals.so.1");

    (void)state;
    assert_false(emu_program_needs_portals("/nowhere/at/all"));
    assert_false(emu_program_needs_portals("/tmp"));
    assert_false(needs("#!/bin/sh\nexec libportals.so\n", 29));
    image.header.e_ident[EI_CLASS] = ELFCLASS32;
    assert_false(needs(&image, sizeof(image)));
    image = program_with("libportals.so.1");
    image.load.p_type = PT_NULL; /* the names are nowhere in the file */
    assert_false(needs(&image, sizeof(image)));
    image = program_with("libportals.so.1");
    image.entries[0].d_tag = DT_NULL; /* nothing behind it counts */
    assert_false(needs(&image, sizeof(image)));
}

static void test_files_that_lie_or_end_early_are_survived(void **state)
{
    struct emu_random dice = seeded(11);
    struct image whole = program_with("libportals.so.1");

    (void)state;
    for (size_t n = 0; n < offsetof(struct image, names) + 12; n++)
        assert_false(needs(&whole, n));
    for (unsigned round = 0; round < 300; round++) {
        struct image image = whole;
        uint8_t *bytes = (uint8_t *)&image;

        for (unsigned i = 0; i < 6; i++)
            bytes[sizeof(image.header.e_ident) + emu_random_below(&dice, sizeof(image) - 16)] =
                emu_random_below(&dice, 2) ? 0xff : (uint8_t)emu_random_below(&dice, 256);
        needs(&image, sizeof(image)); /* either answer */
    }
}

static int make_file(void **state)
{
    int fd = mkstemp(path);

    (void)state;
    return fd < 0 ? -1 : close(fd);
}

static int remove_file(void **state)
{
    (void)state;
    return unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_libraries_of_both_dialects_are_portals),
        cmocka_unit_test(test_libsma_is_shmem),
        cmocka_unit_test(test_other_files_are_not),
        cmocka_unit_test(test_files_that_lie_or_end_early_are_survived),
    };

    return cmocka_run_group_tests(tests, make_file, remove_file);
}
