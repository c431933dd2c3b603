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
 * A record is made before its change, so a change without a record never happened. Syncs only
 * wait a moment: the record says what they promise.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum kind { WRITTEN = 1, RESIZED, SYNCED, CREATED, RENAMED, REMOVED };

struct record {
    uint32_t kind;
    uint32_t reserved;
    uint64_t file;   /* inode; of the folder for changes of names */
    uint64_t offset; /* of a write; the new size; the inode of a created file */
    uint64_t size;   /* of the file before */
    uint64_t before; /* bytes that follow: what was there, or the first path */
    uint64_t after;  /* bytes that follow: what came, or the second path */
};

#define DESCRIPTORS 65536
#define SYNC_TAKES_US 400

static struct { dev_t disk; ino_t file; char tracked; } open_files[DESCRIPTORS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int record_file = -1;
static unsigned saved_count;
static char directory[4096], saved[4096];
static size_t directory_length;

#define REAL(name) real_##name
#define DECLARE(result, name, ...) static result (*REAL(name))(__VA_ARGS__)
DECLARE(int, openat, int, const char *, int, ...);
DECLARE(ssize_t, write, int, const void *, size_t);
DECLARE(ssize_t, pwrite, int, const void *, size_t, off_t);
DECLARE(int, ftruncate, int, off_t);
DECLARE(int, fallocate, int, int, off_t, off_t);
DECLARE(int, fsync, int);
DECLARE(int, fdatasync, int);
DECLARE(int, sync_file_range, int, off_t, off_t, unsigned);
DECLARE(int, rename, const char *, const char *);
DECLARE(int, unlink, const char *);
DECLARE(int, close, int);

__attribute__((constructor)) static void begin(void) {
    REAL(openat) = dlsym(RTLD_NEXT, "openat");
    REAL(write) = dlsym(RTLD_NEXT, "write");
    REAL(pwrite) = dlsym(RTLD_NEXT, "pwrite");
    REAL(ftruncate) = dlsym(RTLD_NEXT, "ftruncate");
    REAL(fallocate) = dlsym(RTLD_NEXT, "fallocate");
    REAL(fsync) = dlsym(RTLD_NEXT, "fsync");
    REAL(fdatasync) = dlsym(RTLD_NEXT, "fdatasync");
    REAL(sync_file_range) = dlsym(RTLD_NEXT, "sync_file_range");
    REAL(rename) = dlsym(RTLD_NEXT, "rename");
    REAL(unlink) = dlsym(RTLD_NEXT, "unlink");
    REAL(close) = dlsym(RTLD_NEXT, "close");
    const char *where = getenv("POWER_DIRECTORY"), *record = getenv("POWER_RECORD"), *keep = getenv("POWER_SAVED");
    if (!where || !record || !keep) return;
    snprintf(saved, sizeof saved, "%s", keep);
    record_file = REAL(openat)(AT_FDCWD, record, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    directory_length = (size_t)snprintf(directory, sizeof directory, "%s/", where);
}

static int is_ours(const char *path) {
    return record_file >= 0 && strncmp(path, directory, directory_length) == 0;
}

static void track(int file, const struct stat *status) {
    open_files[file].disk = status->st_dev;
    open_files[file].file = status->st_ino;
    open_files[file].tracked = 1;
}

/* The C library closes some descriptors without calling `close` (closedir, fclose), and their
 * numbers come again for sockets and events: a number alone does not say which file it is. */
static int is_tracked(int file) {
    if (record_file < 0 || file < 0 || file >= DESCRIPTORS || !open_files[file].tracked) return 0;
    struct stat status;
    if (fstat(file, &status) == 0 && status.st_dev == open_files[file].disk && status.st_ino == open_files[file].file) return 1;
    open_files[file].tracked = 0;
    return 0;
}

static int disk_is_full(void) {
    char path[4200];
    snprintf(path, sizeof path, "%s/full", saved);
    return access(path, F_OK) == 0;
}

/* All of it or the end of the process: a record cut short would be a lie. */
static void put(const void *bytes, size_t length) {
    const char *at = bytes;
    while (length > 0) {
        ssize_t wrote = REAL(write)(record_file, at, length);
        if (wrote < 0 && errno == EINTR) continue;
        if (wrote <= 0) abort();
        at += wrote;
        length -= (size_t)wrote;
    }
}

static void note(struct record record, const void *before, const void *after) {
    put(&record, sizeof record);
    put(before, record.before);
    put(after, record.after);
}

static ino_t inode_of(const char *path) {
    struct stat status;
    return stat(path, &status) == 0 ? status.st_ino : 0;
}

static ino_t folder_of(const char *path) {
    char folder[4096];
    snprintf(folder, sizeof folder, "%s", path);
    char *end = strrchr(folder, '/');
    if (end) *end = 0;
    return inode_of(folder);
}

/* A second name for a file that loses its own, so that it can be brought back. */
static void save(const char *path, char *name, size_t size) {
    snprintf(name, size, "%s/%u-%d", saved, saved_count++, (int)getpid());
    if (link(path, name) != 0) name[0] = 0;
}

static void note_names(enum kind kind, ino_t folder, ino_t file, const char *first, const char *second) {
    struct record record = {.kind = kind, .file = folder, .offset = file, .before = strlen(first), .after = strlen(second)};
    note(record, first, second);
}

/* What a change of the bytes from `offset` finds there. */
static void note_bytes(enum kind kind, int file, off_t offset, size_t length, const void *after, size_t after_length) {
    struct stat status;
    if (fstat(file, &status) != 0) abort();
    size_t there = status.st_size > offset ? (size_t)(status.st_size - offset) : 0;
    if (kind == WRITTEN && there > length) there = length;
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    char *before = malloc(there ? there : 1);
    /* The descriptor may be open for writing only. */
    int reader = there ? REAL(openat)(AT_FDCWD, path, O_RDONLY | O_CLOEXEC) : -1;
    if (there && (reader < 0 || pread(reader, before, there, offset) != (ssize_t)there)) abort();
    if (reader >= 0) REAL(close)(reader);
    struct record record = {.kind = kind, .file = status.st_ino, .offset = (uint64_t)offset, .size = (uint64_t)status.st_size, .before = there, .after = after_length};
    note(record, before, after);
    free(before);
}

static int open_tracked(int folder, const char *path, int flags, mode_t mode) {
    int only_read = !(flags & (O_DIRECTORY | O_CREAT)) && (flags & O_ACCMODE) == O_RDONLY;
    if (!is_ours(path) || only_read) {
        int file = REAL(openat)(folder, path, flags, mode);
        /* Folders are opened for reading, and synced. */
        struct stat status;
        if (file >= 0 && file < DESCRIPTORS && record_file >= 0) {
            open_files[file].tracked = 0;
            if (strncmp(path, directory, directory_length - 1) == 0 && fstat(file, &status) == 0 && S_ISDIR(status.st_mode)) track(file, &status);
        }
        return file;
    }
    pthread_mutex_lock(&lock);
    int was_there = access(path, F_OK) == 0;
    int file = REAL(openat)(folder, path, flags & ~O_TRUNC, mode);
    if (file >= 0 && file < DESCRIPTORS) {
        struct stat status;
        if (fstat(file, &status) != 0) abort();
        track(file, &status);
        if (!was_there) note_names(CREATED, folder_of(path), status.st_ino, path, "");
        if ((flags & O_TRUNC) && status.st_size > 0) {
            note_bytes(RESIZED, file, 0, 0, "", 0);
            if (REAL(ftruncate)(file, 0) != 0) abort();
        }
    }
    pthread_mutex_unlock(&lock);
    return file;
}

#define OPENED(folder, path, flags) \
    mode_t mode = 0; \
    if ((flags) & (O_CREAT | O_TMPFILE)) { va_list rest; va_start(rest, flags); mode = va_arg(rest, mode_t); va_end(rest); } \
    return open_tracked(folder, path, flags, mode)

int open(const char *path, int flags, ...) { OPENED(AT_FDCWD, path, flags); }
int open64(const char *path, int flags, ...) { OPENED(AT_FDCWD, path, flags); }
int openat(int folder, const char *path, int flags, ...) { OPENED(folder, path, flags); }
int openat64(int folder, const char *path, int flags, ...) { OPENED(folder, path, flags); }

int close(int file) {
    if (file >= 0 && file < DESCRIPTORS) open_files[file].tracked = 0;
    return REAL(close)(file);
}

static ssize_t write_tracked(int file, const void *bytes, size_t length, off_t offset) {
    pthread_mutex_lock(&lock);
    ssize_t wrote;
    if (disk_is_full()) {
        errno = ENOSPC;
        wrote = -1;
    } else {
        note_bytes(WRITTEN, file, offset, length, bytes, length);
        wrote = REAL(pwrite)(file, bytes, length, offset);
    }
    pthread_mutex_unlock(&lock);
    return wrote;
}

ssize_t write(int file, const void *bytes, size_t length) {
    if (!is_tracked(file)) return REAL(write)(file, bytes, length);
    struct stat status;
    int appends = fcntl(file, F_GETFL) & O_APPEND;
    if (fstat(file, &status) != 0) abort();
    off_t at = appends ? status.st_size : lseek(file, 0, SEEK_CUR);
    ssize_t wrote = write_tracked(file, bytes, length, at);
    if (wrote > 0 && !appends) lseek(file, at + wrote, SEEK_SET);
    return wrote;
}

ssize_t pwrite(int file, const void *bytes, size_t length, off_t offset) {
    return is_tracked(file) ? write_tracked(file, bytes, length, offset) : REAL(pwrite)(file, bytes, length, offset);
}

ssize_t pwrite64(int file, const void *bytes, size_t length, off_t offset) { return pwrite(file, bytes, length, offset); }

/* One part at a time: callers go on where a short write ended. */
ssize_t writev(int file, const struct iovec *parts, int count) {
    if (!is_tracked(file)) {
        static ssize_t (*REAL(writev))(int, const struct iovec *, int);
        if (!REAL(writev)) REAL(writev) = dlsym(RTLD_NEXT, "writev");
        return REAL(writev)(file, parts, count);
    }
    for (int part = 0; part < count; part++)
        if (parts[part].iov_len > 0) return write(file, parts[part].iov_base, parts[part].iov_len);
    return 0;
}

int ftruncate(int file, off_t size) {
    if (!is_tracked(file)) return REAL(ftruncate)(file, size);
    pthread_mutex_lock(&lock);
    note_bytes(RESIZED, file, size, 0, "", 0);
    int done = REAL(ftruncate)(file, size);
    pthread_mutex_unlock(&lock);
    return done;
}

int ftruncate64(int file, off_t size) { return ftruncate(file, size); }

int fallocate(int file, int mode, off_t offset, off_t length) {
    if (!is_tracked(file)) return REAL(fallocate)(file, mode, offset, length);
    if (disk_is_full()) {
        errno = ENOSPC;
        return -1;
    }
    /* Reserving changes no byte; anything more is refused, and callers do without. */
    if (mode & FALLOC_FL_KEEP_SIZE && !(mode & ~FALLOC_FL_KEEP_SIZE)) return REAL(fallocate)(file, mode, offset, length);
    errno = EOPNOTSUPP;
    return -1;
}

int fallocate64(int file, int mode, off_t offset, off_t length) { return fallocate(file, mode, offset, length); }

static int sync_tracked(int file) {
    struct stat end;
    /* What is recorded now is safe when the sync returns; what comes meanwhile is not. */
    pthread_mutex_lock(&lock);
    if (fstat(record_file, &end) != 0) abort();
    pthread_mutex_unlock(&lock);
    usleep(SYNC_TAKES_US);
    pthread_mutex_lock(&lock);
    struct record record = {.kind = SYNCED, .file = open_files[file].file, .offset = (uint64_t)end.st_size};
    note(record, "", "");
    pthread_mutex_unlock(&lock);
    return 0;
}

int fsync(int file) { return is_tracked(file) ? sync_tracked(file) : REAL(fsync)(file); }
int fdatasync(int file) { return is_tracked(file) ? sync_tracked(file) : REAL(fdatasync)(file); }

/* It starts the writing and promises nothing. */
int sync_file_range(int file, off_t offset, off_t length, unsigned flags) {
    return is_tracked(file) ? 0 : REAL(sync_file_range)(file, offset, length, flags);
}

int rename(const char *from, const char *to) {
    if (!is_ours(from)) return REAL(rename)(from, to);
    pthread_mutex_lock(&lock);
    char names[8300], kept[4200] = "";
    ino_t file = inode_of(from);
    if (access(to, F_OK) == 0) save(to, kept, sizeof kept);
    snprintf(names, sizeof names, "%s\n%s", to, kept);
    note_names(RENAMED, folder_of(to), file, from, names);
    int done = REAL(rename)(from, to);
    pthread_mutex_unlock(&lock);
    return done;
}

int unlink(const char *path) {
    if (!is_ours(path)) return REAL(unlink)(path);
    pthread_mutex_lock(&lock);
    char kept[4200];
    ino_t file = inode_of(path);
    save(path, kept, sizeof kept);
    note_names(REMOVED, folder_of(path), file, path, kept);
    int done = REAL(unlink)(path);
    pthread_mutex_unlock(&lock);
    return done;
}
