# idem_rotate is for the owner of the table and all its partitions, and refuses what is no dedup table. It commits, so no other
# kind of test can call it and look at the error.

use FindBin;
use lib "$FindBin::RealBin/lib";
use IdemTest;

my $node = start_node();
$node->safe_psql(
    'postgres', q{
    CREATE EXTENSION idem;
    CREATE ROLE app; CREATE ROLE heir;
    CREATE TABLE plain (key uuid);
    SELECT idem_create_table('inbox'), idem_create_table('inherited');
    GRANT ALL ON inbox TO app;
    ALTER TABLE inherited OWNER TO heir;
});

sub refused
{
    my ($statements, $error, $promise) = @_;
    my ($status, undef, $stderr) =
      $node->psql('postgres', $statements, extra_params => [ '--set', 'VERBOSITY=verbose' ]);
    like($stderr, $error, $promise);
    return;
}

refused("SET ROLE app; CALL idem_rotate('inbox')", qr/42501: must be owner of table inbox/, 'all privileges do not make an owner');
refused("SET ROLE heir; CALL idem_rotate('inherited')",
    qr/42501: must be owner of table inherited_g0/, 'the partitions must be owned too');
refused("CALL idem_rotate('plain')", qr/42809: "plain" is not a dedup table/, 'an ordinary table');
refused('CALL idem_rotate(0)', qr/42P01: /, 'no table');
refused('CALL idem_rotate(NULL)', qr/22004: dedup must not be null/, 'null');
refused("SET default_transaction_read_only = on; CALL idem_rotate('inbox')", qr/25006: /, 'a read-only session');
refused("BEGIN; CALL idem_rotate('inbox')", qr/25001: /, 'a transaction block');
is($node->safe_psql('postgres', 'SELECT DISTINCT oldest_generation, current_generation FROM idem_control'),
    '0|0', 'no ring has turned');

$node->stop;
done_testing();
