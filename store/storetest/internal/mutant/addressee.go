package mutant

import (
	"context"
	"slices"

	"github.com/xxljob/xxljob/store"
)

// addresseeMutants break rules about the node that a run is sent to.
func addresseeMutants() []Mutant {
	start := func(change func(ctx context.Context, s store.Store, x *store.Start)) func(whole) any {
		return func(s whole) any {
			return &broken{st: s, start: func(ctx context.Context, x store.Start) store.Start { change(ctx, s, &x); return x }}
		}
	}
	readdress := func(change func(ctx context.Context, s store.Store, r *store.Readdress, run store.Run) (ok, decided bool)) func(whole) any {
		return func(s whole) any { return otherReaddress{s, change} }
	}
	return []Mutant{
		{"StartAsksForNoNode", start(func(ctx context.Context, s store.Store, x *store.Start) {
			revive(ctx, s, append(slices.Clone(x.Targets), x.Address)...)
		}), []string{"Start/NoNodeWhereTheAddresseeIsNotThere", "Start/NoNodeWhereATargetIsNotThere", "Start/FirstOfSeveralStatuses"}},
		{"StartAsksForTheFirstNodeOnly", start(func(ctx context.Context, s store.Store, x *store.Start) {
			if len(x.Targets) > 1 {
				revive(ctx, s, x.Targets[1:]...)
			}
		}), []string{"Start/NoNodeWhereATargetIsNotThere"}},
		{"StartAsksForNodesThatHaveLeft", func(s whole) any { return rowsOnly{s} },
			[]string{"Start/NoNodeWhereTheAddresseeIsNotThere", "Start/FirstOfSeveralStatuses"}},
		{"StartAsksForNodesBeforehand", func(s whole) any { return beforehand{s} }, []string{"Race/StartAgainstBurial"}},
		{"StartAsksForTheOwnersNode", answer(func(ctx context.Context, s store.Store, x store.Start, a store.Started) store.Started {
			v, _ := s.Beat(ctx, "observer", nil)
			if slices.ContainsFunc(v.Nodes, func(n store.Node) bool { return n.Incarnation == x.Owner && n.Left }) {
				return store.Started{Status: store.StartNoNode}
			}
			return a
		}), []string{"Start/OfTheOwnersOwnNodeNothingIsAsked"}},
		{"StartIsGoneBeforeFenced", answer(func(ctx context.Context, s store.Store, x store.Start, a store.Started) store.Started {
			run, _ := s.Run(ctx, x.RunID)
			if a.Status == store.StartFenced && run.State.Ended() {
				a.Status = store.StartGone
			}
			return a
		}), []string{"Start/FirstOfSeveralStatuses"}},
		{"StartIsBusyBeforeAll", answer(func(ctx context.Context, s store.Store, x store.Start, a store.Started) store.Started {
			runs, _ := s.Runs(ctx, store.RunFilter{JobID: x.JobID, States: []store.State{store.StateStarted}})
			at := func(r store.Run) bool { return r.ID != x.RunID && r.Address == x.Address }
			if a.Status != store.StartOK && x.Serial && slices.ContainsFunc(runs, at) {
				a.Status = store.StartBusy
			}
			return a
		}), []string{"Start/FirstOfSeveralStatuses"}},
		{"SerialForgetsTargets", start(func(_ context.Context, _ store.Store, x *store.Start) { x.Serial = x.Serial && len(x.Targets) == 0 }),
			[]string{"Start/BusyAtATarget"}},
		{"BuryIgnoresRuns", func(s whole) any { return forgetsRuns{s} },
			[]string{"Race/StartAgainstBurial", "Race/ReaddressAgainstBurial", "Node/BuryKeepsANodeWithRuns"}},
		{"ReaddressNeedsAnUntakenRun", readdress(func(_ context.Context, _ store.Store, _ *store.Readdress, run store.Run) (ok, decided bool) {
			return false, !run.Taken.IsZero()
		}), []string{"HandOver/ReaddressMovesARunOfTheOwnersOwn"}},
		{"ReaddressOfAnyTakenRun", readdress(func(_ context.Context, _ store.Store, r *store.Readdress, run store.Run) (ok, decided bool) {
			ok = !run.Taken.IsZero() && run.Owner == r.Owner && run.Token == r.Token
			return ok, ok
		}), []string{"HandOver/ReaddressMismatchChangesNothing"}},
		{"ReaddressAsksForNoNode", readdress(func(ctx context.Context, s store.Store, r *store.Readdress, _ store.Run) (ok, decided bool) {
			revive(ctx, s, r.Address)
			return false, false
		}), []string{"HandOver/ReaddressNeedsTheAddressee"}},
		{"ReaddressIsTheTaking", readdress(func(ctx context.Context, s store.Store, r *store.Readdress, run store.Run) (ok, decided bool) {
			ok, _ = s.Readdress(ctx, *r)
			if inc, attached := store.LocalIncarnation(r.Address); ok && attached && !run.Taken.IsZero() {
				_, _ = s.Take(ctx, inc, []int64{r.RunID})
			}
			return ok, true
		}), []string{"HandOver/ReaddressMovesARunOfTheOwnersOwn"}},
	}
}

