package xxljob

import (
	"context"
	"time"

	"github.com/xxljob/xxljob/store"
)

// The methods of a store that is metered, each passed on.

func (m *storeMeter) AddJob(ctx context.Context, job store.Job, first store.FirstInstant) (_ store.Job, err error) {
	defer m.begin("AddJob").end(&err)
	return m.Store.AddJob(ctx, job, first)
}

func (m *storeMeter) EditJob(ctx context.Context, id int64, edit store.Edit) (_ store.Job, err error) {
	defer m.begin("EditJob").end(&err)
	return m.Store.EditJob(ctx, id, edit)
}

func (m *storeMeter) RemoveJob(ctx context.Context, id int64) (err error) {
	defer m.begin("RemoveJob").end(&err)
	return m.Store.RemoveJob(ctx, id)
}

func (m *storeMeter) Job(ctx context.Context, id int64) (_ store.Job, err error) {
	defer m.begin("Job").end(&err)
	return m.Store.Job(ctx, id)
}

func (m *storeMeter) JobByKey(ctx context.Context, app, key string) (_ store.Job, err error) {
	defer m.begin("JobByKey").end(&err)
	return m.Store.JobByKey(ctx, app, key)
}

func (m *storeMeter) Jobs(ctx context.Context, q store.JobFilter) (_ []store.Job, err error) {
	defer m.begin("Jobs").end(&err)
	return m.Store.Jobs(ctx, q)
}

func (m *storeMeter) Changes(ctx context.Context, jobID int64, limit int) (_ []store.Change, err error) {
	defer m.begin("Changes").end(&err)
	return m.Store.Changes(ctx, jobID, limit)
}

func (m *storeMeter) PutList(ctx context.Context, put store.ListPut) (_ store.ListHead, err error) {
	defer m.begin("PutList").end(&err)
	return m.Store.PutList(ctx, put)
}

func (m *storeMeter) Lists(ctx context.Context, app, incarnation string) (_ store.ListView, err error) {
	defer m.begin("Lists").end(&err)
	return m.Store.Lists(ctx, app, incarnation)
}

func (m *storeMeter) NameJobs(ctx context.Context, list store.ListID, keys []string) (_ []store.Job, err error) {
	defer m.begin("NameJobs").end(&err)
	return m.Store.NameJobs(ctx, list, keys)
}

func (m *storeMeter) UnnameJob(ctx context.Context, app, key string) (_ store.Job, err error) {
	defer m.begin("UnnameJob").end(&err)
	return m.Store.UnnameJob(ctx, app, key)
}

func (m *storeMeter) AddJobs(ctx context.Context, list store.ListID, jobs []store.Job, first store.FirstInstant) (_ []store.Job, err error) {
	defer m.begin("AddJobs").end(&err)
	return m.Store.AddJobs(ctx, list, jobs, first)
}

func (m *storeMeter) SaveGroup(ctx context.Context, g store.Group) (err error) {
	defer m.begin("SaveGroup").end(&err)
	return m.Store.SaveGroup(ctx, g)
}

func (m *storeMeter) EnsureGroup(ctx context.Context, app string) (err error) {
	defer m.begin("EnsureGroup").end(&err)
	return m.Store.EnsureGroup(ctx, app)
}

func (m *storeMeter) RemoveGroup(ctx context.Context, app string) (err error) {
	defer m.begin("RemoveGroup").end(&err)
	return m.Store.RemoveGroup(ctx, app)
}

func (m *storeMeter) Group(ctx context.Context, app string) (_ store.Group, err error) {
	defer m.begin("Group").end(&err)
	return m.Store.Group(ctx, app)
}

func (m *storeMeter) Groups(ctx context.Context) (_ []store.Group, err error) {
	defer m.begin("Groups").end(&err)
	return m.Store.Groups(ctx)
}

func (m *storeMeter) PayOwed(ctx context.Context, q store.OwedQuery) (_ store.Paid, err error) {
	defer m.begin("PayOwed").end(&err)
	return m.Store.PayOwed(ctx, q)
}

func (m *storeMeter) ExpireWindows(ctx context.Context, q store.WindowQuery) (_ store.Expired, err error) {
	defer m.begin("ExpireWindows").end(&err)
	return m.Store.ExpireWindows(ctx, q)
}

func (m *storeMeter) Links(ctx context.Context) (_ []store.Job, err error) {
	defer m.begin("Links").end(&err)
	return m.Store.Links(ctx)
}

func (m *storeMeter) MarkAlarms(ctx context.Context, marks store.AlarmMarks) (err error) {
	defer m.begin("MarkAlarms").end(&err)
	return m.Store.MarkAlarms(ctx, marks)
}

