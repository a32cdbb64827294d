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
        due.retire = MayHaveExpired(table) || ExpiredBeforeOlder(table);
        due.turn = IsTurnDue(table);
        due.tidy = table.strays || AnyWantsTouch(table, pass.pace);
        return true;
    });
    return due;
}

}  // namespace idem
