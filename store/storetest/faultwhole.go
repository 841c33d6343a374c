package storetest

// Faults of what a store is beside a Store.

import (
	"context"
	"reflect"
	"time"

	"github.com/xxljob/xxljob/store"
)

// Whole is a store that is all that a console asks for.
type Whole interface {
	store.Store
	store.LogStore
	store.AccountStore
	store.ChangeRecord
	store.MuteKeeper
	store.AppTokenKeeper
	store.TroubleNoter
	store.RunReader
	store.JobReader
	store.ClusterReader
	store.ReportReader
	store.RunDropper
}

// WholeFaults is Faults with all that a Whole is.
type WholeFaults struct {
	*Faults
	whole Whole
}

var _ Whole = (*WholeFaults)(nil)

// WrapWhole returns a wrapper of s that does nothing yet. Its faults are met by calls of each
// method of a Whole that can fail, and Inject knows them all.
func WrapWhole(s Whole) *WholeFaults {
	f := &WholeFaults{Faults: Wrap(s), whole: s}
	f.methods = methodsOf(reflect.TypeFor[Whole]())
	return f
}

// AddLogPages passes the call on, under the faults.
func (f *WholeFaults) AddLogPages(ctx context.Context, pages []store.LogPage, jobBytes int64) ([]int64, error) {
	return call(f.Faults, ctx, "AddLogPages", func() ([]int64, error) { return f.whole.AddLogPages(ctx, pages, jobBytes) })
}

// LogPages passes the call on, under the faults.
func (f *WholeFaults) LogPages(ctx context.Context, runID int64, fromLine, limit int) (pages []store.LogPage, last int, err error) {
	pages, err = call(f.Faults, ctx, "LogPages", func() (pages []store.LogPage, err error) {
		pages, last, err = f.whole.LogPages(ctx, runID, fromLine, limit)
		return pages, err
	})
	return pages, last, err
}

// AddUser passes the call on, under the faults.
func (f *WholeFaults) AddUser(ctx context.Context, u store.User) (store.User, error) {
	return call(f.Faults, ctx, "AddUser", func() (store.User, error) { return f.whole.AddUser(ctx, u) })
}

// AddFirstUser passes the call on, under the faults.
func (f *WholeFaults) AddFirstUser(ctx context.Context, u store.User, code string) (store.User, error) {
	return call(f.Faults, ctx, "AddFirstUser", func() (store.User, error) { return f.whole.AddFirstUser(ctx, u, code) })
}

// AddSetupCode passes the call on, under the faults.
func (f *WholeFaults) AddSetupCode(ctx context.Context, hash string, valid time.Duration) error {
	return only(f.Faults, ctx, "AddSetupCode", func() error { return f.whole.AddSetupCode(ctx, hash, valid) })
}

// UpdateUser passes the call on, under the faults.
func (f *WholeFaults) UpdateUser(ctx context.Context, u store.User) (store.User, error) {
	return call(f.Faults, ctx, "UpdateUser", func() (store.User, error) { return f.whole.UpdateUser(ctx, u) })
}

// RehashPassword passes the call on, under the faults.
func (f *WholeFaults) RehashPassword(ctx context.Context, name, old, hash string) error {
	return only(f.Faults, ctx, "RehashPassword", func() error { return f.whole.RehashPassword(ctx, name, old, hash) })
}

// RemoveUser passes the call on, under the faults.
func (f *WholeFaults) RemoveUser(ctx context.Context, name string, version int64) error {
	return only(f.Faults, ctx, "RemoveUser", func() error { return f.whole.RemoveUser(ctx, name, version) })
}

// SaveSettings passes the call on, under the faults.
func (f *WholeFaults) SaveSettings(ctx context.Context, name, settings string) error {
	return only(f.Faults, ctx, "SaveSettings", func() error { return f.whole.SaveSettings(ctx, name, settings) })
}

// User passes the call on, under the faults.
func (f *WholeFaults) User(ctx context.Context, name string) (store.User, error) {
	return call(f.Faults, ctx, "User", func() (store.User, error) { return f.whole.User(ctx, name) })
}

// Users passes the call on, under the faults.
func (f *WholeFaults) Users(ctx context.Context, after string, limit int) ([]store.User, error) {
	return call(f.Faults, ctx, "Users", func() ([]store.User, error) { return f.whole.Users(ctx, after, limit) })
}

// AddSession passes the call on, under the faults.
func (f *WholeFaults) AddSession(ctx context.Context, s store.Session, limits store.SessionLimits) (store.Session, error) {
	return call(f.Faults, ctx, "AddSession", func() (store.Session, error) { return f.whole.AddSession(ctx, s, limits) })
}

// Session passes the call on, under the faults.
func (f *WholeFaults) Session(ctx context.Context, hash string, limits store.SessionLimits) (session store.Session, user store.User, err error) {
	session, err = call(f.Faults, ctx, "Session", func() (session store.Session, err error) {
		session, user, err = f.whole.Session(ctx, hash, limits)
		return session, err
	})
	return session, user, err
}

