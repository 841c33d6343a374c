package postgres

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// planMode is a way to have a statement planned.
type planMode struct {
	name, setting string
	old           bool // a run of a month ago has not ended
}

// TestPlans explains every statement, with data of a month. Plans have to stay
// good in the mode in which they suffer most: made once for all arguments. Then
// the planner knows no id, so it cannot tell which partitions matter, and guesses
// ten elements for each array.
func TestPlans(t *testing.T) {
	InServer(t)
	if testing.Short() {
		t.Skip("it makes a million runs; leave out -short")
	}
	t.Parallel()
	d := newPlanData(t)
	e := newExplainer(t, d.Store)
	d.checkCovered(t)
	for _, m := range []planMode{{"generic", "force_generic_plan", false}, {"auto", "auto", false}, {"generic, with an unended run of a month ago", "force_generic_plan", true}} {
		began := time.Now()
		d.floor.Store(idAt(d.estimate().Add(-openMargin)))
		if err := d.Store.floors.raise(t.Context(), d.Store); err != nil {
			t.Fatal(err)
		}
		if m.old {
			d.floor.Store(d.old)
		}
		var table strings.Builder
		for _, c := range d.planCases() {
			if m.old && c.reach != reachOpen {
				continue
			}
			s, err := e.run(t.Context(), m.setting, c.st.sql, c.st.args, "analyze, buffers")
			if err != nil {
				t.Errorf("%s: %s: %v", m.name, c.name, err)
				continue
			}
			fmt.Fprintf(&table, "%-28s %s\n", c.name, s)
			for _, wrong := range d.check(c, m, s) {
				t.Errorf("%s: %s: %s\n%s", m.name, c.name, wrong, s)
			}
		}
		t.Logf("%s (%.1fs)\n%-28s %s\n%s", m.name, time.Since(began).Seconds(), "statement", planHead, table.String())
	}
}

// checkCovered makes sure that a statement without a case is noticed.
func (d *planData) checkCovered(t *testing.T) {
	t.Helper()
	cases := map[string]string{}
	for _, c := range d.planCases() {
		name, _, _ := strings.Cut(c.name, " ")
		cases[name] = c.st.sql
	}
	for name, q := range d.sql.all() {
		if cases[name] != q.text {
			t.Errorf("planCases has no case for %s", name)
		}
	}
}

// check compares what a statement did with what its case allows. Figures are
// coarse: they tell a lookup of each row from a look at all rows.
func (d *planData) check(c planCase, m planMode, s planSum) (wrong []string) {
	for _, table := range s.seq {
		if strings.HasPrefix(table, "xxl_job") && !slices.Contains(c.scans, table) {
			wrong = append(wrong, "a sequential scan of "+table)
		}
	}
	if s.rows < c.rows {
		wrong = append(wrong, fmt.Sprintf("%d rows, want at least %d: the case shows nothing", s.rows, c.rows))
	}
	if most := d.reachable(c); len(s.parts) > most {
		wrong = append(wrong, fmt.Sprintf("%d partitions, want at most %d", len(s.parts), most))
	}
	if c.kept && !s.generic {
		wrong = append(wrong, "it is planned anew for each call")
	}
	if c.wide {
		return wrong
	}
	batch := max(s.rows, c.batch)
	if most := c.wasted + 60; s.wasted > most {
		wrong = append(wrong, fmt.Sprintf("%d rows looked at in vain, want at most %d", s.wasted, most))
	}
	if most := 4*batch + 2*c.wasted + 150; s.examined > most {
		wrong = append(wrong, fmt.Sprintf("%d rows looked at, want at most %d", s.examined, most))
	}
	// With an old run, each serial start looks into each partition.
	if most := 60*batch + 8*c.wasted + 1500; !m.old && s.blocks > most {
		wrong = append(wrong, fmt.Sprintf("%d buffers, want at most %d", s.blocks, most))
	}
	return wrong
}

// reachable is how many partitions the statement may look into.
func (d *planData) reachable(c planCase) int {
	switch c.reach {
	case reachOne:
		return 1
	case reachIDs:
		return 2 // the ids may be of both sides of midnight
	case reachOpen:
		lo, hi := d.openRange()
		return int(idTime(hi).Truncate(day).Sub(idTime(lo).Truncate(day))/day) + 1
	case reachAll:
		return planDays + partitionsAhead
	}
	return 0
}

// TestPlansOfEmptyTables explains the statements of the loop before a table was
// analyzed for the first time. A plan that is made then lives on while the tables
// fill, until autovacuum comes by: so it may not read tables from end to end
// either, however small they look.
func TestPlansOfEmptyTables(t *testing.T) {
	InServer(t)
	if testing.Short() {
		t.Skip("leave out -short")
	}
	t.Parallel()
	d := &planData{Store: emptyPlanStore(t), jobs: planJobs}
	d.readClock(t)
	d.pretend()
	e := newExplainer(t, d.Store)
	for _, c := range d.planCases() {
		if slices.ContainsFunc([]string{"Jobs ", "Runs ", "SearchJobs ", "SearchRuns ", "SearchChanges ", "schedules "}, func(p string) bool { return strings.HasPrefix(c.name, p) }) {
			continue // nobody asks for pages many times a second
		}
		s, err := e.run(t.Context(), "force_generic_plan", c.st.sql, c.st.args, "costs off")
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		for _, table := range []string{"xxl_job_log", "xxl_job_log_page", "xxl_job_next"} {
			if slices.Contains(s.seq, table) {
				t.Errorf("%s: a sequential scan of %s", c.name, table)
			}
		}
	}
}
