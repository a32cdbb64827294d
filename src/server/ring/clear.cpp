#include "server/ring/clear.hpp"

#include "server/ring/census.hpp"
#include "server/ring/clock_watch.hpp"
#include "server/ring/empty.hpp"
#include "server/ring/move.hpp"
#include "server/ring/record.hpp"
#include "server/table/gate.hpp"
#include "server/table/generation.hpp"

namespace idem {
namespace {

bool MayHaveExpired(const DedupTable &table, int64_t generation) {
    std::optional<Generation> known = ReadGeneration(table.relation, generation);
    if (!known || !known->census || known->census->events == 0) return false;
    std::optional<Micros> now = PurgeTime();
    return now && known->census->newest_expiry.value_or(*now) <= *now;
}

// The next one to be cleared from `from` on; nothing if there is none.
std::optional<int64_t> NextExpired(const DedupTable &table, int64_t from) {
    for (int64_t g = Max(from, table.oldest_generation + 1); g < table.current_generation; g++)
        if (MayHaveExpired(table, g)) return g;
    return std::nullopt;
}

// Proves that nothing alive is left. On success the session has the partition locked against everybody, and no call is
// under way that has seen its rows: whoever looks into it later waits outside the gate.
bool ProveExpired(const Pass &pass, DedupTable &table, int64_t generation, Census *census, LockRelId *locked) {
    bool sealed = generation > table.oldest_generation && generation < table.current_generation;
    if (!sealed || !MayHaveExpired(table, generation)) return false;
    const Slot &slot = table.SlotOf(generation);
    if (!ConditionalLockRelationOid(slot.relation, ShareLock)) return false;
    *census = CountRows(table, slot);
    std::optional<Micros> now = PurgeTime();
    if (!now) return false;
    if (HasLive(*census, *now)) {
        RecordCensus(table.relation, generation, *census);
        return true;
    }
    if (!ConditionalLockRelationOid(slot.relation, AccessExclusiveLock)) return false;
    Relation partition = table_open(slot.relation, NoLock);
    LockRelId relation = partition->rd_lockInfo.lockRelId;
    table_close(partition, NoLock);
    CloseGate(pass.gate_timeout_ms);
    LockRelationIdForSession(&relation, AccessExclusiveLock);
    *locked = relation;
    return true;
}

}  // namespace

bool ExpiredBeforeOlder(const DedupTable &table) { return NextExpired(table, INT64_MIN).has_value(); }

void ClearGenerations(const Pass &pass) {
    int64_t next = INT64_MIN;
    auto find = [&](DedupTable &table) {
        std::optional<int64_t> found = NextExpired(table, next);
        if (found) next = *found;
        return found.has_value();
    };
    for (; InStep(pass.dedup, pass.patience, find); next++) {
        MoveUnsettled(pass, next);
        Census census = {};
        LockRelId locked = {};
        InStep(pass.dedup, pass.patience,
               [&](DedupTable &table) { return ProveExpired(pass, table, next, &census, &locked); });
        if (!OidIsValid(locked.relId)) continue;
        InStep(pass.dedup, pass.patience, [&](DedupTable &table) {
            for (int i = 0; i < table.slot_count; i++)
                if (table.slots[i].relation == locked.relId) TruncateSlot(table, table.slots[i]);
            RecordCensus(table.relation, next, Census{});
            RecordPurge(table.relation, PurgeDone{.events_freed = census.events, .events_given_up = census.unsettled});
            return true;
        });
        UnlockRelationIdForSession(&locked, AccessExclusiveLock);
    }
}

}  // namespace idem
