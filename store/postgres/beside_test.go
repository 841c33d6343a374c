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
// understood as before, and does to rows what it did, and no column that it does not know asks for a value.
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
		b.partitions(t)
		former := b.inserts(t)
		b.insert(t, former.first)
		did := b.run(t, statements)
		if refused := b.refused(t, former.then); len(refused) > 0 {
			t.Fatalf("version %d does not take rows that the test has made for it: %v", version, refused)
		}
		for n := version + 1; n <= schemaVersion; n++ {
			b.migrate(t, n, n)
			for i, now := range b.understand(t, statements) {
				if now != understood[i] {
					t.Errorf("version %d after migration %d: %s was\n%s and is\n%s", version, n, statements[i], understood[i], now)
				}
			}
			b.compare(t, columns)
		}
		for i, does := range b.run(t, statements) {
			if does != did[i] {
				t.Errorf("version %d beside version %d: %s: %s, and was %s", version, schemaVersion, statements[i], does, did[i])
			}
		}
		for table, why := range b.refused(t, former.then) {
			t.Errorf("version %d beside version %d: a row of %s that was taken is not: %s", version, schemaVersion, table, why)
		}
		for _, planted := range []string{
			`create unique index planted on {{schema}}.xxl_job_window (shard) where begins > 4`,
			`create unique index planted on {{schema}}.xxl_job_log_default (job_id) where id > 4`,
			`alter table {{schema}}.xxl_job_info add constraint planted check (author <> '1') not valid`,
			`create function {{schema}}.planted() returns trigger language plpgsql as $$begin raise 'planted'; end$$;
			create trigger planted before insert on {{schema}}.xxl_job_owed execute function {{schema}}.planted()`,
		} {
			b.rolledBack(t, func() {
				if _, err := b.conn.PgConn().Exec(t.Context(), b.fill(planted)).ReadAll(); err != nil {
					t.Fatal(planted, err)
				}
				if len(b.refusedNow(t, former.then)) == 0 {
					t.Errorf("nobody notices: %s", planted)
				}
			})
		}
	}
}

// partitions makes one for each table that has them, for all rows.
func (b *beside) partitions(t *testing.T) {
	t.Helper()
	rows, err := b.conn.Query(t.Context(), `select c.relname::text from pg_class c where c.relnamespace = $1::regnamespace and c.relkind = 'p'`, b.schema)
	if err != nil {
		t.Fatal(err)
	}
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range tables {
		if _, err := b.conn.Exec(t.Context(), fmt.Sprintf("create table %s.%s_default partition of %[1]s.%[2]s default", b.schema, table)); err != nil {
			t.Fatal(err)
		}
	}
}

// formerRows are statements that insert rows, by table.
type formerRows struct{ first, then map[string][]string }

// inserts are two batches of rows for each table, as its columns are now. The rows are the same in whatever no
// unique index has, all columns of some have values, and others have those that they have to have.
func (b *beside) inserts(t *testing.T) formerRows {
	t.Helper()
	rows, err := b.conn.Query(t.Context(), `select c.relname::text, a.attname::text, format_type(a.atttypid, a.atttypmod), y.typcategory::text, a.attnotnull and not a.atthasdef,
		exists (select from pg_index i where i.indrelid = c.oid and i.indisunique and (a.attnum = any(i.indkey) or i.indexprs is not null))
		from pg_attribute a join pg_class c on c.oid = a.attrelid join pg_type y on y.oid = a.atttypid
		where c.relnamespace = $1::regnamespace and c.relkind in ('r', 'p') and not c.relispartition and a.attnum > 0 and not a.attisdropped
			and a.attidentity = '' and a.attgenerated = '' order by c.relname, a.attnum`, b.schema)
	if err != nil {
		t.Fatal(err)
	}
	type column struct {
		Table, Name, Of, Category string
		Wanted, Unique            bool
	}
	columns, err := pgx.CollectRows(rows, pgx.RowToStructByPos[column])
	if err != nil {
		t.Fatal(err)
	}
	made := formerRows{map[string][]string{}, map[string][]string{}}
	row := func(table string, k int, all bool) string {
		var names, values []string
		for _, c := range columns {
			if c.Table == table && (all || c.Wanted || c.Unique) {
				names, values = append(names, c.Name), append(values, fmt.Sprintf("'%s'::%s", valueOf(c.Of, c.Category, map[bool]int{true: k, false: 1}[c.Unique]), c.Of))
			}
		}
		if len(names) == 0 {
			return fmt.Sprintf("insert into %s.%s default values", b.schema, table)
		}
		return fmt.Sprintf("insert into %s.%s (%s) values (%s)", b.schema, table, strings.Join(names, ", "), strings.Join(values, ", "))
	}
	for _, c := range columns {
		if made.first[c.Table] == nil {
			made.first[c.Table] = []string{row(c.Table, 1, true), row(c.Table, 2, true), row(c.Table, 3, false), row(c.Table, 4, false)}
			made.then[c.Table] = []string{row(c.Table, 5, true), row(c.Table, 6, true), row(c.Table, 7, false), row(c.Table, 8, false)}
		}
	}
	return made
}

