package storetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/xxljob/xxljob/store"
)

// Users of a console. A store need not keep them: then these cases say nothing.

func accountCases() []testCase {
	with := func(e *env, a store.AccountStore) *accountBook {
		record, _ := a.(store.ChangeRecord)
		return &accountBook{env: e, AccountStore: a, record: record}
	}
	return optionalCases(with, []optional[*accountBook]{
		{"UsersAreKept", keepsUsers},
		{"UsersAreCopies", copiesUsers},
		{"NamesAreTaken", takesNames},
		{"UsersAreChecked", checksUsers},
		{"UsersInPages", pagesUsers},
		{"TheFirstUserNeedsACode", firstUser},
		{"TheFirstUserIsMadeOnce", firstUserOnce},
		{"CodesEnd", endsCodes},
		{"CodesAreBounded", boundsCodes},
		{"UpdatesReplaceAUser", updatesUsers},
		{"UpdatesCompareTheVersion", comparesUsers},
		{"TheLastAdminStays", lastAdmin},
		{"OneOfTwoAdminsStays", lastAdminRace},
		{"UsersAreRemoved", removesUsers},
		{"HashesAreMadeAnew", rehashesUsers},
		{"HashesAreComparedWhenTheyAreMadeAnew", comparesHashes},
		{"SettingsAreApart", savesSettings},
		{"ChangesOfUsersAreRecorded", recordsUsers},
		{"SessionsAreKept", keepsSessions},
		{"SessionsOfNobody", refusesSessions},
		{"SessionsEndUnused", endsSessionsUnused},
		{"NothingIsForgottenByADoubtedClock", doubtsTheClock},
		{"SessionsEndWithTheirUser", endsSessionsOfUsers},
		{"SessionsAreEnded", endsSessions},
		{"SessionsAreBounded", boundsSessions},
		{"SessionsAtOnceAreBounded", boundsSessionsAtOnce},
		{"SessionsAreSeen", seesSessions},
		{"TokensAreKept", keepsTokens},
		{"TokensAreChecked", checksTokens},
		{"TokensExpire", expiresTokens},
		{"TokensEndWithTheirUser", endsTokensOfUsers},
		{"TokensAreBounded", boundsTokens},
		{"TriesWait", triesWait},
		{"TriesAtOnceAreCounted", triesAtOnce},
		{"TriesOfOthersDoNotCount", triesOfOthers},
		{"NothingInAContextThatHasEnded", accountsInAnEndedContext},
	})
}

// accountBook is a store that keeps users.
type accountBook struct {
	*env
	store.AccountStore
	record store.ChangeRecord
}

// week are limits that end no session in a test.
var week = store.SessionLimits{Idle: 100 * time.Hour, Most: 168 * time.Hour, Note: time.Hour}

// secret is a hash, of its own for each text.
func secret(text string) string { return fmt.Sprintf("%-32s", text) }

// add inserts a user.
func (e *accountBook) add(u store.User) store.User {
	e.Helper()
	u, err := e.AddUser(e.ctx, u)
	e.must(err)
	return u
}

// admin inserts an admin.
func (e *accountBook) admin(name string) store.User {
	e.Helper()
	return e.add(store.User{Name: name, Password: "hash of " + name, Grants: store.Grants{Admin: true}})
}

// wantUser checks what is stored of a user.
func (e *accountBook) wantUser(what string, u store.User) {
	e.Helper()
	got, err := e.User(e.ctx, u.Name)
	e.must(err)
	want(e.env, what+": user", got, u)
}

func keepsUsers(e *accountBook) {
	given := store.User{Name: "ann", Title: "Ann Übung <&>", Password: "$argon2id$…", Settings: `{"zone":"UTC"}`,
		Grants: store.Grants{Apps: map[string]string{"orders": "editor", "*": "viewer"}, Scripts: true}}
	u := e.add(given)
	e.check(!u.Added.IsZero() && u.Added.Equal(u.Added.Truncate(time.Millisecond)) && u.PasswordSet.Equal(u.Added), "added %v, password set %v", u.Added, u.PasswordSet)
	full := given
	full.Version, full.Added, full.PasswordSet = 1, u.Added, u.PasswordSet
	want(e.env, "what AddUser returns", u, full)
	e.wantUser("after AddUser", full)
	_, err := e.User(e.ctx, "bob")
	e.wantErr("a user who is not there", err, store.ErrNotFound)
	plain := e.add(store.User{Name: "bob"})
	want(e.env, "rights of a user without any", plain.Grants, store.Grants{})
}

