package mutant

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/xxljob/xxljob/store"
)

// accountMutants break what is kept of users.
func accountMutants() []Mutant {
	bend := func(name string, change func(*bentAccounts), cases ...string) Mutant {
		for i := range cases {
			cases[i] = "Accounts/" + cases[i]
		}
		return Mutant{name, func(s whole) any {
			b := &bentAccounts{st: s}
			change(b)
			return b
		}, cases}
	}
	given := func(name string, change func(*store.User), cases ...string) Mutant {
		return bend(name, func(b *bentAccounts) { b.given = change }, cases...)
	}
	limits := func(name string, change func(*store.SessionLimits), cases ...string) Mutant {
		return bend(name, func(b *bentAccounts) { b.limits = change }, cases...)
	}
	rehash := func(name string, change func(ctx context.Context, a store.AccountStore, u *store.User, old, hash string) error, cases ...string) Mutant {
		return bend(name, func(b *bentAccounts) { b.rehash = change }, cases...)
	}
	update := func(ctx context.Context, a store.AccountStore, u *store.User) error {
		_, err := a.UpdateUser(ctx, *u)
		return err
	}
	return []Mutant{
		given("UsersWithoutTitle", func(u *store.User) { u.Title = "" }, "UsersAreKept", "UpdatesReplaceAUser"),
		given("UsersWithoutApps", func(u *store.User) { u.Apps = nil }, "UsersAreKept", "UsersAreCopies"),
		given("UsersWithoutScripts", func(u *store.User) { u.Scripts = false }, "UsersAreKept"),
		given("UsersAreCut", func(u *store.User) { u.Title = u.Title[:min(len(u.Title), 255)] }, "UsersAreChecked"),
		bend("UsersShareTheirApps", func(b *bentAccounts) { b.shares = map[string]map[string]string{} }, "UsersAreCopies"),
		bend("NamesAreReplaced", func(b *bentAccounts) { b.replaces = true }, "NamesAreTaken"),
		bend("UsersInAnyOrder", func(b *bentAccounts) { b.users = slices.Reverse[[]store.User] }, "UsersInPages"),
		bend("AnyCodeIsGood", func(b *bentAccounts) { b.anyCode = true }, "TheFirstUserNeedsACode", "CodesEnd"),
		bend("AnyNumberOfFirstUsers", func(b *bentAccounts) { b.anyFirst = true }, "TheFirstUserNeedsACode", "TheFirstUserIsMadeOnce"),
		bend("CodesDoNotEnd", func(b *bentAccounts) { b.longCodes = true }, "CodesEnd"),
		bend("FewCodes", func(b *bentAccounts) { b.fewCodes = true }, "CodesAreBounded"),
		bend("VersionsAreNotCompared", func(b *bentAccounts) { b.anyVersion = true }, "UpdatesCompareTheVersion"),
		bend("UpdatesReplaceSettings", func(b *bentAccounts) { b.settings = true }, "UpdatesReplaceAUser"),
		bend("TheLastAdminGoes", func(b *bentAccounts) { b.noAdmin = true }, "TheLastAdminStays", "OneOfTwoAdminsStays"),
		limits("ADoubtedClockForgets", func(l *store.SessionLimits) { l.Doubted = false }, "NothingIsForgottenByADoubtedClock"),
		bend("SessionsStayWithAnotherPassword", func(b *bentAccounts) { b.stays = true }, "SessionsEndWithTheirUser"),
		rehash("HashesAreNotMadeAnew", func(ctx context.Context, a store.AccountStore, u *store.User, _, _ string) error {
			return nil
		}, "HashesAreMadeAnew", "HashesAreComparedWhenTheyAreMadeAnew"),
		rehash("HashesMadeAnewReplaceAny", func(ctx context.Context, a store.AccountStore, u *store.User, _, hash string) error {
			return a.RehashPassword(ctx, u.Name, u.Password, hash)
		}, "HashesAreComparedWhenTheyAreMadeAnew"),
		rehash("HashesMadeAnewAreAnotherPassword", func(ctx context.Context, a store.AccountStore, u *store.User, _, hash string) error {
			u.Password = hash
			return update(ctx, a, u)
		}, "HashesAreMadeAnew"),
		rehash("HashesMadeAnewCount", func(ctx context.Context, a store.AccountStore, u *store.User, old, hash string) error {
			if err := a.RehashPassword(ctx, u.Name, old, hash); err != nil {
				return err
			}
			u.Password = hash
			return update(ctx, a, u)
		}, "HashesAreMadeAnew"),
		rehash("HashesMadeAnewEndSessions", func(ctx context.Context, a store.AccountStore, u *store.User, old, hash string) error {
			list, err := a.Sessions(ctx, u.Name, store.SessionLimits{Idle: time.Hour, Most: time.Hour})
			for _, s := range list {
				err = errors.Join(err, a.EndSession(ctx, u.Name, s.ID))
			}
			return errors.Join(err, a.RehashPassword(ctx, u.Name, old, hash))
		}, "HashesAreMadeAnew"),
		rehash("HashesMadeAnewAreRecorded", func(ctx context.Context, a store.AccountStore, u *store.User, old, hash string) error {
			_, err := a.(store.ChangeRecord).RecordChange(ctx, store.Change{Object: store.ObjectLogin, ObjectID: u.Name, Verb: "rehash"})
			return errors.Join(err, a.RehashPassword(ctx, u.Name, old, hash))
		}, "HashesAreMadeAnew"),
		rehash("HashesInAnyContext", func(ctx context.Context, a store.AccountStore, u *store.User, old, hash string) error {
			return a.RehashPassword(context.WithoutCancel(ctx), u.Name, old, hash)
		}, "NothingInAContextThatHasEnded"),
		bend("SettingsAreForgotten", func(b *bentAccounts) { b.forgets = true }, "SettingsAreApart"),
		bend("UsersAreNotRecorded", func(b *bentAccounts) { b.hides = store.ObjectUser }, "ChangesOfUsersAreRecorded"),
		bend("TokensAreNotRecorded", func(b *bentAccounts) { b.hides = store.ObjectToken }, "ChangesOfUsersAreRecorded"),
		bend("SessionsOfAnybody", func(b *bentAccounts) { b.anyOwner = true }, "SessionsAreEnded", "TokensAreKept"),
		bend("SessionsAreNotProved", func(b *bentAccounts) { b.unproved = true }, "SessionsAreEnded"),
		bend("SessionsAreUnbounded", func(b *bentAccounts) { b.begun = &begun{} }, "SessionsAreBounded", "SessionsAtOnceAreBounded"),
		limits("SessionsMayBeIdle", func(l *store.SessionLimits) { l.Idle = max(l.Idle, time.Hour) }, "SessionsEndUnused"),
		limits("SessionsLastForEver", func(l *store.SessionLimits) { l.Most = max(l.Most, time.Hour) }, "SessionsEndUnused"),
		limits("AnyLimits", func(l *store.SessionLimits) { *l = store.SessionLimits{Idle: time.Hour, Most: time.Hour} }, "SessionsOfNobody", "SessionsEndUnused"),
		limits("SessionsAreSeenAtOnce", func(l *store.SessionLimits) { l.Note = 0 }, "SessionsAreSeen"),
		limits("SessionsAreNeverSeen", func(l *store.SessionLimits) { l.Note = time.Hour }, "SessionsAreSeen"),
		bend("TokensByAnySecret", func(b *bentAccounts) { b.hashes = map[int64]string{} }, "TokensAreKept"),
		bend("TokensAreNotUsed", func(b *bentAccounts) { b.unused = true }, "TokensAreKept"),
		bend("TokensDoNotExpire", func(b *bentAccounts) { b.longTokens = true }, "TokensExpire", "TokensAreChecked"),
		bend("TokensOutliveTheirUser", func(b *bentAccounts) { b.kept = map[int64]store.Token{} }, "TokensEndWithTheirUser", "TokensAreKept", "UsersAreRemoved"),
		bend("NobodyWaits", func(b *bentAccounts) { b.anyTries = true }, "TriesWait", "TriesAtOnceAreCounted", "TriesOfOthersDoNotCount"),
		bend("AllWaitTogether", func(b *bentAccounts) { b.oneName = true }, "TriesOfOthersDoNotCount"),
		bend("SuccessChangesNothing", func(b *bentAccounts) { b.passes = true }, "TriesWait"),
		bend("AccountsInAnyContext", func(b *bentAccounts) { b.deaf = true }, "NothingInAContextThatHasEnded"),
	}
}

