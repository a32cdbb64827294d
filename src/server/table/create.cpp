#include "server/table/create.hpp"

#include "server/base/extension.hpp"
#include "server/base/statement.hpp"
#include "server/table/dedup_table.hpp"
#include "server/table/generation.hpp"
#include "server/table/watch.hpp"

namespace idem {
namespace {

void CheckName(const RangeVar *name, Oid schema, int generations) {
    if (isAnyTempNamespace(schema))
        ereport(ERROR, (errcode(ERRCODE_INVALID_TABLE_DEFINITION), errmsg("a dedup table cannot be temporary"),
                        errdetail("It has to outlive the session to recognize a second delivery.")));
    char *longest = psprintf("%s_g%d", name->relname, generations - 1);
    if (strlen(longest) >= NAMEDATALEN)
        ereport(ERROR,
                (errcode(ERRCODE_NAME_TOO_LONG), errmsg("name \"%s\" is too long for a dedup table", name->relname),
                 errdetail("Its partitions have names such as \"%s\", and a name has at most %d bytes.", longest,
                           NAMEDATALEN - 1)));
}

// Which slot of an unregistered table was current: the one with the latest claim.
int LatestSlot(Oid dedup, int slots) {
    SPI_connect();
    Execute(psprintf("SELECT slot FROM %s ORDER BY COALESCE(claimed_at, first_seen_at) DESC LIMIT 1",
                     QualifiedNameOf(dedup)));
    int latest = slots - 1;
    if (SPI_processed == 1) {
        bool null = false;
        latest = DatumGetInt16(SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1, &null));
    }
    SPI_finish();
    return latest;
}

// A table OF a type shows none of the comments on its columns, and \d+ is where people look.
void CopyColumnComments(Oid dedup) {
    TupleDesc columns = lookup_rowtype_tupdesc(InstalledExtension().event_type, -1);
    Oid type = get_typ_typrelid(InstalledExtension().event_type);
    for (int column = 1; column <= columns->natts; column++)
        CreateComments(dedup, RelationRelationId, column, GetComment(type, RelationRelationId, column));
    ReleaseTupleDesc(columns);
}

}  // namespace

Oid CreateDedupTable(text *name_text, const Policy &policy, int generations, bool unlogged) {
    RangeVar *name = makeRangeVarFromNameList(textToQualifiedNameList(name_text));
    Oid schema = RangeVarGetCreationNamespace(name);
    CheckName(name, schema, generations);
    const char *schema_name = get_namespace_name(schema);
    char *table = quote_qualified_identifier(schema_name, name->relname);
    char *type = quote_qualified_identifier(get_namespace_name(InstalledExtension().schema), "idem_event");

    SPI_connect();
    Execute(
        psprintf("CREATE TABLE %s OF %s ("
                 "key WITH OPTIONS NOT NULL, state WITH OPTIONS NOT NULL, attempt WITH OPTIONS NOT NULL, "
                 "first_seen_at WITH OPTIONS NOT NULL, expires_at WITH OPTIONS NOT NULL, "
                 "failures WITH OPTIONS NOT NULL, slot WITH OPTIONS NOT NULL, handler WITH OPTIONS NOT NULL, "
                 "event_id WITH OPTIONS NOT NULL) PARTITION BY LIST (slot)",
                 table, type));
    for (int slot = 0; slot < generations; slot++) {
        char *partition = quote_qualified_identifier(schema_name, psprintf("%s_g%d", name->relname, slot));
        Execute(psprintf("CREATE %s TABLE %s PARTITION OF %s (PRIMARY KEY (key)) FOR VALUES IN (%d)",
                         unlogged ? "UNLOGGED" : "", partition, table, slot));
        // What is due; a settled event is not in it.
        Execute(psprintf("CREATE INDEX ON %s (claimable_at) WHERE claimable_at IS NOT NULL", partition));
        // The events of an ordering key, in order, and which of them are being worked on.
        Execute(
            psprintf("CREATE INDEX ON %s (handler, ordering,"
                     " (CASE WHEN state OPERATOR(pg_catalog.=) 'processing' THEN 1 ELSE 0 END), first_seen_at, key)"
                     " WHERE ordering IS NOT NULL AND claimable_at IS NOT NULL",
                     partition));
        WatchPartition(get_relname_relid(psprintf("%s_g%d", name->relname, slot), schema));
    }
    SPI_finish();

    Oid dedup = get_relname_relid(name->relname, schema);
    Register(dedup, policy, RingPosition{CheckDedupTable(dedup), 0, 0});
    RecordOpened(dedup, 0);
    CopyColumnComments(dedup);
    return dedup;
}

void AttachDedupTable(Oid dedup, const Policy &policy) {
    int slots = CheckDedupTable(dedup);
    int64_t current = slots + LatestSlot(dedup, slots);
    Register(dedup, policy, RingPosition{slots, current - slots + 1, current});
    for (int64_t g = current - slots + 1; g <= current; g++) {
        RecordOpened(dedup, g);
        if (g < current) RecordSealed(dedup, g);
    }
    CacheInvalidateRelcacheByRelid(dedup);
}

}  // namespace idem
