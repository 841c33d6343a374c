package console_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/console"
	"github.com/xxljob/xxljob/internal/test/bent"
	"github.com/xxljob/xxljob/store"
)

const aPreview = "preview?type=CRON&conf=0+0+3+*+*+%3F"

// statuses are what a page is answered that is asked for so many times.
func (b *browser) statuses(n int, ask func()) (answers map[int]int) {
	answers = map[int]int{}
	for range n {
		ask()
		answers[b.res.StatusCode]++
	}
	return answers
}

// TestPreviewsArePaced: five a second for each who asks, and who is told to wait and does, is
// answered.
func TestPreviewsArePaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newSite(t)
		root := x.admin()
		show := func(b *browser) func() { return func() { b.get(aPreview) } }
		if got := root.statuses(9, show(root)); got[200] != 5 || got[429] != 4 {
			t.Errorf("answers %v, want 5 previews", got)
		}
		if after := root.res.Header.Get("Retry-After"); after != "1" {
			t.Errorf("Retry-After: %q", after)
		}
		root.has("Too many requests. Try again in 1 second.").lacks("03:00")
		root.header.Set("Accept-Language", "zh-TW")
		root.get(aPreview).is(429).has("請在 1 秒後重試")
		root.header.Set("HX-Request", "true")
		root.header.Set("HX-Request-Type", "partial")
		root.get(aPreview).is(429).lacks("<html")
		root.header = http.Header{}

		// Another user has another five; another session and a token of the same user have none.
		ann := x.user(console.User{Name: "ann", Apps: map[string]console.Role{"orders": console.Viewer}})
		again := x.session("root", "another browser")
		token := x.bearer("root", store.Grants{Admin: true})
		for b, want := range map[*browser]int{ann: 5, again: 0, token: 0} {
			if got := b.statuses(6, show(b)); got[200] != want || got[429] != 6-want {
				t.Errorf("answers %v, want %d previews", got, want)
			}
		}

		time.Sleep(time.Second)
		if got := root.statuses(9, show(root)); got[200] != 5 {
			t.Errorf("a second later: answers %v", got)
		}
		time.Sleep(200 * time.Millisecond)
		if got := root.statuses(3, show(root)); got[200] != 1 {
			t.Errorf("a fifth of a second later: answers %v", got)
		}
		time.Sleep(time.Hour)
		if got := root.statuses(9, show(root)); got[200] != 5 {
			t.Errorf("an hour later: answers %v", got)
		}
		root.get("jobs").is(200) // pages are not previews
	})
}

// TestPreviewsOfForms: without scripts the form is sent for its preview, which counts like any
// other, and nothing that was typed is lost.
func TestPreviewsOfForms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newSite(t)
		root := x.admin()
		j := x.job("orders", "nightly")
		forms := map[string]url.Values{"jobs/new": root.newForm("handler", "typed", "show", "preview")}
		edit := "jobs/" + itoa(j.ID) + "/edit"
		forms[edit] = with(root.get(edit).filled("jobform"), "handler", "typed", "show", "preview")
		for path, form := range forms {
			time.Sleep(time.Second)
			if got := root.statuses(6, func() { root.post(path, form) }); got[200] != 5 || got[429] != 1 {
				t.Errorf("%s: answers %v", path, got)
			}
			root.has("Too many requests.")
			if got := root.filled("jobform").Get("handler"); got != "typed" {
				t.Errorf("%s: the handler is %q", path, got)
			}
			if root.get(aPreview); root.res.StatusCode != 429 {
				t.Errorf("%s: what the script asks for is counted apart", path)
			}
		}
	})
}

// TestWholeLogsArePaced: looking through all of a log, taking it along, and looking through the texts of
// all runs.
func TestWholeLogsArePaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newSite(t)
		root := x.admin()
		r := x.run(x.job("orders", "nightly"))
		at := "runs/" + itoa(r.ID) + "/log"
		n := 0
		got := root.statuses(30, func() {
			n++
			root.get([]string{at + "/file", at + "?find=x", "runs?text=zzz"}[n%3])
		})
		if got[429] != 10 {
			t.Errorf("answers %v, want 20 in all that are no 429", got)
		}
		root.get(at).is(200) // a part of it is not all of it
		root.get("runs?text=zzz").is(429)
		time.Sleep(500 * time.Millisecond)
		root.get(at + "?find=x").is(200)
		root.get(at + "?find=x").is(429)
	})
}

