#include "server/claim/judging.hpp"

#include "core/fingerprint.hpp"
#include "core/window.hpp"
#include "server/base/errors.hpp"
#include "server/base/settings.hpp"
#include "server/claim/open_claims.hpp"
#include "server/claim/tally.hpp"

namespace idem {
namespace {

double BackoffFraction() { return backoff_jitter < 0 ? pg_prng_double(&pg_global_prng_state) : backoff_jitter; }

Jsonb *JsonbOf(const EventRow &row, Column column) {
    return row.Has(column) ? DatumGetJsonbP(row.Get(column)) : nullptr;
}

text *TextOf(const EventRow &row, Column column) { return row.Has(column) ? DatumGetTextPP(row.Get(column)) : nullptr; }

bool SameResult(Jsonb *stored, Jsonb *given) {
    if (stored == nullptr || given == nullptr) return stored == given;
    return compareJsonbContainers(&stored->root, &given->root) == 0;
}

// A short column, whatever form it is stored in; empty if null.
std::string_view ShortBytes(const EventRow &row, Column column) {
    return row.Has(column) ? ViewOf(DatumGetTextPP(row.Get(column))) : std::string_view();
}

// So many windows, as long as the longest at most.
Micros InTurn(Micros window, int32_t turn) { return window > kLongestWindow / turn ? kLongestWindow : window * turn; }

void SetOrClear(EventRow *row, Column column, const void *value) {
    if (value != nullptr)
        row->Set(column, PointerGetDatum(value));
    else
        row->Clear(column);
}

// The error of an event whose attempts were used up by a lease that ran out.
constexpr const char *kRanOut = "lease ran out";

// The columns beside the record: what a claim brings, what a settling leaves.
void SetParticulars(EventRow *row, const EventCall &call, const DedupTable &table, const Record &record) {
    bool done = record.state == State::Done;
    if (Claims(call) && record.state == State::Dead) {
        row->Set(Column::Error, CStringGetTextDatum(kRanOut));
        return;
    }
    if (Claims(call)) {
        if (call.fingerprint != nullptr) SetOrClear(row, Column::Fingerprint, call.fingerprint);
        SetOrClear(row, Column::Owner, call.owner);
        SetOrClear(row, Column::Result, done ? call.result : nullptr);
        row->Clear(Column::Error);
        if (done)
            row->Clear(Column::Payload);
        else if (call.payload != nullptr)
            SetOrClear(row, Column::Payload, call.payload);
        return;
    }
    switch (call.action) {
        case Action::Commit:
            SetOrClear(row, Column::Result, call.result);
            row->Clear(Column::Error);
            row->Clear(Column::Payload);
            break;
        case Action::Receive:
            if (call.fingerprint != nullptr) SetOrClear(row, Column::Fingerprint, call.fingerprint);
            if (call.ordering != nullptr) SetOrClear(row, Column::Ordering, call.ordering);
            row->Clear(Column::Owner);
            row->Clear(Column::Result);
            row->Clear(Column::Error);
            SetOrClear(row, Column::Payload, call.payload);
            break;
        case Action::Resolve:
            SetOrClear(row, Column::Result, call.result);
            SetOrClear(row, Column::Extra, call.note);
            row->Clear(Column::Owner);
            row->Clear(Column::Payload);
            break;
        case Action::Fail:
        case Action::GiveBack: {
            SetOrClear(row, Column::Error, call.error);
            row->Clear(Column::Result);
            const OpenClaim *claim = FindOpenClaim(table.relation, call.event.key);
            if (claim != nullptr && claim->payload != nullptr) SetOrClear(row, Column::Payload, claim->payload);
            break;
        }
        default:
            break;
    }
}

}  // namespace

void CheckWindows(const Policy &policy, const EventCall &call) {
    bool hot = call.hot_window > policy.windows.hot;
    if (!hot && call.cold_window <= policy.windows.cold) return;
    ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                    errmsg("%s is longer than that of dedup table \"%s\"", hot ? "hot_window" : "cold_window",
                           get_rel_name(call.dedup)),
                    errdetail("A call may shorten the window of the policy, not lengthen it.")));
}

