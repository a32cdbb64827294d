-- Triggers for tables of the user's own, whose rows tell duplicates and old news by themselves.

CREATE FUNCTION idem_transition()
RETURNS trigger LANGUAGE C AS 'MODULE_PATHNAME', 'idem_transition';
COMMENT ON FUNCTION idem_transition() IS
    'trigger BEFORE UPDATE of a table of yours, idem_transition(column, ''new > paid'', ...): an update to the state that is there already affects no row, a step that is not listed raises ID005';

CREATE FUNCTION idem_newer()
RETURNS trigger LANGUAGE C AS 'MODULE_PATHNAME', 'idem_newer';
COMMENT ON FUNCTION idem_newer() IS
    'trigger BEFORE UPDATE of a table of yours, idem_newer(column): an update affects no row unless it makes this column, a version or a time, greater';
