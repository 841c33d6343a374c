package console_test

import (
	"crypto/sha256"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/console"
	"github.com/xxljob/xxljob/store"
)

// appTokens are the tokens of apps that the store has.
func (x *site) appTokens() []store.AppToken {
	x.Helper()
	return must1(x.store.(store.AppTokenKeeper).AppTokens(x.Context()))
}

// victims makes what a route is about that is about neither a job nor a run, where it is not there, and
// returns the id of a token of a user where the route is about one.
func (x *site) victims(pattern string) (token string) {
	x.Helper()
	if strings.HasPrefix(pattern, "users/") {
		if u, err := x.store.User(x.Context(), "victim"); err == nil {
			must(x.T, x.store.RemoveUser(x.Context(), "victim", u.Version))
		}
		must1(x.store.AddUser(x.Context(), store.User{Name: "victim", Title: "Victim", Password: hashed()}))
		must1(x.store.AddSession(x.Context(), store.Session{User: "victim", Hash: console.HashOf("victim")}, anHour))
	}
	if pattern == "tokens/remove" {
		_, _ = x.store.(store.AppTokenKeeper).AddAppToken(x.Context(), store.AppToken{Name: "victim", Apps: []string{"orders", "billing"}, Hash: console.HashOf("victim"), Expires: time.Now().Add(time.Hour)})
	}
	owner, has := map[string]string{"users/tokens/remove": "victim", "account/tokens/remove": "root"}[pattern]
	if !has {
		return ""
	}
	list := must1(x.store.Tokens(x.Context(), owner))
	if len(list) == 0 {
		list = append(list, must1(x.store.AddToken(x.Context(), store.Token{User: owner, Name: "victim", Grants: store.Grants{Admin: true, Apps: map[string]string{"*": "editor"}}, Hash: console.HashOf("of the victim"), Expires: time.Now().Add(time.Hour)})))
	}
	return itoa(list[0].ID)
}

// TestTokens: an admin makes a token, sees its secret once, and revokes it; what is kept of it is its hash.
func TestTokens(t *testing.T) {
	onBothStores(t, func(t *testing.T) {
		x := newSite(t)
		root := x.admin()
		root.get("tokens").is(200).has("There are no tokens here", "From the configuration", "New token")
		if form := root.filled("main"); form.Get("for") != "" || form.Get("until") != "" {
			t.Errorf("the form says for how long before anybody has: %v", form)
		}
		root.post("tokens", url.Values{"name": {"ci 订单"}, "apps": {"orders，b 汇率,"}, "for": {"720h0m0s"}, "password": {password}}).is(200).has("has been made", "shown this once", "ci 订单", "never")
		secret := regexp.MustCompile(`xt_[A-Za-z0-9_-]{43}`).FindString(root.body)
		list := x.appTokens()
		if secret == "" || len(list) != 1 {
			t.Fatalf("the secret is %q, there are %d tokens", secret, len(list))
		}
		hash := sha256.Sum256([]byte(secret))
		if k := list[0]; k.Hash != string(hash[:]) || k.By != "root" || strings.Join(k.Apps, " ") != "orders b 汇率" || time.Until(k.Expires).Round(time.Hour) != 720*time.Hour {
			t.Errorf("kept is %+v", k)
		}
		root.get("tokens").has("ci 订单", "orders, b 汇率", "root").lacks(secret)
		root.get("changes").has("added", "token of apps ci 订单", "Valid until").lacks(secret, "Hash")
		if strings.Contains(x.log.String(), secret) || !strings.Contains(x.log.String(), "a token was made") {
			t.Error("the log has the secret, or nothing of the token")
		}
		root.get("tokens/remove?"+url.Values{"name": {"ci 订单"}}.Encode()).is(200).has("Revoke the token “ci 订单”?", "Within five seconds", "orders, b 汇率")
		root.post("tokens/remove", url.Values{"name": {"ci 订单"}}).is(200).has("has been revoked", "There are no tokens here")
		root.post("tokens/remove", url.Values{"name": {"ci 订单"}}).is(422).has("no such token any more")
		root.get("tokens/remove?name=none").is(422)
		root.get("tokens/remove").is(200).has("New token")
		root.get("changes").has("removed", "token of apps ci 订单")
	})
}

