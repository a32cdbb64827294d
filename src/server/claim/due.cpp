#include "server/claim/due.hpp"

#include "server/base/statement.hpp"
#include "server/claim/ordering.hpp"
#include "server/claim/perform.hpp"
#include "server/claim/succession.hpp"
#include "server/table/dedup_table.hpp"

namespace idem {
namespace {

// Columns of the query.
enum DueColumn { kHandler = 1, kEventId, kBatch, kPayload, kError, kOrdering, kFirstSeenAt, kKey, kRanOut, kDueSince };

// So many ordering keys does a call look at for an event that waits behind nobody: in passing, and where it finds
// nothing else.
constexpr int kStepsInPassing = 2;
constexpr int kStepsWhenIdle = 32;

// Reads on as far as is needed. Nothing is locked: an event that somebody else is at is told busy when it is claimed.
Portal OpenDue(Oid dedup, text *handler) {
    const char *query = psprintf(
        "SELECT handler, event_id, batch, payload, error, ordering, first_seen_at, key, "
        "state OPERATOR(pg_catalog.=) 'processing', claimable_at FROM %s "
        "WHERE claimable_at OPERATOR(pg_catalog.<=) $1 AND claimable_at OPERATOR(pg_catalog.>) '-infinity' AND "
        "expires_at OPERATOR(pg_catalog.>) $1 "
        "AND ($2 IS NULL OR handler OPERATOR(pg_catalog.=) $2) ORDER BY claimable_at",
        QualifiedNameOf(dedup));
    Oid types[] = {TIMESTAMPTZOID, TEXTOID};
    Datum values[] = {TimestampTzGetDatum(GetCurrentTimestamp()), PointerGetDatum(handler)};
    const char nulls[] = {' ', handler == nullptr ? 'n' : ' ', '\0'};
    return SPI_cursor_open_with_args(nullptr, query, 2, types, values, nulls, false, CURSOR_OPT_FAST_PLAN);
}

// An event that is due, as it was read.
struct Candidate {
    SPITupleTable *read;
    Datum columns[kDueSince + 1];
    bool nulls[kDueSince + 1];

    text *Text(DueColumn column) const { return nulls[column] ? nullptr : DatumGetTextPP(columns[column]); }

    // Those received behind others have been due since then.
    TimestampTz DueSince() const {
        TimestampTz since = DatumGetTimestampTz(columns[kDueSince]);
        return TIMESTAMP_IS_NOBEGIN(since) ? DatumGetTimestampTz(columns[kFirstSeenAt]) : since;
    }
};

// The row that SPI has just read. It stays where it is until SPI is finished; what is passed by is freed at once.
Candidate JustRead() {
    Candidate candidate;
    candidate.read = SPI_tuptable;
    for (int column = kHandler; column <= kDueSince; column++)
        candidate.columns[column] =
            SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, column, &candidate.nulls[column]);
    return candidate;
}

struct Due {
    Oid dedup;
    int most;
    Micros hot_window;
    ReturnSetInfo *result;
    Portal portal;
    Round round;
    Orderings orderings;
    Candidate *found;  // to be claimed together
    int count;
    std::optional<Candidate> suspect;  // read, and not yet claimed
    std::optional<Candidate> next;     // by the cursor
    std::optional<Candidate> free;     // by the round of ordering keys
    int steps;                         // that the round has left
    bool idle;                         // the cursor has come to its end
    int claimed;

    void ReadOn() {
        if (!next) {
            SPI_cursor_fetch(portal, true, 1);
            if (SPI_processed == 1) next = JustRead();
        }
        if (!next && !idle) steps += kStepsWhenIdle + most;
        idle = idle || !next;
        if (!free && round.FindFree(&steps)) free = JustRead();
    }

