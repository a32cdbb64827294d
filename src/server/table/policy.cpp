#include "server/table/policy.hpp"

#include "core/window.hpp"
#include "server/base/arguments.hpp"
#include "server/base/extension.hpp"
#include "server/base/own_table.hpp"

namespace idem {
namespace {

// Columns of idem_registry; those of idem_handler_policy are one further, behind the handler.
enum PolicyColumn {
    kDedup = 1,
    kMode,
    kHotWindow,
    kColdWindow,
    kUnresolvedWindow,
    kMaxAttempts,
    kBackoffBase,
    kBackoffCap,
    kOnUnavailable,
    kCheckStale,
    kSkipDead,
    kNotify,
};
constexpr int kHandler = 2;

// Reads what a row says, its columns `shift` further than in idem_registry; null = nothing.
PolicyChange ReadChange(HeapTuple tuple, TupleDesc desc, int shift) {
    auto value = [&](int column) -> std::optional<Datum> {
        bool null = false;
        Datum datum = heap_getattr(tuple, column + shift, desc, &null);
        return null ? std::nullopt : std::optional(datum);
    };
    auto span = [&](int column) -> std::optional<Micros> {
        std::optional<Datum> datum = value(column);
        if (!datum) return std::nullopt;
        return PauseOfInterval(DatumGetIntervalP(*datum), NameStr(TupleDescAttr(desc, column + shift - 1)->attname));
    };
    PolicyChange change;
    if (auto mode = value(kMode)) change.transaction_mode = TransactionModeOf(ViewOf(DatumGetTextPP(*mode)));
    change.hot_window = span(kHotWindow);
    change.cold_window = span(kColdWindow);
    change.unresolved_window = span(kUnresolvedWindow);
    if (auto most = value(kMaxAttempts)) change.max_attempts = DatumGetInt32(*most);
    change.backoff_base = span(kBackoffBase);
    change.backoff_cap = span(kBackoffCap);
    if (auto word = value(kOnUnavailable)) change.allows_unavailable = AllowsUnavailable(ViewOf(DatumGetTextPP(*word)));
    if (auto stale = value(kCheckStale)) change.checks_stale = DatumGetBool(*stale);
    if (auto skip = value(kSkipDead)) change.skips_dead = DatumGetBool(*skip);
    if (auto notify = value(kNotify)) change.notifies = DatumGetBool(*notify);
    return change;
}

OwnRow RowOf(const PolicyChange &change, int shift) {
    OwnRow row = {};
    auto set_span = [&](int column, const std::optional<Micros> &span) {
        if (span) row.Set(column + shift, IntervalPGetDatum(IntervalOfSpan(*span)));
    };
    if (change.transaction_mode)
        row.Set(kMode + shift, CStringGetTextDatum(*change.transaction_mode ? "transaction" : "lease"));
    set_span(kHotWindow, change.hot_window);
    set_span(kColdWindow, change.cold_window);
    set_span(kUnresolvedWindow, change.unresolved_window);
    if (change.max_attempts) row.Set(kMaxAttempts + shift, Int32GetDatum(*change.max_attempts));
    set_span(kBackoffBase, change.backoff_base);
    set_span(kBackoffCap, change.backoff_cap);
    if (change.allows_unavailable)
        row.Set(kOnUnavailable + shift, CStringGetTextDatum(*change.allows_unavailable ? "allow" : "reject"));
    if (change.checks_stale) row.Set(kCheckStale + shift, BoolGetDatum(*change.checks_stale));
    if (change.skips_dead) row.Set(kSkipDead + shift, BoolGetDatum(*change.skips_dead));
    if (change.notifies) row.Set(kNotify + shift, BoolGetDatum(*change.notifies));
    return row;
}

[[noreturn]] void Refuse(const char *handler, const char *what) {
    ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                    handler == nullptr ? errmsg("%s", what) : errmsg("%s, for handler \"%s\"", what, handler)));
}

// `handler`: nullptr = the table's own.
void Check(const Policy &policy, const Policy &table, const char *handler) {
    if (policy.windows.hot >= policy.windows.cold) Refuse(handler, "hot_window must be shorter than cold_window");
    if (policy.backoff_base > policy.backoff_cap) Refuse(handler, "backoff_base must not be longer than backoff_cap");
    if (handler == nullptr) return;
    if (policy.windows.hot > table.windows.hot) Refuse(handler, "hot_window must not be longer than the table's");
    if (policy.windows.cold > table.windows.cold) Refuse(handler, "cold_window must not be longer than the table's");
}

void CheckHandlers(Oid dedup, const Policy &table) {
    ReadHandlerPolicies(
        dedup,
        [](const HandlerPolicy &handler, void *argument) {
            const Policy &policy = *static_cast<const Policy *>(argument);
            Check(Changed(policy, handler.change), policy, pnstrdup(handler.handler.data(), handler.handler.size()));
        },
        const_cast<Policy *>(&table));
}

}  // namespace

