// The state machine in motion: two holders, a mover and the clock do to one event whatever they can, in every order,
// until nothing new comes up. The holders claim and settle, receive, requeue and resolve; after two failures the event
// is given up.
//
// Worlds which differ only in how long ago something was, or in how many attempts came before, count as one; so there
// are finitely many, and what holds in all of them holds for sequences of any length.
#include <set>
#include <string>
#include <vector>

#include "state_world.hpp"

namespace idem {
namespace {

constexpr Micros kTimeSteps[] = {1, 2, 10};  // within every window, to the end of a lease, beyond everything

// How a world came out of the one before.
struct Step {
    enum Kind { Start, Wait, Seal, Ask, Commit, RollBack } kind;
    int holder;
    Request request;
    Micros wait;
};

struct Visited {
    World world;
    size_t before;
    Step step;
};

// What promises are about, and so must have happened.
struct Happened {
    bool took_over;
    bool lost_lease;
    bool forgot;
    bool second_effect;
    bool gave_up;
    bool requeued;
    bool resolved;
    bool received;
    bool moved;
};

class Walk {
public:
    Walk() {
        Visit(EmptyWorld(), {});
        for (here_ = 0; here_ < visited_.size() && broken_.empty(); here_++) {
            LetTimePass();
            Seal();
            for (int holder = 0; holder < kHolders; holder++) Act(holder);
            Move();
        }
    }

    // The first broken promise, and how it was broken; empty if none was.
    const std::string &Broken() const { return broken_; }
    const Happened &What() const { return happened_; }

private:
    void Break(const char *promise, const Step &step) {
        if (!broken_.empty()) return;
        broken_ = Text(step);
        for (size_t i = here_; i != 0; i = visited_[i].before) broken_ = Text(visited_[i].step) + broken_;
        broken_ = std::string(promise) + ":\n" + broken_;
    }

