#include "server/ring/progress.hpp"

namespace idem {
namespace {

// The text in pg_stat_activity is made of catalog look-ups, so not for each block.
constexpr BlockNumber kBlocksPerText = 4096;

PassProgress *shared = nullptr;  // of the one worker that there is at a time
LWLock *lock = nullptr;
bool reporting = false;   // this process is the worker
PassProgress shown = {};  // in pg_stat_activity

void ClearAtExit(int, Datum) {
    LWLockAcquire(lock, LW_EXCLUSIVE);
    if (shared->database == MyDatabaseId) *shared = {};
    LWLockRelease(lock);
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

void BeginReporting() {
    if (shared == nullptr) return;
    if (!reporting) before_shmem_exit(ClearAtExit, Datum{0});
    reporting = true;
    pgstat_report_activity(STATE_RUNNING, "idem: purge");
}

void ReportProgress(Oid table, Phase phase, BlockNumber done, BlockNumber total) {
    if (!reporting) return;
    PassProgress progress = {MyDatabaseId, table, phase, done, total};
    LWLockAcquire(lock, LW_EXCLUSIVE);
    *shared = progress;
    LWLockRelease(lock);
    bool elsewhere = table != shown.table || phase != shown.phase || done < shown.done;
    if (elsewhere || done - shown.done >= kBlocksPerText) ShowActivity(progress);
}

void ReportIdle() {
    if (!reporting) return;
    ClearAtExit(0, Datum{0});
    shown = {};
    pgstat_report_activity(STATE_RUNNING, "idem: purge");
}

std::optional<PassProgress> ProgressOf(Oid database) {
    std::optional<PassProgress> found;
    if (shared == nullptr) return found;
    LWLockAcquire(lock, LW_SHARED);
    if (shared->database == database) found = *shared;
    LWLockRelease(lock);
    return found;
}

const SharedPart kWorkerProgress = {"idem worker progress", [] { return sizeof(PassProgress); },
                                    [](void *memory, LWLock *its_lock) {
                                        shared = static_cast<PassProgress *>(memory);
                                        lock = its_lock;
                                    }};

}  // namespace idem
