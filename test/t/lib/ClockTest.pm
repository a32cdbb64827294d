# A server whose wall clock a test sets: by a library preloaded into it, which is built from clock_shim.c.
#
#   use ClockTest;
#   plan skip_all => 'no C compiler' if !build_clock();
#   start_with_clock($node);            # and every other start of it
#   set_clock(40 * 86400);              # seconds ahead of the true time, for all its processes from now on

package ClockTest;

use strict;
use warnings;
use Exporter 'import';
use File::Basename ();
use PostgreSQL::Test::Utils ();

our @EXPORT = qw(build_clock set_clock start_with_clock);

my $folder = PostgreSQL::Test::Utils::tempdir();

# False where no C compiler is there.
sub build_clock
{
    set_clock(0);
    my $source = File::Basename::dirname(__FILE__) . '/clock_shim.c';
    my $compiler = $ENV{CC} // 'cc';
    return system("$compiler -shared -fPIC -O1 -o $folder/clock.so $source 2>$folder/log") == 0;
}

sub set_clock
{
    my ($seconds) = @_;
    my $new = !-e "$folder/offset";
    open(my $file, $new ? '+>' : '+<', "$folder/offset") or die "offset: $!";
    syswrite($file, pack('q', $seconds)) == 8 or die "offset: $!";
    close($file);
    return;
}

sub start_with_clock
{
    my ($node) = @_;
    local $ENV{LD_PRELOAD} = "$folder/clock.so";
    local $ENV{IDEM_CLOCK_OFFSET} = "$folder/offset";
    $node->start;
    return;
}

1;
