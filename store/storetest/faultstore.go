package storetest

import (
	"context"
	"reflect"
	"time"

	"github.com/xxljob/xxljob/store"
)

// methods returns the names of the methods of a store that can fail.
func methods() []string { return methodsOf(reflect.TypeFor[store.Store]()) }

// methodsOf returns the names of the methods of an interface that can fail.
func methodsOf(store reflect.Type) []string {
	var names []string
	for i := range store.NumMethod() {
		m := store.Method(i)
		if n := m.Type.NumOut(); n > 0 && m.Type.Out(n-1) == reflect.TypeFor[error]() {
			names = append(names, m.Name)
		}
	}
	return names
}

// only turns a method without an answer into one with an empty answer.
func only(f *Faults, ctx context.Context, method string, do func() error) error {
	_, err := call(f, ctx, method, func() (struct{}, error) { return struct{}{}, do() })
	return err
}

// AddJob passes the call on, under the faults.
func (f *Faults) AddJob(ctx context.Context, job store.Job, first store.FirstInstant) (store.Job, error) {
	return call(f, ctx, "AddJob", func() (store.Job, error) { return f.store.AddJob(ctx, job, first) })
}

// EditJob passes the call on, under the faults.
func (f *Faults) EditJob(ctx context.Context, id int64, edit store.Edit) (store.Job, error) {
	return call(f, ctx, "EditJob", func() (store.Job, error) { return f.store.EditJob(ctx, id, edit) })
}

// RemoveJob passes the call on, under the faults.
func (f *Faults) RemoveJob(ctx context.Context, id int64) error {
	return only(f, ctx, "RemoveJob", func() error { return f.store.RemoveJob(ctx, id) })
}

// Job passes the call on, under the faults.
func (f *Faults) Job(ctx context.Context, id int64) (store.Job, error) {
	return call(f, ctx, "Job", func() (store.Job, error) { return f.store.Job(ctx, id) })
}

// JobByKey passes the call on, under the faults.
func (f *Faults) JobByKey(ctx context.Context, app, key string) (store.Job, error) {
	return call(f, ctx, "JobByKey", func() (store.Job, error) { return f.store.JobByKey(ctx, app, key) })
}

// Jobs passes the call on, under the faults.
func (f *Faults) Jobs(ctx context.Context, q store.JobFilter) ([]store.Job, error) {
	return call(f, ctx, "Jobs", func() ([]store.Job, error) { return f.store.Jobs(ctx, q) })
}

// Changes passes the call on, under the faults.
func (f *Faults) Changes(ctx context.Context, jobID int64, limit int) ([]store.Change, error) {
	return call(f, ctx, "Changes", func() ([]store.Change, error) { return f.store.Changes(ctx, jobID, limit) })
}

// PutList passes the call on, under the faults.
func (f *Faults) PutList(ctx context.Context, put store.ListPut) (store.ListHead, error) {
	return call(f, ctx, "PutList", func() (store.ListHead, error) { return f.store.PutList(ctx, put) })
}

// Lists passes the call on, under the faults.
func (f *Faults) Lists(ctx context.Context, app, incarnation string) (store.ListView, error) {
	return call(f, ctx, "Lists", func() (store.ListView, error) { return f.store.Lists(ctx, app, incarnation) })
}

// NameJobs passes the call on, under the faults.
func (f *Faults) NameJobs(ctx context.Context, list store.ListID, keys []string) ([]store.Job, error) {
	return call(f, ctx, "NameJobs", func() ([]store.Job, error) { return f.store.NameJobs(ctx, list, keys) })
}

// UnnameJob passes the call on, under the faults.
func (f *Faults) UnnameJob(ctx context.Context, app, key string) (store.Job, error) {
	return call(f, ctx, "UnnameJob", func() (store.Job, error) { return f.store.UnnameJob(ctx, app, key) })
}

// AddJobs passes the call on, under the faults.
func (f *Faults) AddJobs(ctx context.Context, list store.ListID, jobs []store.Job, first store.FirstInstant) ([]store.Job, error) {
	return call(f, ctx, "AddJobs", func() ([]store.Job, error) { return f.store.AddJobs(ctx, list, jobs, first) })
}

// SaveGroup passes the call on, under the faults.
func (f *Faults) SaveGroup(ctx context.Context, g store.Group) error {
	return only(f, ctx, "SaveGroup", func() error { return f.store.SaveGroup(ctx, g) })
}

