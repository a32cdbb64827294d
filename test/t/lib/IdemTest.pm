# What every TAP test of idem begins with: a cluster of its own, sessions that tell SQLSTATEs, and what all tests use
# (strict and warnings, Test::More, PostgreSQL::Test::Cluster and ::Utils).
#
#   use FindBin;
#   use lib "$FindBin::RealBin/lib";
#   use IdemTest;
#   my $node = start_node('idem.purge = off');

package IdemTest;

use strict;
use warnings;
use Exporter ();
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

our @EXPORT = (
    qw(start_node connect_client sqlstate_of restart_with answering),
    @Test::More::EXPORT, @PostgreSQL::Test::Utils::EXPORT, @PostgreSQL::Test::Cluster::EXPORT);

sub import
{
    strict->import;
    warnings->import;
    goto &Exporter::import;
}

# A cluster which runs, with these lines in its postgresql.conf. Options: name ('main'), and what the cluster's init
# takes, such as allows_streaming.
sub start_node
{
    my ($settings, %options) = @_;
    my $node = PostgreSQL::Test::Cluster->new(delete $options{name} // 'main');
    $node->init(%options);
    $node->append_conf('postgresql.conf', $settings) if defined $settings;
    $node->start;
    return $node;
}

# Adds lines to its postgresql.conf, and restarts it.
sub restart_with
{
    my ($node, @settings) = @_;
    $node->append_conf('postgresql.conf', $_) foreach @settings;
    $node->restart;
    return;
}

# A session that goes on after errors, for sqlstate_of.
sub connect_client
{
    my ($node, $database) = @_;
    my $client = $node->background_psql($database // 'postgres', on_error_stop => 0);
    $client->query_safe('\set VERBOSITY sqlstate');
    return $client;
}

# SQL of a function answer(table, handler, event) which accepts an event at once, and says `busy` where idem_accept raises
# that nothing is final yet.
sub answering
{
    return q{
        CREATE OR REPLACE FUNCTION answer(dedup regclass, handler text, event text) RETURNS text LANGUAGE plpgsql AS $$
        BEGIN
            RETURN (SELECT outcome FROM idem_accept(dedup, handler, event, wait => '0'));
        EXCEPTION WHEN SQLSTATE 'ID004' THEN
            RETURN 'busy';
        END $$};
}

# The SQLSTATE of the error which a statement raises in such a session; undef where it raises none.
sub sqlstate_of
{
    my ($client, $statement) = @_;
    $client->query($statement);
    my ($sqlstate) = $client->{stderr} =~ /ERROR:  (\w{5})/;
    $client->{stderr} = '';
    return $sqlstate;
}

1;