// TestPaceOfTheHosts: users whom the host names are told apart by their names.
func TestPaceOfTheHosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newSite(t, func(c *console.Config) {
			c.Auth = console.Func(func(r *http.Request) (console.User, error) {
				return console.User{Name: r.Header.Get("User"), Admin: true}, nil
			}, "")
		})
		ask := func(name string) int {
			r := httptest.NewRequest(http.MethodGet, "/console/"+aPreview, nil)
			r.Header.Set("User", name)
			w := httptest.NewRecorder()
			x.host.ServeHTTP(w, r)
			return w.Code
		}
		for range 5 {
			ask("ann")
		}
		if a, b := ask("ann"), ask("bob"); a != 429 || b != 200 {
			t.Errorf("%d and %d", a, b)
		}
	})
}

// TestManyAtOnce: of those who ask at the same moment no more are answered than one after the
// other.
func TestManyAtOnce(t *testing.T) {
	atOnce(t)
	synctest.Test(t, func(t *testing.T) {
		p := console.NewPacer(200*time.Millisecond, 5)
		var all sync.WaitGroup
		var mu sync.Mutex
		answered := 0
		for range 100 {
			all.Go(func() {
				if p.Wait("ann") == 0 {
					mu.Lock()
					answered++
					mu.Unlock()
				}
			})
		}
		all.Wait()
		if answered != 5 {
			t.Errorf("%d were answered", answered)
		}
		if w := p.Wait("ann"); w != 200*time.Millisecond {
			t.Errorf("the next waits for %v", w)
		}
		time.Sleep(200*time.Millisecond - 1)
		if w := p.Wait("ann"); w != 1 {
			t.Errorf("the next waits for %v more", w)
		}
		time.Sleep(time.Nanosecond)
		if w := p.Wait("ann"); w != 0 {
			t.Errorf("the next waits for %v though it has waited", w)
		}
	})
}

// TestPacesAreForgotten: however many ask, so many are remembered at most; who has to wait is not
// among the first to be forgotten.
func TestPacesAreForgotten(t *testing.T) {
	inTurn(t)
	synctest.Test(t, func(t *testing.T) {
		p := console.NewPacer(200*time.Millisecond, 5)
		name := func(n int) string { return strings.Repeat("x", 50) + itoa(int64(n)) }
		for n := range 10_100 {
			p.Wait(name(n))
			if k := p.Kept(); k > 10_000 {
				t.Fatalf("%d are remembered after %d", k, n)
			}
		}
		time.Sleep(200 * time.Millisecond)
		for p.Wait("busy") == 0 {
		}
		for n := range 20_000 {
			if n%5000 == 0 { // those before have nothing left to wait for
				time.Sleep(200 * time.Millisecond)
				p.Wait("busy")
			}
			p.Wait(name(n))
		}
		if p.Wait("busy") == 0 {
			t.Error("who has to wait was forgotten before those who have not")
		}
	})
}

// TestPagesAtATime: a user in whatever sessions has three pages under way, and one search for a text
// in runs; who comes with more waits for a moment, and others have theirs meanwhile.
func TestPagesAtATime(t *testing.T) {
	atOnce(t)
	for page, most := range map[string]int{"runs?state=bad": 3, "runs?text=zzz": 1} {
		synctest.Test(t, func(t *testing.T) {
			w := &watched{}
			x := newSite(t, watch(w))
			browsers := []*browser{x.admin()}
			for i := range 7 {
				browsers = append(browsers, x.session("root", "browser "+itoa(int64(i))))
			}
			ann := x.user(console.User{Name: "ann", Apps: map[string]console.Role{"orders": console.Viewer}})
			w.late.Store(int64(5 * time.Second))
			var answers sync.Map
			var wg sync.WaitGroup
			for i, b := range browsers {
				wg.Go(func() { answers.Store(i, b.get(page+"&job="+itoa(int64(i+1))).res.StatusCode) })
			}
			time.Sleep(time.Second)
			ann.get(page).is(http.StatusOK)
			wg.Wait()
			got := map[int]int{}
			answers.Range(func(_, status any) bool { got[status.(int)]++; return true })
			if got[200] != most || got[429] != len(browsers)-most {
				t.Errorf("%s: answers %v, want %d pages", page, got, most)
			}
		})
	}
}

// TestHealthIsPaced: nobody has to log in for it, and it asks the store.
func TestHealthIsPaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newSite(t)
		b, other := x.browser(), x.browser()
		b.from, other.from = "203.0.113.1:1", "203.0.113.2:1"
		for range 20 {
			b.get("health").is(200)
		}
		b.get("health").is(429)
		other.get("health").is(200)
		time.Sleep(time.Second)
		for range 5 {
			b.get("health").is(200)
		}
		b.get("health").is(429)
	})
}

// readsOfJobs takes a while for each job and each run that is read, and counts how many are read at a
// time.
type readsOfJobs struct {
	st        Store
	late      atomic.Bool
	mu        sync.Mutex
	now, most int // guarded by mu
}

func (s *readsOfJobs) count(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now += n
	s.most = max(s.most, s.now)
}