Policy DefaultPolicy() {
    Policy policy = {};
    policy.transaction_mode = true;
    policy.windows = {15 * 60 * kSecond, 30 * kDay, 365 * kDay};
    policy.max_attempts = 10;
    policy.backoff_base = 10 * kSecond;
    policy.backoff_cap = 3600 * kSecond;
    policy.checks_stale = true;
    return policy;
}

void CheckPolicy(const Policy &policy) { Check(policy, policy, nullptr); }

Policy Changed(const Policy &policy, const PolicyChange &change) {
    Policy changed = policy;
    changed.transaction_mode = change.transaction_mode.value_or(policy.transaction_mode);
    changed.windows.hot = change.hot_window.value_or(policy.windows.hot);
    changed.windows.cold = change.cold_window.value_or(policy.windows.cold);
    changed.windows.unresolved = change.unresolved_window.value_or(policy.windows.unresolved);
    changed.max_attempts = change.max_attempts.value_or(policy.max_attempts);
    changed.backoff_base = change.backoff_base.value_or(policy.backoff_base);
    changed.backoff_cap = change.backoff_cap.value_or(policy.backoff_cap);
    changed.allows_unavailable = change.allows_unavailable.value_or(policy.allows_unavailable);
    changed.checks_stale = change.checks_stale.value_or(policy.checks_stale);
    changed.skips_dead = change.skips_dead.value_or(policy.skips_dead);
    changed.notifies = change.notifies.value_or(policy.notifies);
    return changed;
}

std::optional<Policy> ReadPolicy(Oid dedup) {
    std::optional<Policy> policy;
    ReadOwnRows(InstalledExtension().registry, KeyOf(dedup), [&](HeapTuple tuple, TupleDesc desc) {
        policy = Changed(DefaultPolicy(), ReadChange(tuple, desc, 0));
    });
    return policy;
}

void ReadHandlerPolicies(Oid dedup, void (*use)(const HandlerPolicy &, void *), void *argument) {
    ReadOwnRows(InstalledExtension().handler_policy, KeyOf(dedup), [&](HeapTuple tuple, TupleDesc desc) {
        use({ViewOf(DatumGetTextPP(ColumnOf(tuple, kHandler, desc))), ReadChange(tuple, desc, 1)}, argument);
    });
}

std::optional<Policy> ReadPolicyOf(Oid dedup, std::string_view handler) {
    std::optional<Policy> policy = ReadPolicy(dedup);
    if (!policy) return std::nullopt;
    const text *name = cstring_to_text_with_len(handler.data(), static_cast<int>(handler.size()));
    ReadOwnRows(InstalledExtension().handler_policy, KeyOf(dedup, name),
                [&](HeapTuple tuple, TupleDesc desc) { policy = Changed(*policy, ReadChange(tuple, desc, 1)); });
    return policy;
}

char *ChannelOf(Oid dedup) { return psprintf("idem_%u", dedup); }

void InsertPolicy(Oid dedup, const Policy &policy) {
    OwnRow row = RowOf({policy.transaction_mode, policy.windows.hot, policy.windows.cold, policy.windows.unresolved,
                        policy.max_attempts, policy.backoff_base, policy.backoff_cap, policy.allows_unavailable,
                        policy.checks_stale, policy.skips_dead, policy.notifies},
                       0);
    row.Set(kDedup, ObjectIdGetDatum(dedup));
    InsertOwnRow(InstalledExtension().registry, row);
}

void ChangePolicy(Oid dedup, const text *handler, const PolicyChange &change) {
    const Extension &extension = InstalledExtension();
    std::optional<Policy> table = ReadPolicy(dedup);
    if (!table)
        ereport(ERROR, (errcode(ERRCODE_WRONG_OBJECT_TYPE),
                        errmsg("dedup table \"%s\" is not registered", get_rel_name(dedup))));
    if (handler == nullptr) {
        Policy changed = Changed(*table, change);
        CheckPolicy(changed);
        CheckHandlers(dedup, changed);
        UpdateOwnRow(extension.registry, KeyOf(dedup), RowOf(change, 0));
    } else {
        OwnRow row = RowOf(change, 1);
        if (UpdateOwnRow(extension.handler_policy, KeyOf(dedup, handler), row) == 0) {
            row.Set(kDedup, ObjectIdGetDatum(dedup));
            row.Set(kHandler, PointerGetDatum(handler));
            InsertOwnRow(extension.handler_policy, row);
        }
        CheckHandlers(dedup, *table);
    }
    CacheInvalidateRelcacheByRelid(dedup);
}

bool ResetPolicy(Oid dedup, const text *handler) {
    bool had = DeleteOwnRow(InstalledExtension().handler_policy, KeyOf(dedup, handler)) > 0;
    CacheInvalidateRelcacheByRelid(dedup);
    return had;
}

}  // namespace idem
