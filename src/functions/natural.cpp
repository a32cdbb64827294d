// Triggers for tables of the user's own, in which a row says by itself what has happened to it: there a duplicate, or
// news older than what is known, is told by the row, and no event has to be remembered.
//
// Both judge an update by one column. It concerns the column if its SET list names it, or if the column changes. An
// update that brings nothing new is left out altogether, whatever else it sets, so that it affects 0 rows; one which
// does not concern the column is none of the trigger's business.

#include "core/step.hpp"
#include "server/base/errors.hpp"
#include "server/base/postgres.hpp"

using namespace idem;

namespace {

struct Update {
    Relation table;
    const char *column;
    Form_pg_attribute attribute;
    bool named;  // by the statement's SET list
    Datum before;
    Datum after;
    bool was_null;
    bool is_null;
};

TriggerData *TriggerOf(FunctionCallInfo fcinfo, const char *function) {
    auto *data = reinterpret_cast<TriggerData *>(fcinfo->context);
    if (!CALLED_AS_TRIGGER(fcinfo) || !TRIGGER_FIRED_BY_UPDATE(data->tg_event) ||
        !TRIGGER_FIRED_BEFORE(data->tg_event) || !TRIGGER_FIRED_FOR_ROW(data->tg_event))
        ereport(ERROR, (errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
                        errmsg("%s can be called only as a trigger BEFORE UPDATE FOR EACH ROW", function)));
    return data;
}

// The update, as the column sees it which is the trigger's first argument.
Update UpdateOf(const TriggerData *data, const char *function) {
    const Trigger *trigger = data->tg_trigger;
    if (trigger->tgnargs == 0)
        ereport(ERROR,
                (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("trigger \"%s\" names no column", trigger->tgname),
                 errhint("The first argument of %s is the name of a column.", function)));
    const char *column = trigger->tgargs[0];
    TupleDesc shape = RelationGetDescr(data->tg_relation);
    int number = SPI_fnumber(shape, column);
    if (number <= 0)
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("trigger \"%s\" names column \"%s\", which table \"%s\" does not have", trigger->tgname,
                               column, RelationGetRelationName(data->tg_relation)),
                        errhint("The first argument of %s is the name of a column.", function)));
    Update update = {data->tg_relation, column, TupleDescAttr(shape, number - 1), false, 0, 0, false, false};
    if (update.attribute->attgenerated != '\0')
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("column \"%s\" of table \"%s\" is generated", column,
                               RelationGetRelationName(data->tg_relation)),
                        errdetail("It is computed after the trigger \"%s\" has fired.", trigger->tgname)));
    update.named = bms_is_member(number - FirstLowInvalidHeapAttributeNumber, data->tg_updatedcols);
    update.before = heap_getattr(data->tg_trigtuple, number, shape, &update.was_null);
    update.after = heap_getattr(data->tg_newtuple, number, shape, &update.is_null);
    return update;
}

Datum LetIt(const TriggerData *data) { return PointerGetDatum(data->tg_newtuple); }

Datum LeaveItOut() { return Datum{0}; }

// A state as text; char(n) without the blanks that fill it up.
StateText StateOf(const Update &update, Datum value, bool null) {
    if (null) return std::nullopt;
    Oid output = InvalidOid;
    bool variable_length = false;
    getTypeOutputInfo(update.attribute->atttypid, &output, &variable_length);
    std::string_view state = OidOutputFunctionCall(output, value);
    if (getBaseType(update.attribute->atttypid) == BPCHAROID)
        while (state.ends_with(' ')) state.remove_suffix(1);
    return state;
}

// Whether one of the trigger's steps, all of which are read, leads there.
bool IsAllowed(const Trigger *trigger, StateText from, StateText to) {
    if (trigger->tgnargs < 2)
        ereport(ERROR,
                (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("trigger \"%s\" allows no step", trigger->tgname),
                 errhint("The arguments after the column are steps such as 'new > paid'.")));
    bool allowed = false;
    for (int i = 1; i < trigger->tgnargs; i++) {
        std::optional<Step> step = ReadStep(trigger->tgargs[i]);
        if (!step)
            ereport(
                ERROR,
                (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                 errmsg("trigger \"%s\" has an argument that is no step: \"%s\"", trigger->tgname, trigger->tgargs[i]),
                 errhint("Write a step as 'new > paid'; a state with > or \" in it stands in double quotes.")));
        allowed |= IsStep(*step, from, to);
    }
    return allowed;
}

// For messages: a state in quotes, or null.
const char *Quoted(StateText state) {
    return state ? psprintf("\"%.*s\"", static_cast<int>(state->size()), state->data()) : "null";
}

const char *StepsOf(const Trigger *trigger) {
    StringInfoData steps;
    initStringInfo(&steps);
    for (int i = 1; i < trigger->tgnargs; i++) appendStringInfo(&steps, "%s%s", i == 1 ? "" : ", ", trigger->tgargs[i]);
    return steps.data;
}

// Compares by the order of the type, as an index of the column would.
int Compare(const Update &update) {
    Oid type = update.attribute->atttypid;
    TypeCacheEntry *entry = lookup_type_cache(type, TYPECACHE_CMP_PROC_FINFO);
    if (!OidIsValid(entry->cmp_proc_finfo.fn_oid))
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("column \"%s\" of table \"%s\" has no order", update.column,
                               RelationGetRelationName(update.table)),
                        errdetail("Type %s has no default operator class for btree.", format_type_be(type))));
    return DatumGetInt32(
        FunctionCall2Coll(&entry->cmp_proc_finfo, update.attribute->attcollation, update.after, update.before));
}

}  // namespace

extern "C" {

PG_FUNCTION_INFO_V1(idem_transition);
PG_FUNCTION_INFO_V1(idem_newer);

Datum idem_transition(PG_FUNCTION_ARGS) {
    const TriggerData *data = TriggerOf(fcinfo, "idem_transition");
    const Trigger *trigger = data->tg_trigger;
    Update update = UpdateOf(data, "idem_transition");
    StateText from = StateOf(update, update.before, update.was_null);
    StateText to = StateOf(update, update.after, update.is_null);
    if (IsAllowed(trigger, from, to)) return LetIt(data);
    if (from == to) return update.named ? LeaveItOut() : LetIt(data);
    ereport(ERROR,
            (errcode(kStepNotAllowed),
             errmsg("column \"%s\" of table \"%s\" may not go from %s to %s", update.column,
                    RelationGetRelationName(update.table), Quoted(from), Quoted(to)),
             errhint("Allowed are: %s.", StepsOf(trigger)), errtablecol(update.table, update.attribute->attnum)));
}

Datum idem_newer(PG_FUNCTION_ARGS) {
    const TriggerData *data = TriggerOf(fcinfo, "idem_newer");
    Update update = UpdateOf(data, "idem_newer");
    if (data->tg_trigger->tgnargs > 1)
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("trigger \"%s\" names more than a column", data->tg_trigger->tgname)));
    if (update.is_null && (update.named || !update.was_null))
        ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
                        errmsg("column \"%s\" of table \"%s\" must not be set to null", update.column,
                               RelationGetRelationName(update.table)),
                        errdetail("Nobody could tell whether the news is newer than what is known."),
                        errtablecol(update.table, update.attribute->attnum)));
    if (update.was_null) return LetIt(data);
    int order = Compare(update);
    if (order == 0 && !update.named) return LetIt(data);
    return order > 0 ? LetIt(data) : LeaveItOut();
}

}  // extern "C"