// EnsureGroup passes the call on, under the faults.
func (f *Faults) EnsureGroup(ctx context.Context, app string) error {
	return only(f, ctx, "EnsureGroup", func() error { return f.store.EnsureGroup(ctx, app) })
}

// RemoveGroup passes the call on, under the faults.
func (f *Faults) RemoveGroup(ctx context.Context, app string) error {
	return only(f, ctx, "RemoveGroup", func() error { return f.store.RemoveGroup(ctx, app) })
}

// Group passes the call on, under the faults.
func (f *Faults) Group(ctx context.Context, app string) (store.Group, error) {
	return call(f, ctx, "Group", func() (store.Group, error) { return f.store.Group(ctx, app) })
}

// Groups passes the call on, under the faults.
func (f *Faults) Groups(ctx context.Context) ([]store.Group, error) {
	return call(f, ctx, "Groups", func() ([]store.Group, error) { return f.store.Groups(ctx) })
}

// PayOwed passes the call on, under the faults.
func (f *Faults) PayOwed(ctx context.Context, q store.OwedQuery) (store.Paid, error) {
	return call(f, ctx, "PayOwed", func() (store.Paid, error) { return f.store.PayOwed(ctx, q) })
}

// ExpireWindows passes the call on, under the faults.
func (f *Faults) ExpireWindows(ctx context.Context, q store.WindowQuery) (store.Expired, error) {
	return call(f, ctx, "ExpireWindows", func() (store.Expired, error) { return f.store.ExpireWindows(ctx, q) })
}

// Links passes the call on, under the faults.
func (f *Faults) Links(ctx context.Context) ([]store.Job, error) {
	return call(f, ctx, "Links", func() ([]store.Job, error) { return f.store.Links(ctx) })
}

// KeepRules passes the call on, under the faults.
func (f *Faults) KeepRules(ctx context.Context, k store.RuleKeeper) ([]store.RuleKeeper, error) {
	// The rules are for Poison; the call is passed on as a whole.
	return batch(f, ctx, "KeepRules", k.Rules, func([]store.AlarmRule) ([]store.RuleKeeper, error) { return f.store.KeepRules(ctx, k) })
}

// HoldRule passes the call on, under the faults.
func (f *Faults) HoldRule(ctx context.Context, rule, incarnation string, d time.Duration) (store.RuleHold, error) {
	return call(f, ctx, "HoldRule", func() (store.RuleHold, error) { return f.store.HoldRule(ctx, rule, incarnation, d) })
}

// Rules passes the call on, under the faults.
func (f *Faults) Rules(ctx context.Context) ([]store.AlarmRule, error) {
	return call(f, ctx, "Rules", func() ([]store.AlarmRule, error) { return f.store.Rules(ctx) })
}

// DropRules passes the call on, under the faults.
func (f *Faults) DropRules(ctx context.Context, before time.Time) (bool, error) {
	return call(f, ctx, "DropRules", func() (bool, error) { return f.store.DropRules(ctx, before) })
}

// Alarms passes the call on, under the faults.
func (f *Faults) Alarms(ctx context.Context, shards []store.Shard, rules []string, after int64, limit int) ([]store.Alarm, error) {
	return call(f, ctx, "Alarms", func() ([]store.Alarm, error) { return f.store.Alarms(ctx, shards, rules, after, limit) })
}

// MarkAlarms passes the call on, under the faults.
func (f *Faults) MarkAlarms(ctx context.Context, m store.AlarmMarks) error {
	var members []any // for Poison; the call is passed on as a whole
	for _, told := range m.Told {
		members = append(members, told)
	}
	for _, done := range m.Done {
		members = append(members, done)
	}
	for _, job := range m.Jobs {
		members = append(members, job)
	}
	_, err := batch(f, ctx, "MarkAlarms", members, func([]any) (struct{}, error) { return struct{}{}, f.store.MarkAlarms(ctx, m) })
	return err
}

// ToldJobs passes the call on, under the faults.
func (f *Faults) ToldJobs(ctx context.Context, jobs []int64) ([]store.JobTold, error) {
	return call(f, ctx, "ToldJobs", func() ([]store.JobTold, error) { return f.store.ToldJobs(ctx, jobs) })
}

// NoteTroubles passes the call on, under the faults, to a store that passes troubles on.
func (f *Faults) NoteTroubles(ctx context.Context, notes store.TroubleNotes) ([]bool, error) {
	return call(f, ctx, "NoteTroubles", func() ([]bool, error) {
		if n, ok := f.store.(store.TroubleNoter); ok {
			return n.NoteTroubles(ctx, notes)
		}
		return make([]bool, len(notes.List)), nil
	})
}

