#include "server/worker/worker.hpp"

#include "server/base/settings.hpp"
#include "server/ring/purge.hpp"
#include "server/worker/status.hpp"

namespace idem {
namespace {

void Override(const char *setting, const char *value) { SetConfigOption(setting, value, PGC_SUSET, PGC_S_OVERRIDE); }

// Made somebody else by ALTER DATABASE … SET role or session_authorization, the worker could not act as the tables'
// owners. Names of roles are looked up in a transaction only.
void BeNobodyElse() {
    SetCurrentStatementStartTimestamp();
    StartTransactionCommand();
    Override("session_authorization", GetUserNameFromId(BOOTSTRAP_SUPERUSERID, false));
    Override("role", "none");
    CommitTransactionCommand();
}

// What ALTER DATABASE or ALTER ROLE may have set must not keep the worker from its work, nor let it wait for long while
// it holds a lock: not for a lock of somebody else's, and not for a standby.
void OverrideSettings() {
    BeNobodyElse();
    // One table's fault must not end the process.
    Override("exit_on_error", "off");
    char lock_timeout[16];
    pg_ltoa(purge_lock_timeout_ms, lock_timeout);
    Override("lock_timeout", lock_timeout);
    Override("statement_timeout", "0");
    Override("idle_in_transaction_session_timeout", "0");
#if PG_VERSION_NUM >= 170000
    Override("transaction_timeout", "0");
#endif
    Override("default_transaction_isolation", "read committed");
    Override("default_transaction_read_only", "off");
    Override("default_transaction_deferrable", "off");
    Override("row_security", "on");
    Override("search_path", "pg_catalog, pg_temp");
    if (synchronous_commit > SYNCHRONOUS_COMMIT_LOCAL_FLUSH) Override("synchronous_commit", "local");
}

// Purges the database to which the process is connected; does nothing where the extension is not installed.
void Purge() {
    SetCurrentStatementStartTimestamp();
    StartTransactionCommand();
    if (OidIsValid(get_extension_oid("idem", true))) {
        ReportPassStarted();
        SPI_connect_ext(SPI_OPT_NONATOMIC);
        Purged purged = PurgeDatabase(Pace::WithRests, Whose::Automatic);
        SPI_finish();
        ReportPassFinished(purged);
    }
    CommitTransactionCommand();
    pgstat_report_stat(true);
}

}  // namespace

BackgroundWorker PurgeWorker(Oid database, const char *name) {
    BackgroundWorker worker = {};
    worker.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION;
#ifdef BGWORKER_INTERRUPTIBLE
    worker.bgw_flags |= BGWORKER_INTERRUPTIBLE;
#endif
    worker.bgw_start_time = BgWorkerStart_RecoveryFinished;
    worker.bgw_restart_time = BGW_NEVER_RESTART;
    snprintf(worker.bgw_name, BGW_MAXLEN, "idem purge worker for database \"%s\"", name);
    strlcpy(worker.bgw_type, "idem purge worker", BGW_MAXLEN);
    strlcpy(worker.bgw_library_name, "idem", sizeof(worker.bgw_library_name));
    strlcpy(worker.bgw_function_name, "idem_purge_worker_main", BGW_MAXLEN);
    worker.bgw_main_arg = ObjectIdGetDatum(database);
    worker.bgw_notify_pid = MyProcPid;
    return worker;
}

}  // namespace idem

extern "C" {
PGDLLEXPORT void idem_purge_worker_main(Datum database);

// No user: the connection is the bootstrap superuser's, and PurgeTable acts as each table's owner. An owner needs no
// LOGIN that way. Returning ends the process with exit code 0.
void idem_purge_worker_main(Datum database) {
    pqsignal(SIGTERM, die);
    BackgroundWorkerUnblockSignals();
    BackgroundWorkerInitializeConnectionByOid(DatumGetObjectId(database), InvalidOid, 0);
    pgstat_report_appname("idem purge worker");
    idem::OverrideSettings();
    idem::Purge();
}
}
