package otelxxl_test

import (
	"fmt"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/otelxxl"
	"github.com/xxljob/xxljob/xxljobtest"
)

// saying is a scheduler that says this of itself.
type saying struct {
	xxljob.Scheduler
	stats xxljob.Stats
}

func (s saying) Stats() xxljob.Stats { return s.stats }

// TestMetricsOfFaults: each counter of FaultStats and of LogStats is there from the start, is
// told apart from the others, and panics have their places, of which there are so many.
func TestMetricsOfFaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, s := newProcess(t), saying{Scheduler: xxljobtest.New(t)}
		want := map[string]float64{}
		counters := reflect.ValueOf(&s.stats.FaultStats).Elem()
		for i := range counters.NumField() {
			if f := counters.Field(i); f.Kind() == reflect.Uint64 {
				f.SetUint(uint64(i + 100))
				name := counters.Type().Field(i).Name
				kind := strings.ToLower(strings.TrimPrefix(regexp.MustCompile("[A-Z]").ReplaceAllString(name, "_$0"), "_"))
				want["xxljob.fault="+kind] = float64(i + 100)
			}
		}
		want["xxljob.fault=panics"] = 300
		s.stats.Panics = map[string]uint64{}
		for i := range 300 {
			s.stats.Panics[fmt.Sprint("place ", i)] = 1
		}
		s.stats.Logs = xxljob.LogStats{Waiting: 5, Peak: 6, Written: 7, Cut: 8, Dropped: 9}
		must(t, p.Observe(t.Context(), s))
		check := func(name string, want map[string]float64) {
			t.Helper()
			if got := p.points(t, name); !reflect.DeepEqual(got, want) {
				t.Errorf("%s is %v, want %v", name, got, want)
			}
		}
		check("xxljob.faults", want)
		check("xxljob.log.lines", map[string]float64{"xxljob.log.line=written": 7, "xxljob.log.line=cut": 8, "xxljob.log.line=dropped": 9})
		check("xxljob.log.waiting", map[string]float64{"": 5})
		if got := p.points(t, "xxljob.panics"); len(got) != 201 || got["xxljob.panic.place=other"] != 100 || with(got) != 300 {
			t.Errorf("%d places of panics, %v at others and %v in all; want 201, 100 and 300", len(got), got["xxljob.panic.place=other"], with(got))
		}
		for of, n := range p.points(t, "xxljob.telemetry.left_out") {
			if n != 0 {
				t.Errorf("%v calls were left out of %s", n, of)
			}
		}
	})
}

// TestWhatIsLeftOutIsCounted: by what is not recorded.
func TestWhatIsLeftOutIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		p := newProcess(t, func(c *otelxxl.Config) {
			c.TracerProvider = badTracers{bad: bad{act: func() { <-release }, depth: 1}}
		})
		s := observed(t, p, xxljob.Config{}, mails, xxljob.Job{Name: "fail", Handler: "fail", Schedule: xxljob.FixedRate(time.Second)})
		time.Sleep(9500 * time.Millisecond)
		points, untraced := p.points(t, "xxljob.telemetry.left_out"), s.Stats().Untraced
		if spans := with(points, "xxljob.telemetry.of=spans"); spans < 5 || with(points) != spans || untraced < 5 || with(p.points(t, "xxljob.faults"), "xxljob.fault=untraced") != float64(untraced) {
			t.Errorf("%v left out, and %d by the scheduler: want some, of spans", points, untraced)
		}
		close(release)
	})
}

// TestTheTableOfMetrics: docs/seeing.md has all of them, with their attributes.
func TestTheTableOfMetrics(t *testing.T) {
	text, err := os.ReadFile("../docs/seeing.md")
	must(t, err)
	rows := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z_.]+)` \\|.*$").FindAllStringSubmatch(string(text), -1) {
		rows[row[1]] = row[0]
	}
	for _, i := range otelxxl.Instruments() {
		row := rows[i.Name]
		if !strings.Contains(row, "| "+string(i.Kind)+", "+i.Unit+" |") {
			t.Errorf("docs/seeing.md has no row of %s, a %s of %s: %q", i.Name, i.Kind, i.Unit, row)
		}
		for _, key := range i.Attributes {
			if !strings.Contains(row, "`"+key+"`") {
				t.Errorf("the row of %s lacks its attribute %s", i.Name, key)
			}
		}
		delete(rows, i.Name)
	}
	for name := range rows {
		t.Errorf("docs/seeing.md has a row of %s, which is not recorded", name)
	}
}
