# Thousands of random steps, of clients, of turns and purges, of a DBA's hand, beside a model which knows only which event
# is remembered: idem answers as the model does. With filters, with small ones that are often wrong, and without any.
#
# IDEM_SEED=n repeats a run.

use FindBin;
use lib "$FindBin::RealBin/lib";
use IdemTest;

my $steps = 3000;

my $node = start_node("idem.purge = off\nidem.backoff_jitter = 0\nautovacuum = off\nlog_statement = none");
$node->safe_psql(
    'postgres', q{
CREATE EXTENSION idem;

-- What is remembered: of each event its state, and its latest attempt.
CREATE TABLE model (event text PRIMARY KEY, state text NOT NULL, attempt int NOT NULL);
CREATE TABLE problem (step int, what text, expected text, got text);
CREATE TABLE done (what text, n int);

CREATE FUNCTION chance(percent int) RETURNS bool LANGUAGE sql AS 'SELECT random() * 100 < percent';
CREATE FUNCTION below(n int) RETURNS int LANGUAGE sql AS 'SELECT floor(random() * n)::int';

CREATE PROCEDURE expect(step int, what text, expected text, got text) LANGUAGE sql AS
    'INSERT INTO problem SELECT step, what, expected, got WHERE expected IS DISTINCT FROM got';

-- What a DBA makes of an event: a settled row in some slot.
CREATE PROCEDURE write_by_hand(e text, s int) LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO box (key, state, attempt, first_seen_at, expires_at, failures, slot, handler, event_id)
    VALUES (idem_key('h', e), 'done', 1, now(), now() + interval '1 day', 0, s, 'h', e);
    INSERT INTO model VALUES (e, 'done', 1);
EXCEPTION WHEN unique_violation THEN  -- the slot holds an expired row of it
    NULL;
END $$;

CREATE PROCEDURE act(step int, e text) LANGUAGE plpgsql AS $$
DECLARE
    known model;
    expected text;
    claim idem_claim;
    before int;
BEGIN
    SELECT * INTO known FROM model WHERE event = e;
    expected := CASE known.state WHEN 'done' THEN 'duplicate' WHEN 'processing' THEN 'busy' ELSE 'acquired' END;
    IF chance(40) THEN
        BEGIN
            SELECT * INTO claim FROM idem_accept('box', 'h', e, wait => '0');
        EXCEPTION WHEN SQLSTATE 'ID004' THEN
            claim.outcome := 'busy';
        END;
        CALL expect(step, 'accept ' || e, expected, claim.outcome::text);
        IF claim.acquired THEN
            DELETE FROM model WHERE event = e;
            INSERT INTO model VALUES (e, 'done', claim.attempt);
        END IF;
    ELSIF chance(20) THEN
        BEGIN
            SELECT * INTO claim FROM idem_acquire('box', 'h', e);
            CALL expect(step, 'acquire, undone ' || e, expected, claim.outcome::text);
            RAISE EXCEPTION 'undo' USING errcode = 'ZZ000';
        EXCEPTION WHEN SQLSTATE 'ZZ000' THEN
            NULL;
        END;
    ELSE
        SELECT * INTO claim FROM idem_acquire('box', 'h', e, payload => to_jsonb(e));
        CALL expect(step, 'acquire ' || e, expected, claim.outcome::text);
        IF claim.acquired THEN
            IF claim.attempt <= COALESCE(known.attempt, 0) THEN
                CALL expect(step, 'attempt of ' || e, '> ' || known.attempt, claim.attempt::text);
            END IF;
            DELETE FROM model WHERE event = e;
            INSERT INTO model VALUES (e, 'processing', claim.attempt);
        END IF;
    END IF;

    -- The holder of a lease settles it, early or late.
    SELECT * INTO known FROM model WHERE state = 'processing' ORDER BY md5(event || step) LIMIT 1;
    IF FOUND AND chance(40) THEN
        IF chance(50) THEN
            PERFORM idem_commit('box', 'h', known.event, attempt => known.attempt, result => to_jsonb(step));
            UPDATE model SET state = 'done' WHERE event = known.event;
        ELSIF chance(50) THEN
            PERFORM idem_release('box', 'h', known.event, attempt => known.attempt, error => 'no', retry_after => '0');
            UPDATE model SET state = 'failed' WHERE event = known.event;
        ELSE
            PERFORM idem_extend('box', 'h', known.event, attempt => known.attempt, hot_window => '15 min');
        END IF;
    END IF;
EXCEPTION WHEN OTHERS THEN
    CALL expect(step, 'settle ' || known.event, NULL, SQLERRM);
END $$;

CREATE PROCEDURE check_all(step int) LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO problem
    SELECT step, 'rows that live', m::text, b::text
    FROM model m FULL JOIN (SELECT event_id, state, attempt FROM box WHERE expires_at > clock_timestamp()) b
         ON event = event_id
    WHERE m.state <> b.state::text OR m.attempt <> b.attempt OR event IS NULL OR event_id IS NULL;
END $$;

-- Dead is what expires by a DBA's hand; time itself does not come so far in a test.
CREATE PROCEDURE run(steps int, slots int, events int, seed float) LANGUAGE plpgsql AS $$
DECLARE
    i int;
    e text;
    s int;
    die int;
BEGIN
    PERFORM setseed(seed);
    DROP TABLE IF EXISTS box;
    TRUNCATE model, problem, done;
    PERFORM idem_create_table('box', mode => 'lease', generations => slots);
    PERFORM idem_set_policy('box', max_attempts => 1000000);
    COMMIT;
    FOR i IN 1 .. steps LOOP
        e := 'e' || below(events);
        s := below(slots);
        die := below(1000);
        IF die < 790 THEN
            CALL act(i, e);
        ELSIF die < 820 THEN
            UPDATE box SET expires_at = now() - interval '1 s' WHERE event_id = e;
            DELETE FROM model WHERE event = e;
        ELSIF die < 880 THEN
            -- Mostly the settled ones of the oldest generation, so that the others have to be moved.
            IF chance(80) THEN
                SELECT mod(mod(oldest_generation, c.slots) + c.slots, c.slots) INTO s
                FROM idem_control c WHERE dedup = 'box'::regclass;
            END IF;
            WITH expired AS (UPDATE box SET expires_at = now() - interval '1 s'
                             WHERE slot = s AND expires_at > now() AND (state = 'done' OR die < 823)
                             RETURNING event_id)
            DELETE FROM model USING expired WHERE event = event_id;
        ELSIF die < 890 THEN
            DELETE FROM box WHERE event_id = e;
            DELETE FROM model WHERE event = e;
        ELSIF die < 920 THEN
            IF NOT EXISTS (SELECT FROM model WHERE event = e) THEN
                CALL write_by_hand(e, s);
            END IF;
        ELSIF die < 930 THEN
            BEGIN
                UPDATE box SET slot = s WHERE event_id = e AND expires_at > now();
            EXCEPTION WHEN unique_violation THEN
                NULL;
            END;
        ELSIF die < 960 THEN
            COMMIT;
            CALL idem_rotate('box');
        ELSE
            IF chance(50) THEN
                UPDATE idem_generation SET opened_at = opened_at - interval '40 days' WHERE dedup = 'box'::regclass;
            END IF;
            COMMIT;
            CALL idem_purge('box');
            INSERT INTO done SELECT 'filtered', count(*) FROM idem_generations WHERE dedup = 'box'::regclass AND filter;
        END IF;
        COMMIT;
        IF i % 200 = 0 THEN
            CALL check_all(i);
        END IF;
    END LOOP;
    CALL check_all(i);
    INSERT INTO done SELECT 'turned', turned FROM idem_purge_state WHERE dedup = 'box'::regclass;
    INSERT INTO done SELECT 'retired', retired FROM idem_purge_state WHERE dedup = 'box'::regclass;
    INSERT INTO done SELECT 'moved', events_moved FROM idem_purge_state WHERE dedup = 'box'::regclass;
END $$;
});

