package console_test

import (
	"errors"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/console"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/memory"
)

// troubled is a scheduler with troubles, which cannot do its part, if anything.
type troubled struct {
	xxljob.Scheduler
	list  []xxljob.Trouble
	ready error
}

func (s *troubled) Troubles() []xxljob.Trouble { return s.list }
func (s *troubled) Ready() error               { return s.ready }

// TestTroublesAreSeen: each page says that there are some, one has all of each, in the language of
// the user where it has words; who may not see an app is told of none of its, and who does not see
// all not who holds what.
func TestTroublesAreSeen(t *testing.T) {
	s := &troubled{}
	x := newSite(t, func(c *console.Config) { s.Scheduler, c.Scheduler = c.Scheduler, s })
	root := x.admin()
	root.get("jobs").is(http.StatusOK).lacks("keep runs from being run", "troubles\"")
	root.get("troubles").is(http.StatusOK).has("No troubles")

	s.list = []xxljob.Trouble{
		{Cause: xxljob.TroubleLockedRows, Since: time.Now().Add(-time.Hour), Late: 1204, Holder: "pid 7, user backup", Detail: "rows are held", Remedy: "end it"},
		{Cause: xxljob.TroubleNoExecutor, App: "billing", Since: time.Now(), Detail: "billing has <nobody>"},
		{Cause: "of-a-newer-release", App: "orders", JobID: 4711, Address: "http://10.0.0.1/", Since: time.Now(), Detail: "something else", Remedy: "what the scheduler says"},
	}
	for _, page := range []string{"jobs", "runs", "changes"} {
		root.get(page).has("3 troubles keep runs from being run.", "Locked rows", "No executor", "of-a-newer-release", "See what to do")
	}
	root.get("troubles").has("Locked rows", "1,204", "pid 7, user backup", "rows are held", "pg_terminate_backend", "No executor", "billing has <nobody>",
		"of-a-newer-release", "what the scheduler says", "4711", "http://10.0.0.1/").lacks("3 troubles keep")

	root.get("overview").has("1,204 due runs wait").lacks("oldest for") // which nobody knows

	viewer := x.user(console.User{Name: "viewer", Apps: map[string]console.Role{"orders": console.Viewer}})
	viewer.get("troubles").has("Locked rows", "of-a-newer-release").lacks("pid 7", "billing")
	viewer.get("jobs").has("2 troubles keep runs from being run.").lacks("No executor")

	s.ready = &xxljob.NotReadyError{Reasons: []string{"store-away", "locked-rows"}, Errs: []error{http.ErrHandlerTimeout, http.ErrBodyNotAllowed}}
	root.get("jobs").has("4 troubles", "This node cannot do its part")
	root.get("troubles").has("This node cannot do its part", http.ErrHandlerTimeout.Error()).lacks(http.ErrBodyNotAllowed.Error())
	viewer.get("troubles").has("This node cannot do its part", "The store has reported an error.").lacks(http.ErrHandlerTimeout.Error())
	s.list = []xxljob.Trouble{{Cause: xxljob.TroubleRefused, App: "orders", Since: time.Now(), Detail: "the store refuses a claim: user xxl_jobs"}}
	root.get("troubles").has("user xxl_jobs")
	viewer.get("troubles").has("The store has reported an error.").lacks("xxl_jobs")
	s.list, s.ready = nil, &xxljob.NotReadyError{Reasons: []string{"not-started"}, Errs: []error{http.ErrHandlerTimeout}}
	root.get("jobs").lacks("trouble keeps", "troubles keep")
	x.browser().get("login").is(http.StatusOK).lacks("troubles")
}

// TestTroublesHideTexts: the detail of a trouble may have the text of a run in it, behind words of the
// scheduler: the host is asked about it.
func TestTroublesHideTexts(t *testing.T) {
	s := &troubled{}
	x := newSite(t, func(c *console.Config) {
		s.Scheduler, c.Scheduler = c.Scheduler, s
		c.Redact = func(app string, field console.Field, text string) string {
			return map[bool]string{true: strings.ReplaceAll(text, "swordfish", "●●●"), false: text}[app == "orders" && field == console.FieldResult]
		}
	})
	s.list = []xxljob.Trouble{{Cause: xxljob.TroubleFalseRefusal, App: "orders", Address: "http://10.0.0.1/", Since: time.Now(), Detail: "run 7 was refused all the same: swordfish"}}
	root := x.admin()
	for _, page := range []string{"troubles", "overview"} {
		root.get(page).has("refused all the same: ●●●").lacks("swordfish")
	}
}

