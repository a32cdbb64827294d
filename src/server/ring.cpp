#include "server/ring.hpp"

#include "server/dedup_table.hpp"
#include "server/gate.hpp"
#include "server/registry.hpp"
#include "server/slot_access.hpp"

namespace idem {
namespace {

// Callers hold the gate for microseconds; more than this means that something is wrong with one of them.
constexpr int kGateTimeoutMs = 1000;

// Starts a step's transaction: nobody else turns or retires this ring until it ends.
DedupTable *LockRing(Oid dedup) {
    LockRelationOid(dedup, ShareUpdateExclusiveLock);
    return OpenDedupTable(dedup);
}

RingPosition PositionOf(const DedupTable &table) {
    return {table.slot_count, table.oldest_generation, table.current_generation};
}

// Whether a row in the partition may still decide something. The caller's ShareLock keeps writers out.
bool HasLiveRow(const Slot &slot, Relation partition) {
    Snapshot snapshot = RegisterSnapshot(GetLatestSnapshot());
    TableScanDesc scan = table_beginscan(partition, snapshot, 0, nullptr);
    TupleTableSlot *tuple = table_slot_create(partition, nullptr);
    AttrNumber expires_at = slot.columns.numbers[static_cast<int>(Column::ExpiresAt)];
    TimestampTz now = GetCurrentTimestamp();
    bool live = false;
    while (!live && table_scan_getnextslot(scan, ForwardScanDirection, tuple)) {
        CHECK_FOR_INTERRUPTS();
        bool null = false;
        live = DatumGetTimestampTz(slot_getattr(tuple, expires_at, &null)) > now;
    }
    ExecDropSingleTupleTableSlot(tuple);
    table_endscan(scan);
    UnregisterSnapshot(snapshot);
    return live;
}

// Takes the oldest generation out of the ring if all of it has expired; false if it hasn't, or is still in use.
bool RetireOldest(Oid dedup) {
    DedupTable *table = LockRing(dedup);
    RingPosition position = PositionOf(*table);
    if (position.oldest == position.current) return false;

    // Whoever has claims there holds a lock until its transaction ends, a prepared one too.
    const Slot &oldest = table->SlotOf(position.oldest);
    if (!ConditionalLockRelationOid(oldest.relation, ShareLock)) return false;
    Relation partition = table_open(oldest.relation, NoLock);
    bool live = HasLiveRow(oldest, partition);
    table_close(partition, NoLock);
    if (live) return false;

    CloseGate(kGateTimeoutMs);
    position.oldest++;
    WriteRingPosition(dedup, position);
    return true;
}

// Empties a slot that is not in the ring, so nobody but a reader of the table can be in it; false if one is, or the
// slot is in the ring by now. An empty slot may be read by anybody.
bool EmptySlot(Oid dedup, int64_t generation) {
    DedupTable *table = LockRing(dedup);
    const Slot &slot = table->SlotOf(generation);
    for (int64_t g = table->oldest_generation; g <= table->current_generation; g++)
        if (&table->SlotOf(g) == &slot) return false;

    if (!ConditionalLockRelationOid(slot.relation, AccessShareLock)) return false;
    Relation partition = table_open(slot.relation, NoLock);
    bool empty = RelationGetNumberOfBlocks(partition) == 0;
    table_close(partition, AccessShareLock);
    if (empty) return true;
    if (!ConditionalLockRelationOid(slot.relation, AccessExclusiveLock)) return false;

    char *name =
        quote_qualified_identifier(get_namespace_name(get_rel_namespace(slot.relation)), get_rel_name(slot.relation));
    // A procedure's portal brings a snapshot along, the worker has none.
    PushActiveSnapshot(GetTransactionSnapshot());
    int result = SPI_execute(psprintf("TRUNCATE TABLE ONLY %s", name), false, 0);
    PopActiveSnapshot();
    if (result != SPI_OK_UTILITY) elog(ERROR, "could not empty \"%s\": %s", name, SPI_result_code_string(result));
    return true;
}

// Opens the next generation. Someone may have done so since the caller looked; then it is open already.
void OpenNext(Oid dedup, int64_t current) {
    DedupTable *table = LockRing(dedup);
    RingPosition position = PositionOf(*table);
    if (position.current != current) return;
    CloseGate(kGateTimeoutMs);
    position.current++;
    WriteRingPosition(dedup, position);
}

void Warn(const DedupTable &table, const char *detail) {
    ereport(WARNING, (errmsg("ring of dedup table \"%s\" could not turn", table.name), errdetail("%s", detail),
                      errhint("New events go on into the current generation; nothing is lost, but the table grows.")));
}

}  // namespace

void RotateRing(Oid dedup) {
    // ALTER TABLE OWNER does not reach the partitions, and only their owner may empty them.
    DedupTable *loaded = OpenDedupTable(dedup);
    for (int slot = 0; slot < loaded->slot_count; slot++) CheckOwner(loaded->slots[slot].relation);

    for (;;) {
        int64_t oldest = LockRing(dedup)->oldest_generation;
        bool retired = RetireOldest(dedup);
        SPI_commit();
        if (!retired) break;
        // If somebody reads it, a later turn of the ring empties it.
        (void)EmptySlot(dedup, oldest);
        SPI_commit();
    }

    DedupTable *table = LockRing(dedup);
    int64_t current = table->current_generation;
    if (current + 1 - table->oldest_generation >= table->slot_count) {
        Warn(*table, "All its slots hold generations with live events, or with events of open transactions.");
        SPI_commit();
        return;
    }
    if (!EmptySlot(dedup, current + 1)) {
        Warn(*table, "Somebody is reading or locking the next slot.");
        SPI_commit();
        return;
    }
    SPI_commit();

    OpenNext(dedup, current);
    SPI_commit();
}

}  // namespace idem
