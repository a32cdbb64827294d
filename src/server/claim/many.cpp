#include "server/claim/many.hpp"

#include "server/claim/attempt.hpp"
#include "server/claim/bypass.hpp"
#include "server/claim/judging.hpp"
#include "server/claim/open_claims.hpp"
#include "server/claim/perform.hpp"
#include "server/claim/succession.hpp"
#include "server/claim/tally.hpp"
#include "server/table/gate.hpp"

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

// Whether all that the calls need is to look and write; they differ from this one in nothing that matters here.
bool NeedNothingElse(const EventCall &call) {
    bool may_settle_by_word = Settles(call) && (HasOpenClaims() || HasBypassed());
    return !may_settle_by_word && call.wait == 0 && call.hot_window == 0 && call.cold_window == 0;
}

// The answer with what it points to, in the current memory context.
EventAnswer Copy(const EventAnswer &answer) {
    auto copy = [](const void *value) -> void * {
        return value == nullptr ? nullptr : PG_DETOAST_DATUM_COPY(PointerGetDatum(value));
    };
    EventAnswer kept = answer;
    kept.result = static_cast<Jsonb *>(copy(answer.result));
    kept.error = static_cast<text *>(copy(answer.error));
    kept.payload = static_cast<Jsonb *>(copy(answer.payload));
    kept.left = static_cast<text *>(copy(answer.left));
    return kept;
}

// The calls, in order, and how far they are carried out.
struct Batch {
    const EventCall *calls;
    const int *order;
    int count;
    EventAnswer *answers;
    MemoryContext scratch;  // of one call
    int done;
    bool given_out;  // an earlier call has acquired the event of the latest

    const EventCall &Call(int i) const { return calls[order[i]]; }

    // The next call. What this very batch has given out is no second evaluation.
    EventCall Next() const {
        EventCall call = Call(done);
        if (given_out && SameEvent(call, Call(done - 1))) call.once = false;
        return call;
    }

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
            MemoryContext caller = MemoryContextSwitchTo(scratch);
            Try tried = TryCallIn(table, policy, Next(), true, &current, &wrote);
            MemoryContextSwitchTo(caller);
            if (!tried.answer) break;
            Answer(Copy(*tried.answer));
            CountAnswer(Call(done - 1), answers[order[done - 1]]);
            MemoryContextReset(scratch);
        }
        if (current) CloseSlot(*current, wrote);
    }

    // One alone, in the way that waits.
    void PerformNext() { Answer(PerformStored(Next())); }

    void PerformAll() {
        bool together = NeedNothingElse(Call(0));
        if (together) RequireWritable(Call(0).action);
        while (done < count) {
            CHECK_FOR_INTERRUPTS();
            int before = done;
            if (together) {
                DedupTable *table = OpenDedupTable(Call(0).dedup);
                Policy policy = table->PolicyOf(ViewOf(Call(0).event.handler));
                UnderGate([&] {
                    if (table->current) PerformSome(table, policy);
                });
            }
            if (done == before) PerformNext();
        }
        for (int i = 0; i < count; i++) {
            const EventCall &call = Call(i);
            text *left = answers[order[i]].left;
            if (left != nullptr) LetNextGoOn(OrderingKey{call.dedup, call.event.handler, left}, PerformStored);
        }
    }

    void ForgetBypasses() const {
        for (int i = 0; i < count; i++) ForgetBypass(Call(i), answers[order[i]]);
    }

    // All of them: those that were carried out before the store failed are undone.
    void BypassAll(const char *why) {
        int events = 0;
        given_out = false;
        for (done = 0; done < count;) {
            bool first = done == 0 || !SameEvent(Call(done), Call(done - 1));
            if (first) events++;
            Answer(first ? Bypass(Call(done)) : answers[order[done - 1]]);
        }
        WarnBypassed(Call(0), events, why);
    }
};
static_assert(std::is_trivially_destructible_v<Batch>, "an error jumps over destructors");

}  // namespace

void PerformMany(const EventCall *calls, int count, EventAnswer *answers) {
    if (count == 0) return;
    MemoryContext scratch = AllocSetContextCreate(CurrentMemoryContext, "idem many events", ALLOCSET_DEFAULT_SIZES);
    Batch batch = {calls, InKeyOrder(calls, count), count, answers, scratch, 0, false};
    if (!MayBypass(calls[0])) {
        batch.PerformAll();
        return;
    }
    const char *why = WhyUnavailable([&] { batch.PerformAll(); });
    if (why == nullptr)
        batch.ForgetBypasses();
    else
        batch.BypassAll(why);
}

}  // namespace idem
