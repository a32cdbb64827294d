# DBD::Pg.
use v5.36;
use utf8;
use DBI;
use DBD::Pg qw(PG_BYTEA);
use File::Basename qw(dirname);
use JSON::PP;

my ($body_file, $signature, $secret) = @ARGV;
my $body = slurp($body_file);
my $headers = encode_json({ 'X-Hub-Signature-256' => $signature, 'User-Agent' => '张三' });
utf8::decode($headers);
my $cents = encode_json({ cents => 1000 });
my $events = [ 'evt_4', 'evt_5' ];
my %statements = map { split /: /, $_, 2 } split /\n/, slurp(dirname(__FILE__) . '/../statements');
my $session = DBI->connect('dbi:Pg:', '', $ENV{PGPASSWORD}, { RaiseError => 1, PrintError => 0 });

sub slurp ($file)
{
	open my $handle, '<:raw', $file or die "$file: $!";
	local $/;
	return readline $handle;
}

# A parameter is a value, or a code that binds it.
sub ask ($name, @parameters)
{
	my $statement = $session->prepare($statements{$name});
	for my $number (1 .. @parameters)
	{
		my $parameter = $parameters[ $number - 1 ];
		ref $parameter eq 'CODE' ? $parameter->($statement, $number) : $statement->bind_param($number, $parameter);
	}
	$statement->execute;
	return $statement->{NUM_OF_FIELDS} ? @{ $statement->fetchall_arrayref({}) } : ();
}

# The one value that came back, or the SQLSTATE.
sub attempt (@call)
{
	my $value = eval { my ($row) = ask(@call); (values %$row)[0] };
	return $@ ? $session->state : $value;
}

sub bytes ($value)
{
	return sub ($statement, $number) { $statement->bind_param($number, $value, { pg_type => PG_BYTEA }) };
}

# Perl's scalars have no types of their own; a number is one that JSON writes without quotes.
sub type ($value)
{
	return JSON::PP->new->allow_nonref->encode($value) =~ /^"/ ? 'string' : 'number';
}

my %seen;
my %fingerprints = (new => $body, duplicate => $body, conflict => 'other');
for my $what (qw(new duplicate conflict))
{
	($seen{$what}) = ask('accept', 'evt_1', bytes($fingerprints{$what}), $cents);
}
my %types = map { $_ => type($seen{duplicate}{$_}) } keys %{ $seen{duplicate} };

$session->begin_work;
($seen{acquired}) = ask('acquire', 'evt_2');
ask('effect', 'evt_2');
my ($remembered) = ask('commit', 'evt_2', $cents);
$session->commit;
($seen{effects}) = ask('effects', 'evt_2');
$seen{remembered_until} = $remembered->{remembered_until};
$types{remembered_until} = type($remembered->{remembered_until});

($seen{lease}) = ask('lease', 'evt_3');
($seen{released}) = ask('release', 'evt_3', $seen{lease}{attempt}, 'timeout', '90 seconds');
$types{retry_after} = type($seen{released}{retry_after});

$seen{verified} = attempt('verify', bytes($body), $signature, $secret);
$seen{forged} = attempt('verify', bytes("${body}x"), $signature, $secret);
$seen{'verified by headers'} = attempt('verify_headers', bytes($body), $headers, $secret);
$seen{held} = attempt('held', 'evt_held');

$session->begin_work;
$seen{many} = [ ask('many', $events) ];
ask('many_done', $events);
$session->commit;

my %uncast = (
	bytes => attempt('uncast_bytes', bytes($body), $signature, $secret),
	headers => attempt('uncast_headers', bytes($body), $headers, $secret),
	json => attempt('uncast_json', 'evt_6', $cents));
say encode_json({ seen => \%seen, types => \%types, uncast => \%uncast });
