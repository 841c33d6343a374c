package audit

import (
	"cmp"
	"slices"
)

// life is what a job was told to do, and when: the operations that changed its
// schedule, in the order of their calls.
type life []Op

// lives sorts the schedule operations by job.
func lives(ops []Op) map[int64]life {
	all := map[int64]life{}
	for _, op := range ops {
		if op.Kind == OpSet && op.Outcome != Refused {
			all[op.Job] = append(all[op.Job], op)
		}
	}
	for _, l := range all {
		slices.SortStableFunc(l, func(a, b Op) int { return cmp.Compare(a.Call, b.Call) })
	}
	return all
}

// undone returns the operations with those in doubt that a fault may have undone
// though they were answered: nobody knows then which schedule the job has.
func undone(ops []Op, faults []Fault) []Op {
	ops = slices.Clone(ops)
	for i := range ops {
		op := &ops[i]
		if op.Kind == OpSet && op.Outcome == Done && slices.ContainsFunc(faults, func(f Fault) bool {
			return f.Forgets > 0 && f.Forgets <= op.Return && op.Call <= f.End
		}) {
			op.Outcome = Unknown
		}
	}
	return ops
}

// verdict says what has to happen at an instant.
type verdict uint8

const (
	mustNot verdict = iota
	may
	must
)

// at decides about one instant. Within call and return of an operation whatever
// the schedules before and after it have may fire, and nothing has to; one whose
// outcome stayed unknown leaves both possible until the next that was answered.
func (l life) at(instant int64) verdict {
	moment := instant * 1000
	possible := []Grid{{}} // before the first operation there is no schedule
	var schedules []Grid   // that the job may have while it is stopped too
	within := false
	for _, op := range l {
		if op.Call > moment+999 {
			break
		}
		settled := op.Return < moment && op.Outcome == Done
		if settled {
			possible = possible[:0]
		}
		possible = append(possible, op.Grid)
		switch op.Verb {
		case "start":
			possible = append(possible, schedules...) // a start sets none
		case "stop", "remove":
		default:
			if settled {
				schedules = schedules[:0]
			}
			schedules = append(schedules, op.Grid)
		}
		within = within || op.Return >= moment
	}
	yes := 0
	for _, g := range possible {
		if g.has(instant) {
			yes++
		}
	}
	switch {
	case yes == 0:
		return mustNot
	case yes == len(possible) && !within:
		return must
	}
	return may
}

// instants returns every instant in [from, to] that the job has to fire at.
func (l life) instants(from, to int64) []int64 {
	set := map[int64]bool{}
	for _, op := range l {
		if op.Grid.Period == 0 {
			continue
		}
		for at := op.Grid.first(max(from, op.Call/1000)); at <= to; at += op.Grid.Period {
			if !set[at] && l.at(at) == must {
				set[at] = true
			}
		}
	}
	return sortedKeys(set)
}

// replanned reports whether an operation that changed the schedule came while the
// instant was due, or within grace (in milliseconds) after it.
func (l life) replanned(instant, grace int64) bool {
	var before Grid
	for _, op := range l {
		changed := op.Grid != before || op.Outcome == Unknown
		before = op.Grid
		if changed && op.Call/1000-grace <= instant && instant <= op.Return/1000 {
			return true
		}
	}
	return false
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K {
	keys := make([]K, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
