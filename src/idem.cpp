// What happens when the server loads the library.

#include "core/hash.hpp"
#include "server/base/extension.hpp"
#include "server/base/postgres.hpp"
#include "server/base/settings.hpp"
#include "server/claim/bypass.hpp"
#include "server/claim/commit_order.hpp"
#include "server/claim/open_claims.hpp"
#include "server/claim/running.hpp"
#include "server/claim/stat_memory.hpp"
#include "server/claim/tally.hpp"
#include "server/ring/progress.hpp"
#include "server/ring/touch.hpp"
#include "server/table/dedup_table.hpp"
#include "server/table/filter_memory.hpp"
#include "server/table/ghosts.hpp"
#include "server/worker/launcher.hpp"
#include "server/worker/status.hpp"

namespace {

constexpr const idem::SharedPart *kSharedParts[] = {&idem::kBypassCounts, &idem::kFilterMemory,   &idem::kGhostMemory,
                                                    &idem::kStatMemory,   &idem::kWorkerProgress, &idem::kWorkerStatus};

void OnTransaction(XactEvent event, void *) {
    switch (event) {
        case XACT_EVENT_PRE_COMMIT:
        case XACT_EVENT_PRE_PREPARE:
            idem::RefuseUnsettledClaims();  // again: others' callbacks may have claimed since (commit_order)
            idem::TellTouchesAgain();
            break;
        case XACT_EVENT_COMMIT:
        case XACT_EVENT_ABORT:
        case XACT_EVENT_PREPARE:
            idem::ForgetClaims();
            idem::ForgetHolders();
            idem::ForgetTouches();
            idem::ForgetBypasses();
            idem::FlushTally();
            break;
        default:
            break;
    }
}

}  // namespace

extern "C" {
#ifdef PG_MODULE_MAGIC_EXT
PG_MODULE_MAGIC_EXT(.name = "idem", .version = IDEM_VERSION);
#else
PG_MODULE_MAGIC;
#endif

PGDLLEXPORT void _PG_init(void);

void _PG_init(void) {
    if (sodium_init() < 0) ereport(ERROR, (errcode(ERRCODE_INTERNAL_ERROR), errmsg("could not initialize libsodium")));
    idem::DefineSettings();
    idem::WatchExtension();
    idem::WatchDedupTables();
    idem::WatchSavepoints();
    idem::WatchBypasses();
    idem::WatchRunning();
    RegisterXactCallback(OnTransaction, nullptr);
    idem::WatchStatements();
    // pg_upgrade moves the tables' files about, so nobody may write meanwhile.
    if (process_shared_preload_libraries_in_progress && !IsBinaryUpgrade) {
        idem::ReserveSharedMemory(kSharedParts);
        idem::RegisterLauncher();
    }
}
}