// TestADoubtedClockEndsNoSession: while the clock of the store is a month ahead, and the scheduler says so,
// a login deletes no session of anybody, and each is there again when the clock is right. Nobody says so:
// what is over is deleted.
func TestADoubtedClockEndsNoSession(t *testing.T) {
	s, st := &troubled{}, memory.New()
	x := newSiteOn(t, st, func(c *console.Config) { s.Scheduler, c.Scheduler = c.Scheduler, s })
	root := x.admin()
	x.user(console.User{Name: "ann", Admin: true})
	for _, list := range [][]xxljob.Trouble{{{Cause: xxljob.TroubleClock}}, nil} {
		st.GoBy(func() time.Time { return time.Now().Add(31 * 24 * time.Hour) })
		s.list = list
		x.browser().post("login", url.Values{"name": {"ann"}, "password": {password}}).is(http.StatusOK)
		if root.get("jobs"); root.at == "/console/jobs" {
			t.Error("a session of a month ago is one")
		}
		st.GoBy(nil)
		if root.get("jobs"); (root.at == "/console/jobs") != (list != nil) {
			t.Errorf("with the clock right, and troubles %v before, root is at %s", list, root.at)
		}
	}
}

// says is how often a page says one of these as the title of a trouble, or of what is found of it: above all
// pages, in the head of a job or run, on the overview, and where the page is about nothing else.
func (b *browser) says(titles ...string) (n int) {
	body := html.UnescapeString(b.body)
	above := regexp.MustCompile(`(?s)<p class="alert troubled">.*?</p>`).FindString(body)
	above = strings.NewReplacer("</strong> ", "</strong>|", " <a", "|<a", " · ", "|").Replace(above)
	for _, title := range titles {
		n += strings.Count(above, "|"+title+"|") + strings.Count(body, "<strong>"+title+"</strong>") +
			len(regexp.MustCompile(`<h2>`+regexp.QuoteMeta(title)+`( ·|<)`).FindAllString(body, -1))
	}
	return n
}

// TestEachTroubleIsSaidOnce: whatever keeps runs from being run, each page says it, and none says it twice: what
// the overview, the page of executors and the heads of jobs and runs have with more of it is not above them too.
// The title of a window counts all of them.
func TestEachTroubleIsSaidOnce(t *testing.T) {
	s := &troubled{}
	x := newSite(t, func(c *console.Config) { s.Scheduler, c.Scheduler = c.Scheduler, s })
	ctx := t.Context()
	add := func(app string) xxljob.Job {
		return must1(x.s.AddJob(ctx, xxljob.Job{App: app, Name: "nightly of " + app, Handler: "work", Schedule: xxljob.Cron("0 0 3 * * ?")}))
	}
	served, dark := add("orders"), add("billing") // which nobody serves
	must(t, x.store.PutAddresses(ctx, []store.Registration{{App: "orders", Address: "http://10.0.0.7:9999/"}}))
	root := x.admin()
	words := map[string]string{}
	for key, text := range catalogue(t, "en") {
		words[key] = strings.Trim(text, `"`)
	}
	pages := []string{"overview", "jobs", "runs", "changes", "timetable", "executors", "executors?tab=nodes", "executors?app=orders", "executors?app=billing", "troubles", "settings", "jobs/999999"}
	for _, j := range []xxljob.Job{served, dark} {
		pages = append(pages, "jobs/"+itoa(j.ID), "jobs/"+itoa(j.ID)+"/edit", "runs/"+itoa(x.run(j).ID))
	}
	findsDark := append(slices.Clone(pages[len(pages)-3:]), "overview", "executors", "executors?tab=nodes", "executors?app=billing")
	for _, cause := range store.TroubleCauses() {
		titles := []string{words["trouble."+string(cause)]}
		if titles[0] == "" {
			t.Fatalf("%s has no words", cause)
		}
		for _, about := range []xxljob.Trouble{{}, {App: "orders"}, {App: "billing"}, {App: "orders", JobID: served.ID}, {App: "billing", JobID: dark.ID}, {App: "orders", Address: "http://10.0.0.7:9999/"}} {
			also := titles
			if cause == xxljob.TroubleNoExecutor {
				switch {
				case about.App == "":
					continue
				case about.JobID == dark.ID: // of which it is found too that nobody serves its app
					continue
				case about.JobID != 0:
					also = append(also, words["finding.no-handler"])
				}
			}
			about.Cause, about.Since, about.Detail, about.Remedy = cause, time.Now().Add(-time.Hour), "as it is seen", "what to do"
			about.Holder = "pid 7, user backup"
			for _, page := range pages {
				want := 1
				if cause == xxljob.TroubleNoExecutor && about.App == "orders" && slices.Contains(findsDark, page) {
					want++ // the other app has none
				}
				s.list = []xxljob.Trouble{about}
				if n := root.get(page).says(also...); n < 1 || n > want {
					t.Errorf("%s of app %q, job %d: %s says it %d times", cause, about.App, about.JobID, page, n)
				}
				if !strings.Contains(root.body, "<title>(1) ") {
					t.Errorf("%s: the title of %s does not count it", cause, page)
				}
			}
		}
	}
	s.list = []xxljob.Trouble{{Cause: xxljob.TroubleLockedRows, Since: time.Now(), Holder: "pid 7, user backup"}, {Cause: xxljob.TroubleClock, Since: time.Now()}}
	for _, page := range []string{"overview", "jobs/" + itoa(served.ID)} {
		root.get(page).has("Held by pid 7, user backup", "See what to do")
	}
	must1(x.store.(store.MuteKeeper).PutMute(ctx, store.Mute{Key: "clock//0/", Until: time.Now().Add(time.Hour)}))
	if n := root.get("overview").says(words["trouble.clock"]); n != 1 {
		t.Errorf("the overview says %d times what is muted", n)
	}
	nobody := x.user(console.User{Name: "nobody"})
	if n := nobody.get("overview").says(words["trouble.clock"]); n != 1 {
		t.Errorf("to who sees no app the overview says %d times what is about all", n)
	}
}

