// What happens when the server loads the library.

#include "core/hash.hpp"
#include "server/bypass.hpp"
#include "server/dedup_table.hpp"
#include "server/extension.hpp"
#include "server/filter_memory.hpp"
#include "server/launcher.hpp"
#include "server/open_claims.hpp"
#include "server/postgres.hpp"
#include "server/settings.hpp"
#include "server/touch.hpp"
#include "server/worker_status.hpp"

namespace {

void OnTransaction(XactEvent event, void *) {
    switch (event) {
        case XACT_EVENT_PRE_COMMIT:
        case XACT_EVENT_PRE_PREPARE:
            idem::RefuseUnsettledClaims();
            idem::TellTouchesAgain();
            break;
        case XACT_EVENT_COMMIT:
        case XACT_EVENT_ABORT:
        case XACT_EVENT_PREPARE:
            idem::ForgetClaims();
            idem::ForgetTouches();
            idem::ForgetBypasses();
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
    RegisterXactCallback(OnTransaction, nullptr);
    // pg_upgrade moves the tables' files about, so nobody may write meanwhile.
    if (process_shared_preload_libraries_in_progress && !IsBinaryUpgrade) {
        idem::ReserveBypassCounts();
        idem::ReserveFilterMemory();
        idem::ReserveWorkerStatus();
        idem::RegisterLauncher();
    }
}
}
