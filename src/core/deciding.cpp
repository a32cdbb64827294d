#include "core/deciding.hpp"

#include "core/clock.hpp"

namespace idem {

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

bool Exhausted(const Request &request, const Record &record) {
    return request.max_attempts > 0 && record.failures >= request.max_attempts;
}

Micros RetryAfter(const Record &record, Outcome outcome, Micros now) {
    bool retry_helps = outcome == Outcome::Busy || outcome == Outcome::Backoff;
    if (!retry_helps) return kForever;
    if (Due(record, now)) return 0;
    // What was claimed in the future counts as claimed now.
    bool to_come = IsToCome(record.claimed_at, now) && record.claimable_at > record.claimed_at;
    return record.claimable_at - (to_come ? record.claimed_at : now);
}

Decision Tell(const Record &record, Micros now) {
    Outcome outcome = Standing(record, now);
    if (outcome == Outcome::Acquired) outcome = Outcome::Backoff;  // due, but not claimed by this call
    return Keep(outcome, record, RetryAfter(record, outcome, now));
}

Record FirstClaim(const Request &request, const Sighting &seen, Micros now) {
    Record record = {};
    record.attempt = seen.found ? NextAttempt(seen.record.attempt) : 1;
    record.first_seen_at = now;
    record.claimed_at = now;
    if (request.transaction_mode || request.action == Action::Accept) {
        record.state = State::Done;
        record.settled_at = now;
        record.expires_at = now + request.windows.cold;
    } else {
        record.state = State::Processing;
        record.together = request.together;
        record.claimable_at = now + request.windows.hot;
        record.expires_at = record.claimable_at + request.windows.unresolved;
    }
    return record;
}

Record NextClaim(const Request &request, const Sighting &seen, Micros now) {
    Record record = FirstClaim(request, seen, now);
    record.first_seen_at = seen.record.first_seen_at;
    record.failures = seen.record.failures;
    return record;
}

Record Waiting(const Request &request, const Record &before, Micros now) {
    Record record = before;
    record.state = State::Pending;
    record.failures = 0;
    record.together = false;
    record.claimable_at = now;
    record.settled_at = 0;
    record.expires_at = now + request.windows.unresolved;
    return record;
}

Record Committed(const Request &request, const Record &before, Micros now) {
    Record record = before;
    record.state = State::Done;
    record.together = false;
    record.claimable_at = 0;
    record.settled_at = now;
    record.expires_at = now + request.windows.cold;
    return record;
}

Record GivenUp(const Request &request, const Record &before, Micros now) {
    Record record = before;
    record.state = State::Dead;
    record.together = false;
    record.claimable_at = kForever;
    record.settled_at = 0;
    record.expires_at = now + request.windows.unresolved;
    return record;
}

Decision Decide(const Request &request, const Sighting &seen, Micros now) {
    switch (request.action) {
        case Action::Acquire:
        case Action::Accept:
            return DecideClaim(request, seen, now);
        case Action::Receive:
            return DecideReceive(request, seen, now);
        case Action::Requeue:
            return DecideRequeue(request, seen, now);
        case Action::Resolve:
            return DecideResolve(request, seen, now);
        case Action::Move:
            return DecideMove(seen, now);
        case Action::Commit:
        case Action::Fail:
        case Action::GiveBack:
        case Action::Extend:
            return DecideSettle(request, seen, now);
    }
    __builtin_unreachable();
}

}  // namespace idem
