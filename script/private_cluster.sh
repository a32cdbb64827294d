# A PostgreSQL of one's own: the extension installed beside a private copy of the server's programs, and a cluster which
# only its owner can reach. Tests, demo and benchmarks use it, so that they touch neither the system's PostgreSQL nor
# its clusters, need no root, and may run beside each other. For bash:
#
#   script/setup
#   source script/private_cluster.sh
#   make_private_folder demo                            # sets private_folder to a new /tmp/idem-demo-XXXXXX
#   trap 'stop_private_cluster "$private_folder"; remove_private_folder "$private_folder"' EXIT
#   install_privately "$private_folder" [make argument…]
#   start_private_cluster "$private_folder" [setting=value…]
#   psql -X -c 'CREATE EXTENSION idem'
#
# make_private_folder NAME               makes an empty folder that the server's user owns and nobody else may enter.
# copy_checkout FOLDER                   copies this checkout to FOLDER/source, without what was built in it.
# install_privately FOLDER [ARGUMENT…]   builds FOLDER/source (copied first where it is not there) by make with these
#                                        arguments, installs it in FOLDER/server, and calls use_private_install.
# use_private_install FOLDER             puts the programs of FOLDER/server first in PATH, pg_config among them.
# start_private_cluster FOLDER [SETTING=VALUE…]
#                                        makes (once) and starts a cluster in FOLDER/data, socket in FOLDER, log in
#                                        FOLDER/server.log; sets PGHOST, PGPORT, PGUSER and PGDATABASE (superuser
#                                        postgres, no password) and unsets every other PG… variable of libpq.
#                                        After a stop it may be called again, with other settings.
# stop_private_cluster FOLDER [MODE]     stops it, by default in fast mode; quiet where it is not running.
# remove_private_folder FOLDER           removes the folder and all that is in it.
# as_server_user COMMAND [ARGUMENT…]     runs a command as the server's user, in the folder /: as postgres when root
#                                        calls, since the server refuses root; else as the caller.

# The system's, also in a script that one with a private install in its PATH has started.
export idem_pg_config=${idem_pg_config:-$(command -v "${PG_CONFIG:-pg_config}" || echo pg_config)}
idem_checkout=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

as_server_user() {
    # HOME=/ keeps the ~/.psqlrc, ~/.proverc and ~/.pgpass of whoever calls out of what is run.
    if [[ $EUID -eq 0 ]]; then
        (cd / && HOME=/ runuser -u postgres -- "$@")
    else
        (cd / && HOME=/ "$@")
    fi
}

make_private_folder() {
    private_folder=$(mktemp -d "${TMPDIR:-/tmp}/idem-$1-XXXXXX")
    if [[ $EUID -eq 0 ]]; then
        chown postgres: "$private_folder"
    fi
}

copy_checkout() {
    # The server's user need not be able to read the checkout, and no build leaves anything in it.
    as_server_user mkdir "$1/source"
    tar -C "$idem_checkout" --mode=u+rwX --exclude=./.git --exclude=./build --exclude='*.o' --exclude='*.bc' --exclude='*.so' \
        -cf - . | as_server_user tar -C "$1/source" --no-same-owner -xf -
}

install_privately() {
    local folder=$1 bin path
    shift

    [[ -e $folder/source ]] || copy_checkout "$folder"
    as_server_user make --no-print-directory -s -j "$(nproc)" -C "$folder/source" PG_CONFIG="$idem_pg_config" "$@" all

    # The server finds its libraries and its share folder by where its own program lies: a copied program in the same
    # layout uses the copy's folders. Everything but the programs may be links.
    bin=$("$idem_pg_config" --bindir)
    as_server_user mkdir -p "$folder/server$bin"
    as_server_user cp -L "$bin"/{createdb,createuser,dropdb,initdb,pg_*,pgbench,postgres,psql,vacuumdb} "$folder/server$bin"
    for path in "$("$idem_pg_config" --pkglibdir)" "$("$idem_pg_config" --sharedir)"; do
        as_server_user mkdir -p "$folder/server$(dirname "$path")"
        as_server_user cp -rs "$path" "$folder/server$path"
    done
    # An idem that the system has must not be mistaken for this one.
    as_server_user find "$folder/server" -depth \( -name idem -o -name 'idem.*' -o -name 'idem--*' \) -exec rm -rf {} +

    as_server_user make --no-print-directory -s -C "$folder/source" PG_CONFIG="$idem_pg_config" "$@" \
        DESTDIR="$folder/server" install
    use_private_install "$folder"
}

use_private_install() {
    # From here on pg_config is the copy, which tells of the copy's folders.
    PATH=$1/server$("$idem_pg_config" --bindir):$PATH
    unset PG_CONFIG
}

start_private_cluster() {
    local folder=$1 setting value variable
    shift

    # Variables with an underscore (PG_CONFIG, PG_COLOR, PG_TEST_…) are not libpq's.
    for variable in "${!PG@}"; do
        [[ $variable == PG_* ]] || unset "$variable"
    done
    export PGHOST=$folder PGPORT=5432 PGUSER=postgres PGDATABASE=postgres

    if [[ ! -e $folder/data ]]; then
        as_server_user initdb -D "$folder/data" -U postgres -A trust -E UTF8 --locale=C --no-sync --no-instructions \
            >"$folder/initdb.log" 2>&1 || { cat "$folder/initdb.log" >&2; return 1; }
    fi
    # One line each in a file of its own: quoting for pg_ctl --options is not worth it.
    {
        echo "listen_addresses = ''"
        echo "unix_socket_directories = '$folder'"
        echo "port = 5432"
        for setting in "$@"; do
            value=${setting#*=}
            echo "${setting%%=*} = '${value//\'/\'\'}'"
        done
    } | as_server_user tee "$folder/data/private.conf" >/dev/null
    as_server_user grep -qx "include 'private.conf'" "$folder/data/postgresql.conf" ||
        echo "include 'private.conf'" | as_server_user tee -a "$folder/data/postgresql.conf" >/dev/null
    as_server_user pg_ctl -D "$folder/data" -l "$folder/server.log" -w -s start ||
        { tail -n 20 "$folder/server.log" >&2; return 1; }
}

stop_private_cluster() {
    local folder=$1 mode=${2:-fast}

    if [[ -e $folder/data/postmaster.pid ]]; then
        as_server_user pg_ctl -D "$folder/data" -m "$mode" -w -s stop
    fi
}

remove_private_folder() {
    rm -rf "$1"
}
