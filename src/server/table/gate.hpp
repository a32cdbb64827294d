// The gate: what makes one unique index out of many.
//
// Whoever claims or settles holds the gate shared for the length of one look-and-write, not for the length of the
// transaction; whoever turns the ring holds it exclusively until its commit. So two calls never disagree about which
// generation is current unless the turn lies between them, and then the later one finds the earlier one's row
// (docs/storage.md has the proof). Nothing may wait while it holds the gate: every lock below it is conditional.
#pragma once

#include "server/base/extension.hpp"
#include "server/base/postgres.hpp"

namespace idem {

#ifdef IDEM_TEST_WITHOUT_GATE
// Only for the stress test's proof that it can see double effects; never in a build that is installed.
template <class F>
void UnderGate(F call) {
    AcceptInvalidationMessages();
    call();
}
#else
// Calls `call` with the gate held shared. An error inside lets go of the gate with all other locks.
//
// The (sub)transaction owns what is locked below, not the portal that runs the statement: a cursor that fails in a
// savepoint loses its locks there, but the rows that it wrote before the savepoint stay, and are open without a lock.
template <class F>
void UnderGate(F call) {
    Oid gate = InstalledExtension().gate;
    ResourceOwner caller = CurrentResourceOwner;
    CurrentResourceOwner = CurTransactionResourceOwner;
    LockRelationOid(gate, AccessShareLock);
    call();
    UnlockRelationOid(gate, AccessShareLock);
    CurrentResourceOwner = caller;
}
#endif

// Takes the gate exclusively until the transaction ends, which is to follow at once: whatever may wait, such as writing
// to idem's own tables, is done before. Waits `timeout_ms` at most, then raises 55P03.
void CloseGate(int timeout_ms);

}  // namespace idem