// bentAccounts changes questions and answers.
type bentAccounts struct {
	st     whole
	given  func(*store.User)
	users  func([]store.User)
	limits func(*store.SessionLimits)
	shares map[string]map[string]string
	kept   map[int64]store.Token
	hashes map[int64]string
	rehash func(ctx context.Context, a store.AccountStore, u *store.User, old, hash string) error
	hides  string
	begun  *begun

	replaces, anyCode, anyFirst, longCodes, fewCodes, anyVersion, settings, noAdmin, stays, forgets bool
	anyOwner, unproved, unused, longTokens, anyTries, oneName, passes, deaf                         bool
}

// begun are all sessions that were ever begun.
type begun struct {
	mu  sync.Mutex
	all []store.Session // guarded by mu
}

func (b *bentAccounts) context(ctx context.Context) context.Context {
	if b.deaf {
		return context.WithoutCancel(ctx)
	}
	return ctx
}

func (b *bentAccounts) AddUser(ctx context.Context, u store.User) (store.User, error) {
	if b.given != nil {
		b.given(&u)
	}
	if b.shares != nil {
		b.shares[u.Name] = u.Apps
	}
	got, err := b.st.AddUser(b.context(ctx), u)
	if err != nil && b.replaces {
		u.Version = 1
		return b.st.UpdateUser(ctx, u)
	}
	return got, err
}

