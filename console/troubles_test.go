package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/console"
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
