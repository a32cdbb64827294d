#include "server/ring/step.hpp"

#include "server/base/extension.hpp"
#include "server/base/privileges.hpp"
#include "server/base/settings.hpp"

namespace idem {
namespace {

bool LockTable(Oid dedup, Patience patience) {
    if (patience == Patience::Waits)
        LockRelationOid(dedup, ShareUpdateExclusiveLock);
    else if (!ConditionalLockRelationOid(dedup, ShareUpdateExclusiveLock))
        return false;
    return SearchSysCacheExists1(RELOID, ObjectIdGetDatum(dedup));
}

}  // namespace

void LimitLockWaits() {
    char timeout[16];
    pg_ltoa(purge_lock_timeout_ms, timeout);
    (void)set_config_option("lock_timeout", timeout, PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE, true, 0, false);
}

void BecomeReadCommitted() {
    if (FirstSnapshotSet && IsolationUsesXactSnapshot()) SPI_commit();
    XactIsoLevel = XACT_READ_COMMITTED;
}

DedupTable *BeginStep(Oid dedup, Patience patience, Caller *caller) {
    GetUserIdAndSecContext(&caller->user, &caller->security_context);
    caller->guc_level = NewGUCNestLevel();

    LockDatabaseObject(ExtensionRelationId, InstalledExtension().oid, 0, AccessShareLock);
    (void)InstalledExtension();  // raises if it was dropped before it was locked
    if (!LockTable(dedup, patience)) return nullptr;

    // As VACUUM and REINDEX do (vacuum_rel in vacuum.c): expressions of indexes and constraints run as somebody who
    // could have run them anyway, and find no names in anybody else's schema.
    SetUserIdAndSecContext(RelationOwner(dedup), caller->security_context | SECURITY_RESTRICTED_OPERATION);
    (void)set_config_option("search_path", "pg_catalog, pg_temp", PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE, true, 0,
                            false);
    HoldDedupTables();  // until the step's transaction ends
    return OpenDedupTable(dedup);
}

void EndStep(const Caller &caller) {
    AtEOXact_GUC(false, caller.guc_level);
    SetUserIdAndSecContext(caller.user, caller.security_context);
}

void CommitStep() {
    // Nobody shall wait at the gate for a disk. Whatever is written to a generation comes later in the log than the
    // turn that opened it, so a crash that loses the turn loses that too.
    (void)set_config_option("synchronous_commit", "off", PGC_USERSET, PGC_S_SESSION, GUC_ACTION_LOCAL, true, 0, false);
    SPI_commit();
    XLogFlush(XactLastCommitEnd);
}

}  // namespace idem
