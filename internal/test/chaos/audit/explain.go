package audit

import (
	"cmp"
	"slices"
	"strings"
)

// explainer knows what the faults excuse.
type explainer struct {
	rules  Rules
	faults []Fault
	nodes  []string   // that have started something
	joined []interval // of all faults that keep the cluster from scheduling
}

// interval is a stretch of time in microseconds.
type interval struct{ begin, end int64 }

func newExplainer(faults []Fault, nodes []string, rules Rules) explainer {
	x := explainer{rules: rules, faults: faults, nodes: nodes}
	var all []interval
	for _, f := range faults {
		if i, ok := x.outage(f); ok {
			all = append(all, i)
		}
	}
	x.joined = join(all)
	return x
}

// outage is how long a fault may keep a shard from being scheduled. Others take
// over from a process, whether or not it comes back.
func (x explainer) outage(f Fault) (interval, bool) {
	r, one := x.rules, f.Victim != (Process{})
	switch {
	case f.Effect == Harmless || f.Effect == Absent:
		return interval{}, false
	case one && (f.Effect == Dies || f.Effect == Leaves):
		back := max(f.Begin+r.Death*1000, f.End+r.Back*1000) // the next process of the node
		return interval{f.Begin, min(x.takenOver(f, r.Death*1000), back)}, true
	case one && f.Effect == Starves:
		return interval{f.Begin, min(f.End, f.Begin+r.untaken(Starves)*1000)}, true
	case one && f.Effect == Silent:
		return interval{f.Begin, min(x.takenOver(f, r.Silence*1000), f.End)}, true
	}
	return interval{f.Begin, f.End + r.Back*1000}, true
}

// takenOver is when the first of the other nodes has been well for so long that it has
// the shards of a fault's victim. Who takes over from a silent node has watched it for a
// LeaseTTL itself: where each of the others dies or falls silent meanwhile, or has only
// just come back, the wait begins anew.
func (x explainer) takenOver(f Fault, wait int64) int64 {
	first := f.Begin + wait
	for i, node := range slices.DeleteFunc(slices.Clone(x.nodes), func(n string) bool { return n == f.Victim.Node }) {
		at := f.Begin + wait
		for out := x.outUntil(node, at-wait, at); out > 0; out = x.outUntil(node, at-wait, at) {
			at = out + wait
		}
		if i == 0 || at < first {
			first = at
		}
	}
	return first
}

// outUntil is when the last fault has ended that hit a node in a stretch of time, zero
// where none did.
func (x explainer) outUntil(node string, begin, end int64) (last int64) {
	for _, f := range x.faults {
		if f.Effect != Harmless && f.Victim.Node == node && f.Begin < end && f.End > begin {
			last = max(last, f.End)
		}
	}
	return last
}

// join merges intervals that touch.
func join(all []interval) []interval {
	slices.SortFunc(all, func(a, b interval) int { return cmp.Compare(a.begin, b.begin) })
	var merged []interval
	for _, i := range all {
		if n := len(merged); n > 0 && i.begin <= merged[n-1].end {
			merged[n-1].end = max(merged[n-1].end, i.end)
			continue
		}
		merged = append(merged, i)
	}
	return merged
}

// maySkip reports whether the skip of these instants is permitted: an outage as
// long as the misfire threshold, or longer, reaches into them.
func (x explainer) maySkip(first, last int64) bool {
	return slices.ContainsFunc(x.joined, func(i interval) bool {
		// What keeps the cluster from scheduling ends a moment after the fault.
		end := i.end + x.rules.Slack*1000
		return i.end-i.begin >= x.rules.Misfire*1000 && i.begin <= last*1000 && first*1000 <= end
	})
}

// dying is for how long what a process has begun may go on after its death was written down, in
// microseconds: that is done before the signal is sent. It counts from when the process was seen to have
// ended, where that is known: on a machine without a free processor that is later, and the server may
// carry out a statement that the process sent before it died.
const dying = 100_000

// interrupted returns the fault that explains why a run, which was started or
// taken by one of the processes at the moment since, never stored its result: the
// process died, or was asked to stop, after that; or was silent for so long that
// it was taken for dead. until is when the handler had ended, zero if it had not. A run that was
// due before the end of a promotion may have been started by the server that is gone, however
// long its call has taken since.
func (x explainer) interrupted(where []Process, node string, due, since, until int64) (Fault, bool) {
	for _, f := range x.faults {
		if x.rules.MayForget && f.Victim == (Process{}) && f.Effect == Blocked && min(due, since) <= f.End {
			return f, true // the database has forgotten the result
		}
		if !hits(f, where, node) {
			continue
		}
		switch {
		case f.Effect == Starves: // it is heard of, and stores its results in the end
		case f.Effect != Dies && f.Effect != Leaves && f.End < since, f.Effect == Dies && max(f.Begin, f.Gone)+dying < since:
		case f.Effect == Leaves && !x.cutShort(f, len(where) > 0 && until == 0):
			// What stops in good order stores its results, and gives back what it
			// has not begun.
		case f.Effect == Dies || f.Effect == Leaves:
			// A result waits for the store as long as that is away.
			if until == 0 || f.Begin <= until+x.rules.Slack*1000 || x.duringOutage(until) {
				return f, true
			}
		case f.End-f.Begin >= x.rules.LostAfter*1000:
			return f, true
		}
	}
	return Fault{}, false
}

// cutShort reports whether a stop in good order was kept from being one: by
// handlers that outlasted its grace, or by another fault at the same time.
func (x explainer) cutShort(stop Fault, handlerCut bool) bool {
	return handlerCut || slices.ContainsFunc(x.faults, func(f Fault) bool {
		concerned := f.Effect == Blocked || f.Effect == Silent && f.Victim.Node == stop.Victim.Node
		return concerned && f.Begin <= stop.End && stop.Begin <= f.End+x.rules.Slack*1000
	})
}

// hits reports whether the fault concerns one of the processes, or the node where
// none is known.
func hits(f Fault, where []Process, node string) bool {
	if len(where) > 0 {
		return slices.Contains(where, f.Victim) || f.Victim == (Process{}) && f.Effect == Blocked
	}
	return f.Victim.Node != "" && f.Victim.Node == node
}

func (x explainer) duringOutage(moment int64) bool {
	return slices.ContainsFunc(x.joined, func(i interval) bool {
		return i.begin <= moment && moment <= i.end+x.rules.Slack*1000
	})
}

// outageLeft is how long the outage at this moment goes on, in microseconds; zero
// when there is none.
func (x explainer) outageLeft(moment int64) int64 {
	for _, i := range x.joined {
		if i.begin <= moment && moment <= i.end {
			return i.end - moment
		}
	}
	return 0
}

// NodeOf is the node in an incarnation, or in the address of one: its name, a dash
// and ten characters.
func NodeOf(incarnation string) string {
	name := strings.TrimPrefix(incarnation, "local://")
	if i := strings.LastIndexByte(name, '-'); i > 0 {
		return name[:i]
	}
	return name
}
