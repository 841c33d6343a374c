package console_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/console"
	"github.com/xxljob/xxljob/internal/test/bent"
	"github.com/xxljob/xxljob/store"
)

// mutes are those that are not over.
func (x *site) mutes() []store.Mute {
	x.Helper()
	return must1(x.store.(store.MuteKeeper).Mutes(x.Context()))
}

// TestMute: an operator mutes a cause and a job, sees who has, and ends it; the overview folds away what is
// muted.
func TestMute(t *testing.T) {
	onBothStores(t, func(t *testing.T) {
		x := newSite(t)
		root := x.admin()
		j := x.job("orders", "nightly")
		oncall := x.user(console.User{Name: "oncall", Apps: map[string]console.Role{"orders": console.Operator}})
		oncall.get("overview").is(200).has("2 things need attention", "No executor", "Mute")
		key := "no-executor/orders"
		oncall.get("mute?"+url.Values{"key": {key}}.Encode()).is(200).has("Mute: No executor", "orders", "the next message is the last")
		oncall.post("mute", url.Values{"key": {key}, "for": {"4h0m0s"}, "note": {"a <deploy>"}}).is(200).has("It is muted", "1 thing needs attention", "Muted: 1", "oncall", "a <deploy>")
		if m := x.mutes(); len(m) != 1 || m[0].By != "oncall" || m[0].App != "orders" || time.Until(m[0].Until).Round(time.Minute) != 4*time.Hour {
			t.Fatalf("muted is %+v", m)
		}
		page := "jobs/" + itoa(j.ID)
		oncall.get(page+"/mute").is(200).has("Mute: All alarms of the job", "nightly")
		oncall.post(page+"/mute", url.Values{"until": {time.Now().UTC().Add(6 * 24 * time.Hour).Format("2006-01-02T15:04:05")}, "tz": {"UTC"}, "note": {"known"}}).is(200).has("It is muted", "Muted until", "oncall", "known")
		root.get("overview").has("Muted: 2", "nightly")
		root.get("changes").has("muted", key, "a <deploy>")
		oncall.get("mute?"+url.Values{"key": {key}}.Encode()).has("Muted until", "Unmute", "a <deploy>")
		oncall.post("mute", url.Values{"key": {key}, "act": {"unmute"}}).is(200).has("It is not muted any more", "2 things need attention", "Muted: 1")
		oncall.post("mute", url.Values{"key": {key}, "act": {"unmute"}}).is(200).has("not muted any more")
		oncall.post(page+"/mute", url.Values{"act": {"unmute"}}).is(200).has("not muted any more").lacks("Muted until")
		if m := x.mutes(); len(m) != 0 {
			t.Errorf("muted is %+v", m)
		}
	})
}

// TestWhatCannotBeMuted: neither for too long, nor for a time that has passed, nor what is not there or
// the user must not mute. Nothing of it is kept, and what was typed stays.
func TestWhatCannotBeMuted(t *testing.T) {
	inMemory(t, func(t *testing.T) {
		x := newSite(t)
		root := x.admin()
		j, other := x.job("orders", "nightly"), x.job("billing", "theirs")
		oncall := x.user(console.User{Name: "oncall", Apps: map[string]console.Role{"orders": console.Operator}})
		viewer := x.user(console.User{Name: "viewer", Apps: map[string]console.Role{"orders": console.Viewer}})
		local := func(d time.Duration) string { return time.Now().UTC().Add(d).Format("2006-01-02T15:04:05") }
		for _, to := range []string{"mute", "jobs/" + itoa(j.ID) + "/mute"} {
			for _, c := range []struct{ field, value, says string }{
				{"until", local(7*24*time.Hour + time.Hour), "at most seven days"}, {"until", local(10 * 365 * 24 * time.Hour), "at most seven days"}, {"until", local(-time.Hour), "a time to come"},
				{"until", "tomorrow", "This is no time"}, {"for", "8h", "for how long"}, {"for", "9999999h", "for how long"}, {"for", "-1h", "for how long"}, {"for", "", "for how long"},
				{"note", strings.Repeat("汇", 86), "At most 255 bytes"}, {"note", "a\x00b", ""},
			} {
				form := url.Values{"key": {"no-executor/orders"}, "tz": {"UTC"}, "for": {"1h0m0s"}}
				form.Set(c.field, c.value)
				oncall.post(to, form)
				if status := oncall.res.StatusCode; status != http.StatusUnprocessableEntity && (c.says != "" || status != http.StatusBadRequest) {
					t.Errorf("%s %s=%.20q: %d", to, c.field, c.value, status)
				}
				if oncall.has(c.says); c.field != "for" && c.says != "" && !strings.Contains(oncall.body, c.value) {
					t.Errorf("%s: %q is not kept", to, c.value)
				}
			}
		}
		hour := func(key string) url.Values { return url.Values{"key": {key}, "for": {"1h0m0s"}} }
		for _, key := range []string{"", "no-executor/none", "no-executor/billing", "job/" + itoa(other.ID), "job/" + itoa(j.ID), strings.Repeat("x", 300), "x\xff"} {
			if oncall.post("mute", hour(key)); oncall.res.StatusCode != 422 && oncall.res.StatusCode != 400 {
				t.Errorf("%q: %d", key, oncall.res.StatusCode)
			}
			oncall.lacks("billing")
		}
		oncall.get("mute?key=no-executor%2Fbilling").is(404)
		oncall.post("jobs/"+itoa(other.ID)+"/mute", hour("")).is(404)
		viewer.post("mute", hour("no-executor/orders")).is(403)
		viewer.post("jobs/"+itoa(j.ID)+"/mute", hour("")).is(403)
		oncall.post("mute", hour("shard-unowned/")).is(403)
		if m := x.mutes(); len(m) != 0 {
			t.Errorf("muted is %+v", m)
		}
		root.post("mute", hour("shard-unowned/")).is(200).has("It is muted")
		root.post("mute", hour("no-executor/billing")).is(200)
		oncall.get("overview").is(200).has("Muted: 1", "Shards without").lacks("billing")
		oncall.post("mute", url.Values{"key": {"no-executor/billing"}, "act": {"unmute"}}).is(422)
		oncall.post("mute", url.Values{"key": {"shard-unowned/"}, "act": {"unmute"}}).is(403)
		if m := x.mutes(); len(m) != 2 {
			t.Errorf("muted is %+v", m)
		}
	})
}

