# A pass runs nothing of a dedup table's owner: neither a function in an index of a partition, whose table is not in
# order, nor what lies in the owner's search_path. Purging makes nobody a superuser.

use FindBin;
use lib "$FindBin::RealBin/lib";
use IdemTest;

my $node = start_node(q{
    shared_preload_libraries = 'idem'
    idem.purge = off
    idem.purge_naptime = 1
    fsync = off
});

# The function tells in the log who runs it. Its name and the operator's are traps too.
$node->safe_psql(
    'postgres', q{
    CREATE EXTENSION idem;
    CREATE ROLE owner NOLOGIN;
    CREATE SCHEMA traps AUTHORIZATION owner;
    GRANT CREATE ON DATABASE postgres TO owner;
    ALTER DATABASE postgres SET search_path = traps, public, pg_catalog;
    SET ROLE owner;
    SET search_path = traps, public;
    CREATE FUNCTION traps.spy(value text) RETURNS text IMMUTABLE LANGUAGE plpgsql AS $$
    BEGIN
        RAISE LOG 'spy runs as % in a session of %', current_user, session_user;
        BEGIN
            PERFORM pg_catalog.set_config('role', 'none', false);
            RAISE LOG 'spy escaped';
        EXCEPTION WHEN insufficient_privilege THEN
            RAISE LOG 'spy is locked in';
        END;
        RETURN value;
    END $$;
    CREATE FUNCTION traps.trapped(timestamptz, timestamptz) RETURNS boolean LANGUAGE plpgsql AS $$
    BEGIN
        RAISE LOG 'trap runs as %', current_user;
        RETURN $1 OPERATOR(pg_catalog.<) $2;
    END $$;
    CREATE OPERATOR traps.< (LEFTARG = timestamptz, RIGHTARG = timestamptz, FUNCTION = traps.trapped);
    SELECT idem_create_table('traps.outbox', mode => 'lease', hot_window => '1 ms', cold_window => '400 ms', generations => 3);
    SELECT FROM idem_acquire('traps.outbox', 'send', 'unsettled');
    SELECT idem_create_table('traps.spying', mode => 'lease', hot_window => '1 ms', cold_window => '400 ms', generations => 3);
    SELECT FROM idem_acquire('traps.spying', 'send', 'unsettled');
    CREATE INDEX ON traps.spying (traps.spy(event_id));
});

# The unsettled event is moved each time its generation is to leave the ring.
# Making the index has run the function, which is the owner's own affair.
my $start = -s $node->logfile;
$node->append_conf('postgresql.conf', 'idem.purge = on');
$node->reload;
ok( $node->poll_query_until('postgres',
        q{SELECT oldest_generation > 1 FROM idem_control WHERE dedup = 'traps.outbox'::regclass}),
    'unsettled event was in the way of retiring generations twice');
is( $node->safe_psql('postgres', 'SELECT event_id, state FROM traps.outbox'),
    'unsettled|processing',
    'unsettled event is still there');
$node->stop;

my $log = slurp_file($node->logfile, $start);
like($log, qr/WARNING:.*dedup table "spying" is not in order/, 'a table with a function of the owner in an index is not purged');
unlike($log, qr/spy runs/, 'and nothing runs that function');
unlike($log, qr/trap runs/, 'operators of the owner are not used');
done_testing();