func copiesUsers(e *accountBook) {
	given := store.User{Name: "ann", Grants: store.Grants{Apps: map[string]string{"a": "viewer"}}}
	u := e.add(given)
	given.Apps["a"] = "editor"
	e.check(len(u.Apps) == 1, "what AddUser returns: %v", u.Apps)
	for app := range u.Apps {
		u.Apps[app] = "editor"
	}
	got, err := e.User(e.ctx, "ann")
	e.must(err)
	want(e.env, "rights", got.Apps, map[string]string{"a": "viewer"})
	for app := range got.Apps {
		got.Apps[app] = "editor"
	}
	list, err := e.Users(e.ctx, "", 10)
	e.must(err)
	want(e.env, "rights in the list", list[0].Apps, map[string]string{"a": "viewer"})
}

func takesNames(e *accountBook) {
	u := e.add(store.User{Name: "ann", Title: "first"})
	_, err := e.AddUser(e.ctx, store.User{Name: "ann", Title: "second"})
	e.wantErr("the same name", err, store.ErrUserExists)
	e.wantUser("after that", u)
}

func checksUsers(e *accountBook) {
	ann := e.add(store.User{Name: "ann"})
	many := map[string]string{}
	for i := range store.MostApps + 1 {
		many[fmt.Sprint("app", i)] = "viewer"
	}
	for what, u := range map[string]store.User{
		"no name":                 {},
		"a blank":                 {Name: "a b"},
		"a line feed":             {Name: "a\nb"},
		"upper case":              {Name: "Ann2"},
		"the scheduler":           {Name: store.Scheduler},
		"a long name":             {Name: strings.Repeat("x", store.MostUserName+1)},
		"markup":                  {Name: "<b>"},
		"a long title":            {Name: "bob", Title: strings.Repeat("x", 256)},
		"NUL":                     {Name: "bob", Title: "a\x00"},
		"no UTF-8":                {Name: "bob", Password: "\xff"},
		"a long password":         {Name: "bob", Password: strings.Repeat("x", store.MostHash+1)},
		"settings that are text":  {Name: "bob", Settings: `"x"`},
		"settings that are null":  {Name: "bob", Settings: `null`},
		"settings that are large": {Name: "bob", Settings: `{"x":"` + strings.Repeat("x", store.MostSettings) + `"}`},
		"many apps":               {Name: "bob", Grants: store.Grants{Apps: many}},
		"an app without a name":   {Name: "bob", Grants: store.Grants{Apps: map[string]string{"": "viewer"}}},
		"a role without a name":   {Name: "bob", Grants: store.Grants{Apps: map[string]string{"a": ""}}},
	} {
		_, err := e.AddUser(e.ctx, u)
		e.check(len(store.FieldErrors(err)) == 1, "%s: AddUser: %v", what, err)
		e.check(err == nil || !strings.Contains(err.Error(), "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"), "%s: %v", what, err)
		if u.Name == "bob" {
			u.Name, u.Version = "ann", ann.Version
			_, err = e.UpdateUser(e.ctx, u)
			e.check(len(store.FieldErrors(err)) == 1 || u.Settings != "", "%s: UpdateUser: %v", what, err)
		}
		if u.Settings != "" {
			e.check(len(store.FieldErrors(e.SaveSettings(e.ctx, "ann", u.Settings))) == 1, "%s: SaveSettings", what)
		}
	}
	list, err := e.Users(e.ctx, "", 10)
	e.must(err)
	want(e.env, "users", list, []store.User{ann})
}

func pagesUsers(e *accountBook) {
	for _, name := range []string{"b", "é", "a", "z", "_x", "b2"} {
		e.add(store.User{Name: name})
	}
	var got []string
	for after, n := "", 0; n < 10; n++ {
		page, err := e.Users(e.ctx, after, 2)
		e.must(err)
		for _, u := range page {
			got = append(got, u.Name)
			after = u.Name
		}
	}
	want(e.env, "names in pages", got, []string{"_x", "a", "b", "b2", "z", "é"})
	none, err := e.Users(e.ctx, "", 0)
	e.must(err)
	want(e.env, "none", len(none), 0)
}

