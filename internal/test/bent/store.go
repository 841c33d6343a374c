package bent

import (
	"context"
	"time"

	"github.com/xxljob/xxljob/store"
)

// bentStore is a store of which some methods are those of another value.
type bentStore struct {
	st store.Store
	by any
}

var _ store.Store = (*bentStore)(nil)

func (b *bentStore) AddJob(ctx context.Context, job store.Job, first store.FirstInstant) (store.Job, error) {
	return either[interface {
		AddJob(context.Context, store.Job, store.FirstInstant) (store.Job, error)
	}](b.by, b.st).AddJob(ctx, job, first)
}

func (b *bentStore) EditJob(ctx context.Context, id int64, edit store.Edit) (store.Job, error) {
	return either[interface {
		EditJob(context.Context, int64, store.Edit) (store.Job, error)
	}](b.by, b.st).EditJob(ctx, id, edit)
}

func (b *bentStore) RemoveJob(ctx context.Context, id int64) error {
	return either[interface {
		RemoveJob(context.Context, int64) error
	}](b.by, b.st).RemoveJob(ctx, id)
}

func (b *bentStore) Job(ctx context.Context, id int64) (store.Job, error) {
	return either[interface {
		Job(context.Context, int64) (store.Job, error)
	}](b.by, b.st).Job(ctx, id)
}

func (b *bentStore) JobByKey(ctx context.Context, app, key string) (store.Job, error) {
	return either[interface {
		JobByKey(context.Context, string, string) (store.Job, error)
	}](b.by, b.st).JobByKey(ctx, app, key)
}

func (b *bentStore) Jobs(ctx context.Context, f store.JobFilter) ([]store.Job, error) {
	return either[interface {
		Jobs(context.Context, store.JobFilter) ([]store.Job, error)
	}](b.by, b.st).Jobs(ctx, f)
}

func (b *bentStore) Changes(ctx context.Context, jobID int64, limit int) ([]store.Change, error) {
	return either[interface {
		Changes(context.Context, int64, int) ([]store.Change, error)
	}](b.by, b.st).Changes(ctx, jobID, limit)
}

func (b *bentStore) SaveGroup(ctx context.Context, g store.Group) error {
	return either[interface {
		SaveGroup(context.Context, store.Group) error
	}](b.by, b.st).SaveGroup(ctx, g)
}

func (b *bentStore) EnsureGroup(ctx context.Context, app string) error {
	return either[interface {
		EnsureGroup(context.Context, string) error
	}](b.by, b.st).EnsureGroup(ctx, app)
}

func (b *bentStore) RemoveGroup(ctx context.Context, app string) error {
	return either[interface {
		RemoveGroup(context.Context, string) error
	}](b.by, b.st).RemoveGroup(ctx, app)
}

func (b *bentStore) Group(ctx context.Context, app string) (store.Group, error) {
	return either[interface {
		Group(context.Context, string) (store.Group, error)
	}](b.by, b.st).Group(ctx, app)
}

func (b *bentStore) Groups(ctx context.Context) ([]store.Group, error) {
	return either[interface {
		Groups(context.Context) ([]store.Group, error)
	}](b.by, b.st).Groups(ctx)
}

func (b *bentStore) PutList(ctx context.Context, put store.ListPut) (store.ListHead, error) {
	return either[interface {
		PutList(context.Context, store.ListPut) (store.ListHead, error)
	}](b.by, b.st).PutList(ctx, put)
}

func (b *bentStore) Lists(ctx context.Context, app, incarnation string) (store.ListView, error) {
	return either[interface {
		Lists(context.Context, string, string) (store.ListView, error)
	}](b.by, b.st).Lists(ctx, app, incarnation)
}

func (b *bentStore) NameJobs(ctx context.Context, list store.ListID, keys []string) ([]store.Job, error) {
	return either[interface {
		NameJobs(context.Context, store.ListID, []string) ([]store.Job, error)
	}](b.by, b.st).NameJobs(ctx, list, keys)
}

func (b *bentStore) UnnameJob(ctx context.Context, app, key string) (store.Job, error) {
	return either[interface {
		UnnameJob(context.Context, string, string) (store.Job, error)
	}](b.by, b.st).UnnameJob(ctx, app, key)
}

func (b *bentStore) AddJobs(ctx context.Context, list store.ListID, jobs []store.Job, first store.FirstInstant) ([]store.Job, error) {
	return either[interface {
		AddJobs(context.Context, store.ListID, []store.Job, store.FirstInstant) ([]store.Job, error)
	}](b.by, b.st).AddJobs(ctx, list, jobs, first)
}

func (b *bentStore) AddRun(ctx context.Context, jobID int64, t store.Trigger) (store.Run, error) {
	return either[interface {
		AddRun(context.Context, int64, store.Trigger) (store.Run, error)
	}](b.by, b.st).AddRun(ctx, jobID, t)
}

