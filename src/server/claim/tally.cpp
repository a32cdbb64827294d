#include "server/claim/tally.hpp"

#include "server/claim/stat_memory.hpp"
#include "server/table/ghosts.hpp"

namespace idem {
namespace {

constexpr Micros kLongestInSession = kSecond;

// Of the handler that was called last.
Tally pending = {};
bool any = false;
TimestampTz pending_since = 0;

void Flush() {
    if (any) AddTally(pending);
    any = false;
}

// The counts of a handler; those of another are flushed first.
Tally *TallyOf(Oid dedup, std::string_view name) {
    bool same = pending.dedup == dedup && std::string_view(pending.handler, pending.handler_bytes) == name;
    if (any && same) return &pending;
    Flush();
    memset(&pending, 0, offsetof(Tally, deliveries));
    pending.work_count = 0;
    pending.dedup = dedup;
    pending.handler_bytes = static_cast<int>(name.size());
    memcpy(pending.handler, name.data(), name.size());
    pending_since = GetCurrentTimestamp();
    any = true;
    return &pending;
}

bool IsFull(const Tally &tally) {
    return tally.delivery_count == Tally::kMostSpans || tally.work_count == Tally::kMostSpans;
}

void Add(Tally *tally, Counter counter) { tally->counts[static_cast<int>(counter)]++; }

// The count of an outcome other than acquired.
Counter CounterOf(Outcome outcome) {
    switch (outcome) {
        case Outcome::Duplicate:
            return Counter::Duplicate;
        case Outcome::Busy:
            return Counter::Busy;
        case Outcome::Backoff:
            return Counter::Backoff;
        case Outcome::Dead:
            return Counter::Dead;
        case Outcome::Conflict:
            return Counter::Conflict;
        case Outcome::Stale:
            return Counter::Stale;
        case Outcome::Bypassed:
            return Counter::Bypassed;
        case Outcome::Acquired:
            break;
    }
    return Counter::Acquired;
}

void CountClaim(Tally *tally, const EventCall &call, const EventAnswer &answer, Micros now) {
    const Record &record = answer.decision.record;
    Outcome outcome = answer.decision.outcome;
    bool first = outcome == Outcome::Acquired && record.first_seen_at == record.claimed_at;
    Add(tally, outcome != Outcome::Acquired ? CounterOf(outcome) : first ? Counter::Acquired : Counter::Retaken);
    if (outcome == Outcome::Duplicate) tally->last_duplicate_at = now;
    if (outcome == Outcome::Conflict) tally->last_conflict_at = now;
    if (outcome == Outcome::Stale && call.occurred_at)
        tally->oldest_stale = Max(tally->oldest_stale, now - *call.occurred_at);
    if (outcome == Outcome::Acquired && call.action == Action::Accept) Add(tally, Counter::Committed);

    // All else answers a redelivery, where it is known of which event.
    bool redelivered = answer.known && !first && !call.due && record.first_seen_at != 0;
    if (redelivered) tally->deliveries[tally->delivery_count++] = {call.event.key, now - record.first_seen_at};
}

}  // namespace

void CountAnswer(const EventCall &call, const EventAnswer &answer) {
    if (!StatsAreKept()) return;
    bool claims = Claims(call) || call.action == Action::Receive;
    if (!claims && !answer.settled) return;
    Tally *tally = TallyOf(call.dedup, ViewOf(call.event.handler));
    Micros now = GetCurrentTimestamp();
    if (claims) {
        CountClaim(tally, call, answer, now);
    } else {
        Add(tally, call.action == Action::Commit ? Counter::Committed
                   : call.action == Action::Fail ? Counter::Failed
                                                 : Counter::GivenBack);
        if (answer.claimed_at != 0) tally->work[tally->work_count++] = now - answer.claimed_at;
    }
    if (IsFull(*tally) || now - pending_since >= kLongestInSession) Flush();
}

void CountOne(Oid dedup, std::string_view handler, Counter counter) {
    if (!StatsAreKept()) return;
    Add(TallyOf(dedup, handler), counter);
}

void CountIfLate(const EventCall &call) {
    GhostAnswer answer = AskGhosts(call.dedup, call.event.key);
    if (answer.by_chance == 0) return;
    Tally *tally = TallyOf(call.dedup, ViewOf(call.event.handler));
    tally->late_by_chance += answer.by_chance;
    if (answer.knows) Add(tally, Counter::Late);
}

void FlushTally() { Flush(); }

}  // namespace idem
