# An event has the same key and fingerprint in a database of whatever encoding, so that a dump may change it, and a
# secret is the same; text that is no text in UTF-8 is refused, and nothing is written.

use FindBin;
use lib "$FindBin::RealBin/lib";
use IdemTest;

my $node = start_node();

# E with acute accent, which each encoding has and only UTF-8 writes in these two bytes.
my $acute = q{convert_from('\xc3a9', 'UTF8')};
my %databases = (UTF8 => $acute, LATIN1 => $acute, SQL_ASCII => q{convert_from('\xc3a9', 'SQL_ASCII')});
my %sessions;
foreach my $encoding (keys %databases)
{
    my $database = lc $encoding;
    $node->safe_psql('postgres', "CREATE DATABASE $database ENCODING '$encoding' LOCALE 'C' TEMPLATE template0");
    $sessions{$encoding} = $node->background_psql($database, on_error_stop => 0);
    $sessions{$encoding}->query_safe($_)
      foreach '\set VERBOSITY sqlstate', 'CREATE EXTENSION idem', q{SELECT idem_create_table('inbox')};
}

is($sessions{UTF8}->query_safe("SELECT octet_length($acute)"), 2, 'UTF8 writes the character in two bytes');
is($sessions{LATIN1}->query_safe("SELECT octet_length($acute)"), 1, 'LATIN1 writes the character in one byte');

my @expressions = (
    q{idem_key('handler', 'event')},
    q{idem_key('handler' || %1$s, 'event')},
    q{idem_key('handler', %1$s || 'event')},
    q{idem_key('handler', 'event', %1$s)},
    q{idem_fingerprint('order ' || %1$s)},
    q{idem_fingerprint(jsonb_build_object('name', %1$s::text, 'cents', 100), 'name', 'cents')},
    q{idem_fingerprint(jsonb_build_object(%1$s::text, 100), %1$s)},
    q{idem_key('handler', idem_business_key('shop', %1$s))},
    q{CASE WHEN idem_verify_signature('github', 'x', '}
      . "sha256=3145a6c3465fd6a7a80c14361b404a918ef05d6495ea55793941081676d2249d"
      . q{', %1$s) THEN 'verified' END});
foreach my $expression (@expressions)
{
    my %values =
      map { $_ => $sessions{$_}->query_safe('SELECT ' . sprintf($expression, $databases{$_})) } keys %databases;
    my ($expected) = $values{UTF8};
    isnt($expected, '', sprintf($expression, 'U+00E9') . ' has a value');
    is($values{$_}, $expected, sprintf($expression, 'U+00E9') . " in $_ is that in UTF8") foreach 'LATIN1', 'SQL_ASCII';
}

foreach my $encoding (sort keys %databases)
{
    my $accept = "SELECT outcome FROM idem_accept('inbox', 'book', 'event ' || $databases{$encoding})";
    is($sessions{$encoding}->query_safe($accept), 'acquired', "$encoding: new event");
    is($sessions{$encoding}->query_safe($accept), 'duplicate', "$encoding: duplicate");
    is($sessions{$encoding}->query_safe("SELECT event_id = 'event ' || $databases{$encoding} FROM inbox"),
        't', "$encoding: event_id is stored as it was given");
}

# A SQL_ASCII database may hold any bytes.
my $bad = q{convert_from('\xe9', 'SQL_ASCII')};
my @refused = (
    "idem_key('handler', $bad)",
    "idem_accept('inbox', 'book', 'event' || $bad)",
    "idem_accept('inbox', 'book' || $bad, 'event')",
    "idem_accept('inbox', 'book', 'event', 'batch' || $bad)",
    "idem_acquire('inbox', 'book', 'event' || $bad)",
    "idem_release('inbox', 'book', 'event' || $bad, error => 'no balance')",
    "idem_lookup('inbox', 'book', 'event' || $bad)",
    "idem_fingerprint('order ' || $bad)",
    "idem_fingerprint(jsonb_build_object('name', 'A' || $bad), 'name')");
foreach my $call (@refused)
{
    $sessions{SQL_ASCII}->query("SELECT $call");
    like($sessions{SQL_ASCII}->{stderr}, qr/ERROR:  22021/, "$call is refused");
    $sessions{SQL_ASCII}->{stderr} = '';
}
is($sessions{SQL_ASCII}->query_safe('SELECT count(*) FROM inbox'), 1, 'what is refused is not written');
$_->quit foreach values %sessions;

my $dump = PostgreSQL::Test::Utils::tempdir . '/dump';
$node->safe_psql('postgres', q{CREATE DATABASE copy ENCODING 'UTF8' LOCALE 'C' TEMPLATE template0});
$node->command_ok([ 'pg_dump', '--file', $dump, 'latin1' ], 'dump of the LATIN1 database');
$node->command_ok([ 'psql', '--no-psqlrc', '--set=ON_ERROR_STOP=1', '--quiet', '--file', $dump, 'copy' ],
    'restored into a UTF8 database');
is($node->safe_psql('copy', "SELECT outcome FROM idem_accept('inbox', 'book', 'event ' || $acute)"),
    'duplicate', 'restored in another encoding: duplicate');

$node->stop;
done_testing();
