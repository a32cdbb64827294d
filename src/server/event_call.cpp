#include "server/event_call.hpp"

#include "core/fingerprint.hpp"
#include "server/errors.hpp"
#include "server/gate.hpp"
#include "server/open_claims.hpp"
#include "server/slot_access.hpp"

namespace idem {
namespace {

// How one try under the gate ended.
struct Try {
    enum { Answered, Again, WaitForInsertion, WaitForLock } end;
    TransactionId inserter;  // WaitForInsertion
    uint32 token;
    Oid locked;  // WaitForLock
    LOCKMODE lock;
    EventAnswer answer;  // Answered
};

Try TryAgain() { return {.end = Try::Again, .inserter = 0, .token = 0, .locked = 0, .lock = 0, .answer = {}}; }

// Where the event's row was found.
struct Place {
    int64_t generation;
    Found found;
};

void SetOrClear(EventRow *row, Column column, const void *value) {
    if (value != nullptr)
        row->Set(column, PointerGetDatum(value));
    else
        row->Clear(column);
}

bool Claims(const EventCall &call) { return call.action == Action::Acquire || call.action == Action::Accept; }

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

Sighting See(const DedupTable &table, const EventCall &call, const Place &place) {
    const Found &found = place.found;
    Sighting seen = {};
    seen.found = true;
    seen.record = RecordOfRow(found.row);
    if (found.other) {
        seen.holder = Holder::Other;
        return seen;
    }
    bool open = found.ours && (seen.record.state == State::Processing ||
                               FindOpenClaim(table.relation, call.event.key) != nullptr);
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

Request RequestOf(const DedupTable &table, const EventCall &call) {
    Request request = {};
    request.action = call.action;
    request.transaction_mode = table.transaction_mode;
    request.attempt = call.attempt;
    request.has_result = call.result != nullptr;
    request.has_cold_window = call.cold_window != 0;
    request.has_occurred_at = call.occurred_at.has_value();
    request.occurred_at = call.occurred_at.value_or(0);
    request.retry_after = call.retry_after;
    request.windows = table.windows;
    if (call.hot_window != 0) request.windows.hot = call.hot_window;
    if (call.cold_window != 0) request.windows.cold = call.cold_window;
    return request;
}

void CheckWindows(const DedupTable &table, const EventCall &call) {
    bool hot = call.hot_window > table.windows.hot;
    if (!hot && call.cold_window <= table.windows.cold) return;
    ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                    errmsg("%s is longer than that of dedup table \"%s\"", hot ? "hot_window" : "cold_window", table.name),
                    errdetail("A call may shorten the table's window, not lengthen it.")));
}

[[noreturn]] void Raise(Fault fault, const EventCall &call, const Record &record) {
    char *event = text_to_cstring(call.event.event_id);
    char *handler = text_to_cstring(call.event.handler);
    switch (fault) {
        case Fault::LeaseLost:
            ereport(ERROR, (errcode(kLeaseLost), errmsg("lease lost on event \"%s\" of handler \"%s\"", event, handler),
                            call.attempt != 0 && record.attempt > call.attempt
                                ? errdetail("Attempt %d has been taken over by attempt %d.", call.attempt, record.attempt)
                                : errdetail("Another transaction is changing the claim."),
                            errhint("The work of this attempt must not take effect; roll it back.")));
        case Fault::AttemptMissing:
            ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("attempt must not be null"),
                            errdetail("Event \"%s\" of handler \"%s\" was not acquired by this transaction.", event, handler),
                            errhint("Pass the attempt which idem_acquire returned.")));
        case Fault::ResultDiffers:
            ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                            errmsg("event \"%s\" of handler \"%s\" was committed with another result", event, handler)));
        case Fault::NoSuchClaim:
        case Fault::None:
            break;
    }
    ereport(ERROR, (errcode(kNoSuchClaim), errmsg("no such claim on event \"%s\" of handler \"%s\"", event, handler),
                    errdetail("It was never acquired, was settled otherwise, was rolled back, or has been forgotten."),
                    errhint("Look at idem_lookup.")));
}

