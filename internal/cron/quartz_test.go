package cron

import (
	"bufio"
	"os"
	"strings"
	"testing"
	"time"
)

// What Quartz 2.5 answers; in the zones only away from changes of offset, so
// that both policies agree.
func TestQuartzRows(t *testing.T) {
	for _, file := range []string{"testdata/quartz_utc.tsv", "testdata/quartz_zones.tsv"} {
		for _, policy := range []Policy{Civil, Quartz} {
			t.Run(file+"/"+policy.String(), func(t *testing.T) {
				rows := readRows(t, file, 4)
				for _, row := range rows {
					checkQuartzRow(t, row, policy)
				}
				t.Logf("%d rows", len(rows))
			})
		}
	}
}

func checkQuartzRow(t *testing.T, row []string, policy Policy) {
	t.Helper()
	expr, err := Parse(row[0])
	if row[3] == "INVALID" {
		if err == nil {
			t.Errorf("%s: accepted, want an error", row[0])
		}
		return
	}
	if err != nil {
		t.Error(err)
		return
	}
	loc := zone(t, row[1])
	at, err := time.Parse(time.RFC3339Nano, row[2])
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range strings.Split(row[3], ",") {
		at = expr.Next(at, loc, policy)
		if got := stamp(at); got != want {
			t.Errorf("%s in %s, fire %d: got %s, want %s", row[0], row[1], i, got, want)
			return
		}
		if at.IsZero() {
			return
		}
	}
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return "NONE"
	}
	return t.Format(time.RFC3339)
}

func zone(t testing.TB, name string) *time.Location {
	t.Helper()
	loc, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return loc
}

// readRows reads the rows of a tab-separated file, less the comments.
func readRows(t testing.TB, file string, columns int) (rows [][]string) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "#") {
			continue
		}
		row := strings.Split(lines.Text(), "\t")
		if len(row) != columns {
			t.Fatalf("%s: %d columns, want %d: %q", file, len(row), columns, lines.Text())
		}
		rows = append(rows, row)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return rows
}
