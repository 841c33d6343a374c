package mutant

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/xxljob/xxljob/store"
)

// registryMutants break rules about the addresses of executors, and about the runs
// that are sent to them.
func registryMutants() []Mutant {
	reg := func(m registryMutant) func(whole) any {
		return func(s whole) any {
			own := m // the mutant's cases run in parallel
			own.st = s
			return &own
		}
	}
	one := func(change func(*store.Registration)) func([]store.Registration) []store.Registration {
		return func(regs []store.Registration) []store.Registration {
			regs = slices.Clone(regs)
			for i := range regs {
				change(&regs[i])
			}
			return regs
		}
	}
	reversed := func(regs []store.Registration) []store.Registration {
		regs = slices.Clone(regs)
		slices.Reverse(regs)
		return regs
	}
	age := func(d time.Duration) func(time.Duration) time.Duration {
		return func(time.Duration) time.Duration { return d }
	}
	return slices.Concat(dispatchMutants(), []Mutant{
		{"AddressesAreInNoOrder", reg(registryMutant{out: reversed}), []string{"Registry/AddressesAreSorted", "Registry/RegistrationsAreThoseOfAllApps"}},
		{"AddressesIgnoreTheirAge", reg(registryMutant{maxAge: age(time.Hour)}), []string{"Registry/OldAddressesAreLeftOut"}},
		{"AddressesHaveNoTime", reg(registryMutant{out: one(func(r *store.Registration) { r.Updated = time.Time{} })}), []string{"Registry/PutRefreshes"}},
		{"AddressesAreLocalTimes", reg(registryMutant{out: one(func(r *store.Registration) { r.Updated = r.Updated.In(time.FixedZone("", 60)) })}),
			[]string{"Common/TimesAreUTCMilliseconds"}},
		{"OfTwoTheFirstCounts", reg(registryMutant{put: reversed}), []string{"Registry/OfTwoInOneBatchTheLastCounts"}},
		{"PutForgetsTheBootID", reg(registryMutant{put: one(func(r *store.Registration) { r.BootID = "" })}),
			[]string{"Registry/PutKeepsWhatWasSaidLast", "Registry/DropComparesTheBootID"}},
		{"AddressesForgetTheFormerProcess", reg(registryMutant{out: one(func(r *store.Registration) { r.FormerBootID = "" })}),
			[]string{"Registry/PutKeepsTheFormerProcess"}},
		{"AddressesForgetWhenTheFormerProcessWasSeen", reg(registryMutant{out: one(func(r *store.Registration) { r.FormerSeen = time.Time{} })}),
			[]string{"Registry/PutKeepsTheFormerProcess"}},
		{"PutForgetsCapabilities", reg(registryMutant{put: one(func(r *store.Registration) { r.Capabilities = nil })}),
			[]string{"Registry/PutKeepsWhatWasSaidLast", "Registry/OfTwoInOneBatchTheLastCounts"}},
		{"PutSortsCapabilities", reg(registryMutant{put: one(func(r *store.Registration) {
			r.Capabilities = slices.Sorted(slices.Values(r.Capabilities))
		})}), []string{"Registry/PutKeepsWhatWasSaidLast"}},
		{"PutKeepsWhatWasSaidFirst", func(s whole) any { return saidFirst{s} }, []string{"Registry/PutKeepsWhatWasSaidLast", "Registry/PutRefreshes"}},
		{"PutTakesTheFirstOnly", reg(registryMutant{put: func(regs []store.Registration) []store.Registration { return regs[:min(1, len(regs))] }}),
			[]string{"Registry/AddressesAreSorted", "Faults/PutAddresses", "Faults/PartOfPutAddresses"}},
		{"DropIgnoresTheBootID", reg(registryMutant{drop: one(func(r *store.Registration) { r.BootID = "" })}), []string{"Registry/DropComparesTheBootID"}},
		{"DropNeedsABootID", reg(registryMutant{drop: one(func(r *store.Registration) { r.BootID = cmp.Or(r.BootID, "no process") })}),
			[]string{"Registry/DropComparesTheBootID"}},
		{"DropIgnoresTheApp", func(s whole) any { return dropsAnywhere{s} }, []string{"Registry/DropRemoves"}},
		{"DropIsIdle", reg(registryMutant{drop: func([]store.Registration) []store.Registration { return nil }}), []string{"Registry/DropRemoves", "Faults/DropAddresses"}},
		{"ScanFromLeavesOutTooMuch", func(s whole) any { return scansBehind{s} }, []string{"Scan/JobsBeforeFromMayBeLeftOut"}},
		{"ServedIsIdle", func(s whole) any { return servedMutant{} }, []string{"Registry/ServedIsWhatWasNotedLast", "Registry/ServedKeepsTheFirstGone"}},
		{"ServedTakesTheLastGone", func(s whole) any {
			return servedMutant{func(ctx context.Context, apps []store.Served) error {
				for _, a := range apps { // as if somebody had been there in between
					if a.By != "" {
						if err := s.NoteServed(ctx, []store.Served{{App: a.App, By: a.By}}); err != nil {
							return err
						}
					}
				}
				return s.NoteServed(ctx, apps)
			}}
		}, []string{"Registry/ServedKeepsTheFirstGone"}},
		{"ForgetIsIdle", reg(registryMutant{forget: age(time.Hour)}), []string{"Registry/ForgetLeavesFreshOnes", "Faults/ForgetAddresses"}},
		{"ForgetForgetsAll", reg(registryMutant{forget: age(-time.Hour)}), []string{"Registry/ForgetLeavesFreshOnes"}},
		{"RegistrationsOfGroupsOnly", reg(registryMutant{grouped: true}), []string{"Registry/RegistrationsAreThoseOfAllApps"}},
		{"RegistrationsAreFresh", reg(registryMutant{fresh: 5 * time.Millisecond}), []string{"Registry/OldAddressesAreLeftOut"}},
		{"RegistrationsOfAnyApp", reg(registryMutant{filter: func(f *store.RegistrationFilter) { f.App = "" }}), []string{"Registry/RegistrationsOfAnApp"}},
		{"RegistrationsPageByAppAlone", reg(registryMutant{filter: func(f *store.RegistrationFilter) { f.AfterAddress = strings.Repeat("z", min(1, len(f.AfterAddress))) }}),
			[]string{"Registry/RegistrationsPagesCoverAllOnce", "Registry/RegistrationsOfAnApp"}},
		{"RegistrationsPageByAddressAlone", reg(registryMutant{filter: func(f *store.RegistrationFilter) { f.After = f.After[:min(1, len(f.After))] }}),
			[]string{"Registry/RegistrationsPagesCoverAllOnce"}},
		{"RegistrationsHaveNoLimit", reg(registryMutant{filter: func(f *store.RegistrationFilter) { f.Limit = max(f.Limit, 1000) }}),
			[]string{"Registry/RegistrationsLimitDefaultsTo100", "Registry/RegistrationsPagesCoverAllOnce"}},
		{"RegistrationsOfAnyAge", reg(registryMutant{filter: func(f *store.RegistrationFilter) { f.Within = 0 }}), []string{"Registry/RegistrationsWithinATime"}},
		{"RegistrationsAreShared", func(s whole) any { return &sharedRegistrations{st: s, kept: map[string][]string{}} },
			[]string{"Common/RegistrationsAreCopied"}},
	})
}

