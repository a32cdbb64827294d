#include "server/base/relation_file.hpp"

namespace idem {

int64_t FileBytes(Oid tablespace, Oid file) {
    if (file == InvalidOid) return 0;
    char first[MAXPGPATH];
    PathOfMainFork(tablespace != InvalidOid ? tablespace : MyDatabaseTableSpace, file, first, sizeof(first));
    constexpr int64_t kSegment = INT64CONST(1) * RELSEG_SIZE * BLCKSZ;
    int64_t bytes = 0;
    for (int segment = 0;; segment++) {
        char path[MAXPGPATH + 16];
        if (segment == 0)
            strlcpy(path, first, sizeof(path));
        else
            snprintf(path, sizeof(path), "%s.%d", first, segment);
        struct stat status;
        if (stat(path, &status) != 0) return bytes;
        bytes += status.st_size;
        if (status.st_size < kSegment) return bytes;
    }
}

}  // namespace idem
