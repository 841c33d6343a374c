package storetest

import (
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/xxljob/xxljob/store"
)

// login begins a session of a user.
func (e *accountBook) login(user, hash string) store.Session {
	e.Helper()
	s, err := e.AddSession(e.ctx, store.Session{User: user, Hash: secret(hash)}, week)
	e.must(err)
	return s
}

// wantSessions checks which sessions a user has, by their secrets.
func (e *accountBook) wantSessions(what, user string, hashes ...string) {
	e.Helper()
	list, err := e.Sessions(e.ctx, user, week)
	e.must(err)
	var got []string
	for _, s := range list {
		got = append(got, strings.TrimSpace(s.Hash))
	}
	want(e.env, what+": sessions of "+user, got, hashes)
}

func keepsSessions(e *accountBook) {
	u := e.add(store.User{Name: "ann", Title: "Ann", Grants: store.Grants{Apps: map[string]string{"a": "viewer"}}})
	bytes := secret("\x00\xff\x01") // a hash is no text
	s, err := e.AddSession(e.ctx, store.Session{ID: 99, User: "ann", Hash: bytes, Client: "10.0.0.1:99", Agent: "Browser\x1b[1m " + strings.Repeat("x", 300)}, week)
	e.must(err)
	e.check(s.ID > 0 && !s.Began.IsZero() && s.Seen.Equal(s.Began) && s.Proved.Equal(s.Began), "what AddSession returns: %+v", s)
	want(e.env, "given", []string{s.User, s.Hash, s.Client}, []string{"ann", bytes, "10.0.0.1:99"})
	e.check(len(s.Agent) == store.MostAgent && strings.HasPrefix(s.Agent, "Browser?[1m xx"), "agent %q", s.Agent)
	got, user, err := e.Session(e.ctx, bytes, week)
	e.must(err)
	want(e.env, "the session", got, s)
	want(e.env, "its user", user, u)
	_, err = e.AddSession(e.ctx, store.Session{User: "ann", Hash: bytes}, week)
	e.wantErr("the same secret", err, store.ErrConflict)
}

func refusesSessions(e *accountBook) {
	e.admin("root")
	e.add(store.User{Name: "ann", Disabled: true})
	for _, user := range []string{"ann", "bob", ""} {
		_, err := e.AddSession(e.ctx, store.Session{User: user, Hash: secret("s")}, week)
		e.wantErr("of "+user, err, store.ErrNotFound)
	}
	_, err := e.AddSession(e.ctx, store.Session{User: "root", Hash: "short"}, week)
	e.check(err != nil, "a short secret")
	for _, limits := range []store.SessionLimits{{}, {Idle: time.Hour}, {Most: time.Hour}, {Idle: time.Hour, Most: time.Hour, Note: -1}} {
		_, err = e.AddSession(e.ctx, store.Session{User: "root", Hash: secret("s")}, limits)
		e.check(err != nil, "AddSession with %+v", limits)
		_, _, err = e.Session(e.ctx, secret("s"), limits)
		e.check(err != nil, "Session with %+v", limits)
		_, err = e.Sessions(e.ctx, "root", limits)
		e.check(err != nil, "Sessions with %+v", limits)
	}
	_, _, err = e.Session(e.ctx, secret("s"), week)
	e.wantErr("none of these", err, store.ErrNotFound)
}

func endsSessionsUnused(e *accountBook) {
	e.add(store.User{Name: "ann"})
	e.login("ann", "s")
	e.pass(50 * time.Millisecond)
	for what, short := range map[string]store.SessionLimits{
		"idle": {Idle: 50 * time.Millisecond, Most: time.Hour},
		"most": {Idle: time.Hour, Most: 50 * time.Millisecond},
	} {
		_, _, err := e.Session(e.ctx, secret("s"), short)
		e.wantErr("by "+what, err, store.ErrNotFound)
		list, err := e.Sessions(e.ctx, "ann", short)
		e.must(err)
		want(e.env, "sessions by "+what, len(list), 0)
	}
	_, _, err := e.Session(e.ctx, secret("s"), week) // nothing has forgotten it yet
	e.must(err)
	_, err = e.AddSession(e.ctx, store.Session{User: "ann", Hash: secret("t")}, store.SessionLimits{Idle: time.Hour, Most: 50 * time.Millisecond})
	e.must(err)
	e.wantSessions("after another one, which forgets", "ann", "t")
}

