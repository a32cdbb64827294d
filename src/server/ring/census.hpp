// Looks through a whole generation: how many events it holds, and until when they live.
#pragma once

#include "core/key.hpp"
#include "server/base/extension.hpp"
#include "server/base/postgres.hpp"
#include "server/ring/progress.hpp"
#include "server/ring/step.hpp"
#include "server/table/dedup_table.hpp"
#include "server/table/generation.hpp"

namespace idem {

// Of which dedup table, and what for; the worker tells it.
struct Errand {
    Oid dedup;
    Phase phase;
    Pace pace;
};

// Between two pages: tells how far it is, lets others interrupt, and rests.
class Pacer {
public:
    Pacer(const Errand &errand, BlockNumber pages) : errand_(errand), pages_(pages), began_(GetCurrentTimestamp()) {}
    bool AtPage(BlockNumber page);  // false: it was there already

private:
    Errand errand_;
    BlockNumber pages_;
    TimestampTz began_;
    BlockNumber page_ = InvalidBlockNumber;
};

// Has the processor fetch the tuple's whole page: rows are large enough that each would be waited for.
void FetchPageOf(TupleTableSlot *tuple);

// Takes the census of a partition with its rows as the snapshot shows them, and calls use(key) on each. SnapshotDirty
// shows rows of open transactions too. The caller has opened the partition, with whatever lock it needs.
template <class F>
Census TakeCensus(const Slot &slot, Relation partition, Snapshot snapshot, const Errand &errand, F use) {
    AttrNumber key = slot.columns.numbers[static_cast<int>(Column::Key)];
    AttrNumber state = slot.columns.numbers[static_cast<int>(Column::State)];
    AttrNumber expires_at = slot.columns.numbers[static_cast<int>(Column::ExpiresAt)];
    Oid done = InstalledExtension().states[static_cast<int>(State::Done)];
    Census census = {};
    Pacer pacer(errand, RelationGetNumberOfBlocks(partition));
    TableScanDesc scan = BeginTableScan(partition, snapshot);
    TupleTableSlot *tuple = table_slot_create(partition, nullptr);
    while (table_scan_getnextslot(scan, ForwardScanDirection, tuple)) {
        if (pacer.AtPage(ItemPointerGetBlockNumber(&tuple->tts_tid))) FetchPageOf(tuple);
        bool null = false;
        Micros expiry = DatumGetTimestampTz(slot_getattr(tuple, expires_at, &null));
        bool settled = DatumGetObjectId(slot_getattr(tuple, state, &null)) == done;
        std::optional<Micros> &newest = settled ? census.newest_expiry : census.newest_unsettled_expiry;
        if (!newest || expiry > *newest) newest = expiry;
        census.events++;
        if (!settled) census.unsettled++;
        use(*reinterpret_cast<const Key *>(DatumGetUUIDP(slot_getattr(tuple, key, &null))));
    }
    ExecDropSingleTupleTableSlot(tuple);
    table_endscan(scan);
    return census;
}

// The partition's rows as they are now, for who is to retire or empty it. The caller's ShareLock keeps writers out, and
// whoever has written there and is still open, a prepared transaction too, would have kept the caller out.
Census CountRows(const DedupTable &table, const Slot &slot);

bool HasLive(const Census &census, Micros now);

}  // namespace idem
