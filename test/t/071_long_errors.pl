# The error of a failed action is cut where it is too long, between two characters, whatever the database's encoding: it
# can be read, dumped and sent to any client.

use FindBin;
use lib "$FindBin::RealBin/lib";
use IdemTest;

my $node = start_node();

# A character, and how many bytes it takes there.
my %encodings = (
    UTF8 => [ q{U&'\3042'}, 3 ],
    EUC_JP => [ q{convert_from('\xa4a2', 'EUC_JP')}, 2 ],
    LATIN1 => [ q{convert_from('\xe9', 'LATIN1')}, 1 ]);
foreach my $encoding (sort keys %encodings)
{
    my ($character, $bytes) = @{ $encodings{$encoding} };
    my $database = lc $encoding;
    $node->safe_psql('postgres', "CREATE DATABASE $database ENCODING '$encoding' LOCALE 'C' TEMPLATE template0");
    $node->safe_psql(
        $database, q{
        CREATE EXTENSION idem;
        SELECT idem_create_table('inbox');
        CREATE FUNCTION refuse(payload jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
        BEGIN
            RAISE EXCEPTION '%', payload->>'message';
        END $$;
    });
    foreach my $before (0 .. 3)
    {
        my $event = "$before bytes before it";
        $node->safe_psql(
            $database, qq{
            SELECT idem_once('inbox', 'book', '$event', 'refuse(jsonb)',
                             jsonb_build_object('message', repeat('x', $before) || repeat($character, 100000)))});
        is( $node->safe_psql(
                $database, qq{
                SELECT octet_length(error) BETWEEN 65536 - $bytes + 1 AND 65536,
                       error = 'P0001: ' || repeat('x', $before)
                               || repeat($character, (65536 - 7 - $before) / $bytes)
                FROM idem_lookup('inbox', 'book', '$event')}),
            't|t', "$encoding: $event");
    }
    my ($dump) = run_command([ 'pg_dump', '--encoding=UTF8', '--data-only', $node->connstr($database) ]);
    like($dump, qr/bytes before it/, "$encoding: dumped as UTF-8");
}

$node->stop;
done_testing();