func firstUser(e *accountBook) {
	e.must(e.AddSetupCode(e.ctx, secret("one"), time.Hour))
	e.must(e.AddSetupCode(e.ctx, secret("two"), time.Hour))
	_, err := e.AddFirstUser(e.ctx, store.User{Name: "ann"}, secret("three"))
	e.wantErr("another code", err, store.ErrNotFound)
	_, err = e.AddFirstUser(e.ctx, store.User{Name: "A"}, secret("one"))
	e.check(len(store.FieldErrors(err)) == 1, "a bad name: %v", err)
	list, err := e.Users(e.ctx, "", 10)
	e.must(err)
	want(e.env, "users before", len(list), 0)
	u, err := e.AddFirstUser(e.ctx, store.User{Name: "ann", Password: "h", Disabled: true}, secret("two"))
	e.must(err)
	e.check(u.Admin && !u.Disabled && u.Version == 1, "the first user: %+v", u)
	e.wantUser("after AddFirstUser", u)
	_, err = e.AddFirstUser(e.ctx, store.User{Name: "bob"}, secret("one"))
	e.wantErr("a second one", err, store.ErrUserExists)
	e.wantErr("a code with a user", e.AddSetupCode(e.ctx, secret("one"), time.Hour), store.ErrUserExists)
}

func firstUserOnce(e *accountBook) {
	var fns []func()
	var made, exist atomic.Int64
	for i := range 6 {
		code := secret(fmt.Sprint(i))
		e.must(e.AddSetupCode(e.ctx, code, time.Hour))
		fns = append(fns, func() {
			switch _, err := e.AddFirstUser(e.ctx, store.User{Name: fmt.Sprint("u", i)}, code); {
			case err == nil:
				made.Add(1)
			case errors.Is(err, store.ErrUserExists):
				exist.Add(1)
			}
		})
	}
	e.race(fns...)
	want(e.env, "first users", made.Load(), int64(1))
	want(e.env, "who found one", exist.Load(), int64(5))
	list, err := e.Users(e.ctx, "", 10)
	e.must(err)
	want(e.env, "users", len(list), 1)
}

// pass waits for a little more than the given time.
func (e *accountBook) pass(d time.Duration) {
	e.Helper()
	began := time.Now()
	e.eventually("time goes on", func() bool { return time.Since(began) > d+20*time.Millisecond })
}

func endsCodes(e *accountBook) {
	e.must(e.AddSetupCode(e.ctx, secret("one"), time.Millisecond))
	e.pass(time.Millisecond)
	_, err := e.AddFirstUser(e.ctx, store.User{Name: "ann"}, secret("one"))
	e.wantErr("a code that has ended", err, store.ErrNotFound)
	for _, valid := range []time.Duration{0, -time.Hour, 31 * 24 * time.Hour} {
		e.check(e.AddSetupCode(e.ctx, secret("two"), valid) != nil, "a code for %v", valid)
	}
	e.check(e.AddSetupCode(e.ctx, "short", time.Hour) != nil, "a short hash")
	_, err = e.AddFirstUser(e.ctx, store.User{Name: "ann"}, secret("two"))
	e.wantErr("a code that was refused", err, store.ErrNotFound)
	_, err = e.AddFirstUser(e.ctx, store.User{Name: "ann"}, "")
	e.wantErr("no code", err, store.ErrNotFound)
}

func boundsCodes(e *accountBook) {
	for i := range store.MostCodes + 2 {
		e.must(e.AddSetupCode(e.ctx, secret(fmt.Sprint(i)), time.Hour))
	}
	_, err := e.AddFirstUser(e.ctx, store.User{Name: "ann"}, secret("1"))
	e.wantErr("an old code", err, store.ErrNotFound)
	_, err = e.AddFirstUser(e.ctx, store.User{Name: "ann"}, secret("2"))
	e.must(err)
}

func updatesUsers(e *accountBook) {
	e.admin("root")
	was := e.add(store.User{Name: "ann", Password: "old", Settings: `{"a":1}`, Grants: store.Grants{Apps: map[string]string{"a": "viewer"}}})
	e.pass(0)
	u, err := e.UpdateUser(e.ctx, store.User{Name: "ann", Version: 1, Title: "Ann", Password: "old", Settings: `{"b":2}`, Added: time.Now().AddDate(1, 0, 0),
		Grants: store.Grants{Admin: true, Apps: map[string]string{"b": "editor"}, Scripts: true}})
	e.must(err)
	full := store.User{Name: "ann", Title: "Ann", Password: "old", Settings: `{"a":1}`, Version: 2, Added: was.Added, PasswordSet: was.PasswordSet,
		Grants: store.Grants{Admin: true, Apps: map[string]string{"b": "editor"}, Scripts: true}}
	want(e.env, "what UpdateUser returns", u, full)
	e.wantUser("after UpdateUser", full)
	full.Password = "new"
	u, err = e.UpdateUser(e.ctx, full)
	e.must(err)
	e.check(u.PasswordSet.After(was.PasswordSet), "the password was set at %v, before at %v", u.PasswordSet, was.PasswordSet)
}

