package postgres

import (
	"slices"
	"testing"
	"time"

	"github.com/xxljob/xxljob/store"
)

// TestClaimsAnswerInTheOrderOfTheirPlans: in whatever order the database inserts jobs, and where
// some have no run or are left out.
func TestClaimsAnswerInTheOrderOfTheirPlans(t *testing.T) {
	t.Parallel()
	at := time.UnixMilli(1_800_000_000_000).UTC()
	plan := func(job int64, runs int) store.Plan {
		p := store.Plan{JobID: job}
		for k := range runs {
			p.Runs = append(p.Runs, store.NewRun{At: at.Add(time.Duration(k) * time.Second), Type: store.TriggerCron})
		}
		return p
	}
	rows := func(jobs ...int64) (list []inserted) {
		for _, job := range jobs {
			for k := range int64(2) {
				list = append(list, inserted{id: job*10 + k, job: job, at: at.UnixMilli() + 1000*k})
			}
		}
		return list
	}
	plans := []store.Plan{plan(1, 2), plan(2, 2), plan(3, 0), plan(4, 2), plan(5, 2)}
	for name, tt := range map[string]struct {
		rows []inserted
		want []int64
	}{
		"in their order":       {rows(1, 2, 4, 5), []int64{10, 11, 20, 21, 40, 41, 50, 51}},
		"the other way round":  {rows(5, 4, 2, 1), []int64{10, 11, 20, 21, 40, 41, 50, 51}},
		"mixed up at the end":  {rows(1, 2, 5, 4), []int64{10, 11, 20, 21, 40, 41, 50, 51}},
		"the first left out":   {rows(2, 4, 5), []int64{20, 21, 40, 41, 50, 51}},
		"the last left out":    {rows(1, 2, 4), []int64{10, 11, 20, 21, 40, 41}},
		"some, and mixed up":   {rows(5, 2), []int64{20, 21, 50, 51}},
		"none":                 {nil, nil},
		"the one at its place": {rows(1), []int64{10, 11}},
	} {
		c := claiming{plans: plans, inserted: &tt.rows}
		runs, err := c.planned(nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		var got []int64
		for i := range runs {
			got = append(got, runs[i].ID)
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: %d, want %d", name, got, tt.want)
		}
	}
	wrong := rows(1, 2, 4, 5)
	wrong[3].at++
	if _, err := (&claiming{plans: plans, inserted: &wrong}).planned(nil); err == nil {
		t.Error("a run at another instant than that of its plan is no error")
	}
}
