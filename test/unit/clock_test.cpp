// The clock: which progress is believed, for how long a jump is doubted, and what lies in the future.
#include "core/clock.hpp"

#include <gtest/gtest.h>

#include "core/ring.hpp"
#include "core/window.hpp"

namespace idem {
namespace {

constexpr Micros kMinute = 60 * kSecond;
constexpr Micros kHour = 60 * kMinute;
constexpr Micros kPatience = kHour;

// A machine's clocks, and what is remembered of them.
struct Machine {
    ClockReading now = {1000 * kDay, 5 * kDay, 1};
    std::optional<ClockMemory> memory;

    void Pass(Micros time) {
        now.wall += time;
        now.steady += time;
    }
    // The machine is started again after this time by the wall clock.
    void Restart(Micros wall) {
        now.wall += wall;
        now.steady = 7 * kSecond;
        now.run++;
    }
    ClockLook Look(Micros patience = kPatience) {
        ClockLook look = LookAtClock(memory, now, patience);
        memory = look.memory;
        return look;
    }
    bool Believed() const { return !memory->doubted_since; }
};

TEST(Clock, TheFirstLookBelieves) {
    Machine machine;
    EXPECT_EQ(machine.Look().news, ClockNews::None);
    EXPECT_TRUE(machine.Believed());
}

TEST(Clock, AMinuteOrOnePerCentIsExplained) {
    EXPECT_TRUE(ClockFits(kMinute, 0));
    EXPECT_TRUE(ClockFits(-kMinute, 0));
    EXPECT_FALSE(ClockFits(kMinute + 1, 0));
    EXPECT_FALSE(ClockFits(-kMinute - 1, 0));
    EXPECT_TRUE(ClockFits(kDay + kDay / 100, kDay));
    EXPECT_FALSE(ClockFits(kDay + kDay / 100 + 1, kDay));
    EXPECT_TRUE(ClockFits(kDay - kDay / 100, kDay));
    EXPECT_FALSE(ClockFits(kDay - kDay / 100 - 1, kDay));
    EXPECT_TRUE(ClockFits(kHour + kMinute, kHour));
    EXPECT_FALSE(ClockFits(kHour + kMinute + 1, kHour));
}

TEST(Clock, AJumpIsDoubtedUntilItHasHeldSteady) {
    for (Micros jump : {kMinute + 1, kHour, 40 * kDay, -kMinute - 1, -kHour, -400 * kDay}) {
        Machine machine;
        machine.Look();
        machine.Pass(kMinute);
        machine.now.wall += jump;
        ClockLook look = machine.Look();
        EXPECT_EQ(look.news, ClockNews::Jumped);
        EXPECT_EQ(look.off, jump);
        EXPECT_EQ(machine.memory->doubted_since, machine.now.wall);
        for (Micros passed = kMinute; passed < kPatience; passed += kMinute) {
            machine.Pass(kMinute);
            EXPECT_EQ(machine.Look().news, ClockNews::None) << "it is told once";
            EXPECT_FALSE(machine.Believed());
        }
        machine.Pass(kMinute);
        EXPECT_EQ(machine.Look().news, ClockNews::Settled);
        EXPECT_TRUE(machine.Believed());
        machine.Pass(kMinute);
        EXPECT_EQ(machine.Look().news, ClockNews::None);
    }
}

TEST(Clock, ThereAndBackIsTwoJumps) {
    Machine machine;
    machine.Look();
    machine.now.wall += 40 * kDay;
    EXPECT_EQ(machine.Look().news, ClockNews::Jumped);
    machine.Pass(kPatience - kMinute);
    machine.Look();
    machine.now.wall -= 40 * kDay;
    EXPECT_EQ(machine.Look().news, ClockNews::Jumped);
    machine.Pass(2 * kMinute);
    machine.Look();
    EXPECT_FALSE(machine.Believed()) << "the wait starts over";
    machine.Pass(kPatience);
    machine.Look();
    EXPECT_TRUE(machine.Believed());
}

TEST(Clock, ASleepingMachineIsNoJump) {
    Machine machine;
    machine.Look();
    machine.Pass(30 * kDay);  // both clocks go on
    EXPECT_EQ(machine.Look().news, ClockNews::None);
}

TEST(Clock, ASlewedClockIsBelievedForEver) {
    for (Micros per_thousand : {-9, -1, 1, 9}) {
        Machine machine;
        machine.Look();
        for (int i = 0; i < 100000; i++) {
            machine.Pass(kMinute);
            machine.now.wall += kMinute / 1000 * per_thousand;
            ASSERT_EQ(machine.Look().news, ClockNews::None);
        }
    }
}

TEST(Clock, ManySmallStepsAreAJump) {
    for (Micros step : {kMinute, -kMinute, 2 * kSecond}) {
        Machine machine;
        machine.Look();
        Micros walked = 0;
        while (machine.Believed() && walked < kDay) {
            machine.Pass(kMinute);
            machine.now.wall += step;
            walked += step < 0 ? -step : step;
            machine.Look();
        }
        EXPECT_LE(walked, 3 * kMinute) << "a clock that runs too fast is found out";
    }
}

TEST(Clock, ARestartIsNoJump) {
    Machine machine;
    machine.Look();
    machine.Restart(kMinute);
    EXPECT_EQ(machine.Look().news, ClockNews::None);
    EXPECT_TRUE(machine.Believed());
}

TEST(Clock, AServerThatWasOffGoesOnAfterThePatience) {
    for (Micros off : {kMinute + 1, 30 * kDay, -kDay}) {
        Machine machine;
        machine.Look();
        machine.Restart(off);
        ClockLook look = machine.Look();
        EXPECT_EQ(look.news, ClockNews::Gap);
        EXPECT_EQ(look.off, off);
        EXPECT_FALSE(machine.Believed());
        machine.Pass(kPatience);
        EXPECT_EQ(machine.Look().news, ClockNews::Settled);
    }
}

TEST(Clock, TheWaitGoesOnOverARestart) {
    Machine machine;
    machine.Look();
    machine.now.wall += kDay;
    machine.Look();
    for (int i = 0; i < 3; i++) {
        machine.Pass(kPatience / 4);
        machine.Look();
        machine.Restart(30 * kSecond);
        machine.Look();
        EXPECT_FALSE(machine.Believed());
    }
    machine.Pass(kPatience / 4);
    EXPECT_EQ(machine.Look().news, ClockNews::Settled);
}

TEST(Clock, AJumpWhileTheServerIsOffIsFound) {
    Machine machine;
    machine.Look();
    machine.Restart(40 * kDay + kSecond);
    EXPECT_EQ(machine.Look().news, ClockNews::Gap);
}

TEST(Clock, WithoutPatienceAllIsBelieved) {
    Machine machine;
    machine.Look(0);
    machine.now.wall += 40 * kDay;
    EXPECT_EQ(machine.Look(0).news, ClockNews::None);
    EXPECT_TRUE(machine.Believed());
    machine.now.wall += 40 * kDay;
    machine.Look();
    EXPECT_FALSE(machine.Believed());
    EXPECT_EQ(machine.Look(0).news, ClockNews::None) << "whoever calls by hand says what time it is";
    EXPECT_TRUE(machine.Believed());
}

TEST(Clock, WhatIsToComeIsBeyondAMinute) {
    EXPECT_FALSE(IsToCome(1000, 1000));
    EXPECT_FALSE(IsToCome(1000 + kMinute, 1000));
    EXPECT_TRUE(IsToCome(1001 + kMinute, 1000));
}

TEST(Clock, WhatIsDueTooFarAwayIsUp) {
    EXPECT_TRUE(IsUp(5, 60, 5));
    EXPECT_FALSE(IsUp(6, 60, 5));
    EXPECT_FALSE(IsUp(65, 60, 5));
    EXPECT_TRUE(IsUp(66, 60, 5)) << "the clock was set back";
}

TEST(Clock, AGenerationOpenedInTheFutureHasHadItsTime) {
    auto turns = [](Micros opened_at, Micros now) {
        return IsTimeToTurn(opened_at, TurnsAt(opened_at, kDay, 3, {}, now), now);
    };
    EXPECT_FALSE(turns(0, kDay - 1));
    EXPECT_TRUE(turns(0, kDay));
    EXPECT_FALSE(turns(kMinute, 0));
    EXPECT_TRUE(turns(365 * kDay, 0));
}

// A lease of a quarter of an hour, claimed at `claimed_at`, to be requeued at 0.
Decision Requeue(Micros claimed_at, Micros claimable_at) {
    Request request = {};
    request.action = Action::Requeue;
    request.windows = {15 * kMinute, 30 * kDay, 365 * kDay};
    Sighting seen = {};
    seen.found = true;
    seen.record.state = State::Processing;
    seen.record.attempt = 1;
    seen.record.claimed_at = claimed_at;
    seen.record.claimable_at = claimable_at;
    seen.record.expires_at = kForever;
    return Decide(request, seen, 0);
}

TEST(Clock, OnlyALeaseOfTheFutureMayBeRequeuedWhileItRuns) {
    EXPECT_EQ(Requeue(0, 15 * kMinute).effect, Effect::Keep);
    EXPECT_EQ(Requeue(kMinute, 16 * kMinute).effect, Effect::Keep) << "a clock may be off by a minute";
    EXPECT_EQ(Requeue(kMinute + 1, 16 * kMinute).effect, Effect::Update);
    EXPECT_EQ(Requeue(400 * kDay, 400 * kDay + 15 * kMinute).effect, Effect::Update);
    EXPECT_EQ(Requeue(-kHour, 100 * 15 * kMinute).effect, Effect::Keep) << "one of a batch lasts longer";
    EXPECT_EQ(Requeue(-kHour, 400 * kDay).effect, Effect::Update) << "extended in the future";
}

TEST(Clock, WhatWasClaimedInTheFutureCountsAsClaimedNow) {
    Request request = {};
    request.action = Action::Acquire;
    request.windows = {15 * kMinute, 30 * kDay, 365 * kDay};
    Sighting seen = {};
    seen.found = true;
    seen.record = {State::Processing, 1, 0, 400 * kDay, 400 * kDay, 400 * kDay + 15 * kMinute, 0, kForever};
    Decision decision = Decide(request, seen, 0);
    EXPECT_EQ(decision.outcome, Outcome::Busy);
    EXPECT_EQ(decision.retry_after, 15 * kMinute);
}

}  // namespace
}  // namespace idem