my $seed = $ENV{IDEM_SEED} // int(rand(1000000));
srand($seed);
note("IDEM_SEED=$seed");

sub agrees
{
    my ($how, $slots, $events, $filters) = @_;
    my $random = rand();
    $node->safe_psql('postgres',
        "SET client_min_messages = error; CALL run($steps, $slots, $events, $random)");
    my $what = "$how, $slots slots, $events events";
    is( $node->safe_psql('postgres', q{SELECT * FROM problem ORDER BY step LIMIT 5}),
        '', "$what: idem agrees with the model")
      or diag("IDEM_SEED=$seed");
    note($what . ': ' . $node->safe_psql('postgres', q{SELECT string_agg(s, ', ') FROM
         (SELECT what || ' ' || sum(n) s FROM done GROUP BY what ORDER BY 1) s}));
    is($node->safe_psql('postgres', q{SELECT sum(n) > 0 FROM done WHERE what = 'filtered'}),
        $filters ? 't' : 'f', "$what: filters were " . ($filters ? '' : 'not ') . 'built');
    is($node->safe_psql('postgres', q{SELECT count(*) FROM done WHERE what IN ('turned', 'retired') AND n > 10}),
        2, "$what: the ring has turned, and generations were retired");
    return;
}

foreach my $memory ('16MB', '64kB', '')
{
    my $preload = $memory ? 'idem' : '';
    foreach my $verify ('on', 'off')
    {
        $node->append_conf('postgresql.conf', "shared_preload_libraries = '$preload'\nidem.verify_purge = $verify");
        $node->append_conf('postgresql.conf', "idem.filter_memory = $memory") if $memory;
        $node->restart;
        my $how = ($memory ? "filters in $memory" : 'not preloaded') . ", verify $verify";
        agrees($how, 2 + int(rand(6)), 40 + int(rand(400)), $memory);
    }
}

$node->stop;
done_testing();
