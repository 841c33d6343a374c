package storetest

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/xxljob/xxljob/store"
)

// Tokens of apps. A store need not keep any: then these cases say nothing.

func appTokenCases() []testCase {
	with := func(e *env, k store.AppTokenKeeper) *tokened { return &tokened{muting: muting{env: e}, keeper: k} }
	return optionalCases(with, []optional[*tokened]{
		{"ATokenOfAppsIsKept", keepsAppTokens},
		{"ATokenOfAppsExpires", expiresAppTokens},
		{"TheUseOfATokenIsNoted", notesAppTokens},
		{"WhatIsNoTokenOfAppsIsRefused", refusesAppTokens},
		{"EachTokenOfAppsIsRecorded", recordsAppTokens},
	})
}

// tokened is a store that keeps tokens of apps.
type tokened struct {
	muting
	keeper store.AppTokenKeeper
}

// appToken is one that lasts for an hour.
func (e *tokened) appToken(name string, apps ...string) store.AppToken {
	return store.AppToken{Name: name, Apps: apps, Hash: hashNamed(name), Expires: e.storeNow().Add(time.Hour)}
}

// hashNamed is 32 bytes that differ by a name.
func hashNamed(name string) string { return (name + strings.Repeat("\x00\xff", 16))[:store.HashBytes] }

func (e *tokened) add(t store.AppToken) store.AppToken {
	e.Helper()
	got, err := e.keeper.AddAppToken(store.WithActor(e.ctx, "li.na"), t)
	e.must(err)
	return got
}

func (e *tokened) tokens() []store.AppToken {
	e.Helper()
	list, err := e.keeper.AppTokens(e.ctx)
	e.must(err)
	return list
}

func (e *tokened) names() (names []string) {
	e.Helper()
	for _, t := range e.tokens() {
		names = append(names, t.Name)
	}
	return names
}

func keepsAppTokens(e *tokened) {
	now := e.storeNow()
	t := e.appToken("ci 订单", "orders", "b 汇率")
	t.By, t.Used, t.Added, t.Expired = "somebody else", now, now.Add(-time.Hour), true
	got := e.add(t)
	e.add(e.appToken("z", "orders"))
	e.add(e.appToken("a", "orders"))
	list := e.tokens()
	if names := e.names(); !slices.Equal(names, []string{"a", "ci 订单", "z"}) {
		e.Fatalf("the tokens are %q", names)
	}
	if _, err := e.keeper.AddAppToken(e.ctx, e.appToken("a", "billing")); !errors.Is(err, store.ErrConflict) {
		e.Errorf("a second one with a name: %v", err)
	}
	if got.By != "li.na" || got.Added.Before(now.Add(-time.Minute)) || got.Added.After(now.Add(time.Minute)) || !got.Used.IsZero() || got.Expired ||
		!slices.Equal(got.Apps, t.Apps) || got.Hash != t.Hash || !got.Expires.Equal(t.Expires.Truncate(time.Millisecond)) {
		e.Errorf("added is %+v", got)
	}
	if read := list[1]; read.Name != got.Name || !slices.Equal(read.Apps, got.Apps) || read.Hash != got.Hash || !read.Added.Equal(got.Added) || !read.Expires.Equal(got.Expires) || read.By != got.By {
		e.Errorf("read is %+v, stored %+v", read, got)
	}
	list[0].Apps[0] = "changed by who has read it"
	if e.tokens()[0].Apps[0] != "orders" {
		e.Errorf("what is read is what is stored")
	}
	e.must(e.keeper.RemoveAppToken(e.ctx, "ci 订单"))
	if names := e.names(); !slices.Equal(names, []string{"a", "z"}) {
		e.Errorf("the tokens are %q", names)
	}
	for _, name := range []string{"ci 订单", "none", "", "\x00"} {
		if err := e.keeper.RemoveAppToken(e.ctx, name); !errors.Is(err, store.ErrNotFound) {
			e.Errorf("%q: %v", name, err)
		}
	}
	e.add(e.appToken("ci 订单", "orders")) // the name is free again
}

