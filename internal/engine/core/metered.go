package core

import (
	"context"
	"time"

	"github.com/xxljob/xxljob/store"
)

// The methods of a store that is metered, each passed on.

func (m *Meter) AddJob(ctx context.Context, job store.Job, first store.FirstInstant) (_ store.Job, err error) {
	defer m.begin("AddJob").End(&err)
	return m.Store.AddJob(ctx, job, first)
}

func (m *Meter) EditJob(ctx context.Context, id int64, edit store.Edit) (_ store.Job, err error) {
	defer m.begin("EditJob").End(&err)
	return m.Store.EditJob(ctx, id, edit)
}

func (m *Meter) RemoveJob(ctx context.Context, id int64) (err error) {
	defer m.begin("RemoveJob").End(&err)
	return m.Store.RemoveJob(ctx, id)
}

func (m *Meter) Job(ctx context.Context, id int64) (_ store.Job, err error) {
	defer m.begin("Job").End(&err)
	return m.Store.Job(ctx, id)
}

func (m *Meter) JobByKey(ctx context.Context, app, key string) (_ store.Job, err error) {
	defer m.begin("JobByKey").End(&err)
	return m.Store.JobByKey(ctx, app, key)
}

func (m *Meter) Jobs(ctx context.Context, q store.JobFilter) (_ []store.Job, err error) {
	defer m.begin("Jobs").End(&err)
	return m.Store.Jobs(ctx, q)
}

func (m *Meter) Changes(ctx context.Context, jobID int64, limit int) (_ []store.Change, err error) {
	defer m.begin("Changes").End(&err)
	return m.Store.Changes(ctx, jobID, limit)
}

func (m *Meter) PutList(ctx context.Context, put store.ListPut) (_ store.ListHead, err error) {
	defer m.begin("PutList").End(&err)
	return m.Store.PutList(ctx, put)
}

func (m *Meter) Lists(ctx context.Context, app, incarnation string) (_ store.ListView, err error) {
	defer m.begin("Lists").End(&err)
	return m.Store.Lists(ctx, app, incarnation)
}

func (m *Meter) NameJobs(ctx context.Context, list store.ListID, keys []string) (_ []store.Job, err error) {
	defer m.begin("NameJobs").End(&err)
	return m.Store.NameJobs(ctx, list, keys)
}

func (m *Meter) UnnameJob(ctx context.Context, app, key string) (_ store.Job, err error) {
	defer m.begin("UnnameJob").End(&err)
	return m.Store.UnnameJob(ctx, app, key)
}

func (m *Meter) AddJobs(ctx context.Context, list store.ListID, jobs []store.Job, first store.FirstInstant) (_ []store.Job, err error) {
	defer m.begin("AddJobs").End(&err)
	return m.Store.AddJobs(ctx, list, jobs, first)
}

func (m *Meter) SaveGroup(ctx context.Context, g store.Group) (err error) {
	defer m.begin("SaveGroup").End(&err)
	return m.Store.SaveGroup(ctx, g)
}

func (m *Meter) EnsureGroup(ctx context.Context, app string) (err error) {
	defer m.begin("EnsureGroup").End(&err)
	return m.Store.EnsureGroup(ctx, app)
}

func (m *Meter) RemoveGroup(ctx context.Context, app string) (err error) {
	defer m.begin("RemoveGroup").End(&err)
	return m.Store.RemoveGroup(ctx, app)
}

func (m *Meter) Group(ctx context.Context, app string) (_ store.Group, err error) {
	defer m.begin("Group").End(&err)
	return m.Store.Group(ctx, app)
}

func (m *Meter) Groups(ctx context.Context) (_ []store.Group, err error) {
	defer m.begin("Groups").End(&err)
	return m.Store.Groups(ctx)
}

func (m *Meter) PayOwed(ctx context.Context, q store.OwedQuery) (_ store.Paid, err error) {
	defer m.begin("PayOwed").End(&err)
	return m.Store.PayOwed(ctx, q)
}

func (m *Meter) ExpireWindows(ctx context.Context, q store.WindowQuery) (_ store.Expired, err error) {
	defer m.begin("ExpireWindows").End(&err)
	return m.Store.ExpireWindows(ctx, q)
}

func (m *Meter) Links(ctx context.Context) (_ []store.Job, err error) {
	defer m.begin("Links").End(&err)
	return m.Store.Links(ctx)
}

func (m *Meter) KeepRules(ctx context.Context, k store.RuleKeeper) (_ []store.RuleKeeper, err error) {
	defer m.begin("KeepRules").End(&err)
	return m.Store.KeepRules(ctx, k)
}

func (m *Meter) HoldRule(ctx context.Context, rule, incarnation string, d time.Duration) (_ store.RuleHold, err error) {
	defer m.begin("HoldRule").End(&err)
	return m.Store.HoldRule(ctx, rule, incarnation, d)
}

func (m *Meter) Rules(ctx context.Context) (_ []store.AlarmRule, err error) {
	defer m.begin("Rules").End(&err)
	return m.Store.Rules(ctx)
}

