# A crash empties an unlogged dedup table, and no other restart does; emptied, it works as a new one.

use FindBin;
use lib "$FindBin::RealBin/lib";
use IdemTest;

my $node = start_node();
$node->safe_psql(
    'postgres', q{
    CREATE EXTENSION idem;
    SELECT idem_create_table('inbox', unlogged => true);
    SELECT idem_create_table('outbox', unlogged => true, mode => 'lease');
    SELECT idem_create_table('kept');
});

# One event of each table, in the generation that is current now, and the outcome of each.
my $claims = q{
    SELECT outcome, attempt FROM idem_accept('inbox', 'book', '%1$s')
    UNION ALL SELECT outcome, attempt FROM idem_acquire('outbox', 'send', '%1$s')
    UNION ALL SELECT outcome, attempt FROM idem_accept('kept', 'book', '%1$s')
};

sub claim
{
    my ($event) = @_;
    return $node->safe_psql('postgres', sprintf($claims, $event));
}

my $new = "acquired|1\nacquired|1\nacquired|1";
my $old = "duplicate|1\nbusy|1\nduplicate|1";
my $emptied = "acquired|1\nacquired|1\nduplicate|1";

is(claim('in a sealed generation'), $new, 'new event');
$node->safe_psql('postgres', "CALL idem_rotate('$_')") foreach 'inbox', 'outbox', 'kept';
is(claim('in the current generation'), $new, 'new event after rotation');

$node->restart;
foreach my $event ('in a sealed generation', 'in the current generation')
{
    is(claim($event), $old, "clean restart, event $event: remembered");
}

# A claim that is open when the crash comes is forgotten too.
my $session = $node->background_psql('postgres');
$session->query_safe('BEGIN; ' . sprintf($claims, 'open'));
$node->safe_psql('postgres', 'CHECKPOINT');
$node->stop('immediate');
$session->quit;
$node->start;

is($node->safe_psql('postgres', 'SELECT count(*) FROM inbox'), 0, 'crash empties an unlogged table');
is($node->safe_psql('postgres', 'SELECT count(*) FROM outbox'), 0, 'crash empties an unlogged table in lease mode');
is($node->safe_psql('postgres', 'SELECT count(*) FROM kept'), 2, 'crash leaves a logged table as it is');
is($node->safe_psql('postgres', 'SELECT DISTINCT oldest_generation, current_generation FROM idem_control'),
    '0|1', 'crash leaves the rings where they are');
foreach my $event ('in a sealed generation', 'in the current generation')
{
    is(claim($event), $emptied, "crash, event $event: forgotten by the unlogged tables only");
    is(claim($event), $old, "crash, event $event: remembered from then on");
}
is(claim('open'), $new, 'claim that was open in the crash is gone from all tables');

$node->safe_psql('postgres', "CALL idem_rotate('$_')") foreach 'inbox', 'outbox', 'kept';
is(claim('in the current generation'), $old, 'rotation after the crash: remembered');

$node->stop;
done_testing();