Jsonb *PayloadOf(const EventRow &row) { return JsonbOf(row, Column::Payload); }

Request RequestOf(const Policy &policy, const EventCall &call) {
    Request request = {};
    request.action = call.action;
    request.transaction_mode = policy.transaction_mode;
    request.attempt = call.attempt;
    request.has_result = call.result != nullptr;
    request.has_cold_window = call.cold_window != 0;
    request.has_occurred_at = policy.checks_stale && call.occurred_at.has_value();
    request.occurred_at = call.occurred_at.value_or(0);
    request.together = call.together;
    request.replaces = call.replaces;
    request.not_before = call.not_before;
    request.behind = call.behind;
    request.gives_up = call.gives_up;
    request.backs_off = !call.retry_after.has_value();
    request.retry_after = call.retry_after.value_or(0);
    request.backoff = {policy.backoff_base, policy.backoff_cap, BackoffFraction()};
    request.max_attempts = policy.max_attempts;
    request.windows = policy.windows;
    if (call.hot_window != 0) request.windows.hot = call.hot_window;
    if (call.cold_window != 0) request.windows.cold = call.cold_window;
    request.windows.hot = InTurn(request.windows.hot, call.turn);
    return request;
}

Sighting SightingOf(const DedupTable &table, const EventCall &call, const Place *place) {
    Sighting seen = {};
    if (place == nullptr) return seen;
    const Found &found = place->found;
    seen.found = true;
    seen.record = RecordOfRow(found.row);
    if (found.other) {
        seen.holder = Holder::Other;
        return seen;
    }
    bool open = found.ours &&
                (seen.record.state == State::Processing || FindOpenClaim(table.relation, call.event.key) != nullptr);
    seen.holder = !found.ours ? Holder::Nobody : open ? Holder::OursOpen : Holder::OursSettled;
    if (call.fingerprint != nullptr)
        seen.fingerprint = CompareFingerprints(ShortBytes(found.row, Column::Fingerprint),
                                               ViewOf(reinterpret_cast<text *>(call.fingerprint)));
    if (call.owner != nullptr)
        seen.same_owner = found.row.Has(Column::Owner) && ShortBytes(found.row, Column::Owner) == ViewOf(call.owner);
    if (call.action == Action::Commit && seen.record.state == State::Done)
        seen.same_result = SameResult(JsonbOf(found.row, Column::Result), call.result);
    return seen;
}

bool GoesOn(const Place *place, const Decision &decision) {
    return place != nullptr && RecordOfRow(place->found.row).first_seen_at == decision.record.first_seen_at;
}

EventRow RowOf(const DedupTable &table, const EventCall &call, const Place *place, const Decision &decision) {
    EventRow row = EmptyRow();
    if (GoesOn(place, decision)) {
        row = place->found.row;
    } else {
        row.Set(Column::Key, PointerGetDatum(&call.event.key));
        row.Set(Column::Handler, PointerGetDatum(call.event.handler));
        row.Set(Column::EventId, PointerGetDatum(call.event.event_id));
        SetOrClear(&row, Column::Batch, call.event.batch);
    }
    SetRecord(&row, decision.record);
    SetParticulars(&row, call, table, decision.record);
    return row;
}

EventAnswer AnswerOf(const EventCall &call, const Place *place, const Decision &decision, bool known, bool wrote) {
    EventAnswer answer = {};
    answer.decision = decision;
    answer.known = known;
    answer.ours = place != nullptr && place->found.ours;
    if (place != nullptr) answer.holder = place->found.holder;
    if (decision.outcome == Outcome::Acquired && GoesOn(place, decision)) answer.payload = PayloadOf(place->found.row);
    if (wrote) {
        if (Settles(call)) answer.error = call.error;
        if (Claims(call) && decision.outcome == Outcome::Dead) answer.error = cstring_to_text(kRanOut);
    } else if (known && place != nullptr) {
        const EventRow &row = place->found.row;
        if (decision.outcome == Outcome::Duplicate && !Settles(call)) answer.result = JsonbOf(row, Column::Result);
        if (decision.outcome == Outcome::Backoff || decision.outcome == Outcome::Dead)
            answer.error = TextOf(row, Column::Error);
    }
    return answer;
}