func (b *bentStore) AddAhead(ctx context.Context, jobID int64, t store.Trigger, move time.Time) (store.Run, error) {
	return either[interface {
		AddAhead(context.Context, int64, store.Trigger, time.Time) (store.Run, error)
	}](b.by, b.st).AddAhead(ctx, jobID, t, move)
}

func (b *bentStore) Finish(ctx context.Context, dst []store.Run, results []store.Result) ([]store.Run, error) {
	return either[interface {
		Finish(context.Context, []store.Run, []store.Result) ([]store.Run, error)
	}](b.by, b.st).Finish(ctx, dst, results)
}

func (b *bentStore) SetProgress(ctx context.Context, list []store.Progress) error {
	return either[interface {
		SetProgress(context.Context, []store.Progress) error
	}](b.by, b.st).SetProgress(ctx, list)
}

func (b *bentStore) Kill(ctx context.Context, runID int64, reason string) (store.Run, error) {
	return either[interface {
		Kill(context.Context, int64, string) (store.Run, error)
	}](b.by, b.st).Kill(ctx, runID, reason)
}

func (b *bentStore) Run(ctx context.Context, id int64) (store.Run, error) {
	return either[interface {
		Run(context.Context, int64) (store.Run, error)
	}](b.by, b.st).Run(ctx, id)
}

func (b *bentStore) RunsByID(ctx context.Context, ids []int64) ([]store.Run, error) {
	return either[interface {
		RunsByID(context.Context, []int64) ([]store.Run, error)
	}](b.by, b.st).RunsByID(ctx, ids)
}

func (b *bentStore) Tree(ctx context.Context, runID int64) ([]store.Run, error) {
	return either[interface {
		Tree(context.Context, int64) ([]store.Run, error)
	}](b.by, b.st).Tree(ctx, runID)
}

func (b *bentStore) Runs(ctx context.Context, f store.RunFilter) ([]store.Run, error) {
	return either[interface {
		Runs(context.Context, store.RunFilter) ([]store.Run, error)
	}](b.by, b.st).Runs(ctx, f)
}

func (b *bentStore) SetShards(ctx context.Context, n int) error {
	return either[interface {
		SetShards(context.Context, int) error
	}](b.by, b.st).SetShards(ctx, n)
}

func (b *bentStore) Scan(ctx context.Context, dst store.ScanResult, q store.ScanQuery) (store.ScanResult, error) {
	return either[interface {
		Scan(context.Context, store.ScanResult, store.ScanQuery) (store.ScanResult, error)
	}](b.by, b.st).Scan(ctx, dst, q)
}

func (b *bentStore) Planned(ctx context.Context, dst []store.Run, q store.PlannedQuery) ([]store.Run, error) {
	return either[interface {
		Planned(context.Context, []store.Run, store.PlannedQuery) ([]store.Run, error)
	}](b.by, b.st).Planned(ctx, dst, q)
}

func (b *bentStore) Claim(ctx context.Context, dst []store.Run, plans []store.Plan) ([]store.Run, error) {
	return either[interface {
		Claim(context.Context, []store.Run, []store.Plan) ([]store.Run, error)
	}](b.by, b.st).Claim(ctx, dst, plans)
}

func (b *bentStore) MoveAhead(ctx context.Context, q store.AheadQuery) (store.Moved, error) {
	return either[interface {
		MoveAhead(context.Context, store.AheadQuery) (store.Moved, error)
	}](b.by, b.st).MoveAhead(ctx, q)
}

func (b *bentStore) Sweep(ctx context.Context, shards []store.Shard) error {
	return either[interface {
		Sweep(context.Context, []store.Shard) error
	}](b.by, b.st).Sweep(ctx, shards)
}

func (b *bentStore) Start(ctx context.Context, dst []store.Started, starts []store.Start) ([]store.Started, error) {
	return either[interface {
		Start(context.Context, []store.Started, []store.Start) ([]store.Started, error)
	}](b.by, b.st).Start(ctx, dst, starts)
}

func (b *bentStore) Readdress(ctx context.Context, r store.Readdress) (bool, error) {
	return either[interface {
		Readdress(context.Context, store.Readdress) (bool, error)
	}](b.by, b.st).Readdress(ctx, r)
}

func (b *bentStore) Dispatched(ctx context.Context, accepted []store.Dispatch) ([]store.Run, error) {
	return either[interface {
		Dispatched(context.Context, []store.Dispatch) ([]store.Run, error)
	}](b.by, b.st).Dispatched(ctx, accepted)
}

func (b *bentStore) StartedBy(ctx context.Context, shards []store.Shard, incarnations []string, after int64, limit int) ([]store.Run, error) {
	return either[interface {
		StartedBy(context.Context, []store.Shard, []string, int64, int) ([]store.Run, error)
	}](b.by, b.st).StartedBy(ctx, shards, incarnations, after, limit)
}

