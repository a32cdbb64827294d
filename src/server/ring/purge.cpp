#include "server/ring/purge.hpp"

#include "server/base/extension.hpp"
#include "server/base/privileges.hpp"
#include "server/base/settings.hpp"
#include "server/claim/bypass.hpp"
#include "server/claim/stat_memory.hpp"
#include "server/ring/clear.hpp"
#include "server/ring/due.hpp"
#include "server/ring/empty.hpp"
#include "server/ring/progress.hpp"
#include "server/ring/record.hpp"
#include "server/ring/retire.hpp"
#include "server/ring/seal.hpp"
#include "server/ring/turn.hpp"
#include "server/table/filter_memory.hpp"
#include "server/table/ghosts.hpp"
#include "server/table/registry.hpp"

namespace idem {
namespace {

Pass PassOver(Oid dedup, Patience patience, Pace pace) {
    return {dedup, patience, pace, purge_lock_timeout_ms, false, verify_purge};
}

void NameTable(void *name) { errcontext("purge of dedup table \"%s\"", static_cast<const char *>(name)); }

// In a transaction of its own, which needs the table neither in order nor unlocked; tells whether the failure is news.
bool IsNews(Oid dedup, const char *failure) {
    if (!ConditionalLockRelationOid(dedup, ShareUpdateExclusiveLock)) return true;
    bool news = RecordFailure(dedup, failure);
    SPI_commit();
    return news;
}

// Lets go of the snapshots that an error has left active, but for the procedure's own: SPI_rollback wants it so.
void PopSnapshotsOfStep() {
    Snapshot outer = ActivePortal != nullptr ? ActivePortal->portalSnapshot : nullptr;
    while (ActiveSnapshotSet() && GetActiveSnapshot() != outer) PopActiveSnapshot();
}

// The error that has been caught, whose transaction is rolled back; nullptr if it was only that a lock could not be had
// in time, or that the extension or the table is gone. Someone who cancels what he has called himself wants all of it
// to stop.
ErrorData *RollBack(Oid dedup, Pace pace, MemoryContext context) {
    MemoryContextSwitchTo(context);
    ErrorData *error = CopyErrorData();
    FlushErrorState();
    PopSnapshotsOfStep();
    SPI_rollback();
    MemoryContextSwitchTo(context);
    if (error->sqlerrcode == ERRCODE_QUERY_CANCELED && pace == Pace::AtOnce) ReThrowError(error);
    if (error->sqlerrcode == ERRCODE_LOCK_NOT_AVAILABLE) return nullptr;
    bool there = OidIsValid(get_extension_oid("idem", true)) && SearchSysCacheExists1(RELOID, ObjectIdGetDatum(dedup));
    return there ? error : nullptr;
}

// False if something went wrong with the table.
bool TryTable(Oid dedup, char *name, Pace pace) {
    MemoryContext context = CurrentMemoryContext;
    ErrorData *volatile error = nullptr;
    ErrorContextCallback callback = {error_context_stack, NameTable, name};
    PG_TRY();
    {
        error_context_stack = &callback;
        PurgeTable(dedup, Patience::PassesBy, pace);
    }
    PG_CATCH();
    {
        error_context_stack = callback.previous;
        error = RollBack(dedup, pace, context);
    }
    PG_END_TRY();
    error_context_stack = callback.previous;
    MemoryContextSwitchTo(context);
    if (error == nullptr) return true;
    if (IsNews(dedup, error->message)) {
        error->elevel = WARNING;
        ThrowErrorData(error);
    }
    return false;
}

bool TableExists(Oid dedup) {
    AcceptInvalidationMessages();
    return SearchSysCacheExists1(RELOID, ObjectIdGetDatum(dedup));
}

bool DatabaseExists(Oid database) {
    AcceptInvalidationMessages();
    return SearchSysCacheExists1(DATABASEOID, ObjectIdGetDatum(database));
}

// What came too late is in no answer, so somebody has to be told.
void TellLateEvents(Oid dedup, const char *name) {
    std::optional<LateEvents> events = LateEventsToTell(dedup);
    if (!events) return;
    ereport(
        LOG,
        (errmsg("cold_window of dedup table \"%s\" is too short", name),
         errdetail("%lld of %lld events that were taken for new had been done and forgotten; about %.0f seem so by "
                   "chance.",
                   static_cast<long long>(events->late), static_cast<long long>(events->acquired), events->by_chance),
         errhint("Look at idem_window_advice, and lengthen it by idem_set_policy.")));
}

}  // namespace

void PurgeTable(Oid dedup, Patience patience, Pace pace) {
    Pass pass = PassOver(dedup, patience, pace);
    Due due = WhatIsDue(pass);
    if (due.tidy) {
        TidySlots(pass);
        due = WhatIsDue(pass);
    }
    if (due.seal) SealGenerations(pass);
    if (due.retire) {
        RetireGenerations(pass);
        ClearGenerations(pass);
    }
    if (due.turn) {
        TurnRing(pass);
        SealGenerations(pass);
    }
    if (due.failed_before) InStep(dedup, patience, [&](DedupTable &) { return RecordFailure(dedup, nullptr); });
}

Purged PurgeDatabase(Pace pace, Whose whose) {
    BeginPassByClock(whose);
    DropFiltersOfTables(TableExists);
    DropFiltersOfDatabases(DatabaseExists);
    ForgetBypassCounts(TableExists);
    ForgetBypassCountsOfDatabases(DatabaseExists);
    DropGhosts(TableExists, DatabaseExists);
    DropStats(TableExists, DatabaseExists);
    MemoryContext context = AllocSetContextCreate(TopMemoryContext, "idem purge", ALLOCSET_DEFAULT_SIZES);
    MemoryContext caller = MemoryContextSwitchTo(context);
    List *tables = RegisteredTables();
    Purged purged = {};
    for (int i = 0; i < list_length(tables); i++) {
        CHECK_FOR_INTERRUPTS();
        Oid dedup = list_nth_oid(tables, i);
        if (!OidIsValid(get_extension_oid("idem", true))) break;
        char *name = get_rel_name(dedup);
        if (name == nullptr || !OwnsRelation(dedup, GetUserId())) continue;
        purged.tables++;
        TellLateEvents(dedup, name);
        if (!TryTable(dedup, name, pace)) purged.failed++;
    }
    ReportIdle();
    MemoryContextSwitchTo(caller);
    MemoryContextDelete(context);
    return purged;
}

void RotateTable(Oid dedup) {
    Pass pass = PassOver(dedup, Patience::Waits, Pace::AtOnce);
    pass.asked = true;
    BeginPassByClock(Whose::ByHand);
    InStep(dedup, pass.patience, [](DedupTable &table) {
        if (IsSubscribed(table))
            ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                            errmsg("dedup table \"%s\" is written to by a subscription", table.name),
                            errdetail("Its publisher turns and empties it."),
                            errhint("Drop the subscription before this table takes over.")));
        return true;
    });
    RetireGenerations(pass);
    TurnRing(pass);
    SealGenerations(pass);
}

}  // namespace idem
