/*
 * A disk that loses power: preloaded into the server, it writes down what happens to the files
 * below one directory, with what was there before, and what a sync made safe. A killed process
 * leaves its page cache behind; with this record the test undoes what no sync had made safe, or
 * part of it, as a disk without power would (tests/src/power.rs reads it).
 *
 *   POWER_DIRECTORY   whose files
 *   POWER_RECORD      where the record goes
 *   POWER_SAVED       keeps files that were replaced or removed; a file "full" in it makes every
 *                     write fail as on a full disk
 *
 * A record is made before its change, so a change without a record never happened; only a new
 * file has no number before it is there. Syncs only wait a moment: the record says what they
 * promise.
 *
 * Which file a descriptor is, the kernel is asked each time: numbers are closed inside the C
 * library (closedir, fclose), come again for sockets and events, and have duplicates. What would
 * make the record a lie ends the process and says so.
 *
 * Folders are made and removed at once, and nothing is seen of writes through mapped memory.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

enum kind { WRITTEN = 1, RESIZED, SYNCED, CREATED, RENAMED, REMOVED, LINKED };

struct record {
    uint32_t kind;
    uint32_t reserved;
    uint64_t file;   /* inode; of the folder for changes of names */
    uint64_t offset; /* of a write; the new size; the inode of a file that got a name */
    uint64_t size;   /* of the file before */
    uint64_t before; /* bytes that follow: what was there, or the first path */
    uint64_t after;  /* bytes that follow: what came, or the second path */
};

#define SYNC_TAKES_US 400
#define BTRFS 0x9123683e
#define EXT4 0xef53

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int record_file = -1;
static unsigned saved_count;
/* Without symbolic links, and ended by a slash. */
static char directory[PATH_MAX + 2];
static char saved[PATH_MAX];
static size_t directory_length;

/* A library may be initialized, and open files, before this one. */
#define REAL(name) (real_##name ? real_##name : (find_real(), real_##name))
#define DECLARE(result, name, ...) static result (*real_##name)(__VA_ARGS__)
DECLARE(int, openat, int, const char *, int, ...);
DECLARE(ssize_t, write, int, const void *, size_t);
DECLARE(ssize_t, pwrite, int, const void *, size_t, off_t);
DECLARE(ssize_t, writev, int, const struct iovec *, int);
DECLARE(int, ftruncate, int, off_t);
DECLARE(int, fallocate, int, int, off_t, off_t);
DECLARE(int, fsync, int);
DECLARE(int, fdatasync, int);
DECLARE(int, sync_file_range, int, off_t, off_t, unsigned);
DECLARE(int, renameat, int, const char *, int, const char *);
DECLARE(int, linkat, int, const char *, int, const char *, int);
DECLARE(int, unlinkat, int, const char *, int);
DECLARE(int, fstatfs, int, struct statfs *);

static void find_real(void) {
    real_openat = dlsym(RTLD_NEXT, "openat");
    real_write = dlsym(RTLD_NEXT, "write");
    real_pwrite = dlsym(RTLD_NEXT, "pwrite");
    real_writev = dlsym(RTLD_NEXT, "writev");
    real_ftruncate = dlsym(RTLD_NEXT, "ftruncate");
    real_fallocate = dlsym(RTLD_NEXT, "fallocate");
    real_fsync = dlsym(RTLD_NEXT, "fsync");
    real_fdatasync = dlsym(RTLD_NEXT, "fdatasync");
    real_sync_file_range = dlsym(RTLD_NEXT, "sync_file_range");
    real_renameat = dlsym(RTLD_NEXT, "renameat");
    real_linkat = dlsym(RTLD_NEXT, "linkat");
    real_unlinkat = dlsym(RTLD_NEXT, "unlinkat");
    real_fstatfs = dlsym(RTLD_NEXT, "fstatfs");
}

__attribute__((noreturn)) static void give_up(const char *what) {
    dprintf(STDERR_FILENO, "the disk that loses power: could not %s: %s\n", what, strerror(errno));
    abort();
}

