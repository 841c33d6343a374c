package postgres

import (
	"context"
	"crypto/rand"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"net/url"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/xxljob/xxljob/internal/test/pgtest"
)

// A hostile database has in public whatever another role could put there to be called in
// place of what the server has: operators for each pair of types, and functions of the
// names that the store calls. All of them count and then fail.

// hostileTypes are the types of their arguments. A use of an operator that pg_catalog does
// not have for exactly the types of its arguments finds one that fits better here.
const hostileTypes = `{int2,int4,int8,float4,float8,numeric,text,varchar,name,"\"char\"",bool,timestamptz,timestamp,date,time,interval,oid,regclass,tid,jsonb,
	int2[],int4[],int8[],float8[],numeric[],text[],name[],bool[],timestamptz[],oid[],anyelement,anynonarray,anyarray}`

// hostileOperators makes them. The counter is a sequence, whose value outlives the
// transaction that fails.
const hostileOperators = `create sequence public.captured;
create function public.hostile_value(pg_catalog.text) returns boolean language plpgsql as
	$$begin perform pg_catalog.nextval('public.captured'); raise exception 'hostile'; end$$;
create domain public.text as pg_catalog.text check (public.hostile_value(value));
create domain public.jsonb as pg_catalog.jsonb check (public.hostile_value(value::pg_catalog.text));
create domain public.timestamptz as pg_catalog.timestamptz check (public.hostile_value(value::pg_catalog.text));
do $do$
declare
	types text[] := '` + hostileTypes + `';
	body text := $$language plpgsql as 'begin perform pg_catalog.nextval(''public.captured''); raise exception ''hostile''; end'$$;
	l text; r text; op text;
begin
	foreach l in array types loop
		execute format('create function public.hostile_same(%1$s) returns %1$s %2$s', l, body);
		execute format('create operator public.- (function = public.hostile_same, rightarg = %s)', l);
		foreach r in array types loop
			execute format('create function public.hostile_test(%s, %s) returns boolean %s', l, r, body);
			execute format('create function public.hostile_same(%1$s, %2$s) returns %1$s %3$s', l, r, body);
			foreach op in array array['=', '<>', '<', '<=', '>', '>=', '~~', '!~~'] loop
				execute format('create operator public.%s (function = public.hostile_test, leftarg = %s, rightarg = %s)', op, l, r);
			end loop;
			foreach op in array array['+', '-', '*', '/', '%', '&', '|', '||'] loop
				execute format('create operator public.%s (function = public.hostile_same, leftarg = %s, rightarg = %s)', op, l, r);
			end loop;
		end loop;
	end loop;
end $do$`

// hostileFunctions makes functions of some names with the arguments that those of the
// server have, and for such as take any type, with some types.
const hostileFunctions = `do $do$
declare
	f record; t text; args text; result text;
	body text := $$language plpgsql as 'begin perform pg_catalog.nextval(''public.captured''); raise exception ''hostile''; end'$$;
begin
	for f in select p.proname, p.proretset, pg_catalog.format_type(p.prorettype, null) result,
			coalesce((select string_agg(pg_catalog.format_type(a, null), ', ' order by o) from unnest(p.proargtypes) with ordinality x(a, o)), '') args
		from pg_catalog.pg_proc p where p.pronamespace = 'pg_catalog'::regnamespace and p.proname = any('{%s}') and p.prorettype <> 'internal'::regtype
	loop
		foreach t in array case when f.args like '%%any%%' then '{int2,int4,int8,text,name,bool,timestamptz,numeric}'::text[] else '{text}' end loop
			args := regexp_replace(regexp_replace(f.args, 'any[a-z]*array', t || '[]', 'g'), '"?any[a-z]*"?', t, 'g');
			result := regexp_replace(regexp_replace(f.result, 'any[a-z]*array', t || '[]', 'g'), '"?any[a-z]*"?', t, 'g');
			begin
				execute format('create function public.%%I(%%s) returns %%s %%s %%s', f.proname, args, case when f.proretset then 'setof' else '' end, result, body);
			exception when duplicate_function or invalid_function_definition or undefined_object then null; -- such as arguments of the grammar only
			end;
		end loop;
	end loop;
end $do$`

// hostile makes the hostile database of the process when the first test asks. It ends with
// the server.
var hostile struct {
	once sync.Once
	dsn  string
	err  error
}

