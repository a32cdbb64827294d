// The state machine in motion: two holders and the clock do to one event whatever they can, in every order, until
// nothing new comes up.
//
// The storage here is the smallest that is true: one committed record, and at most one open transaction that changes
// it. Worlds which differ only in how long ago something was, or in how many attempts came before, count as one; so
// there are finitely many, and what holds in all of them holds for sequences of any length.
#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <vector>

#include "state_fixture.hpp"

namespace idem {
namespace {

constexpr Windows kShort = {2, 4, 3};
constexpr Micros kTimeSteps[] = {1, 2, 10};  // within every window, to the end of a lease, beyond everything
constexpr int kHolders = 2;
constexpr int kNobody = -1;

struct Version {
    bool there;
    Record record;
    int owner;  // the holder whose claim it is
};

// What the open transaction did.
struct Change {
    Version version;
    int32_t token_before;  // of the writer, to which it falls back
    bool claims;           // it made a claim
    bool open;             // it holds one, unsettled
    bool must_be_settled;  // and may not commit it so
    bool takes_effect;     // the work is done, if the transaction commits
    Micros until;          // end of the lease, or of the memory of the effect
};

struct World {
    Micros now;
    Version committed;
    int writer;  // whose transaction is open
    Change change;
    int32_t tokens[kHolders];  // attempt of the claim which a holder got last; 0 = none

    // The committed history, as the test itself remembers it.
    int32_t last_token;  // of the latest claim
    int claimer;         // who made it
    Micros lease_until;  // it keeps others out
    int32_t done_token;  // of the latest claim that took effect
    int done_by;
    Micros done_until;  // the effect is remembered
};

// How a world came out of the one before.
struct Step {
    enum Kind { Start, Wait, Ask, Commit, RollBack } kind;
    int holder;
    Request request;
    Micros wait;
};

struct Visited {
    World world;
    size_t before;
    Step step;
};

class Walk {
public:
    Walk() {
        World start = {};
        start.now = kNow;
        start.writer = start.claimer = start.done_by = start.committed.owner = kNobody;
        Visit(start, {});
        for (here_ = 0; here_ < visited_.size() && broken_.empty(); here_++) {
            LetTimePass();
            for (int holder = 0; holder < kHolders; holder++) Act(holder);
        }
    }

    // The first broken promise, and how it was broken; empty if none was.
    const std::string &Broken() const { return broken_; }

    // Whether anything happened that promises are about.
    bool TookOver() const { return took_over_; }
    bool Forgot() const { return forgot_; }
    bool LostLease() const { return lost_lease_; }
    bool TookEffectTwiceRightly() const { return second_effect_; }

private:
    void Break(const char *promise, const Step &step) {
        if (!broken_.empty()) return;
        broken_ = Text(step);
        for (size_t i = here_; i != 0; i = visited_[i].before) broken_ = Text(visited_[i].step) + broken_;
        broken_ = std::string(promise) + ":\n" + broken_;
    }

    static std::string Text(const Step &step) {
        std::string who = "  " + std::to_string(step.holder);
        switch (step.kind) {
            case Step::Wait:
                return "  " + std::to_string(step.wait) + " later\n";
            case Step::Ask:
                return who + " asks: " + testing::PrintToString(step.request) + "\n";
            case Step::Commit:
                return who + " commits its transaction\n";
            case Step::RollBack:
                return who + " rolls back\n";
            case Step::Start:
                break;
        }
        return "";
    }

    void Visit(const World &world, const Step &step) {
        if (!known_.insert(Essence(world)).second) return;
        visited_.push_back({world, here_, step});
        if (world.writer != kNobody) return;
        if (AcquireLater(world, kShort.hot + kShort.cold + kShort.unresolved) != Outcome::Acquired)
            Break("the passing of time alone does not make the event claimable", step);
        if (world.now < world.done_until && AcquireLater(world, 0) != Outcome::Duplicate)
            Break("an effect is forgotten before its time", step);
    }

