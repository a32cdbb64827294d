#include "server/table/order.hpp"

#include "server/table/watch.hpp"

namespace idem {
namespace {

bool IsUniqueOnKey(Relation index, AttrNumber key_column) {
    Form_pg_index form = index->rd_index;
    return form->indisunique && form->indimmediate && form->indnkeyatts == 1 && form->indkey.values[0] == key_column &&
           index->rd_rel->relam == BTREE_AM_OID;
}

}  // namespace

void OutOfOrder(const char *name, const char *detail) {
    ereport(ERROR, (errcode(ERRCODE_WRONG_OBJECT_TYPE), errmsg("dedup table \"%s\" is not in order", name),
                    errdetail("%s", detail)));
}

void CheckNothingPassedBy(const char *name, Relation relation) {
    const char *part = RelationGetRelationName(relation);
    if (relation->rd_rel->relrowsecurity)
        OutOfOrder(name, psprintf("Row-level security is enabled on \"%s\", and idem does not apply it.", part));
    if (relation->rd_rules != nullptr)
        OutOfOrder(name, psprintf("\"%s\" has rules, and idem does not apply them.", part));
    if (HasOtherTriggers(relation))
        OutOfOrder(name, psprintf("\"%s\" has triggers or is referenced by a foreign key, and idem fires none.", part));
}

bool CheckConstraints(const char *name, Relation partition, const ColumnMap &columns) {
    TupleDesc desc = RelationGetDescr(partition);
    bool further = desc->constr != nullptr && desc->constr->num_check > 0;
    for (int i = 0; i < kColumnCount; i++) {
        bool not_null = TupleDescAttr(desc, columns.numbers[i] - 1)->attnotnull;
        bool required = IsRequired(static_cast<Column>(i));
        if (required && !not_null)
            OutOfOrder(name, psprintf("Column \"%s\" of \"%s\" is not NOT NULL.", kColumnNames[i],
                                      RelationGetRelationName(partition)));
        further = further || (not_null && !required);
    }
    return further;
}

void CheckIndexes(const char *name, Relation partition, AttrNumber key_column) {
    const char *part = RelationGetRelationName(partition);
    List *indexes = RelationGetIndexList(partition);
    Oid primary = PrimaryKeyIndex(partition);
    if (!OidIsValid(primary)) OutOfOrder(name, psprintf("\"%s\" has no primary key.", part));

    for (int i = 0; i < list_length(indexes); i++) {
        Relation index = index_open(list_nth_oid(indexes, i), AccessShareLock);
        bool constrains = index->rd_index->indisunique || index->rd_index->indisexclusion;
        bool is_primary = RelationGetRelid(index) == primary;
        if (is_primary && !(IsUniqueOnKey(index, key_column) && index->rd_index->indisvalid))
            OutOfOrder(name, psprintf("The primary key of \"%s\" is not an ordinary one on (key).", part));
        if (constrains && !IsUniqueOnKey(index, key_column))
            OutOfOrder(name, psprintf("\"%s\" has another unique or exclusion constraint, \"%s\".", part,
                                      RelationGetRelationName(index)));
        index_close(index, AccessShareLock);
    }
    list_free(indexes);
}

}  // namespace idem
