// What a pass over a dedup table has to do.
#pragma once

#include "server/ring/step.hpp"

namespace idem {

// An idle table has nothing, and looking writes nothing.
struct Due {
    bool seal;
    bool tidy;
    bool retire;
    bool turn;
    bool record;  // that the pass came through: the latest one failed, or is to be recorded anyway
};
Due WhatIsDue(const Pass &pass);

// Whether a subscription of this database's may write to the table. Then rows must stay where the publisher has put
// them, expired or not, or his next change of one finds none; he empties his slots, and that is replicated too.
bool IsSubscribed(const DedupTable &table);

}  // namespace idem
