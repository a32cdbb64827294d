// How the settling of a claim and its heartbeat are decided: only its holder may.
#include "core/backoff.hpp"
#include "core/deciding.hpp"

namespace idem {
namespace {

// In transaction mode a record says "done" since its claim. When the work took longer than this part of the cold
// window, settling writes it anew, so that the window still counts from settling.
Micros Unnoticed(Micros cold_window) { return cold_window / 100; }

// The record once its claim is failed or given back.
Record Released(const Request &request, const Record &before, Micros now) {
    Record record = before;
    bool fails = request.action == Action::Fail;
    if (fails) CountFailure(&record);
    if (fails && (request.gives_up || Exhausted(request, record))) return GivenUp(request, record, now);
    record.state = fails ? State::Failed : State::Pending;
    record.together = false;
    bool backs_off = fails && request.backs_off;
    record.claimable_at = now + (backs_off ? PauseAfter(request.backoff, record.failures) : request.retry_after);
    record.settled_at = 0;
    record.expires_at = record.claimable_at + request.windows.unresolved;
    return record;
}

Decision Release(const Sighting &seen, const Record &released, Micros now) {
    Outcome outcome = released.state == State::Dead ? Outcome::Dead : Outcome::Backoff;
    return Write(seen, outcome, released, RetryAfter(released, outcome, now));
}

Decision Settle(const Request &request, const Sighting &seen, Micros now) {
    const Record &record = seen.record;
    if (request.action != Action::Commit) return Release(seen, Released(request, record, now), now);

    bool stands_already = record.state == State::Done && !request.has_result && !request.has_cold_window &&
                          now - record.claimed_at <= Unnoticed(request.windows.cold);
    if (stands_already) return Keep(Outcome::Duplicate, record, kForever);
    return Write(seen, Outcome::Duplicate, Committed(request, record, now), kForever);
}

// The claim was settled before: saying the same again is no error and gets the same answer, anything else is one.
Decision SettleAgain(const Request &request, const Sighting &seen, Micros now) {
    const Record &record = seen.record;
    bool same = (request.action == Action::Commit && record.state == State::Done) ||
                (request.action == Action::Fail && (record.state == State::Failed || record.state == State::Dead)) ||
                (request.action == Action::GiveBack && record.state == State::Pending);
    if (!same) return Refuse(Fault::NoSuchClaim, record);
    if (request.action == Action::Commit && !seen.same_result) return Refuse(Fault::ResultDiffers, record);
    return Tell(record, now);
}

Decision Extend(const Request &request, const Sighting &seen, Micros now) {
    const Record &record = seen.record;
    bool long_enough = record.state != State::Processing || record.claimable_at >= now + request.windows.hot;
    if (long_enough) return Keep(Outcome::Acquired, record, kForever);
    Record next = record;
    next.claimable_at = now + request.windows.hot;
    next.expires_at = next.claimable_at + request.windows.unresolved;
    return Write(seen, Outcome::Acquired, next, kForever);
}

// A release whose caller holds no claim (its work was rolled back): it records a failure where nobody else tries or has
// settled the event meanwhile, and otherwise only tells what happened.
Decision RecordFailure(const Request &request, const Sighting &seen, Micros now) {
    const Record &record = seen.record;
    bool fails = request.action == Action::Fail;

    if (Absent(seen, now)) {
        if (!fails) return Keep(Outcome::Backoff, record, 0);
        return Release(seen, Released(request, FirstClaim(request, seen, now), now), now);
    }
    if (seen.holder == Holder::Other) return Keep(Outcome::Busy, record, kOpenTransactionRetry);
    bool awaits_a_try = (record.state == State::Pending || record.state == State::Failed) && Due(record, now);
    if (fails && awaits_a_try) return Release(seen, Released(request, NextClaim(request, seen, now), now), now);
    return Tell(record, now);
}

}  // namespace

Decision DecideSettle(const Request &request, const Sighting &seen, Micros now) {
    const Record &record = seen.record;
    bool ours = seen.found && (seen.holder == Holder::OursOpen || seen.holder == Holder::OursSettled);
    // Received, requeued or given back here; a claim made since was rolled back with its savepoint.
    bool unclaimed = seen.holder == Holder::OursSettled && record.state == State::Pending;
    bool releases = request.action == Action::Fail || request.action == Action::GiveBack;

    if (request.attempt == 0 && releases && (!ours || unclaimed)) return RecordFailure(request, seen, now);
    if (request.attempt == 0 && !ours)
        return Refuse(Absent(seen, now) ? Fault::NoSuchClaim : Fault::AttemptMissing, record);
    if (!seen.found) return Refuse(Fault::NoSuchClaim, record);
    if (seen.holder == Holder::Other) return Refuse(Fault::LeaseLost, record);
    if (request.attempt > record.attempt) return Refuse(Fault::NoSuchClaim, record);
    if (request.attempt != 0 && request.attempt < record.attempt) return Refuse(Fault::LeaseLost, record);

    // A claim that ran out however long ago is still its holder's, as long as nobody took it over.
    bool open = seen.holder == Holder::OursOpen || (seen.holder == Holder::Nobody && record.state == State::Processing);
    if (!open && Absent(seen, now)) return Refuse(Fault::NoSuchClaim, record);
    if (request.action == Action::Extend) return open ? Extend(request, seen, now) : Refuse(Fault::NoSuchClaim, record);
    return open ? Settle(request, seen, now) : SettleAgain(request, seen, now);
}

}  // namespace idem
