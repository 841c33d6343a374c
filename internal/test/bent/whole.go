package bent

import (
	"context"
	"time"

	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/storetest"
)

// bentWhole is a bentStore that is all that a console asks for.
type bentWhole struct {
	bentStore
	whole storetest.Whole
}

var _ storetest.Whole = (*bentWhole)(nil)

func (b *bentWhole) AddLogPages(ctx context.Context, pages []store.LogPage, jobBytes int64) (refused []int64, err error) {
	return either[interface {
		AddLogPages(context.Context, []store.LogPage, int64) ([]int64, error)
	}](b.by, b.whole).AddLogPages(ctx, pages, jobBytes)
}

func (b *bentWhole) LogPages(ctx context.Context, runID int64, fromLine, limit int) (pages []store.LogPage, last int, err error) {
	return either[interface {
		LogPages(context.Context, int64, int, int) ([]store.LogPage, int, error)
	}](b.by, b.whole).LogPages(ctx, runID, fromLine, limit)
}

func (b *bentWhole) AddUser(ctx context.Context, u store.User) (store.User, error) {
	return either[interface {
		AddUser(context.Context, store.User) (store.User, error)
	}](b.by, b.whole).AddUser(ctx, u)
}

func (b *bentWhole) AddFirstUser(ctx context.Context, u store.User, code string) (store.User, error) {
	return either[interface {
		AddFirstUser(context.Context, store.User, string) (store.User, error)
	}](b.by, b.whole).AddFirstUser(ctx, u, code)
}

func (b *bentWhole) AddSetupCode(ctx context.Context, hash string, valid time.Duration) error {
	return either[interface {
		AddSetupCode(context.Context, string, time.Duration) error
	}](b.by, b.whole).AddSetupCode(ctx, hash, valid)
}

func (b *bentWhole) UpdateUser(ctx context.Context, u store.User) (store.User, error) {
	return either[interface {
		UpdateUser(context.Context, store.User) (store.User, error)
	}](b.by, b.whole).UpdateUser(ctx, u)
}

func (b *bentWhole) RehashPassword(ctx context.Context, name, old, hash string) error {
	return either[interface {
		RehashPassword(context.Context, string, string, string) error
	}](b.by, b.whole).RehashPassword(ctx, name, old, hash)
}

func (b *bentWhole) RemoveUser(ctx context.Context, name string, version int64) error {
	return either[interface {
		RemoveUser(context.Context, string, int64) error
	}](b.by, b.whole).RemoveUser(ctx, name, version)
}

func (b *bentWhole) SaveSettings(ctx context.Context, name, settings string) error {
	return either[interface {
		SaveSettings(context.Context, string, string) error
	}](b.by, b.whole).SaveSettings(ctx, name, settings)
}

func (b *bentWhole) User(ctx context.Context, name string) (store.User, error) {
	return either[interface {
		User(context.Context, string) (store.User, error)
	}](b.by, b.whole).User(ctx, name)
}

func (b *bentWhole) Users(ctx context.Context, after string, limit int) ([]store.User, error) {
	return either[interface {
		Users(context.Context, string, int) ([]store.User, error)
	}](b.by, b.whole).Users(ctx, after, limit)
}

func (b *bentWhole) AddSession(ctx context.Context, s store.Session, limits store.SessionLimits) (store.Session, error) {
	return either[interface {
		AddSession(context.Context, store.Session, store.SessionLimits) (store.Session, error)
	}](b.by, b.whole).AddSession(ctx, s, limits)
}

func (b *bentWhole) Session(ctx context.Context, hash string, limits store.SessionLimits) (store.Session, store.User, error) {
	return either[interface {
		Session(context.Context, string, store.SessionLimits) (store.Session, store.User, error)
	}](b.by, b.whole).Session(ctx, hash, limits)
}

func (b *bentWhole) ProveSession(ctx context.Context, hash string) error {
	return either[interface {
		ProveSession(context.Context, string) error
	}](b.by, b.whole).ProveSession(ctx, hash)
}

func (b *bentWhole) EndSession(ctx context.Context, user string, id int64) error {
	return either[interface {
		EndSession(context.Context, string, int64) error
	}](b.by, b.whole).EndSession(ctx, user, id)
}

func (b *bentWhole) Sessions(ctx context.Context, user string, limits store.SessionLimits) ([]store.Session, error) {
	return either[interface {
		Sessions(context.Context, string, store.SessionLimits) ([]store.Session, error)
	}](b.by, b.whole).Sessions(ctx, user, limits)
}

func (b *bentWhole) AddToken(ctx context.Context, t store.Token) (store.Token, error) {
	return either[interface {
		AddToken(context.Context, store.Token) (store.Token, error)
	}](b.by, b.whole).AddToken(ctx, t)
}