// OpenAlarms passes the call on, under the faults.
func (f *Faults) OpenAlarms(ctx context.Context, shards []store.Shard, rules []string, after store.JobTold, limit int) (recovered []store.JobTold, open int, err error) {
	recovered, err = call(f, ctx, "OpenAlarms", func() (list []store.JobTold, err error) {
		list, open, err = f.store.OpenAlarms(ctx, shards, rules, after, limit)
		return list, err
	})
	return recovered, open, err
}

// AddLate passes the call on, under the faults.
func (f *Faults) AddLate(ctx context.Context, q store.LateQuery) (store.Late, error) {
	return call(f, ctx, "AddLate", func() (store.Late, error) { return f.store.AddLate(ctx, q) })
}

// AddRun passes the call on, under the faults.
func (f *Faults) AddRun(ctx context.Context, jobID int64, t store.Trigger) (store.Run, error) {
	return call(f, ctx, "AddRun", func() (store.Run, error) { return f.store.AddRun(ctx, jobID, t) })
}

// AddAhead passes the call on, under the faults.
func (f *Faults) AddAhead(ctx context.Context, jobID int64, t store.Trigger, move time.Time) (store.Run, error) {
	return call(f, ctx, "AddAhead", func() (store.Run, error) { return f.store.AddAhead(ctx, jobID, t, move) })
}

// Finish passes the call on, under the faults.
func (f *Faults) Finish(ctx context.Context, dst []store.Run, results []store.Result) ([]store.Run, error) {
	return appended(dst)(batch(f, ctx, "Finish", results, func(part []store.Result) ([]store.Run, error) { return f.store.Finish(ctx, nil, part) }))
}

// Kill passes the call on, under the faults.
func (f *Faults) Kill(ctx context.Context, runID int64, reason string) (store.Run, error) {
	return call(f, ctx, "Kill", func() (store.Run, error) { return f.store.Kill(ctx, runID, reason) })
}

// SetProgress passes the call on, under the faults.
func (f *Faults) SetProgress(ctx context.Context, list []store.Progress) error {
	_, err := batch(f, ctx, "SetProgress", list, func(part []store.Progress) (struct{}, error) {
		return struct{}{}, f.store.SetProgress(ctx, part)
	})
	return err
}

// Run passes the call on, under the faults.
func (f *Faults) Run(ctx context.Context, id int64) (store.Run, error) {
	return call(f, ctx, "Run", func() (store.Run, error) { return f.store.Run(ctx, id) })
}

// RunsByID passes the call on, under the faults.
func (f *Faults) RunsByID(ctx context.Context, list []int64) ([]store.Run, error) {
	return call(f, ctx, "RunsByID", func() ([]store.Run, error) { return f.store.RunsByID(ctx, list) })
}

// Tree passes the call on, under the faults.
func (f *Faults) Tree(ctx context.Context, id int64) ([]store.Run, error) {
	return call(f, ctx, "Tree", func() ([]store.Run, error) { return f.store.Tree(ctx, id) })
}

// Runs passes the call on, under the faults.
func (f *Faults) Runs(ctx context.Context, q store.RunFilter) ([]store.Run, error) {
	return call(f, ctx, "Runs", func() ([]store.Run, error) { return f.store.Runs(ctx, q) })
}

// SetShards passes the call on, under the faults.
func (f *Faults) SetShards(ctx context.Context, n int) error {
	return only(f, ctx, "SetShards", func() error { return f.store.SetShards(ctx, n) })
}

// Scan passes the call on, under the faults.
func (f *Faults) Scan(ctx context.Context, dst store.ScanResult, q store.ScanQuery) (store.ScanResult, error) {
	res, err := call(f, ctx, "Scan", func() (store.ScanResult, error) { return f.store.Scan(ctx, store.ScanResult{}, q) })
	if err != nil {
		return store.ScanResult{}, err
	}
	return store.ScanResult{Jobs: append(dst.Jobs, res.Jobs...), Runs: append(dst.Runs, res.Runs...), Next: res.Next}, nil
}

// Planned passes the call on, under the faults.
func (f *Faults) Planned(ctx context.Context, dst []store.Run, q store.PlannedQuery) ([]store.Run, error) {
	return appended(dst)(call(f, ctx, "Planned", func() ([]store.Run, error) { return f.store.Planned(ctx, nil, q) }))
}

