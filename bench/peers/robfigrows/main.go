// Robfigrows prints when expressions of six fields fire next, as robfig/cron has it: the rows of
// internal/cron/testdata/robfig.tsv, which CronSeconds is held to. Run it in bench/peers:
//
//	go run ./robfigrows >../../internal/cron/testdata/robfig.tsv
//
// A row is an expression, a zone, and seconds since 1970: from when, and the next two instants.
// Left out are expressions that do not fire within the years that robfig looks at, and instants
// with a change of clocks between them, which have rules of our own. The same rows come each time.
package main

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata"

	"github.com/robfig/cron/v3"
)

const rows = 10_000

func main() {
	r := rand.New(rand.NewPCG(43, 4))
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	parser := cron.NewParser(cron.Second | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow)
	for n := 0; n < rows; {
		expr := expression(r)
		schedule, err := parser.Parse(expr)
		if err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", expr, err)
			os.Exit(1)
		}
		zone := pick(r, "UTC", "Asia/Shanghai", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Sao_Paulo")
		loc, err := time.LoadLocation(zone)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		from := time.Unix(time.Date(2015, 1, 1, 0, 0, 0, 0, time.UTC).Unix()+r.Int64N(20*365*86400), 0).In(loc)
		first := schedule.Next(from)
		second := schedule.Next(first)
		if first.IsZero() || second.IsZero() || clocksChange(from, second) {
			continue
		}
		fmt.Fprintf(out, "%s\t%s\t%d\t%d\t%d\n", expr, zone, from.Unix(), first.Unix(), second.Unix())
		n++
	}
}

// clocksChange reports whether the clocks of the zone change between the day of one time and the
// day of another, both included.
func clocksChange(from, to time.Time) bool {
	y, m, d := from.Date()
	begin := time.Date(y, m, d, 0, 0, 0, 0, from.Location()).Add(-3 * time.Hour)
	y, m, d = to.Date()
	end := time.Date(y, m, d+1, 0, 0, 0, 0, to.Location()).Add(3 * time.Hour)
	_, change := begin.ZoneBounds()
	return !change.IsZero() && change.Before(end)
}

func expression(r *rand.Rand) string {
	fields := []string{
		field(r, 0, 59, 30, nil), field(r, 0, 59, 30, nil), field(r, 0, 23, 12, nil), field(r, 1, 31, 15, nil),
		field(r, 1, 12, 6, strings.Fields("jan feb mar apr may jun jul aug sep oct nov dec")),
		field(r, 0, 6, 3, strings.Fields("sun mon tue wed thu fri sat")),
	}
	if r.IntN(3) == 0 { // as most are
		fields[0] = "0"
	}
	return strings.Join(fields, " ")
}

// field is a list of one to three items, with values from least to most.
func field(r *rand.Rand, least, most, longest int, names []string) string {
	if r.IntN(3) == 0 {
		return pick(r, "*", "*", "*", "?")
	}
	name := func(v int) string {
		if names != nil && r.IntN(2) == 0 {
			return pick(r, names[v-least], strings.ToUpper(names[v-least]))
		}
		return strconv.Itoa(v)
	}
	items := make([]string, 1+r.IntN(6)/4)
	for i := range items {
		lo := least + r.IntN(most-least+1)
		hi := lo + r.IntN(most-lo+1)
		step := strconv.Itoa(1 + r.IntN(longest))
		items[i] = [...]string{
			name(lo), name(lo), strconv.Itoa(lo) + "-" + strconv.Itoa(hi), name(lo) + "-" + name(hi),
			"*/" + step, strconv.Itoa(lo) + "/" + step, strconv.Itoa(lo) + "-" + strconv.Itoa(hi) + "/" + step,
		}[r.IntN(7)]
	}
	return strings.Join(items, ",")
}

func pick(r *rand.Rand, texts ...string) string { return texts[r.IntN(len(texts))] }
