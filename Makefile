# The product build, by PostgreSQL's extension build system (PGXS):
#
#   make && sudo make install             builds and installs for the server of PG_CONFIG (default: pg_config in PATH)
#   make installcheck                     tests an installed idem on a running server, which PGHOST, PGPORT, … name
#   make installcheck-pgtap | installcheck-isolation | installcheck-tap    one kind of test
#   make dist                             the release archive for PGXN, of the committed state
#
# WERROR=1 turns warnings into errors; with_llvm=no leaves out the bitcode for JIT. script/test runs every test.

EXTENSION = idem
EXTVERSION := $(shell sed -n "s/^default_version *= *'\(.*\)'/\1/p" idem.control)
MODULE_big = idem
OBJS = $(patsubst %.cpp,%.o,$(sort $(wildcard src/*.cpp src/core/*.cpp src/server/*/*.cpp src/functions/*.cpp)))
DATA_built = sql/idem--$(EXTVERSION).sql
DATA = $(wildcard sql/idem--*--*.sql)
DOCS = README.md CONTRIBUTING.md CHANGELOG.md LICENSE
DIST = idem-$(EXTVERSION).zip
EXTRA_CLEAN = $(DIST) tmp_check output_iso

# The server's headers are not ours to keep free of warnings, and before version 16 they say "register". Without
# exceptions and RTTI nothing can be unwound past the server's longjmp.
PG_CPPFLAGS = -I$(srcdir)/src -isystem $(shell $(PG_CONFIG) --includedir-server) -DIDEM_VERSION='"$(EXTVERSION)"'
PG_CXXFLAGS = -std=c++20 -fno-exceptions -fno-rtti -Wall -Wextra -Wno-register -Wno-unknown-warning-option $(if $(WERROR),-Werror)
SHLIB_LINK = -lsodium
override COMPILER = $(CXX) $(CXXFLAGS)

PGTAP_FILES = $(sort $(wildcard test/sql/*.sql))
ISOLATION = $(patsubst test/specs/%.spec,%,$(sort $(wildcard test/specs/*.spec)))
ISOLATION_OPTS = --inputdir=test --load-extension=idem
TAP_FILES = $(sort $(wildcard test/t/*.pl))
NO_INSTALLCHECK = 1

PG_CONFIG ?= pg_config
PGXS := $(shell $(PG_CONFIG) --pgxs)
ifeq ($(wildcard $(PGXS)),)
$(error "$(PG_CONFIG) --pgxs" names no file: idem needs PostgreSQL's server development files, or PG_CONFIG=/path/to/pg_config)
endif
include $(PGXS)
# In a folder of idem's own, since others have a README.md too.
docmoduledir = idem
ifneq ($(shell test $(firstword $(subst ., ,$(MAJORVERSION))) -ge 15 && echo yes),yes)
$(error idem needs PostgreSQL 15 or later, and $(PG_CONFIG) is of version $(VERSION))
endif

# PGXS knows no dependencies on headers, and forgets PG_CXXFLAGS where it makes bitcode.
$(OBJS) $(OBJS:.o=.bc): $(wildcard src/*.hpp src/core/*.hpp src/server/*/*.hpp)
COMPILE.cxx.bc += $(PG_CXXFLAGS)

# The chapters of the extension's script, in the order in which they need each other.
SQL_FILES = $(patsubst %,sql/%.sql,header types tables events retries many operating statistics signatures natural views alarms comments)
$(DATA_built): $(SQL_FILES) idem.control
	awk 'FNR == 1 && NR > 1 { print "" } { print }' $(SQL_FILES) > $@

# The pages lie beside README.md as they do here, so that its links and theirs hold; PGXS would put all in one folder.
PAGES = $(sort $(wildcard $(addprefix $(srcdir)/,docs/*.md docs/*.png bench/README.md)))
PAGE_FOLDERS = $(sort $(patsubst $(srcdir)/%/,%,$(dir $(PAGES))))

install: install-pages
install-pages:
	$(foreach folder,$(PAGE_FOLDERS),$(MKDIR_P) '$(DESTDIR)$(docdir)/$(docmoduledir)/$(folder)' && \
	$(INSTALL_DATA) $(filter $(srcdir)/$(folder)/%,$(PAGES)) '$(DESTDIR)$(docdir)/$(docmoduledir)/$(folder)/' &&) true

uninstall: uninstall-pages
uninstall-pages:
	rm -f $(PAGES:$(srcdir)/%='$(DESTDIR)$(docdir)/$(docmoduledir)'/%)

.PHONY: install-pages uninstall-pages

.PHONY: installcheck-pgtap installcheck-isolation installcheck-tap dist

installcheck: installcheck-pgtap installcheck-isolation

installcheck-pgtap:
	$(if $(PGTAP_FILES),,$(error no tests in test/sql))
	PGOPTIONS='-c client_min_messages=warning' $(bindir)/dropdb --if-exists pgtap_regression
	$(bindir)/createdb --template template0 pgtap_regression
	$(bindir)/psql -Xq -d pgtap_regression -c 'CREATE EXTENSION pgtap' -c 'CREATE EXTENSION idem'
	PGOPTIONS='-c idem.backoff_jitter=0' pg_prove --psql-bin $(bindir)/psql -d pgtap_regression $(PROVE_FLAGS) $(PGTAP_FILES)

installcheck-isolation:
	$(if $(ISOLATION),,$(error no tests in test/specs))
	PGOPTIONS='-c idem.backoff_jitter=0' $(pg_isolation_regress_installcheck) $(ISOLATION_OPTS) $(ISOLATION)

installcheck-tap: PROVE_TESTS = $(TAP_FILES)
installcheck-tap:
	$(if $(TAP_FILES),,$(error no tests in test/t))
	$(prove_installcheck)

dist:
	git archive --format zip --prefix=idem-$(EXTVERSION)/ --output $(DIST) HEAD
