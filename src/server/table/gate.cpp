#include "server/table/gate.hpp"

namespace idem {

void CloseGate(int timeout_ms) {
    int level = NewGUCNestLevel();
    char timeout[16];
    pg_ltoa(timeout_ms, timeout);
    (void)set_config_option("lock_timeout", timeout, PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE, true, 0, false);
    LockRelationOid(InstalledExtension().gate, AccessExclusiveLock);
    AtEOXact_GUC(true, level);
}

}  // namespace idem
