#include "server/claim/succession.hpp"

#include "server/table/dedup_table.hpp"

namespace idem {
namespace {

// Who marks and who settles keep each other out; either are as many as like.
constexpr LOCKMODE kReceiving = RowExclusiveLock;
constexpr LOCKMODE kSettling = ShareLock;

constexpr int kMostBytes = 255;

// Where the session's round has come to.
struct Place {
    Oid dedup;
    int handler_bytes;
    int ordering_bytes;
    char handler[kMostBytes];
    char ordering[kMostBytes];
};
Place place;

void Keep(const text *value, char *kept, int *bytes) {
    std::string_view view = ViewOf(value);
    *bytes = Min(static_cast<int>(view.size()), kMostBytes);
    memcpy(kept, view.data(), *bytes);
}

text *TextOfColumn(int number) {
    bool null = false;
    Datum value = SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, number, &null);
    return null ? nullptr : DatumGetTextPP(value);
}

bool SkipsDead(const OrderingKey &key) { return OpenDedupTable(key.dedup)->PolicyOf(ViewOf(key.handler)).skips_dead; }

}  // namespace

bool WaitsBehind(const OrderingKey &key) {
    // A serializable transaction must not come into conflict with all that happens to the key, for a hint.
    if (IsolationIsSerializable()) return false;
    if (TryLockKey(key, LockFor::Succession, kReceiving) == LOCKACQUIRE_NOT_AVAIL) return false;
    SPI_connect();
    bool behind = LookAtKey(LookFor::Unsettled, Waiter{key, Key{}, 0}, SkipsDead(key));
    SPI_finish();
    if (!behind) UnlockKey(key, LockFor::Succession, kReceiving);
    return behind;
}

void LetNextGoOn(const OrderingKey &key, EventAnswer (*perform)(const EventCall &)) {
    if (IsolationUsesXactSnapshot()) return;  // it may be too new to be written to
    (void)TryLockKey(key, LockFor::Succession, kSettling);
    SPI_connect();
    if (LookAtKey(LookFor::Behind, Waiter{key, Key{}, 0}, false)) {
        EventCall call = {};
        call.dedup = key.dedup;
        call.action = Action::Requeue;
        call.event = MakeIdentity(TextOfColumn(2), TextOfColumn(3), TextOfColumn(4));
        call.forgiving = true;
        (void)perform(call);
    }
    SPI_finish();
}

bool Round::GoToNextKey(OrderingKey *key) {
    bool elsewhere = place.dedup != dedup_ ||
                     (handler_ != nullptr && ViewOf(handler_) != std::string_view(place.handler, place.handler_bytes));
    if (elsewhere) place.handler_bytes = place.ordering_bytes = 0;
    place.dedup = dedup_;
    text *handler = handler_ != nullptr ? handler_ : cstring_to_text_with_len(place.handler, place.handler_bytes);
    text *ordering = cstring_to_text_with_len(place.ordering, place.ordering_bytes);
    LookFor what = handler_ != nullptr ? LookFor::NextOwn : LookFor::NextKey;
    if (!LookAtKey(what, Waiter{{dedup_, handler, ordering}, Key{}, 0}, false)) {
        place.handler_bytes = place.ordering_bytes = 0;
        return false;
    }
    *key = OrderingKey{dedup_, TextOfColumn(1), TextOfColumn(2)};
    Keep(key->handler, place.handler, &place.handler_bytes);
    Keep(key->ordering, place.ordering, &place.ordering_bytes);
    return true;
}

bool Round::FindFree(int *steps) {
    while (*steps > 0) {
        (*steps)--;
        CHECK_FOR_INTERRUPTS();
        OrderingKey key = {};
        bool from_start = place.dedup != dedup_ || place.handler_bytes == 0;
        if (!GoToNextKey(&key)) {
            if (over_ || from_start) return false;
            over_ = true;
            continue;
        }
        SPITupleTable *read = SPI_tuptable;
        bool found = LookAtKey(LookFor::First, Waiter{key, Key{}, 0}, SkipsDead(key));
        SPI_freetuptable(read);
        if (!found) continue;
        bool null = false;
        Datum claimable_at = SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 10, &null);
        if (!null && TIMESTAMP_IS_NOBEGIN(DatumGetTimestampTz(claimable_at))) return true;
        SPI_freetuptable(SPI_tuptable);
    }
    return false;
}

}  // namespace idem