// ProveSession passes the call on, under the faults.
func (f *WholeFaults) ProveSession(ctx context.Context, hash string) error {
	return only(f.Faults, ctx, "ProveSession", func() error { return f.whole.ProveSession(ctx, hash) })
}

// EndSession passes the call on, under the faults.
func (f *WholeFaults) EndSession(ctx context.Context, user string, id int64) error {
	return only(f.Faults, ctx, "EndSession", func() error { return f.whole.EndSession(ctx, user, id) })
}

// Sessions passes the call on, under the faults.
func (f *WholeFaults) Sessions(ctx context.Context, user string, limits store.SessionLimits) ([]store.Session, error) {
	return call(f.Faults, ctx, "Sessions", func() ([]store.Session, error) { return f.whole.Sessions(ctx, user, limits) })
}

// AddToken passes the call on, under the faults.
func (f *WholeFaults) AddToken(ctx context.Context, t store.Token) (store.Token, error) {
	return call(f.Faults, ctx, "AddToken", func() (store.Token, error) { return f.whole.AddToken(ctx, t) })
}

// Token passes the call on, under the faults.
func (f *WholeFaults) Token(ctx context.Context, id int64, hash string) (token store.Token, user store.User, err error) {
	token, err = call(f.Faults, ctx, "Token", func() (token store.Token, err error) {
		token, user, err = f.whole.Token(ctx, id, hash)
		return token, err
	})
	return token, user, err
}

// RemoveToken passes the call on, under the faults.
func (f *WholeFaults) RemoveToken(ctx context.Context, user string, id int64) error {
	return only(f.Faults, ctx, "RemoveToken", func() error { return f.whole.RemoveToken(ctx, user, id) })
}

// Tokens passes the call on, under the faults.
func (f *WholeFaults) Tokens(ctx context.Context, user string) ([]store.Token, error) {
	return call(f.Faults, ctx, "Tokens", func() ([]store.Token, error) { return f.whole.Tokens(ctx, user) })
}

// TryLogin passes the call on, under the faults.
func (f *WholeFaults) TryLogin(ctx context.Context, name string) (time.Duration, error) {
	return call(f.Faults, ctx, "TryLogin", func() (time.Duration, error) { return f.whole.TryLogin(ctx, name) })
}

// PassLogin passes the call on, under the faults.
func (f *WholeFaults) PassLogin(ctx context.Context, name string) error {
	return only(f.Faults, ctx, "PassLogin", func() error { return f.whole.PassLogin(ctx, name) })
}

// SearchChanges passes the call on, under the faults.
func (f *WholeFaults) SearchChanges(ctx context.Context, q store.ChangeSearch) (store.ChangesFound, error) {
	return call(f.Faults, ctx, "SearchChanges", func() (store.ChangesFound, error) { return f.whole.SearchChanges(ctx, q) })
}

// JobAt passes the call on, under the faults.
func (f *WholeFaults) JobAt(ctx context.Context, jobID, version int64) (store.Job, error) {
	return call(f.Faults, ctx, "JobAt", func() (store.Job, error) { return f.whole.JobAt(ctx, jobID, version) })
}

// RecordChange passes the call on, under the faults.
func (f *WholeFaults) RecordChange(ctx context.Context, c store.Change) (store.Change, error) {
	return call(f.Faults, ctx, "RecordChange", func() (store.Change, error) { return f.whole.RecordChange(ctx, c) })
}

// DropChanges passes the call on, under the faults.
func (f *WholeFaults) DropChanges(ctx context.Context, before time.Time) error {
	return only(f.Faults, ctx, "DropChanges", func() error { return f.whole.DropChanges(ctx, before) })
}

// SearchRuns passes the call on, under the faults.
func (f *WholeFaults) SearchRuns(ctx context.Context, q store.RunSearch) (store.RunsFound, error) {
	return call(f.Faults, ctx, "SearchRuns", func() (store.RunsFound, error) { return f.whole.SearchRuns(ctx, q) })
}

// LastRuns passes the call on, under the faults.
func (f *WholeFaults) LastRuns(ctx context.Context, jobs []int64, n int) ([]store.Run, error) {
	return call(f.Faults, ctx, "LastRuns", func() ([]store.Run, error) { return f.whole.LastRuns(ctx, jobs, n) })
}

// Branches passes the call on, under the faults.
func (f *WholeFaults) Branches(ctx context.Context, runID int64, limit int) ([]store.Run, int, error) {
	type answer struct {
		runs []store.Run
		more int
	}
	a, err := call(f.Faults, ctx, "Branches", func() (a answer, err error) {
		a.runs, a.more, err = f.whole.Branches(ctx, runID, limit)
		return a, err
	})
	return a.runs, a.more, err
}

// Children passes the call on, under the faults.
func (f *WholeFaults) Children(ctx context.Context, runID, after int64, limit int) ([]store.Run, error) {
	return call(f.Faults, ctx, "Children", func() ([]store.Run, error) { return f.whole.Children(ctx, runID, after, limit) })
}

