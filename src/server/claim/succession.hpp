// Who comes next of an ordering key. An event that is received while an earlier one of its key is unsettled waits
// behind it: its claimable_at says -infinity, which keeps it out of idem_due's way, however many there are. Whoever
// settles an event lets the first that waits behind go on, by making it due.
//
// All this only says where idem_due looks first; whose turn it is, it asks anew (ordering.hpp). An event that was left
// waiting with nobody before it (forgotten after unresolved_window, removed by hand, a policy that has begun to skip
// dead ones, or received in a transaction that was open when the one before it was settled) is found by going round the
// keys, a few in each call.
#pragma once

#include "server/claim/call.hpp"
#include "server/claim/ordering_key.hpp"

namespace idem {

// Whether an event that is received now waits behind another. Then nobody settles one of its key before this
// transaction ends without knowing that he leaves somebody behind.
bool WaitsBehind(const OrderingKey &key);

// An event of the key has been settled by this transaction: makes the first due that waits behind, by
// a call that `perform` carries out.
void LetNextGoOn(const OrderingKey &key, EventAnswer (*perform)(const EventCall &));

// The keys in turn, from where this session's last call has stopped.
class Round {
public:
    Round() = default;
    Round(Oid dedup, text *handler) : dedup_(dedup), handler_(handler) {}

    // Goes to the next keys, `steps` at most, which are counted down, until one's first unsettled event waits behind
    // nobody: then SPI_tuptable is its row, with the columns of LookFor::First. False: there was none. The caller is
    // connected to SPI.
    bool FindFree(int *steps);

private:
    bool GoToNextKey(OrderingKey *key);

    Oid dedup_ = InvalidOid;
    text *handler_ = nullptr;
    bool over_ = false;  // it has come to the last key, and not found one since
};

}  // namespace idem
