#include "server/ring/empty.hpp"

#include "server/base/statement.hpp"
#include "server/ring/census.hpp"
#include "server/ring/clock_watch.hpp"
#include "server/ring/record.hpp"
#include "server/table/gate.hpp"
#include "server/table/generation.hpp"
#include "server/table/registry.hpp"
#include "server/table/watch.hpp"

namespace idem {
namespace {

// Whether a partition is to get back the trigger that tells of others' writes. The worker doesn't make one that is not
// there: it may come to a table that is just being restored, and pg_restore makes the trigger last.
bool WantsTouch(const Slot &slot, Pace pace) { return !slot.watched && (slot.has_touch || pace == Pace::AtOnce); }

}  // namespace

bool AnyWantsTouch(const DedupTable &table, Pace pace) {
    for (int i = 0; i < table.slot_count; i++)
        if (WantsTouch(table.slots[i], pace)) return true;
    return false;
}

void TruncateSlot(const DedupTable &table, const Slot &slot) {
    ReportProgress(table.relation, Phase::Empty, 0, 0);
    PurgeDone done = {};
    done.bytes_freed = DatumGetInt64(DirectFunctionCall1(pg_total_relation_size, ObjectIdGetDatum(slot.relation)));
    Execute(psprintf("TRUNCATE TABLE ONLY %s", QualifiedNameOf(slot.relation)));
    LimitLockWaits();
    RecordPurge(table.relation, done);
    ereport(LOG,
            (errmsg("idem emptied partition \"%s\" of dedup table \"%s\"", get_rel_name(slot.relation), table.name),
             errdetail("%lld bytes were freed.", static_cast<long long>(done.bytes_freed))));
}

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
    if (proof == Proof::Needed) {
        Census census = CountRows(table, slot);
        std::optional<Micros> now = PurgeTime();
        if (!now) return Emptied::Doubted;
        if (HasLive(census, *now)) return Emptied::Lives;
    }

    TruncateSlot(table, slot);
    return Emptied::Yes;
}

void AdoptStrays(const Pass &pass) {
    InStep(pass.dedup, pass.patience, [&](DedupTable &table) {
        int64_t first = table.current_generation - table.slot_count + 1;
        if (first >= table.oldest_generation) return false;
        LimitLockWaits();
        for (int64_t g = first; g < table.oldest_generation; g++) {
            RecordOpened(table.relation, g);
            RecordSealed(table.relation, g);
        }
        WriteRingPosition(table.relation, {table.slot_count, first, table.current_generation});
        CloseGate(pass.gate_timeout_ms);
        return true;
    });
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

}  // namespace idem