    // What tells worlds apart: times count from now, attempts from those of the records.
    static std::array<int8_t, 64> Essence(const World &world) {
        std::array<int8_t, 64> essence = {};
        size_t size = 0;
        auto add = [&](int64_t value) { essence.at(size++) = static_cast<int8_t>(value); };
        auto add_time = [&](Micros at) { add(std::clamp<Micros>(at - world.now, -1, 20)); };
        auto add_token = [&](int32_t token) {
            add(token == 0);
            add(std::clamp(token - world.committed.record.attempt, -2, 2));
            add(std::clamp(token - world.change.version.record.attempt, -2, 2));
        };
        for (const Version *version : {&world.committed, &world.change.version}) {
            const Record &record = version->record;
            for (int64_t value : {static_cast<int>(version->there), static_cast<int>(record.state), version->owner})
                add(value);
            for (Micros at : {record.claimed_at, record.claimable_at, record.expires_at}) add_time(at);
            add_token(record.attempt);
        }
        const Change &change = world.change;
        for (int32_t token :
             {world.tokens[0], world.tokens[1], change.token_before, world.last_token, world.done_token})
            add_token(token);
        for (int value : {world.writer, world.claimer, world.done_by}) add(value);
        for (bool value : {change.claims, change.open, change.must_be_settled, change.takes_effect}) add(value);
        for (Micros at : {world.lease_until, world.done_until, change.until}) add_time(at);
        return essence;
    }

    // Holder 0 names an owner, holder 1 does not.
    static Sighting See(const World &world, int holder) {
        bool nobody = world.writer == kNobody;
        const Version &version = nobody ? world.committed : world.change.version;
        Sighting seen = Seen(version.record);
        seen.found = version.there;
        seen.same_owner = holder == 0 && version.owner == 0;
        seen.same_result = true;
        if (!nobody && world.writer != holder) seen.holder = Holder::Other;
        if (world.writer == holder) seen.holder = world.change.open ? Holder::OursOpen : Holder::OursSettled;
        return seen;
    }

    static Outcome AcquireLater(const World &world, Micros wait) {
        return Decide(Ask(Action::Acquire), See(world, 1), world.now + wait).outcome;
    }

    void LetTimePass() {
        for (Micros wait : kTimeSteps) {
            World world = visited_[here_].world;
            world.now += wait;
            Visit(world, {Step::Wait, kNobody, {}, wait});
        }
    }

    void Act(int holder) {
        constexpr Action kActions[] = {Action::Acquire, Action::Accept,   Action::Commit,
                                       Action::Fail,    Action::GiveBack, Action::Extend};
        for (Action action : kActions)
            for (bool transaction_mode : {false, true}) {
                Request request = Ask(action);
                request.transaction_mode = transaction_mode;
                request.windows = kShort;
                AskAs(holder, request);
                request.attempt = visited_[here_].world.tokens[holder];
                if (!Claims(action) && request.attempt != 0) AskAs(holder, request);
                request.retry_after = 1;
                if (action == Action::Fail) AskAs(holder, request);
            }
        if (visited_[here_].world.writer != holder) return;
        CommitTransaction(holder);
        RollBackTransaction(holder);
    }

    void AskAs(int holder, const Request &request) {
        World world = visited_[here_].world;
        Step step = {Step::Ask, holder, request, 0};
        Sighting seen = See(world, holder);
        Decision decision = Decide(request, seen, world.now);
        lost_lease_ |= decision.fault == Fault::LeaseLost;
        if (decision.effect == Effect::Refuse) return;  // an error rolls the transaction back, which is tried anyway

        if (Writes(decision)) {
            if (Claims(request.action) || (request.attempt == 0 && world.writer == kNobody))
                CheckClaim(world, holder, decision, step);
            else
                CheckSettling(world, holder, request, step);
            took_over_ |= Claims(request.action) && seen.found && seen.record.state == State::Processing;
            forgot_ |= seen.found && seen.record.expires_at <= world.now;
            Write(&world, holder, request, decision);
        } else if (request.action == Action::Commit && world.writer == kNobody && request.attempt != 0) {
            if (request.attempt != world.done_token || world.done_by != holder)
                Break("a commit is confirmed to one whose claim never took effect", step);
        }
        bool acquired = Claims(request.action) && decision.outcome == Outcome::Acquired;
        if (acquired) world.tokens[holder] = decision.record.attempt;
        bool settles = request.action == Action::Commit || (request.action == Action::Accept && acquired);
        if (settles && world.writer == holder && world.change.open) {
            world.change.open = world.change.must_be_settled = false;
            world.change.takes_effect = true;
            world.change.until = world.now + kShort.cold;
        }
        Visit(world, step);
    }