func (m *Meter) DropRules(ctx context.Context, before time.Time) (_ bool, err error) {
	defer m.begin("DropRules").End(&err)
	return m.Store.DropRules(ctx, before)
}

func (m *Meter) MarkAlarms(ctx context.Context, marks store.AlarmMarks) (err error) {
	defer m.begin("MarkAlarms").End(&err)
	return m.Store.MarkAlarms(ctx, marks)
}

func (m *Meter) ToldJobs(ctx context.Context, jobs []int64) (_ []store.JobTold, err error) {
	defer m.begin("ToldJobs").End(&err)
	return m.Store.ToldJobs(ctx, jobs)
}

func (m *Meter) OpenAlarms(ctx context.Context, shards []store.Shard, rules []string, after store.JobTold, limit int) (recovered []store.JobTold, open int, err error) {
	defer m.begin("OpenAlarms").End(&err)
	return m.Store.OpenAlarms(ctx, shards, rules, after, limit)
}

func (m *Meter) AddLate(ctx context.Context, q store.LateQuery) (_ store.Late, err error) {
	defer m.begin("AddLate").End(&err)
	return m.Store.AddLate(ctx, q)
}

func (m *Meter) AddRun(ctx context.Context, jobID int64, t store.Trigger) (_ store.Run, err error) {
	defer m.begin("AddRun").End(&err)
	return m.Store.AddRun(ctx, jobID, t)
}

func (m *Meter) AddAhead(ctx context.Context, jobID int64, t store.Trigger, move time.Time) (_ store.Run, err error) {
	defer m.begin("AddAhead").End(&err)
	return m.Store.AddAhead(ctx, jobID, t, move)
}

func (m *Meter) Finish(ctx context.Context, dst []store.Run, results []store.Result) (_ []store.Run, err error) {
	defer m.begin("Finish").of(len(results)).End(&err)
	return m.Store.Finish(ctx, dst, results)
}

func (m *Meter) Kill(ctx context.Context, runID int64, reason string) (_ store.Run, err error) {
	defer m.begin("Kill").End(&err)
	return m.Store.Kill(ctx, runID, reason)
}

func (m *Meter) SetProgress(ctx context.Context, list []store.Progress) (err error) {
	defer m.begin("SetProgress").of(len(list)).End(&err)
	return m.Store.SetProgress(ctx, list)
}

func (m *Meter) Run(ctx context.Context, id int64) (_ store.Run, err error) {
	defer m.begin("Run").End(&err)
	return m.Store.Run(ctx, id)
}

func (m *Meter) RunsByID(ctx context.Context, list []int64) (_ []store.Run, err error) {
	defer m.begin("RunsByID").End(&err)
	return m.Store.RunsByID(ctx, list)
}

func (m *Meter) Tree(ctx context.Context, id int64) (_ []store.Run, err error) {
	defer m.begin("Tree").End(&err)
	return m.Store.Tree(ctx, id)
}

func (m *Meter) Runs(ctx context.Context, q store.RunFilter) (_ []store.Run, err error) {
	defer m.begin("Runs").End(&err)
	return m.Store.Runs(ctx, q)
}

func (m *Meter) SetShards(ctx context.Context, n int) (err error) {
	defer m.begin("SetShards").End(&err)
	return m.Store.SetShards(ctx, n)
}

func (m *Meter) Scan(ctx context.Context, dst store.ScanResult, q store.ScanQuery) (_ store.ScanResult, err error) {
	defer m.begin("Scan").End(&err)
	return m.Store.Scan(ctx, dst, q)
}

func (m *Meter) Planned(ctx context.Context, dst []store.Run, q store.PlannedQuery) (_ []store.Run, err error) {
	defer m.begin("Planned").End(&err)
	return m.Store.Planned(ctx, dst, q)
}

func (m *Meter) Claim(ctx context.Context, dst []store.Run, plans []store.Plan) (_ []store.Run, err error) {
	defer m.begin("Claim").of(len(plans)).End(&err)
	return m.Store.Claim(ctx, dst, plans)
}

func (m *Meter) MoveAhead(ctx context.Context, q store.AheadQuery) (_ store.Moved, err error) {
	defer m.begin("MoveAhead").End(&err)
	return m.Store.MoveAhead(ctx, q)
}

func (m *Meter) Sweep(ctx context.Context, shards []store.Shard) (err error) {
	defer m.begin("Sweep").End(&err)
	return m.Store.Sweep(ctx, shards)
}

func (m *Meter) Start(ctx context.Context, dst []store.Started, starts []store.Start) (_ []store.Started, err error) {
	defer m.begin("Start").of(len(starts)).End(&err)
	return m.Store.Start(ctx, dst, starts)
}

func (m *Meter) Readdress(ctx context.Context, r store.Readdress) (_ bool, err error) {
	defer m.begin("Readdress").End(&err)
	return m.Store.Readdress(ctx, r)
}

func (m *Meter) Dispatched(ctx context.Context, accepted []store.Dispatch) (_ []store.Run, err error) {
	defer m.begin("Dispatched").of(len(accepted)).End(&err)
	return m.Store.Dispatched(ctx, accepted)
}