// read takes the while, where it is to.
func (s *readsOfJobs) read() {
	if s.late.Load() {
		s.count(1)
		defer s.count(-1)
		time.Sleep(5 * time.Second)
	}
}

func (s *readsOfJobs) Job(ctx context.Context, id int64) (xxljob.Job, error) {
	s.read()
	return s.st.Job(ctx, id)
}

func (s *readsOfJobs) Run(ctx context.Context, id int64) (xxljob.Run, error) {
	s.read()
	return s.st.Run(ctx, id)
}

// TestJobsReadAtATime: a user has a place before the job or the run is read that is asked about, which
// may be large: for a page, for a file, and for one that takes minutes.
func TestJobsReadAtATime(t *testing.T) {
	atOnce(t)
	for page, most := range map[string]int{"jobs/%d": 3, "jobs/%d/export": 3, "runs/%d/log/file": 6} {
		synctest.Test(t, func(t *testing.T) {
			s := &readsOfJobs{}
			x := newSite(t, func(c *console.Config) { s.st = c.Store.(Store); c.Store = bent.WholeOf(s.st, s) })
			j := x.job("orders", "nightly")
			id := j.ID
			if strings.HasPrefix(page, "runs") {
				id = x.run(j).ID
			}
			browsers := []*browser{x.admin()}
			for i := range 9 {
				browsers = append(browsers, x.session("root", "browser "+itoa(int64(i))))
			}
			s.late.Store(true)
			var answered atomic.Int64
			var wg sync.WaitGroup
			for _, b := range browsers {
				wg.Go(func() {
					if b.get(fmt.Sprintf(page, id)).res.StatusCode != http.StatusTooManyRequests {
						answered.Add(1)
					}
				})
			}
			wg.Wait()
			if s.most != most || answered.Load() != int64(most) {
				t.Errorf("%s: %d at a time, %d answered, want %d", page, s.most, answered.Load(), most)
			}
		})
	}
}

// readsOfRuns takes a while for each search for runs, whether or not somebody waits for it.
type readsOfRuns struct{ readsOfJobs }

func (s *readsOfRuns) SearchRuns(ctx context.Context, q xxljob.RunSearch) (xxljob.RunsFound, error) {
	s.count(1)
	defer s.count(-1)
	time.Sleep(4 * time.Second)
	return s.st.SearchRuns(ctx, q)
}

// TestReadingsOfThoseWhoLeave: who asks for parts of pages again and again and does not wait for an
// answer has no more under way than who waits.
func TestReadingsOfThoseWhoLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &readsOfRuns{}
		x := newSite(t, func(c *console.Config) { s.st = c.Store.(Store); c.Store = bent.WholeOf(s.st, s) })
		root := x.admin()
		var wg sync.WaitGroup
		for i := range 30 {
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			r := httptest.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprint("http://host.example/console/runs?job=", i+1), nil)
			r.AddCookie(root.cookies["xxljob_session"])
			r.Header.Set("HX-Request", "true")
			r.Header.Set("HX-Request-Type", "partial")
			wg.Go(func() { x.host.ServeHTTP(httptest.NewRecorder(), r) })
			time.Sleep(50 * time.Millisecond)
		}
		wg.Wait()
		if s.most != 3 {
			t.Errorf("%d are under way at a time, want 3", s.most)
		}
	})
}

// readsOfSessions takes a while for each session that is looked up.
type readsOfSessions struct{ readsOfJobs }

func (s *readsOfSessions) Session(ctx context.Context, hash string, l store.SessionLimits) (store.Session, store.User, error) {
	if s.late.Load() {
		s.count(1)
		defer s.count(-1)
		time.Sleep(time.Second)
	}
	return s.st.Session(ctx, hash, l)
}

// TestSessionsOfNobody: however many come with cookies that are nobody's, the store is asked about four
// of a network at a time, and who comes from elsewhere does not wait behind them.
func TestSessionsOfNobody(t *testing.T) {
	atOnce(t)
	synctest.Test(t, func(t *testing.T) {
		s := &readsOfSessions{}
		x := newSite(t, func(c *console.Config) { s.st = c.Store.(Store); c.Store = bent.WholeOf(s.st, s) })
		root := x.admin()
		root.from = "198.51.100.1:1"
		s.late.Store(true)
		var wg sync.WaitGroup
		for range 100 {
			b := x.browser()
			b.from, b.follows = "203.0.113.1:1", false
			b.cookies["xxljob_session"] = &http.Cookie{Name: "xxljob_session", Value: "guess"}
			wg.Go(func() { b.get("jobs") })
		}
		time.Sleep(time.Millisecond)
		began := time.Now()
		root.get("jobs").is(http.StatusOK)
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("it has taken %v", took)
		}
		wg.Wait()
		if s.most != 5 {
			t.Errorf("%d are looked up at a time, want 4 and 1", s.most)
		}
	})
}