func (b *bentWhole) Token(ctx context.Context, id int64, hash string) (store.Token, store.User, error) {
	return either[interface {
		Token(context.Context, int64, string) (store.Token, store.User, error)
	}](b.by, b.whole).Token(ctx, id, hash)
}

func (b *bentWhole) RemoveToken(ctx context.Context, user string, id int64) error {
	return either[interface {
		RemoveToken(context.Context, string, int64) error
	}](b.by, b.whole).RemoveToken(ctx, user, id)
}

func (b *bentWhole) Tokens(ctx context.Context, user string) ([]store.Token, error) {
	return either[interface {
		Tokens(context.Context, string) ([]store.Token, error)
	}](b.by, b.whole).Tokens(ctx, user)
}

func (b *bentWhole) TryLogin(ctx context.Context, name string) (wait time.Duration, err error) {
	return either[interface {
		TryLogin(context.Context, string) (time.Duration, error)
	}](b.by, b.whole).TryLogin(ctx, name)
}

func (b *bentWhole) PassLogin(ctx context.Context, name string) error {
	return either[interface {
		PassLogin(context.Context, string) error
	}](b.by, b.whole).PassLogin(ctx, name)
}

func (b *bentWhole) SearchChanges(ctx context.Context, q store.ChangeSearch) (store.ChangesFound, error) {
	return either[interface {
		SearchChanges(context.Context, store.ChangeSearch) (store.ChangesFound, error)
	}](b.by, b.whole).SearchChanges(ctx, q)
}

func (b *bentWhole) JobAt(ctx context.Context, jobID, version int64) (store.Job, error) {
	return either[interface {
		JobAt(context.Context, int64, int64) (store.Job, error)
	}](b.by, b.whole).JobAt(ctx, jobID, version)
}

func (b *bentWhole) RecordChange(ctx context.Context, c store.Change) (store.Change, error) {
	return either[interface {
		RecordChange(context.Context, store.Change) (store.Change, error)
	}](b.by, b.whole).RecordChange(ctx, c)
}

func (b *bentWhole) DropChanges(ctx context.Context, before time.Time) error {
	return either[interface {
		DropChanges(context.Context, time.Time) error
	}](b.by, b.whole).DropChanges(ctx, before)
}

func (b *bentWhole) PutMute(ctx context.Context, m store.Mute) (store.Mute, error) {
	return either[interface {
		PutMute(context.Context, store.Mute) (store.Mute, error)
	}](b.by, b.whole).PutMute(ctx, m)
}

func (b *bentWhole) DropMute(ctx context.Context, key string) error {
	return either[interface {
		DropMute(context.Context, string) error
	}](b.by, b.whole).DropMute(ctx, key)
}

func (b *bentWhole) Mutes(ctx context.Context) ([]store.Mute, error) {
	return either[interface {
		Mutes(context.Context) ([]store.Mute, error)
	}](b.by, b.whole).Mutes(ctx)
}

func (b *bentWhole) AddAppToken(ctx context.Context, t store.AppToken) (store.AppToken, error) {
	return either[interface {
		AddAppToken(context.Context, store.AppToken) (store.AppToken, error)
	}](b.by, b.whole).AddAppToken(ctx, t)
}

func (b *bentWhole) RemoveAppToken(ctx context.Context, name string) error {
	return either[interface {
		RemoveAppToken(context.Context, string) error
	}](b.by, b.whole).RemoveAppToken(ctx, name)
}

func (b *bentWhole) AppTokens(ctx context.Context) ([]store.AppToken, error) {
	return either[interface {
		AppTokens(context.Context) ([]store.AppToken, error)
	}](b.by, b.whole).AppTokens(ctx)
}

func (b *bentWhole) UseAppToken(ctx context.Context, name, hash string) error {
	return either[interface {
		UseAppToken(context.Context, string, string) error
	}](b.by, b.whole).UseAppToken(ctx, name, hash)
}

func (b *bentWhole) NoteTroubles(ctx context.Context, notes store.TroubleNotes) (mine []bool, err error) {
	return either[interface {
		NoteTroubles(context.Context, store.TroubleNotes) ([]bool, error)
	}](b.by, b.whole).NoteTroubles(ctx, notes)
}

func (b *bentWhole) SearchRuns(ctx context.Context, q store.RunSearch) (store.RunsFound, error) {
	return either[interface {
		SearchRuns(context.Context, store.RunSearch) (store.RunsFound, error)
	}](b.by, b.whole).SearchRuns(ctx, q)
}

