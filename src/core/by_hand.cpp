// What is decided for those who do not work on the event: who requeues or resolves it by hand, and who moves it beyond
// the end of its generation.
#include "core/clock.hpp"
#include "core/deciding.hpp"

namespace idem {
namespace {

// In the hands of an open transaction.
bool Open(const Sighting &seen) { return seen.holder == Holder::Other || seen.holder == Holder::OursOpen; }

// Claimed or extended while the clock was ahead: it would keep others out until the clock comes there, and nobody can
// tell when it should have run out.
bool LeaseIsToCome(const Request &request, const Record &record, Micros now) {
    // As many hot windows as the events of any batch that idem_due hands out.
    constexpr Micros kLongestInHotWindows = 1000;
    return IsToCome(record.claimed_at, now) ||
           IsToCome(record.claimable_at, now + kLongestInHotWindows * request.windows.hot);
}

// Only what is unsettled and in nobody's hands may be changed.
bool MayChange(const Request &request, const Sighting &seen, Micros now) {
    if (Open(seen)) return false;
    Outcome standing = Standing(seen.record, now);
    if (standing == Outcome::Busy) return LeaseIsToCome(request, seen.record, now);
    return standing != Outcome::Duplicate;
}

Decision TellUnchanged(const Sighting &seen, Micros now) {
    return Open(seen) ? Keep(Outcome::Busy, seen.record, kOpenTransactionRetry) : Tell(seen.record, now);
}

}  // namespace

// A lease that ran out is taken from its holder, as by the next claim.
Decision DecideRequeue(const Request &request, const Sighting &seen, Micros now) {
    const Record &record = seen.record;
    if (Absent(seen, now)) return Refuse(Fault::NoSuchEvent, record);
    // What waits behind an earlier event of its ordering key is let go on so, too.
    bool due = Due(record, now) && record.claimable_at != kLongAgo;
    bool as_requeued = record.state == State::Pending && due && record.failures == 0;
    if (as_requeued || !MayChange(request, seen, now)) return TellUnchanged(seen, now);
    return Write(seen, Outcome::Backoff, Waiting(request, record, now), 0);
}

// The attempt is taken over from whoever may still be at work, and would commit what was settled otherwise.
Decision DecideResolve(const Request &request, const Sighting &seen, Micros now) {
    const Record &record = seen.record;
    if (Absent(seen, now)) return Refuse(Fault::NoSuchEvent, record);
    if (!MayChange(request, seen, now)) return TellUnchanged(seen, now);
    Record resolved = Committed(request, record, now);
    resolved.attempt = NextAttempt(record.attempt);
    return Write(seen, Outcome::Duplicate, resolved, kForever);
}

// Only unsettled events outlive their generation: settled ones have expired when it is emptied.
Decision DecideMove(const Sighting &seen, Micros now) {
    const Record &record = seen.record;
    bool stays = Absent(seen, now) || seen.holder != Holder::Nobody || !seen.sealed || record.state == State::Done;
    return stays ? Keep(Outcome::Busy, record, kForever) : Write(seen, Outcome::Busy, record, kForever);
}

}  // namespace idem
