#include "server/ring/due.hpp"

#include "core/ring.hpp"
#include "server/ring/clear.hpp"
#include "server/ring/empty.hpp"
#include "server/ring/record.hpp"
#include "server/ring/retire.hpp"
#include "server/ring/seal.hpp"
#include "server/table/generation.hpp"

namespace idem {
namespace {

// Whether the current generation has had its time, and holds anything.
bool IsTurnDue(DedupTable &table) {
    std::optional<Generation> current = ReadGeneration(table.relation, table.current_generation);
    if (!current) return false;
    Micros expiries[kMostSlots];
    int count = 0;
    for (int64_t g = table.oldest_generation; g < table.current_generation; g++) {
        std::optional<Generation> sealed = ReadGeneration(table.relation, g);
        if (!sealed || !sealed->census) break;
        expiries[count++] = sealed->census->newest_expiry.value_or(sealed->scanned_at);
    }
    Micros now = GetCurrentTimestamp();
    auto used = static_cast<int>(table.current_generation - table.oldest_generation + 1);
    Micros turns_at = TurnsAt(current->opened_at, GenerationSpan(table.policy.windows.cold, table.slot_count),
                              table.slot_count - used, {expiries, static_cast<size_t>(count)}, now);
    if (!IsTimeToTurn(current->opened_at, turns_at, now)) return false;
    Relation partition = table_open(table.SlotOf(table.current_generation).relation, AccessShareLock);
    bool holds_rows = RelationGetNumberOfBlocks(partition) > 0;
    table_close(partition, AccessShareLock);
    return holds_rows;
}

}  // namespace

bool IsSubscribed(const DedupTable &table) {
    // Most databases subscribe to nothing, and then this catalog is empty: the cache would scan its index each time.
    bool subscribed = false;
    Relation catalog = table_open(SubscriptionRelRelationId, AccessShareLock);
    SysScanDesc scan = systable_beginscan(catalog, InvalidOid, false, nullptr, 0, nullptr);
    while (HeapTuple tuple = systable_getnext(scan)) {
        Oid relation = reinterpret_cast<Form_pg_subscription_rel>(GETSTRUCT(tuple))->srrelid;
        subscribed = subscribed || relation == table.relation;
        for (int i = 0; i < table.slot_count; i++) subscribed = subscribed || relation == table.slots[i].relation;
    }
    systable_endscan(scan);
    table_close(catalog, AccessShareLock);
    return subscribed;
}

Due WhatIsDue(const Pass &pass) {
    Due due = {};
    InStep(pass.dedup, pass.patience, [&](DedupTable &table) {
        for (int64_t g = table.oldest_generation; g < table.current_generation; g++)
            due.seal = due.seal || NeedsSeal(table, g, pass.pace);
        PurgeRecord record = ReadPurgeRecord(table.relation);
        due.record = record.failed || IsPassNews(record.last_pass);
        if (IsSubscribed(table)) return true;
        due.retire = MayHaveExpired(table) || ExpiredBeforeOlder(table);
        due.turn = IsTurnDue(table);
        due.tidy = table.strays || AnyWantsTouch(table, pass.pace);
        return true;
    });
    return due;
}

}  // namespace idem