void RaiseFault(Fault fault, const EventCall &call, const Record &record) {
    char *event = text_to_cstring(call.event.event_id);
    char *handler = text_to_cstring(call.event.handler);
    switch (fault) {
        case Fault::LeaseLost:
            CountOne(call.dedup, ViewOf(call.event.handler), Counter::LeaseLost);
            ereport(ERROR,
                    (errcode(kLeaseLost), errmsg("lease lost on event \"%s\" of handler \"%s\"", event, handler),
                     call.attempt != 0 && record.attempt > call.attempt
                         ? errdetail("Attempt %d has been taken over by attempt %d.", call.attempt, record.attempt)
                         : errdetail("Another transaction is changing the claim."),
                     errhint("The work of this attempt must not take effect; roll it back.")));
        case Fault::AttemptMissing:
            ereport(ERROR,
                    (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("attempt must not be null"),
                     errdetail("Event \"%s\" of handler \"%s\" was not acquired by this transaction.", event, handler),
                     errhint("Pass the attempt which idem_acquire returned.")));
        case Fault::NoSuchEvent:
            ereport(ERROR,
                    (errcode(kNoSuchClaim), errmsg("no event \"%s\" of handler \"%s\" is remembered", event, handler)));
        case Fault::ResultDiffers:
            ereport(ERROR,
                    (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                     errmsg("event \"%s\" of handler \"%s\" was committed with another result", event, handler)));
        case Fault::NoSuchClaim:
        case Fault::None:
            break;
    }
    ereport(ERROR, (errcode(kNoSuchClaim), errmsg("no such claim on event \"%s\" of handler \"%s\"", event, handler),
                    errdetail("It was never acquired, was settled otherwise, was rolled back, or has been forgotten."),
                    errhint("Look at idem_lookup.")));
}

void RaiseNotFinal(const EventCall &call, const EventAnswer &answer) {
    const Record &record = answer.decision.record;
    bool own = answer.ours && answer.decision.outcome == Outcome::Busy;
    const char *until = answer.known ? pstrdup(timestamptz_to_str(record.claimable_at)) : "";
    ereport(ERROR, (errcode(kNotFinal),
                    errmsg("event \"%s\" of handler \"%s\" is not settled yet", text_to_cstring(call.event.event_id),
                           text_to_cstring(call.event.handler)),
                    own                                 ? errdetail("This transaction has acquired it.")
                    : !answer.known                     ? errdetail("Another transaction is at it.")
                    : record.state == State::Processing ? errdetail("A lease on it runs until %s.", until)
                                                        : errdetail("Its next try is due at %s.", until),
                    own ? errhint("Settle it with idem_commit or idem_release.")
                        : errhint("Answer the sender 409 or 503 with Retry-After, so that it is delivered again.")));
}

void RaiseClaimGone(const EventCall &call) {
    ereport(ERROR, (errcode(kNoSuchClaim),
                    errmsg("no such claim on event \"%s\" of handler \"%s\"", text_to_cstring(call.event.event_id),
                           text_to_cstring(call.event.handler)),
                    errdetail("This transaction has acquired the event, and removed its row since, as by TRUNCATE."),
                    errhint("Empty a dedup table in a transaction of its own.")));
}

void RaiseLocked(const EventCall &call) {
    ereport(ERROR, (errcode(ERRCODE_LOCK_NOT_AVAILABLE),
                    errmsg("could not change event \"%s\" of handler \"%s\"", text_to_cstring(call.event.event_id),
                           text_to_cstring(call.event.handler)),
                    errdetail("Another transaction has locked its row.")));
}

}  // namespace idem