// doubtsTheClock: what a clock that is not trusted has ended is there again, whoever logs in meanwhile.
func doubtsTheClock(e *accountBook) {
	e.add(store.User{Name: "ann"})
	e.add(store.User{Name: "bob"})
	ann := e.login("ann", "s")
	e.pass(50 * time.Millisecond)
	doubted := store.SessionLimits{Idle: 50 * time.Millisecond, Most: 50 * time.Millisecond, Doubted: true}
	_, err := e.AddSession(e.ctx, store.Session{User: "bob", Hash: secret("t")}, doubted)
	e.must(err)
	_, _, err = e.Session(e.ctx, secret("s"), doubted)
	e.wantErr("by a clock that is doubted", err, store.ErrNotFound)
	e.wantSessions("afterwards", "ann", "s")
	got, _, err := e.Session(e.ctx, secret("s"), week)
	e.must(err)
	want(e.env, "the session", got, ann)
}

func endsSessionsOfUsers(e *accountBook) {
	e.admin("root")
	u := e.add(store.User{Name: "ann", Password: "old"})
	e.login("root", "r")
	e.login("ann", "one")
	e.login("ann", "two")
	u.Title = "Ann"
	u, err := e.UpdateUser(e.ctx, u)
	e.must(err)
	e.wantSessions("after another title", "ann", "two", "one")
	u.Password = "new"
	u, err = e.UpdateUser(e.ctx, u)
	e.must(err)
	e.wantSessions("after another password", "ann")
	e.login("ann", "three")
	u.Disabled = true
	_, err = e.UpdateUser(e.ctx, u)
	e.must(err)
	_, _, err = e.Session(e.ctx, secret("three"), week)
	e.wantErr("of a disabled user", err, store.ErrNotFound)
	e.wantSessions("after all of it", "root", "r")
}

func endsSessions(e *accountBook) {
	e.add(store.User{Name: "ann"})
	e.add(store.User{Name: "bob"})
	one, two := e.login("ann", "one"), e.login("ann", "two")
	e.login("bob", "three")
	e.wantErr("another's", e.EndSession(e.ctx, "bob", one.ID), store.ErrNotFound)
	e.must(e.EndSession(e.ctx, "ann", one.ID))
	e.wantErr("again", e.EndSession(e.ctx, "ann", one.ID), store.ErrNotFound)
	_, _, err := e.Session(e.ctx, secret("one"), week)
	e.wantErr("the one that was ended", err, store.ErrNotFound)
	e.wantErr("its password", e.ProveSession(e.ctx, secret("one")), store.ErrNotFound)
	e.wantSessions("after that", "ann", "two")
	e.wantSessions("after that", "bob", "three")
	e.pass(0)
	e.must(e.ProveSession(e.ctx, secret("two")))
	got, _, err := e.Session(e.ctx, secret("two"), week)
	e.must(err)
	e.check(got.Proved.After(two.Proved) && got.Began.Equal(two.Began), "proved %v, before %v", got.Proved, two.Proved)
}

func boundsSessions(e *accountBook) {
	e.add(store.User{Name: "ann"})
	e.add(store.User{Name: "bob"})
	e.login("bob", "b")
	for i := range store.MostSessions + 1 {
		e.login("ann", fmt.Sprint(i))
	}
	list, err := e.Sessions(e.ctx, "ann", week)
	e.must(err)
	want(e.env, "sessions", len(list), store.MostSessions)
	_, _, err = e.Session(e.ctx, secret(fmt.Sprint(store.MostSessions)), week)
	e.must(err)
	e.wantSessions("after that", "bob", "b")
}

func boundsSessionsAtOnce(e *accountBook) {
	e.add(store.User{Name: "ann"})
	for i := range store.MostSessions - 2 {
		e.login("ann", fmt.Sprint(i))
	}
	for round := range 5 {
		var fns []func()
		for i := range 6 {
			fns = append(fns, func() { e.login("ann", fmt.Sprint("at once ", round, i)) })
		}
		e.race(fns...)
		list, err := e.Sessions(e.ctx, "ann", week)
		e.must(err)
		want(e.env, "sessions", len(list), store.MostSessions)
	}
}