/* A path from the root, of which no folder is a symbolic link; 0 if its folder is not there. */
static int resolve(int folder, const char *path, char *resolved) {
    char whole[2 * PATH_MAX] = "", parent[PATH_MAX];
    if (path[0] != '/') {
        char link[64];
        if (folder == AT_FDCWD) snprintf(link, sizeof link, "/proc/self/cwd");
        else snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
        ssize_t length = readlink(link, whole, PATH_MAX - 1);
        if (length < 0) return 0;
        whole[length] = '/';
        whole[length + 1] = 0;
    }
    size_t begun = strlen(whole);
    snprintf(whole + begun, sizeof whole - begun, "%s", path);
    for (size_t length = strlen(whole); length > 1 && whole[length - 1] == '/'; length--) whole[length - 1] = 0;
    char *name = strrchr(whole, '/');
    *name++ = 0;
    if (!realpath(whole[0] ? whole : "/", parent)) return 0;
    return snprintf(resolved, PATH_MAX, "%s/%s", strcmp(parent, "/") == 0 ? "" : parent, name) < PATH_MAX;
}

__attribute__((constructor)) static void begin(void) {
    const char *where = getenv("POWER_DIRECTORY"), *record = getenv("POWER_RECORD"), *keep = getenv("POWER_SAVED");
    char resolved[PATH_MAX];
    if (!where || !record || !keep) return;
    if (!resolve(AT_FDCWD, where, resolved)) give_up("find the folder of POWER_DIRECTORY");
    directory_length = (size_t)snprintf(directory, sizeof directory, "%s/", resolved);
    snprintf(saved, sizeof saved, "%s", keep);
    record_file = REAL(openat)(AT_FDCWD, record, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (record_file < 0) give_up("open POWER_RECORD");
}

/* Whether a path leads below the directory, and which that is. */
static int is_ours(int folder, const char *path, char *resolved) {
    return record_file >= 0 && resolve(folder, path, resolved) && strncmp(resolved, directory, directory_length) == 0;
}

/* Whether a descriptor is a file or folder of ours. One without a name any more still is. */
static int is_tracked(int file, struct stat *status) {
    if (record_file < 0 || fstat(file, status) != 0) return 0;
    if (!S_ISREG(status->st_mode) && !S_ISDIR(status->st_mode)) return 0;
    char link[64], path[PATH_MAX + 1];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, PATH_MAX - 1);
    if (length < 0) give_up("ask which file a descriptor is");
    if (S_ISDIR(status->st_mode)) path[length++] = '/';
    return (size_t)length >= directory_length && memcmp(path, directory, directory_length) == 0;
}

static int disk_is_full(void) {
    char path[PATH_MAX + 8];
    snprintf(path, sizeof path, "%s/full", saved);
    return access(path, F_OK) == 0;
}

/* All of it or the end of the process: a record cut short would be a lie. */
static void put(const void *bytes, size_t length) {
    const char *at = bytes;
    while (length > 0) {
        ssize_t wrote = REAL(write)(record_file, at, length);
        if (wrote < 0 && errno == EINTR) continue;
        if (wrote <= 0) give_up("write the record");
        at += wrote;
        length -= (size_t)wrote;
    }
}

static void note(struct record record, const void *before, const void *after) {
    put(&record, sizeof record);
    put(before, record.before);
    put(after, record.after);
}

/* 0 if there is no such file. */
static ino_t inode_of(const char *path) {
    struct stat status;
    return lstat(path, &status) == 0 ? status.st_ino : 0;
}

static ino_t folder_of(const char *path) {
    char folder[PATH_MAX];
    snprintf(folder, sizeof folder, "%s", path);
    char *end = strrchr(folder, '/');
    if (end) *end = 0;
    return inode_of(folder);
}

/* A second name for a file that loses its own, so that it can be brought back, and so that its
 * inode is not given to another file as long as this record lasts. */
