#include "server/worker/launcher.hpp"

#include "core/clock.hpp"
#include "server/base/postgres.hpp"
#include "server/base/settings.hpp"
#include "server/claim/stat_memory.hpp"
#include "server/worker/status.hpp"
#include "server/worker/worker.hpp"

namespace idem {
namespace {

// After an error, or after somebody has terminated it.
constexpr int kRestartSeconds = 5;

// How often a running worker's database is looked at. Commands that need a database for themselves give up after 5 s.
constexpr long kLookAroundMs = 1000;

constexpr TimestampTz kNotSet = 0;

// When the next pass begins; kNotSet: one is running, and nothing has asked for another.
TimestampTz next_pass = kNotSet;

// The database that the pass has come to. A pass that finds no process goes on from here when it is tried again, so
// that a shortage never falls on the same databases.
Oid position = InvalidOid;

bool shortage_reported = false;

// idem.databases is to be looked at, as it may have changed.
bool names_are_new = true;

struct Database {
    Oid oid;
    char name[NAMEDATALEN];
};

// Terminates where SIGTERM or the postmaster's death asked for it. New settings take effect at once, by a new pass.
void HeedSignals() {
    CHECK_FOR_INTERRUPTS();
    if (!ConfigReloadPending) return;
    ConfigReloadPending = false;
    ProcessConfigFile(PGC_SIGHUP);
    next_pass = GetCurrentTimestamp();
    names_are_new = true;
}

// Sleeps until something happens, at most `ms` (negative: for ever).
void Sleep(long ms, uint32 wait_event) {
    int events = WL_LATCH_SET | WL_EXIT_ON_PM_DEATH | (ms >= 0 ? WL_TIMEOUT : 0);
    (void)WaitLatch(MyLatch, events, ms, wait_event);
    ResetLatch(MyLatch);
    HeedSignals();
}

bool IsToBePurged(const FormData_pg_database &database) {
#ifdef DATCONNLIMIT_INVALID_DB
    if (database.datconnlimit == DATCONNLIMIT_INVALID_DB) return false;  // a DROP DATABASE was interrupted
#endif
    return database.datallowconn && !database.datistemplate && IsListed(NameStr(database.datname));
}

// The database with the next OID that is to be purged. The catalog is read anew for each, as a pass may take long.
bool FindNextDatabase(Oid after, Database *next) {
    MemoryContext caller = CurrentMemoryContext;
    SetCurrentStatementStartTimestamp();
    StartTransactionCommand();
    Relation catalog = table_open(DatabaseRelationId, AccessShareLock);
    SysScanDesc scan = systable_beginscan(catalog, InvalidOid, false, nullptr, 0, nullptr);
    next->oid = InvalidOid;
    while (HeapTuple tuple = systable_getnext(scan)) {
        auto *database = reinterpret_cast<Form_pg_database>(GETSTRUCT(tuple));
        bool is_nearer = database->oid > after && (!OidIsValid(next->oid) || database->oid < next->oid);
        if (!is_nearer || !IsToBePurged(*database)) continue;
        next->oid = database->oid;
        strlcpy(next->name, NameStr(database->datname), NAMEDATALEN);
    }
    systable_endscan(scan);
    table_close(catalog, AccessShareLock);
    CommitTransactionCommand();
    MemoryContextSwitchTo(caller);
    return OidIsValid(next->oid);
}

// Whether a command has or awaits a lock on the database which keeps sessions from connecting: DROP, RENAME, SET
// TABLESPACE, CREATE DATABASE … TEMPLATE. It waits 5 s at most for those that are connected.
bool IsWanted(Oid database) {
    LOCKTAG tag;
    SET_LOCKTAG_OBJECT(tag, InvalidOid, DatabaseRelationId, database, 0);
    if (LockAcquire(&tag, RowExclusiveLock, true, true) == LOCKACQUIRE_NOT_AVAIL) return true;
    LockRelease(&tag, RowExclusiveLock, true);
    return false;
}

// Waits until the worker has ended; ends it where purging was turned off or somebody needs the database.
void AwaitWorker(BackgroundWorkerHandle *handle, const Database &database) {
    bool told = false;
    for (;;) {
        pid_t pid = 0;
        if (GetBackgroundWorkerPid(handle, &pid) == BGWH_STOPPED) return;
        bool wanted = IsWanted(database.oid);
        if (!told && (wanted || !purge_enabled)) {
            if (wanted)
                ereport(LOG, (errmsg("purge of database \"%s\" gives way to a command that needs the database",
                                     database.name)));
            TerminateBackgroundWorker(handle);
            told = true;
        }
        Sleep(kLookAroundMs, WAIT_EVENT_BGWORKER_SHUTDOWN);
    }
}

// Has one database purged; false if no process can be had for it.
bool RunWorker(const Database &database) {
    BackgroundWorker worker = PurgeWorker(database.oid, database.name);
    BackgroundWorkerHandle *handle = nullptr;
    if (!RegisterDynamicBackgroundWorker(&worker, &handle)) return false;
    AwaitWorker(handle, database);
    return true;
}

// Once until it is over, so that a server which is short of slots for days does not fill its log.
void ReportShortage() {
    if (!shortage_reported)
        ereport(LOG, (errmsg("no background worker slot is free to purge dedup tables"),
                      errdetail("The next pass tries again."), errhint("Raise max_worker_processes.")));
    shortage_reported = true;
}

// A misspelt name would keep a database from being purged without a word.
void WarnOfUnknownNames() {
    if (!names_are_new) return;
    names_are_new = false;
    MemoryContext caller = CurrentMemoryContext;
    SetCurrentStatementStartTimestamp();
    StartTransactionCommand();
    List *unknown = UnknownDatabases();
    for (int i = 0; i < list_length(unknown); i++)
        ereport(WARNING, (errmsg("database \"%s\" in idem.databases does not exist",
                                 static_cast<const char *>(list_nth(unknown, i))),
                          errhint("Dedup tables are purged only in the databases that are listed.")));
    CommitTransactionCommand();
    MemoryContextSwitchTo(caller);
}

void PurgeDatabases() {
    WarnOfUnknownNames();
    Database database = {};
    while (purge_enabled && FindNextDatabase(position, &database)) {
        HeedSignals();
        pgstat_report_activity(STATE_RUNNING, psprintf("idem: purge of database \"%s\"", database.name));
        if (!IsWanted(database.oid) && !RunWorker(database)) return ReportShortage();
        shortage_reported = false;
        position = database.oid;
    }
    position = InvalidOid;
}

// How long to sleep, at most one naptime: the clock may have been set back. Negative: until a signal.
long SleepMs() {
    if (!purge_enabled) return -1;
    long naptime_ms = purge_naptime_s * 1000L;
    return Min(TimestampDifferenceMilliseconds(GetCurrentTimestamp(), next_pass), naptime_ms);
}

void Launch() {
    MemoryContext pass = AllocSetContextCreate(TopMemoryContext, "idem pass", ALLOCSET_DEFAULT_SIZES);
    MemoryContextSwitchTo(pass);
    uint32 nap = NamedWaitEvent("IdemLauncherMain");
    next_pass = GetCurrentTimestamp();
    for (;;) {
        if (purge_enabled && IsUp(next_pass, purge_naptime_s * kSecond, GetCurrentTimestamp())) {
            next_pass = kNotSet;
            PurgeDatabases();
            SaveStats();
            pgstat_report_activity(STATE_IDLE, nullptr);
            MemoryContextReset(pass);
            if (next_pass == kNotSet)
                next_pass = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), purge_naptime_s * INT64CONST(1000));
        }
        Sleep(SleepMs(), nap);
    }
}

}  // namespace

void RegisterLauncher() {
    BackgroundWorker worker = {};
    worker.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION;
    worker.bgw_start_time = BgWorkerStart_RecoveryFinished;
    worker.bgw_restart_time = kRestartSeconds;
    strlcpy(worker.bgw_name, "idem launcher", BGW_MAXLEN);
    strlcpy(worker.bgw_type, "idem launcher", BGW_MAXLEN);
    strlcpy(worker.bgw_library_name, "idem", sizeof(worker.bgw_library_name));
    strlcpy(worker.bgw_function_name, "idem_launcher_main", BGW_MAXLEN);
    RegisterBackgroundWorker(&worker);
}

}  // namespace idem

extern "C" {
PGDLLEXPORT void idem_launcher_main(Datum argument);

void idem_launcher_main(Datum) {
    pqsignal(SIGHUP, SignalHandlerForConfigReload);
    idem::IgnoreSignal(SIGINT);  // there is no statement to cancel
    pqsignal(SIGTERM, die);
    BackgroundWorkerUnblockSignals();
    BackgroundWorkerInitializeConnection(nullptr, nullptr, 0);
    pgstat_report_appname("idem launcher");
    idem::Launch();
}
}