// registryMutant changes what goes in and comes out of a registry.
type registryMutant struct {
	st             whole
	put, drop, out func([]store.Registration) []store.Registration
	maxAge, forget func(time.Duration) time.Duration
	filter         func(*store.RegistrationFilter)
	fresh          time.Duration // what Registrations takes for old
	grouped        bool          // whether it leaves out apps without a group
}

func (m *registryMutant) PutAddresses(ctx context.Context, regs []store.Registration) error {
	if m.put != nil {
		regs = m.put(regs)
	}
	return m.st.PutAddresses(ctx, regs)
}

func (m *registryMutant) DropAddresses(ctx context.Context, regs []store.Registration) error {
	if m.drop != nil {
		regs = m.drop(regs)
	}
	return m.st.DropAddresses(ctx, regs)
}

func (m *registryMutant) Addresses(ctx context.Context, app string, maxAge time.Duration) ([]store.Registration, error) {
	if m.maxAge != nil {
		maxAge = m.maxAge(maxAge)
	}
	regs, err := m.st.Addresses(ctx, app, maxAge)
	if m.out != nil {
		regs = m.out(regs)
	}
	return regs, err
}

func (m *registryMutant) Registrations(ctx context.Context, f store.RegistrationFilter) ([]store.Registration, error) {
	if m.filter != nil {
		m.filter(&f)
	}
	regs, err := m.st.Registrations(ctx, f)
	if m.out != nil {
		regs = m.out(regs)
	}
	return slices.DeleteFunc(regs, func(r store.Registration) bool {
		_, absent := m.st.Group(ctx, r.App)
		return m.grouped && absent != nil || m.fresh > 0 && time.Since(r.Updated) > m.fresh
	}), err
}

