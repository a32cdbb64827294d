#include "server/table/gate.hpp"

namespace idem {

void RefuseReentry() {
    LOCKTAG gate;
    SET_LOCKTAG_RELATION(gate, MyDatabaseId, kGate);
    // The server's own list of locks knows it through every kind of rollback.
    if (HoldsLock(gate, kGateShared))
        ereport(ERROR,
                (errcode(ERRCODE_INVALID_TRANSACTION_STATE), errmsg("idem cannot be called from within a call of idem"),
                 errhint("Let no constraint or index of a dedup table call it.")));
}

void CloseGate(int timeout_ms) {
    int level = NewGUCNestLevel();
    char timeout[16];
    pg_ltoa(timeout_ms, timeout);
    (void)set_config_option("lock_timeout", timeout, PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE, true, 0, false);
    LockRelationOid(kGate, kGateClosed);
    AtEOXact_GUC(true, level);
}

}  // namespace idem
