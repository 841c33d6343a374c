package cron

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/adhocore/gronx"
)

// gronxIsWrong lists what is known to be wrong with gronx, which is evidence for
// the rest. Each has an expression that shows it, with the true answer.
var gronxIsWrong = []struct {
	why              string
	expr, from, want string
	pattern          *regexp.Regexp // of the weekday fields it concerns
	failure          *regexp.Regexp // of gronx's error
}{
	{
		why:  "The search ends after 500 rounds, also where there is something to find.",
		expr: "* * */21 * 3#3,4L", from: "2007-06-02T21:54:00Z", want: "2018-02-22T00:00:00Z",
		failure: regexp.MustCompile(`^tried so hard$`),
	},
	{
		why:  "A range from 7, as Sunday, is known only without a step: this one is said to end before it starts.",
		expr: "0 0 * * 7-2/2", from: "2026-01-01T00:00:00Z", want: "2026-01-04T00:00:00Z",
		pattern: regexp.MustCompile(`(^|,)0*7-0*[0-6]/`), failure: regexp.MustCompile(`^step '0*7-0*[0-6]' out of bounds`),
	},
}

// Once gronx does better, the list has to become shorter.
func TestGronxIsWrong(t *testing.T) {
	for _, known := range gronxIsWrong {
		from, err := time.Parse(time.RFC3339, known.from)
		if err != nil {
			t.Fatal(err)
		}
		tab := compile(t, known.expr).(*Crontab)
		if got := stamp(tab.Next(from, nil, Civil)); got != known.want {
			t.Errorf("%s: got %s, want %s", known.expr, got, known.want)
		}
		if got, err := gronx.NextTickAfter(known.expr, from, true); err == nil || !known.failure.MatchString(err.Error()) {
			t.Errorf("%s: gronx says %v (%v), and is no longer wrong so: %s", known.expr, got, err, known.why)
		}
	}
}

// againstGronx compares the first instant at or after a minute, and the readings
// of the year to come, with gronx's.
func againstGronx(t *testing.T, tab *Crontab, minute int64) {
	t.Helper()
	texts, err := crontabTexts(tab.source)
	if err != nil {
		t.Fatal(err)
	}
	var failure string
	from := time.Unix(minute, 0).UTC()
	theirs, err := gronx.NextTickAfter(strings.Join(texts, " "), from, true)
	if err != nil {
		failure = err.Error()
	}
	failed := failure != ""
	for _, known := range gronxIsWrong {
		if known.pattern != nil && known.pattern.MatchString(texts[4]) {
			return
		}
		failed = failed && !known.failure.MatchString(failure)
	}
	ours := tab.Next(from.Add(-1), nil, Civil)
	switch {
	case failed:
		t.Errorf("%q from %v: gronx fails, and not in a known way: %s", tab, from, failure)
	case failure == "" && !theirs.Equal(ours) && (!ours.IsZero() || theirs.Unix() < civilEnd):
		t.Errorf("%q from %v: gronx says %v, the compiled fields %v", tab, from, theirs, ours)
	}
	if d, differ := tab.SecondOpinion(from, time.UTC); differ {
		t.Errorf("%q from %v: read differently: %+v", tab, from, d)
	}
}

// Spellings that nobody writes are read as gronx reads them, too.
func TestOddCrontabsAgainstGronx(t *testing.T) {
	if testing.Short() {
		t.Skip("thousands of schedules, one after the other; leave out -short")
	}
	r := rand.New(rand.NewPCG(19, 84))
	checked := 0
	for range 6000 {
		tab, err := ParseCrontab(oddCrontab(r))
		if err != nil {
			continue // a range that ends before it starts
		}
		againstGronx(t, tab, r.Int64N(3e9)/60*60)
		checked++
	}
	if checked < 2000 {
		t.Errorf("only %d expressions were checked", checked)
	}
}

// oddCrontab returns an expression with zeros before numbers, names before L and
// #, and lists that name things twice.
func oddCrontab(r *rand.Rand) string {
	pick := func(of ...string) string { return of[r.IntN(len(of))] }
	number := func(lo, hi int) string { return pick("", "", "0", "00") + fmt.Sprint(lo+r.IntN(hi-lo+1)) }
	field := func(lo, hi int, special func() string) string {
		if r.IntN(4) == 0 {
			return "*"
		}
		var items []string
		for range 1 + r.IntN(3) {
			a, b, step := number(lo, hi), number(lo, hi), number(1, hi)
			items = append(items, pick("*", a, a+"-"+b, "*/"+step, a+"/"+step, a+"-"+b+"/"+step, special()))
		}
		return strings.Join(items, ",")
	}
	month := func() string { return pick("JAN", "feb", "Oct-DEC", "MAY-MAY") }
	day := func() string { return pick("L", number(1, 31)+"W") }
	week := func() string {
		return pick("sun", "MON-FRI", number(0, 7)+"L", "FRIL", number(0, 7)+"#"+number(1, 5), "SUN#"+number(1, 5))
	}
	plain := func() string { return number(0, 9) }
	return strings.Join([]string{field(0, 59, plain), field(0, 23, plain), field(1, 31, day), field(1, 12, month), field(0, 7, week)}, " ")
}
