// A stand-in for the pass: turns rings by the clock, and seals nothing yet.

#include "server/purge.hpp"

#include "server/arguments.hpp"
#include "server/dedup_table.hpp"
#include "server/extension.hpp"
#include "server/registry.hpp"
#include "server/ring.hpp"
#include "server/worker_status.hpp"

namespace idem {
namespace {

struct Due {
    Oid dedup;
    TimestampTz opened_at;
};

// Dedup tables and when their current generation was opened; in the caller's memory context.
int ReadTables(Due **tables) {
    Relation control = table_open(InstalledExtension().control, AccessShareLock);
    Snapshot snapshot = RegisterSnapshot(GetLatestSnapshot());
    SysScanDesc scan = systable_beginscan(control, InvalidOid, false, snapshot, 0, nullptr);
    int count = 0;
    int room = 64;
    *tables = static_cast<Due *>(palloc(room * sizeof(Due)));
    while (HeapTuple tuple = systable_getnext(scan)) {
        if (count == room) *tables = static_cast<Due *>(repalloc(*tables, (room *= 2) * sizeof(Due)));
        bool null = false;
        (*tables)[count].dedup = DatumGetObjectId(heap_getattr(tuple, 1, RelationGetDescr(control), &null));
        (*tables)[count++].opened_at = DatumGetTimestampTz(heap_getattr(tuple, 5, RelationGetDescr(control), &null));
    }
    systable_endscan(scan);
    UnregisterSnapshot(snapshot);
    table_close(control, AccessShareLock);
    return count;
}

bool IsDue(Oid dedup, TimestampTz opened_at) {
    Policy policy;
    RingPosition position;
    if (!ReadPolicy(dedup, &policy) || !ReadRingPosition(dedup, &position)) return false;
    return GetCurrentTimestamp() >= opened_at + policy.windows.cold / Max(position.slots - 2, 1);
}

void NameTable(void *name) { errcontext("purge of dedup table \"%s\"", static_cast<const char *>(name)); }

void MoveUnsettled(Oid dedup) {
    RingPosition position;
    ReadRingPosition(dedup, &position);
    Oid user = InvalidOid;
    int security = 0;
    GetUserIdAndSecContext(&user, &security);
    SetUserIdAndSecContext(user, security | SECURITY_RESTRICTED_OPERATION);
    PushActiveSnapshot(GetTransactionSnapshot());
    char *table = quote_qualified_identifier(get_namespace_name(get_rel_namespace(dedup)), get_rel_name(dedup));
    (void)SPI_execute(psprintf("UPDATE %s SET slot = %d WHERE slot = %d AND state <> 'done'", table,
                               static_cast<int>(position.current % position.slots),
                               static_cast<int>(position.oldest % position.slots)),
                      false, 0);
    PopActiveSnapshot();
    SetUserIdAndSecContext(user, security);
}

void PurgeDue(Oid dedup) {
    if (!ConditionalLockRelationOid(dedup, ShareUpdateExclusiveLock)) return;
    if (!SearchSysCacheExists1(RELOID, ObjectIdGetDatum(dedup))) return;
    CheckDedupTable(dedup);
    MoveUnsettled(dedup);
    RotateRing(dedup);
}

}  // namespace

void PurgeTable(Oid dedup) {
    Oid user = GetUserId();
    HeapTuple tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(dedup));
    if (!HeapTupleIsValid(tuple)) return;
    Oid owner = reinterpret_cast<Form_pg_class>(GETSTRUCT(tuple))->relowner;
    ReleaseSysCache(tuple);
    SetUserIdAndSecContext(owner, 0);
    PurgeDue(dedup);
    SetUserIdAndSecContext(user, 0);
}

namespace {

// One table in a step of its own; false if something went wrong with it.
bool TryTable(Due due, char *name) {
    Oid user = GetUserId();
    MemoryContext context = CurrentMemoryContext;
    volatile bool good = true;
    ErrorContextCallback callback = {error_context_stack, NameTable, name};
    PG_TRY();
    {
        error_context_stack = &callback;
        if (IsDue(due.dedup, due.opened_at)) PurgeTable(due.dedup);
        SPI_commit();
        error_context_stack = callback.previous;
    }
    PG_CATCH();
    {
        MemoryContextSwitchTo(context);
        ErrorData *error = CopyErrorData();
        FlushErrorState();
        SPI_rollback();
        MemoryContextSwitchTo(context);
        SetUserIdAndSecContext(user, 0);
        if (get_rel_name(due.dedup) != nullptr) {
            error->elevel = WARNING;
            ThrowErrorData(error);
            good = false;
        }
    }
    PG_END_TRY();
    MemoryContextSwitchTo(context);
    return good;
}

}  // namespace

int PurgeDatabase() {
    MemoryContext context = AllocSetContextCreate(TopMemoryContext, "idem purge", ALLOCSET_DEFAULT_SIZES);
    MemoryContext caller = MemoryContextSwitchTo(context);
    Due *tables = nullptr;
    int count = ReadTables(&tables);
    int failed = 0;
    for (int i = 0; i < count; i++) {
        CHECK_FOR_INTERRUPTS();
        if (!OidIsValid(get_extension_oid("idem", true))) break;
        char *name = get_rel_name(tables[i].dedup);
        if (name == nullptr) continue;
        ReportTable();
        if (!TryTable(tables[i], name)) failed++;
    }
    MemoryContextSwitchTo(caller);
    return failed;
}

}  // namespace idem