static void save(const char *path, char *name, size_t size) {
    snprintf(name, size, "%s/%u-%d", saved, saved_count++, (int)getpid());
    if (REAL(linkat)(AT_FDCWD, path, AT_FDCWD, name, 0) != 0) give_up("keep a file that is replaced or removed");
}

static void note_names(enum kind kind, ino_t folder, ino_t file, const char *first, const char *second) {
    struct record record = {.kind = kind, .file = folder, .offset = file, .before = strlen(first), .after = strlen(second)};
    note(record, first, second);
}

/* What a change of the bytes from `offset` finds there. */
static void note_bytes(enum kind kind, int file, const struct stat *status, off_t offset, size_t length, const void *after, size_t after_length) {
    size_t there = status->st_size > offset ? (size_t)(status->st_size - offset) : 0;
    if (kind == WRITTEN && there > length) there = length;
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    char *before = malloc(there ? there : 1);
    if (!before) give_up("find memory for what a write replaces");
    /* The descriptor may be open for writing only. */
    int reader = there ? REAL(openat)(AT_FDCWD, path, O_RDONLY | O_CLOEXEC) : -1;
    if (there && reader < 0) give_up("open what a write replaces");
    for (size_t got = 0; got < there;) {
        ssize_t more = pread(reader, before + got, there - got, offset + (off_t)got);
        if (more < 0 && errno == EINTR) continue;
        if (more <= 0) give_up("read what a write replaces");
        got += (size_t)more;
    }
    if (reader >= 0) close(reader);
    struct record record = {.kind = kind, .file = status->st_ino, .offset = (uint64_t)offset, .size = (uint64_t)status->st_size, .before = there, .after = after_length};
    note(record, before, after);
    free(before);
}

static int open_tracked(int folder, const char *path, int flags, mode_t mode) {
    int changes = flags & (O_CREAT | O_TRUNC);
    char resolved[PATH_MAX];
    if ((flags & O_TMPFILE) == O_TMPFILE && is_ours(folder, path, resolved)) {
        /* Such a file gets its name behind our back. */
        errno = EOPNOTSUPP;
        return -1;
    }
    if (!changes || !is_ours(folder, path, resolved)) return REAL(openat)(folder, path, flags, mode);
    pthread_mutex_lock(&lock);
    int was_there = inode_of(resolved) != 0;
    int file = REAL(openat)(folder, path, flags & ~O_TRUNC, mode);
    struct stat status;
    if (file >= 0) {
        if (fstat(file, &status) != 0) give_up("look at a file that was opened");
        if (!was_there) note_names(CREATED, folder_of(resolved), status.st_ino, resolved, "");
        if ((flags & O_TRUNC) && S_ISREG(status.st_mode) && status.st_size > 0) {
            note_bytes(RESIZED, file, &status, 0, 0, "", 0);
            if (REAL(ftruncate)(file, 0) != 0) give_up("empty a file");
        }
    }
    pthread_mutex_unlock(&lock);
    return file;
}

#define OPENED(folder, path, flags) \
    mode_t mode = 0; \
    if (((flags) & O_CREAT) || ((flags) & O_TMPFILE) == O_TMPFILE) { \
        va_list rest; \
        va_start(rest, flags); \
        mode = va_arg(rest, mode_t); \
        va_end(rest); \
    } \
    return open_tracked(folder, path, flags, mode)

int open(const char *path, int flags, ...) { OPENED(AT_FDCWD, path, flags); }
int open64(const char *path, int flags, ...) { OPENED(AT_FDCWD, path, flags); }
int openat(int folder, const char *path, int flags, ...) { OPENED(folder, path, flags); }
int openat64(int folder, const char *path, int flags, ...) { OPENED(folder, path, flags); }
int creat(const char *path, mode_t mode) { return open_tracked(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode); }
int creat64(const char *path, mode_t mode) { return creat(path, mode); }