func (b *bentWhole) LastRuns(ctx context.Context, jobs []int64, n int) ([]store.Run, error) {
	return either[interface {
		LastRuns(context.Context, []int64, int) ([]store.Run, error)
	}](b.by, b.whole).LastRuns(ctx, jobs, n)
}

func (b *bentWhole) Branches(ctx context.Context, runID int64, limit int) (runs []store.Run, more int, err error) {
	return either[interface {
		Branches(context.Context, int64, int) ([]store.Run, int, error)
	}](b.by, b.whole).Branches(ctx, runID, limit)
}

func (b *bentWhole) Children(ctx context.Context, runID, after int64, limit int) ([]store.Run, error) {
	return either[interface {
		Children(context.Context, int64, int64, int) ([]store.Run, error)
	}](b.by, b.whole).Children(ctx, runID, after, limit)
}

func (b *bentWhole) Waiting(ctx context.Context, after store.Run, limit int) ([]store.Run, error) {
	return either[interface {
		Waiting(context.Context, store.Run, int) ([]store.Run, error)
	}](b.by, b.whole).Waiting(ctx, after, limit)
}

func (b *bentWhole) OpenRuns(ctx context.Context, most int) (store.OpenRuns, error) {
	return either[interface {
		OpenRuns(context.Context, int) (store.OpenRuns, error)
	}](b.by, b.whole).OpenRuns(ctx, most)
}

func (b *bentWhole) SearchJobs(ctx context.Context, q store.JobSearch) ([]store.Job, error) {
	return either[interface {
		SearchJobs(context.Context, store.JobSearch) ([]store.Job, error)
	}](b.by, b.whole).SearchJobs(ctx, q)
}

func (b *bentWhole) CountJobs(ctx context.Context) ([]store.JobCount, error) {
	return either[interface {
		CountJobs(context.Context) ([]store.JobCount, error)
	}](b.by, b.whole).CountJobs(ctx)
}

func (b *bentWhole) JobValues(ctx context.Context, field, prefix string, limit int) ([]string, error) {
	return either[interface {
		JobValues(context.Context, string, string, int) ([]string, error)
	}](b.by, b.whole).JobValues(ctx, field, prefix, limit)
}

func (b *bentWhole) Schedules(ctx context.Context, after int64, limit int) ([]store.Job, error) {
	return either[interface {
		Schedules(context.Context, int64, int) ([]store.Job, error)
	}](b.by, b.whole).Schedules(ctx, after, limit)
}

func (b *bentWhole) View(ctx context.Context) (store.View, error) {
	return either[interface {
		View(context.Context) (store.View, error)
	}](b.by, b.whole).View(ctx)
}

func (b *bentWhole) Reports(ctx context.Context, q store.ReportQuery) (store.ReportsFound, error) {
	return either[interface {
		Reports(context.Context, store.ReportQuery) (store.ReportsFound, error)
	}](b.by, b.whole).Reports(ctx, q)
}

func (b *bentWhole) DropEnded(ctx context.Context, q store.RunDrop) (store.Dropped, error) {
	return either[interface {
		DropEnded(context.Context, store.RunDrop) (store.Dropped, error)
	}](b.by, b.whole).DropEnded(ctx, q)
}

func (b *bentWhole) DropExpired(ctx context.Context, q store.KeepQuery) (store.Dropped, error) {
	return either[interface {
		DropExpired(context.Context, store.KeepQuery) (store.Dropped, error)
	}](b.by, b.whole).DropExpired(ctx, q)
}

// bentAll is a bentWhole that is what both stores of this module are.
type bentAll struct {
	bentWhole
	all All
}

var _ All = (*bentAll)(nil)

// OutlivesProcess is what the store says, or would say if it said anything.
func (b *bentAll) OutlivesProcess() bool { return store.Outlives(b.st) }

func (b *bentAll) RedateRuns(ctx context.Context, q store.RedateQuery) (int, error) {
	return either[interface {
		RedateRuns(context.Context, store.RedateQuery) (int, error)
	}](b.by, b.all).RedateRuns(ctx, q)
}

func (b *bentAll) NoteUnknownZones(ctx context.Context, incarnation string, zones []string) error {
	return either[interface {
		NoteUnknownZones(context.Context, string, []string) error
	}](b.by, b.all).NoteUnknownZones(ctx, incarnation, zones)
}

func (b *bentAll) NoteProcess(ctx context.Context, incarnation string, p store.Process) error {
	return either[interface {
		NoteProcess(context.Context, string, store.Process) error
	}](b.by, b.all).NoteProcess(ctx, incarnation, p)
}

func (b *bentAll) KnowRetention(d time.Duration) {
	either[interface{ KnowRetention(time.Duration) }](b.by, b.all).KnowRetention(d)
}
