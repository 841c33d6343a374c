package postgres

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/xxljob/xxljob/internal/test/pgtest"
	"github.com/xxljob/xxljob/store"
)

// inspected is one piece of SQL.
type inspected struct{ name, sql string }

// filled are the literals of SQL outside of queries that are not whole as they stand: what
// completes them, or what inspects them otherwise.
var filled = map[string][]any{
	"select pg_catalog.pg_advisory_xact_lock(%d, %d)": {1, -2},
	"insert into %s.xxl_job_setting (name, value) values ($1, $2), ($3, $4)\n\ton conflict (name) do update set value = excluded.value": {"{{schema}}"},
}

// otherwise are the literals that are no whole statements, and what inspects those.
var otherwise = map[string]string{
	"create table if not exists %s (like %s.xxl_job_log including defaults including constraints including generated)\n\t\twith (fillfactor = %d, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0)": "TestNamesOfDefinitions",
	"alter table %s.xxl_job_log attach partition %s for values from (%d) to (%d)":                                         "TestNamesOfDefinitions",
	"create table if not exists %s (like %s.xxl_job_log_page including defaults including constraints including storage)": "TestNamesOfDefinitions",
	"alter table %s.xxl_job_log_page attach partition %s for values from (%d) to (%d)":                                    "TestNamesOfDefinitions",
	"alter table %s.%s detach partition %s":                                                                               "names of ours only",
	"drop table ":                                                                                                         "names of ours only",
	"create schema if not exists ":                                                                                        "names of ours only",
	"%sselect %s from %s\n\twhere %s order by i.id limit %s":                                                              "listQueries",
	"(select %s from %s.%s l where %s%s order by %s desc limit %s)":                                                       "listQueries",
	"select %s from {{schema}}.xxl_job_change c where %s order by %s limit %s":                                            "listQueries",
	"%sselect ": "listQueries",
	"%sselect pg_catalog.count(*)::int, coalesce(pg_catalog.min(c.id), 0) from (%s) c":                                                       "listQueries",
	"(select * from %s l where l.handle_time >= %s::timestamptz)":                                                                            "listQueries",
	"(select * from (%s) l order by l.id desc limit %s)":                                                                                     "listQueries",
	"select j.job_desc, j.job_key, j.secret, %s from %s l %s order by l.id desc":                                                             "listQueries",
	"%sselect %s from %s.xxl_job_info i join %[3]s.xxl_job_next n on n.job_id = i.id and n.shard = i.shard\n\twhere %s order by %s limit %s": "listQueries",
	"%sselect pg_catalog.count(*)::int, coalesce(pg_catalog.min(l.id), 0) from (%s) l":                                                       "listQueries",
	"%sselect j.job_desc, j.job_key, j.secret, %s from (%s) l %s order by l.id desc":                                                         "listQueries",
	"(select %s from {{schema}}.%s l where %s%s order by %s desc limit %s)":                                                                  "listQueries",
	"select * from (%s) l order by l.id desc limit %s":                                                                                       "listQueries",
	"(select distinct k from pg_catalog.unnest(":                                                                                             "queries.nameJobs, listQueries",
	aheadID:                   "queries",
	"insert into {{schema}}.": "queries",
	anyLink:                   "queries",
	"select pg_catalog.set_config('lock_timeout', '": "queries",
	"select pg_catalog.set_config('search_path', '":  "queries",
	"update ":                  "days.of: names of ours only",
	"insert into ":             "days.of: names of ours only",
	"set local search_path = ": "a path of ours",
}

// plain is a statement that calls nothing.
var plain = regexp.MustCompile(`^(begin|commit|rollback)\b[a-z ]*$|^set local [a-z_]+ = ('[^']*'|[a-z0-9%_, ]+)$|^show [a-z_]+$|^listen $|^select 1$`)