/* At a place, or where the descriptor stands: -1. */
static ssize_t write_tracked(int file, const void *bytes, size_t length, off_t place) {
    pthread_mutex_lock(&lock);
    ssize_t wrote = -1;
    struct stat status;
    if (disk_is_full()) {
        errno = ENOSPC;
    } else if (fstat(file, &status) == 0) {
        /* The kernel takes no place where a file is appended to. */
        int appends = fcntl(file, F_GETFL) & O_APPEND;
        off_t at = appends ? status.st_size : place >= 0 ? place : lseek(file, 0, SEEK_CUR);
        note_bytes(WRITTEN, file, &status, at, length, bytes, length);
        wrote = place >= 0 ? REAL(pwrite)(file, bytes, length, place) : REAL(write)(file, bytes, length);
        if (wrote != (ssize_t)length) give_up("write all of what is recorded");
    }
    pthread_mutex_unlock(&lock);
    return wrote;
}

ssize_t write(int file, const void *bytes, size_t length) {
    struct stat status;
    return is_tracked(file, &status) ? write_tracked(file, bytes, length, -1) : REAL(write)(file, bytes, length);
}

ssize_t pwrite(int file, const void *bytes, size_t length, off_t offset) {
    struct stat status;
    return is_tracked(file, &status) ? write_tracked(file, bytes, length, offset) : REAL(pwrite)(file, bytes, length, offset);
}

ssize_t pwrite64(int file, const void *bytes, size_t length, off_t offset) { return pwrite(file, bytes, length, offset); }

/* One part at a time: callers go on where a short write ended. */
ssize_t writev(int file, const struct iovec *parts, int count) {
    struct stat status;
    if (!is_tracked(file, &status)) return REAL(writev)(file, parts, count);
    for (int part = 0; part < count; part++)
        if (parts[part].iov_len > 0) return write_tracked(file, parts[part].iov_base, parts[part].iov_len, -1);
    return 0;
}

/* Copies in the kernel are refused, and callers read and write. */
ssize_t copy_file_range(int from, off64_t *from_offset, int to, off64_t *to_offset, size_t length, unsigned flags) {
    static ssize_t (*real)(int, off64_t *, int, off64_t *, size_t, unsigned);
    struct stat status;
    if (is_tracked(to, &status)) {
        errno = EXDEV;
        return -1;
    }
    if (!real) real = dlsym(RTLD_NEXT, "copy_file_range");
    return real(from, from_offset, to, to_offset, length, flags);
}

int ftruncate(int file, off_t size) {
    struct stat status;
    if (!is_tracked(file, &status)) return REAL(ftruncate)(file, size);
    pthread_mutex_lock(&lock);
    if (fstat(file, &status) != 0) give_up("look at a file that is cut");
    note_bytes(RESIZED, file, &status, size, 0, "", 0);
    int done = REAL(ftruncate)(file, size);
    if (done != 0) give_up("cut what is recorded as cut");
    pthread_mutex_unlock(&lock);
    return done;
}

int ftruncate64(int file, off_t size) { return ftruncate(file, size); }

int fallocate(int file, int mode, off_t offset, off_t length) {
    struct stat status;
    if (!is_tracked(file, &status)) return REAL(fallocate)(file, mode, offset, length);
    if (disk_is_full()) {
        errno = ENOSPC;
        return -1;
    }
    /* Reserving changes no byte; anything more is refused, and callers do without. */
    if (mode == FALLOC_FL_KEEP_SIZE) return REAL(fallocate)(file, mode, offset, length);
    errno = EOPNOTSUPP;
    return -1;
}

int fallocate64(int file, int mode, off_t offset, off_t length) { return fallocate(file, mode, offset, length); }

