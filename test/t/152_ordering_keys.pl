# Events of one ordering key are worked on one after another, in the order of their receipt, by as many workers as you
# like, though work fails, is rolled back, and the ring turns.

use FindBin;
use lib "$FindBin::RealBin/lib";
use IdemTest;

my $node = start_node("fsync = off");
$node->safe_psql(
    'postgres', q{
    CREATE EXTENSION idem;
    SELECT idem_create_table('jobs', mode => 'lease', generations => 8);
    SELECT idem_set_policy('jobs', max_attempts => 1000000);
    CREATE TABLE worked (n bigserial, ordering text, i int);
    CREATE TABLE running (ordering text PRIMARY KEY);    -- two at once at a key violate it

    CREATE PROCEDURE work() LANGUAGE plpgsql AS $$
    DECLARE
        due record;
        ordering_key text;
    BEGIN
        LOOP
            SELECT * INTO due FROM idem_due('jobs');
            IF due.event_id IS NULL THEN
                COMMIT;
                EXIT WHEN NOT EXISTS (SELECT FROM jobs WHERE state <> 'done');
                PERFORM pg_sleep(0.01);
                COMMIT;
                CONTINUE;
            END IF;
            ordering_key := due.payload->>'key';
            INSERT INTO running VALUES (ordering_key);
            COMMIT;
            IF random() < 0.2 THEN
                PERFORM idem_release('jobs', 'book', due.event_id, attempt => due.attempt, error => 'no',
                                     retry_after => '5 ms');
            ELSE
                INSERT INTO worked (ordering, i) VALUES (ordering_key, (due.payload->>'i')::int);
                PERFORM idem_commit('jobs', 'book', due.event_id, attempt => due.attempt);
            END IF;
            DELETE FROM running WHERE ordering = ordering_key;
            COMMIT;
        END LOOP;
    END $$;
});

foreach my $part (0 .. 2)
{
    $node->safe_psql(
        'postgres', qq{
        SELECT count(idem_receive('jobs', 'book', k || '-' || i, ordering => k::text,
                                  payload => jsonb_build_object('key', k::text, 'i', i)))
        FROM generate_series($part * 10 + 1, $part * 10 + 10) i, generate_series(1, 20) k;
        CALL idem_rotate('jobs');});
}

$node->pgbench('--no-vacuum --client=8 --transactions=1',
    0, [qr/processed: 8\/8/], [qr/^$/], 'eight workers, none two at a key',
    {   '152_work@7' => 'CALL work();',
        '152_turn@1' => "CALL idem_rotate('jobs');\nCALL work();" });
is($node->safe_psql('postgres', 'SELECT count(*), count(DISTINCT (ordering, i)) FROM worked'), '600|600',
    'each worked on, and none twice');
is( $node->safe_psql(
        'postgres',
        'SELECT count(*) FROM (SELECT i, row_number() OVER (PARTITION BY ordering ORDER BY n) AS place FROM worked) w WHERE i <> place'
    ),
    0,
    'in the order of their receipt');

# A dead one blocks its key, and nobody else's, until it is resolved; or nobody at all.
$node->safe_psql(
    'postgres', q{
    SELECT idem_receive('jobs', 'send', e, ordering => left(e, 1)) FROM unnest(ARRAY['a1', 'a2', 'b1']) e;
    SELECT idem_release('jobs', 'send', 'a1', error => 'no', retry => false);});
my $due = q{SELECT event_id FROM idem_due('jobs', 'send', max_events => 9)};
is($node->safe_psql('postgres', $due), 'b1', 'a dead event blocks its key');
$node->safe_psql('postgres', q{SELECT idem_set_policy('jobs', 'send', skip_dead => true)});
is($node->safe_psql('postgres', "BEGIN; $due; ROLLBACK"), 'a2', 'unless the policy skips it');
$node->safe_psql('postgres', q{SELECT idem_set_policy('jobs', 'send', skip_dead => false)});
is($node->safe_psql('postgres', $due), '', 'it blocks again');
$node->safe_psql('postgres', q{SELECT idem_resolve('jobs', 'send', 'a1', note => 'refunded')});
is($node->safe_psql('postgres', $due), 'a2', 'until it is resolved');

# Whoever listens is woken up by what is due at once.
my $psql = $node->background_psql('postgres');
$psql->query_safe(q{SELECT format('LISTEN %I', idem_channel('jobs')) \gexec});
$node->safe_psql(
    'postgres', q{
    SELECT idem_set_policy('jobs', 'told', notify => true);
    SELECT idem_receive('jobs', 'told', 'e'), idem_receive('jobs', 'untold', 'e');});
my $told = $psql->query('SELECT 1');
like($told, qr/Asynchronous notification "idem_\d+" with payload "told"/, 'a handler whose policy says so is told of');
unlike($told, qr/untold/, 'no other one is');
$psql->quit;

$node->stop;
done_testing();
