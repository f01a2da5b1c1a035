/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Looking into a program file: which libraries its dynamic section names (DT_NEEDED of a 64-bit ELF).
 *
 * The file is a stranger's: everything is read with pread(), a few bytes at a time, and what does not fit is an answer
 * of "no". Static programs and libraries behind libraries are not looked into, and scripts only for the word that a
 * Python program which uses MPI cannot do without.
 */
#include "emunic/cli/program.h"

#include <elf.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#define SEGMENTS_MAX 256u
#define ENTRIES_MAX  4096u
#define SCRIPT_BYTES 65536u
#define PYTHON_MPI   "mpi4py"

static bool read_at(int fd, uint64_t offset, void *bytes, size_t n)
{
    return offset <= INT64_MAX && pread(fd, bytes, n, (off_t)offset) == (ssize_t)n;
}

static bool read_header(int fd, Elf64_Ehdr *header)
{
    return read_at(fd, 0, header, sizeof(*header)) && memcmp(header->e_ident, ELFMAG, SELFMAG) == 0 &&
           header->e_ident[EI_CLASS] == ELFCLASS64 && header->e_ident[EI_DATA] == ELFDATA2LSB &&
           header->e_phentsize == sizeof(Elf64_Phdr) && header->e_phnum <= SEGMENTS_MAX;
}

/* The first segment of a type, or the one with an address in the file. */
static bool find_segment(int fd, const Elf64_Ehdr *header, uint32_t type, uint64_t address, Elf64_Phdr *found)
{
    for (uint32_t i = 0; i < header->e_phnum; i++) {
        if (!read_at(fd, header->e_phoff + i * sizeof(*found), found, sizeof(*found)))
            return false;
        if (found->p_type == type &&
            (type != PT_LOAD || (address >= found->p_vaddr && address - found->p_vaddr < found->p_filesz)))
            return true;
    }
    return false;
}

static bool is_one_of(int fd, uint64_t offset, const char *const *names)
{
    char name[32] = { 0 };

    if (offset > INT64_MAX || pread(fd, name, sizeof(name) - 1, (off_t)offset) <= 0)
        return false;
    for (size_t i = 0; names[i]; i++) {
        size_t len = strlen(names[i]);

        if (strncmp(name, names[i], len) == 0 && (name[len] == '\0' || name[len] == '.'))
            return true;
    }
    return false;
}

/* Entry i of the dynamic section; false: behind its end. */
static bool read_entry(int fd, const Elf64_Phdr *dynamic, uint32_t i, Elf64_Dyn *entry)
{
    return i < ENTRIES_MAX && (i + 1) * sizeof(*entry) <= dynamic->p_filesz &&
           read_at(fd, dynamic->p_offset + i * sizeof(*entry), entry, sizeof(*entry)) && entry->d_tag != DT_NULL;
}

static bool needs_any(int fd, const char *const *names)
{
    Elf64_Phdr dynamic, load;
    Elf64_Ehdr header;
    Elf64_Dyn entry;
    uint64_t strings = 0;

    if (!read_header(fd, &header) || !find_segment(fd, &header, PT_DYNAMIC, 0, &dynamic))
        return false;
    for (uint32_t i = 0; read_entry(fd, &dynamic, i, &entry); i++) {
        if (entry.d_tag == DT_STRTAB)
            strings = entry.d_un.d_ptr;
    }
    if (!find_segment(fd, &header, PT_LOAD, strings, &load))
        return false;
    strings = strings - load.p_vaddr + load.p_offset;
    for (uint32_t i = 0; read_entry(fd, &dynamic, i, &entry); i++) {
        if (entry.d_tag == DT_NEEDED && is_one_of(fd, strings + entry.d_un.d_val, names))
            return true;
    }
    return false;
}

static bool names_any(const char *path, const char *const *names)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    bool needs = fd >= 0 && needs_any(fd, names);

    if (fd >= 0)
        close(fd);
    return needs;
}

bool emu_program_needs_portals(const char *path)
{
    static const char *const names[] = { "libportals.so", "libp3api.so", NULL };

    return names_any(path, names);
}

bool emu_program_needs_shmem(const char *path)
{
    static const char *const names[] = { "libsma.so", NULL };

    return names_any(path, names);
}

/* ---- MPI ---- */

static bool has_word(const char *path)
{
    char text[SCRIPT_BYTES];
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t n = fd >= 0 ? pread(fd, text, sizeof(text), 0) : -1;

    if (fd >= 0)
        close(fd);
    return n > 0 && memmem(text, (size_t)n, PYTHON_MPI, strlen(PYTHON_MPI));
}

/* python [-m MODULE | -c TEXT | SCRIPT]: options with a value of their own are not known. */
static bool is_python_of_mpi(const char *path, char *const *words)
{
    const char *name = strrchr(path, '/');

    name = name ? name + 1 : path;
    if (strncmp(name, "python", strlen("python")) != 0)
        return false;
    for (; *words; words++) {
        bool is_text = strcmp(*words, "-m") == 0 || strcmp(*words, "-c") == 0;

        if (is_text && words[1])
            return strstr(words[1], PYTHON_MPI);
        if ((*words)[0] != '-')
            return has_word(*words);
    }
    return false;
}

bool emu_program_is_mpi(const char *path, char *const *words)
{
    static const char *const mpi[] = {
        "libmpi.so", "libmpi_mpifh.so", "libmpi_usempif08.so", "libmpi_cxx.so", "libmpi_usempi_ignore_tkr.so", NULL
    };
    static const char *const ours[] = { "libportals.so", "libp3api.so", "libugni.so", "libdmapp.so", NULL };

    return (names_any(path, mpi) && !names_any(path, ours)) || is_python_of_mpi(path, words);
}
