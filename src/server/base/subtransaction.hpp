// Code whose error is to be survived, as PL/pgSQL's EXCEPTION survives one.
#pragma once

#include "server/base/postgres.hpp"

namespace idem {

// Calls act() in a subtransaction. An error undoes what it did, and lets go of the locks it took; if survives() says
// so, the error is returned, in the calling memory context, else it is raised again. Returns nullptr if there was none.
// Always ended here: who catches an error further up takes the subtransaction that is current then for his own.
template <class F>
ErrorData *InSubtransaction(bool (*survives)(const ErrorData &), F act) {
    MemoryContext context = CurrentMemoryContext;
    ResourceOwner owner = CurrentResourceOwner;
    ErrorData *volatile error = nullptr;
    BeginInternalSubTransaction(nullptr);
    MemoryContextSwitchTo(context);
    PG_TRY();
    {
        act();
        ReleaseCurrentSubTransaction();
    }
    PG_CATCH();
    {
        MemoryContextSwitchTo(context);
        error = CopyErrorData();
        FlushErrorState();
        RollbackAndReleaseCurrentSubTransaction();
    }
    PG_END_TRY();
    MemoryContextSwitchTo(context);
    CurrentResourceOwner = owner;
    if (error != nullptr && !survives(*error)) ReThrowError(error);
    return error;
}

}  // namespace idem
