#include "server/ring/seal.hpp"

#include "server/table/edition.hpp"
#include "server/table/generation.hpp"

namespace idem {
namespace {

constexpr Micros kBetweenScansOfTouched = 3600 * kSecond;

// How many keys a generation's filter is made for: those of the largest, told by the size of its primary key. A page of
// a B-tree filled in random order holds some 200 of them.
int64_t KeysPerGeneration(DedupTable &table) {
    constexpr int64_t kKeysPerPage = 200;
    BlockNumber most_pages = 0;
    for (int64_t g = table.oldest_generation; g < table.current_generation; g++) {
        Relation partition = table_open(table.SlotOf(g).relation, AccessShareLock);
        Relation index = index_open(PrimaryKeyIndex(partition), AccessShareLock);
        most_pages = Max(most_pages, RelationGetNumberOfBlocks(index));
        index_close(index, AccessShareLock);
        table_close(partition, AccessShareLock);
    }
    return most_pages * kKeysPerPage;
}

bool HasFilter(DedupTable &table) {
    Oid partitions[kMostSlots];
    for (int i = 0; i < table.slot_count; i++) partitions[i] = table.slots[i].relation;
    return PrepareFilter(table.relation, partitions, table.slot_count, KeysPerGeneration(table));
}

}  // namespace

bool HasColumn(DedupTable &table, int64_t generation) {
    const Slot &slot = table.SlotOf(generation);
    return slot.watched && table.filter >= 0 && IsPublished(table.relation, slot.number, generation);
}

bool NeedsSeal(DedupTable &table, int64_t generation, Pace pace) {
    std::optional<Generation> known = ReadGeneration(table.relation, generation);
    if (!known) return false;
    if (!known->census) return true;
    const Slot &slot = table.SlotOf(generation);
    if (!slot.watched || HasColumn(table, generation) || !HasFilter(table)) return false;
    bool rests = pace == Pace::WithRests && IsTouched(table.relation, slot.number);
    return !rests || known->scanned_at + kBetweenScansOfTouched < GetCurrentTimestamp();
}

std::optional<BuiltColumn> Seal(DedupTable &table, int64_t generation, Pace pace) {
    const Slot &slot = table.SlotOf(generation);
    if (!ConditionalLockRelationOid(slot.relation, AccessShareLock)) return std::nullopt;
    Relation partition = table_open(slot.relation, NoLock);
    FilterBuild build;
    bool builds = slot.watched && HasFilter(table) && StartColumn(table.relation, slot.number, generation, &build);
    if (builds) VouchFor(build, EditionOf(slot.relation));

    // A snapshot kept for so long would keep the server from removing dead rows anywhere.
    PopActiveSnapshot();
    // Rows of transactions that are still open are in it: they were claimed before the generation was sealed.
    SnapshotData dirty;
    InitDirtySnapshot(dirty);
    Census census = TakeCensus(slot, partition, &dirty, {table.relation, Phase::Seal, pace}, [&](const Key &key) {
        if (builds) AddToColumn(&build, key);
    });
    PushActiveSnapshot(GetTransactionSnapshot());
    table_close(partition, NoLock);

    std::optional<BuiltColumn> built;
    if (builds) built = FinishColumn(&build);
    LimitLockWaits();
    RecordCensus(table.relation, generation, census);
    // Sessions look for the table's filter when they load the table.
    CacheInvalidateRelcacheByRelid(table.relation);
    return built;
}

void SealGenerations(const Pass &pass) {
    int64_t next = INT64_MIN;
    std::optional<BuiltColumn> built;
    auto seal_one = [&](DedupTable &table) {
        for (int64_t g = Max(next, table.oldest_generation); g < table.current_generation; g++) {
            if (!NeedsSeal(table, g, pass.pace)) continue;
            next = g + 1;
            built = Seal(table, g, pass.pace);
            return true;
        }
        return false;
    };
    while (InStep(pass.dedup, pass.patience, seal_one))
        if (built) PublishColumn(*built);
}

}  // namespace idem
