#include "server/worker/status.hpp"

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

const SharedPart kWorkerStatus = {"idem worker status", [] { return sizeof(Passes); },
                                  [](void *memory, LWLock *its_lock) {
                                      passes = static_cast<Passes *>(memory);
                                      lock = its_lock;
                                  }};

}  // namespace idem