func (m *registryMutant) ForgetAddresses(ctx context.Context, maxAge time.Duration) error {
	if m.forget != nil {
		maxAge = m.forget(maxAge)
	}
	return m.st.ForgetAddresses(ctx, maxAge)
}

// saidFirst stores an address once.
type saidFirst struct{ st whole }

func (f saidFirst) PutAddresses(ctx context.Context, regs []store.Registration) error {
	for _, r := range regs {
		have, err := f.st.Addresses(ctx, r.App, time.Hour)
		if err == nil && !slices.ContainsFunc(have, func(h store.Registration) bool { return h.Address == r.Address }) {
			err = f.st.PutAddresses(ctx, []store.Registration{r})
		}
		if err != nil {
			return err
		}
	}
	return ctx.Err()
}

// dropsAnywhere drops addresses of all apps.
type dropsAnywhere struct{ st whole }

func (d dropsAnywhere) DropAddresses(ctx context.Context, regs []store.Registration) error {
	all, err := d.st.Registrations(ctx, store.RegistrationFilter{})
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(a store.Registration) bool {
		return !slices.ContainsFunc(regs, func(r store.Registration) bool { return r.Address == a.Address })
	})
	return d.st.DropAddresses(ctx, all)
}

// sharedRegistrations hands out the same list each time.
type sharedRegistrations struct {
	st   whole
	mu   sync.Mutex
	kept map[string][]string
}

func (s *sharedRegistrations) Addresses(ctx context.Context, app string, maxAge time.Duration) ([]store.Registration, error) {
	regs, err := s.st.Addresses(ctx, app, maxAge)
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range regs {
		if s.kept[app] == nil {
			s.kept[app] = regs[i].Capabilities
		}
		regs[i].Capabilities = s.kept[app]
	}
	return regs, err
}

