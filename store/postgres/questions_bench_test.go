package postgres

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/store"
)

// What the questions of a console cost on Postgres, with 1,000,000 runs and 10,000 jobs, each with
// its bound.

const (
	questionRounds = 100
	questionJobs   = 10_000
)

// question is one that a console asks, with the bound of its time at the 99th percentile, and the
// names of the plan cases that say how many rows it looks at.
type question struct {
	name  string
	bound time.Duration
	ask   func(ctx context.Context) (answers int, err error)
	cases []string
}

// BenchmarkQuestions asks each question a hundred times, one after the other, and prints a table.
// It fails where the 99th percentile is above a bound.
func BenchmarkQuestions(b *testing.B) {
	d := newPlanData(b)
	for _, table := range []string{"info where id", "next where job_id", "named where job_id"} {
		d.exec(b, "delete from {{schema}}.xxl_job_"+table+" > $1", questionJobs)
	}
	d.exec(b, "vacuum analyze {{schema}}.xxl_job_info, {{schema}}.xxl_job_next, {{schema}}.xxl_job_named")
	for range b.N {
		var table strings.Builder
		fmt.Fprintf(&table, "%-44s %8s %9s %9s %9s %9s\n", "question", "answers", "looked-at", "p50 ms", "p99 ms", "bound ms")
		examined := d.examined(b)
		for _, q := range d.questions() {
			times := make([]time.Duration, 0, questionRounds)
			var answers int
			for i := range questionRounds + 3 {
				began := time.Now()
				n, err := q.ask(b.Context())
				if err != nil {
					b.Fatalf("%s: %v", q.name, err)
				}
				if answers = n; i >= 3 { // the plans are there, and the pages are read
					times = append(times, time.Since(began))
				}
			}
			slices.Sort(times)
			rows := 0
			for _, name := range q.cases {
				n, known := examined[name]
				if !known {
					b.Errorf("there is no plan case %q", name)
				}
				rows += n
			}
			p50, p99 := times[len(times)/2], times[len(times)*99/100]
			fmt.Fprintf(&table, "%-44s %8d %9d %9.2f %9.2f %9d\n", q.name, answers, rows, ms(p50), ms(p99), q.bound.Milliseconds())
			if p99 > q.bound {
				b.Errorf("%s: %v at the 99th percentile, at most %v", q.name, p99, q.bound)
			}
		}
		b.Logf("%d runs, %d jobs; %d times each, one after the other\n%s", planRuns, questionJobs, questionRounds, table.String())
		b.ReportMetric(0, "ns/op")
	}
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// examined is how many rows each plan case looks at.
func (d *planData) examined(b *testing.B) map[string]int {
	b.Helper()
	e := newExplainer(b, d.Store)
	rows := map[string]int{}
	for _, c := range slices.Concat(d.searchCases(), d.reportCases()) {
		sum, err := e.run(b.Context(), "force_generic_plan", c.st.sql, c.st.args, "analyze, buffers")
		if err != nil {
			b.Fatalf("%s: %v", c.name, err)
		}
		rows[c.name] = sum.examined
	}
	return rows
}

// questions are all that there are.
func (d *planData) questions() []question {
	const fast, page, list, text = 5 * time.Millisecond, 20 * time.Millisecond, 50 * time.Millisecond, 50 * time.Millisecond
	return slices.Concat(d.runQuestions(page, list, text), d.jobQuestions(page, list), d.reportQuestions(page), []question{
		{"View", fast, func(ctx context.Context) (int, error) {
			v, err := d.View(ctx)
			return len(v.Nodes) + len(v.Shards), err
		}, []string{"view"}},
	})
}

func (d *planData) runQuestions(page, list, text time.Duration) []question {
	search := func(name string, bound time.Duration, q xxljob.RunSearch) question {
		return question{"SearchRuns " + name, bound, func(ctx context.Context) (int, error) {
			found, err := d.SearchRuns(ctx, q)
			return len(found.Runs), err
		}, []string{"SearchRuns " + name, "SearchRuns " + name + ": the edge"}}
	}
	bad := []xxljob.State{xxljob.StateFailed, xxljob.StateLost}
	middle := d.now.Add(-15 * day)
	counted := func(runs []xxljob.Run, err error) (int, error) { return len(runs), err }
	return []question{
		search("all", list, xxljob.RunSearch{}),
		search("of a rare app", list, xxljob.RunSearch{Apps: []string{"nowhere"}}),
		search("of a rare app with a text", text, xxljob.RunSearch{Apps: []string{"app-1"}, Text: "nothing"}),
		search("of two apps", list, xxljob.RunSearch{Apps: []string{"app-1", "app-2"}}),
		search("by day", list, xxljob.RunSearch{Since: middle, Until: middle.Add(day)}),
		search("by day of an app", list, xxljob.RunSearch{Since: middle, Until: middle.Add(day), Apps: []string{"app-3"}}),
		search("bad", list, xxljob.RunSearch{States: bad}),
		search("bad of an app", list, xxljob.RunSearch{States: bad, Apps: []string{"app-0"}}),
		search("rare among the bad", list, xxljob.RunSearch{States: []xxljob.State{xxljob.StateKilled}}),
		search("skipped", page, xxljob.RunSearch{States: []xxljob.State{xxljob.StateSkipped}}),
		search("slow", list, xxljob.RunSearch{Slower: time.Hour}),
		search("ahead", list, xxljob.RunSearch{Ahead: true}),
		{"LastRuns of 50 jobs, 10 each", page, func(ctx context.Context) (int, error) { return counted(d.LastRuns(ctx, jobIDs(50, 1), 10)) }, []string{"lastRuns 50x10"}},
		{"LastRuns of 200 jobs, one each", page, func(ctx context.Context) (int, error) { return counted(d.LastRuns(ctx, jobIDs(200, 7), 1)) }, []string{"lastRuns 200x1"}},
		{"Children", page, func(ctx context.Context) (int, error) {
			return counted(d.Children(ctx, idAt(d.now.Add(-time.Minute)), 0, 100))
		}, []string{"children"}},
		{"Waiting", page, func(ctx context.Context) (int, error) { return counted(d.Waiting(ctx, xxljob.Run{}, 100)) }, []string{"waitingRuns"}},
		{"OpenRuns, up to 10,000", page, func(ctx context.Context) (int, error) {
			open, err := d.OpenRuns(ctx, 10_000)
			return len(open.Planned) + len(open.Running), err
		}, []string{"openRuns"}},
	}
}

func (d *planData) jobQuestions(page, list time.Duration) []question {
	search := func(name string, q xxljob.JobSearch) question {
		return question{"SearchJobs " + name, list, func(ctx context.Context) (int, error) {
			jobs, err := d.SearchJobs(ctx, q)
			return len(jobs), err
		}, []string{"SearchJobs " + name}}
	}
	values := func(field, prefix string) func(context.Context) (int, error) {
		return func(ctx context.Context) (int, error) {
			v, err := d.JobValues(ctx, field, prefix, 20)
			return len(v), err
		}
	}
	return []question{
		search("by name", xxljob.JobSearch{Order: store.ByName}),
		search("by next", xxljob.JobSearch{Order: store.ByNext}),
		search("of two apps by name", xxljob.JobSearch{Order: store.ByName, Apps: []string{"app-1", "app-2"}}),
		search("of a tag", xxljob.JobSearch{Tags: []string{"tag-50"}}),
		search("of a text", xxljob.JobSearch{Text: "Job 4242"}),
		search("that are stopped", xxljob.JobSearch{StopReason: "finished"}),
		{"CountJobs", page, func(ctx context.Context) (int, error) { c, err := d.CountJobs(ctx); return len(c), err }, []string{"countJobs"}},
		{"JobValues of handlers", page, values(store.FieldHandler, "HAND"), []string{"valuesOfHandler"}},
		{"JobValues of tags", page, values(store.FieldTag, "tag"), []string{"valuesOfTag"}},
		{"Schedules, all", list, func(ctx context.Context) (int, error) {
			jobs, err := d.Schedules(ctx, 0, questionJobs)
			return len(jobs), err
		}, []string{"schedules all"}},
	}
}

func (d *planData) reportQuestions(page time.Duration) []question {
	reports := func(name string, q xxljob.ReportQuery, length time.Duration, cases ...string) question {
		q.Length = length
		return question{"Reports " + name, page, func(ctx context.Context) (int, error) {
			found, err := d.Reports(ctx, q)
			return len(found.Reports), err
		}, cases}
	}
	month := d.reportQuery(store.QuartersKept)
	month.Apps = []string{"app-3"}
	return []question{
		reports("of a day by hours, ten apps", d.reportQuery(store.ReportDay), time.Hour, "reportEdge of a day", "reports of a day by hours"),
		reports("of an app, 35 days by hours", month, time.Hour, "reportsOf an app by hours"),
	}
}