var looksLikeSQL = regexp.MustCompile(`(?i)^[\s(%s]*(/\*.*?\*/)?[\s(%s;]*(select|insert into|update|delete from|with|create|alter|drop table|drop index|drop schema|set local|set session|show|listen|begin|commit|rollback|lock|truncate|do|call|copy|notify|merge|values|table) `)

// TestNamesOfStatements: each operator, function, type and collation that a statement of the
// store names is pg_catalog's, though public has some of every name that fit better
// wherever a use is not exact.
func TestNamesOfStatements(t *testing.T) {
	InServer(t)
	t.Parallel()
	x := newInspector(t)
	all := x.queries(t)
	all = append(all, x.literals(t)...)
	all = append(all, x.listQueries()...)
	all = append(all, x.migrated(t)...)
	slices.SortFunc(all, func(a, b inspected) int {
		return cmp.Or(strings.Compare(a.sql, b.sql), strings.Compare(a.name, b.name))
	})
	all = slices.CompactFunc(all, func(a, b inspected) bool { return a.sql == b.sql }) // many a filter makes the statement of another
	faults := 0
	for _, st := range all {
		for _, fault := range x.faults(t, st.sql) {
			t.Errorf("%s: %s", st.name, fault)
			faults++
		}
		if strings.Contains(st.sql, "extract(") {
			t.Errorf("%s: extract is double precision before Postgres 14 and numeric since, so what it is multiplied by fits one of them only", st.name)
		}
	}
	t.Logf("%d pieces of SQL inspected, %d names that are not pg_catalog's", len(all), faults)
}

// TestNamesInTheHostsTransactions: what TriggerTx sends means the same on a path on which
// public is before pg_catalog, and has a type text as well.
func TestNamesInTheHostsTransactions(t *testing.T) {
	InServer(t)
	t.Parallel()
	x := newInspector(t)
	if _, err := x.conn.Exec(t.Context(), "set search_path = public, pg_catalog"); err != nil {
		t.Fatal(err)
	}
	if fault := x.faults(t, x.sql.keyRun.text); len(fault) == 0 {
		t.Error("a statement with plain operators means the same on the hostile path: the test shows nothing")
	}
	for _, sql := range []string{x.sql.addKey.text, x.sql.keyID.text, x.sql.planRun.text, x.sql.planRunTold.text, x.sql.noteRun.text, x.sql.addAheadKey.text, x.sql.planAhead.text} {
		for _, fault := range x.faults(t, sql) {
			t.Errorf("%s in %s", fault, sql)
		}
	}
}

// inspector has a store in the hostile database.
type inspector struct {
	*Store
	conn *pgx.Conn // on the path that sessions have by default
	look *pgx.Conn // at the catalogue, on a path without public
	n    int
}

// newInspector makes the tables on the path that sessions have by default, which is not
// what Migrate does.
func newInspector(t *testing.T) *inspector {
	t.Helper()
	dsn := HostileDSN(t)
	x := &inspector{}
	var err error
	if x.conn, err = pgx.Connect(t.Context(), dsn); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = x.conn.Close(context.Background()) })
	if x.look, err = pgx.Connect(t.Context(), dsn+"&search_path=pg_catalog"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = x.look.Close(context.Background()) })
	var version int
	if err := x.look.QueryRow(t.Context(), "select current_setting('server_version_num')::int").Scan(&version); err != nil {
		t.Fatal(err)
	}
	if version < 140000 {
		pgtest.Skip(t, "functions that are kept as they were understood are there from Postgres 14 on")
	}
	schema := pgtest.Schema(t, pgtest.At(dsn))
	if x.Store, err = newStore(pgtest.Pool(t, pgtest.At(dsn)), Config{Schema: schema}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(x.Close)
	today := time.Now().UTC().Truncate(day)
	definitions := append(x.newPartition(today), x.newPagePartition(today)...)
	for n := schemaVersion; n > 0; n-- {
		text, err := migrationText(n)
		if err != nil {
			t.Fatal(err)
		}
		definitions = append([]string{x.fill(text)}, definitions...)
	}
	for _, sql := range definitions {
		if _, err := x.conn.PgConn().Exec(t.Context(), sql).ReadAll(); err != nil {
			t.Fatalf("%v in %s", err, sql)
		}
	}
	return x
}

