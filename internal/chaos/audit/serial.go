package audit

import (
	"cmp"
	"slices"
)

// checkSerial finds two runs of a serial job side by side in one process.
func (a *Auditor) checkSerial(r *Report, from, to int64) {
	type key struct {
		job int64
		p   Process
	}
	seen := map[key][]Event{}
	for _, starts := range a.starts {
		for _, e := range starts {
			if a.jobs[e.Job].Block == BlockSerial {
				k := key{e.Job, e.Process()}
				seen[k] = append(seen[k], e)
			}
		}
	}
	for k, starts := range seen {
		slices.SortFunc(starts, func(x, y Event) int { return cmp.Compare(x.At, y.At) })
		for i := 1; i < len(starts); i++ {
			before, after := starts[i-1], starts[i]
			if end := a.endOf(before); after.Due >= from && after.Due < to && end > after.At {
				r.Wrong++
				r.problem("side by side", "job %d in %v: run %d began at %s while run %d ran until %s", k.job, k.p, after.Run, moment(after.At), before.Run, moment(end))
			}
		}
	}
}

// endOf is when the handler of this start ended; zero when nobody saw it.
func (a *Auditor) endOf(start Event) int64 {
	for _, e := range a.ends[start.Run] {
		if e.Process() == start.Process() && e.At >= start.At {
			return e.At
		}
	}
	return 0
}