func comparesUsers(e *accountBook) {
	e.admin("root")
	u := e.add(store.User{Name: "ann"})
	for _, version := range []int64{0, 2, -1} {
		_, err := e.UpdateUser(e.ctx, store.User{Name: "ann", Version: version, Title: "x"})
		e.wantErr(fmt.Sprint("version ", version), err, store.ErrConflict)
		e.wantErr(fmt.Sprint("removal of version ", version), e.RemoveUser(e.ctx, "ann", version), store.ErrConflict)
	}
	_, err := e.UpdateUser(e.ctx, store.User{Name: "bob", Version: 1})
	e.wantErr("nobody", err, store.ErrNotFound)
	e.wantErr("removal of nobody", e.RemoveUser(e.ctx, "bob", 1), store.ErrNotFound)
	e.wantUser("after that", u)
	var done atomic.Int64
	update := func() {
		if _, err := e.UpdateUser(e.ctx, store.User{Name: "ann", Version: 1, Title: "x"}); err == nil {
			done.Add(1)
		}
	}
	e.race(update, update, update)
	want(e.env, "updates of one version", done.Load(), int64(1))
}

func lastAdmin(e *accountBook) {
	root := e.admin("root")
	e.add(store.User{Name: "ann", Disabled: true, Grants: store.Grants{Admin: true}}) // who is no way out
	e.add(store.User{Name: "bob"})
	demoted, disabled := root, root
	demoted.Admin, disabled.Disabled = false, true
	_, err := e.UpdateUser(e.ctx, demoted)
	e.wantErr("demoted", err, store.ErrLastAdmin)
	_, err = e.UpdateUser(e.ctx, disabled)
	e.wantErr("disabled", err, store.ErrLastAdmin)
	e.wantErr("removed", e.RemoveUser(e.ctx, "root", 1), store.ErrLastAdmin)
	e.wantUser("after that", root)
	e.must(e.RemoveUser(e.ctx, "ann", 1))
	e.admin("eve")
	_, err = e.UpdateUser(e.ctx, demoted)
	e.must(err)
	e.wantErr("the other one", e.RemoveUser(e.ctx, "eve", 1), store.ErrLastAdmin)
}

func lastAdminRace(e *accountBook) {
	for round := range 5 {
		names := []string{fmt.Sprint("a", round), fmt.Sprint("b", round), fmt.Sprint("c", round)}
		var users []store.User
		for _, name := range names {
			users = append(users, e.admin(name))
		}
		if round > 0 { // who is left of the round before
			list, err := e.Users(e.ctx, "", 100)
			e.must(err)
			for _, u := range list {
				if u.Admin && !strings.HasSuffix(u.Name, fmt.Sprint(round)) {
					e.must(e.RemoveUser(e.ctx, u.Name, u.Version))
				}
			}
		}
		var refused atomic.Int64
		e.race(
			func() {
				u := users[0]
				u.Admin = false
				if _, err := e.UpdateUser(e.ctx, u); errors.Is(err, store.ErrLastAdmin) {
					refused.Add(1)
				}
			},
			func() {
				u := users[1]
				u.Disabled = true
				if _, err := e.UpdateUser(e.ctx, u); errors.Is(err, store.ErrLastAdmin) {
					refused.Add(1)
				}
			},
			func() {
				if errors.Is(e.RemoveUser(e.ctx, users[2].Name, 1), store.ErrLastAdmin) {
					refused.Add(1)
				}
			},
		)
		want(e.env, "admins who stayed", refused.Load(), int64(1))
	}
}

