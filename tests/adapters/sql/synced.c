/* Keeps a copy of each file below WAYPOST_SYNCED_FROM as it was at its last fsync, in WAYPOST_SYNCED_TO, and one line
 * for each sync in its file "syncs". Loaded into a process by LD_PRELOAD: that folder is what a power cut would leave,
 * where the disk has written nothing of its own accord. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void note(const char *folder, const char *name) {
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/syncs", folder);
    int log = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (log < 0 || dprintf(log, "%s\n", name) < 0) abort();
    close(log);
}

static void copy(int file, const char *folder, const char *name) {
    char part[PATH_MAX], whole[PATH_MAX], block[1 << 16];
    snprintf(part, sizeof part, "%s/.%s", folder, name);
    snprintf(whole, sizeof whole, "%s/%s", folder, name);
    int to = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (to < 0) abort();
    off_t at = 0;
    for (ssize_t got; (got = pread(file, block, sizeof block, at)) > 0; at += got)
        if (write(to, block, got) != got) abort();
    close(to);
    if (rename(part, whole) != 0) abort();
}

static void keep(int file) {
    const char *from = getenv("WAYPOST_SYNCED_FROM"), *to = getenv("WAYPOST_SYNCED_TO");
    char link[64], path[PATH_MAX];
    struct stat found;
    if (from == NULL || to == NULL || fstat(file, &found) != 0 || !S_ISREG(found.st_mode)) return;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return;
    path[length] = '\0';
    size_t size = strlen(from);
    if (strncmp(path, from, size) != 0 || path[size] != '/' || strchr(path + size + 1, '/') != NULL) return;
    copy(file, to, path + size + 1);
    note(to, path + size + 1);
}

static int synced(const char *name, int file) {
    int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);
    int failed = real(file);
    if (failed == 0) keep(file);
    return failed;
}

int fsync(int file) { return synced("fsync", file); }

int fdatasync(int file) { return synced("fdatasync", file); }