func (b *bentAccounts) User(ctx context.Context, name string) (store.User, error) {
	u, err := b.st.User(ctx, name)
	if b.shares[name] != nil {
		u.Apps = b.shares[name]
	}
	return u, err
}

func (b *bentAccounts) Users(ctx context.Context, after string, limit int) ([]store.User, error) {
	list, err := b.st.Users(ctx, after, limit)
	if b.users != nil {
		b.users(list)
	}
	return list, err
}

func (b *bentAccounts) AddFirstUser(ctx context.Context, u store.User, code string) (store.User, error) {
	if b.anyCode {
		code = store.Shown("any code, which is a hash of 32 b", 32)
		_ = b.st.AddSetupCode(ctx, code, time.Hour)
	}
	got, err := b.st.AddFirstUser(ctx, u, code)
	if err != nil && b.anyFirst {
		u.Admin = true
		return b.st.AddUser(ctx, u)
	}
	return got, err
}

func (b *bentAccounts) AddSetupCode(ctx context.Context, hash string, valid time.Duration) error {
	if b.longCodes {
		valid = time.Hour
	}
	err := b.st.AddSetupCode(ctx, hash, valid)
	if b.fewCodes {
		_ = b.st.AddSetupCode(ctx, hash[:31]+"x", valid)
	}
	return err
}

func (b *bentAccounts) UpdateUser(ctx context.Context, u store.User) (store.User, error) {
	was, err := b.st.User(ctx, u.Name)
	if err == nil && b.anyVersion {
		u.Version = was.Version
	}
	if b.given != nil {
		b.given(&u)
	}
	if b.stays {
		u.Password = was.Password
	}
	if b.noAdmin {
		_, _ = b.st.AddUser(ctx, store.User{Name: "zz", Grants: store.Grants{Admin: true}})
	}
	got, err := b.st.UpdateUser(b.context(ctx), u)
	if err == nil && b.settings {
		_ = b.st.SaveSettings(ctx, u.Name, u.Settings)
	}
	return got, err
}

func (b *bentAccounts) RemoveUser(ctx context.Context, name string, version int64) error {
	if b.noAdmin {
		_, _ = b.st.AddUser(ctx, store.User{Name: "zz", Grants: store.Grants{Admin: true}})
	}
	return b.st.RemoveUser(ctx, name, version)
}

