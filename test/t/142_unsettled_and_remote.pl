# A transaction that leaves a claim unsettled leaves nothing behind on another server either: ID003 comes before
# postgres_fdw commits there, whichever of the two was loaded or connected first, and however the transaction ends.

use FindBin;
use lib "$FindBin::RealBin/lib";
use IdemTest;

my $node = start_node(
    q{
    idem.purge = off
    max_prepared_transactions = 10
});
my $host = $node->host;
my $port = $node->port;
plan skip_all => 'postgres_fdw is not installed'
  if $node->safe_psql('postgres', q{SELECT count(*) FROM pg_available_extensions WHERE name = 'postgres_fdw'}) == 0;
$node->safe_psql(
    'postgres', qq{
    CREATE EXTENSION idem;
    CREATE EXTENSION postgres_fdw;
    CREATE SERVER bank FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '$host', port '$port', dbname 'postgres');
    CREATE USER MAPPING FOR CURRENT_USER SERVER bank;
    CREATE TABLE ledger (event text);
    CREATE FOREIGN TABLE remote_ledger (event text) SERVER bank OPTIONS (table_name 'ledger');
    CREATE TABLE orders (event text);
    SELECT idem_create_table('inbox');
    SELECT idem_create_table('outbox');
});
$node->safe_psql(
    'postgres', q{
    CREATE FUNCTION book(event text) RETURNS text LANGUAGE plpgsql AS
        $$BEGIN INSERT INTO remote_ledger VALUES (event); RETURN event; END$$;
    CREATE FUNCTION claim(event text) RETURNS idem_outcome LANGUAGE plpgsql AS
        $$DECLARE answer idem_claim; BEGIN answer := idem_acquire('inbox', 'book', event); RETURN answer.outcome; END$$;
    CREATE FUNCTION book_order() RETURNS trigger LANGUAGE plpgsql AS
        $$BEGIN INSERT INTO remote_ledger VALUES (NEW.event); RETURN NULL; END$$;
    CREATE FUNCTION claim_order() RETURNS trigger LANGUAGE plpgsql AS
        $$BEGIN PERFORM claim(NEW.event); RETURN NULL; END$$;
    CREATE FUNCTION settle_order() RETURNS trigger LANGUAGE plpgsql AS
        $$BEGIN PERFORM idem_commit('inbox', 'book', NEW.event); RETURN NULL; END$$;
    CREATE TABLE booked_at_commit (event text);
    CREATE CONSTRAINT TRIGGER later AFTER INSERT ON booked_at_commit DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW EXECUTE FUNCTION book_order();
    CREATE TABLE claimed_at_commit (event text);
    CREATE CONSTRAINT TRIGGER later AFTER INSERT ON claimed_at_commit DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW EXECUTE FUNCTION claim_order();
    CREATE TABLE settled_at_commit (event text);
    CREATE CONSTRAINT TRIGGER later AFTER INSERT ON settled_at_commit DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW EXECUTE FUNCTION settle_order();
    CREATE PROCEDURE claim_and_book(event text) LANGUAGE plpgsql AS
        $$BEGIN PERFORM claim(event); PERFORM book(event); COMMIT; END$$;
    CREATE PROCEDURE book_and_claim(event text) LANGUAGE plpgsql AS
        $$DECLARE answer idem_outcome; BEGIN PERFORM book(event); answer := claim(event); COMMIT; END$$;
    CREATE PROCEDURE claim_and_loop(event text) LANGUAGE plpgsql AS
        $$DECLARE row record; BEGIN
            PERFORM claim(event);
            FOR row IN SELECT book(event) FROM generate_series(1, 3) LOOP COMMIT; END LOOP;
        END$$;
});

