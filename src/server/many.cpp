#include "server/many.hpp"

#include "server/attempt.hpp"
#include "server/bypass.hpp"
#include "server/gate.hpp"
#include "server/judging.hpp"
#include "server/open_claims.hpp"

namespace idem {
namespace {

// Whoever turns the ring waits for so many at most.
constexpr int kCallsUnderGate = 100;

bool SameEvent(const EventCall &a, const EventCall &b) { return memcmp(&a.event.key, &b.event.key, sizeof(Key)) == 0; }

int CompareKeys(const void *a, const void *b, void *calls) {
    int i = *static_cast<const int *>(a);
    int j = *static_cast<const int *>(b);
    const auto *all = static_cast<const EventCall *>(calls);
    int order = memcmp(&all[i].event.key, &all[j].event.key, sizeof(Key));
    return order != 0 ? order : (i > j) - (i < j);
}

// The calls in the order of their keys; of one key, in that of the input.
int *InKeyOrder(const EventCall *calls, int count) {
    auto *order = static_cast<int *>(palloc(count * sizeof(int)));
    for (int i = 0; i < count; i++) order[i] = i;
    qsort_arg(order, count, sizeof(int), CompareKeys, const_cast<EventCall *>(calls));
    return order;
}

bool GivesOut(const EventAnswer &answer) {
    return answer.decision.outcome == Outcome::Acquired || answer.decision.outcome == Outcome::Bypassed;
}

// The calls, in order, and how far they are carried out.
struct Batch {
    const EventCall *calls;
    const int *order;
    int count;
    EventAnswer *answers;
    int done;
    bool given_out;  // an earlier call has acquired the event of the latest

    const EventCall &Call(int i) const { return calls[order[i]]; }

    // A further claim on an event that one of these calls has acquired is a duplicate of that one, where alone it would
    // be told that it comes too early. Where it is a conflict, it stays one.
    void Answer(const EventAnswer &answer) {
        EventAnswer &kept = answers[order[done]];
        kept = answer;
        given_out = given_out && SameEvent(Call(done), Call(done - 1));
        bool too_early = answer.decision.outcome == Outcome::Busy || GivesOut(answer);
        if (given_out && Claims(Call(done)) && too_early) {
            kept.decision.outcome = Outcome::Duplicate;
            kept.decision.retry_after = kForever;
        }
        given_out = given_out || GivesOut(answer);
        done++;
    }

    // As many as fit under the gate at once, until one must wait for something.
    void PerformSome(DedupTable *table, const Policy &policy) {
        std::optional<OpenedSlot> current;
        bool wrote = false;
        int last = Min(count, done + kCallsUnderGate);
        while (done < last && table->current) {
            Try end = TryCallIn(table, policy, Call(done), true, &current, &wrote);
            if (end.end != Try::Answered) break;
            Answer(end.answer);
        }
        if (current) CloseSlot(*current, wrote);
    }

    // One alone, in the way that waits.
    void PerformNext() {
        const EventCall &call = Call(done);
        bool again = given_out && SameEvent(call, Call(done - 1));
        Answer(again && IsBypassed(call.dedup, call.event.key) ? BypassedAnswer() : Perform(call));
    }
};
static_assert(std::is_trivially_destructible_v<Batch>, "an error jumps over destructors");

// Whether all that calls need is to look and write.
bool NeedNothingElse(const EventCall *calls) {
    bool may_settle_by_word = Settles(calls[0]) && (HasOpenClaims() || HasBypassed());
    return !may_settle_by_word && calls[0].wait == 0 && calls[0].hot_window == 0 && calls[0].cold_window == 0 &&
           !MayBypass(calls[0]);
}

}  // namespace

void PerformMany(const EventCall *calls, int count, EventAnswer *answers) {
    if (count == 0) return;
    Batch batch = {calls, InKeyOrder(calls, count), count, answers, 0, false};
    bool together = NeedNothingElse(calls);
    if (together) RequireWritable(calls[0].action);
    while (batch.done < count) {
        CHECK_FOR_INTERRUPTS();
        int before = batch.done;
        if (together) {
            DedupTable *table = OpenDedupTable(calls[0].dedup);
            Policy policy = table->PolicyOf(ViewOf(calls[0].event.handler));
            UnderGate([&] {
                if (table->current) batch.PerformSome(table, policy);
            });
        }
        if (batch.done == before) batch.PerformNext();
    }
}

}  // namespace idem