func (b *bentAccounts) RehashPassword(ctx context.Context, name, old, hash string) error {
	u, err := b.st.User(context.WithoutCancel(ctx), name)
	if err != nil || b.rehash == nil {
		return b.st.RehashPassword(ctx, name, old, hash)
	}
	return b.rehash(ctx, b.st, &u, old, hash)
}

func (b *bentAccounts) SaveSettings(ctx context.Context, name, settings string) error {
	if b.forgets {
		return nil
	}
	return b.st.SaveSettings(ctx, name, settings)
}

func (b *bentAccounts) SearchChanges(ctx context.Context, q store.ChangeSearch) (store.ChangesFound, error) {
	f, err := b.st.SearchChanges(ctx, q)
	f.Changes = slices.DeleteFunc(f.Changes, func(c store.Change) bool { return c.Object == b.hides })
	return f, err
}

func (b *bentAccounts) bounds(l store.SessionLimits) store.SessionLimits {
	if b.limits != nil {
		b.limits(&l)
	}
	return l
}

func (b *bentAccounts) AddSession(ctx context.Context, s store.Session, limits store.SessionLimits) (store.Session, error) {
	got, err := b.st.AddSession(b.context(ctx), s, b.bounds(limits))
	if err == nil && b.begun != nil {
		b.begun.mu.Lock()
		defer b.begun.mu.Unlock()
		b.begun.all = append(b.begun.all, got)
	}
	return got, err
}

func (b *bentAccounts) Session(ctx context.Context, hash string, limits store.SessionLimits) (store.Session, store.User, error) {
	return b.st.Session(ctx, hash, b.bounds(limits))
}

func (b *bentAccounts) Sessions(ctx context.Context, user string, limits store.SessionLimits) ([]store.Session, error) {
	if b.begun != nil {
		b.begun.mu.Lock()
		defer b.begun.mu.Unlock()
		return slices.Clone(b.begun.all), nil
	}
	return b.st.Sessions(ctx, user, b.bounds(limits))
}

func (b *bentAccounts) ProveSession(ctx context.Context, hash string) error {
	if b.unproved {
		return nil
	}
	return b.st.ProveSession(ctx, hash)
}

func (b *bentAccounts) EndSession(ctx context.Context, user string, id int64) error {
	if b.anyOwner {
		for _, name := range []string{"ann", "bob"} {
			if b.st.EndSession(ctx, name, id) == nil {
				return nil
			}
		}
	}
	return b.st.EndSession(ctx, user, id)
}

func (b *bentAccounts) AddToken(ctx context.Context, t store.Token) (store.Token, error) {
	if b.longTokens {
		t.Expires = time.Now().Add(24 * time.Hour)
	}
	got, err := b.st.AddToken(ctx, t)
	if b.kept != nil {
		b.kept[got.ID] = got
	}
	if b.hashes != nil {
		b.hashes[got.ID] = got.Hash
	}
	return got, err
}

func (b *bentAccounts) Token(ctx context.Context, id int64, hash string) (store.Token, store.User, error) {
	if right, is := b.hashes[id]; is {
		hash = right
	}
	t, u, err := b.st.Token(ctx, id, hash)
	if b.unused {
		t.Used = time.Time{}
	}
	if old, is := b.kept[id]; is && err != nil {
		return old, u, nil
	}
	return t, u, err
}

func (b *bentAccounts) RemoveToken(ctx context.Context, user string, id int64) error {
	if b.anyOwner {
		for _, name := range []string{"ann", "bob"} {
			if b.st.RemoveToken(ctx, name, id) == nil {
				return nil
			}
		}
	}
	return b.st.RemoveToken(ctx, user, id)
}

func (b *bentAccounts) TryLogin(ctx context.Context, name string) (time.Duration, error) {
	if b.oneName {
		name = "all"
	}
	wait, err := b.st.TryLogin(b.context(ctx), name)
	if b.anyTries {
		wait = 0
	}
	return wait, err
}

func (b *bentAccounts) PassLogin(ctx context.Context, name string) error {
	if b.passes {
		return nil
	}
	return b.st.PassLogin(ctx, name)
}
