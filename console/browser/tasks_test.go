package browser

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/xxljob/xxljob"
)

// counted is a hand that counts what it does.
type counted struct {
	mouse
	n int
}

func (h *counted) press(b *tab, what string) {
	b.Helper()
	h.n++
	h.mouse.press(b, what)
}

// TestTenTasks: what somebody wants to know or do who was just called takes no more acts, from the first
// page, than a table of them allows. What counts is what is seen: each answer is a text that is on the
// screen, without a scroll where no act is allowed.
func TestTenTasks(t *testing.T) {
	browser(t)
	t.Parallel()
	x := newSite(t)
	x.user("root")
	ctx := xxljob.WithActor(context.Background(), "wang")
	bad := x.job(xxljob.Job{Name: "Rates", Handler: "fail", Schedule: xxljob.Cron("0 0 3 * * ?")})
	for range 3 {
		x.wait(x.trigger(bad), "it fails", func(r xxljob.Run) bool { return r.State == xxljob.StateFailed })
	}
	bad.Timeout = 30 * time.Second
	_, err := x.s.UpdateJob(ctx, bad)
	must(t, err)
	live := x.trigger(x.job(xxljob.Job{Name: "Reindex", Handler: "talk", Schedule: xxljob.Manual()}))
	x.wait(live, "it runs", func(r xxljob.Run) bool { return r.State == xxljob.StateStarted })
	x.job(xxljob.Job{App: "billing", Name: "Invoices", Handler: "invoice", Schedule: xxljob.Cron("0 0/5 * * * ?")})
	b := newTab(t, x.origin)
	b.looks(combination{"en", "light", 1440}, map[string]string{"xxljob_session": x.session("root")})

	// seen waits for a text within an element, all of it on the screen where nobody has scrolled.
	seen := func(what string, texts ...string) {
		t.Helper()
		for _, text := range texts {
			b.until(text, `[...document.querySelectorAll(`+quoted(what)+`)].some(e => e.innerText.includes(`+quoted(text)+`) && e.getBoundingClientRect().top >= 0 && e.getBoundingClientRect().top < innerHeight)`)
		}
	}
	job := func(id int64) string { return "jobs/" + strconv.FormatInt(id, 10) }
	cause := `.causes li:has(a[href$="` + job(bad.ID) + `"]) `
	for _, task := range []struct {
		name string
		most int
		does func(h hand)
	}{
		{"what fails now", 0, func(h hand) { seen(cause, "Rates", "of the last 3") }},
		{"why", 0, func(h hand) { seen(cause+".error", "deadline exceeded") }},
		{"its log", 1, func(h hand) {
			h.press(b, cause+`.acts a[href$="/log"]`)
			b.says("main", "the rates of ECB do not answer")
		}},
		{"run it again", 2, func(h hand) {
			h.press(b, cause+`.acts a[href$="/again"]`)
			h.press(b, "#again button")
			b.says(".said", "this is the new run")
		}},
		{"who changed it", 1, func(h hand) {
			h.press(b, cause+".culprit a")
			seen(".lastchange", "wang", "Timeout", "30")
		}},
		{"what runs next", 0, func(h hand) { seen("section.card", "Invoices") }},
		{"which executors live", 0, func(h hand) { seen(".tiles li", "executors alive", "1 app has none") }},
		{"why did it not run", 0, func(h hand) { seen(".causes li", "billing") }},
		{"how late are we", 0, func(h hand) { seen(".tiles li", "late, p99", "p50") }},
		{"stop the run", 2, func(h hand) {
			h.press(b, `a[href$="runs/`+strconv.FormatInt(live, 10)+`/kill"]`)
			h.press(b, "#kill button")
			b.says(".said", "asked to stop")
			x.wait(live, "it is killed", func(r xxljob.Run) bool { return r.State == xxljob.StateKilled })
		}},
		{"stop the job", 2, func(h hand) {
			h.press(b, cause+`.acts a[href$="/stop"]`)
			h.press(b, ".door button.danger")
			b.says("main", "stopped")
			if j, err := x.store.Job(ctx, bad.ID); err != nil || !j.Stopped {
				t.Errorf("it is not stopped: %v", err)
			}
		}},
	} {
		b.open(mount + "overview")
		h := &counted{}
		task.does(h)
		if h.n > task.most {
			t.Errorf("%s takes %d acts, and %d are allowed", task.name, h.n, task.most)
		}
	}
}
