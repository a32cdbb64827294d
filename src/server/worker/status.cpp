#include "server/worker/status.hpp"

#include "server/base/settings.hpp"
#include "server/ring/progress.hpp"

namespace idem {
namespace {

constexpr int kMostDatabases = 256;

struct Passes {
    PassStatus of[kMostDatabases];
};

Passes *passes = nullptr;
LWLock *lock = nullptr;

// Calls use() with the status locked. It must neither raise nor wait.
template <class F>
void Locked(LWLockMode mode, F use) {
    LWLockAcquire(lock, mode);
    use();
    LWLockRelease(lock);
}

// The database's entry; where it has none, a free one or the one that was not used for longest.
PassStatus *EntryOf(Oid database) {
    PassStatus *oldest = &passes->of[0];
    for (PassStatus &entry : passes->of) {
        if (entry.database == database) return &entry;
        if (entry.started_at < oldest->started_at) oldest = &entry;
    }
    *oldest = {};
    oldest->database = database;
    return oldest;
}

}  // namespace

void ReportPassStarted() {
    if (passes == nullptr) return;
    BeginReporting();
    TimestampTz now = GetCurrentTimestamp();
    Locked(LW_EXCLUSIVE, [&] { EntryOf(MyDatabaseId)->started_at = now; });
}

void ReportPassFinished(Purged purged) {
    if (passes == nullptr) return;
    TimestampTz now = GetCurrentTimestamp();
    Locked(LW_EXCLUSIVE, [&] {
        PassStatus *pass = EntryOf(MyDatabaseId);
        pass->finished_at = now;
        pass->took_since = pass->started_at;
        pass->purged = purged;
    });
}

std::optional<PassStatus> PassesOf(Oid database) {
    std::optional<PassStatus> found;
    if (passes == nullptr) return found;
    Locked(LW_SHARED, [&] {
        for (const PassStatus &entry : passes->of)
            if (entry.database == database) found = entry;
    });
    return found;
}

// Without an index: who is connected to no database, as the launcher, can't always open one.
List *UnknownDatabases() {
    List *unknown = DatabaseNames();
    if (unknown == NIL) return NIL;
    Relation catalog = table_open(DatabaseRelationId, AccessShareLock);
    SysScanDesc scan = systable_beginscan(catalog, InvalidOid, false, nullptr, 0, nullptr);
    while (HeapTuple tuple = systable_getnext(scan)) {
        const char *name = NameStr(reinterpret_cast<Form_pg_database>(GETSTRUCT(tuple))->datname);
        for (int i = list_length(unknown) - 1; i >= 0; i--)
            if (strcmp(static_cast<const char *>(list_nth(unknown, i)), name) == 0)
                unknown = list_delete_nth_cell(unknown, i);
    }
    systable_endscan(scan);
    table_close(catalog, AccessShareLock);
    return unknown;
}

const char *WhyNoWorker() {
    if (!IsPreloaded()) return "idem is not in shared_preload_libraries";
    if (!purge_enabled) return "idem.purge is off";
    const char *database = get_database_name(MyDatabaseId);
    if (database == nullptr || !IsListed(database)) return "idem.databases does not list this database";
    return nullptr;
}

const SharedPart kWorkerStatus = {"idem worker status", [] { return sizeof(Passes); },
                                  [](void *memory, LWLock *its_lock) {
                                      passes = static_cast<Passes *>(memory);
                                      lock = its_lock;
                                  }};

}  // namespace idem
