// The ring over years, day by day: what it holds while the cold window is as it was, is shortened or lengthened, and
// after a clock that was ahead. Each pass does what the server's does: empties what has expired, turns when it is time.
#include "core/ring.hpp"

#include <deque>

#include <gtest/gtest.h>

#include "core/window.hpp"

namespace idem {
namespace {

constexpr Micros kHour = 3600 * kSecond;

struct Ring {
    struct Kept {
        Micros opened_at;
        Micros newest_expiry;
        double events;
        double events_of_late;  // since the window was changed
    };
    int slots;
    Micros window;
    Micros now = 0;
    bool late = false;
    int times_full = 0;
    int turns = 0;
    std::deque<Kept> kept = {{0, 0, 0, 0}};  // oldest first; the last one is current

    // One event an hour, then a pass.
    void AnHour() {
        now += kHour;
        Kept &current = kept.back();
        current.events++;
        current.events_of_late += late;
        current.newest_expiry = std::max(current.newest_expiry, now + window);
        for (size_t i = 0; i + 1 < kept.size(); i++)
            if (kept[i].newest_expiry <= now) kept[i].events = kept[i].events_of_late = 0;
        while (kept.size() > 1 && kept.front().newest_expiry <= now) kept.pop_front();

        std::vector<Micros> expiries;
        for (size_t i = 0; i + 1 < kept.size(); i++) expiries.push_back(kept[i].newest_expiry);
        int open_slots = slots - static_cast<int>(kept.size());
        Micros opened_at = kept.back().opened_at;
        if (!IsTimeToTurn(opened_at, TurnsAt(opened_at, GenerationSpan(window, slots), open_slots, expiries, now), now))
            return;
        if (open_slots == 0) {
            times_full++;
            return;
        }
        turns++;
        kept.push_back({now, 0, 0, 0});
    }
    void Pass(Micros time) {
        for (Micros until = now + time; now < until;) AnHour();
    }
    double Events() const {
        double sum = 0;
        for (const Kept &one : kept) sum += one.events;
        return sum;
    }
    double EventsOfLate() const {
        double sum = 0;
        for (const Kept &one : kept) sum += one.events_of_late;
        return sum;
    }
};

// g/(g - 2) windows and a generation's first hours, in events of one an hour.
double Formula(Micros window, int slots) { return (static_cast<double>(window) * slots / (slots - 2)) / kHour + slots; }

TEST(Ring, TurnsOnceASpanAndHoldsWhatTheFormulaSays) {
    for (int slots : {3, 4, 8, 16, 64}) {
        Ring ring = {slots, 30 * kDay};
        for (int day = 0; day < 400; day++) {
            ring.Pass(kDay);
            EXPECT_LE(ring.Events(), Formula(30 * kDay, slots)) << slots << " slots, day " << day;
        }
        auto spans = static_cast<int>(400 * kDay / (GenerationSpan(30 * kDay, slots) + kHour));
        EXPECT_GE(ring.turns, spans - 1) << slots << " slots: it is not kept up";
        EXPECT_EQ(ring.times_full, 0) << slots << " slots";
    }
}

// What was written under the old window stays until it expires. What comes after takes, at any time, no more than the
// new window and one and a half generations of the old one.
TEST(Ring, AShortenedWindowDoesNotFillIt) {
    for (int slots : {3, 4, 8, 16}) {
        for (int at : {1, 3, 7, 20, 29, 45, 100}) {
            Ring ring = {slots, 30 * kDay};
            ring.Pass(at * kDay);
            ring.window = kDay;
            ring.late = true;
            double before = ring.Events();
            double most = static_cast<double>(kDay + GenerationSpan(30 * kDay, slots) * 3 / 2) / kHour + 2 * slots;
            for (int day = 0; day < 100; day++) {
                ring.Pass(kDay);
                EXPECT_LE(ring.EventsOfLate(), most) << slots << " slots, shortened at day " << at << ", after " << day;
                EXPECT_LE(ring.Events(), before + most);
            }
            EXPECT_LE(ring.Events(), Formula(kDay, slots) + 1) << "in the end it is as if it had never been longer";
        }
    }
}

// Both slots are in use until the older one has expired: the events of so long stand in one generation.
TEST(Ring, WithTwoSlotsTheOldWindowIsWaitedFor) {
    Ring ring = {2, 30 * kDay};
    ring.Pass(20 * kDay);
    ring.window = kDay;
    for (int day = 0; day < 60; day++) {
        ring.Pass(kDay);
        EXPECT_LE(ring.Events(), (20 + 31) * 24 + 4);
    }
    EXPECT_LE(ring.Events(), 3 * 24 + 4);
}

TEST(Ring, ALengthenedWindowIsNoBrake) {
    for (int slots : {3, 8, 16}) {
        Ring ring = {slots, kDay};
        ring.Pass(100 * kDay);
        ring.window = 30 * kDay;
        for (int day = 0; day < 200; day++) {
            ring.Pass(kDay);
            EXPECT_LE(ring.Events(), Formula(30 * kDay, slots));
        }
        EXPECT_EQ(ring.times_full, 0);
    }
}

TEST(Ring, EventsOfAClockThatWasAheadDoNotStopIt) {
    Ring ring = {8, 30 * kDay};
    ring.Pass(100 * kDay);
    ring.kept.back().newest_expiry = ring.now + 395 * kDay;
    int turns = ring.turns;
    double most = 0;
    for (int day = 0; day < 395; day++) {
        ring.Pass(kDay);
        most = std::max(most, ring.Events());
    }
    EXPECT_GE(ring.turns - turns, 5);
    EXPECT_LE(most, 4 * Formula(30 * kDay, 8));
}

TEST(Ring, WhatNeverExpiresIsNotWaitedFor) {
    Micros never[] = {kForever};
    EXPECT_EQ(TurnsAt(0, kDay, 3, never, 0), kDay);
    Micros far[] = {kLongestWindow};
    EXPECT_EQ(TurnsAt(0, kDay, 3, far, 0), kLongestWindow / 4);
}

TEST(Ring, AFullRingTurnsWhenItMay) { EXPECT_EQ(TurnsAt(7, kDay, 0, {}, kDay), 7 + kDay); }

}  // namespace
}  // namespace idem
