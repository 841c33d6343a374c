package postgres

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/xxljob/xxljob/internal/test/pgtest"
)

// arrayTypes know arrays, as a connection does that was taught.
func arrayTypes() *pgtype.Map {
	m := pgtype.NewMap()
	new(taught).knowArrays(m)
	return m
}

func text(s string) *string { return &s }

// oddTexts are such as an array of texts has to quote.
var oddTexts = []string{"", "a", "null", "NULL", `{"a",b}`, `back\slash`, "two\nlines", " ", "größer", "🙂"}

// TestArraysAreWhatPgxSends: an array is the same bytes, or the same error, as the plain list,
// whatever type the server has for it.
func TestArraysAreWhatPgxSends(t *testing.T) {
	t.Parallel()
	plain, known := pgtype.NewMap(), arrayTypes()
	for _, list := range []any{
		[]int64{0, 1, -1, math.MaxInt16, math.MinInt16}, []int64{math.MaxInt32, math.MinInt32}, []int64{math.MaxInt64, math.MinInt64}, []int64{}, []int64(nil),
		[]int32{0, 1, -1, math.MaxInt16, math.MinInt16}, []int32{math.MaxInt32, math.MinInt32}, []int32{}, []int32(nil),
		[]int16{0, 1, -1, math.MaxInt16, math.MinInt16}, []int16{}, []int16(nil),
		[]bool{true, false}, []bool{}, []bool(nil),
		oddTexts, []string{}, []string(nil),
		[]*string{nil, text(""), text("a"), text(`"`), nil}, []*string{text("a")}, []*string{}, []*string(nil),
	} {
		for _, oid := range []uint32{
			0, pgtype.Int8ArrayOID, pgtype.Int4ArrayOID, pgtype.Int2ArrayOID, pgtype.BoolArrayOID, pgtype.TextArrayOID, pgtype.VarcharArrayOID,
			pgtype.NumericArrayOID, pgtype.JSONBArrayOID, pgtype.Int8OID, pgtype.TextOID,
		} {
			for _, format := range []int16{pgtype.TextFormatCode, pgtype.BinaryFormatCode} {
				want, wantErr := plain.Encode(oid, format, list, []byte("before"))
				arrays := map[string]any{"array": packed(list)}
				if a := arrays["array"].(array); a.size() > arrayHead {
					arrays["leading array"] = lead(a, 1000)
				}
				for name, array := range arrays {
					got, err := known.Encode(oid, format, array, []byte("before"))
					if !bytes.Equal(got, want) || (err == nil) != (wantErr == nil) || (got == nil) != (want == nil) {
						t.Errorf("%s: %T%v as type %d in format %d: %q, %v; want %q, %v", name, list, list, oid, format, got, err, want, wantErr)
					}
				}
			}
		}
	}
}

// TestArraysAreAsLongAsTheySay: of no array there is more than its size.
func TestArraysAreAsLongAsTheySay(t *testing.T) {
	t.Parallel()
	types := arrayTypes()
	for oid, list := range map[uint32]any{
		pgtype.Int8ArrayOID: []int64{1, 2}, pgtype.Int4ArrayOID: []int32{1, 2}, pgtype.Int2ArrayOID: []int16{1, 2}, pgtype.BoolArrayOID: []bool{true, false},
		pgtype.TextArrayOID: oddTexts, pgtype.VarcharArrayOID: []*string{nil, text("größer")},
	} {
		a := packed(list).(array)
		got, err := types.Encode(oid, pgtype.BinaryFormatCode, a, nil)
		if err != nil || len(got) != a.size() {
			t.Errorf("%T%v: %d bytes, %v; want %d", list, list, len(got), err, a.size())
		}
	}
}

// TestArgumentsAreWrittenInOneBuffer: the first array makes room for all that the statement has.
func TestArgumentsAreWrittenInOneBuffer(t *testing.T) {
	t.Parallel()
	args := []any{"address", int64(7), []int64(nil), []int16{}, numbers(1000), []string{"a", "b"}, []*string{nil, text("c")}, make([]int16, 500), make([]bool, 100), upTo(1000)}
	sd := &pgconn.StatementDescription{ParamOIDs: []uint32{pgtype.TextOID, pgtype.Int8OID, pgtype.Int8ArrayOID, pgtype.Int2ArrayOID,
		pgtype.Int8ArrayOID, pgtype.TextArrayOID, pgtype.TextArrayOID, pgtype.Int2ArrayOID, pgtype.BoolArrayOID, pgtype.Int4ArrayOID}}
	size := packArrays(args)
	if again := packArrays(args); again != size {
		t.Errorf("of %d bytes; packed a second time, of %d", size, again)
	}
	var b pgx.ExtendedQueryBuilder
	if err := b.Build(arrayTypes(), sd, args); err != nil {
		t.Fatal(err)
	}
	sent := 0
	for i, v := range b.ParamValues {
		sent += len(v)
		if i > 4 && cap(v) != cap(b.ParamValues[i-1])-len(b.ParamValues[i-1]) {
			t.Errorf("argument %d is in another buffer than the one before", i+1)
		}
	}
	if b.ParamValues[2] != nil || sent > size || sent < size-100 {
		t.Errorf("a list that is nil has %d bytes, all have %d, want null and %d at most", len(b.ParamValues[2]), sent, size)
	}
}