# What the statements of a session leave unsettled, %1$s being the event; what they write elsewhere besides.
my @unsettled = (
    [ 'COMMIT', q{BEGIN; SELECT claim('%1$s'); SELECT book('%1$s'); COMMIT} ],
    [ 'COMMIT, claimed last', q{BEGIN; SELECT book('%1$s'); SELECT claim('%1$s'); COMMIT} ],
    [ 'COMMIT AND CHAIN', q{BEGIN; SELECT claim('%1$s'); SELECT book('%1$s'); COMMIT AND CHAIN} ],
    [ 'PREPARE TRANSACTION', q{BEGIN; SELECT claim('%1$s'); SELECT book('%1$s'); PREPARE TRANSACTION '%1$s'} ],
    [ 'one statement', q{WITH claim AS MATERIALIZED (SELECT claim('%1$s')) INSERT INTO remote_ledger SELECT '%1$s' FROM claim} ],
    [ 'DO', q{DO $$BEGIN PERFORM claim('%1$s'); PERFORM book('%1$s'); END$$} ],
    [ 'procedure that commits', q{CALL claim_and_book('%1$s')} ],
    [ 'procedure that claims last, by an expression', q{CALL book_and_claim('%1$s')} ],
    [ 'procedure that commits in a loop', q{CALL claim_and_loop('%1$s')} ],
    [ 'written by a deferred trigger', q{BEGIN; SELECT claim('%1$s'); INSERT INTO booked_at_commit VALUES ('%1$s'); COMMIT} ],
    [ 'claimed by a deferred trigger', q{BEGIN; SELECT book('%1$s'); INSERT INTO claimed_at_commit VALUES ('%1$s'); COMMIT} ],
    [ 'both by deferred triggers, at once',
        q{BEGIN; INSERT INTO claimed_at_commit VALUES ('%1$s'); INSERT INTO booked_at_commit VALUES ('%1$s'); COMMIT} ],
    [ 'cursor left open', q{BEGIN; SELECT claim('%1$s'); DECLARE c CURSOR FOR SELECT book('%1$s') FROM generate_series(1, 3); FETCH c; COMMIT} ],
    [ 'cursor on a foreign table left open',
        q{BEGIN; SELECT claim('%1$s'); DECLARE c CURSOR FOR SELECT * FROM remote_ledger; FETCH c; SELECT book('%1$s'); COMMIT} ],
    [ 'cursor that is kept', q{BEGIN; SELECT claim('%1$s'); DECLARE c CURSOR WITH HOLD FOR SELECT book('%1$s'); COMMIT} ],
    [ 'COPY', q{BEGIN; SELECT claim('%1$s'); COPY remote_ledger FROM PROGRAM 'echo %1$s'; COMMIT} ],
    [ 'many claims', q{BEGIN; SELECT idem_acquire_many('inbox', 'book', ARRAY['%1$s', 'beside %1$s']); SELECT book('%1$s'); COMMIT} ],
    [ 'after an error in a savepoint',
        q{BEGIN; SELECT claim('%1$s'); SAVEPOINT s; SELECT book('%1$s'), 1 / 0; ROLLBACK TO s; SELECT book('%1$s'); COMMIT} ],
    [ 'reopened by a savepoint',
        q{BEGIN; SELECT claim('%1$s'); SAVEPOINT s; SELECT idem_commit('inbox', 'book', '%1$s'); SELECT book('%1$s'); ROLLBACK TO s; SELECT book('%1$s'); COMMIT} ]);

# What a session may have done before.
my %before = (
    'new session'           => 'SELECT 1',
    'connected before idem' => 'SELECT count(*) FROM remote_ledger',
    'idem before connected' => q{SELECT idem_key('book', 'e')},
    'both before'           => q{SELECT idem_key('book', 'e'); SELECT count(*) FROM remote_ledger});

my $events = 0;

sub sqlstate_of_session
{
    my ($statements) = @_;
    my ($stdout, $stderr);
    $node->psql('postgres', $statements, stdout => \$stdout, stderr => \$stderr, on_error_stop => 0,
        extra_params => [ '--set', 'VERBOSITY=sqlstate' ]);
    return join ' ', grep { $_ ne '22012' } $stderr =~ /ERROR:  (\w+)/g;
}

sub booked
{
    my ($event) = @_;
    return $node->safe_psql('postgres', "SELECT count(*) FROM ledger WHERE event = '$event'");
}

sub nothing_is_left
{
    my ($loaded, @before) = @_;
    foreach my $before (@before)
    {
        foreach my $case (@unsettled)
        {
            my ($name, $statements) = @$case;
            my $event = 'evt ' . ++$events;
            my $sqlstate = sqlstate_of_session("$before{$before};\n" . sprintf $statements, $event);
            is("$sqlstate, booked " . booked($event), 'ID003, booked 0', "$loaded, $before, $name");
        }
    }
    return;
}

sub what_is_settled_is_kept
{
    my ($loaded) = @_;
    foreach my $settle (
        q{SELECT idem_commit('inbox', 'book', '%1$s')},
        q{SELECT idem_release('inbox', 'book', '%1$s', error => 'no')},
        q{INSERT INTO settled_at_commit VALUES ('%1$s')})
    {
        my $event = 'evt ' . ++$events;
        my $sqlstate = sqlstate_of_session(sprintf "BEGIN;\nSELECT claim('%1\$s');\nSELECT book('%1\$s');\n$settle;\nCOMMIT", $event);
        is("$sqlstate, booked " . booked($event), ', booked 1', "$loaded, " . sprintf $settle, $event);
    }
    return;
}

nothing_is_left('not preloaded', sort keys %before);
what_is_settled_is_kept('not preloaded');
restart_with($node, q{shared_preload_libraries = 'idem'});
nothing_is_left('preloaded', 'new session', 'connected before idem');
what_is_settled_is_kept('preloaded');
restart_with($node, q{shared_preload_libraries = 'idem, postgres_fdw'});
nothing_is_left('both preloaded', 'new session');

done_testing();