// Claim passes the call on, under the faults.
func (f *Faults) Claim(ctx context.Context, dst []store.Run, plans []store.Plan) ([]store.Run, error) {
	return appended(dst)(batch(f, ctx, "Claim", plans, func(part []store.Plan) ([]store.Run, error) { return f.store.Claim(ctx, nil, part) }))
}

// MoveAhead passes the call on, under the faults.
func (f *Faults) MoveAhead(ctx context.Context, q store.AheadQuery) (store.Moved, error) {
	return call(f, ctx, "MoveAhead", func() (store.Moved, error) { return f.store.MoveAhead(ctx, q) })
}

// Sweep passes the call on, under the faults.
func (f *Faults) Sweep(ctx context.Context, shards []store.Shard) error {
	return only(f, ctx, "Sweep", func() error { return f.store.Sweep(ctx, shards) })
}

// Start passes the call on, under the faults.
func (f *Faults) Start(ctx context.Context, dst []store.Started, starts []store.Start) ([]store.Started, error) {
	return appended(dst)(batch(f, ctx, "Start", starts, func(part []store.Start) ([]store.Started, error) { return f.store.Start(ctx, nil, part) }))
}

// Readdress passes the call on, under the faults.
func (f *Faults) Readdress(ctx context.Context, r store.Readdress) (bool, error) {
	return call(f, ctx, "Readdress", func() (bool, error) { return f.store.Readdress(ctx, r) })
}

// Dispatched passes the call on, under the faults.
func (f *Faults) Dispatched(ctx context.Context, accepted []store.Dispatch) ([]store.Run, error) {
	return batch(f, ctx, "Dispatched", accepted, func(part []store.Dispatch) ([]store.Run, error) { return f.store.Dispatched(ctx, part) })
}

// StartedBy passes the call on, under the faults.
func (f *Faults) StartedBy(ctx context.Context, shards []store.Shard, incarnations []string, after int64, limit int) ([]store.Run, error) {
	return call(f, ctx, "StartedBy", func() ([]store.Run, error) { return f.store.StartedBy(ctx, shards, incarnations, after, limit) })
}

// DispatchedRuns passes the call on, under the faults.
func (f *Faults) DispatchedRuns(ctx context.Context, shards []store.Shard, after int64, limit int) ([]store.Run, error) {
	return call(f, ctx, "DispatchedRuns", func() ([]store.Run, error) { return f.store.DispatchedRuns(ctx, shards, after, limit) })
}

// Settle passes the call on, under the faults.
func (f *Faults) Settle(ctx context.Context, verdicts []store.Verdict) ([]store.Run, error) {
	return batch(f, ctx, "Settle", verdicts, func(part []store.Verdict) ([]store.Run, error) { return f.store.Settle(ctx, part) })
}

// Now passes the call on, under the faults.
func (f *Faults) Now(ctx context.Context) (time.Time, error) {
	return call(f, ctx, "Now", func() (time.Time, error) { return f.store.Now(ctx) })
}

// Inbox passes the call on, under the faults.
func (f *Faults) Inbox(ctx context.Context, incarnation string, after int64, limit int) (store.Inbox, error) {
	return call(f, ctx, "Inbox", func() (store.Inbox, error) { return f.store.Inbox(ctx, incarnation, after, limit) })
}

// Take passes the call on, under the faults.
func (f *Faults) Take(ctx context.Context, incarnation string, list []int64) ([]store.Run, error) {
	return batch(f, ctx, "Take", list, func(part []int64) ([]store.Run, error) { return f.store.Take(ctx, incarnation, part) })
}

// AskLog passes the call on, under the faults.
func (f *Faults) AskLog(ctx context.Context, ask store.Ask) (store.Ask, error) {
	return call(f, ctx, "AskLog", func() (store.Ask, error) { return f.store.AskLog(ctx, ask) })
}

// AnswerLog passes the call on, under the faults.
func (f *Faults) AnswerLog(ctx context.Context, id int64, answer store.Answer) error {
	return only(f, ctx, "AnswerLog", func() error { return f.store.AnswerLog(ctx, id, answer) })
}

// LogAnswer passes the call on, under the faults.
func (f *Faults) LogAnswer(ctx context.Context, id int64) (answer store.Answer, answered bool, err error) {
	answer, err = call(f, ctx, "LogAnswer", func() (a store.Answer, err error) {
		a, answered, err = f.store.LogAnswer(ctx, id)
		return a, err
	})
	return answer, answered, err
}

// Join passes the call on, under the faults.
func (f *Faults) Join(ctx context.Context, n store.Node) (store.View, error) {
	return call(f, ctx, "Join", func() (store.View, error) { return f.store.Join(ctx, n) })
}