// dispatchMutants break rules about runs at executors elsewhere.
func dispatchMutants() []Mutant {
	dispatch := func(change func(ctx context.Context, s store.Store, d *store.Dispatch)) func(whole) any {
		return func(s whole) any { return &otherDispatch{st: s, change: change} }
	}
	changed := func(change func(given []store.Dispatch, runs []store.Run) []store.Run) func(whole) any {
		return func(s whole) any { return &otherDispatch{st: s, runs: change} }
	}
	settle := func(change func(v *store.Verdict)) func(whole) any {
		return func(s whole) any {
			return &broken{st: s, verdict: func(_ context.Context, v store.Verdict) store.Verdict { change(&v); return v }}
		}
	}
	far := func(address string) bool { return strings.HasPrefix(address, "http://") }
	readdress := func(change func(ctx context.Context, s store.Store, r *store.Readdress, run store.Run) (ok, decided bool)) func(whole) any {
		return func(s whole) any { return otherReaddress{s, change} }
	}
	return []Mutant{
		{"DispatchedIgnoresTheOwner", dispatch(func(ctx context.Context, s store.Store, d *store.Dispatch) {
			run, _ := s.Run(ctx, d.RunID)
			d.Owner = run.Owner
		}), []string{"HandOver/DispatchedMismatchChangesNothing"}},
		{"DispatchedIgnoresTheToken", dispatch(func(ctx context.Context, s store.Store, d *store.Dispatch) {
			run, _ := s.Run(ctx, d.RunID)
			d.Token = run.Token
		}), []string{"HandOver/DispatchedMismatchChangesNothing", "HandOver/DispatchedAnswersInOrderGiven"}},
		{"DispatchedIsSilent", dispatch(func(_ context.Context, _ store.Store, d *store.Dispatch) { d.Msg = "" }),
			[]string{"HandOver/DispatchedMarksAStartedRun", "HandOver/DispatchedAnswersInOrderGiven"}},
		{"DispatchedForgetsTheBootID", dispatch(func(_ context.Context, _ store.Store, d *store.Dispatch) { d.BootID = "" }),
			[]string{"HandOver/DispatchedStoresTheBootIDOfWhoHasAccepted"}},
		{"DispatchedAnswersInOrderOfIDs", changed(func(_ []store.Dispatch, runs []store.Run) []store.Run {
			slices.SortFunc(runs, func(a, b store.Run) int { return int(a.ID - b.ID) })
			return runs
		}), []string{"HandOver/DispatchedAnswersInOrderGiven"}},
		{"DispatchedAnswersWithFormerStates", changed(func(_ []store.Dispatch, runs []store.Run) []store.Run {
			for i := range runs {
				runs[i].State = store.StateStarted
			}
			return runs
		}), []string{"HandOver/DispatchedMarksAStartedRun", "HandOver/DispatchedAnswersInOrderGiven"}},
		{"DispatchedMarksTheFirstOnly", func(s whole) any { return &otherDispatch{st: s, first: true} },
			[]string{"HandOver/DispatchedAnswersInOrderGiven", "Faults/Dispatched", "Faults/PartOfDispatched"}},
		{"DispatchedMarksTwice", func(s whole) any { return dispatchedTwice{s} },
			[]string{"HandOver/DispatchedMarksOnce", "HandOver/DispatchedMismatchChangesNothing", "HandOver/DispatchedConcurrentlyMarksOnce"}},
		{"AdoptingKeepsTheOwner", settle(func(v *store.Verdict) { v.NewOwner = v.Owner }), []string{"Settle/ToStartedAdoptsARemoteRun"}},
		{"AdoptingKeepsTheToken", settle(func(v *store.Verdict) { v.NewToken = v.Token }), []string{"Settle/ToStartedAdoptsARemoteRun"}},
		{"LosingAdopts", settle(func(v *store.Verdict) {
			if v.To == store.StateLost {
				v.To, v.NewOwner = store.StateStarted, v.Owner
			}
		}), []string{"Settle/ToLostEndsARemoteRun"}},
		{"StartedByAddresseeOnly", func(s whole) any { return byAddressee{s} },
			[]string{"HandOver/StartedByOwnerOrAddressee", "Settle/ToStartedAdoptsARemoteRun", "Settle/ToLostEndsARemoteRun"}},
		{"ReaddressLeavesRemoteRuns", readdress(func(_ context.Context, _ store.Store, r *store.Readdress, run store.Run) (ok, decided bool) {
			return false, far(run.Address) && far(r.Address)
		}), []string{"HandOver/ReaddressFromRemoteToRemoteAndHome"}},
		{"ReaddressNeverBringsHome", readdress(func(_ context.Context, _ store.Store, r *store.Readdress, run store.Run) (ok, decided bool) {
			return false, r.Address == store.LocalAddress(r.Owner)
		}), []string{"HandOver/ReaddressFromRemoteToRemoteAndHome", "HandOver/ReaddressToTheOwnersOwnIsTheTaking"}},
		{"RemotePartsAreTaken", answer(func(_ context.Context, _ store.Store, x store.Start, a store.Started) store.Started {
			for i := range a.Siblings {
				if s := &a.Siblings[i]; far(s.Address) {
					s.Taken = s.Started
				}
			}
			return a
		}), []string{"Start/BroadcastToRemoteTargets", "Start/BroadcastInsertsStartedSiblings"}},
		{"WireResultsEndPlannedRuns", func(s whole) any { return endsPlanned{s} }, []string{"Finish/WireResultsAreFencedByState"}},
		{"WireResultsNeedAStartedRun", func(s whole) any { return startedOnly{s} }, []string{"Finish/WireResultsAreFencedByState"}},
		{"KillForgetsDispatchedRuns", func(s whole) any { return spares{s} }, []string{"Run/KillMarksAStartedOrDispatchedRun"}},
	}
}

