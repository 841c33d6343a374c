package postgres

import "testing"

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
