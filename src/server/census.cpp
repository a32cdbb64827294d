#include "server/census.hpp"

namespace idem {

void Pacer::AtPage(BlockNumber page) {
    constexpr BlockNumber kPagesBetweenRests = 256;
    constexpr long kLongestRest = 1000;  // ms

    if (page == page_) return;
    page_ = page;
    if (page % kPagesBetweenRests != 0) return;
    CHECK_FOR_INTERRUPTS();
    ReportProgress(errand_.dedup, errand_.phase, page, pages_);
    if (errand_.pace == Pace::AtOnce) return;
    long worked = TimestampDifferenceMilliseconds(began_, GetCurrentTimestamp());
    if (worked <= 0) return;
    WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, Min(worked, kLongestRest), PG_WAIT_EXTENSION);
    ResetLatch(MyLatch);
    CHECK_FOR_INTERRUPTS();
    began_ = GetCurrentTimestamp();
}

}  // namespace idem