// Beat passes the call on, under the faults.
func (f *Faults) Beat(ctx context.Context, incarnation string, attached []store.Attachment) (store.View, error) {
	return batch(f, ctx, "Beat", attached, func([]store.Attachment) (store.View, error) { return f.store.Beat(ctx, incarnation, attached) })
}

// SetFailing passes the call on, under the faults.
func (f *Faults) SetFailing(ctx context.Context, incarnation string, failing bool) error {
	return only(f, ctx, "SetFailing", func() error { return f.store.SetFailing(ctx, incarnation, failing) })
}

// Leave passes the call on, under the faults.
func (f *Faults) Leave(ctx context.Context, incarnation string) error {
	return only(f, ctx, "Leave", func() error { return f.store.Leave(ctx, incarnation) })
}

// Bury passes the call on, under the faults.
func (f *Faults) Bury(ctx context.Context, incarnation string, beats int64) error {
	return only(f, ctx, "Bury", func() error { return f.store.Bury(ctx, incarnation, beats) })
}

// TakeShards passes the call on, under the faults.
func (f *Faults) TakeShards(ctx context.Context, incarnation string, shards []store.Shard) ([]store.Shard, error) {
	return call(f, ctx, "TakeShards", func() ([]store.Shard, error) { return f.store.TakeShards(ctx, incarnation, shards) })
}

// ReleaseShards passes the call on, under the faults.
func (f *Faults) ReleaseShards(ctx context.Context, incarnation string, shards []store.Shard) error {
	return only(f, ctx, "ReleaseShards", func() error { return f.store.ReleaseShards(ctx, incarnation, shards) })
}

// PutAddresses passes the call on, under the faults.
func (f *Faults) PutAddresses(ctx context.Context, regs []store.Registration) error {
	_, err := batch(f, ctx, "PutAddresses", regs, func(part []store.Registration) (struct{}, error) {
		return struct{}{}, f.store.PutAddresses(ctx, part)
	})
	return err
}

// DropAddresses passes the call on, under the faults.
func (f *Faults) DropAddresses(ctx context.Context, regs []store.Registration) error {
	_, err := batch(f, ctx, "DropAddresses", regs, func(part []store.Registration) (struct{}, error) {
		return struct{}{}, f.store.DropAddresses(ctx, part)
	})
	return err
}

// Addresses passes the call on, under the faults.
func (f *Faults) Addresses(ctx context.Context, app string, maxAge time.Duration) ([]store.Registration, error) {
	return call(f, ctx, "Addresses", func() ([]store.Registration, error) { return f.store.Addresses(ctx, app, maxAge) })
}

// Registrations passes the call on, under the faults.
func (f *Faults) Registrations(ctx context.Context, q store.RegistrationFilter) ([]store.Registration, error) {
	return call(f, ctx, "Registrations", func() ([]store.Registration, error) { return f.store.Registrations(ctx, q) })
}

// ForgetAddresses passes the call on, under the faults.
func (f *Faults) ForgetAddresses(ctx context.Context, maxAge time.Duration) error {
	return only(f, ctx, "ForgetAddresses", func() error { return f.store.ForgetAddresses(ctx, maxAge) })
}

// NoteServed passes the call on, under the faults.
func (f *Faults) NoteServed(ctx context.Context, apps []store.Served) error {
	// The apps are for Poison; the call is passed on as a whole.
	_, err := batch(f, ctx, "NoteServed", apps, func([]store.Served) (struct{}, error) { return struct{}{}, f.store.NoteServed(ctx, apps) })
	return err
}

// Served passes the call on, under the faults.
func (f *Faults) Served(ctx context.Context, apps []string) ([]store.Served, error) {
	return call(f, ctx, "Served", func() ([]store.Served, error) { return f.store.Served(ctx, apps) })
}

// Watch passes the call on; no fault meets it.
func (f *Faults) Watch(ctx context.Context, incarnation string) store.Signals {
	f.count("Watch")
	return f.store.Watch(ctx, incarnation)
}

// Poll passes the call on; no fault meets it.
func (f *Faults) Poll() (scan, inbox time.Duration) {
	f.count("Poll")
	return f.store.Poll()
}

// appended has an answer appended to dst, as the Store says: a call that goes on after its fault has
// been answered must not write there.
func appended[T any](dst []T) func([]T, error) ([]T, error) {
	return func(answer []T, err error) ([]T, error) {
		if answer == nil && err != nil {
			return nil, err
		}
		return append(dst, answer...), err
	}
}