// revive brings the nodes of attached addresses back.
func revive(ctx context.Context, s store.Store, addresses ...string) {
	for _, a := range addresses {
		if inc, attached := store.LocalIncarnation(a); attached {
			_, _ = s.Beat(ctx, inc, nil)
		}
	}
}

// rowsOnly starts runs at every node that has a row.
type rowsOnly struct{ st whole }

func (r rowsOnly) Start(ctx context.Context, dst []store.Started, starts []store.Start) ([]store.Started, error) {
	v, err := r.st.Beat(ctx, "observer", nil)
	if err != nil {
		return nil, err
	}
	for _, x := range starts {
		if inc, attached := store.LocalIncarnation(x.Address); attached && hasNode(v, inc) {
			revive(ctx, r.st, x.Address)
		}
	}
	return r.st.Start(ctx, dst, starts)
}

// beforehand looks for the nodes in a transaction of its own. The start itself
// goes where nobody looks for a node.
type beforehand struct{ st whole }

func (b beforehand) Start(ctx context.Context, dst []store.Started, starts []store.Start) ([]store.Started, error) {
	v, err := b.st.Beat(ctx, "observer", nil)
	if err != nil {
		return nil, err
	}
	far := func(address string) string {
		inc, attached := store.LocalIncarnation(address)
		open := func(n store.Node) bool { return n.Incarnation == inc && !n.Left }
		if attached && slices.ContainsFunc(v.Nodes, open) {
			return "http://" + inc
		}
		return address
	}
	sent := slices.Clone(starts)
	for i := range sent {
		x := &sent[i]
		x.Address, x.Targets = far(x.Address), slices.Clone(x.Targets)
		for k := range x.Targets {
			x.Targets[k] = far(x.Targets[k])
		}
	}
	return b.st.Start(ctx, dst, sent)
}

// answer changes what is answered to a start.
func answer(change func(ctx context.Context, s store.Store, x store.Start, a store.Started) store.Started) func(whole) any {
	return func(s whole) any { return answers{s, change} }
}

type answers struct {
	st     whole
	change func(ctx context.Context, s store.Store, x store.Start, a store.Started) store.Started
}

func (m answers) Start(ctx context.Context, dst []store.Started, starts []store.Start) ([]store.Started, error) {
	out, err := m.st.Start(ctx, nil, starts)
	for i := range out {
		out[i] = m.change(ctx, m.st, starts[i], out[i])
	}
	return out, err
}

// forgetsRuns does not show a node that is buried with unended runs.
type forgetsRuns struct{ st whole }

func (f forgetsRuns) Beat(ctx context.Context, incarnation string, attached []store.Attachment) (store.View, error) {
	v, err := f.st.Beat(ctx, incarnation, attached)
	v.Nodes = slices.DeleteFunc(v.Nodes, func(n store.Node) bool { return n.Left })
	return v, err
}

// otherReaddress decides about a Readdress before the store does.
type otherReaddress struct {
	st     whole
	change func(ctx context.Context, s store.Store, r *store.Readdress, run store.Run) (ok, decided bool)
}

func (o otherReaddress) Readdress(ctx context.Context, r store.Readdress) (bool, error) {
	run, err := o.st.Run(ctx, r.RunID)
	if err != nil {
		return false, nil
	}
	if ok, decided := o.change(ctx, o.st, &r, run); decided {
		return ok, nil
	}
	return o.st.Readdress(ctx, r)
}