// Waiting passes the call on, under the faults.
func (f *WholeFaults) Waiting(ctx context.Context, after store.Run, limit int) ([]store.Run, error) {
	return call(f.Faults, ctx, "Waiting", func() ([]store.Run, error) { return f.whole.Waiting(ctx, after, limit) })
}

// OpenRuns passes the call on, under the faults.
func (f *WholeFaults) OpenRuns(ctx context.Context, most int) (store.OpenRuns, error) {
	return call(f.Faults, ctx, "OpenRuns", func() (store.OpenRuns, error) { return f.whole.OpenRuns(ctx, most) })
}

// SearchJobs passes the call on, under the faults.
func (f *WholeFaults) SearchJobs(ctx context.Context, q store.JobSearch) ([]store.Job, error) {
	return call(f.Faults, ctx, "SearchJobs", func() ([]store.Job, error) { return f.whole.SearchJobs(ctx, q) })
}

// CountJobs passes the call on, under the faults.
func (f *WholeFaults) CountJobs(ctx context.Context) ([]store.JobCount, error) {
	return call(f.Faults, ctx, "CountJobs", func() ([]store.JobCount, error) { return f.whole.CountJobs(ctx) })
}

// JobValues passes the call on, under the faults.
func (f *WholeFaults) JobValues(ctx context.Context, field, prefix string, limit int) ([]string, error) {
	return call(f.Faults, ctx, "JobValues", func() ([]string, error) { return f.whole.JobValues(ctx, field, prefix, limit) })
}

// Schedules passes the call on, under the faults.
func (f *WholeFaults) Schedules(ctx context.Context, after int64, limit int) ([]store.Job, error) {
	return call(f.Faults, ctx, "Schedules", func() ([]store.Job, error) { return f.whole.Schedules(ctx, after, limit) })
}

// View passes the call on, under the faults.
func (f *WholeFaults) View(ctx context.Context) (store.View, error) {
	return call(f.Faults, ctx, "View", func() (store.View, error) { return f.whole.View(ctx) })
}

// Reports passes the call on, under the faults.
func (f *WholeFaults) Reports(ctx context.Context, q store.ReportQuery) (store.ReportsFound, error) {
	return call(f.Faults, ctx, "Reports", func() (store.ReportsFound, error) { return f.whole.Reports(ctx, q) })
}

// DropEnded passes the call on, under the faults.
func (f *WholeFaults) DropEnded(ctx context.Context, q store.RunDrop) (store.Dropped, error) {
	return call(f.Faults, ctx, "DropEnded", func() (store.Dropped, error) { return f.whole.DropEnded(ctx, q) })
}

// DropExpired passes the call on, under the faults.
func (f *WholeFaults) DropExpired(ctx context.Context, q store.KeepQuery) (store.Dropped, error) {
	return call(f.Faults, ctx, "DropExpired", func() (store.Dropped, error) { return f.whole.DropExpired(ctx, q) })
}

// NoteTroubles passes the call on, under the faults.
func (f *WholeFaults) NoteTroubles(ctx context.Context, notes store.TroubleNotes) ([]bool, error) {
	return batch(f.Faults, ctx, "NoteTroubles", notes.List, func([]store.TroubleNote) ([]bool, error) { return f.whole.NoteTroubles(ctx, notes) })
}

// PutMute passes the call on, under the faults.
func (f *WholeFaults) PutMute(ctx context.Context, m store.Mute) (store.Mute, error) {
	return call(f.Faults, ctx, "PutMute", func() (store.Mute, error) { return f.whole.PutMute(ctx, m) })
}

// DropMute passes the call on, under the faults.
func (f *WholeFaults) DropMute(ctx context.Context, key string) error {
	return only(f.Faults, ctx, "DropMute", func() error { return f.whole.DropMute(ctx, key) })
}

// Mutes passes the call on, under the faults.
func (f *WholeFaults) Mutes(ctx context.Context) ([]store.Mute, error) {
	return call(f.Faults, ctx, "Mutes", func() ([]store.Mute, error) { return f.whole.Mutes(ctx) })
}

// AddAppToken passes the call on, under the faults.
func (f *WholeFaults) AddAppToken(ctx context.Context, t store.AppToken) (store.AppToken, error) {
	return call(f.Faults, ctx, "AddAppToken", func() (store.AppToken, error) { return f.whole.AddAppToken(ctx, t) })
}

// RemoveAppToken passes the call on, under the faults.
func (f *WholeFaults) RemoveAppToken(ctx context.Context, name string) error {
	return only(f.Faults, ctx, "RemoveAppToken", func() error { return f.whole.RemoveAppToken(ctx, name) })
}

// AppTokens passes the call on, under the faults.
func (f *WholeFaults) AppTokens(ctx context.Context) ([]store.AppToken, error) {
	return call(f.Faults, ctx, "AppTokens", func() ([]store.AppToken, error) { return f.whole.AppTokens(ctx) })
}

// UseAppToken passes the call on, under the faults.
func (f *WholeFaults) UseAppToken(ctx context.Context, name, hash string) error {
	return only(f.Faults, ctx, "UseAppToken", func() error { return f.whole.UseAppToken(ctx, name, hash) })
}
