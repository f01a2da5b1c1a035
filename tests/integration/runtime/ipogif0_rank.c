/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One rank in a namespace of emunic-ipogif0, where it looks up every rank as libfabric's GNI provider looks up a host
 * name: address of the name, hardware address in /proc/net/arp, NIC address in its low 18 bits. Prints "rank R ok".
 */
#include <arpa/inet.h>
#include <gni_pub.h>
#include <inttypes.h>
#include <net/if.h>
#include <netdb.h>
#include <pmi.h>
#include <pmi_cray.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

/* What /proc/net/arp has for an address on ipogif0; 0 if nothing. */
static uint64_t hardware_address(const char *wanted)
{
    unsigned int h[6];
    uint64_t address = 0;
    char line[256], ip[64], device[64];
    FILE *file = fopen("/proc/net/arp", "r");

    while (file && fgets(line, sizeof(line), file)) {
        if (sscanf(line, "%63s %*s %*s %x:%x:%x:%x:%x:%x %*s %63s", ip, &h[0], &h[1], &h[2], &h[3], &h[4], &h[5],
                   device) != 8 ||
            strcmp(ip, wanted) != 0 || strcmp(device, "ipogif0") != 0)
            continue;
        for (int i = 0; i < 6; i++)
            address = address << 8 | h[i];
    }
    if (file)
        fclose(file);
    return address;
}

/* The interface's own address by SIOCGIFADDR, or none. */
static struct in_addr own_address(void)
{
    struct ifreq request = { .ifr_name = "ipogif0", .ifr_addr.sa_family = AF_INET };
    struct in_addr none = { 0 };
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    int r = ioctl(fd, SIOCGIFADDR, &request);

    close(fd);
    return r < 0 ? none : ((struct sockaddr_in *)(void *)&request.ifr_addr)->sin_addr;
}

static int look_up(int nid)
{
    struct hostent *host;
    char name[16], ip[64];
    uint64_t address;

    snprintf(name, sizeof(name), "nid%05d", nid);
    host = gethostbyname(name);
    if (!host)
        return fprintf(stderr, "%s: no address\n", name);
    inet_ntop(AF_INET, host->h_addr_list[0], ip, sizeof(ip));
    address = hardware_address(ip);
    if (address != (0x000101000000 | ((uint64_t)nid & 0x3ffff)))
        return fprintf(stderr, "%s, %s: hardware address %" PRIx64 "\n", name, ip, address);
    return 0;
}

int main(int argc, char **argv)
{
    unsigned int nic_address, cpu;
    int spawned, rank, size, nid;
    int n_wrong = 0;

    if (argc != 2 || PMI_Init(&spawned) != PMI_SUCCESS || PMI_Get_rank(&rank) != PMI_SUCCESS ||
        PMI_Get_size(&size) != PMI_SUCCESS || GNI_CdmGetNicAddress(0, &nic_address, &cpu) != GNI_RC_SUCCESS)
        return 1;
    for (int r = 0; r < size; r++) {
        if (PMI_Get_nid(r, &nid) != PMI_SUCCESS || look_up(nid) != 0)
            n_wrong++;
        else if (r == rank && (unsigned)nid != nic_address)
            n_wrong++;
    }
    if (own_address().s_addr != inet_addr(argv[1])) {
        fprintf(stderr, "ipogif0 has %s\n", inet_ntoa(own_address()));
        n_wrong++;
    }
    if (n_wrong == 0)
        printf("rank %d ok\n", rank);
    return n_wrong > 0 || PMI_Finalize() != PMI_SUCCESS;
}
