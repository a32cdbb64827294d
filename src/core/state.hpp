// The state machine of an event: one pure function which decides every claim and every settling.
//
// It knows neither the server nor the clock nor the storage: what was seen and what is asked goes in, what to write and
// what to answer comes out. So its whole input space can be tested (test/unit/state_*_test.cpp), and every caller
// decides alike.
#pragma once

#include <cstdint>

namespace idem {

// Microseconds; points in time count from the server's epoch (TimestampTz).
using Micros = int64_t;

constexpr Micros kSecond = 1000000;
constexpr Micros kForever = INT64_MAX;  // the server's "infinity"
constexpr Micros kLongAgo = INT64_MIN;  // the server's "-infinity"

// In the order of the SQL type idem_state.
enum class State : uint8_t { Pending, Processing, Done, Failed, Dead };
constexpr int kStateCount = 5;

// In the order of the SQL type idem_outcome.
enum class Outcome : uint8_t { Acquired, Duplicate, Busy, Backoff, Dead, Conflict, Stale, Bypassed };
constexpr int kOutcomeCount = 8;

// Whether the answer stays true: what may still end otherwise must not be told to a sender as done.
constexpr bool IsFinal(Outcome outcome) { return outcome != Outcome::Busy && outcome != Outcome::Backoff; }

// The part of a remembered event that decides.
struct Record {
    State state;
    int32_t attempt;  // fencing token of the latest claim; 0 = never claimed
    int32_t failures;
    Micros first_seen_at;
    Micros claimed_at;    // kLongAgo = received after it was forgotten, and not claimed since
    Micros claimable_at;  // end of the lease or time of the next try; kForever = dead; kLongAgo = received behind an
                          // earlier event of its ordering key; not used when done
    Micros settled_at;    // not used unless done
    Micros expires_at;
    bool together = false;  // a claim of several that were handed out at once: its run-out says nothing against it
};

// Who wrote the record.
enum class Holder : uint8_t {
    Nobody,       // it is committed
    Other,        // another open transaction inserted, changes or locks it
    OursOpen,     // this transaction holds the claim: it acquired or extended it
    OursSettled,  // this transaction settled or recorded it
};

enum class FingerprintMatch : uint8_t { Unknown, Same, Different };

// What a look-up by key found.
struct Sighting {
    bool found;
    Holder holder;
    Record record;
    FingerprintMatch fingerprint;  // the record's and the request's
    bool same_owner;               // both name an owner, and the same
    bool same_result;              // the record's result equals the one to be committed; none equals none
    bool sealed;                   // it stands in a sealed generation
};

enum class Action : uint8_t {
    Acquire,   // claim
    Accept,    // claim and settle in one
    Commit,    // settle as done
    Fail,      // settle as failed
    GiveBack,  // settle as if never claimed
    Extend,    // heartbeat
    Move,      // keep it beyond the end of its generation, as it is
    Receive,   // remember it, to be worked on later
    Requeue,   // let an event that failed or was given up be tried again at once, as if it never had
    Resolve,   // settle by hand
};

// How long what is written now lasts.
struct Windows {
    Micros hot;         // of a claim
    Micros cold;        // of a settled event
    Micros unresolved;  // of an unsettled one, after it became claimable
};

// How long a failed event waits (core/backoff.hpp).
struct Backoff {
    Micros base;
    Micros cap;
    double fraction;  // 0 … 1, by chance
};

struct Request {
    Action action;
    bool transaction_mode;  // the claim is settled by the transaction that makes it
    int32_t attempt;        // what the holder says; 0 = not given
    bool has_result;        // Commit stores a result
    bool has_cold_window;   // Commit brings a cold window of its own
    bool has_occurred_at;   // a claim says when the event happened
    Micros occurred_at;     // by the sender's clock
    bool together;          // Acquire: handed out at once with others
    bool replaces;          // Receive: takes the place of what nobody has claimed yet
    Micros not_before;      // Receive: nobody may claim it earlier; 0 = at once
    bool behind;            // Receive: an earlier event of its ordering key is unsettled
    bool gives_up;          // Fail: no further try
    bool backs_off;         // Fail: nobody may claim it before its backoff is over, instead of retry_after
    Micros retry_after;     // Fail, GiveBack: how long nobody may claim it; 0 = at once
    Backoff backoff;
    int32_t max_attempts;  // so many failed tries end it; 0 = no limit
    Windows windows;
};

enum class Effect : uint8_t {
    Keep,    // write nothing
    Insert,  // write the record as a new one
    Update,  // write the record over the one seen
    Refuse,  // raise the fault; nothing may be written
};

enum class Fault : uint8_t {
    None,
    LeaseLost,       // ID001
    NoSuchClaim,     // ID002
    NoSuchEvent,     // ID002
    AttemptMissing,  // 22004
    ResultDiffers,   // 22023
};

struct Decision {
    Effect effect;
    Fault fault;
    Outcome outcome;
    Record record;       // what to write, or what is there
    Micros retry_after;  // kForever = a retry is no use
};

// Decides about one event at one moment. Never blocks, never fails.
Decision Decide(const Request &request, const Sighting &seen, Micros now);

}  // namespace idem
