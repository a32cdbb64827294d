#include "server/claim/open_claims.hpp"

#include "server/base/arguments.hpp"
#include "server/base/errors.hpp"
#include "server/claim/tally.hpp"

namespace idem {
namespace {

struct Identified {
    Oid dedup;
    Key key;
};
static_assert(sizeof(Identified) == 20, "hashed as bytes, so it must have no padding");

// Subtransaction ids grow within a transaction. While one is open, all younger ids are its own and its children's, so
// "id >= this one" means "in it", also for children that have ended.
struct Tracked {
    OpenClaim claim;
    Tracked *earlier;  // an earlier claim on the same event which a rollback may reopen
    SubTransactionId claimed_in;
    SubTransactionId settled_in;  // InvalidSubTransactionId = open
    dlist_node in_order;          // all, in the order of claiming
    dlist_node settled_in_order;  // those settled in a savepoint that may still be rolled back
    char *handler;
    char *event_id;
};

struct Entry {
    Identified event;
    Tracked *latest;
};

// All of it lives in TopTransactionContext; nullptr between transactions.
HTAB *events = nullptr;
dlist_head claims;
dlist_head settled;

Identified EventOf(Oid dedup, const Key &key) { return {dedup, key}; }

Entry *EntryOf(const Identified &event, HASHACTION action, bool *found) {
    return static_cast<Entry *>(hash_search(events, &event, action, found));
}

void Start() {
    HASHCTL control = {};
    control.keysize = sizeof(Identified);
    control.entrysize = sizeof(Entry);
    control.hcxt = TopTransactionContext;
    events = hash_create("idem open claims", 64, &control, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
    dlist_init(&claims);
    dlist_init(&settled);
}

// Takes a claim off its event. Where it isn't the latest, the later ones were made in savepoints that ended with it.
void Remove(Tracked *tracked) {
    Identified event = EventOf(tracked->claim.dedup, tracked->claim.key);
    Entry *entry = EntryOf(event, HASH_FIND, nullptr);
    Tracked **link = &entry->latest;
    while (*link != tracked) link = &(*link)->earlier;
    *link = tracked->earlier;
    if (entry->latest == nullptr) EntryOf(event, HASH_REMOVE, nullptr);
    dlist_delete(&tracked->in_order);
    if (tracked->settled_in != InvalidSubTransactionId) dlist_delete(&tracked->settled_in_order);
    pfree(tracked->handler);
    pfree(tracked->event_id);
    if (tracked->claim.payload != nullptr) pfree(tracked->claim.payload);
    pfree(tracked);
}

// dlist_container does not compile as C++.
Tracked *OfOrder(dlist_node *node) {
    return reinterpret_cast<Tracked *>(reinterpret_cast<char *>(node) - offsetof(Tracked, in_order));
}

Tracked *OfSettledOrder(dlist_node *node) {
    return reinterpret_cast<Tracked *>(reinterpret_cast<char *>(node) - offsetof(Tracked, settled_in_order));
}

void RollBack(SubTransactionId savepoint) {
    while (!dlist_is_empty(&claims)) {
        Tracked *latest = OfOrder(dlist_tail_node(&claims));
        if (latest->claimed_in < savepoint) break;
        Remove(latest);
    }
    while (!dlist_is_empty(&settled)) {
        Tracked *latest = OfSettledOrder(dlist_tail_node(&settled));
        if (latest->settled_in < savepoint) break;
        dlist_delete(&latest->settled_in_order);
        latest->settled_in = InvalidSubTransactionId;
    }
}

// The savepoint ends well: what was settled in it is settled in its parent, and forgotten where it was claimed there
// too.
void Merge(SubTransactionId savepoint, SubTransactionId parent) {
    dlist_node *node = dlist_is_empty(&settled) ? &settled.head : dlist_tail_node(&settled);
    while (node != &settled.head) {
        Tracked *tracked = OfSettledOrder(node);
        node = node->prev;
        if (tracked->settled_in < savepoint) break;
        if (tracked->claimed_in >= parent) Remove(tracked);
    }
}

void OnSavepoint(SubXactEvent event, SubTransactionId savepoint, SubTransactionId parent, void *) {
    if (events == nullptr) return;
    if (event == SUBXACT_EVENT_ABORT_SUB) RollBack(savepoint);
    if (event == SUBXACT_EVENT_COMMIT_SUB) Merge(savepoint, parent);
}

}  // namespace

const OpenClaim *FindOpenClaim(Oid dedup, const Key &key) {
    if (events == nullptr) return nullptr;
    Entry *entry = EntryOf(EventOf(dedup, key), HASH_FIND, nullptr);
    bool open = entry != nullptr && entry->latest->settled_in == InvalidSubTransactionId;
    return open ? &entry->latest->claim : nullptr;
}

bool HasOpenClaims() { return events != nullptr && !dlist_is_empty(&claims); }

void AddOpenClaim(const OpenClaim &claim, const text *handler, const text *event_id) {
    if (events == nullptr) Start();
    if (const OpenClaim *gone = FindOpenClaim(claim.dedup, claim.key)) SettleOpenClaim(gone);
    MemoryContext caller = MemoryContextSwitchTo(TopTransactionContext);
    auto *tracked = static_cast<Tracked *>(palloc0(sizeof(Tracked)));
    tracked->claim = claim;
    tracked->claimed_in = GetCurrentSubTransactionId();
    tracked->handler = text_to_cstring(handler);
    tracked->event_id = text_to_cstring(event_id);
    if (claim.payload != nullptr) tracked->claim.payload = DatumGetJsonbPCopy(PointerGetDatum(claim.payload));
    MemoryContextSwitchTo(caller);

    bool found = false;
    Entry *entry = EntryOf(EventOf(claim.dedup, claim.key), HASH_ENTER, &found);
    tracked->earlier = found ? entry->latest : nullptr;
    entry->latest = tracked;
    dlist_push_tail(&claims, &tracked->in_order);
}

void SettleOpenClaim(const OpenClaim *claim) {
    Entry *entry = EntryOf(EventOf(claim->dedup, claim->key), HASH_FIND, nullptr);
    Tracked *tracked = entry->latest;
    SubTransactionId here = GetCurrentSubTransactionId();
    if (tracked->claimed_in >= here) {
        Remove(tracked);
        return;
    }
    tracked->settled_in = here;
    dlist_push_tail(&settled, &tracked->settled_in_order);
}

void RefuseUnsettledClaims() {
    if (events == nullptr || dlist_is_empty(&claims)) return;
    // No savepoint is left, so all claims in the list are open.
    Tracked *first = nullptr;
    unsigned long unsettled = 0;
    for (dlist_node *node = claims.head.next; node != &claims.head; node = node->next) {
        Tracked *tracked = OfOrder(node);
        if (!SearchSysCacheExists1(RELOID, ObjectIdGetDatum(tracked->claim.dedup))) continue;
        if (first == nullptr) first = tracked;
        unsettled++;
        CountOne(tracked->claim.dedup, tracked->handler, Counter::LeftOpen);
    }
    if (first == nullptr) return;
    ereport(
        ERROR,
        (errcode(kClaimUnsettled),
         errmsg("event \"%s\" of handler \"%s\" was acquired but neither committed nor released", first->event_id,
                first->handler),
         errdetail_plural("The transaction leaves %lu claim unsettled.", "The transaction leaves %lu claims unsettled.",
                          unsettled, unsettled),
         errhint("Call idem_commit or idem_release before the transaction ends, or use a dedup table in lease mode.")));
}

void ForgetClaims() { events = nullptr; }

void WatchSavepoints() { RegisterSubXactCallback(OnSavepoint, nullptr); }

}  // namespace idem
