package postgres

import (
	"slices"

	"github.com/xxljob/xxljob/store"
)

// claimArgs are the arguments of a claim: the fence, the jobs, the runs.
func claimArgs(plans []store.Plan) named {
	var shards shardSet
	n := len(plans)
	jobs, in, own, versions := make([]int64, n), make([]int16, n), make([]int64, n), make([]int64, n)
	due, next, last, stop := make([]int64, n), make([]int64, n), make([]int64, n), sparseList[int16]{n: n}
	from, made, all := make([]int32, n+1), make([]int32, n), true
	r := newRunArrays(countRuns(plans))
	for i := range plans {
		p := &plans[i]
		shards.add(p.Shard, p.Epoch)
		jobs[i], in[i], own[i], versions[i] = p.JobID, int16(p.Shard), p.Epoch, p.Version
		due[i], next[i] = milli(p.Due), milli(stored(p.Next))
		if p.Wait && len(p.Runs) > 0 {
			next[i] = 0
		}
		if p.Stop != "" {
			stop.set(i, 1)
		}
		from[i] = int32(len(r.at)) + 1 // arrays of SQL count from 1
		for k := range p.Runs {
			last[i] = max(last[i], milli(p.Runs[k].At), milli(p.Runs[k].Last))
			r.add(&p.Runs[k])
			if !p.Runs[k].State.Ended() {
				made[i]++
			}
		}
		all = all && int(made[i]) == len(p.Runs)
	}
	from[n] = int32(len(r.at)) + 1
	if all {
		made = made[:0]
	}
	ids, epochs := fenceArgs(shards.list)
	return named{
		{"shards", ids}, {"epochs", epochs},
		{"next", next}, {"last", last}, {"made", made}, {"stops", stop.value()},
		{"jobs", jobs}, {"job_shards", in}, {"versions", versions}, {"due", due}, {"places", upTo(n)},
		{"job_epochs", own}, {"words", r.words.list}, {"types", r.types()}, {"states", r.states.value()}, {"times", r.at},
		{"firsts", r.first.value()}, {"lasts", r.last.value()}, {"counts", r.counts.value()}, {"reasons", r.reasons.value()},
		{"from", from},
	}
}

// runArrays are new runs as columns.
type runArrays struct {
	words       words
	at          []int64
	kinds       []int16
	first, last sparseList[int64]
	counts      sparseList[int32]
	states      sparseList[int16]
	reasons     sparseList[int16]
}

func newRunArrays(n int) runArrays {
	return runArrays{
		at: make([]int64, 0, n), kinds: make([]int16, 0, n), first: sparseList[int64]{n: n}, last: sparseList[int64]{n: n},
		counts: sparseList[int32]{n: n}, states: sparseList[int16]{n: n}, reasons: sparseList[int16]{n: n},
	}
}

func (a *runArrays) add(n *store.NewRun) {
	a.kinds = append(a.kinds, a.words.place(string(n.Type)))
	a.at = append(a.at, milli(n.At))
	k := len(a.at) - 1
	a.states.set(k, int16(n.State)) // planned is zero
	a.first.set(k, milli(n.First))
	a.last.set(k, milli(n.Last))
	a.counts.set(k, int32(n.Count))
	a.reasons.set(k, a.words.place(n.Reason))
}

// types are those of the runs, or none where all are of the first.
func (a *runArrays) types() []int16 {
	if slices.ContainsFunc(a.kinds, func(place int16) bool { return place != 1 }) {
		return a.kinds
	}
	return a.kinds[:0]
}
