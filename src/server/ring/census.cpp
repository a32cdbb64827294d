#include "server/ring/census.hpp"

namespace idem {

void FetchPageOf(TupleTableSlot *tuple) {
    constexpr int kCacheLine = 64;

    if (!TTS_IS_BUFFERTUPLE(tuple)) return;
    const char *page = BufferGetPage(reinterpret_cast<BufferHeapTupleTableSlot *>(tuple)->buffer);
    for (int at = 0; at < BLCKSZ; at += kCacheLine) __builtin_prefetch(page + at);
}

bool Pacer::AtPage(BlockNumber page) {
    constexpr BlockNumber kPagesBetweenRests = 256;
    constexpr long kLongestRest = 1000;  // ms

    if (page == page_) return false;
    page_ = page;
    if (page % kPagesBetweenRests != 0) return true;
    CHECK_FOR_INTERRUPTS();
    ReportProgress(errand_.dedup, errand_.phase, page, pages_);
    if (errand_.pace == Pace::AtOnce) return true;
    long worked = TimestampDifferenceMilliseconds(began_, GetCurrentTimestamp());
    if (worked <= 0) return true;
    WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, Min(worked, kLongestRest), PG_WAIT_EXTENSION);
    ResetLatch(MyLatch);
    CHECK_FOR_INTERRUPTS();
    began_ = GetCurrentTimestamp();
    return true;
}

Census CountRows(const DedupTable &table, const Slot &slot) {
    Relation partition = table_open(slot.relation, NoLock);
    // Somebody else's cursor may have lost the lock on rows that it wrote, and that are open all the same (UnderGate).
    SnapshotData dirty;
    InitDirtySnapshot(dirty);
    Census census =
        TakeCensus(slot, partition, &dirty, {table.relation, Phase::Retire, Pace::AtOnce}, [](const Key &) {});
    table_close(partition, NoLock);
    return census;
}

bool HasLive(const Census &census, Micros now) {
    return census.newest_expiry.value_or(now) > now || census.newest_unsettled_expiry.value_or(now) > now;
}

}  // namespace idem
