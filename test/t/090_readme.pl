# Every SQL command of the README works when it is pasted, in order, into a fresh database, and answers what the README says.

use FindBin;
use lib "$FindBin::RealBin/lib";
use IdemTest;
use FindBin;

my $readme = slurp_file("$FindBin::Bin/../../README.md");
my @blocks = $readme =~ /^```sql\n(.*?)^```/msg;
cmp_ok(scalar @blocks, '>=', 5, 'README has its SQL blocks');

my $node = start_node();

my ($status, $stdout, $stderr) = $node->psql('postgres', join("\n", @blocks), on_error_stop => 1);
like($stderr, qr/\A(psql:\S+ )?WARNING:  event "evt_5" [^\n]*\nDETAIL:  [^\n]*\z/, 'no command of the README fails, and one warns');
is($status, 0, 'psql is content');
# What idem_commit answers.
$stdout =~ s/^\d{4}-\d\d-\d\d [\d:.+-]+$/until/mg;
is( $stdout,
    join("\n", 'inbox', 'acquired|', 't|acquired|', 'until', 'f|duplicate|{"balance": 90}', 'outbox', 't|1', 'until', 'acquired', 'conflict',
        'acquired', 'duplicate', 'jobs', ('') x 2, 'acquired', 'backoff', 'backoff', 'acquired', 'evt_3|1|{"to": "wangfang"}', 'until',
        'acquired|{"balance": 80}', '', 't|bypassed', '',
        '||30 days||hot_window: not enough seen yet, 0 of 100 settled claims. cold_window: not enough seen yet, 0 of 100 redelivered events.'),
    'the answers are those of the README');
is($node->safe_psql('postgres', 'SELECT * FROM ledger'), "evt_124|1000\nevt_127|1000", 'one statement: booked');
is($node->safe_psql('postgres', 'SELECT balance FROM wallet'), '80', 'one transaction, and one call: charged');

$node->stop;
done_testing();