func removesUsers(e *accountBook) {
	e.admin("root")
	e.add(store.User{Name: "ann"})
	_, err := e.AddSession(e.ctx, store.Session{User: "ann", Hash: secret("s")}, week)
	e.must(err)
	t, err := e.AddToken(e.ctx, store.Token{User: "ann", Name: "t", Hash: secret("t"), Expires: time.Now().Add(time.Hour)})
	e.must(err)
	e.must(e.RemoveUser(e.ctx, "ann", 1))
	for _, name := range []string{"ann", "", "a\x00", "\xff"} { // what no user is called is no fault of the store
		_, err = e.User(e.ctx, name)
		e.wantErr("the user", err, store.ErrNotFound)
		e.wantErr("its settings", e.SaveSettings(e.ctx, name, ""), store.ErrNotFound)
		e.wantErr("removed again", e.RemoveUser(e.ctx, name, 1), store.ErrNotFound)
		_, err = e.AddSession(e.ctx, store.Session{User: name, Hash: secret("x")}, week)
		e.wantErr("a session of it", err, store.ErrNotFound)
		e.wantErr("an end of one", e.EndSession(e.ctx, name, 1), store.ErrNotFound)
		tokens, err := e.Tokens(e.ctx, name)
		e.must(err)
		sessions, err := e.Sessions(e.ctx, name, week)
		e.must(err)
		_, err = e.Users(e.ctx, name, 10)
		e.must(err)
		want(e.env, "what is left", len(tokens)+len(sessions), 0)
		e.wantErr("an end of a token", e.RemoveToken(e.ctx, name, 1), store.ErrNotFound)
	}
	e.add(store.User{Name: "ann"}) // who has nothing of the other one
	_, _, err = e.Session(e.ctx, secret("s"), week)
	e.wantErr("the session", err, store.ErrNotFound)
	_, _, err = e.Token(e.ctx, t.ID, t.Hash)
	e.wantErr("the token", err, store.ErrNotFound)
}

func rehashesUsers(e *accountBook) {
	u := e.add(store.User{Name: "ann", Title: "Ann", Password: "old", Settings: `{"a":1}`, Grants: store.Grants{Admin: true}})
	e.login("ann", "one")
	e.pass(0)
	log := &changeLog{env: e.env, record: e.record}
	if e.record != nil {
		log.since()
	}
	e.must(e.RehashPassword(log.by("ann"), "ann", "old", "anew"))
	u.Password = "anew"
	e.wantUser("after RehashPassword", u)
	e.wantSessions("after RehashPassword", "ann", "one")
	if e.record != nil {
		log.wantEntries("after RehashPassword")
	}
	u.Title = "Ann B."
	_, err := e.UpdateUser(e.ctx, u)
	e.must(err)
	e.wantSessions("after another title", "ann", "one")
}

func comparesHashes(e *accountBook) {
	u := e.add(store.User{Name: "ann", Password: "old", Grants: store.Grants{Admin: true}})
	for _, old := range []string{"", "other", "OLD", "old\x00", "\xff"} {
		e.wantErr(fmt.Sprintf("in place of %q", old), e.RehashPassword(e.ctx, "ann", old, "anew"), store.ErrConflict)
	}
	for _, name := range []string{"bob", "", "a\x00", "\xff"} {
		e.wantErr("of nobody", e.RehashPassword(e.ctx, name, "", "anew"), store.ErrNotFound)
	}
	for _, hash := range []string{strings.Repeat("x", store.MostHash+1), "a\x00", "\xff"} {
		err := e.RehashPassword(e.ctx, "ann", "old", hash)
		e.check(len(store.FieldErrors(err)) == 1 && !strings.Contains(err.Error(), "xxx"), "a bad hash: %v", err)
	}
	e.wantUser("after that", u)
	for round := range 5 {
		old, changed := u.Password, fmt.Sprint("changed ", round)
		u.Password = changed
		e.race(
			func() {
				_, err := e.UpdateUser(e.ctx, u)
				e.check(err == nil, "UpdateUser beside RehashPassword: %v", err)
			},
			func() {
				err := e.RehashPassword(e.ctx, "ann", old, "anew")
				e.check(err == nil || errors.Is(err, store.ErrConflict), "RehashPassword beside UpdateUser: %v", err)
			},
		)
		var err error
		u, err = e.User(e.ctx, "ann")
		e.must(err)
		want(e.env, "a password that was changed at the same moment", u.Password, changed)
	}
	var made, overtaken atomic.Int64
	var fns []func()
	for i := range 4 {
		fns = append(fns, func() {
			if err := e.RehashPassword(e.ctx, "ann", u.Password, fmt.Sprint("anew ", i)); err == nil {
				made.Add(1)
			} else {
				e.wantErr("one that another has overtaken", err, store.ErrConflict)
				overtaken.Add(1)
			}
		})
	}
	e.race(fns...)
	want(e.env, "hashes made anew at once", []int64{made.Load(), overtaken.Load()}, []int64{1, 3})
}