// waitingCounted counts how often what waits is read.
type waitingCounted struct {
	st Store
	n  atomic.Int64
}

func (w *waitingCounted) Waiting(ctx context.Context, after store.Run, limit int) ([]store.Run, error) {
	w.n.Add(1)
	return w.st.Waiting(ctx, after, limit)
}

// TestManyMutes: of however many mutes an overview has the first hundred, and counts the others; and to
// look for causes to mute, of whatever names, reads the cluster once for all who ask at the moment.
func TestManyMutes(t *testing.T) {
	inMemory(t, func(t *testing.T) {
		w := &waitingCounted{}
		x := newSite(t, func(c *console.Config) { w.st = c.Store.(Store); c.Store = bent.WholeOf(w.st, w) })
		root := x.admin()
		x.job("orders", "nightly")
		viewer := x.user(console.User{Name: "viewer", Apps: map[string]console.Role{"orders": console.Viewer}})
		for i := range 130 {
			must1(x.store.(store.MuteKeeper).PutMute(t.Context(), store.Mute{Key: fmt.Sprintf("failing/orders/%d", i), App: "orders", Until: time.Now().Add(time.Hour), Note: strings.Repeat("x", store.MostMuteNote)}))
		}
		root.get("overview").is(200).has("Muted: 130", "30 more are not shown")
		if n := strings.Count(root.body, "mute?key=failing"); n != 100 {
			t.Errorf("%d mutes are shown", n)
		}
		w.n.Store(0)
		for i := range 20 {
			viewer.get("mute?key=nothing" + itoa(int64(i))).is(404)
		}
		if n := w.n.Load(); n > 1 {
			t.Errorf("the cluster was read %d times", n)
		}
	})
}

// TestAMuteTellsNoSecret: the key of a cause, which stands in addresses and in the record, has nothing of the
// error of a secret job.
func TestAMuteTellsNoSecret(t *testing.T) {
	inMemory(t, func(t *testing.T) {
		x := newSite(t)
		root := x.admin()
		must(t, x.s.Handle("work", func(context.Context, *xxljob.Task) error { return errors.New("the password is swordfish") }))
		must(t, x.s.Start(t.Context()))
		j := must1(x.s.AddJob(t.Context(), xxljob.Job{App: "orders", Name: "daily", Handler: "work", Secret: true, Schedule: xxljob.Cron("0 0 3 * * ?")}))
		x.ends(j, xxljob.StateFailed)
		root.get("overview").has("Failing", "Mute")
		_, key, _ := strings.Cut(root.body, `mute?key=failing`)
		key, _, _ = strings.Cut(key, `"`)
		key = "failing" + must1(url.QueryUnescape(key))
		root.post("mute", url.Values{"key": {key}, "for": {"1h0m0s"}}).is(200).has("Muted: 1", "Failing", "daily").lacks("swordfish")
		root.get("changes").lacks("swordfish")
		must(t, x.s.Stop(context.WithoutCancel(t.Context())))
	})
}
