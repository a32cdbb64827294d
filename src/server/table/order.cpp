#include "server/table/order.hpp"

#include "server/base/extension.hpp"
#include "server/table/watch.hpp"

namespace idem {
namespace {

bool IsUniqueOnKey(Relation index, AttrNumber key_column) {
    Form_pg_index form = index->rd_index;
    return form->indisunique && form->indimmediate && form->indnkeyatts == 1 && form->indkey.values[0] == key_column &&
           index->rd_rel->relam == BTREE_AM_OID;
}

// What an object of a partition calls, for the message.
struct UserCode {
    const char *name;  // of the dedup table
    const char *part;
    const char *kind;
    const char *object;
};

[[noreturn]] void RefuseUserCode(const UserCode &at, const char *what) {
    ereport(
        ERROR,
        (errcode(ERRCODE_WRONG_OBJECT_TYPE), errmsg("dedup table \"%s\" is not in order", at.name),
         errdetail("The %s \"%s\" of \"%s\" uses %s; only immutable functions of the server's own may be used there.",
                   at.kind, at.object, at.part, what),
         errhint("Drop that %s.", at.kind)));
}

void CheckFunction(Oid function, const UserCode &at) {
    if (function >= FirstNormalObjectId || func_volatile(function) != PROVOLATILE_IMMUTABLE)
        RefuseUserCode(at, psprintf("function %s", format_procedure(function)));
}

bool CheckFunctionOf(Oid function, void *at) {
    CheckFunction(function, *static_cast<UserCode *>(at));
    return false;
}

// Types that users make bring functions of theirs, by casts, domains and comparisons which no expression names.
bool CheckExpression(Node *node, void *context) {
    if (node == nullptr) return false;
    const auto &at = *static_cast<UserCode *>(context);
    (void)check_functions_in_node(node, CheckFunctionOf, context);
    if (!IsA(node, List) && !IsA(node, CaseWhen)) {
        Oid type = exprType(node);
        bool own = type == InstalledExtension().state_type || type == get_array_type(InstalledExtension().state_type);
        if (type >= FirstNormalObjectId && !own) RefuseUserCode(at, psprintf("type %s", format_type_be(type)));
    }
    return WalkExpression(node, CheckExpression, context);
}

void CheckIndexCode(const char *name, const char *part, Relation index) {
    UserCode at = {name, part, "index", RelationGetRelationName(index)};
    (void)CheckExpression(reinterpret_cast<Node *>(RelationGetIndexExpressions(index)), &at);
    (void)CheckExpression(reinterpret_cast<Node *>(RelationGetIndexPredicate(index)), &at);
    if (index->rd_amhandler >= FirstNormalObjectId) RefuseUserCode(at, "an access method");
    int support = IndexRelationGetNumberOfKeyAttributes(index) * index->rd_indam->amsupport;
    for (int i = 0; i < support; i++)
        if (index->rd_support[i] >= FirstNormalObjectId)
            RefuseUserCode(at, psprintf("function %s", format_procedure(index->rd_support[i])));
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

void CheckNoUserCode(const char *name, Relation partition) {
    const char *part = RelationGetRelationName(partition);
    TupleDesc desc = RelationGetDescr(partition);
    for (int i = 0; i < desc->natts; i++)
        if (TupleDescAttr(desc, i)->attgenerated != '\0')
            OutOfOrder(name, psprintf("Column \"%s\" of \"%s\" is generated, and idem does not compute it.",
                                      NameStr(TupleDescAttr(desc, i)->attname), part));
    for (int i = 0; desc->constr != nullptr && i < desc->constr->num_check; i++) {
        const ConstrCheck &check = desc->constr->check[i];
        UserCode at = {name, part, "constraint", check.ccname};
        (void)CheckExpression(static_cast<Node *>(stringToNode(check.ccbin)), &at);
    }
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
        CheckIndexCode(name, part, index);
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
