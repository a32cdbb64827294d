#include "server/base/privileges.hpp"

namespace idem {

Oid RelationOwner(Oid relation) {
    HeapTuple tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relation));
    if (!HeapTupleIsValid(tuple)) elog(ERROR, "cache lookup failed for relation %u", relation);
    Oid owner = reinterpret_cast<Form_pg_class>(GETSTRUCT(tuple))->relowner;
    ReleaseSysCache(tuple);
    return owner;
}

void CheckOwner(Oid relation) {
    if (!OwnsRelation(relation, GetUserId())) aclcheck_error(ACLCHECK_NOT_OWNER, OBJECT_TABLE, get_rel_name(relation));
}

void CheckPrivileges(Oid relation, AclMode privileges) {
    if (pg_class_aclmask(relation, GetUserId(), privileges, ACLMASK_ALL) != privileges)
        aclcheck_error(ACLCHECK_NO_PRIV, OBJECT_TABLE, get_rel_name(relation));
}

}  // namespace idem