func (m *storeMeter) ToldJobs(ctx context.Context, jobs []int64) (_ []store.JobTold, err error) {
	defer m.begin("ToldJobs").end(&err)
	return m.Store.ToldJobs(ctx, jobs)
}

func (m *storeMeter) OpenAlarms(ctx context.Context, shards []store.Shard, after store.JobTold, limit int) (recovered []store.JobTold, open int, err error) {
	defer m.begin("OpenAlarms").end(&err)
	return m.Store.OpenAlarms(ctx, shards, after, limit)
}

func (m *storeMeter) AddLate(ctx context.Context, q store.LateQuery) (_ store.Late, err error) {
	defer m.begin("AddLate").end(&err)
	return m.Store.AddLate(ctx, q)
}

func (m *storeMeter) AddRun(ctx context.Context, jobID int64, t store.Trigger) (_ store.Run, err error) {
	defer m.begin("AddRun").end(&err)
	return m.Store.AddRun(ctx, jobID, t)
}

func (m *storeMeter) AddAhead(ctx context.Context, jobID int64, t store.Trigger, move time.Time) (_ store.Run, err error) {
	defer m.begin("AddAhead").end(&err)
	return m.Store.AddAhead(ctx, jobID, t, move)
}

func (m *storeMeter) Finish(ctx context.Context, dst []store.Run, results []store.Result) (_ []store.Run, err error) {
	defer m.begin("Finish").of(len(results)).end(&err)
	return m.Store.Finish(ctx, dst, results)
}

func (m *storeMeter) Kill(ctx context.Context, runID int64, reason string) (_ store.Run, err error) {
	defer m.begin("Kill").end(&err)
	return m.Store.Kill(ctx, runID, reason)
}

func (m *storeMeter) SetProgress(ctx context.Context, list []store.Progress) (err error) {
	defer m.begin("SetProgress").of(len(list)).end(&err)
	return m.Store.SetProgress(ctx, list)
}

func (m *storeMeter) Run(ctx context.Context, id int64) (_ store.Run, err error) {
	defer m.begin("Run").end(&err)
	return m.Store.Run(ctx, id)
}

func (m *storeMeter) RunsByID(ctx context.Context, list []int64) (_ []store.Run, err error) {
	defer m.begin("RunsByID").end(&err)
	return m.Store.RunsByID(ctx, list)
}

func (m *storeMeter) Tree(ctx context.Context, id int64) (_ []store.Run, err error) {
	defer m.begin("Tree").end(&err)
	return m.Store.Tree(ctx, id)
}

func (m *storeMeter) Runs(ctx context.Context, q store.RunFilter) (_ []store.Run, err error) {
	defer m.begin("Runs").end(&err)
	return m.Store.Runs(ctx, q)
}

func (m *storeMeter) SetShards(ctx context.Context, n int) (err error) {
	defer m.begin("SetShards").end(&err)
	return m.Store.SetShards(ctx, n)
}

func (m *storeMeter) Scan(ctx context.Context, dst store.ScanResult, q store.ScanQuery) (_ store.ScanResult, err error) {
	defer m.begin("Scan").end(&err)
	return m.Store.Scan(ctx, dst, q)
}

func (m *storeMeter) Planned(ctx context.Context, dst []store.Run, q store.PlannedQuery) (_ []store.Run, err error) {
	defer m.begin("Planned").end(&err)
	return m.Store.Planned(ctx, dst, q)
}

func (m *storeMeter) Claim(ctx context.Context, dst []store.Run, plans []store.Plan) (_ []store.Run, err error) {
	defer m.begin("Claim").of(len(plans)).end(&err)
	return m.Store.Claim(ctx, dst, plans)
}

func (m *storeMeter) MoveAhead(ctx context.Context, q store.AheadQuery) (_ store.Moved, err error) {
	defer m.begin("MoveAhead").end(&err)
	return m.Store.MoveAhead(ctx, q)
}

func (m *storeMeter) Sweep(ctx context.Context, shards []store.Shard) (err error) {
	defer m.begin("Sweep").end(&err)
	return m.Store.Sweep(ctx, shards)
}

func (m *storeMeter) Start(ctx context.Context, dst []store.Started, starts []store.Start) (_ []store.Started, err error) {
	defer m.begin("Start").of(len(starts)).end(&err)
	return m.Store.Start(ctx, dst, starts)
}

func (m *storeMeter) Readdress(ctx context.Context, r store.Readdress) (_ bool, err error) {
	defer m.begin("Readdress").end(&err)
	return m.Store.Readdress(ctx, r)
}

func (m *storeMeter) Dispatched(ctx context.Context, accepted []store.Dispatch) (_ []store.Run, err error) {
	defer m.begin("Dispatched").of(len(accepted)).end(&err)
	return m.Store.Dispatched(ctx, accepted)
}

