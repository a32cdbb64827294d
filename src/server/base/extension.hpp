// Where the installed extension's own objects are in this database.
#pragma once

#include "core/state.hpp"
#include "server/base/postgres.hpp"

namespace idem {

struct Extension {
    Oid schema;
    Oid owner;
    Oid event_type;      // idem_event
    Oid state_type;      // idem_state
    Oid claim_type;      // idem_claim
    Oid handler_policy;  // idem_handler_policy
    Oid registry;        // idem_registry
    Oid control;         // idem_control
    Oid clock;           // idem_clock
    Oid generation;      // idem_generation
    Oid purge_state;     // idem_purge_state
    Oid touch;           // idem_touch()
    Oid oid;             // its own, in pg_extension
    Oid states[kStateCount];
    Oid outcomes[kOutcomeCount];
};

// The objects of the extension, found through pg_extension and remembered until they change.
// Raises 42704 if the extension is not installed in this database.
const Extension &InstalledExtension();

// The state which an idem_state datum names; raises XX000 for a value that is none.
State StateOfLabel(Oid label);

// To be called once, when the library is loaded.
void WatchExtension();

}  // namespace idem
