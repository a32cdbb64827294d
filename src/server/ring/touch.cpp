#include "server/ring/touch.hpp"

#include "server/table/watch.hpp"

namespace idem {
namespace {

// Partitions that this transaction has touched, in TopTransactionContext; NIL between transactions.
List *touched = NIL;

// What was told last, so that a bulk load tells once.
Oid latest = InvalidOid;
SubTransactionId latest_in = InvalidSubTransactionId;

}  // namespace

void Touch(Relation partition) {
    Oid relation = RelationGetRelid(partition);
    SubTransactionId here = GetCurrentSubTransactionId();
    if (!partition->rd_rel->relispartition || (latest == relation && latest_in == here)) return;
    MemoryContext caller = MemoryContextSwitchTo(TopTransactionContext);
    touched = list_append_unique_oid(touched, relation);
    MemoryContextSwitchTo(caller);
    TellWritten(relation);
    latest = relation;
    latest_in = here;
}

void TellTouchesAgain() {
    for (int i = 0; i < list_length(touched); i++) TellWritten(list_nth_oid(touched, i));
}

void ForgetTouches() {
    touched = NIL;
    latest = InvalidOid;
}

}  // namespace idem