func (m *storeMeter) StartedBy(ctx context.Context, shards []store.Shard, incarnations []string, after int64, limit int) (_ []store.Run, err error) {
	defer m.begin("StartedBy").end(&err)
	return m.Store.StartedBy(ctx, shards, incarnations, after, limit)
}

func (m *storeMeter) DispatchedRuns(ctx context.Context, shards []store.Shard, after int64, limit int) (_ []store.Run, err error) {
	defer m.begin("DispatchedRuns").end(&err)
	return m.Store.DispatchedRuns(ctx, shards, after, limit)
}

func (m *storeMeter) Settle(ctx context.Context, verdicts []store.Verdict) (_ []store.Run, err error) {
	defer m.begin("Settle").of(len(verdicts)).end(&err)
	return m.Store.Settle(ctx, verdicts)
}

func (m *storeMeter) Now(ctx context.Context) (_ time.Time, err error) {
	defer m.begin("Now").end(&err)
	return m.Store.Now(ctx)
}

func (m *storeMeter) Inbox(ctx context.Context, incarnation string, after int64, limit int) (_ store.Inbox, err error) {
	defer m.begin("Inbox").end(&err)
	return m.Store.Inbox(ctx, incarnation, after, limit)
}

func (m *storeMeter) Take(ctx context.Context, incarnation string, list []int64) (_ []store.Run, err error) {
	defer m.begin("Take").of(len(list)).end(&err)
	return m.Store.Take(ctx, incarnation, list)
}

func (m *storeMeter) AskLog(ctx context.Context, ask store.Ask) (_ store.Ask, err error) {
	defer m.begin("AskLog").end(&err)
	return m.Store.AskLog(ctx, ask)
}

func (m *storeMeter) AnswerLog(ctx context.Context, id int64, answer store.Answer) (err error) {
	defer m.begin("AnswerLog").end(&err)
	return m.Store.AnswerLog(ctx, id, answer)
}

func (m *storeMeter) LogAnswer(ctx context.Context, id int64) (answer store.Answer, answered bool, err error) {
	defer m.begin("LogAnswer").end(&err)
	return m.Store.LogAnswer(ctx, id)
}

func (m *storeMeter) Join(ctx context.Context, n store.Node) (_ store.View, err error) {
	defer m.begin("Join").end(&err)
	return m.Store.Join(ctx, n)
}

func (m *storeMeter) Beat(ctx context.Context, incarnation string, attached []store.Attachment) (_ store.View, err error) {
	defer m.begin("Beat").end(&err)
	return m.Store.Beat(ctx, incarnation, attached)
}

func (m *storeMeter) SetFailing(ctx context.Context, incarnation string, failing bool) (err error) {
	defer m.begin("SetFailing").end(&err)
	return m.Store.SetFailing(ctx, incarnation, failing)
}

func (m *storeMeter) Leave(ctx context.Context, incarnation string) (err error) {
	defer m.begin("Leave").end(&err)
	return m.Store.Leave(ctx, incarnation)
}

func (m *storeMeter) Bury(ctx context.Context, incarnation string, beats int64) (err error) {
	defer m.begin("Bury").end(&err)
	return m.Store.Bury(ctx, incarnation, beats)
}

func (m *storeMeter) TakeShards(ctx context.Context, incarnation string, shards []store.Shard) (_ []store.Shard, err error) {
	defer m.begin("TakeShards").end(&err)
	return m.Store.TakeShards(ctx, incarnation, shards)
}

func (m *storeMeter) ReleaseShards(ctx context.Context, incarnation string, shards []store.Shard) (err error) {
	defer m.begin("ReleaseShards").end(&err)
	return m.Store.ReleaseShards(ctx, incarnation, shards)
}

func (m *storeMeter) PutAddresses(ctx context.Context, regs []store.Registration) (err error) {
	defer m.begin("PutAddresses").end(&err)
	return m.Store.PutAddresses(ctx, regs)
}

func (m *storeMeter) DropAddresses(ctx context.Context, regs []store.Registration) (err error) {
	defer m.begin("DropAddresses").end(&err)
	return m.Store.DropAddresses(ctx, regs)
}

func (m *storeMeter) Addresses(ctx context.Context, app string, maxAge time.Duration) (_ []store.Registration, err error) {
	defer m.begin("Addresses").end(&err)
	return m.Store.Addresses(ctx, app, maxAge)
}

func (m *storeMeter) Registrations(ctx context.Context, q store.RegistrationFilter) (_ []store.Registration, err error) {
	defer m.begin("Registrations").end(&err)
	return m.Store.Registrations(ctx, q)
}

func (m *storeMeter) ForgetAddresses(ctx context.Context, maxAge time.Duration) (err error) {
	defer m.begin("ForgetAddresses").end(&err)
	return m.Store.ForgetAddresses(ctx, maxAge)
}
