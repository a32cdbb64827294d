#include "server/worker_status.hpp"

namespace idem {
namespace {

constexpr const char *kName = "idem worker status";
constexpr int kMostDatabases = 256;

// The text in pg_stat_activity is made of catalog look-ups, so not for each block.
constexpr BlockNumber kBlocksPerText = 4096;

struct WorkerStatus {
    LWLock *lock;  // protects all below; the shared memory is at the same address in all processes
    PassProgress progress;
    PassStatus passes[kMostDatabases];
};

WorkerStatus *status = nullptr;
bool reporting = false;  // this process is the worker
int tables_seen = 0;
PassProgress shown = {};  // in pg_stat_activity

shmem_request_hook_type next_request_hook = nullptr;
shmem_startup_hook_type next_startup_hook = nullptr;

void RequestMemory() {
    if (next_request_hook != nullptr) next_request_hook();
    RequestAddinShmemSpace(MAXALIGN(sizeof(WorkerStatus)));
    RequestNamedLWLockTranche(kName, 1);
}

void AttachMemory() {
    if (next_startup_hook != nullptr) next_startup_hook();
    LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
    bool found = false;
    status = static_cast<WorkerStatus *>(ShmemInitStruct(kName, sizeof(WorkerStatus), &found));
    if (!found) {
        memset(status, 0, sizeof(WorkerStatus));
        status->lock = &GetNamedLWLockTranche(kName)->lock;
    }
    LWLockRelease(AddinShmemInitLock);
}

// Calls use() with the status locked. It must neither raise nor wait.
template <class F>
void Locked(LWLockMode mode, F use) {
    LWLockAcquire(status->lock, mode);
    use();
    LWLockRelease(status->lock);
}

// The database's entry; where it has none, a free one or the one that was not used for longest.
PassStatus *EntryOf(Oid database) {
    PassStatus *oldest = &status->passes[0];
    for (PassStatus &entry : status->passes) {
        if (entry.database == database) return &entry;
        if (entry.started_at < oldest->started_at) oldest = &entry;
    }
    *oldest = {};
    oldest->database = database;
    return oldest;
}

void ClearAtExit(int, Datum) {
    Locked(LW_EXCLUSIVE, [] {
        if (status->progress.database == MyDatabaseId) status->progress = {};
    });
}

void ShowActivity(const PassProgress &progress) {
    shown = progress;
    const char *name = get_rel_name(progress.table);
    if (name == nullptr) return;
    char *table = quote_qualified_identifier(get_namespace_name(get_rel_namespace(progress.table)), name);
    const char *phase = PhaseName(progress.phase);
    pgstat_report_activity(STATE_RUNNING, progress.total == 0 ? psprintf("idem: %s %s", phase, table)
                                                              : psprintf("idem: %s %s, %u of %u blocks", phase, table,
                                                                         progress.done, progress.total));
}

}  // namespace

const char *PhaseName(Phase phase) {
    constexpr const char *kNames[kPhaseCount] = {"retire", "move", "seal", "turn", "empty"};
    return kNames[static_cast<int>(phase)];
}

void ReportPassStarted() {
    if (status == nullptr) return;
    if (!reporting) before_shmem_exit(ClearAtExit, Datum{0});
    reporting = true;
    pgstat_report_activity(STATE_RUNNING, "idem: purge");
    TimestampTz now = GetCurrentTimestamp();
    tables_seen = 0;
    Locked(LW_EXCLUSIVE, [&] { EntryOf(MyDatabaseId)->started_at = now; });
}

void ReportTable() { tables_seen++; }

void ReportPassFinished(int failed_tables) {
    if (!reporting) return;
    ReportIdle();
    TimestampTz now = GetCurrentTimestamp();
    Locked(LW_EXCLUSIVE, [&] {
        PassStatus *pass = EntryOf(MyDatabaseId);
        pass->finished_at = now;
        pass->tables = tables_seen;
        pass->failed_tables = failed_tables;
    });
}

void ReportProgress(Oid table, Phase phase, BlockNumber done, BlockNumber total) {
    if (!reporting) return;
    PassProgress progress = {MyDatabaseId, table, phase, done, total};
    Locked(LW_EXCLUSIVE, [&] { status->progress = progress; });
    bool elsewhere = table != shown.table || phase != shown.phase || done < shown.done;
    if (elsewhere || done - shown.done >= kBlocksPerText) ShowActivity(progress);
}

void ReportIdle() {
    if (!reporting) return;
    ClearAtExit(0, Datum{0});
    shown = {};
    pgstat_report_activity(STATE_RUNNING, "idem: purge");
}

std::optional<PassStatus> PassesOf(Oid database) {
    std::optional<PassStatus> found;
    if (status == nullptr) return found;
    Locked(LW_SHARED, [&] {
        for (const PassStatus &entry : status->passes)
            if (entry.database == database) found = entry;
    });
    return found;
}

std::optional<PassProgress> ProgressOf(Oid database) {
    std::optional<PassProgress> found;
    if (status == nullptr) return found;
    Locked(LW_SHARED, [&] {
        if (status->progress.database == database) found = status->progress;
    });
    return found;
}

bool IsPreloaded() { return status != nullptr; }

void ReserveWorkerStatus() {
    next_request_hook = shmem_request_hook;
    shmem_request_hook = RequestMemory;
    next_startup_hook = shmem_startup_hook;
    shmem_startup_hook = AttachMemory;
}

}  // namespace idem
