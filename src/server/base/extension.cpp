#include "server/base/extension.hpp"

namespace idem {
namespace {

constexpr const char *kStateLabels[kStateCount] = {"pending", "processing", "done", "failed", "dead"};
constexpr const char *kOutcomeLabels[kOutcomeCount] = {"acquired", "duplicate", "busy",  "backoff",
                                                       "dead",     "conflict",  "stale", "bypassed"};

Extension installed;
bool installed_is_current = false;

Oid TypeNamed(const char *name, Oid schema) {
    Oid type = GetSysCacheOid2(TYPENAMENSP, Anum_pg_type_oid, CStringGetDatum(name), ObjectIdGetDatum(schema));
    if (!OidIsValid(type)) elog(ERROR, "extension \"idem\" has no type \"%s\"", name);
    return type;
}

Oid RelationNamed(const char *name, Oid schema) {
    Oid relation = get_relname_relid(name, schema);
    if (!OidIsValid(relation)) elog(ERROR, "extension \"idem\" has no relation \"%s\"", name);
    return relation;
}

// A function of the extension without arguments.
Oid FunctionNamed(const char *name, Oid schema) {
    oidvector *no_arguments = buildoidvector(nullptr, 0);
    Oid function = GetSysCacheOid3(PROCNAMEARGSNSP, Anum_pg_proc_oid, CStringGetDatum(name),
                                   PointerGetDatum(no_arguments), ObjectIdGetDatum(schema));
    if (!OidIsValid(function)) elog(ERROR, "extension \"idem\" has no function \"%s\"", name);
    return function;
}

void LabelsOf(Oid type, const char *const *names, int count, Oid *labels) {
    for (int i = 0; i < count; i++) {
        labels[i] =
            GetSysCacheOid2(ENUMTYPOIDNAME, Anum_pg_enum_oid, ObjectIdGetDatum(type), CStringGetDatum(names[i]));
        if (!OidIsValid(labels[i])) elog(ERROR, "type %u of extension \"idem\" has no label \"%s\"", type, names[i]);
    }
}

// OID, schema and owner of the extension, from its row in pg_extension.
void FindExtension(Extension *found) {
    Relation catalog = table_open(ExtensionRelationId, AccessShareLock);
    ScanKeyData key;
    ScanKeyInit(&key, Anum_pg_extension_extname, BTEqualStrategyNumber, F_NAMEEQ, CStringGetDatum("idem"));
    SysScanDesc scan = systable_beginscan(catalog, ExtensionNameIndexId, true, nullptr, 1, &key);
    HeapTuple tuple = systable_getnext(scan);
    if (!HeapTupleIsValid(tuple))
        ereport(ERROR,
                (errcode(ERRCODE_UNDEFINED_OBJECT), errmsg("extension \"idem\" is not installed in this database"),
                 errhint("Use CREATE EXTENSION idem.")));
    auto form = reinterpret_cast<Form_pg_extension>(GETSTRUCT(tuple));
    found->oid = form->oid;
    found->schema = form->extnamespace;
    found->owner = form->extowner;
    systable_endscan(scan);
    table_close(catalog, AccessShareLock);
}

void ForgetExtension(Datum, Oid relation) {
    if (relation == InvalidOid || relation == installed.registry) installed_is_current = false;
}

}  // namespace

const Extension &InstalledExtension() {
    if (installed_is_current) return installed;

    Extension found = {};
    FindExtension(&found);
    found.event_type = TypeNamed("idem_event", found.schema);
    found.claim_type = TypeNamed("idem_claim", found.schema);
    found.handler_policy = RelationNamed("idem_handler_policy", found.schema);
    found.registry = RelationNamed("idem_registry", found.schema);
    found.clock = RelationNamed("idem_clock", found.schema);
    found.control = RelationNamed("idem_control", found.schema);
    found.generation = RelationNamed("idem_generation", found.schema);
    found.purge_state = RelationNamed("idem_purge_state", found.schema);
    found.touch = FunctionNamed("idem_touch", found.schema);
    found.state_type = TypeNamed("idem_state", found.schema);
    LabelsOf(found.state_type, kStateLabels, kStateCount, found.states);
    LabelsOf(TypeNamed("idem_outcome", found.schema), kOutcomeLabels, kOutcomeCount, found.outcomes);
    installed = found;
    installed_is_current = true;
    return installed;
}

State StateOfLabel(Oid label) {
    const Extension &extension = InstalledExtension();
    for (int i = 0; i < kStateCount; i++)
        if (extension.states[i] == label) return static_cast<State>(i);
    elog(ERROR, "%u is no label of type idem_state", label);
}

void WatchExtension() { CacheRegisterRelcacheCallback(ForgetExtension, Datum{0}); }

}  // namespace idem