// HostileDSN is the address of the database with hostile operators and functions, and the order of
// texts that ICU has for all languages (from Postgres 15 on), for its owner, who is no superuser. The test is skipped where the server is not ours.
func HostileDSN(t testing.TB) string {
	t.Helper()
	super, ok := pgtest.SuperDSN(t)
	if !ok {
		pgtest.Skip(t, "databases are made on a cluster of our own only: unset XXLJOB_TEST_DATABASE_URL")
	}
	hostile.once.Do(func() { hostile.dsn, hostile.err = makeHostile(super, pgtest.DSN(t), calledNames(t)) })
	if hostile.err != nil {
		t.Fatal(hostile.err)
	}
	return hostile.dsn
}

func makeHostile(super, usual string, names []string) (string, error) {
	ctx := context.Background()
	owner, err := pgx.ParseConfig(usual)
	if err != nil {
		return "", err
	}
	name := "hostile_" + strings.ToLower(rand.Text()[:8])
	create := fmt.Sprintf("create database %s owner %s", name, pgx.Identifier{owner.User}.Sanitize())
	if err := execAt(ctx, super, "", create+" template template0 locale_provider icu icu_locale 'und'"); err != nil {
		if err := execAt(ctx, super, "", create); err != nil { // before Postgres 15
			return "", err
		}
	}
	if err := execAt(ctx, super, name, hostileOperators, fmt.Sprintf(hostileFunctions, strings.Join(names, ","))); err != nil {
		return "", err
	}
	if err := execAt(ctx, super, name, "create publication everything for all tables"); err != nil {
		return "", err
	}
	err = execAt(ctx, super, name, "select 1::bigint & 1")
	if err == nil || !strings.Contains(err.Error(), "hostile") {
		return "", fmt.Errorf("the operators are not hostile: %w", err)
	}
	address, err := url.Parse(usual)
	if err != nil {
		return "", err
	}
	address.Path = "/" + name
	return address.String(), execAt(ctx, super, name, "select setval('public.captured', 1, false)", "grant select, usage on sequence public.captured to public")
}

// execAt runs statements in a database of the server, or in the address's own.
func execAt(ctx context.Context, dsn, database string, statements ...string) error {
	cfg, err := pgx.ParseConfig(dsn)
	if err != nil {
		return err
	}
	if database != "" {
		cfg.Database = database
	}
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	for _, sql := range statements {
		if _, err := conn.Exec(ctx, sql, pgx.QueryExecModeSimpleProtocol); err != nil {
			return err
		}
	}
	return nil
}

// literal is a text in the source of the package.
type literal struct {
	text, place string
	inQueries   bool // it is of the define of a part of queries, all of whose fields are inspected
}

// literals are the texts in the source of the package, but for its tests.
func literals(t testing.TB) (list []literal) {
	t.Helper()
	names, err := fs.Glob(os.DirFS("."), "*.go")
	if err != nil {
		t.Fatal(err)
	}
	files := token.NewFileSet()
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(files, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range file.Decls {
			inQueries := isOfQueries(decl)
			ast.Inspect(decl, func(n ast.Node) bool {
				lit, ok := n.(*ast.BasicLit)
				if !ok || lit.Kind != token.STRING {
					return true
				}
				text, err := strconv.Unquote(lit.Value)
				if err != nil {
					t.Fatal(err)
				}
				list = append(list, literal{text, files.Position(lit.Pos()).String(), inQueries})
				return true
			})
		}
	}
	return list
}

// isOfQueries reports whether this is the define of a part of queries.
func isOfQueries(decl ast.Decl) bool {
	f, ok := decl.(*ast.FuncDecl)
	if !ok || f.Recv == nil {
		return false
	}
	star, ok := f.Recv.List[0].Type.(*ast.StarExpr)
	if !ok {
		return false
	}
	name, ok := star.X.(*ast.Ident)
	if !ok || f.Name.Name != "define" {
		return false
	}
	part, ok := reflect.TypeFor[queries]().FieldByName(name.Name)
	return ok && part.Anonymous
}

var calledName = regexp.MustCompile(`\b([a-z][a-z0-9_]*)\(`)

// calledNames are the names of functions in the package's SQL, and of what else stands
// before a bracket.
func calledNames(t testing.TB) (names []string) {
	t.Helper()
	texts := literals(t)
	for n := 1; n <= schemaVersion; n++ {
		text, err := migrationText(n)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, literal{text: text})
	}
	for _, l := range texts {
		for _, m := range calledName.FindAllStringSubmatch(l.text, -1) {
			names = append(names, m[1])
		}
	}
	names = append(names, "unnest", "extract", "date_part", "position") // also where the grammar calls them
	slices.Sort(names)
	return slices.Compact(names)
}
