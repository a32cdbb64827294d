#include "server/ring.hpp"

#include "core/ring.hpp"
#include "server/filter_memory.hpp"
#include "server/gate.hpp"
#include "server/move.hpp"
#include "server/purge_state.hpp"
#include "server/registry.hpp"
#include "server/seal.hpp"
#include "server/statement.hpp"
#include "server/touch.hpp"

namespace idem {
namespace {

// The partition's rows as they are now. The caller's ShareLock keeps writers out, and whoever has written there and is
// still open, a prepared transaction too, would have kept the caller out.
Census CountRows(const DedupTable &table, const Slot &slot) {
    Relation partition = table_open(slot.relation, NoLock);
    Snapshot snapshot = RegisterSnapshot(GetLatestSnapshot());
    Census census =
        TakeCensus(slot, partition, snapshot, {table.relation, Phase::Retire, Pace::AtOnce}, [](const Key &) {});
    UnregisterSnapshot(snapshot);
    table_close(partition, NoLock);
    return census;
}

bool HasLive(const Census &census) {
    Micros now = GetCurrentTimestamp();
    return census.newest_expiry.value_or(now) > now || census.newest_unsettled_expiry.value_or(now) > now;
}

// Whether a partition is to get back the trigger that tells of others' writes. The worker doesn't make one that is not
// there: it may come to a table that is just being restored, and pg_restore makes the trigger last.
bool WantsTouch(const Slot &slot, Pace pace) { return !slot.watched && (slot.has_touch || pace == Pace::AtOnce); }

bool AnyWantsTouch(const DedupTable &table, Pace pace) {
    for (int i = 0; i < table.slot_count; i++)
        if (WantsTouch(table.slots[i], pace)) return true;
    return false;
}

// Whether the current generation has had its time, and holds anything.
bool IsTurnDue(DedupTable &table) {
    std::optional<Generation> current = ReadGeneration(table.relation, table.current_generation);
    Micros span = GenerationSpan(table.policy.windows.cold, table.slot_count);
    if (!current || current->opened_at + span > GetCurrentTimestamp()) return false;
    Relation partition = table_open(table.SlotOf(table.current_generation).relation, AccessShareLock);
    bool holds_rows = RelationGetNumberOfBlocks(partition) > 0;
    table_close(partition, AccessShareLock);
    return holds_rows;
}

// Whether it is worth locking and scanning the oldest generation: there is one, and when last counted all its settled
// events would have expired by now.
bool MayHaveExpired(const DedupTable &table) {
    if (table.oldest_generation == table.current_generation) return false;
    std::optional<Generation> oldest = ReadGeneration(table.relation, table.oldest_generation);
    if (!oldest || !oldest->census) return true;
    Micros now = GetCurrentTimestamp();
    return oldest->census->newest_expiry.value_or(now) <= now;
}

// Takes the oldest generation out of the ring. On success its partition stays locked by the session against writers,
// so that what was proved of it stays true until it is emptied; `locked` says what to unlock.
bool RetireOldest(const Pass &pass, DedupTable &table, LockRelId *locked) {
    int64_t generation = table.oldest_generation;
    if (!MayHaveExpired(table)) return false;

    const Slot &slot = table.SlotOf(generation);
    if (!ConditionalLockRelationOid(slot.relation, ShareLock)) return false;
    Census census = {};
    std::optional<Generation> known = ReadGeneration(table.relation, generation);
    bool vouched = known && known->census && table.current && HasColumn(table, generation);
    if (vouched) census = *known->census;
    if (pass.verify || !vouched || census.unsettled > 0) {
        census = CountRows(table, slot);
        if (HasLive(census)) {
            RecordCensus(table.relation, generation, census);
            return false;
        }
    }
    if (census.unsettled > 0)
        ereport(LOG, (errmsg("idem forgets %lld unsettled events of dedup table \"%s\"",
                             static_cast<long long>(census.unsettled), table.name),
                      errdetail("They were neither settled nor resolved within the table's unresolved_window.")));

    CloseGate(pass.gate_timeout_ms);
    UnpublishColumn(table.relation, slot.number);
    WriteRingPosition(table.relation, {table.slot_count, generation + 1, table.current_generation});
    RecordRetired(table.relation, generation);
    PurgeDone done = {};
    done.retired = 1;
    done.events_freed = census.events;
    done.events_given_up = census.unsettled;
    RecordPurge(table.relation, done);

    Relation partition = table_open(slot.relation, NoLock);
    *locked = partition->rd_lockInfo.lockRelId;
    table_close(partition, NoLock);
    LockRelationIdForSession(locked, ShareLock);
    return true;
}

enum class Proof : uint8_t { Needed, Given };

enum class Emptied : uint8_t {
    Yes,
    InUse,  // somebody reads or locks it, or it is in the ring by now
    Lives,  // it holds live events: somebody else has written them
};

// Empties a slot that is not in the ring, so nobody but a reader of the table can be in it.
Emptied EmptySlot(DedupTable &table, int64_t generation, Proof proof) {
    const Slot &slot = table.SlotOf(generation);
    for (int64_t g = table.oldest_generation; g <= table.current_generation; g++)
        if (&table.SlotOf(g) == &slot) return Emptied::InUse;

    if (!ConditionalLockRelationOid(slot.relation, AccessShareLock)) return Emptied::InUse;
    Relation partition = table_open(slot.relation, NoLock);
    bool empty = RelationGetNumberOfBlocks(partition) == 0;
    table_close(partition, AccessShareLock);
    if (empty) return Emptied::Yes;
    if (!ConditionalLockRelationOid(slot.relation, AccessExclusiveLock)) return Emptied::InUse;
    if (proof == Proof::Needed && HasLive(CountRows(table, slot))) return Emptied::Lives;

    ReportProgress(table.relation, Phase::Empty, 0, 0);
    PurgeDone done = {};
    done.bytes_freed = DatumGetInt64(DirectFunctionCall1(pg_total_relation_size, ObjectIdGetDatum(slot.relation)));
    Execute(psprintf("TRUNCATE TABLE ONLY %s", QualifiedNameOf(slot.relation)));
    RecordPurge(table.relation, done);
    return Emptied::Yes;
}

// Takes all slots into the ring, so that what somebody else has written there is kept, counted and emptied as all else.
void AdoptStrays(const Pass &pass) {
    InStep(pass.dedup, pass.patience, [&](DedupTable &table) {
        int64_t first = table.current_generation - table.slot_count + 1;
        if (first >= table.oldest_generation) return false;
        CloseGate(pass.gate_timeout_ms);
        for (int64_t g = first; g < table.oldest_generation; g++) {
            RecordOpened(table.relation, g);
            RecordSealed(table.relation, g);
        }
        WriteRingPosition(table.relation, {table.slot_count, first, table.current_generation});
        return true;
    });
}

void WarnFull(const Pass &pass, const DedupTable &table, const char *detail) {
    if (RecordFull(table.relation, true) || pass.asked)
        ereport(WARNING,
                (errmsg("ring of dedup table \"%s\" could not turn", table.name), errdetail("%s", detail),
                 errhint("New events go on into the current generation; nothing is lost, but the table grows. The view "
                         "idem_purge_status tells what is in the way.")));
}

}  // namespace

bool IsSubscribed(const DedupTable &table) {
    auto has_subscription = [](Oid relation) {
        CatCList *subscriptions = SearchSysCacheList1(SUBSCRIPTIONRELMAP, ObjectIdGetDatum(relation));
        bool has = subscriptions->n_members > 0;
        ReleaseSysCacheList(subscriptions);
        return has;
    };
    bool subscribed = has_subscription(table.relation);
    for (int i = 0; i < table.slot_count && !subscribed; i++) subscribed = has_subscription(table.slots[i].relation);
    return subscribed;
}

Due WhatIsDue(const Pass &pass) {
    Due due = {};
    InStep(pass.dedup, pass.patience, [&](DedupTable &table) {
        for (int64_t g = table.oldest_generation; g < table.current_generation; g++)
            due.seal = due.seal || NeedsSeal(table, g, pass.pace);
        due.failed_before = HasFailed(table.relation);
        if (IsSubscribed(table)) return true;
        due.retire = MayHaveExpired(table);
        due.turn = IsTurnDue(table);
        due.tidy = table.strays || AnyWantsTouch(table, pass.pace);
        return true;
    });
    return due;
}

void SealGenerations(const Pass &pass) {
    int64_t next = INT64_MIN;
    std::optional<FilterBuild> build;
    auto seal_one = [&](DedupTable &table) {
        for (int64_t g = Max(next, table.oldest_generation); g < table.current_generation; g++) {
            if (!NeedsSeal(table, g, pass.pace)) continue;
            next = g + 1;
            build = Seal(table, g, pass.pace);
            return true;
        }
        return false;
    };
    while (InStep(pass.dedup, pass.patience, seal_one))
        if (build) PublishColumn(&*build);
}

void TidySlots(const Pass &pass) {
    bool lives = false;
    InStep(pass.dedup, pass.patience, [&](DedupTable &table) {
        for (int i = 0; i < table.slot_count; i++) {
            const Slot &slot = table.slots[i];
            if (WantsTouch(slot, pass.pace) && ConditionalLockRelationOid(slot.relation, ShareRowExclusiveLock))
                WatchPartition(slot.relation);
        }
        return true;
    });
    auto empty_all = [&](DedupTable &table) {
        for (int64_t g = table.current_generation - table.slot_count + 1; g < table.oldest_generation; g++)
            lives = EmptySlot(table, g, Proof::Needed) == Emptied::Lives || lives;
        return true;
    };
    InStep(pass.dedup, pass.patience, empty_all);
    if (lives) AdoptStrays(pass);
}

void RetireGenerations(const Pass &pass) {
    for (;;) {
        std::optional<FilterBuild> build;
        bool due = InStep(pass.dedup, pass.patience, [&](DedupTable &table) {
            // Somebody may have shortened by hand what its census says.
            if (pass.asked && table.oldest_generation < table.current_generation)
                build = Seal(table, table.oldest_generation, pass.pace);
            return MayHaveExpired(table);
        });
        if (build) PublishColumn(&*build);
        if (!due) return;
        MoveUnsettled(pass);

        int64_t generation = 0;
        LockRelId locked = {};
        bool retired = InStep(pass.dedup, pass.patience, [&](DedupTable &table) {
            generation = table.oldest_generation;
            return RetireOldest(pass, table, &locked);
        });
        if (!retired) return;
        // If somebody reads it, a later pass empties it.
        InStep(pass.dedup, pass.patience,
               [&](DedupTable &table) { return EmptySlot(table, generation, Proof::Given) == Emptied::Yes; });
        UnlockRelationIdForSession(&locked, ShareLock);
    }
}

void TurnRing(const Pass &pass) {
    std::optional<int64_t> before;
    bool lives = false;
    InStep(pass.dedup, pass.patience, [&](DedupTable &table) {
        int64_t current = table.current_generation;
        if (current + 1 - table.oldest_generation >= table.slot_count) {
            WarnFull(pass, table,
                     "All its slots hold generations with live events, or with events of open transactions.");
            return false;
        }
        switch (EmptySlot(table, current + 1, Proof::Needed)) {
            case Emptied::Yes:
                before = current;
                break;
            case Emptied::InUse:
                WarnFull(pass, table, "Somebody is reading or locking the next slot.");
                break;
            case Emptied::Lives:
                WarnFull(pass, table, "Somebody else has written live events to the next slot.");
                lives = true;
                break;
        }
        return true;
    });
    if (lives) AdoptStrays(pass);
    if (!before) return;

    InStep(pass.dedup, pass.patience, [&](DedupTable &table) {
        // Someone may have opened it meanwhile.
        if (table.current_generation != *before) return false;
        ReportProgress(table.relation, Phase::Turn, 0, 0);
        CloseGate(pass.gate_timeout_ms);
        RecordSealed(table.relation, table.current_generation);
        RecordOpened(table.relation, table.current_generation + 1);
        WriteRingPosition(table.relation, {table.slot_count, table.oldest_generation, table.current_generation + 1});
        RecordPurge(table.relation, PurgeDone{.turned = 1});
        RecordFull(table.relation, false);
        return true;
    });
}

}  // namespace idem