func (b *bentStore) DispatchedRuns(ctx context.Context, shards []store.Shard, after int64, limit int) ([]store.Run, error) {
	return either[interface {
		DispatchedRuns(context.Context, []store.Shard, int64, int) ([]store.Run, error)
	}](b.by, b.st).DispatchedRuns(ctx, shards, after, limit)
}

func (b *bentStore) Settle(ctx context.Context, verdicts []store.Verdict) ([]store.Run, error) {
	return either[interface {
		Settle(context.Context, []store.Verdict) ([]store.Run, error)
	}](b.by, b.st).Settle(ctx, verdicts)
}

func (b *bentStore) Inbox(ctx context.Context, incarnation string, after int64, limit int) (store.Inbox, error) {
	return either[interface {
		Inbox(context.Context, string, int64, int) (store.Inbox, error)
	}](b.by, b.st).Inbox(ctx, incarnation, after, limit)
}

func (b *bentStore) Take(ctx context.Context, incarnation string, ids []int64) ([]store.Run, error) {
	return either[interface {
		Take(context.Context, string, []int64) ([]store.Run, error)
	}](b.by, b.st).Take(ctx, incarnation, ids)
}

func (b *bentStore) PayOwed(ctx context.Context, q store.OwedQuery) (store.Paid, error) {
	return either[interface {
		PayOwed(context.Context, store.OwedQuery) (store.Paid, error)
	}](b.by, b.st).PayOwed(ctx, q)
}

func (b *bentStore) ExpireWindows(ctx context.Context, q store.WindowQuery) (store.Expired, error) {
	return either[interface {
		ExpireWindows(context.Context, store.WindowQuery) (store.Expired, error)
	}](b.by, b.st).ExpireWindows(ctx, q)
}

func (b *bentStore) Links(ctx context.Context) ([]store.Job, error) {
	return either[interface {
		Links(context.Context) ([]store.Job, error)
	}](b.by, b.st).Links(ctx)
}

func (b *bentStore) KeepRules(ctx context.Context, k store.RuleKeeper) ([]store.RuleKeeper, error) {
	return either[interface {
		KeepRules(context.Context, store.RuleKeeper) ([]store.RuleKeeper, error)
	}](b.by, b.st).KeepRules(ctx, k)
}

func (b *bentStore) HoldRule(ctx context.Context, rule, incarnation string, d time.Duration) (store.RuleHold, error) {
	return either[interface {
		HoldRule(context.Context, string, string, time.Duration) (store.RuleHold, error)
	}](b.by, b.st).HoldRule(ctx, rule, incarnation, d)
}

func (b *bentStore) Rules(ctx context.Context) ([]store.AlarmRule, error) {
	return either[interface {
		Rules(context.Context) ([]store.AlarmRule, error)
	}](b.by, b.st).Rules(ctx)
}

func (b *bentStore) DropRules(ctx context.Context, before time.Time) (open bool, err error) {
	return either[interface {
		DropRules(context.Context, time.Time) (bool, error)
	}](b.by, b.st).DropRules(ctx, before)
}

func (b *bentStore) Alarms(ctx context.Context, shards []store.Shard, rules []string, after int64, limit int) ([]store.Alarm, error) {
	return either[interface {
		Alarms(context.Context, []store.Shard, []string, int64, int) ([]store.Alarm, error)
	}](b.by, b.st).Alarms(ctx, shards, rules, after, limit)
}

func (b *bentStore) MarkAlarms(ctx context.Context, m store.AlarmMarks) error {
	return either[interface {
		MarkAlarms(context.Context, store.AlarmMarks) error
	}](b.by, b.st).MarkAlarms(ctx, m)
}

func (b *bentStore) ToldJobs(ctx context.Context, jobs []int64) ([]store.JobTold, error) {
	return either[interface {
		ToldJobs(context.Context, []int64) ([]store.JobTold, error)
	}](b.by, b.st).ToldJobs(ctx, jobs)
}

func (b *bentStore) OpenAlarms(ctx context.Context, shards []store.Shard, rules []string, after store.JobTold, limit int) (recovered []store.JobTold, open int, err error) {
	return either[interface {
		OpenAlarms(context.Context, []store.Shard, []string, store.JobTold, int) ([]store.JobTold, int, error)
	}](b.by, b.st).OpenAlarms(ctx, shards, rules, after, limit)
}

func (b *bentStore) AddLate(ctx context.Context, q store.LateQuery) (store.Late, error) {
	return either[interface {
		AddLate(context.Context, store.LateQuery) (store.Late, error)
	}](b.by, b.st).AddLate(ctx, q)
}

