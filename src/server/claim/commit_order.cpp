#include "server/claim/commit_order.hpp"

#include "server/claim/open_claims.hpp"

namespace idem {
namespace {

ExecutorEnd_hook_type earlier_executor_end = nullptr;
ProcessUtility_hook_type earlier_process_utility = nullptr;

// The callbacks are being called, so their list stays as it is.
bool ending = false;

void OnTransaction(XactEvent event, void *) {
    ending = event == XACT_EVENT_PRE_COMMIT || event == XACT_EVENT_PRE_PREPARE;
    if (ending) RefuseUnsettledClaims();
}

void EndExecutor(QueryDesc *query) {
    if (earlier_executor_end != nullptr)
        earlier_executor_end(query);
    else
        standard_ExecutorEnd(query);
    if (HasOpenClaims()) ComeFirstAtCommit();
}

void DoUtility(PlannedStmt *statement, const char *query, bool read_only_tree, ProcessUtilityContext context,
               ParamListInfo parameters, QueryEnvironment *environment, DestReceiver *receiver,
               QueryCompletion *completion) {
    auto *next = earlier_process_utility != nullptr ? earlier_process_utility : standard_ProcessUtility;
    next(statement, query, read_only_tree, context, parameters, environment, receiver, completion);
    if (HasOpenClaims()) ComeFirstAtCommit();
}

}  // namespace

void ComeFirstAtCommit() {
    if (ending) return;
    UnregisterXactCallback(OnTransaction, nullptr);
    RegisterXactCallback(OnTransaction, nullptr);
}

void WatchStatements() {
    RegisterXactCallback(OnTransaction, nullptr);
    earlier_executor_end = ExecutorEnd_hook;
    ExecutorEnd_hook = EndExecutor;
    earlier_process_utility = ProcessUtility_hook;
    ProcessUtility_hook = DoUtility;
}

}  // namespace idem
