// How claims are decided, and the receiving of an event that is claimed later.
#include <algorithm>

#include "core/deciding.hpp"

namespace idem {
namespace {

// How far a sender's clock may be off before an event is taken for older or younger than it is.
Micros ClockMargin(Micros cold_window) { return std::min(3600 * kSecond, cold_window / 10); }

// So old that it may have been settled and forgotten: nobody can tell.
bool Stale(const Request &request, Micros now) {
    Micros cold = request.windows.cold;
    return request.has_occurred_at && request.occurred_at < now - (cold - ClockMargin(cold));
}

// Waits to be claimed, at once or later.
Record Received(const Request &request, const Record &before, Micros now) {
    Record record = Waiting(request, before, now);
    record.claimable_at = std::max(now, request.not_before);
    record.expires_at = record.claimable_at + request.windows.unresolved;
    if (request.behind && record.claimable_at == now) record.claimable_at = kLongAgo;
    return record;
}

}  // namespace

Decision DecideClaim(const Request &request, const Sighting &seen, Micros now) {
    const Record &record = seen.record;

    if (Absent(seen, now)) {
        if (Stale(request, now)) return Keep(Outcome::Stale, Record{}, kForever);
        return Write(seen, Outcome::Acquired, FirstClaim(request, seen, now), kForever);
    }
    if (seen.holder == Holder::Other) return Keep(Outcome::Busy, record, kOpenTransactionRetry);
    if (seen.fingerprint == FingerprintMatch::Different) return Keep(Outcome::Conflict, record, kForever);

    // The holder asks again, not knowing whether its acquire was committed.
    bool same_claim = request.action == Action::Acquire && seen.same_owner;
    if (seen.holder == Holder::OursOpen)
        return same_claim ? Keep(Outcome::Acquired, record, kForever)
                          : Keep(Outcome::Busy, record, kOpenTransactionRetry);
    Outcome outcome = Standing(record, now);
    if (outcome == Outcome::Busy && same_claim) return Keep(Outcome::Acquired, record, kForever);
    if (outcome != Outcome::Acquired) return Keep(outcome, record, RetryAfter(record, outcome, now));

    // A lease ran out: perhaps this event kills its workers. It is handed out alone, so that it takes no others with
    // it; and it is a try that failed without a word, unless others were in the same hands and any of them may be to
    // blame.
    Record last = record;
    bool ran_out = record.state == State::Processing;
    if (ran_out && request.together) return Keep(Outcome::Busy, record, 0);
    bool to_blame = ran_out && !record.together;
    if (to_blame) CountFailure(&last);
    if (to_blame && Exhausted(request, last)) return Write(seen, Outcome::Dead, GivenUp(request, last, now), kForever);
    Record next = NextClaim(request, seen, now);
    next.failures = last.failures;
    return Write(seen, Outcome::Acquired, next, kForever);
}

Decision DecideReceive(const Request &request, const Sighting &seen, Micros now) {
    const Record &record = seen.record;

    if (Absent(seen, now)) {
        if (Stale(request, now)) return Keep(Outcome::Stale, Record{}, kForever);
        Record received = {};
        received.attempt = seen.found ? record.attempt : 0;
        received.first_seen_at = now;
        received.claimed_at = received.attempt == 0 ? now : kLongAgo;
        return Write(seen, Outcome::Acquired, Received(request, received, now), kForever);
    }
    if (seen.holder == Holder::Other) return Keep(Outcome::Busy, record, kOpenTransactionRetry);
    // What was not claimed since it was received is known to nobody but its sender, who may change his mind.
    bool unclaimed = record.attempt == 0 || record.claimed_at == kLongAgo;
    bool replaceable = record.state == State::Pending && unclaimed && seen.holder != Holder::OursOpen;
    if (request.replaces && replaceable) {
        // Who else waits in its ordering key may wait behind it.
        Request alone = request;
        alone.behind = false;
        return Write(seen, Outcome::Acquired, Received(alone, record, now), kForever);
    }
    if (seen.fingerprint == FingerprintMatch::Different) return Keep(Outcome::Conflict, record, kForever);
    // Whatever its state, it is remembered, which is all that was asked.
    return Keep(record.state == State::Dead ? Outcome::Dead : Outcome::Duplicate, record, kForever);
}

}  // namespace idem