    // Both ask the history, not the record.
    void CheckClaim(const World &world, int holder, const Decision &decision, const Step &step) {
        bool within = world.writer == holder;
        if (world.writer != kNobody && !within) Break("two open transactions claim the event", step);
        if (within ? world.change.takes_effect : world.now < world.done_until)
            Break("the event is claimed while its effect is remembered", step);
        if (within ? world.change.open : world.now < world.lease_until)
            Break("the event is claimed while a lease runs", step);
        int32_t latest = std::max(world.last_token, within ? world.change.version.record.attempt : 0);
        if (decision.record.attempt <= latest) Break("a fencing token repeats or goes back", step);
    }

    void CheckSettling(const World &world, int holder, const Request &request, const Step &step) {
        bool within = world.writer == holder && world.change.open;
        bool holds = world.writer == kNobody && world.claimer == holder && request.attempt == world.last_token;
        if (!within && !holds) Break("a claim is settled by one who does not hold it", step);
    }

    static void Write(World *world, int holder, const Request &request, const Decision &decision) {
        Change &change = world->change;
        bool begins = world->writer == kNobody;
        if (begins) {
            change = {};
            change.version = world->committed;
            change.token_before = world->tokens[holder];
            change.until = world->lease_until;
            world->writer = holder;
        }
        bool records_failure = begins && !Claims(request.action) && request.attempt == 0;
        if (Claims(request.action) || records_failure) {
            change.claims = true;
            change.version.owner = records_failure ? kNobody : holder;
        }
        change.version.there = true;
        change.version.record = decision.record;
        change.open = request.action != Action::Fail && request.action != Action::GiveBack;
        if (request.action == Action::Acquire) change.must_be_settled = request.transaction_mode;
        if (!change.open) change.must_be_settled = false;
        change.takes_effect = false;
        change.until = request.action == Action::Extend ? std::max(change.until, world->now + kShort.hot)
                       : change.open                    ? world->now + kShort.hot
                                                        : 0;
    }

    void RollBackTransaction(int holder) {
        World world = visited_[here_].world;
        world.tokens[holder] = world.change.token_before;
        world.writer = kNobody;
        world.change = {};
        Visit(world, {Step::RollBack, holder, {}, 0});
    }

    void CommitTransaction(int holder) {
        World world = visited_[here_].world;
        Step step = {Step::Commit, holder, {}, 0};
        Change change = world.change;
        if (change.must_be_settled) return;  // is refused, and rolls back

        int32_t token = change.version.record.attempt;
        if (change.claims ? token <= world.last_token : token != world.last_token)
            Break("a fencing token of the committed history repeats or goes back", step);
        world.committed = change.version;
        world.writer = kNobody;
        world.change = {};
        world.last_token = token;
        if (change.claims) world.claimer = change.version.owner;
        world.lease_until = change.open ? change.until : 0;
        if (change.takes_effect) {
            second_effect_ |= world.done_token != 0;
            if (token <= world.done_token || world.claimer != holder) Break("one attempt takes effect twice", step);
            if (world.now < world.done_until) Break("the event takes effect while its effect is remembered", step);
            world.done_token = token;
            world.done_by = holder;
            world.done_until = change.until;
        }
        Visit(world, step);
    }

    std::vector<Visited> visited_;
    std::set<std::array<int8_t, 64>> known_;
    size_t here_ = 0;
    std::string broken_;
    bool took_over_ = false;
    bool forgot_ = false;
    bool lost_lease_ = false;
    bool second_effect_ = false;
};

TEST(WhateverTwoHoldersDo, TheEventTakesEffectOnceAndFencingTokensGrowAndNothingLastsForEver) {
    Walk walk;
    EXPECT_EQ(walk.Broken(), "");
    EXPECT_TRUE(walk.TookOver());
    EXPECT_TRUE(walk.LostLease());
    EXPECT_TRUE(walk.Forgot());
    EXPECT_TRUE(walk.TookEffectTwiceRightly());
}

}  // namespace
}  // namespace idem
