package cron

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/adhocore/gronx"
)

// The schedules of a GitLab server, all of which must be understood.
func TestGitLabSchedules(t *testing.T) {
	from := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, row := range readRows(t, "testdata/gitlab_crontab.tsv", 2) {
		tab, err := ParseCrontab(row[1])
		if err != nil {
			t.Error(err)
			continue
		}
		at, peer := from, from
		for range 5 {
			if peer, err = gronx.NextTickAfter(row[1], peer, false); err != nil {
				t.Fatal(err)
			}
			if at = tab.Next(at, time.UTC, Civil); !at.Equal(peer) {
				t.Errorf("%s: got %v, gronx says %v", row[1], at, peer)
			}
		}
	}
}

// In UTC gronx and the compiled fields are two opinions on one expression.
func TestCrontabAgainstGronx(t *testing.T) {
	if testing.Short() {
		t.Skip("thousands of schedules, one after the other; leave out -short")
	}
	r := rand.New(rand.NewPCG(4, 2))
	for range 4000 {
		text := randomCrontab(r)
		tab, err := ParseCrontab(text)
		if err != nil {
			t.Fatal(err)
		}
		at := time.Unix(r.Int64N(3e9), 0).UTC().Truncate(time.Minute)
		want, ok := tab.calendar.nextCivil(at.Unix())
		if !ok {
			continue // gronx takes milliseconds to find out
		}
		if got, err := gronx.NextTickAfter(text, at, true); err != nil || got.Unix() != want {
			t.Errorf("%s from %v: gronx says %v (%v), the compiled fields %v", text, at, got, err, time.Unix(want, 0).UTC())
		}
	}
}

func randomCrontab(r *rand.Rand) string {
	field := func(lo, hi int, special ...string) string {
		if r.IntN(3) == 0 {
			return "*"
		}
		var items []string
		for range 1 + r.IntN(2) {
			a, b := lo+r.IntN(hi-lo+1), lo+r.IntN(hi-lo+1)
			forms := append([]string{
				fmt.Sprint(a), fmt.Sprintf("%d-%d", min(a, b), max(a, b)),
				fmt.Sprintf("*/%d", 1+r.IntN(hi)), fmt.Sprintf("%d/%d", a, 1+r.IntN(hi)),
				fmt.Sprintf("%d-%d/%d", min(a, b), max(a, b), 1+r.IntN(hi)),
			}, special...)
			items = append(items, forms[r.IntN(len(forms))])
		}
		return strings.Join(items, ",")
	}
	return strings.Join([]string{
		field(0, 59), field(0, 23),
		field(1, 31, "L", fmt.Sprintf("%dW", 1+r.IntN(31))),
		field(1, 12, "JAN", "Oct-DEC"),
		field(0, 7, "sun", "MON-FRI", fmt.Sprintf("%dL", r.IntN(8)), fmt.Sprintf("%d#%d", r.IntN(8), 1+r.IntN(4))),
	}, " ")
}

// Where the dialects mean the same, Quartz expressions and gronx agree.
func TestQuartzAgainstGronx(t *testing.T) {
	if testing.Short() {
		t.Skip("thousands of schedules, one after the other; leave out -short")
	}
	r := rand.New(rand.NewPCG(8, 15))
	for range 2000 {
		p := randomPlan(r)
		day, week := "?", "MON-FRI"
		switch r.IntN(4) {
		case 0:
			day, week = "*", "?"
		case 1:
			day, week = fmt.Sprintf("%d,%d", 1+r.IntN(28), 1+r.IntN(31)), "?"
		case 2:
			day, week = []string{"L", "15W", "31W", "1W"}[r.IntN(4)], "?"
		}
		months := []string{"*", "JAN,JUL", "2/3"}[r.IntN(3)]
		text := strings.Join([]string{"0", p.minuteText, p.hourText, day, months, week}, " ")
		expr := compile(t, text)
		at := time.Unix(r.Int64N(3e9), 0).UTC()
		want, err := gronx.NextTickAfter(text, at, false)
		if err != nil {
			t.Fatal(err)
		}
		if got := expr.Next(at, nil, Civil); !got.Equal(want) {
			t.Errorf("%s from %v: got %v, gronx says %v", text, at, got, want)
		}
	}
}

// gronx gives up on this one although there is an answer.
func TestCrontabWhereGronxGivesUp(t *testing.T) {
	tab := compile(t, "* * */21 * 3#3,4L")
	got := tab.Next(time.Date(2007, 6, 2, 21, 54, 0, 0, time.UTC), nil, Civil)
	if want := time.Date(2018, 2, 22, 0, 0, 0, 0, time.UTC); !got.Equal(want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestTags(t *testing.T) {
	from := time.Date(2026, 2, 10, 10, 21, 0, 0, time.UTC) // a Tuesday
	tests := map[string]string{
		"@yearly": "2027-01-01T00:00:00Z", "@annually": "2027-01-01T00:00:00Z",
		"@monthly": "2026-03-01T00:00:00Z", "@weekly": "2026-02-15T00:00:00Z",
		"@daily": "2026-02-11T00:00:00Z", "@midnight": "2026-02-11T00:00:00Z",
		"@Hourly": "2026-02-10T11:00:00Z", " @always ": "2026-02-10T10:22:00Z",
		"@5minutes": "2026-02-10T10:25:00Z", "@10minutes": "2026-02-10T10:30:00Z",
		"@15minutes": "2026-02-10T10:30:00Z", "@30minutes": "2026-02-10T10:30:00Z",
	}
	for tag, want := range tests {
		if got := stamp(compile(t, tag).Next(from, nil, Civil)); got != want {
			t.Errorf("%s: got %s, want %s", tag, got, want)
		}
	}
}