    static std::string Text(const Step &step) {
        std::string who = step.holder == kMover ? "  the mover" : "  " + std::to_string(step.holder);
        switch (step.kind) {
            case Step::Wait:
                return "  " + std::to_string(step.wait) + " later\n";
            case Step::Seal:
                return "  the generation is sealed\n";
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
        if (!known_.insert(EssenceOf(world)).second) return;
        visited_.push_back({world, here_, step});
        if (world.writer != kNobody) return;
        if (AcquireLater(world, kShort.hot + kShort.cold + kShort.unresolved) != Outcome::Acquired)
            Break("the passing of time alone does not make the event claimable", step);
        if (world.now < world.done_until && AcquireLater(world, 0) != Outcome::Duplicate)
            Break("an effect is forgotten before its time", step);
        if (world.now < world.history.dead_until && AcquireLater(world, 0) != Outcome::Dead)
            Break("an event that was given up is tried again", step);
        if (world.history.open && world.now < world.history.lease_until && AcquireLater(world, 0) != Outcome::Busy)
            Break("a lease does not keep others out", step);
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

    void Seal() {
        World world = visited_[here_].world;
        if (world.writer != kNobody) return;  // would be as if sealed when that transaction has ended
        world.committed.sealed = world.committed.there;
        Visit(world, {Step::Seal, kNobody, {}, 0});
    }

    static Request Ask(Action action) {
        Request request = AtMost(kMaxAttempts, idem::Ask(action));
        request.windows = kShort;
        return request;
    }

    void Act(int holder) {
        const World world = visited_[here_].world;
        for (Action action : {Action::Acquire, Action::Accept, Action::Receive}) {
            AskAs(holder, Ask(action));
            AskAs(holder, InTransactionMode(Ask(action)));
        }
        for (Action action : {Action::Requeue, Action::Resolve}) AskAs(holder, Ask(action));
        for (Action action : {Action::Commit, Action::Fail, Action::GiveBack, Action::Extend}) {
            Request request = Ask(action);
            AskAs(holder, request);
            request.attempt = world.tokens[holder];
            if (request.attempt != 0) AskAs(holder, request);
            request.retry_after = 1;
            if (action == Action::Fail) AskAs(holder, request);
        }
        if (!Within(world, holder)) return;
        CommitTransaction(holder);
        RollBackTransaction(holder);
    }

    void Move() {
        int writer = visited_[here_].world.writer;
        if (writer == kNobody) AskAs(kMover, Ask(Action::Move));
        if (writer != kMover) return;
        CommitTransaction(kMover);
        RollBackTransaction(kMover);
    }

    void AskAs(int holder, const Request &request) {
        World world = visited_[here_].world;
        Step step = {Step::Ask, holder, request, 0};
        Sighting seen = See(world, holder);
        Decision decision = Decide(request, seen, world.now);
        happened_.lost_lease |= decision.fault == Fault::LeaseLost;
        if (decision.effect == Effect::Refuse) return;  // an error rolls the transaction back, which is tried anyway

        bool acquired = Claims(request.action) && decision.outcome == Outcome::Acquired;
        bool settles = request.action == Action::Commit || (request.action == Action::Accept && acquired);
        if (Writes(decision)) {
            Deed deed = DeedOf(world, holder, request, decision);
            bool first = seen.holder == Holder::Nobody && (!seen.found || seen.record.expires_at <= world.now);
            happened_.forgot |= first && seen.found;
            Check(world, holder, request, deed, decision, first, step);
            Write(&world, holder, request, deed, decision, first);
        } else if (acquired) {
            const History &history = HistoryFor(world, holder);
            bool runs = Within(world, holder) || world.now < history.lease_until;
            if (!history.open || history.claimer != holder || !runs)
                Break("a claim is given to one who does not hold it", step);
        } else if (request.action == Action::Commit && world.writer == kNobody && request.attempt != 0) {
            if (request.attempt != world.done_token || world.done_by != holder)
                Break("a commit is confirmed to one whose claim never took effect", step);
        }
        if (!Writes(decision) && !acquired && !settles) return;  // nothing has changed
        if (acquired) world.tokens[holder] = decision.record.attempt;
        if (settles && Within(world, holder) && world.change.history.open) {
            world.change.history.open = world.change.must_be_settled = false;
            world.change.takes_effect = true;
            world.change.done_until = world.now + kShort.cold;
        }
        Visit(world, step);
    }

    // Asks the history, not the record.
    void Check(const World &world, int holder, const Request &request, Deed deed, const Decision &decision, bool first,
               const Step &step) {
        bool within = Within(world, holder);
        const History &history = HistoryFor(world, holder);
        if (world.writer != kNobody && !within) Break("two open transactions change the event", step);

        bool by_holder = deed == Deed::Settle || deed == Deed::Extend;
        bool holds = within || (history.claimer == holder && request.attempt == world.last_token);
        if (by_holder && !(history.open && holds)) Break("a claim is settled by one who does not hold it", step);
        if (!by_holder && deed != Deed::Move) {
            if (within ? world.change.takes_effect : world.now < world.done_until)
                Break("an event is changed while its effect is remembered", step);
            if (history.open && (within || world.now < history.lease_until))
                Break("an event is changed while a lease runs", step);
        }

        int32_t token = decision.record.attempt;
        int32_t latest = std::max(world.last_token, within ? world.change.version.record.attempt : 0);
        bool grows = deed == Deed::Claim || deed == Deed::FailWithoutClaim || deed == Deed::Resolve;
        if (grows ? token <= latest : token != latest) Break("a fencing token repeats or goes back", step);

        int failures = FailuresAfter(world, holder, request.action, deed, first);
        if (decision.record.failures != failures) Break("failures are not counted as they happened", step);
        bool dies = deed == Deed::GiveUp || (request.action == Action::Fail && failures >= kMaxAttempts);
        if (deed == Deed::GiveUp && failures < kMaxAttempts) Break("an event with a try left is given up", step);
        if (deed == Deed::Claim && failures >= kMaxAttempts) Break("an event without a try left is claimed", step);
        if (deed != Deed::Move && dies != (decision.record.state == State::Dead))
            Break("an event is not given up at its last failure", step);
    }

    void Write(World *world, int holder, const Request &request, Deed deed, const Decision &decision, bool first) {
        Change &change = world->change;
        int failures = FailuresAfter(*world, holder, request.action, deed, first);
        if (world->writer == kNobody) {
            change = {};
            change.version = world->committed;
            change.history = world->history;
            change.token_before = world->tokens[holder];
            world->writer = holder;
        }
        change.version.there = true;
        change.version.sealed = false;
        change.version.record = decision.record;
        History &history = change.history;
        happened_.moved |= deed == Deed::Move;
        if (deed == Deed::Move) return;

        happened_.took_over |= deed == Deed::Claim && history.open;
        happened_.gave_up |= deed == Deed::GiveUp;
        happened_.requeued |= deed == Deed::Requeue;
        happened_.received |= deed == Deed::Receive;
        happened_.resolved |= deed == Deed::Resolve;
        history.failures = failures;
        if (deed == Deed::Extend) {
            history.lease_until = std::max(history.lease_until, world->now + kShort.hot);
            return;
        }
        if (deed == Deed::Settle && request.action == Action::Commit) return;  // what it does, it does unwritten too

        bool claims = deed == Deed::Claim;
        if (deed != Deed::Settle) change.version.owner = history.claimer = claims ? holder : kNobody;
        history.open = claims;
        history.lease_until = claims ? world->now + kShort.hot : 0;
        bool dead = decision.record.state == State::Dead;
        history.dead_until = dead ? world->now + kShort.unresolved : 0;
        change.new_token |= claims || deed == Deed::FailWithoutClaim || deed == Deed::Resolve;
        change.must_be_settled = request.action == Action::Acquire && claims && request.transaction_mode;
        change.takes_effect = deed == Deed::Resolve;
        change.done_until = deed == Deed::Resolve ? world->now + kShort.cold : 0;
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
        if (change.new_token ? token <= world.last_token : token != world.last_token)
            Break("a fencing token of the committed history repeats or goes back", step);
        world.committed = change.version;
        world.history = change.history;
        world.writer = kNobody;
        world.change = {};
        world.last_token = token;
        if (change.takes_effect) {
            happened_.second_effect |= world.done_token != 0;
            if (token <= world.done_token) Break("one attempt takes effect twice", step);
            if (world.now < world.done_until) Break("the event takes effect while its effect is remembered", step);
            world.done_token = token;
            world.done_by = change.history.claimer;
            world.done_until = change.done_until;
        }
        Visit(world, step);
    }

    std::vector<Visited> visited_;
    std::set<Essence> known_;
    size_t here_ = 0;
    std::string broken_;
    Happened happened_ = {};
};

TEST(WhateverTwoHoldersAndAMoverDo, TheEventTakesEffectOnceAndFencingTokensGrowAndNothingLastsForEver) {
    Walk walk;
    EXPECT_EQ(walk.Broken(), "");
    EXPECT_TRUE(walk.What().took_over);
    EXPECT_TRUE(walk.What().lost_lease);
    EXPECT_TRUE(walk.What().forgot);
    EXPECT_TRUE(walk.What().second_effect);
    EXPECT_TRUE(walk.What().gave_up);
    EXPECT_TRUE(walk.What().requeued);
    EXPECT_TRUE(walk.What().resolved);
    EXPECT_TRUE(walk.What().received);
    EXPECT_TRUE(walk.What().moved);
}

}  // namespace
}  // namespace idem
