#include "server/table/watch.hpp"

#include "server/base/extension.hpp"
#include "server/base/statement.hpp"
#include "server/table/filter_memory.hpp"

namespace idem {
namespace {

bool IsTouch(const Trigger &trigger) {
    return trigger.tgfoid == InstalledExtension().touch && TRIGGER_FOR_ROW(trigger.tgtype) &&
           TRIGGER_FOR_BEFORE(trigger.tgtype);
}

template <class F>
bool HasTrigger(Relation relation, F fits) {
    const TriggerDesc *triggers = relation->trigdesc;
    for (int i = 0; triggers != nullptr && i < triggers->numtriggers; i++)
        if (fits(triggers->triggers[i])) return true;
    return false;
}

}  // namespace

bool HasTouchTrigger(Relation partition) { return HasTrigger(partition, IsTouch); }

bool IsWatched(Relation partition) {
    return HasTrigger(partition, [](const Trigger &trigger) {
        return IsTouch(trigger) && trigger.tgenabled == TRIGGER_FIRES_ALWAYS && TRIGGER_FOR_INSERT(trigger.tgtype) &&
               TRIGGER_FOR_UPDATE(trigger.tgtype) && trigger.tgnattr == 0 && trigger.tgqual == nullptr;
    });
}

bool HasOtherTriggers(Relation relation) {
    return HasTrigger(relation, [](const Trigger &trigger) { return !IsTouch(trigger); });
}

void WatchPartition(Oid partition) {
    const char *name = QualifiedNameOf(partition);
    const char *function = quote_qualified_identifier(get_namespace_name(InstalledExtension().schema), "idem_touch");
    Execute(
        psprintf("CREATE OR REPLACE TRIGGER idem_touch BEFORE INSERT OR UPDATE ON %s "
                 "FOR EACH ROW EXECUTE FUNCTION %s()",
                 name, function));
    Execute(psprintf("ALTER TABLE %s ENABLE ALWAYS TRIGGER idem_touch", name));
    TellWritten(partition);
}

void TellWritten(Oid partition) {
    TouchFilter(partition);
    // The same transaction may have dropped or detached it since, which is told to all anyway.
    if (get_rel_relispartition(partition)) CacheInvalidateRelcacheByRelid(get_partition_parent(partition, true));
}

}  // namespace idem
