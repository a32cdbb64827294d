#include "server/ring/purge.hpp"

#include "server/base/extension.hpp"
#include "server/base/privileges.hpp"
#include "server/base/settings.hpp"
#include "server/claim/bypass.hpp"
#include "server/claim/stat_memory.hpp"
#include "server/ring/clear.hpp"
#include "server/ring/due.hpp"
#include "server/ring/empty.hpp"
#include "server/ring/look.hpp"
#include "server/ring/progress.hpp"
#include "server/ring/record.hpp"
#include "server/ring/retire.hpp"
#include "server/ring/seal.hpp"
#include "server/ring/time_limit.hpp"
#include "server/ring/turn.hpp"
#include "server/table/filter_memory.hpp"
#include "server/table/ghosts.hpp"

namespace idem {
namespace {

Pass PassOver(Oid dedup, Patience patience, Pace pace) {
    return {dedup, patience, pace, purge_lock_timeout_ms, false, verify_purge};
}

void NameTable(void *name) { errcontext("purge of dedup table \"%s\"", static_cast<const char *>(name)); }

// In a transaction of its own, which needs the table neither in order nor unlocked; tells whether the failure is news.
// What can't be recorded is.
bool IsNews(Oid dedup, const char *failure) {
    BecomeReadCommitted();
    bool news = true;
    auto all = [](const ErrorData &) { return true; };
    (void)InSubtransaction(all, [&] {
        int level = NewGUCNestLevel();
        LimitLockWaits();
        if (ConditionalLockRelationOid(dedup, ShareUpdateExclusiveLock)) {
            PushActiveSnapshot(GetTransactionSnapshot());
            news = RecordFailure(dedup, failure);
            PopActiveSnapshot();
        }
        AtEOXact_GUC(false, level);
    });
    SPI_commit();
    return news;
}

// The error that has been caught, whose transaction is rolled back; nullptr if it was only that a lock could not be had
// in time, or that the extension or the table is gone. Someone who cancels what he has called himself wants all of it
// to stop.
ErrorData *RollBack(Oid dedup, const char *name, Pace pace, MemoryContext context) {
    MemoryContextSwitchTo(context);
    ErrorData *error = CopyErrorData();
    FlushErrorState();
    bool out_of_time = StopTimeLimit() && error->sqlerrcode == ERRCODE_QUERY_CANCELED;
    SPI_rollback();
    MemoryContextSwitchTo(context);
    if (out_of_time) {
        error->message = psprintf("purge of dedup table \"%s\" took longer than idem.purge_table_timeout", name);
        error->hint = pstrdup("Find out what it waited for, or raise idem.purge_table_timeout.");
    }
    if (error->sqlerrcode == ERRCODE_QUERY_CANCELED && pace == Pace::AtOnce && !out_of_time) ReThrowError(error);
    if (error->sqlerrcode == ERRCODE_LOCK_NOT_AVAILABLE) return nullptr;
    bool there = OidIsValid(get_extension_oid("idem", true)) && SearchSysCacheExists1(RELOID, ObjectIdGetDatum(dedup));
    return there ? error : nullptr;
}

// False if something went wrong with the table.
bool TryTable(Oid dedup, char *name, Pace pace) {
    MemoryContext context = CurrentMemoryContext;
    ErrorData *volatile error = nullptr;
    ErrorContextCallback callback = {error_context_stack, NameTable, name};
    StartTimeLimit(purge_table_timeout_s);
    PG_TRY();
    {
        error_context_stack = &callback;
        PurgeTable(dedup, Patience::PassesBy, pace);
    }
    PG_CATCH();
    {
        error_context_stack = callback.previous;
        error = RollBack(dedup, name, pace, context);
    }
    PG_END_TRY();
    (void)StopTimeLimit();
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
    if (!due.record) return;
    InStep(dedup, patience, [&](DedupTable &) {
        RecordFailure(dedup, nullptr);
        RecordPass(dedup);
        return true;
    });
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
    Looks looks = LookAtAll();
    Purged purged = {};
    // What failed before comes last, as it may take its time to fail again.
    for (bool failed_before : {false, true}) {
        for (int i = 0; i < looks.count; i++) {
            const Look &look = looks.of[i];
            if (look.failed_before != failed_before) continue;
            CHECK_FOR_INTERRUPTS();
            if (!OidIsValid(get_extension_oid("idem", true))) break;
            char *name = get_rel_name(look.dedup);
            if (name == nullptr || !OwnsRelation(look.dedup, GetUserId())) continue;
            purged.tables++;
            TellLateEvents(look.dedup, name);
            if (look.due && !TryTable(look.dedup, name, pace)) purged.failed++;
        }
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