// The columns beside the record: what a claim brings, what a settling leaves.
void SetParticulars(EventRow *row, const EventCall &call, const DedupTable &table, const Record &record) {
    bool done = record.state == State::Done;
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

EventRow NextRow(const EventCall &call, const DedupTable &table, const Place *place, const Decision &decision) {
    EventRow row = EmptyRow();
    bool goes_on = place != nullptr && RecordOfRow(place->found.row).first_seen_at == decision.record.first_seen_at;
    if (goes_on) {
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

// Tells the transaction's list of open claims what happened.
void Track(const EventCall &call, const DedupTable &table, const Decision &decision, const ItemPointerData &at, bool wrote) {
    if (call.action == Action::Acquire && table.transaction_mode && wrote) {
        OpenClaim claim = {table.relation, call.event.key, table.current_generation, at, decision.record, call.payload};
        AddOpenClaim(claim, call.event.handler, call.event.event_id);
    } else if (!Claims(call) && call.action != Action::Extend) {
        const OpenClaim *claim = FindOpenClaim(table.relation, call.event.key);
        if (claim != nullptr) SettleOpenClaim(claim);
    }
}

// Why a slot or an index could not be opened: what to wait for.
Try WaitFor(Oid relation, LOCKMODE lock) {
    Try end = TryAgain();
    end.end = Try::WaitForLock;
    end.locked = relation;
    end.lock = lock;
    return end;
}

// One try, in the generations as they are while the gate is held. Each step returns false when `end` says how it ended.
struct Attempt {
    DedupTable &table;
    const EventCall &call;
    std::optional<Place> place;
    Try end;

    bool Open(int64_t generation, LOCKMODE lock, OpenedSlot *opened) {
        Oid locked = TryOpenSlot(&table.SlotOf(generation), lock, opened);
        if (OidIsValid(locked)) {
            end = WaitFor(locked, lock);
            return false;
        }
        if (table.current) return true;
        CloseSlot(*opened, false);  // taking the lock has told that the partition changed
        end = TryAgain();
        return false;
    }

    bool LookIn(const OpenedSlot &opened, int64_t generation) {
        LookUp look = LookForKey(opened, call.event.key, !Claims(call));
        if (look.look == Look::Inserting) {
            end = TryAgain();
            end.end = Try::WaitForInsertion;
            end.inserter = look.inserter;
            end.token = look.token;
            return false;
        }
        if (look.look == Look::Row) place = Place{generation, look.found};
        return true;
    }

    // Finds the event in the newest generation that has it: an older one's row is of an earlier life.
    bool FindRow(const OpenedSlot &current) {
        const OpenClaim *claim = FindOpenClaim(table.relation, call.event.key);
        if (claim != nullptr && claim->generation == table.current_generation) {
            if (std::optional<Found> own = ReadOwnRow(current, claim->at)) {
                place = Place{claim->generation, *own};
                return true;
            }
        }
        if (!LookIn(current, table.current_generation)) return false;
        for (int64_t g = table.current_generation - 1; !place && g >= table.oldest_generation; g--) {
            OpenedSlot older;
            if (!Open(g, AccessShareLock, &older)) return false;
            bool looked = LookIn(older, g);
            CloseSlot(older, false);
            if (!looked) return false;
        }
        // A settling may have moved the row from a sealed generation to the current one after we looked there. Claims need not
        // know: their insert would conflict.
        bool sealed = table.oldest_generation < table.current_generation;
        return place || Claims(call) || !sealed || LookIn(current, table.current_generation);
    }

    bool InCurrent() const { return place && place->generation == table.current_generation; }

    // Raises 40001 where the row that decides is too new for the transaction's snapshot.
    bool CheckSnapshot(const OpenedSlot &current) {
        if (!IsolationUsesXactSnapshot()) return true;
        if (InCurrent()) {
            CheckVisible(current, place->found.at);
            return true;
        }
        OpenedSlot older;
        if (!Open(place->generation, AccessShareLock, &older)) return false;
        CheckVisible(older, place->found.at);
        CloseSlot(older, false);
        return true;
    }

    // Takes the row out of a sealed generation, where nothing is changed in place, so that it can go to the current one.
    bool TakeFromSealed(Written *written) {
        OpenedSlot sealed;
        if (!Open(place->generation, RowExclusiveLock, &sealed)) return false;
        *written = DeleteRow(sealed, place->found);
        CloseSlot(sealed, *written == Written::Done);
        return true;
    }

    // Writes the decision's record to the current generation.
    bool WriteRow(OpenedSlot *current, const Decision &decision, Written *written, ItemPointerData *at) {
        EventRow row = NextRow(call, table, place ? &*place : nullptr, decision);
        Oid locked = TryOpenForWriting(current);
        if (OidIsValid(locked)) {
            end = WaitFor(locked, RowExclusiveLock);
            return false;
        }
        if (InCurrent()) {
            *written = UpdateRow(*current, place->found, &row, at);
            return true;
        }
        if (place) {
            if (!TakeFromSealed(written)) return false;
            if (*written != Written::Done) return true;
        }
        *written = InsertRow(*current, &row, at);
        // Who saw the sealed row had to delete it first, so nobody else can have come between.
        if (place && *written != Written::Done)
            elog(ERROR, "event moved out of a sealed generation of \"%s\" exists in the current one", table.name);
        return true;
    }

    EventAnswer Answer(const Decision &decision, bool known, bool wrote) const {
        EventAnswer answer = {decision, known, place && place->found.ours, nullptr, nullptr};
        if (wrote && !Claims(call)) answer.error = call.error;
        if (wrote || !known || !place) return answer;
        const EventRow &row = place->found.row;
        if (decision.outcome == Outcome::Duplicate && Claims(call)) answer.result = JsonbOf(row, Column::Result);
        if (decision.outcome == Outcome::Backoff || decision.outcome == Outcome::Dead)
            answer.error = TextOf(row, Column::Error);
        return answer;
    }

    // Decides and writes; returns whether the current slot was written to.
    bool Settle(OpenedSlot *current) {
        Request request = RequestOf(table, call);
        Sighting seen = place ? See(table, call, *place) : Sighting{};
        Micros now = GetCurrentTimestamp();
        Decision decision = Decide(request, seen, now);
        if (decision.effect == Effect::Refuse) Raise(decision.fault, call, seen.record);
        if (seen.found && seen.holder == Holder::Nobody && !CheckSnapshot(*current)) return false;

        bool wrote = false;
        ItemPointerData at = {};
        if (decision.effect != Effect::Keep) {
            Written written = Written::Done;
            if (!WriteRow(current, decision, &written, &at)) return false;
            if (written == Written::Conflict) {
                end = TryAgain();
                return false;
            }
            wrote = written == Written::Done;
            if (!wrote) {  // held: decide anew, knowing that
                seen.holder = Holder::Other;
                decision = Decide(request, seen, now);
                if (decision.effect == Effect::Refuse) Raise(decision.fault, call, seen.record);
            }
        }
        Track(call, table, decision, at, wrote);
        end.end = Try::Answered;
        end.answer = Answer(decision, wrote || seen.holder != Holder::Other, wrote);
        return wrote;
    }

    void Run() {
        OpenedSlot current;
        if (!Open(table.current_generation, RowExclusiveLock, &current)) return;
        bool wrote = FindRow(current) && Settle(&current);
        CloseSlot(current, wrote);
    }
};
static_assert(std::is_trivially_destructible_v<Attempt>, "an error jumps over destructors");

// A claim of this transaction mode's kind that settles without a write needs no storage at all.
std::optional<EventAnswer> SettleByWord(const DedupTable &table, const EventCall &call) {
    if (Claims(call)) return std::nullopt;
    const OpenClaim *claim = FindOpenClaim(table.relation, call.event.key);
    if (claim == nullptr) return std::nullopt;
    Sighting seen = {};
    seen.found = true;
    seen.holder = Holder::OursOpen;
    seen.record = claim->record;
    Decision decision = Decide(RequestOf(table, call), seen, GetCurrentTimestamp());
    if (decision.effect == Effect::Refuse) Raise(decision.fault, call, seen.record);
    if (decision.effect != Effect::Keep) return std::nullopt;
    if (call.action != Action::Extend) SettleOpenClaim(claim);
    return EventAnswer{decision, true, true, nullptr, nullptr};
}

// Outside the gate, in the way the server itself waits.
void WaitOutside(const Try &end) {
    if (end.end == Try::WaitForInsertion) SpeculativeInsertionWait(end.inserter, end.token);
    if (end.end == Try::WaitForLock) {
        LockRelationOid(end.locked, end.lock);
        UnlockRelationOid(end.locked, end.lock);
    }
}

EventAnswer PerformOnce(const EventCall &call) {
    for (;;) {
        CHECK_FOR_INTERRUPTS();
        DedupTable *table = OpenDedupTable(call.dedup);
        CheckWindows(*table, call);
        if (std::optional<EventAnswer> answer = SettleByWord(*table, call)) return *answer;

        Attempt attempt = {*table, call, std::nullopt, TryAgain()};
        UnderGate([&] {
            if (table->current) attempt.Run();
        });
        if (attempt.end.end == Try::Answered) return attempt.end.answer;
        WaitOutside(attempt.end);
    }
}

}  // namespace

EventAnswer Perform(const EventCall &call) {
    constexpr long kFirstPause = 1;  // ms
    constexpr long kLongestPause = 32;

    TimestampTz deadline = call.wait > 0 ? GetCurrentTimestamp() + call.wait : 0;
    for (long pause = kFirstPause;; pause = Min(2 * pause, kLongestPause)) {
        EventAnswer answer = PerformOnce(call);
        if (answer.decision.outcome != Outcome::Busy || answer.ours || deadline == 0) return answer;
        long rest = TimestampDifferenceMilliseconds(GetCurrentTimestamp(), deadline);
        if (rest <= 0) return answer;
        WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, Min(pause, rest), PG_WAIT_EXTENSION);
        ResetLatch(MyLatch);
    }
}

std::optional<EventRow> ReadEvent(Oid dedup, const Key &key) {
    // A turn of the ring that the snapshot sees was told before the snapshot was taken.
    AcceptInvalidationMessages();
    DedupTable *table = OpenDedupTable(dedup);
    while (!table->current) table = OpenDedupTable(dedup);
    for (int64_t g = table->current_generation; g >= table->oldest_generation; g--)
        if (std::optional<EventRow> row = ReadVisibleRow(&table->SlotOf(g), key, GetActiveSnapshot())) return row;
    return std::nullopt;
}

}  // namespace idem