func seesSessions(e *accountBook) {
	e.add(store.User{Name: "ann"})
	one := e.login("ann", "one")
	e.login("ann", "two")
	e.pass(0)
	got, _, err := e.Session(e.ctx, secret("one"), week)
	e.must(err)
	want(e.env, "seen, when that is known", got.Seen, one.Seen)
	fine := week
	fine.Note = time.Millisecond
	got, _, err = e.Session(e.ctx, secret("one"), fine)
	e.must(err)
	e.check(got.Seen.After(one.Seen), "seen %v, before %v", got.Seen, one.Seen)
	again, _, err := e.Session(e.ctx, secret("one"), week)
	e.must(err)
	want(e.env, "seen, after that", again.Seen, got.Seen)
	e.wantSessions("in order of that", "ann", "one", "two")
}

// token inserts a token that expires in so long.
func (e *accountBook) token(user, name string, expires time.Duration) store.Token {
	e.Helper()
	t, err := e.AddToken(e.ctx, store.Token{User: user, Name: name, Hash: secret(name), Expires: time.Now().Add(expires)})
	e.must(err)
	return t
}

func keepsTokens(e *accountBook) {
	u := e.add(store.User{Name: "ann"})
	e.add(store.User{Name: "bob"})
	expires := time.Now().Add(time.Hour)
	t, err := e.AddToken(e.ctx, store.Token{ID: 99, User: "ann", Name: "ci 1", Hash: secret("\xfe"), Expires: expires,
		Grants: store.Grants{Admin: true, Apps: map[string]string{"a": "operator"}, Scripts: true}})
	e.must(err)
	e.check(t.ID > 0 && !t.Added.IsZero() && t.Used.IsZero() && t.Expires.Equal(expires.Truncate(time.Millisecond)), "what AddToken returns: %+v", t)
	want(e.env, "its rights", t.Grants, store.Grants{Admin: true, Apps: map[string]string{"a": "operator"}, Scripts: true})
	list, err := e.Tokens(e.ctx, "ann")
	e.must(err)
	want(e.env, "tokens", list, []store.Token{t})
	_, _, err = e.Token(e.ctx, t.ID, secret("another"))
	e.wantErr("by another secret", err, store.ErrNotFound)
	list, err = e.Tokens(e.ctx, "ann")
	e.must(err)
	want(e.env, "tokens, that nobody has used", list, []store.Token{t})
	got, user, err := e.Token(e.ctx, t.ID, t.Hash)
	e.must(err)
	e.check(!got.Used.IsZero(), "its use is not noted")
	want(e.env, "its user", user, u)
	used := got.Used
	got.Used = time.Time{}
	want(e.env, "the token", got, t)
	e.pass(0)
	got, _, err = e.Token(e.ctx, t.ID, t.Hash)
	e.must(err)
	want(e.env, "its use, within an hour", got.Used, used)
	second := e.token("ann", "two", time.Hour)
	list, err = e.Tokens(e.ctx, "ann")
	e.must(err)
	e.check(len(list) == 2 && list[0].ID == t.ID && list[1].ID == second.ID && second.ID > t.ID, "tokens in order of ID: %+v", list)
	e.wantErr("another's", e.RemoveToken(e.ctx, "bob", t.ID), store.ErrNotFound)
	e.must(e.RemoveToken(e.ctx, "ann", t.ID))
	e.wantErr("again", e.RemoveToken(e.ctx, "ann", t.ID), store.ErrNotFound)
	_, _, err = e.Token(e.ctx, t.ID, t.Hash)
	e.wantErr("one that was removed", err, store.ErrNotFound)
	_, _, err = e.Token(e.ctx, second.ID, second.Hash)
	e.must(err)
}

func checksTokens(e *accountBook) {
	e.add(store.User{Name: "ann"})
	good := store.Token{User: "ann", Name: "ci", Hash: secret("s"), Expires: time.Now().Add(time.Hour)}
	for what, change := range map[string]func(*store.Token){
		"no name":      func(t *store.Token) { t.Name = "" },
		"a long name":  func(t *store.Token) { t.Name = strings.Repeat("x", 65) },
		"markup":       func(t *store.Token) { t.Name = "<b>" },
		"no hash":      func(t *store.Token) { t.Hash = "" },
		"a short hash": func(t *store.Token) { t.Hash = "short" },
		"no end":       func(t *store.Token) { t.Expires = time.Time{} },
		"a far end":    func(t *store.Token) { t.Expires = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC) },
		"no role":      func(t *store.Token) { t.Apps = map[string]string{"a": ""} },
	} {
		bad := good
		change(&bad)
		_, err := e.AddToken(e.ctx, bad)
		e.check(len(store.FieldErrors(err)) == 1, "%s: %v", what, err)
	}
	good.User = "bob"
	_, err := e.AddToken(e.ctx, good)
	e.wantErr("of nobody", err, store.ErrNotFound)
	list, err := e.Tokens(e.ctx, "ann")
	e.must(err)
	want(e.env, "tokens", len(list), 0)
}