func (m *Meter) StartedBy(ctx context.Context, shards []store.Shard, incarnations []string, after int64, limit int) (_ []store.Run, err error) {
	defer m.begin("StartedBy").End(&err)
	return m.Store.StartedBy(ctx, shards, incarnations, after, limit)
}

func (m *Meter) DispatchedRuns(ctx context.Context, shards []store.Shard, after int64, limit int) (_ []store.Run, err error) {
	defer m.begin("DispatchedRuns").End(&err)
	return m.Store.DispatchedRuns(ctx, shards, after, limit)
}

func (m *Meter) Settle(ctx context.Context, verdicts []store.Verdict) (_ []store.Run, err error) {
	defer m.begin("Settle").of(len(verdicts)).End(&err)
	return m.Store.Settle(ctx, verdicts)
}

func (m *Meter) Now(ctx context.Context) (_ time.Time, err error) {
	defer m.begin("Now").End(&err)
	return m.Store.Now(ctx)
}

func (m *Meter) Inbox(ctx context.Context, incarnation string, after int64, limit int) (_ store.Inbox, err error) {
	defer m.begin("Inbox").End(&err)
	return m.Store.Inbox(ctx, incarnation, after, limit)
}

func (m *Meter) Take(ctx context.Context, incarnation string, list []int64) (_ []store.Run, err error) {
	defer m.begin("Take").of(len(list)).End(&err)
	return m.Store.Take(ctx, incarnation, list)
}

func (m *Meter) AskLog(ctx context.Context, ask store.Ask) (_ store.Ask, err error) {
	defer m.begin("AskLog").End(&err)
	return m.Store.AskLog(ctx, ask)
}

func (m *Meter) AnswerLog(ctx context.Context, id int64, answer store.Answer) (err error) {
	defer m.begin("AnswerLog").End(&err)
	return m.Store.AnswerLog(ctx, id, answer)
}

func (m *Meter) LogAnswer(ctx context.Context, id int64) (answer store.Answer, answered bool, err error) {
	defer m.begin("LogAnswer").End(&err)
	return m.Store.LogAnswer(ctx, id)
}

func (m *Meter) Join(ctx context.Context, n store.Node) (_ store.View, err error) {
	defer m.begin("Join").End(&err)
	return m.Store.Join(ctx, n)
}

func (m *Meter) Beat(ctx context.Context, incarnation string, attached []store.Attachment) (_ store.View, err error) {
	defer m.begin("Beat").End(&err)
	return m.Store.Beat(ctx, incarnation, attached)
}

func (m *Meter) SetFailing(ctx context.Context, incarnation string, failing bool) (err error) {
	defer m.begin("SetFailing").End(&err)
	return m.Store.SetFailing(ctx, incarnation, failing)
}

func (m *Meter) Leave(ctx context.Context, incarnation string) (err error) {
	defer m.begin("Leave").End(&err)
	return m.Store.Leave(ctx, incarnation)
}

func (m *Meter) Bury(ctx context.Context, incarnation string, beats int64) (err error) {
	defer m.begin("Bury").End(&err)
	return m.Store.Bury(ctx, incarnation, beats)
}

func (m *Meter) TakeShards(ctx context.Context, incarnation string, shards []store.Shard) (_ []store.Shard, err error) {
	defer m.begin("TakeShards").End(&err)
	return m.Store.TakeShards(ctx, incarnation, shards)
}

func (m *Meter) ReleaseShards(ctx context.Context, incarnation string, shards []store.Shard) (err error) {
	defer m.begin("ReleaseShards").End(&err)
	return m.Store.ReleaseShards(ctx, incarnation, shards)
}

func (m *Meter) PutAddresses(ctx context.Context, regs []store.Registration) (err error) {
	defer m.begin("PutAddresses").End(&err)
	return m.Store.PutAddresses(ctx, regs)
}

func (m *Meter) DropAddresses(ctx context.Context, regs []store.Registration) (err error) {
	defer m.begin("DropAddresses").End(&err)
	return m.Store.DropAddresses(ctx, regs)
}

func (m *Meter) Addresses(ctx context.Context, app string, maxAge time.Duration) (_ []store.Registration, err error) {
	defer m.begin("Addresses").End(&err)
	return m.Store.Addresses(ctx, app, maxAge)
}

func (m *Meter) Registrations(ctx context.Context, q store.RegistrationFilter) (_ []store.Registration, err error) {
	defer m.begin("Registrations").End(&err)
	return m.Store.Registrations(ctx, q)
}

func (m *Meter) NoteServed(ctx context.Context, apps []store.Served) (err error) {
	defer m.begin("NoteServed").of(len(apps)).End(&err)
	return m.Store.NoteServed(ctx, apps)
}

func (m *Meter) Served(ctx context.Context, apps []string) (_ []store.Served, err error) {
	defer m.begin("Served").of(len(apps)).End(&err)
	return m.Store.Served(ctx, apps)
}

func (m *Meter) ForgetAddresses(ctx context.Context, maxAge time.Duration) (err error) {
	defer m.begin("ForgetAddresses").End(&err)
	return m.Store.ForgetAddresses(ctx, maxAge)
}