// otherDispatch changes what goes in and comes out of Dispatched.
type otherDispatch struct {
	st     whole
	change func(ctx context.Context, s store.Store, d *store.Dispatch)
	runs   func(given []store.Dispatch, runs []store.Run) []store.Run
	first  bool
}

func (o *otherDispatch) Dispatched(ctx context.Context, accepted []store.Dispatch) ([]store.Run, error) {
	accepted = slices.Clone(accepted)
	if o.first {
		accepted = accepted[:min(1, len(accepted))]
	}
	for i := range accepted {
		if o.change != nil {
			o.change(ctx, o.st, &accepted[i])
		}
	}
	runs, err := o.st.Dispatched(ctx, accepted)
	if o.runs != nil {
		runs = o.runs(accepted, runs)
	}
	return runs, err
}

// dispatchedTwice returns runs that were marked before.
type dispatchedTwice struct{ st whole }

func (d dispatchedTwice) Dispatched(ctx context.Context, accepted []store.Dispatch) ([]store.Run, error) {
	if _, err := d.st.Dispatched(ctx, accepted); err != nil {
		return nil, err
	}
	var runs []store.Run
	for _, a := range accepted {
		if run, err := d.st.Run(ctx, a.RunID); err == nil && run.State == store.StateDispatched {
			runs = append(runs, run)
		}
	}
	return runs, nil
}

// byAddressee does not find runs by their owner where that is not the addressee.
type byAddressee struct{ st whole }

func (b byAddressee) StartedBy(ctx context.Context, shards []store.Shard, incarnations []string, after int64, limit int) ([]store.Run, error) {
	runs, err := b.st.StartedBy(ctx, shards, incarnations, after, limit)
	return slices.DeleteFunc(runs, func(r store.Run) bool {
		inc, _ := store.LocalIncarnation(r.Address)
		return !slices.Contains(incarnations, inc)
	}), err
}

// endsPlanned takes a result over the wire for a kill, where the run is planned.
type endsPlanned struct{ st whole }

func (p endsPlanned) Finish(ctx context.Context, dst []store.Run, results []store.Result) ([]store.Run, error) {
	runs, err := p.st.Finish(ctx, nil, results)
	for _, r := range results {
		if run, _ := p.st.Run(ctx, r.RunID); run.State == store.StatePlanned && run.ID != 0 && r.Token == 0 {
			run, err = p.st.Kill(ctx, r.RunID, "ended")
			runs = append(runs, run)
		}
	}
	return runs, err
}

// startedOnly has no result for a dispatched run.
type startedOnly struct{ st whole }

func (o startedOnly) Finish(ctx context.Context, dst []store.Run, results []store.Result) ([]store.Run, error) {
	return o.st.Finish(ctx, dst, slices.DeleteFunc(slices.Clone(results), func(r store.Result) bool {
		run, _ := o.st.Run(ctx, r.RunID)
		return run.State == store.StateDispatched
	}))
}

// spares leaves dispatched runs alone.
type spares struct{ st whole }

func (p spares) Kill(ctx context.Context, id int64, reason string) (store.Run, error) {
	if run, err := p.st.Run(ctx, id); err == nil && run.State == store.StateDispatched {
		return run, nil
	}
	return p.st.Kill(ctx, id, reason)
}

// servedMutant notes in another way how apps are served, or not at all.
type servedMutant struct {
	note func(context.Context, []store.Served) error
}

func (m servedMutant) NoteServed(ctx context.Context, apps []store.Served) error {
	if m.note == nil {
		return nil
	}
	return m.note(ctx, apps)
}

// scansBehind leaves out what is due at From.
type scansBehind struct{ st whole }

func (m scansBehind) Scan(ctx context.Context, dst store.ScanResult, q store.ScanQuery) (store.ScanResult, error) {
	res, err := m.st.Scan(ctx, dst, q)
	if !q.From.IsZero() {
		res.Jobs = slices.DeleteFunc(res.Jobs, func(j store.DueJob) bool { return !j.Next.After(q.From) })
	}
	return res, err
}
