// The policy of a dedup table, and where one of its handlers differs: idem_registry and idem_handler_policy.
#pragma once

#include "core/state.hpp"
#include "server/base/postgres.hpp"

namespace idem {

struct Policy {
    bool transaction_mode;
    Windows windows;
    int32_t max_attempts;
    Micros backoff_base;
    Micros backoff_cap;
    bool allows_unavailable;  // the work is done unprotected rather than not at all
    bool checks_stale;
    bool skips_dead;  // a dead event does not block those behind it in its ordering key
    bool notifies;    // when something becomes due
};

// What idem_set_policy says; nothing: as it was.
struct PolicyChange {
    std::optional<bool> transaction_mode;
    std::optional<Micros> hot_window;
    std::optional<Micros> cold_window;
    std::optional<Micros> unresolved_window;
    std::optional<int32_t> max_attempts;
    std::optional<Micros> backoff_base;
    std::optional<Micros> backoff_cap;
    std::optional<bool> allows_unavailable;
    std::optional<bool> checks_stale;
    std::optional<bool> skips_dead;
    std::optional<bool> notifies;
};

struct HandlerPolicy {
    std::string_view handler;
    PolicyChange change;  // from the table's
};

// Policy of a table which says nothing.
Policy DefaultPolicy();

Policy Changed(const Policy &policy, const PolicyChange &change);

// Raises 22023 if a table's policy contradicts itself.
void CheckPolicy(const Policy &policy);

// The table's policy as it is now, whatever the isolation level; nothing if it is not registered.
std::optional<Policy> ReadPolicy(Oid dedup);

// That of one of its handlers.
std::optional<Policy> ReadPolicyOf(Oid dedup, std::string_view handler);

// Calls use(HandlerPolicy) on the policy of each handler that has one of its own.
void ReadHandlerPolicies(Oid dedup, void (*use)(const HandlerPolicy &, void *), void *argument);

// The channel on which the table's policy notifies.
char *ChannelOf(Oid dedup);

// Registers the policy of a new table.
void InsertPolicy(Oid dedup, const Policy &policy);

// Changes the policy of the table (handler nullptr), or of a handler; all sessions know it when the transaction
// commits. The caller owns the table, and has locked it against others who change its policy. Raises 22023 if the
// result would contradict itself, or a handler's window be longer than the table's.
void ChangePolicy(Oid dedup, const text *handler, const PolicyChange &change);

// Lets a handler inherit all of the table's policy again; false if it did so already.
bool ResetPolicy(Oid dedup, const text *handler);

}  // namespace idem