func (b *bentStore) Now(ctx context.Context) (time.Time, error) {
	return either[interface {
		Now(context.Context) (time.Time, error)
	}](b.by, b.st).Now(ctx)
}

func (b *bentStore) Join(ctx context.Context, n store.Node) (store.View, error) {
	return either[interface {
		Join(context.Context, store.Node) (store.View, error)
	}](b.by, b.st).Join(ctx, n)
}

func (b *bentStore) Beat(ctx context.Context, incarnation string, attached []store.Attachment) (store.View, error) {
	return either[interface {
		Beat(context.Context, string, []store.Attachment) (store.View, error)
	}](b.by, b.st).Beat(ctx, incarnation, attached)
}

func (b *bentStore) SetFailing(ctx context.Context, incarnation string, failing bool) error {
	return either[interface {
		SetFailing(context.Context, string, bool) error
	}](b.by, b.st).SetFailing(ctx, incarnation, failing)
}

func (b *bentStore) Leave(ctx context.Context, incarnation string) error {
	return either[interface {
		Leave(context.Context, string) error
	}](b.by, b.st).Leave(ctx, incarnation)
}

func (b *bentStore) Bury(ctx context.Context, incarnation string, beats int64) error {
	return either[interface {
		Bury(context.Context, string, int64) error
	}](b.by, b.st).Bury(ctx, incarnation, beats)
}

func (b *bentStore) TakeShards(ctx context.Context, incarnation string, shards []store.Shard) ([]store.Shard, error) {
	return either[interface {
		TakeShards(context.Context, string, []store.Shard) ([]store.Shard, error)
	}](b.by, b.st).TakeShards(ctx, incarnation, shards)
}

func (b *bentStore) ReleaseShards(ctx context.Context, incarnation string, shards []store.Shard) error {
	return either[interface {
		ReleaseShards(context.Context, string, []store.Shard) error
	}](b.by, b.st).ReleaseShards(ctx, incarnation, shards)
}

func (b *bentStore) AskLog(ctx context.Context, ask store.Ask) (store.Ask, error) {
	return either[interface {
		AskLog(context.Context, store.Ask) (store.Ask, error)
	}](b.by, b.st).AskLog(ctx, ask)
}

func (b *bentStore) AnswerLog(ctx context.Context, id int64, answer store.Answer) error {
	return either[interface {
		AnswerLog(context.Context, int64, store.Answer) error
	}](b.by, b.st).AnswerLog(ctx, id, answer)
}

func (b *bentStore) LogAnswer(ctx context.Context, id int64) (answer store.Answer, answered bool, err error) {
	return either[interface {
		LogAnswer(context.Context, int64) (store.Answer, bool, error)
	}](b.by, b.st).LogAnswer(ctx, id)
}

func (b *bentStore) Watch(ctx context.Context, incarnation string) store.Signals {
	return either[interface {
		Watch(context.Context, string) store.Signals
	}](b.by, b.st).Watch(ctx, incarnation)
}

func (b *bentStore) Poll() (scan, inbox time.Duration) {
	return either[interface {
		Poll() (time.Duration, time.Duration)
	}](b.by, b.st).Poll()
}

func (b *bentStore) PutAddresses(ctx context.Context, regs []store.Registration) error {
	return either[interface {
		PutAddresses(context.Context, []store.Registration) error
	}](b.by, b.st).PutAddresses(ctx, regs)
}

func (b *bentStore) DropAddresses(ctx context.Context, regs []store.Registration) error {
	return either[interface {
		DropAddresses(context.Context, []store.Registration) error
	}](b.by, b.st).DropAddresses(ctx, regs)
}

func (b *bentStore) Addresses(ctx context.Context, app string, maxAge time.Duration) ([]store.Registration, error) {
	return either[interface {
		Addresses(context.Context, string, time.Duration) ([]store.Registration, error)
	}](b.by, b.st).Addresses(ctx, app, maxAge)
}

func (b *bentStore) Registrations(ctx context.Context, f store.RegistrationFilter) ([]store.Registration, error) {
	return either[interface {
		Registrations(context.Context, store.RegistrationFilter) ([]store.Registration, error)
	}](b.by, b.st).Registrations(ctx, f)
}

func (b *bentStore) ForgetAddresses(ctx context.Context, maxAge time.Duration) error {
	return either[interface {
		ForgetAddresses(context.Context, time.Duration) error
	}](b.by, b.st).ForgetAddresses(ctx, maxAge)
}

func (b *bentStore) NoteServed(ctx context.Context, apps []store.Served) error {
	return either[interface {
		NoteServed(context.Context, []store.Served) error
	}](b.by, b.st).NoteServed(ctx, apps)
}

func (b *bentStore) Served(ctx context.Context, apps []string) ([]store.Served, error) {
	return either[interface {
		Served(context.Context, []string) ([]store.Served, error)
	}](b.by, b.st).Served(ctx, apps)
}
