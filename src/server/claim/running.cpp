#include "server/claim/running.hpp"

namespace idem {
namespace {

struct Running {
    const QueryDesc *query;
    const Running *outer;
};

const Running *innermost = nullptr;

ExecutorRun_hook_type next_run = nullptr;
ExecutorFinish_hook_type next_finish = nullptr;

template <class F>
void Within(const QueryDesc *query, F run) {
    Running here = {query, innermost};
    innermost = &here;
    PG_TRY();
    { run(); }
    PG_FINALLY();
    { innermost = here.outer; }
    PG_END_TRY();
}

// Since PostgreSQL 18 there is no further argument.
template <class... More>
void OnRun(QueryDesc *query, ScanDirection direction, uint64 count, More... more) {
    Within(query, [&] {
        if (next_run != nullptr)
            next_run(query, direction, count, more...);
        else
            standard_ExecutorRun(query, direction, count, more...);
    });
}

// Triggers fire here, and what WITH contains but nobody reads is carried out.
void OnFinish(QueryDesc *query) {
    Within(query, [&] {
        if (next_finish != nullptr)
            next_finish(query);
        else
            standard_ExecutorFinish(query);
    });
}

// A node that has evaluated a row again keeps the state that it made for it.
bool HasEvaluatedAgain(PlanState *node, void *) {
    if (node == nullptr) return false;
    if (IsA(node, ModifyTableState) && reinterpret_cast<ModifyTableState *>(node)->mt_epqstate.recheckestate != nullptr)
        return true;
    if (IsA(node, LockRowsState) && reinterpret_cast<LockRowsState *>(node)->lr_epqstate.recheckestate != nullptr)
        return true;
    return WalkPlanStates(node, HasEvaluatedAgain);
}

bool HasEvaluatedAgain(const QueryDesc *query) {
    if (HasEvaluatedAgain(query->planstate, nullptr)) return true;
    const List *others = query->estate->es_auxmodifytables;  // in WITH
    for (int i = 0; i < list_length(others); i++)
        if (HasEvaluatedAgain(static_cast<PlanState *>(list_nth(others, i)), nullptr)) return true;
    return false;
}

}  // namespace

bool EvaluatedAgainSince(CommandId command) {
    for (const Running *running = innermost; running != nullptr; running = running->outer) {
        const QueryDesc *query = running->query;
        bool ran = query->snapshot != InvalidSnapshot && query->snapshot->curcid <= command;
        if (ran && HasEvaluatedAgain(query)) return true;
    }
    return false;
}

void WatchRunning() {
    next_run = ExecutorRun_hook;
    ExecutorRun_hook = OnRun;
    next_finish = ExecutorFinish_hook;
    ExecutorFinish_hook = OnFinish;
}

}  // namespace idem
