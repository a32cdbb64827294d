#include "server/ring/unsettled.hpp"

#include "server/base/privileges.hpp"
#include "server/base/statement.hpp"

namespace idem {
namespace {

// Locks the table, its partitions and their indexes as a SELECT does; false if somebody else has locked one of them.
// What was locked stays so until the transaction ends.
bool TryLockForReading(Oid dedup) {
    if (!ConditionalLockRelationOid(dedup, AccessShareLock)) return false;
    List *partitions = find_inheritance_children(dedup, NoLock);
    for (int i = 0; i < list_length(partitions); i++) {
        Oid partition = list_nth_oid(partitions, i);
        if (!ConditionalLockRelationOid(partition, AccessShareLock)) return false;
        Relation relation = try_relation_open(partition, NoLock);
        if (relation == nullptr) return false;
        List *indexes = RelationGetIndexList(relation);
        relation_close(relation, NoLock);
        for (int j = 0; j < list_length(indexes); j++)
            if (!ConditionalLockRelationOid(list_nth_oid(indexes, j), AccessShareLock)) return false;
    }
    return true;
}

}  // namespace

void ReadUnsettled(Oid dedup, void (*use)(const Unsettled &unsettled, void *argument), void *argument) {
    if (!TryLockForReading(dedup)) {
        use(Unsettled{}, argument);
        return;
    }
    Oid user = InvalidOid;
    int security_context = 0;
    GetUserIdAndSecContext(&user, &security_context);
    SetUserIdAndSecContext(RelationOwner(dedup), security_context | SECURITY_RESTRICTED_OPERATION);
    const char *query = psprintf(
        "SELECT handler, state, pg_catalog.count(*), pg_catalog.min(first_seen_at), pg_catalog.min(claimable_at) FROM "
        "%s "
        "WHERE claimable_at IS NOT NULL AND expires_at OPERATOR(pg_catalog.>) pg_catalog.clock_timestamp() "
        "GROUP BY handler, state ORDER BY handler, state",
        QualifiedNameOf(dedup));
    int done = SPI_execute(query, true, 0);
    if (done != SPI_OK_SELECT) elog(ERROR, "could not look for unsettled events: %s", SPI_result_code_string(done));
    SetUserIdAndSecContext(user, security_context);
    for (uint64 i = 0; i < SPI_processed; i++) {
        auto value = [&](int column) {
            bool null = false;
            return SPI_getbinval(SPI_tuptable->vals[i], SPI_tuptable->tupdesc, column, &null);
        };
        Unsettled unsettled = {DatumGetTextPP(value(1)), DatumGetObjectId(value(2)), DatumGetInt64(value(3)),
                               DatumGetTimestampTz(value(4)), DatumGetTimestampTz(value(5))};
        use(unsettled, argument);
    }
}

}  // namespace idem
