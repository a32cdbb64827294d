#include "server/claim/ordering_key.hpp"

#include "server/base/privileges.hpp"
#include "server/base/statement.hpp"

namespace idem {
namespace {

// So many locks at most does a transaction take, whatever the number of keys. Two keys that share one wait for each
// other now and then.
constexpr uint32 kLocks = 4096;

LOCKTAG LockOf(const OrderingKey &key, LockFor what) {
    Key hash = MakeKey(ViewOf(key.handler), ViewOf(key.ordering), std::string_view());
    uint32 number = 0;
    memcpy(&number, &hash, sizeof(number));
    LOCKTAG tag;
    SET_LOCKTAG_ADVISORY(tag, MyDatabaseId, key.dedup, number % kLocks, static_cast<uint16>(what));
    return tag;
}

// Written so that each part is a descent of the index (handler, ordering, is it being worked on, first_seen_at, key).
#define EVENTS_OF_KEY                                                                           \
    "FROM %1$s WHERE handler OPERATOR(pg_catalog.=) $1 AND ordering OPERATOR(pg_catalog.=) $2 " \
    "AND claimable_at IS NOT NULL AND expires_at OPERATOR(pg_catalog.>) $3 "                    \
    "AND NOT ($6 AND state OPERATOR(pg_catalog.=) 'dead') "
#define WORKED_ON "(CASE WHEN state OPERATOR(pg_catalog.=) 'processing' THEN 1 ELSE 0 END) OPERATOR(pg_catalog.=) "
#define EARLIER "AND ROW(first_seen_at, key) OPERATOR(pg_catalog.<) ROW($4, $5) "
#define IN_ORDER "ORDER BY first_seen_at, key LIMIT 1"
#define A_KEY "SELECT handler, ordering FROM %1$s WHERE ordering IS NOT NULL AND claimable_at IS NOT NULL AND "

const char *const kQueries[] = {
    "(SELECT 1 " EVENTS_OF_KEY "AND " WORKED_ON
    "1 AND claimable_at OPERATOR(pg_catalog.>) $3 LIMIT 1) UNION ALL "
    "(SELECT 1 " EVENTS_OF_KEY "AND " WORKED_ON "0 " EARLIER
    "LIMIT 1) UNION ALL "
    "(SELECT 1 " EVENTS_OF_KEY "AND " WORKED_ON "1 " EARLIER "LIMIT 1)",
    "(SELECT 1 " EVENTS_OF_KEY "AND " WORKED_ON
    "0 LIMIT 1) UNION ALL "
    "(SELECT 1 " EVENTS_OF_KEY "AND " WORKED_ON "1 LIMIT 1)",
    "SELECT key, handler, event_id, batch " EVENTS_OF_KEY "AND " WORKED_ON
    "0 AND claimable_at OPERATOR(pg_catalog.=) '-infinity' " IN_ORDER,
    "SELECT handler, event_id, batch, payload, error, ordering, first_seen_at, key, false, claimable_at " EVENTS_OF_KEY
    "AND " WORKED_ON "0 " IN_ORDER,
    A_KEY "ROW(handler, ordering) OPERATOR(pg_catalog.>) ROW($1, $2) ORDER BY handler, ordering LIMIT 1",
    A_KEY "handler OPERATOR(pg_catalog.=) $1 AND ordering OPERATOR(pg_catalog.>) $2 ORDER BY ordering LIMIT 1",
};
constexpr int kQueryCount = sizeof(kQueries) / sizeof(*kQueries);

// The plans of one dedup table, by its name, which they are made of. The latest only: few sessions work on several.
struct Plans {
    char name[4 * NAMEDATALEN + sizeof("\"\".\"\"")];
    SPIPlanPtr plans[kQueryCount];
};
Plans latest;

SPIPlanPtr PlanOf(LookFor what, Oid dedup) {
    const char *name = QualifiedNameOf(dedup);
    if (strcmp(latest.name, name) != 0) {
        for (SPIPlanPtr &plan : latest.plans) {
            if (plan != nullptr) SPI_freeplan(plan);
            plan = nullptr;
        }
        strlcpy(latest.name, name, sizeof(latest.name));
    }
    SPIPlanPtr &plan = latest.plans[static_cast<int>(what)];
    if (plan != nullptr) return plan;
    const char *query = psprintf(kQueries[static_cast<int>(what)], name);
    Oid types[] = {TEXTOID, TEXTOID, TIMESTAMPTZOID, TIMESTAMPTZOID, UUIDOID, BOOLOID};
    SPIPlanPtr prepared = SPI_prepare_cursor(query, 6, types, CURSOR_OPT_GENERIC_PLAN);
    if (prepared == nullptr || SPI_keepplan(prepared) != 0)
        elog(ERROR, "could not prepare: %s", SPI_result_code_string(SPI_result));
    plan = prepared;
    return plan;
}

}  // namespace

void PreferIndexes() {
    for (const char *setting : {"enable_seqscan", "enable_bitmapscan", "enable_sort"})
        (void)set_config_option(setting, "off", PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE, true, 0, false);
}

LockAcquireResult TryLockKey(const OrderingKey &key, LockFor what, LOCKMODE mode) {
    LOCKTAG tag = LockOf(key, what);
    return LockAcquire(&tag, mode, false, true);
}

void UnlockKey(const OrderingKey &key, LockFor what, LOCKMODE mode) {
    LOCKTAG tag = LockOf(key, what);
    LockRelease(&tag, mode, false);
}

bool LookAtKey(LookFor what, const Waiter &waiter, bool skips_dead) {
    SPIPlanPtr plan = PlanOf(what, waiter.of.dedup);
    Datum values[] = {PointerGetDatum(waiter.of.handler),
                      PointerGetDatum(waiter.of.ordering),
                      TimestampTzGetDatum(GetCurrentTimestamp()),
                      TimestampTzGetDatum(waiter.first_seen_at),
                      PointerGetDatum(&waiter.key),
                      BoolGetDatum(skips_dead)};
    Oid user = InvalidOid;
    int security = 0;
    GetUserIdAndSecContext(&user, &security);
    SetUserIdAndSecContext(RelationOwner(waiter.of.dedup), security | SECURITY_RESTRICTED_OPERATION);
    int level = NewGUCNestLevel();
    PreferIndexes();
    PushCopiedSnapshot(GetLatestSnapshot());
    GetActiveSnapshot()->curcid = InvalidCommandId;  // what this very statement has written counts, too
    int done = SPI_execute_plan(plan, values, nullptr, true, 1);
    PopActiveSnapshot();
    AtEOXact_GUC(true, level);
    SetUserIdAndSecContext(user, security);
    if (done != SPI_OK_SELECT) elog(ERROR, "could not look at an ordering key: %s", SPI_result_code_string(done));
    return SPI_processed > 0;
}

}  // namespace idem