func numbers(n int) []int64 {
	list := make([]int64, n)
	for i := range list {
		list[i] = int64(i) << 40
	}
	return list
}

// TestArraysInEveryMode: they arrive however the host's connections send arguments.
func TestArraysInEveryMode(t *testing.T) {
	t.Parallel()
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeDescribeExec,
		pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol} {
		t.Run(fmt.Sprint(mode), func(t *testing.T) {
			t.Parallel()
			conn := connect(t, mode)
			// The third finds plans and statements that are kept, the fourth is more than buffers that are.
			for _, n := range []int{2000, 2000, 2000, 40_000, 2000} {
				many := numbers(n)
				var gotMany, gotInts []int64
				var gotSmall []int16
				var gotNone []int64
				var gotFlags []bool
				var gotTexts []string
				var gotNulls []*string
				read := func(dest ...any) result { return scanInto(dest...) }
				err := send(t.Context(), conn, []string{"select 1"}, []statement{
					{sql: "select $1::bigint[], $2::int[], $3::smallint[], $4::bigint[]", args: []any{many, []int64{1, -2}, []int16{3, -4}, []int64(nil)}, read: read(&gotMany, &gotInts, &gotSmall, &gotNone)},
					{sql: "select $1::boolean[], $2::text[], $3::text[]", args: []any{[]bool{true, false}, oddTexts, []*string{nil, text(`"`), text("null")}}, read: read(&gotFlags, &gotTexts, &gotNulls)},
				})
				if err != nil {
					t.Fatal(err)
				}
				if !slices.Equal(gotMany, many) || !slices.Equal(gotInts, []int64{1, -2}) || !slices.Equal(gotSmall, []int16{3, -4}) || gotNone != nil ||
					!slices.Equal(gotFlags, []bool{true, false}) || !slices.Equal(gotTexts, oddTexts) {
					t.Errorf("%d numbers, %v, %v, %v, %v, %q", len(gotMany), gotInts, gotSmall, gotNone, gotFlags, gotTexts)
				}
				if len(gotNulls) != 3 || gotNulls[0] != nil || *gotNulls[1] != `"` || *gotNulls[2] != "null" {
					t.Errorf("texts and nulls: %v", gotNulls)
				}
			}
		})
	}
}

// TestHostsListsAreSentAsBefore: a connection that knows arrays sends the host's own lists, of
// types that pgx has no plan for, as any does.
func TestHostsListsAreSentAsBefore(t *testing.T) {
	t.Parallel()
	conn := connect(t, pgx.QueryExecModeCacheStatement)
	if err := send(t.Context(), conn, nil, []statement{{sql: "select $1::bigint[]", args: []any{[]int64{1}}}}); err != nil {
		t.Fatal(err)
	}
	type id int64
	var got []int64
	if err := conn.QueryRow(t.Context(), "select $1::bigint[]", []id{1, 2}).Scan(&got); err != nil || !slices.Equal(got, []int64{1, 2}) {
		t.Errorf("%v, %v", got, err)
	}
}

func connect(t *testing.T, mode pgx.QueryExecMode) *pgx.Conn {
	t.Helper()
	pool := pgtest.Pool(t, pgtest.MaxConns(1), pgtest.With(func(cfg *pgxpool.Config) { cfg.ConnConfig.DefaultQueryExecMode = mode }))
	conn, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Release)
	return conn.Conn()
}

// TestRoomIsNoMessage: it makes the buffer of a connection larger, and puts nothing into it. That
// what comes behind it arrives is seen by TestArraysInEveryMode.
func TestRoomIsNoMessage(t *testing.T) {
	t.Parallel()
	in := new(buffer)
	buf, err := (&room{in, 5000}).Encode([]byte("before"))
	if err != nil || string(buf) != "before" || cap(buf) < 5006 {
		t.Errorf("%q of %d, %v", buf, cap(buf), err)
	}
	if again, err := (&room{in, 5000}).Encode(buf); err != nil || cap(again) != cap(buf) {
		t.Errorf("where there is room: of %d, %v; want %d", cap(again), err, cap(buf))
	}
}

// TestBufferIsUsedAgain: memory that pgx has given up is what it gets the next time, with what it
// has in its own by then, and so is what a buffer in it grows into; a large one is not kept.
func TestBufferIsUsedAgain(t *testing.T) {
	t.Parallel()
	var b buffer
	first := append(b.with([]byte("one"), 5000), "two"...)
	again := b.with([]byte("three"), 4000)
	if string(again) != "three" || &again[:1][0] != &first[:1][0] {
		t.Errorf("%q, in other memory: %t", again, &again[:1][0] != &first[:1][0])
	}
	if grown := b.with(append(again, "four"...), 3*cap(again)); string(grown) != "threefour" || cap(b) < 3*cap(again) {
		t.Errorf("%q, %d kept after %d", grown, cap(b), cap(again))
	}
	kept := cap(b)
	if large := b.with([]byte("five"), mostKept); string(large) != "five" || cap(large) < mostKept+4 || cap(b) != kept {
		t.Errorf("%q of %d, %d kept, want %d", large, cap(large), cap(b), kept)
	}
}

// packed is a list as it is sent.
func packed(list any) any {
	array, _ := asArray(list)
	return array
}