// valueOf is a value of a type as text, another one for each k.
func valueOf(of, category string, k int) string {
	switch {
	case strings.HasPrefix(of, "json"):
		return fmt.Sprintf(`{"a": %d}`, k)
	case of == "bytea":
		return fmt.Sprintf(`\x%02d`, k)
	case of == "date":
		return fmt.Sprintf("2026-01-%02d", k)
	case category == "D":
		return fmt.Sprintf("2026-01-%02d 00:00:00+00", k)
	case category == "T":
		return fmt.Sprintf("%d seconds", k)
	case category == "B":
		return "true"
	case category == "A":
		element := "S"
		if strings.HasPrefix(of, "int") || strings.HasPrefix(of, "big") || strings.HasPrefix(of, "small") {
			element = "N"
		} else if strings.HasPrefix(of, "bool") {
			element = "B"
		} else if strings.HasPrefix(of, "timestamp") {
			element = "D"
		}
		return fmt.Sprintf(`{"%s"}`, valueOf("", element, k))
	case category == "S":
		return strings.Repeat("1", k) // which is JSON as well
	}
	return strconv.Itoa(k)
}

func (b *beside) insert(t *testing.T, rows map[string][]string) {
	t.Helper()
	for table, inserts := range rows {
		for _, sql := range inserts {
			if _, err := b.conn.Exec(t.Context(), sql); err != nil {
				t.Fatalf("%s: %s: %v", table, sql, err)
			}
		}
	}
}

// rolledBack does something of which nothing stays.
func (b *beside) rolledBack(t *testing.T, do func()) {
	t.Helper()
	for _, sql := range []string{"begin", "set local statement_timeout = '20s'"} {
		if _, err := b.conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	do()
	if _, err := b.conn.Exec(t.Context(), "rollback"); err != nil {
		t.Fatal(err)
	}
}

// refused are the tables that do not take such rows, and why.
func (b *beside) refused(t *testing.T, rows map[string][]string) (why map[string]string) {
	t.Helper()
	b.rolledBack(t, func() { why = b.refusedNow(t, rows) })
	return why
}

func (b *beside) refusedNow(t *testing.T, rows map[string][]string) map[string]string {
	t.Helper()
	why := map[string]string{}
	for table, inserts := range rows {
		for _, sql := range inserts {
			if _, err := b.conn.Exec(t.Context(), "savepoint row"); err != nil {
				t.Fatal(err)
			}
			if _, err := b.conn.Exec(t.Context(), sql); err != nil {
				why[table] = err.Error()
				if _, err := b.conn.Exec(t.Context(), "rollback to savepoint row"); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	return why
}

// run is what each statement does to the rows, with arguments that some of them have: how many there are, or
// by which code it is refused. Statements without a table of the schema are left out.
func (b *beside) run(t *testing.T, statements []string) (did []string) {
	t.Helper()
	categories := map[uint32][2]string{}
	rows, err := b.conn.Query(t.Context(), `select y.oid, format_type(y.oid, null), y.typcategory::text from pg_type y where y.typnamespace = 'pg_catalog'::regnamespace`)
	if err != nil {
		t.Fatal(err)
	}
	var oid uint32
	var of, category string
	if _, err := pgx.ForEachRow(rows, []any{&oid, &of, &category}, func() error { categories[oid] = [2]string{of, category}; return nil }); err != nil {
		t.Fatal(err)
	}
	for _, sql := range statements {
		if !strings.Contains(sql, "{{schema}}") {
			did = append(did, "")
			continue
		}
		b.rolledBack(t, func() {
			d, err := b.conn.PgConn().Prepare(t.Context(), "", b.fill(sql), nil)
			if err != nil {
				did = append(did, "prepared: "+codeOf(err))
				return
			}
			args := make([][]byte, len(d.ParamOIDs))
			for i, oid := range d.ParamOIDs {
				args[i] = []byte(valueOf(categories[oid][0], categories[oid][1], 1))
			}
			res := b.conn.PgConn().ExecPrepared(t.Context(), "", args, nil, nil).Read()
			if res.Err != nil {
				did = append(did, "refused: "+codeOf(res.Err))
				return
			}
			did = append(did, fmt.Sprintf("%s, %d rows", res.CommandTag, len(res.Rows)))
		})
	}
	return did
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
