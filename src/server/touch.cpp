#include "server/touch.hpp"

#include "server/dedup_table.hpp"
#include "server/extension.hpp"
#include "server/filter_memory.hpp"
#include "server/statement.hpp"

namespace idem {
namespace {

// Partitions that this transaction has touched, in TopTransactionContext; NIL between transactions.
List *touched = NIL;

// What was told last, so that a bulk load tells once.
Oid latest = InvalidOid;
SubTransactionId latest_in = InvalidSubTransactionId;

void Tell(Oid partition) {
    TouchFilter(partition);
    // The same transaction may have dropped or detached it since, which is told to all anyway.
    if (get_rel_relispartition(partition)) CacheInvalidateRelcacheByRelid(get_partition_parent(partition, true));
}

}  // namespace

void Touch(Relation partition) {
    Oid relation = RelationGetRelid(partition);
    SubTransactionId here = GetCurrentSubTransactionId();
    if (!partition->rd_rel->relispartition || (latest == relation && latest_in == here)) return;
    MemoryContext caller = MemoryContextSwitchTo(TopTransactionContext);
    touched = list_append_unique_oid(touched, relation);
    MemoryContextSwitchTo(caller);
    Tell(relation);
    latest = relation;
    latest_in = here;
}

void WatchPartition(Oid partition) {
    const char *name = QualifiedNameOf(partition);
    const char *function = quote_qualified_identifier(get_namespace_name(InstalledExtension().schema), "idem_touch");
    Execute(
        psprintf("CREATE OR REPLACE TRIGGER idem_touch BEFORE INSERT OR UPDATE ON %s "
                 "FOR EACH ROW EXECUTE FUNCTION %s()",
                 name, function));
    Execute(psprintf("ALTER TABLE %s ENABLE ALWAYS TRIGGER idem_touch", name));
    Tell(partition);
}

void TellTouchesAgain() {
    for (int i = 0; i < list_length(touched); i++) Tell(list_nth_oid(touched, i));
}

void ForgetTouches() {
    touched = NIL;
    latest = InvalidOid;
}

}  // namespace idem
