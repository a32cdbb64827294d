// The smallest storage that is true, for one event: a committed record, and at most one open transaction that changes
// it. Beside them stands the history as a bookkeeper would write it down, who looks at no record: who claimed, what
// took effect, how often it failed.
#pragma once

#include <algorithm>
#include <array>

#include "state_fixture.hpp"

namespace idem {

constexpr Windows kShort = {2, 4, 3};
constexpr int32_t kMaxAttempts = 2;
constexpr int kHolders = 2;
constexpr int kMover = kHolders;
constexpr int kNobody = -1;

struct Version {
    bool there;
    bool sealed;
    Record record;
    int owner;  // the holder whose claim it is
};

// What is known of the event beside its record.
struct History {
    int claimer;         // whose claim the latest is; kNobody where it was taken from him
    bool open;           // it is unsettled
    Micros lease_until;  // an open one keeps others out
    Micros dead_until;   // it is given up
    int failures;
};

// What the open transaction did.
struct Change {
    Version version;
    History history;
    int32_t token_before;  // of the writer, to which it falls back
    bool new_token;        // it made a claim, or settled by hand
    bool must_be_settled;  // its claim, before it may commit
    bool takes_effect;     // the work is done, or settled by hand, if the transaction commits
    Micros done_until;     // the end of the memory of that
};

struct World {
    Micros now;
    Version committed;
    History history;
    int writer;  // whose transaction is open
    Change change;
    int32_t tokens[kHolders + 1];  // attempt of the claim which a holder got last; 0 = none
    int32_t last_token;            // of the latest claim or settling by hand that was committed
    int32_t done_token;            // of the latest that took effect
    int done_by;
    Micros done_until;  // the effect is remembered
};

inline World EmptyWorld() {
    World world = {};
    world.now = kNow;
    world.writer = world.done_by = world.committed.owner = world.history.claimer = kNobody;
    return world;
}

inline bool Within(const World &world, int holder) { return world.writer == holder; }

// What a holder, whose transaction it is or not, finds.
inline const History &HistoryFor(const World &world, int holder) {
    return Within(world, holder) ? world.change.history : world.history;
}

// Holder 0 names an owner, holder 1 does not.
inline Sighting See(const World &world, int holder) {
    bool nobody = world.writer == kNobody;
    const Version &version = nobody ? world.committed : world.change.version;
    Sighting seen = Seen(version.record);
    seen.found = version.there;
    seen.sealed = version.sealed;
    seen.same_owner = holder == 0 && version.owner == 0;
    seen.same_result = true;
    if (!nobody && !Within(world, holder)) seen.holder = Holder::Other;
    if (Within(world, holder)) seen.holder = world.change.history.open ? Holder::OursOpen : Holder::OursSettled;
    return seen;
}

// What a decision that writes does.
enum class Deed { Claim, FailWithoutClaim, GiveUp, Settle, Extend, Receive, Requeue, Resolve, Move };

inline Deed DeedOf(const World &world, int holder, const Request &request, const Decision &decision) {
    bool holds_open = Within(world, holder) && world.change.history.open;
    switch (request.action) {
        case Action::Acquire:
        case Action::Accept:
            return decision.outcome == Outcome::Acquired ? Deed::Claim : Deed::GiveUp;
        case Action::Fail:
            return request.attempt == 0 && !holds_open ? Deed::FailWithoutClaim : Deed::Settle;
        case Action::Extend:
            return Deed::Extend;
        case Action::Receive:
            return Deed::Receive;
        case Action::Requeue:
            return Deed::Requeue;
        case Action::Resolve:
            return Deed::Resolve;
        case Action::Move:
            return Deed::Move;
        default:
            return Deed::Settle;
    }
}

// How many tries have failed, as of this deed.
inline int FailuresAfter(const World &world, int holder, Action action, Deed deed, bool first) {
    const History &history = HistoryFor(world, holder);
    if (deed == Deed::Requeue) return 0;
    int failures = first && deed != Deed::Settle && deed != Deed::Extend ? 0 : history.failures;
    bool ran_out = history.open && !first && (deed == Deed::Claim || deed == Deed::GiveUp);
    return failures + (action == Action::Fail || ran_out ? 1 : 0);
}

// What tells worlds apart: times count from now, attempts from those of the records.
using Essence = std::array<int8_t, 64>;

inline Essence EssenceOf(const World &world) {
    Essence essence = {};
    size_t size = 0;
    const Change &change = world.change;
    auto add = [&](int64_t value) { essence.at(size++) = static_cast<int8_t>(value); };
    auto add_time = [&](Micros at) { add(at == kLongAgo ? -2 : std::clamp<Micros>(at - world.now, -1, 20)); };
    auto add_token = [&](int32_t token) {
        add(token == 0);
        add(std::clamp(token - world.committed.record.attempt, -1, 1));
        add(std::clamp(token - change.version.record.attempt, -1, 1));
    };
    for (const Version *version : {&world.committed, &change.version}) {
        const Record &record = version->record;
        for (bool value : {version->there, version->sealed}) add(value);
        for (int value : {static_cast<int>(record.state), version->owner, record.failures}) add(value);
        for (Micros at : {record.claimed_at, record.claimable_at, record.expires_at}) add_time(at);
        add_token(record.attempt);
    }
    for (const History *history : {&world.history, &change.history}) {
        for (int value : {history->claimer, static_cast<int>(history->open), history->failures}) add(value);
        for (Micros at : {history->lease_until, history->dead_until}) add_time(at);
    }
    for (int32_t token : {world.tokens[0], world.tokens[1], change.token_before, world.last_token, world.done_token})
        add_token(token);
    for (int value : {world.writer, world.done_by}) add(value);
    for (bool value : {change.new_token, change.must_be_settled, change.takes_effect}) add(value);
    for (Micros at : {world.done_until, change.done_until}) add_time(at);
    return essence;
}

}  // namespace idem
