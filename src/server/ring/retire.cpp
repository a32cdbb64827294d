#include "server/ring/retire.hpp"

#include "server/ring/census.hpp"
#include "server/ring/clock_watch.hpp"
#include "server/ring/empty.hpp"
#include "server/ring/move.hpp"
#include "server/ring/record.hpp"
#include "server/ring/seal.hpp"
#include "server/table/filter_memory.hpp"
#include "server/table/gate.hpp"
#include "server/table/ghosts.hpp"
#include "server/table/registry.hpp"

namespace idem {
namespace {

// Takes the oldest generation out of the ring. On success its partition stays locked by the session against writers,
// so that what was proved of it stays true until it is emptied; `locked` says what to unlock.
bool RetireOldest(const Pass &pass, DedupTable &table, LockRelId *locked) {
    int64_t generation = table.oldest_generation;
    std::optional<Micros> now = PurgeTime();
    if (!now || !MayHaveExpired(table)) return false;

    const Slot &slot = table.SlotOf(generation);
    if (!ConditionalLockRelationOid(slot.relation, ShareLock)) return false;
    LimitLockWaits();
    Census census = {};
    std::optional<Generation> known = ReadGeneration(table.relation, generation);
    bool vouched = known && known->census && table.current && HasColumn(table, generation);
    if (vouched) census = *known->census;
    if (pass.verify || !vouched || census.unsettled > 0) {
        census = CountRows(table, slot);
        if (HasLive(census, *now)) {
            RecordCensus(table.relation, generation, census);
            return false;
        }
    }
    if (census.unsettled > 0)
        ereport(LOG, (errmsg("idem forgets %lld unsettled events of dedup table \"%s\"",
                             static_cast<long long>(census.unsettled), table.name),
                      errdetail("They were neither settled nor resolved within the table's unresolved_window.")));

    KeepGhost(table.relation, slot.number, generation);
    WriteRingPosition(table.relation, {table.slot_count, generation + 1, table.current_generation});
    RecordRetired(table.relation, generation);
    PurgeDone done = {};
    done.retired = 1;
    done.events_freed = census.events;
    done.events_given_up = census.unsettled;
    RecordPurge(table.relation, done);
    CloseGate(pass.gate_timeout_ms);
    UnpublishColumn(table.relation, slot.number);

    Relation partition = table_open(slot.relation, NoLock);
    *locked = partition->rd_lockInfo.lockRelId;
    table_close(partition, NoLock);
    LockRelationIdForSession(locked, ShareLock);
    return true;
}

}  // namespace

bool MayHaveExpired(const DedupTable &table) {
    if (table.oldest_generation == table.current_generation) return false;
    std::optional<Generation> oldest = ReadGeneration(table.relation, table.oldest_generation);
    if (!oldest || !oldest->census) return PurgeTime().has_value();
    std::optional<Micros> now = PurgeTime();
    return now && oldest->census->newest_expiry.value_or(*now) <= *now;
}

void RetireGenerations(const Pass &pass) {
    for (;;) {
        std::optional<BuiltColumn> built;
        int64_t generation = 0;
        bool due = InStep(pass.dedup, pass.patience, [&](DedupTable &table) {
            generation = table.oldest_generation;
            // Somebody may have shortened by hand what its census says.
            if (pass.asked && table.oldest_generation < table.current_generation)
                built = Seal(table, table.oldest_generation, pass.pace);
            return MayHaveExpired(table);
        });
        if (built) PublishColumn(*built);
        if (!due) return;
        MoveUnsettled(pass, generation);

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

}  // namespace idem