static int sync_tracked(const struct stat *status) {
    struct stat end;
    /* What is recorded now is safe when the sync returns; what comes meanwhile is not. */
    pthread_mutex_lock(&lock);
    if (fstat(record_file, &end) != 0) give_up("look at the record");
    pthread_mutex_unlock(&lock);
    usleep(SYNC_TAKES_US);
    pthread_mutex_lock(&lock);
    struct record record = {.kind = SYNCED, .file = status->st_ino, .offset = (uint64_t)end.st_size};
    note(record, "", "");
    pthread_mutex_unlock(&lock);
    return 0;
}

int fsync(int file) {
    struct stat status;
    return is_tracked(file, &status) ? sync_tracked(&status) : REAL(fsync)(file);
}

int fdatasync(int file) {
    struct stat status;
    return is_tracked(file, &status) ? sync_tracked(&status) : REAL(fdatasync)(file);
}

/* It starts the writing and promises nothing. */
int sync_file_range(int file, off_t offset, off_t length, unsigned flags) {
    struct stat status;
    return is_tracked(file, &status) ? 0 : REAL(sync_file_range)(file, offset, length, flags);
}

/* RocksDB syncs fewer folders on btrfs, where a sync of a file makes its name safe. Here it does
 * not, whatever the disk below. */
int fstatfs(int file, struct statfs *found) {
    int done = REAL(fstatfs)(file, found);
    if (done == 0 && (unsigned long)found->f_type == BTRFS) found->f_type = EXT4;
    return done;
}

int renameat(int from_folder, const char *from, int to_folder, const char *to) {
    char first[PATH_MAX], second[PATH_MAX];
    if (!is_ours(from_folder, from, first) || !resolve(to_folder, to, second))
        return REAL(renameat)(from_folder, from, to_folder, to);
    pthread_mutex_lock(&lock);
    char names[2 * PATH_MAX + 64], kept[PATH_MAX + 32] = "";
    ino_t file = inode_of(first);
    if (inode_of(second) != 0 && inode_of(second) != file) save(second, kept, sizeof kept);
    snprintf(names, sizeof names, "%s\n%s", second, kept);
    note_names(RENAMED, folder_of(second), file, first, names);
    int done = REAL(renameat)(from_folder, from, to_folder, to);
    pthread_mutex_unlock(&lock);
    return done;
}

int rename(const char *from, const char *to) { return renameat(AT_FDCWD, from, AT_FDCWD, to); }

int renameat2(int from_folder, const char *from, int to_folder, const char *to, unsigned flags) {
    /* RENAME_NOREPLACE and the like; callers do without. */
    if (flags != 0) {
        errno = EINVAL;
        return -1;
    }
    return renameat(from_folder, from, to_folder, to);
}

int linkat(int from_folder, const char *from, int to_folder, const char *to, int flags) {
    char first[PATH_MAX], second[PATH_MAX];
    if (!is_ours(to_folder, to, second) || !resolve(from_folder, from, first) || inode_of(first) == 0 || inode_of(second) != 0)
        return REAL(linkat)(from_folder, from, to_folder, to, flags);
    pthread_mutex_lock(&lock);
    note_names(LINKED, folder_of(second), inode_of(first), second, "");
    int done = REAL(linkat)(from_folder, from, to_folder, to, flags);
    pthread_mutex_unlock(&lock);
    return done;
}

int link(const char *from, const char *to) { return linkat(AT_FDCWD, from, AT_FDCWD, to, 0); }

int unlinkat(int folder, const char *path, int flags) {
    char resolved[PATH_MAX], kept[PATH_MAX + 32];
    struct stat status;
    if ((flags & AT_REMOVEDIR) || !is_ours(folder, path, resolved) || lstat(resolved, &status) != 0 || S_ISDIR(status.st_mode))
        return REAL(unlinkat)(folder, path, flags);
    pthread_mutex_lock(&lock);
    save(resolved, kept, sizeof kept);
    note_names(REMOVED, folder_of(resolved), status.st_ino, resolved, kept);
    int done = REAL(unlinkat)(folder, path, flags);
    pthread_mutex_unlock(&lock);
    return done;
}

int unlink(const char *path) { return unlinkat(AT_FDCWD, path, 0); }