func savesSettings(e *accountBook) {
	u := e.add(store.User{Name: "ann"})
	u.Settings = `{"theme":"dark","zone":"Asia/Shanghai"}`
	e.must(e.SaveSettings(e.ctx, "ann", u.Settings))
	e.wantUser("after SaveSettings", u)
	u.Settings = ""
	e.must(e.SaveSettings(e.ctx, "ann", ""))
	e.wantUser("after none", u)
	e.wantErr("of nobody", e.SaveSettings(e.ctx, "bob", "{}"), store.ErrNotFound)
}

func recordsUsers(e *accountBook) {
	if e.record == nil {
		return
	}
	log := &changeLog{env: e.env, record: e.record}
	ctx := log.by("root")
	entry := func(object, id, verb, before, after string) store.Change {
		return store.Change{Actor: "root", Client: "10.0.0.1:99", RequestID: "r-1", Verb: verb, Object: object, ObjectID: id, Before: before, After: after}
	}
	text := func(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.999Z07:00") }
	e.admin("other")
	log.since()
	u, err := e.AddUser(ctx, store.User{Name: "ann", Password: "SECRET", Settings: "{}", Grants: store.Grants{Apps: map[string]string{"a": "viewer"}}})
	e.must(err)
	set := text(u.PasswordSet)
	log.wantEntries("after AddUser", entry(store.ObjectUser, "ann", "add", "", `{"Apps":{"a":"viewer"},"PasswordSet":"`+set+`"}`))
	u.Title, u.Admin, u.Apps = "Ann", true, nil
	u, err = e.UpdateUser(ctx, u)
	e.must(err)
	log.wantEntries("after UpdateUser", entry(store.ObjectUser, "ann", "update", `{"Admin":false,"Apps":{"a":"viewer"},"Title":""}`, `{"Admin":true,"Apps":null,"Title":"Ann"}`))
	_, err = e.UpdateUser(ctx, store.User{Name: "ann", Version: 1})
	e.wantErr("an old version", err, store.ErrConflict)
	e.must(e.SaveSettings(ctx, "ann", `{"a":1}`))
	_, err = e.AddSession(ctx, store.Session{User: "ann", Hash: secret("s")}, week)
	e.must(err)
	_, err = e.TryLogin(ctx, "ann")
	e.must(err)
	log.wantEntries("after what has none")
	expires := time.Now().Add(time.Hour).Truncate(time.Millisecond)
	t, err := e.AddToken(ctx, store.Token{User: "ann", Name: "ci", Hash: secret("SECRET"), Expires: expires, Grants: store.Grants{Scripts: true}})
	e.must(err)
	token := `{"Expires":"` + text(expires) + `","Name":"ci","Scripts":true,"User":"ann"}`
	log.wantEntries("after AddToken", entry(store.ObjectToken, fmt.Sprint(t.ID), "add", "", token))
	e.must(e.RemoveToken(ctx, "ann", t.ID))
	log.wantEntries("after RemoveToken", entry(store.ObjectToken, fmt.Sprint(t.ID), "remove", token, ""))
	e.must(e.RemoveUser(ctx, "ann", u.Version))
	log.wantEntries("after RemoveUser", entry(store.ObjectUser, "ann", "remove", `{"Admin":true,"PasswordSet":"`+set+`","Title":"Ann"}`, ""))
}

func accountsInAnEndedContext(e *accountBook) {
	e.admin("root")
	u := e.add(store.User{Name: "ann"})
	ctx, cancel := context.WithCancel(e.ctx)
	cancel()
	_, err := e.AddUser(ctx, store.User{Name: "bob"})
	e.wantErr("AddUser", err, context.Canceled)
	_, err = e.UpdateUser(ctx, store.User{Name: "ann", Version: 1, Title: "x"})
	e.wantErr("UpdateUser", err, context.Canceled)
	e.wantErr("RemoveUser", e.RemoveUser(ctx, "ann", 1), context.Canceled)
	e.wantErr("RehashPassword", e.RehashPassword(ctx, "ann", "", "anew"), context.Canceled)
	_, err = e.AddSession(ctx, store.Session{User: "ann", Hash: secret("s")}, week)
	e.wantErr("AddSession", err, context.Canceled)
	_, err = e.TryLogin(ctx, "ann")
	e.wantErr("TryLogin", err, context.Canceled)
	e.wantUser("after that", u)
	_, err = e.User(e.ctx, "bob")
	e.wantErr("the other one", err, store.ErrNotFound)
}
