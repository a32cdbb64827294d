# A filter and a census vouch for a partition only as it was when it was counted. Whatever brings rows there past the
# trigger (detach, load and attach; the trigger switched off and on; each in one transaction or several, with or without
# anybody looking meanwhile) ends that: what was loaded is a duplicate, and no pass empties it by what was counted before.

use FindBin;
use lib "$FindBin::RealBin/lib";
use IdemTest;

my $node = start_node(
    q{
    shared_preload_libraries = 'idem'
    idem.purge = off
    idem.verify_purge = off
    autovacuum = off
});
$node->safe_psql('postgres', 'CREATE EXTENSION idem');

sub sql
{
    return $node->safe_psql('postgres', join(";\n", @_));
}

sub filtered_slots
{
    return sql(q{SELECT (idem_filter('inbox')).slots});
}

# Slot 0 is sealed, counted and filtered; `saved` has a row that lives on for a day.
my $client = $node->background_psql('postgres');
sub fresh_table
{
    sql('DROP TABLE IF EXISTS inbox, saved', q{SELECT idem_create_table('inbox', generations => 4)},
        q{SELECT FROM generate_series(1, 50) i, idem_accept('inbox', 'book', 'old ' || i)},
        q{CREATE TABLE saved AS SELECT (jsonb_populate_record(i, jsonb_build_object('key', idem_key('book', 'loaded'),
          'event_id', 'loaded'))).* FROM inbox i WHERE event_id = 'old 1'});
    sql(q{UPDATE inbox SET expires_at = clock_timestamp() WHERE event_id LIKE 'old%'});
    sql(q{CALL idem_rotate('inbox')});
    is(filtered_slots(), '{0}', 'what is sealed is filtered');
    # What it was counted with has expired, so by the census alone it may be emptied.
    is($client->query_safe(q{SELECT outcome FROM idem_accept('inbox', 'book', 'seen')}), 'acquired', 'a session has seen it');
    return;
}

my $load = 'INSERT INTO inbox_g0 TABLE saved';
my $detach = 'ALTER TABLE inbox DETACH PARTITION inbox_g0';
my $attach = 'ALTER TABLE inbox ATTACH PARTITION inbox_g0 FOR VALUES IN (0)';
my $off = 'ALTER TABLE inbox_g0 DISABLE TRIGGER idem_touch';
my $on = 'ALTER TABLE inbox_g0 ENABLE ALWAYS TRIGGER idem_touch';
my $drop = 'DROP TRIGGER idem_touch ON inbox_g0';
my $make = 'CREATE OR REPLACE TRIGGER idem_touch BEFORE INSERT OR UPDATE ON inbox_g0 FOR EACH ROW EXECUTE FUNCTION idem_touch()';
my $narrow = 'CREATE OR REPLACE TRIGGER idem_touch BEFORE UPDATE ON inbox_g0 FOR EACH ROW EXECUTE FUNCTION idem_touch()';
my $widen = 'CREATE OR REPLACE TRIGGER idem_touch BEFORE INSERT OR UPDATE ON inbox_g0 FOR EACH ROW EXECUTE FUNCTION idem_touch()';
my %ways = (
    'detach, load, attach' => [ $detach, $load, $attach ],
    'detach, switch off, load, switch on, attach' => [ $detach, $off, $load, $on, $attach ],
    'switch off, load, switch on' => [ $off, $load, $on ],
    'drop the trigger, load, make it' => [ $drop, $load, $make, $on ],
    'trigger on UPDATE only, load, on INSERT again' => [ $narrow, $load, $widen, $on ],
    'all triggers off and on' =>
      [ 'ALTER TABLE inbox_g0 DISABLE TRIGGER ALL', $load, 'ALTER TABLE inbox_g0 ENABLE TRIGGER ALL', $on ],
    'emptied, switch off, load, switch on' => [ 'TRUNCATE inbox_g0', $off, $load, $on ],
    'made anew' => [
        $detach, 'DROP TABLE inbox_g0',
        'CREATE TABLE inbox_g0 PARTITION OF inbox (PRIMARY KEY (key)) FOR VALUES IN (0)', $load, $make, $on ],
);

sub is_remembered
{
    my ($what) = @_;
    is($client->query_safe(q{SELECT outcome FROM idem_accept('inbox', 'book', 'loaded')}),
        'duplicate', "$what: what was loaded is a duplicate");
    return;
}

foreach my $way (sort keys %ways)
{
    my @steps = @{ $ways{$way} };

    fresh_table();
    sql('BEGIN', @steps, 'COMMIT');
    is_remembered("$way in one transaction");
    # Where the partition is another table, the filter that there was is nobody's any more.
    is(filtered_slots(), '{}', 'its filter is gone') if $way ne 'made anew';

    fresh_table();
    sql($_) foreach @steps;
    is_remembered("$way in several");

    fresh_table();
    sql('BEGIN', @steps, 'COMMIT');
    sql(q{CALL idem_purge('inbox')}, q{CALL idem_rotate('inbox')});
    is_remembered("$way before a pass");
    is(sql(q{SELECT count(*) FROM inbox WHERE event_id = 'loaded'}), 1, 'it was not emptied');

    fresh_table();
    sql('BEGIN', @steps, 'ROLLBACK');
    sql('BEGIN', @steps, 'COMMIT');
    is_remembered("$way after a rollback");

    next if $way eq 'made anew';    # a new table's filter is another
    # A pass builds a filter while the steps are under way, as far as their locks let it.
    foreach my $after (1 .. $#steps)
    {
        fresh_table();
        sql(@steps[ 0 .. $after - 1 ]);
        $node->psql('postgres', q{SET lock_timeout = '1s'; CALL idem_purge('inbox')});
        sql(@steps[ $after .. $#steps ]);
        is_remembered("$way, with a pass after step $after");
    }
}

note('a builder beside a transaction that has switched the trigger off');
fresh_table();
my $other = $node->background_psql('postgres');
$other->query_safe($_) foreach 'BEGIN', $off, $on;
sql(q{UPDATE inbox SET owner = owner WHERE false}, q{CALL idem_purge()});
$other->query_safe($_) foreach $off, $load, $on, 'COMMIT';
is_remembered('a filter built meanwhile does not vouch');
$other->quit;

note('what changes no row ends nothing');
fresh_table();
sql(q{UPDATE inbox SET expires_at = expires_at + interval '1 day' WHERE event_id LIKE 'old%'});
sql(q{CALL idem_purge('inbox')});
is(filtered_slots(), '{0}', 'filtered again');
sql('CREATE ROLE reader', 'GRANT SELECT ON inbox, inbox_g0 TO reader', 'ANALYZE inbox', 'CREATE INDEX ON inbox (event_id)',
    q{COMMENT ON TABLE inbox_g0 IS 'oldest'});
sql('VACUUM FREEZE inbox');
sql('VACUUM FREEZE pg_trigger');
sql('VACUUM FREEZE pg_inherits');
sql('VACUUM FULL pg_trigger');
is($client->query_safe(q{SELECT outcome FROM idem_accept('inbox', 'book', 'old 7')}), 'duplicate', 'a session looks at it');
is(filtered_slots(), '{0}', 'GRANT, ANALYZE, an index and VACUUM leave its filter');

$client->quit;
$node->stop;
done_testing();