func expiresAppTokens(e *tokened) {
	t := e.appToken("soon", "orders")
	e.soon(func(end time.Time) error {
		t.Expires = end
		_, err := e.keeper.AddAppToken(store.WithActor(e.ctx, "li.na"), t)
		return err
	})
	e.add(e.appToken("later", "orders"))
	e.eventually("a token has expired by itself", func() bool {
		list := e.tokens()
		return len(list) == 2 && !list[0].Expired && list[1].Expired
	})
}

func notesAppTokens(e *tokened) {
	t := e.add(e.appToken("a", "orders"))
	used := func() time.Time { return e.tokens()[0].Used }
	e.must(e.keeper.UseAppToken(e.ctx, "a", hashNamed("another")))
	e.must(e.keeper.UseAppToken(e.ctx, "none", t.Hash))
	if !used().IsZero() {
		e.Errorf("it is said to have been used by who has another hash")
	}
	e.must(e.keeper.UseAppToken(e.ctx, "a", t.Hash))
	first, now := used(), e.storeNow()
	if first.Before(now.Add(-time.Minute)) || first.After(now.Add(time.Minute)) {
		e.Fatalf("used at %v, it is %v", first, now)
	}
	e.must(e.keeper.UseAppToken(e.ctx, "a", t.Hash))
	if !used().Equal(first) {
		e.Errorf("it is written anew within a minute")
	}
}

func refusesAppTokens(e *tokened) {
	many := make([]string, store.MostTokenApps+1)
	for i := range many {
		many[i] = "app" + string(rune('a'+i%26)) + string(rune('a'+i/26))
	}
	for what, change := range map[string]func(*store.AppToken){
		"no name": func(t *store.AppToken) { t.Name = "" }, "a long name": func(t *store.AppToken) { t.Name = strings.Repeat("n", 65) }, "a name that is no text": func(t *store.AppToken) { t.Name = "a\x00" },
		"no apps": func(t *store.AppToken) { t.Apps = nil }, "an app without a name": func(t *store.AppToken) { t.Apps = []string{""} }, "an app twice": func(t *store.AppToken) { t.Apps = []string{"a", "a"} },
		"too many apps": func(t *store.AppToken) { t.Apps = many }, "a short hash": func(t *store.AppToken) { t.Hash = t.Hash[1:] },
		"no end": func(t *store.AppToken) { t.Expires = time.Time{} }, "an end that has passed": func(t *store.AppToken) { t.Expires = e.storeNow().Add(-time.Second) },
	} {
		t := e.appToken("a", "orders")
		change(&t)
		if _, err := e.keeper.AddAppToken(e.ctx, t); len(store.FieldErrors(err)) == 0 {
			e.Errorf("%s: %v", what, err)
		} else if strings.Contains(err.Error(), "\xff") {
			e.Errorf("%s: the error has the hash: %v", what, err)
		}
	}
	if list := e.tokens(); len(list) > 0 {
		e.Errorf("kept is %+v", list)
	}
}

func recordsAppTokens(e *tokened) {
	record, ok := e.Store.(store.ChangeRecord)
	if !ok {
		return
	}
	t := e.add(e.appToken("a", "orders"))
	e.must(e.keeper.UseAppToken(e.ctx, "a", t.Hash))
	if _, err := e.keeper.AddAppToken(e.ctx, e.appToken("a", "orders")); err == nil {
		e.Errorf("a name is there twice")
	}
	e.must(e.keeper.RemoveAppToken(store.WithActor(e.ctx, "li.na"), "a"))
	found, err := record.SearchChanges(e.ctx, store.ChangeSearch{Object: store.ObjectAppToken, ObjectID: "a", Limit: 10})
	e.must(err)
	var verbs []string
	for _, c := range found.Changes {
		verbs = append(verbs, c.Verb+" "+c.App+" "+c.Actor)
		if strings.Contains(c.Before+c.After, "ash") || strings.Contains(c.Before+c.After, t.Hash) {
			e.Errorf("the entry has the hash: %s, %s", c.Before, c.After)
		}
	}
	if want := []string{"remove orders li.na", "add orders li.na"}; !slices.Equal(verbs, want) {
		e.Fatalf("recorded is %q, want %q", verbs, want)
	}
	if c := found.Changes[1]; !strings.Contains(c.After, `"Apps":["orders"]`) || !strings.Contains(c.After, "Expires") {
		e.Errorf("the entry says %s", c.After)
	}
}