func expiresTokens(e *accountBook) {
	e.add(store.User{Name: "ann"})
	t := e.token("ann", "ci", 30*time.Millisecond)
	e.pass(30 * time.Millisecond)
	_, _, err := e.Token(e.ctx, t.ID, t.Hash)
	e.wantErr("one that has expired", err, store.ErrNotFound)
	list, err := e.Tokens(e.ctx, "ann")
	e.must(err)
	want(e.env, "tokens, expired ones too", len(list), 1)
}

func endsTokensOfUsers(e *accountBook) {
	e.admin("root")
	u := e.add(store.User{Name: "ann"})
	t := e.token("ann", "ci", time.Hour)
	u.Disabled = true
	u, err := e.UpdateUser(e.ctx, u)
	e.must(err)
	_, _, err = e.Token(e.ctx, t.ID, t.Hash)
	e.wantErr("of a disabled user", err, store.ErrNotFound)
	u.Disabled = false
	_, err = e.UpdateUser(e.ctx, u)
	e.must(err)
	_, _, err = e.Token(e.ctx, t.ID, t.Hash)
	e.must(err)
}

func boundsTokens(e *accountBook) {
	e.add(store.User{Name: "ann"})
	e.add(store.User{Name: "bob"})
	for i := range store.MostTokens - 2 {
		e.token("ann", fmt.Sprint(i), time.Hour)
	}
	var made, refused atomic.Int64
	add := func() {
		_, err := e.AddToken(e.ctx, store.Token{User: "ann", Name: "x", Hash: secret("x"), Expires: time.Now().Add(time.Hour)})
		if err == nil {
			made.Add(1)
		} else {
			e.wantErr("one too many", err, store.ErrTooManyTokens)
			refused.Add(1)
		}
	}
	e.race(add, add, add, add)
	want(e.env, "the last that there was room for", made.Load(), int64(2))
	want(e.env, "those that there was none for", refused.Load(), int64(2))
	e.token("bob", "x", time.Hour)
}

func triesWait(e *accountBook) {
	try := func() time.Duration {
		e.Helper()
		wait, err := e.TryLogin(e.ctx, "ann")
		e.must(err)
		return wait
	}
	for i := range store.FreeTries {
		want(e.env, fmt.Sprint("wait of try ", i+1), try(), 0)
	}
	for range 3 { // those that wait count for nothing
		wait := try()
		e.check(wait > 0 && wait <= time.Second, "wait after %d: %v", store.FreeTries, wait)
	}
	e.must(e.PassLogin(e.ctx, "ann"))
	want(e.env, "wait after one that succeeded", try(), 0)
	e.must(e.PassLogin(e.ctx, "bob"))
}

func triesAtOnce(e *accountBook) {
	var fns []func()
	var may atomic.Int64
	for range 4 * store.FreeTries {
		fns = append(fns, func() {
			wait, err := e.TryLogin(e.ctx, "ann")
			e.check(err == nil, "TryLogin: %v", err)
			if err == nil && wait == 0 {
				may.Add(1)
			}
		})
	}
	began := time.Now()
	e.race(fns...)
	late := time.Since(began)
	e.check(may.Load() == store.FreeTries || late >= time.Second, "%d of %d tries at once did not wait, want %d", may.Load(), len(fns), store.FreeTries)
}

func triesOfOthers(e *accountBook) {
	for range store.FreeTries + 1 {
		_, err := e.TryLogin(e.ctx, "ann")
		e.must(err)
	}
	wait, err := e.TryLogin(e.ctx, "bob")
	e.must(err)
	want(e.env, "wait of another name", wait, 0)
	e.must(e.PassLogin(e.ctx, "bob"))
	wait, err = e.TryLogin(e.ctx, "ann")
	e.must(err)
	e.check(wait > 0, "another's success has let it through")
}