// TestWhatThisNodeCannotDoIsSaidOnce: it is the first of what needs attention, and counted there; where the node
// tells the others of it, the overview and the job's page do not say that a node fails besides.
func TestWhatThisNodeCannotDoIsSaidOnce(t *testing.T) {
	s := &troubled{}
	x := newSite(t, func(c *console.Config) { s.Scheduler, c.Scheduler = c.Scheduler, s })
	ctx, node := t.Context(), x.s.Stats().Node
	j := must1(x.s.AddJob(ctx, xxljob.Job{App: "orders", Name: "nightly", Handler: "work", Schedule: xxljob.Cron("0 0 3 * * ?")}))
	must(t, x.store.PutAddresses(ctx, []store.Registration{{App: "orders", Address: "http://10.0.0.7:9999/"}}))
	view := must1(x.store.Join(ctx, store.Node{ID: node, Incarnation: "n1"}))
	must1(x.store.TakeShards(ctx, "n1", view.Shards))
	root := x.admin()
	here, there := "This node cannot do its part", "A node cannot do its part"
	root.get("overview").has("All is well")
	for _, fails := range []bool{false, true} {
		must(t, x.store.SetFailing(ctx, "n1", fails))
		for _, reason := range []string{"store-away", "failing", "results", "shards"} {
			if fails && reason != "failing" {
				continue
			}
			s.ready = &xxljob.NotReadyError{Reasons: []string{reason}, Errs: []error{errors.New("what is wrong: <" + reason + ">")}}
			for _, page := range []string{"overview", "jobs", "jobs/" + itoa(j.ID), "executors", "troubles"} {
				if n := root.get(page).says(here, there); n != 1 {
					t.Errorf("%s, told to others %t: %s says it %d times", reason, fails, page, n)
				}
				if !strings.Contains(root.body, "<title>(1) ") {
					t.Errorf("%s: the title of %s does not count it", reason, page)
				}
			}
			root.get("overview").has("1 thing needs attention", here+" what is wrong: <"+reason+">", "Look at this process", "See what to do").lacks("mute?key")
			if counted := root.presets(); !strings.HasSuffix(counted, "| 1") {
				t.Errorf("%s: the rail counts %s", reason, counted)
			}
		}
	}
	s.ready = nil
	root.get("overview").has("1 thing needs attention", there)
}