// faults has the server understand a statement, with the types of parameters that it finds
// for itself and with those of the simple protocol, in which an integer is an int4.
func (x *inspector) faults(t *testing.T, sql string) (faults []string) {
	t.Helper()
	prepared, err := x.conn.PgConn().Prepare(t.Context(), "", sql, nil)
	if err != nil {
		return []string{err.Error()}
	}
	types, narrow := x.typeNames(t, prepared.ParamOIDs), []string(nil)
	for _, name := range types {
		if name == "pg_catalog.int8" || name == "pg_catalog.int2" {
			name = "pg_catalog.int4"
		}
		narrow = append(narrow, name)
	}
	faults = x.foreign(t, sql, types)
	if !slices.Equal(types, narrow) {
		faults = append(faults, x.foreign(t, sql, narrow)...)
	}
	slices.Sort(faults)
	return slices.Compact(faults)
}

func (x *inspector) typeNames(t *testing.T, oids []uint32) (names []string) {
	t.Helper()
	rows, err := x.look.Query(t.Context(), "select t.typnamespace::regnamespace || '.' || quote_ident(t.typname) from unnest($1::oid[]) with ordinality x(o, n) join pg_type t on t.oid = o order by n", oids)
	if err == nil {
		names, err = pgx.CollectRows(rows, pgx.RowTo[string])
	}
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// foreign are the names in a statement that are not pg_catalog's. A function whose body is
// SQL of the standard is kept as it was understood, and the catalogue knows what it depends
// on but for what came with the server.
func (x *inspector) foreign(t *testing.T, sql string, params []string) []string {
	t.Helper()
	x.n++
	name := fmt.Sprintf("%s.inspected_%d", x.cfg.Schema, x.n)
	_, err := x.conn.Exec(t.Context(), fmt.Sprintf("create function %s(%s) returns void begin atomic %s; end", name, strings.Join(params, ", "), sql), pgx.QueryExecModeSimpleProtocol)
	if err != nil {
		return []string{fmt.Sprintf("%v with (%s)", err, strings.Join(params, ", "))}
	}
	return x.dependencies(t, "d.classid = 'pg_proc'::regclass and d.objid = $1::text::regproc", name)
}

// dependencies are the objects outside of pg_catalog and of the store's own schema that
// those of the condition depend on.
func (x *inspector) dependencies(t *testing.T, condition, arg string) []string {
	t.Helper()
	rows, err := x.look.Query(t.Context(), `select distinct i.type || ' ' || i.identity
		from (select distinct d.refclassid, d.refobjid from pg_depend d where d.deptype <> 'i' and d.refclassid <> 'pg_namespace'::regclass and `+condition+`) d,
		pg_identify_object(d.refclassid, d.refobjid, 0) i
		where i.schema is distinct from 'pg_catalog' and coalesce(i.schema, '') <> $2::text and i.type not in ('role', 'language') order by 1`, arg, x.cfg.Schema)
	if err != nil {
		t.Fatal(err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// queries are the fields of queries, none of which is empty.
func (x *inspector) queries(t *testing.T) (list []inspected) {
	t.Helper()
	for name, q := range x.sql.all() {
		if q.text == "" {
			t.Fatalf("%s is empty: is its define called by newQueries?", name)
		}
		list = append(list, inspected{name, q.text})
	}
	for _, sql := range append(x.begin(time.Second)[1:], setOurPath, hintSettings) {
		list = append(list, inspected{"begin", sql})
	}
	return list
}

// literals are the statements that stand outside of queries. One that is not whole there,
// and is not said to be inspected in another way, is an error.
func (x *inspector) literals(t *testing.T) (list []inspected) {
	t.Helper()
	met := map[string]bool{}
	for _, l := range literals(t) {
		if l.inQueries || !looksLikeSQL.MatchString(l.text) || plain.MatchString(l.text) {
			continue
		}
		_, elsewhere := otherwise[l.text]
		args, whole := filled[l.text]
		switch {
		case whole:
			met[l.text] = true
			list = append(list, inspected{l.place, x.fill(fmt.Sprintf(l.text, args...))})
		case elsewhere:
			met[l.text] = true
		case strings.ContainsAny(l.text, "%{") || strings.Count(l.text, "'")%2 == 1 || strings.HasSuffix(l.text, " "):
			t.Errorf("%s: what completes %q? Add it to filled, or say in otherwise what inspects it", l.place, l.text)
		default:
			list = append(list, inspected{l.place, l.text})
		}
	}
	for _, text := range slices.Concat(slices.Collect(maps.Keys(otherwise)), slices.Collect(maps.Keys(filled))) {
		if !met[text] {
			t.Errorf("the package has no text %q any more", text)
		}
	}
	return list
}

func (x *inspector) fill(sql string) string { return strings.ReplaceAll(sql, "{{schema}}", x.schema) }

// listQueries are lists with each condition by itself, and with all.
func (x *inspector) listQueries() (list []inspected) {
	ctx := context.Background()
	for what, ctx := range map[string]context.Context{"": ctx, " without texts": store.WithShortTexts(ctx, 0), " with short texts": store.WithShortTexts(ctx, 9)} {
		sr := searching{store: x.Store, search: &store.RunSearch{}}
		jobs, runs := x.jobsQuery(ctx, store.JobFilter{}), x.runsQuery(ctx, store.RunFilter{})
		list = append(list, inspected{"Jobs" + what, jobs.sql}, inspected{"Runs" + what, runs.sql},
			inspected{"SearchJobs" + what, x.jobSearch(ctx, &store.JobSearch{}).sql}, inspected{"SearchRuns" + what, sr.matches(ctx, nil).sql})
	}
	for name, f := range filters[store.JobFilter]() {
		q := x.jobsQuery(ctx, f)
		list = append(list, inspected{"Jobs by " + name, q.sql})
	}
	for name, f := range filters[store.RunFilter]() {
		q := x.runsQuery(ctx, f)
		list = append(list, inspected{"Runs by " + name, q.sql})
	}
	for name, f := range filters[store.JobSearch]() {
		for _, order := range []store.JobOrder{store.ByID, store.ByName, store.ByNext} {
			f.Order, f.After.ID = order, 7
			list = append(list, inspected{fmt.Sprintf("SearchJobs in order %q by %s", order, name), x.jobSearch(ctx, &f).sql})
		}
	}
	searches := filters[store.RunSearch]()
	for _, states := range stateIndexes {
		searches[states.condition] = store.RunSearch{States: states.states}
		searches["one job and "+states.condition] = store.RunSearch{States: states.states, JobIDs: []int64{1}}
	}
	for name, f := range searches {
		sr := searching{store: x.Store, search: &f}
		list = append(list, inspected{"SearchRuns by " + name, sr.matches(ctx, nil).sql}, inspected{"SearchRuns by " + name + ": the edge", sr.edge(nil, nil).sql})
	}
	for name, f := range filters[store.ChangeSearch]() {
		cs := changeSearch{store: x.Store, q: &f}
		cs.choose()
		list = append(list, inspected{"SearchChanges by " + name, cs.matches(nil, 1).sql}, inspected{"SearchChanges by " + name + ": the edge", cs.edge(nil, nil).sql})
	}
	for _, states := range stateIndexes {
		q := x.runsQuery(ctx, store.RunFilter{States: states.states})
		list = append(list, inspected{"Runs by " + states.condition, q.sql})
	}
	return list
}

// filters are the filter with none, each one, each two and all of its fields.
func filters[F any]() map[string]F {
	all := map[string]F{}
	var whole F
	kind := reflect.TypeFor[F]()
	all["nothing"] = whole
	for i := range kind.NumField() {
		setField(reflect.ValueOf(&whole).Elem().Field(i))
		for j := i; j < kind.NumField(); j++ {
			var one F
			v := reflect.ValueOf(&one).Elem()
			setField(v.Field(i))
			setField(v.Field(j))
			all[kind.Field(i).Name+", "+kind.Field(j).Name] = one
		}
	}
	all["everything"] = whole
	return all
}

// setField gives a field of a filter a value that it filters by.
func setField(v reflect.Value) {
	switch v.Interface().(type) {
	case time.Time:
		v.Set(reflect.ValueOf(time.Unix(1, 0)))
		return
	case store.Job: // of a keyset
		v.Set(reflect.ValueOf(store.Job{ID: 1, Name: "a", Next: time.Unix(1, 0)}))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString("a")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		setField(v.Index(0))
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(1)
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(1)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		setField(v.Elem())
	default:
		panic("a field of type " + v.Type().String())
	}
}

var (
	comment    = regexp.MustCompile(`(?m)--.*$`)
	definition = regexp.MustCompile(`^(create (table|sequence|index|unique index)|alter table|drop (index|table)) `)
	change     = regexp.MustCompile(`^(insert into|update|delete from) `)
)

// migrated are the statements of the migrations that change rows. The others are inspected
// by what they have made.
func (x *inspector) migrated(t *testing.T) (list []inspected) {
	t.Helper()
	for n := 1; n <= schemaVersion; n++ {
		text, err := migrationText(n)
		if err != nil {
			t.Fatal(err)
		}
		for sql := range strings.SplitSeq(comment.ReplaceAllString(text, ""), ";") {
			sql = strings.TrimSpace(sql)
			switch {
			case sql == "" || definition.MatchString(sql):
			case change.MatchString(sql):
				list = append(list, inspected{fmt.Sprint("migration ", n), x.fill(sql)})
			default:
				t.Errorf("migration %d: neither a definition nor a change of rows: %s", n, sql)
			}
		}
	}
	return list
}

// TestNamesOfDefinitions: what the migrations and the partitions define depends on nothing
// outside of pg_catalog and of its own schema.
func TestNamesOfDefinitions(t *testing.T) {
	InServer(t)
	t.Parallel()
	x := newInspector(t)
	mine := `exists (select from pg_identify_object(d.classid, d.objid, d.objsubid) o where coalesce(o.schema, split_part(o.identity, '.', 1)) = $1)`
	for _, fault := range x.dependencies(t, mine, x.cfg.Schema) {
		t.Errorf("something in the schema depends on %s", fault)
	}
}

// TestQualify: names of the server's get its schema, and nothing else does.
func TestQualify(t *testing.T) {
	for in, want := range map[string]string{
		"":                                "",
		"select 1":                        "select 1",
		"count(*)":                        "pg_catalog.count(*)",
		"pg_catalog.count(*)":             "pg_catalog.count(*)",
		"{{schema}}.count(*)":             "{{schema}}.count(*)",
		"a.count + discount(1)":           "a.count + discount(1)",
		"max(min(a)), max":                "pg_catalog.max(pg_catalog.min(a)), max",
		"unnest($1)":                      "pg_catalog.unnest($1)",
		"unnest($1::int[]) a":             "pg_catalog.unnest($1::int[]) a",
		"unnest($1::int[], $2) a":         "unnest($1::int[], $2) a",
		"unnest(array_agg(a, b))":         "pg_catalog.unnest(pg_catalog.array_agg(a, b))",
		"a::text || b::text[]":            "a::pg_catalog.text || b::pg_catalog.text[]",
		"a::pg_catalog.text, a::textbook": "a::pg_catalog.text, a::textbook",
		"x::timestamptz":                  "x::pg_catalog.timestamptz",
		"text 'ü'::jsonb":                 "text 'ü'::pg_catalog.jsonb",
	} {
		if got := qualify(in); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
}
