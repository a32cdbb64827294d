#include "core/state.hpp"

#include <algorithm>

#include "core/backoff.hpp"

namespace idem {
namespace {

// Nobody can tell when another transaction ends; a second is what senders wait anyway.
constexpr Micros kOpenTransactionRetry = kSecond;

// In transaction mode a record says "done" since its claim. When the work took longer than this part of the cold
// window, settling writes it anew, so that the window still counts from settling.
Micros Unnoticed(Micros cold_window) { return cold_window / 100; }

// How far a sender's clock may be off before an event is taken for older or younger than it is.
Micros ClockMargin(Micros cold_window) { return std::min(3600 * kSecond, cold_window / 10); }

bool Expired(const Record &record, Micros now) { return record.expires_at <= now; }

bool Due(const Record &record, Micros now) { return record.claimable_at <= now; }

// Not there, or committed and forgotten. What was never committed can't be forgotten.
bool Absent(const Sighting &seen, Micros now) {
    return !seen.found || (seen.holder == Holder::Nobody && Expired(seen.record, now));
}

// So old that it may have been settled and forgotten: nobody can tell.
bool Stale(const Request &request, Micros now) {
    Micros cold = request.windows.cold;
    return request.has_occurred_at && request.occurred_at < now - (cold - ClockMargin(cold));
}

Decision Keep(Outcome outcome, const Record &record, Micros retry_after) {
    return {Effect::Keep, Fault::None, outcome, record, retry_after};
}

Decision Refuse(Fault fault, const Record &record) { return {Effect::Refuse, fault, Outcome::Busy, record, kForever}; }

Decision Write(const Sighting &seen, Outcome outcome, const Record &record, Micros retry_after) {
    return {seen.found ? Effect::Update : Effect::Insert, Fault::None, outcome, record, retry_after};
}

// The first claim on an event, new or forgotten. A forgotten record's attempts go on, as long as there is one to be
// seen.
Record FirstClaim(const Request &request, const Sighting &seen, Micros now) {
    Record record = {};
    record.attempt = seen.found ? seen.record.attempt + 1 : 1;
    record.first_seen_at = now;
    record.claimed_at = now;
    if (request.transaction_mode || request.action == Action::Accept) {
        record.state = State::Done;
        record.settled_at = now;
        record.expires_at = now + request.windows.cold;
    } else {
        record.state = State::Processing;
        record.claimable_at = now + request.windows.hot;
        record.expires_at = record.claimable_at + request.windows.unresolved;
    }
    return record;
}

// A further claim on a remembered event.
Record NextClaim(const Request &request, const Sighting &seen, Micros now) {
    Record record = FirstClaim(request, seen, now);
    record.first_seen_at = seen.record.first_seen_at;
    record.failures = seen.record.failures;
    return record;
}

// Where a live record stands for those who don't hold it; Acquired = it may be claimed.
Outcome Standing(const Record &record, Micros now) {
    switch (record.state) {
        case State::Done:
            return Outcome::Duplicate;
        case State::Dead:
            return Outcome::Dead;
        case State::Processing:
            return Due(record, now) ? Outcome::Acquired : Outcome::Busy;
        case State::Pending:
        case State::Failed:
            return Due(record, now) ? Outcome::Acquired : Outcome::Backoff;
    }
    __builtin_unreachable();
}

Micros RetryAfter(const Record &record, Outcome outcome, Micros now) {
    bool retry_helps = outcome == Outcome::Busy || outcome == Outcome::Backoff;
    if (!retry_helps) return kForever;
    return Due(record, now) ? 0 : record.claimable_at - now;
}

// The record once its tries are used up: it waits for somebody to decide.
Record GivenUp(const Request &request, const Record &before, Micros now) {
    Record record = before;
    record.state = State::Dead;
    record.claimable_at = kForever;
    record.settled_at = 0;
    record.expires_at = now + request.windows.unresolved;
    return record;
}

bool Exhausted(const Request &request, const Record &record) {
    return request.max_attempts > 0 && record.failures >= request.max_attempts;
}

// Due since now, with no failures that count.
Record Waiting(const Request &request, const Record &before, Micros now) {
    Record record = before;
    record.state = State::Pending;
    record.failures = 0;
    record.claimable_at = now;
    record.settled_at = 0;
    record.expires_at = now + request.windows.unresolved;
    return record;
}

Decision DecideAcquire(const Request &request, const Sighting &seen, Micros now) {
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

    Record next = NextClaim(request, seen, now);
    if (record.state != State::Processing) return Write(seen, Outcome::Acquired, next, kForever);
    next.failures++;  // a lease that ran out is a try that failed without a word
    if (!Exhausted(request, next)) return Write(seen, Outcome::Acquired, next, kForever);
    Record last = record;
    last.failures++;
    return Write(seen, Outcome::Dead, GivenUp(request, last, now), kForever);
}

Decision DecideReceive(const Request &request, const Sighting &seen, Micros now) {
    const Record &record = seen.record;

    if (Absent(seen, now)) {
        if (Stale(request, now)) return Keep(Outcome::Stale, Record{}, kForever);
        Record received = {};
        received.attempt = seen.found ? record.attempt : 0;
        received.first_seen_at = now;
        received.claimed_at = now;
        return Write(seen, Outcome::Acquired, Waiting(request, received, now), kForever);
    }
    if (seen.holder == Holder::Other) return Keep(Outcome::Busy, record, kOpenTransactionRetry);
    if (seen.fingerprint == FingerprintMatch::Different) return Keep(Outcome::Conflict, record, kForever);
    // Whatever its state, it is remembered, which is all that was asked.
    return Keep(record.state == State::Dead ? Outcome::Dead : Outcome::Duplicate, record, kForever);
}

Record Committed(const Request &request, const Record &before, Micros now) {
    Record record = before;
    record.state = State::Done;
    record.claimable_at = 0;
    record.settled_at = now;
    record.expires_at = now + request.windows.cold;
    return record;
}

// The record once its claim is failed or given back.
Record Released(const Request &request, const Record &before, Micros now) {
    Record record = before;
    bool fails = request.action == Action::Fail;
    if (fails) record.failures++;
    if (fails && Exhausted(request, record)) return GivenUp(request, record, now);
    record.state = fails ? State::Failed : State::Pending;
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

    Outcome outcome = Standing(record, now);
    if (outcome == Outcome::Acquired) outcome = Outcome::Backoff;  // due
    return Keep(outcome, record, RetryAfter(record, outcome, now));
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

// A release whose caller holds no claim (its work was rolled back): it records a failure where nothing else happened
// meanwhile, and otherwise only tells what did.
Decision RecordFailure(const Request &request, const Sighting &seen, Micros now) {
    const Record &record = seen.record;
    bool fails = request.action == Action::Fail;

    if (Absent(seen, now)) {
        if (!fails) return Keep(Outcome::Backoff, record, 0);
        return Release(seen, Released(request, FirstClaim(request, seen, now), now), now);
    }
    if (seen.holder == Holder::Other) return Keep(Outcome::Busy, record, kOpenTransactionRetry);
    if (fails && record.state == State::Failed && Due(record, now))
        return Release(seen, Released(request, NextClaim(request, seen, now), now), now);

    Outcome outcome = Standing(record, now);
    if (outcome == Outcome::Acquired) outcome = Outcome::Backoff;  // due, but not claimed by this call
    return Keep(outcome, record, RetryAfter(record, outcome, now));
}

// What stands there, for those who may change it by hand but not now: somebody is at it, or it is settled.
Decision TellStanding(const Sighting &seen, Micros now) {
    const Record &record = seen.record;
    if (seen.holder == Holder::Other || seen.holder == Holder::OursOpen)
        return Keep(Outcome::Busy, record, kOpenTransactionRetry);
    Outcome outcome = Standing(record, now);
    if (outcome == Outcome::Acquired) outcome = Outcome::Backoff;  // due
    return Keep(outcome, record, RetryAfter(record, outcome, now));
}

Decision DecideRequeue(const Request &request, const Sighting &seen, Micros now) {
    const Record &record = seen.record;
    if (Absent(seen, now)) return Refuse(Fault::NoSuchEvent, record);
    bool waits = record.state == State::Failed || record.state == State::Dead;
    bool held = seen.holder == Holder::Other || seen.holder == Holder::OursOpen;
    if (held || !waits) return TellStanding(seen, now);
    return Write(seen, Outcome::Backoff, Waiting(request, record, now), 0);
}

// The attempt is taken over from whoever may still be at work, and would commit what was settled otherwise.
Decision DecideResolve(const Request &request, const Sighting &seen, Micros now) {
    const Record &record = seen.record;
    if (Absent(seen, now)) return Refuse(Fault::NoSuchEvent, record);
    bool held = seen.holder == Holder::Other || seen.holder == Holder::OursOpen;
    bool settled = record.state == State::Done;
    bool leased = record.state == State::Processing && !Due(record, now);
    if (held || settled || leased) return TellStanding(seen, now);
    Record resolved = Committed(request, record, now);
    resolved.attempt++;
    return Write(seen, Outcome::Duplicate, resolved, kForever);
}

// Only unsettled events outlive their generation: settled ones have expired when it is emptied.
Decision DecideMove(const Sighting &seen, Micros now) {
    const Record &record = seen.record;
    bool stays = Absent(seen, now) || seen.holder != Holder::Nobody || !seen.sealed || record.state == State::Done;
    return stays ? Keep(Outcome::Busy, record, kForever) : Write(seen, Outcome::Busy, record, kForever);
}

// Commit, Fail, GiveBack and Extend: only the holder of the claim may.
Decision DecideSettle(const Request &request, const Sighting &seen, Micros now) {
    const Record &record = seen.record;
    bool ours = seen.found && (seen.holder == Holder::OursOpen || seen.holder == Holder::OursSettled);

    if (request.attempt == 0 && !ours) {
        if (request.action == Action::Fail || request.action == Action::GiveBack)
            return RecordFailure(request, seen, now);
        return Refuse(Absent(seen, now) ? Fault::NoSuchClaim : Fault::AttemptMissing, record);
    }
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

}  // namespace

Decision Decide(const Request &request, const Sighting &seen, Micros now) {
    switch (request.action) {
        case Action::Acquire:
        case Action::Accept:
            return DecideAcquire(request, seen, now);
        case Action::Receive:
            return DecideReceive(request, seen, now);
        case Action::Requeue:
            return DecideRequeue(request, seen, now);
        case Action::Resolve:
            return DecideResolve(request, seen, now);
        case Action::Move:
            return DecideMove(seen, now);
        default:
            return DecideSettle(request, seen, now);
    }
}

}  // namespace idem
