# Secrets of signatures stay secret: neither the server's log nor pg_stat_statements nor an error shows one which was
# passed as a parameter, or which the statement read from a table, whatever goes wrong.

use FindBin;
use lib "$FindBin::RealBin/lib";
use IdemTest;

my $hidden = 'aGlkZGVu';    # a part of every secret

my $node = start_node(q{
    shared_preload_libraries = 'pg_stat_statements'
    pg_stat_statements.track = all
    log_error_verbosity = verbose
});
$node->safe_psql(
    'postgres', qq{
    CREATE EXTENSION idem;
    CREATE EXTENSION pg_stat_statements;
    CREATE TABLE webhook_secret (sender text, secret text);
    INSERT INTO webhook_secret
    VALUES ('good', 'whsec_$hidden'), ('bad', 'whsec_$hidden!'), ('private', 'whsk_$hidden');
    CREATE FUNCTION verify(secret text) RETURNS boolean LANGUAGE plpgsql AS \$\$
    BEGIN
        RETURN idem_verify_signature('standard-webhooks', '', '{}'::jsonb, secret);
    END \$\$;
    CREATE FUNCTION verify_dynamically(secret text) RETURNS boolean LANGUAGE plpgsql AS \$\$
    DECLARE
        verified boolean;
    BEGIN
        EXECUTE 'SELECT idem_verify_signature(\$1, '''', ''{}''::jsonb, ARRAY[\$2])' INTO verified
        USING 'standard-webhooks', secret;
        RETURN verified;
    END \$\$;
    SELECT pg_stat_statements_reset();
});

# From here on everything is logged, parameters too unless one says otherwise.
$node->append_conf(
    'postgresql.conf', q{
    log_statement = all
    log_min_duration_statement = 0
    log_min_messages = debug1
    log_min_error_statement = debug1
    log_parameter_max_length = 0
});
$node->reload;
my $log_start = -s $node->logfile;

# Runs a statement with the secret as a parameter, which ends well or with an error that the client sees.
my $runs = 0;

sub run
{
    my ($mode, $statement, $secret, $error) = @_;
    $node->pgbench(
        "--no-vacuum --transactions=1 --protocol=$mode -D secret=$secret -D body=whatever",
        $error ? 2 : 0,
        [$error ? qr/0\/1/ : qr/1\/1/],
        [$error ? qr/^(?!.*$hidden).*ERROR: .*$error/s : qr/^(?!.*$hidden)/s],
        "$mode: $statement: " . ($error // 'runs'),
        { 'statement' . $runs++ => $statement });
    return;
}

sub hides_secrets
{
    my ($from, $where) = @_;
    my $log = slurp_file($node->logfile, $from);
    like($log, qr/idem_verify_signature/, "$where: statements are logged");
    unlike($log, qr/$hidden/, "$where: no secret is");
    my $queries = $node->safe_psql('postgres', 'SELECT query FROM pg_stat_statements');
    like($queries, qr/idem_verify_signature/, "$where: pg_stat_statements knows the statements");
    unlike($queries, qr/$hidden/, "$where: and no secret");
    return;
}

my $one = "SELECT idem_verify_signature('github', :body, 'sha256=00', :secret);";
my $several = "SELECT idem_verify_signature('standard-webhooks', :body, '{}'::jsonb, ARRAY['YQ==', :secret]);";
foreach my $mode ('extended', 'prepared')
{
    run($mode, $one, "whsec_$hidden");
    run($mode, $several, "whsec_$hidden");
    run($mode, 'SELECT verify(:secret);', "whsec_$hidden");
    run($mode, "SELECT idem_signature_fault('github', :body, 'sha256=$_', :secret);", "whsec_$hidden")
      foreach '00', '0' x 64;
    run($mode, "SELECT idem_signature_fault('standard-webhooks', :body, '\"x\"'::jsonb, ARRAY['YQ==', :secret]);", "whsec_$hidden");
    run($mode, "SELECT idem_signature_fault('wecom', :body, '{}'::jsonb, :secret, '0');", $hidden, 'tolerance must be positive');
    run($mode, $one, "{$hidden,$hidden}", 'secret looks like an array');
    run($mode, $several, "whsec_$hidden!", 'secret 2 is malformed');
    run($mode, $several, "whsk_$hidden", 'secret 2 is a private key');
    run($mode, 'SELECT verify(:secret);', "whpk_$hidden", 'secret 1 is malformed');
    run($mode, 'SELECT verify_dynamically(:secret);', "whpk_$hidden", 'secret 1 is malformed');
    run($mode, "SELECT idem_verify_signature(:secret, :body, 'sha256=00', 'x');", $hidden, 'unknown signature scheme');
    run($mode, "SELECT idem_verify_signature('standard-webhooks', :body, 'sha256=00', :secret);",
        $hidden, 'this scheme needs more than one header');
    run($mode, "SELECT idem_verify_signature('github', :body, 'sha256=00', :secret, '0');",
        $hidden, 'tolerance must be positive');
}
hides_secrets($log_start, 'parameters');

# What the statement reads from a table is nowhere else, so parameters may be logged.
$node->append_conf(
    'postgresql.conf', q{
    log_parameter_max_length = -1
    log_parameter_max_length_on_error = -1
});
$node->reload;
$node->poll_query_until('postgres', q{SELECT current_setting('log_parameter_max_length_on_error') = '-1'})
  or die 'settings were not reloaded';
my $log_middle = -s $node->logfile;
my $from_table = q{SELECT idem_verify_signature('standard-webhooks', :body, '{}'::jsonb, }
  . q{ARRAY(SELECT secret FROM webhook_secret WHERE sender = '%s'));};
foreach my $mode ('extended', 'prepared')
{
    run($mode, sprintf($from_table, 'good'), 'none');
    run($mode, sprintf($from_table, 'bad'), 'none', 'secret 1 is malformed');
    run($mode, sprintf($from_table, 'private'), 'none', 'secret 1 is a private key');
    run($mode, sprintf($from_table, 'unknown'), 'none', 'at least one secret must be given');
}
hides_secrets($log_middle, 'table');
like(slurp_file($node->logfile, $log_middle), qr/parameters: \$1 = 'whatever'/, 'although parameters are logged');

# This is the server's doing, and what the README warns of; without it, nothing above would prove anything.
my $log_end = -s $node->logfile;
run('prepared', $one, "whsec_$hidden");
like(slurp_file($node->logfile, $log_end), qr/$hidden/, 'a secret among logged parameters is found');

$node->stop;
done_testing();
