package xxljobtest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/xxljob/xxljob"
)

// RequireRuns fails the test unless the runs that the schedule of the job with the
// key has started so far stand for exactly these instants, in any order. Runs that
// were triggered by hand are not counted, nor are instants that were skipped or
// cancelled; a broadcast counts once.
//
// Inside a bubble it first lets everything happen that is due by now.
func (s *Scheduler) RequireRuns(key string, want ...time.Time) {
	s.t.Helper()
	var got []xxljob.Run
	var notes []string
	for _, r := range s.Runs(key) {
		switch {
		case !r.Type.ScheduleBorn() || r.Sharding.Index > 0:
		case r.State == xxljob.StateSkipped:
			notes = append(notes, fmt.Sprintf("skipped (%s): %d from %s to %s", r.Reason, r.Count, stamp(r.First), stamp(r.Last)))
		case r.State == xxljob.StateCancelled:
			notes = append(notes, fmt.Sprintf("cancelled: %s", stamp(r.Scheduled)))
		default:
			got = append(got, r)
		}
	}
	lines, same := compare(got, want)
	if same {
		return
	}
	s.t.Fatalf("xxljobtest: job %q: %s by its schedule, want %d:\n%s",
		key, count(len(got), "run"), len(want), strings.Join(append(lines, notes...), "\n"))
}

// compare merges runs and wanted instants into a list for people, in order of
// time; same is true when there is no difference.
func compare(got []xxljob.Run, want []time.Time) (lines []string, same bool) {
	want = slices.Clone(want)
	for i := range want {
		want[i] = want[i].Truncate(time.Millisecond) // as stores keep times
	}
	slices.SortFunc(want, time.Time.Compare)
	var d difference
	for len(got) > 0 || len(want) > 0 {
		switch {
		case len(got) == 0 || len(want) > 0 && want[0].Before(got[0].Scheduled):
			d.add("- " + stamp(want[0]) + "  missing")
			want = want[1:]
		case len(want) == 0 || got[0].Scheduled.Before(want[0]):
			d.add("+ " + outcome(got[0]) + "  not wanted")
			got = got[1:]
		default:
			d.equal = append(d.equal, "  "+outcome(got[0]))
			got, want = got[1:], want[1:]
		}
	}
	found := len(d.lines) > 0
	d.flush()
	return d.lines, !found
}

// difference is a list in which long stretches without a difference are cut.
type difference struct {
	lines []string
	equal []string // the stretch at the end
}

func (d *difference) add(line string) {
	d.flush()
	d.lines = append(d.lines, line)
}

// around is how many equal lines are kept on each side of a difference.
const around = 2

func (d *difference) flush() {
	if n := len(d.equal) - 2*around; n > 1 {
		d.equal = slices.Replace(d.equal, around, around+n, fmt.Sprintf("  ... %d more as wanted", n))
	}
	d.lines = append(d.lines, d.equal...)
	d.equal = nil
}

// outcome is a run in a line.
func outcome(r xxljob.Run) string {
	text := stamp(r.Scheduled) + "  " + r.State.String()
	switch {
	case r.State == xxljob.StateSucceeded:
	case r.HandleMsg != "":
		text += ": " + firstLine(r.HandleMsg)
	case r.State == xxljob.StateRefused, r.State == xxljob.StateDiscarded:
		lines := strings.Split(r.TriggerMsg, "\n")
		text += ": " + lines[len(lines)-1] // the refusal comes last
	}
	return text
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.999Z07:00") }

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