// TestWhatIsNoToken is not kept, and what was typed stays.
func TestWhatIsNoToken(t *testing.T) {
	inMemory(t, func(t *testing.T) {
		x := newSite(t)
		root := x.admin()
		x.victims("tokens/remove")
		for _, c := range []struct{ field, value, says string }{
			{"name", "", "1 to 64 bytes"}, {"name", strings.Repeat("n", 65), "1 to 64 bytes"}, {"name", "victim", "a token with this name"},
			{"apps", "", "names of apps"}, {"apps", "orders, orders", "each once"}, {"apps", strings.Repeat("a", 65), "at most 64 bytes"}, {"apps", strings.Repeat("a,b,", 60), "each once"},
			{"for", "1h", "for how long"}, {"for", "", "for how long"}, {"for", "87600h0m0s", "for how long"}, {"until", "2020-01-01T00:00", "a time to come"}, {"until", "soon", "This is no time"},
		} {
			form := url.Values{"name": {"a"}, "apps": {"orders"}, "for": {"168h0m0s"}, "tz": {"UTC"}, "password": {password}}
			form.Set(c.field, c.value)
			root.post("tokens", form).is(422).has(c.says)
			if c.field != "for" && c.value != "" && !strings.Contains(root.body, c.value) {
				t.Errorf("%q is not kept", c.value)
			}
			root.lacks("xt_")
		}
		if n := len(x.appTokens()); n != 1 {
			t.Errorf("%d tokens", n)
		}
		root.post("tokens", url.Values{"name": {"a"}, "apps": {"orders"}, "until": {time.Now().UTC().Add(2 * time.Hour).Format("2006-01-02T15:04:05")}, "tz": {"UTC"}, "password": {password}}).is(200).has("has been made")
	})
}

// without is a store that keeps neither tokens of apps nor mutes.
type without struct{ store.Store }

// TestTokensThatNobodyKeeps: a store that keeps none is said to, and the tokens of the configuration are
// counted, not told.
func TestTokensThatNobodyKeeps(t *testing.T) {
	inMemory(t, func(t *testing.T) {
		x := newSite(t, func(c *console.Config) {
			c.Store = without{c.Store}
			c.Auth = console.Func(func(*http.Request) (console.User, error) { return console.User{Name: "eve", Admin: true}, nil }, "")
			c.Scheduler = must1(xxljob.New(c.Store, xxljob.Config{App: "orders", Logger: slog.New(slog.DiscardHandler), HTTP: xxljob.HTTPConfig{Tokens: map[string][]string{"": {"shared-and-secret"}, "orders": {"orders-one-secret", "orders-two-secret"}}}}))
		})
		b := x.browser()
		b.get("tokens").is(200).has("This store keeps no tokens", "Shared by all apps", "1 token", "orders", "2 tokens").lacks("secret\"", "-secret", "New token")
		b.post("tokens", url.Values{"name": {"a"}, "apps": {"orders"}, "for": {"168h0m0s"}}).is(501)
		b.post("tokens/remove", url.Values{"name": {"a"}}).is(501)
	})
}

// TestManyTokens: the page of a thousand tokens of a hundred apps each names the first of these and counts
// the others.
func TestManyTokens(t *testing.T) {
	inMemory(t, func(t *testing.T) {
		x := newSite(t)
		root := x.admin()
		keeper := x.store.(store.AppTokenKeeper)
		apps := make([]string, store.MostTokenApps)
		for i := range apps {
			apps[i] = fmt.Sprintf("%064d", i)
		}
		for i := range store.MostAppTokens {
			hash := sha256.Sum256([]byte{byte(i), byte(i >> 8)})
			must1(keeper.AddAppToken(xxljob.WithActor(t.Context(), "root"), store.AppToken{Name: fmt.Sprint("token ", i), Apps: apps, Hash: string(hash[:]), Expires: time.Now().Add(time.Hour)}))
		}
		root.get("tokens").is(200).has("token 999", apps[5], "and 94 more").lacks(apps[6])
		if n := len(root.body); n > 2<<20 {
			t.Errorf("the page has %d bytes", n)
		}
	})
}

// TestTokensWithoutPasswords: where the host says who is logged in, who has no password here, none is asked for.
func TestTokensWithoutPasswords(t *testing.T) {
	inMemory(t, func(t *testing.T) {
		x := newSite(t, func(c *console.Config) {
			c.Auth = console.Func(func(*http.Request) (console.User, error) { return console.User{Name: "eve", Admin: true}, nil }, "")
		})
		b := x.browser()
		b.get("tokens").is(200).has("New token").lacks(`type="password"`)
		b.post("tokens", url.Values{"name": {"a"}, "apps": {"orders"}, "for": {"168h0m0s"}}).is(200).has("has been made")
	})
}
