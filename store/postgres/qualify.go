package postgres

// The schema of what a statement calls. In: the text of a statement. Out: the same, with the
// schema of the server's functions and types before their names.

import (
	"slices"
	"strings"
)

// qualify names the schema of the server's functions and types, so that no search_path
// leads to others. Names that are part of the grammar need none, among them unnest of
// several arrays. Operators it leaves alone: each stands between the very types that
// pg_catalog has it for, so that no other is looked for (see names_test.go), and none but
// pg_catalog's is met on the path that statements of ours run on. In statements that run
// in the host's transactions, on any path, they are written as operator(pg_catalog.=).
//
// New qualifies all statements of a store, so this is one pass and no regular expressions,
// which took it 16 ms of 18.
func qualify(sql string) string {
	var out strings.Builder
	out.Grow(len(sql) + len(sql)/8)
	for done := 0; done < len(sql); {
		at := done
		for at < len(sql) && !inName(sql[at]) {
			at++
		}
		end := at
		for end < len(sql) && inName(sql[end]) {
			end++
		}
		out.WriteString(sql[done:at])
		if ofServer(sql[:at], sql[at:end], sql[end:]) {
			out.WriteString("pg_catalog.")
		}
		out.WriteString(sql[at:end])
		done = end
	}
	return out.String()
}

func inName(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// ofServer reports whether a name, between what is before and behind it, is one of the server's
// that has no schema yet.
func ofServer(before, name, behind string) bool {
	switch {
	case strings.HasSuffix(before, "::"):
		return slices.Contains(castTo, name)
	case !strings.HasPrefix(behind, "(") || strings.HasSuffix(before, "."):
		return false
	case name == "unnest" && ofSeveral(behind[1:]):
		return false
	}
	return slices.Contains(called, name)
}

// ofSeveral reports whether there is more than one argument, of which the first calls nothing.
func ofSeveral(arguments string) bool {
	end := strings.IndexAny(arguments, "(),")
	return end >= 0 && arguments[end] == ','
}

// The types and functions of the server whose names statements have.
var (
	castTo = []string{"text", "timestamptz", "jsonb"}
	called = []string{
		"array_agg", "bool_or", "min", "max", "count", "nextval", "clock_timestamp", "statement_timestamp", "date_trunc", "substr", "generate_series",
		"current_database", "unnest",
	}
)
