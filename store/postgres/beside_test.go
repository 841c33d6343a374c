package postgres

// Versions beside each other: what a migration leaves to the versions before it.

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/xxljob/xxljob/internal/test/pgtest"
)

// TestEachMigrationSaysWhoMayRunOn from 23 on, and what has been taken away never comes back.
func TestEachMigrationSaysWhoMayRunOn(t *testing.T) {
	t.Parallel()
	former := 22
	for n := 23; n <= schemaVersion; n++ {
		text, err := migrationText(n)
		if err != nil {
			t.Fatal(err)
		}
		lowest, err := compatibleWith(n, text)
		if err != nil {
			t.Errorf("migration %d: %v", n, err)
		}
		if lowest < former {
			t.Errorf("migration %d may be used from version %d on, and the one before it from %d on", n, lowest, former)
		}
		former = lowest
	}
	for _, text := range []string{"", "-- A comment.\n", "-- schema_compatible: 21\n", "-- schema_compatible: 24\n", "-- schema_compatible: x\n", "\n-- schema_compatible: 22\n"} {
		if lowest, err := compatibleWith(23, text); err == nil {
			t.Errorf("%q: %d", text, lowest)
		}
	}
}

// TestFormerStatementsRunOn: testdata/statements has those of former versions, one file each.
// As long as the newest migration says that a version may run on, each of its statements is
// understood as before, and no column that it does not know asks for a value.
func TestFormerStatementsRunOn(t *testing.T) {
	InServer(t)
	t.Parallel()
	files, err := filepath.Glob("testdata/statements/*.sql")
	if err != nil || len(files) == 0 {
		t.Fatal("no statements are kept: ", err)
	}
	text, err := migrationText(schemaVersion)
	if err != nil {
		t.Fatal(err)
	}
	lowest, err := compatibleWith(schemaVersion, text)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		version, err := strconv.Atoi(strings.TrimSuffix(filepath.Base(file), ".sql"))
		if err != nil {
			t.Fatal(err)
		}
		kept, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if version < lowest {
			t.Logf("version %d may not run on any more: its statements are of no more use", version)
			continue
		}
		b := besides(t)
		b.migrate(t, 1, version)
		statements := strings.Split(string(kept), "\n;;\n")
		understood, columns := b.understand(t, statements), b.columns(t)
		for n := version + 1; n <= schemaVersion; n++ {
			b.migrate(t, n, n)
			for i, now := range b.understand(t, statements) {
				if now != understood[i] {
					t.Errorf("version %d after migration %d: %s was\n%s and is\n%s", version, n, statements[i], understood[i], now)
				}
			}
			b.compare(t, columns)
		}
	}
}

// beside is a schema that is migrated step by step.
type beside struct {
	*Store
	conn *pgx.Conn
}

func besides(t *testing.T) *beside {
	t.Helper()
	s, err := newStore(pgtest.Pool(t), Config{Schema: pgtest.Schema(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	conn, err := pgx.Connect(t.Context(), pgtest.DSN(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return &beside{s, conn}
}

func (b *beside) migrate(t *testing.T, from, to int) {
	t.Helper()
	for n := from; n <= to; n++ {
		text, err := migrationText(n)
		if err == nil {
			_, err = b.conn.PgConn().Exec(t.Context(), b.fill(text)).ReadAll()
		}
		if err != nil {
			t.Fatalf("migration %d: %v", n, err)
		}
	}
}

func (b *beside) fill(text string) string {
	return strings.NewReplacer("{{schema}}", b.schema, "{{literal}}", b.cfg.Schema).Replace(text)
}

// understand is what the server takes each statement for: the types of its arguments, and the
// names and types of its columns.
func (b *beside) understand(t *testing.T, statements []string) (list []string) {
	t.Helper()
	for _, sql := range statements {
		d, err := b.conn.PgConn().Prepare(t.Context(), "", b.fill(sql), nil)
		if err != nil {
			list = append(list, err.Error())
			continue
		}
		text := fmt.Sprintln(d.ParamOIDs)
		for _, f := range d.Fields {
			text += fmt.Sprintln(f.Name, f.DataTypeOID)
		}
		list = append(list, text)
	}
	return list
}

// columns are those of the tables, with their types, and whether a row has to bring a value.
func (b *beside) columns(t *testing.T) map[string]string {
	t.Helper()
	rows, err := b.conn.Query(t.Context(), `select c.relname || '.' || a.attname, format_type(a.atttypid, a.atttypmod) ||
		case when a.attnotnull and not a.atthasdef and a.attidentity = '' then ', wanted' else '' end
		from pg_attribute a join pg_class c on c.oid = a.attrelid where c.relnamespace = $1::regnamespace and c.relkind in ('r', 'p') and a.attnum > 0 and not a.attisdropped`, b.schema)
	if err != nil {
		t.Fatal(err)
	}
	list, name, what := map[string]string{}, "", ""
	if _, err := pgx.ForEachRow(rows, []any{&name, &what}, func() error { list[name] = what; return nil }); err != nil {
		t.Fatal(err)
	}
	return list
}

// compare looks for columns that a former version misses, and for those that it would have to
// give a value.
func (b *beside) compare(t *testing.T, former map[string]string) {
	t.Helper()
	now := b.columns(t)
	tables := map[string]bool{}
	for name, what := range former {
		table, _, _ := strings.Cut(name, ".")
		tables[table] = true
		if is, there := now[name]; !there || is != what && is != strings.TrimSuffix(what, ", wanted") {
			t.Errorf("%s was %q and is %q", name, what, is)
		}
	}
	for name := range maps.Keys(now) {
		table, _, _ := strings.Cut(name, ".")
		if _, known := former[name]; !known && tables[table] && strings.HasSuffix(now[name], ", wanted") {
			t.Errorf("%s is %s, and a former version does not know it", name, now[name])
		}
	}
}

// TestEachTableHasAPrimaryKey, partitions too: from others nothing can be deleted while the database has a
// publication for all tables.
func TestEachTableHasAPrimaryKey(t *testing.T) {
	t.Parallel()
	b := besides(t)
	b.cfg.daysAhead = 1
	if err := b.Store.migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	rows, err := b.conn.Query(t.Context(), `select c.relname::text from pg_class c where c.relnamespace = $1::regnamespace and c.relkind in ('r', 'p')
		and not exists (select from pg_index i where i.indrelid = c.oid and i.indisprimary)`, b.schema)
	if err != nil {
		t.Fatal(err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(list) > 0 {
		t.Errorf("tables without a primary key: %q, %v", list, err)
	}
	if names, err := fs.Glob(migrations, "migrations/*.sql"); err != nil || len(names) != schemaVersion {
		t.Errorf("%d migrations, and the newest is %d: %v", len(names), schemaVersion, err)
	}
}
