/* What a follower must do, in C: receive batches, check each one's CRC-32C, write them to a file.
 *     follower PORT FILE      connects to 127.0.0.1:PORT, reads until the end; prints CPU seconds, bytes, batches
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <nmmintrin.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum { OVERHEAD = 12, CRC_AT = 17, CHECKED_AT = 21, ROOM = 1 << 20 };

static unsigned char buffer[2 * ROOM];

static uint32_t big_endian(const unsigned char *at) {
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static uint32_t crc32c(const unsigned char *at, size_t size) {
    uint64_t crc = 0xffffffff, word;
    for (; size >= 8; at += 8, size -= 8) {
        memcpy(&word, at, 8);
        crc = _mm_crc32_u64(crc, word);
    }
    while (size--) crc = _mm_crc32_u8((uint32_t)crc, *at++);
    return (uint32_t)crc ^ 0xffffffff;
}

static void fail(const char *what) {
    perror(what);
    exit(1);
}

int main(int count, char **words) {
    if (count != 3) return 2;
    struct sockaddr_in peer = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(words[1]))};
    peer.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int link = socket(AF_INET, SOCK_STREAM, 0), file = open(words[2], O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (file < 0) fail("open");
    if (connect(link, (struct sockaddr *)&peer, sizeof peer)) fail("connect");
    size_t held = 0;
    long total = 0, batches = 0;
    for (ssize_t got; (got = recv(link, buffer + held, sizeof buffer - held, 0)) != 0;) {
        if (got < 0) fail("recv");
        size_t end = held + (size_t)got, whole = 0;
        while (end - whole >= CHECKED_AT) {
            size_t size = OVERHEAD + big_endian(buffer + whole + 8);
            if (size < CHECKED_AT || size > ROOM) fail("size");
            if (size > end - whole) break;
            if (crc32c(buffer + whole + CHECKED_AT, size - CHECKED_AT) != big_endian(buffer + whole + CRC_AT)) fail("CRC");
            whole += size;
            batches++;
        }
        if (whole && write(file, buffer, whole) != (ssize_t)whole) fail("write");
        memmove(buffer, buffer + whole, held = end - whole);
        total += (long)whole;
    }
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    printf("%.6f %ld %ld\n", (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
           (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6, total, batches);
    return held != 0;
}