    // The one that has been due for longest.
    bool Read(Candidate *candidate) {
        ReadOn();
        bool takes_free = free && (!next || free->DueSince() <= next->DueSince());
        std::optional<Candidate> &taken = takes_free ? free : next;
        if (!taken) return false;
        *candidate = *taken;
        taken.reset();
        return true;
    }

    bool ItsTurn(const Candidate &candidate) {
        if (candidate.nulls[kOrdering]) return true;
        Waiter waiter = {{dedup, candidate.Text(kHandler), candidate.Text(kOrdering)},
                         *reinterpret_cast<const Key *>(DatumGetUUIDP(candidate.columns[kKey])),
                         DatumGetTimestampTz(candidate.columns[kFirstSeenAt])};
        bool skips_dead = OpenDedupTable(dedup)->PolicyOf(ViewOf(waiter.of.handler)).skips_dead;
        return orderings.TakeTurn(waiter, skips_dead);
    }

    // Finds what may be claimed together. An event whose lease ran out ends it, or is alone.
    void Find() {
        count = 0;
        if (suspect) {
            found[count++] = *suspect;
            suspect.reset();
            return;
        }
        while (count < most - claimed) {
            CHECK_FOR_INTERRUPTS();
            Candidate candidate;
            if (!Read(&candidate)) return;
            if (!ItsTurn(candidate)) {
                SPI_freetuptable(candidate.read);
                continue;
            }
            bool ran_out = DatumGetBool(candidate.columns[kRanOut]);
            if (ran_out && count + claimed > 0) {
                suspect = candidate;
                return;
            }
            found[count++] = candidate;
            if (ran_out) return;
        }
    }

    void Claim(const Candidate &candidate, bool together) {
        EventCall call = {};
        call.dedup = dedup;
        call.action = Action::Acquire;
        call.due = true;
        call.event = MakeIdentity(candidate.Text(kHandler), candidate.Text(kEventId), candidate.Text(kBatch));
        call.hot_window = hot_window;
        call.turn = claimed + 1;
        call.together = together;
        EventAnswer answer = PerformStored(call);  // there is nothing to be done without the store
        if (answer.decision.outcome != Outcome::Acquired) return;

        const Record &record = answer.decision.record;
        Datum values[] = {candidate.columns[kHandler],    candidate.columns[kEventId],
                          candidate.columns[kBatch],      Int32GetDatum(record.attempt),
                          Int32GetDatum(record.failures), TimestampTzGetDatum(record.first_seen_at),
                          candidate.columns[kPayload],    candidate.columns[kError]};
        bool nulls[] = {false, false, candidate.nulls[kBatch],   false,
                        false, false, candidate.nulls[kPayload], candidate.nulls[kError]};
        tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
        claimed++;
    }

    // What was found may be somebody else's by now, or have been given up instead: then there is room for others.
    void ClaimAll() {
        do {
            Find();
            bool together = count > 1 || claimed > 0;
            for (int i = 0; i < count; i++) Claim(found[i], together);
            bool alone = count == 1 && DatumGetBool(found[0].columns[kRanOut]);
            if (claimed > 0 && (alone || suspect)) return;
        } while (claimed < most && (count > 0 || suspect));
    }
};
static_assert(std::is_trivially_destructible_v<Due>, "an error jumps over destructors");

}  // namespace

void ClaimDue(Oid dedup, text *handler, int most, Micros hot_window, ReturnSetInfo *result) {
    SPI_connect();
    int level = NewGUCNestLevel();
    PreferIndexes();
    Due due = {};
    due.dedup = dedup;
    due.most = most;
    due.hot_window = hot_window;
    due.result = result;
    due.portal = OpenDue(dedup, handler);
    due.round = Round(dedup, handler);
    due.steps = kStepsInPassing;
    due.found = static_cast<Candidate *>(palloc(most * sizeof(Candidate)));
    due.ClaimAll();
    SPI_cursor_close(due.portal);
    AtEOXact_GUC(true, level);
    SPI_finish();
}

}  // namespace idem
