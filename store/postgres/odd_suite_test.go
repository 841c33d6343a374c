package postgres_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/xxljob/xxljob/internal/test/pgtest"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/postgres"
	"github.com/xxljob/xxljob/store/storetest"
)

// oddDatabase is one as people have them: its collation, the settings that it gives its sessions,
// and what a superuser has made in it.
type oddDatabase struct {
	collation string
	settings  map[string]string
	made      []string
}

// oddDatabases are as TestConformanceBesideHostileOperators has them together, each by itself.
func oddDatabases() map[string]oddDatabase {
	with := func(settings ...string) oddDatabase {
		d := oddDatabase{settings: map[string]string{}}
		for i := 0; i < len(settings); i += 2 {
			d.settings[settings[i]] = settings[i+1]
		}
		return d
	}
	all := oddDatabase{collation: "und-x-icu", settings: oddSessions(), made: []string{"create publication everything for all tables", "select pg_create_logical_replication_slot('everything', 'pgoutput')"}}
	all.settings["search_path"] = ""
	publication := oddDatabase{made: []string{"create publication everything for all tables", "select pg_create_logical_replication_slot('publication', 'pgoutput')"}}
	return map[string]oddDatabase{
		"plain":        {},
		"icu":          {collation: "und-x-icu"},
		"styles":       with("datestyle", "German, DMY", "intervalstyle", "postgres_verbose", "bytea_output", "escape", "extra_float_digits", "-15", "timezone", "Asia/Kathmandu"),
		"serializable": with("default_transaction_isolation", "serializable", "default_transaction_deferrable", "on"),
		"repeatable":   with("default_transaction_isolation", "repeatable read"),
		"read_only":    with("default_transaction_read_only", "on"),
		"no_path":      with("search_path", ""),
		"limits":       with("statement_timeout", "1s", "lock_timeout", "1s", "idle_in_transaction_session_timeout", "1s"),
		"pg_default":   with("default_tablespace", "pg_default"),
		"publication":  publication,
		"everything":   all,
	}
}

// TestConformanceInOddDatabases is for make hostile-postgres: the topics that write, in each of them.
func TestConformanceInOddDatabases(t *testing.T) {
	inServer(t)
	if os.Getenv("XXLJOB_HOSTILE_POSTGRES") == "" {
		t.Skip("make hostile-postgres runs it: TestConformanceBesideHostileOperators has all of it at once")
	}
	server := pgtest.Start(t, pgtest.Options{NoFsync: true, Settings: map[string]string{"wal_level": "logical", "max_slot_wal_keep_size": "256MB"}})
	sql := func(database, text string) {
		t.Helper()
		if _, err := server.Exec(t.Context(), database, text); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
	sql("postgres", "create role app login")
	odd := oddDatabases()
	for _, limited := range []string{"limits", "everything"} {
		maps.Copy(odd[limited].settings, endedSessions(t, pgtest.Pool(t, pgtest.At(server.DSN("postgres")))))
	}
	for _, name := range slices.Sorted(maps.Keys(odd)) {
		t.Run(name, func(t *testing.T) {
			d, began := odd[name], time.Now()
			dsn, err := server.CreateDatabase(t.Context(), name, d.collation, "app")
			must(t, err)
			for _, text := range d.made {
				sql(name, text)
			}
			there := &schemas{pool: pgtest.Pool(t, pgtest.At(dsn), with(map[string]string{"default_transaction_read_only": "off"}))} // it empties and drops schemas
			pool := pgtest.Pool(t, pgtest.At(dsn), pgtest.MaxConns(16))
			for setting, value := range d.settings {
				sql("postgres", fmt.Sprintf("alter database %s set %s = %s", name, setting, quoted(setting, value)))
			}
			only := topics(t, "Job", "Edit", "List", "Ahead", "Scan", "Claim", "Start", "HandOver", "Log", "Follow", "Owed", "Alarms", "Progress",
				"Finish", "Node", "Registry", "Reports", "Record", "Accounts", "Drop", "Texts")
			t.Cleanup(func() { // when all cases are over
				changes := "no"
				if len(d.made) > 0 {
					n, err := server.Exec(context.Background(), name, fmt.Sprintf("select count(*) from pg_logical_slot_get_binary_changes(%s, null, null, 'proto_version', '1', 'publication_names', 'everything')", quoted("", name)))
					if err != nil {
						t.Errorf("the changes are not decoded: %v", err)
					}
					changes = strings.TrimSpace(n)
				}
				fmt.Printf("%-14s failed: %-5v %5.1f s, %s changes decoded\n", name, t.Failed(), time.Since(began).Seconds(), changes)
			})
			storetest.Run(t, func(t *testing.T) store.Store {
				only(t)
				return there.open(t, pool, postgres.Patient(postgres.Config{}))
			})
		})
	}
}

// quoted is a value of a setting; a list of names stays as it is.
func quoted(setting, value string) string {
	if setting == "datestyle" {
		return value
	}
	return "'" + strings.ReplaceAll(value, "'", "''") + "'"
}
