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
    idem::WatchTransactions();
    idem::WatchTouches();
    idem::WatchBypasses();
    // pg_upgrade moves the tables' files about, so nobody may write meanwhile.
    if (process_shared_preload_libraries_in_progress && !IsBinaryUpgrade) {
        idem::ReserveBypassCounts();
        idem::ReserveFilterMemory();
        idem::ReserveWorkerStatus();
        idem::RegisterLauncher();
    }
}
}
