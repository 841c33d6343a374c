package console_test

// Each page there is: what it costs, in figures that do not depend on the clock, and what it says
// when the store fails. What rows the statements of a store look at is for its own tests.

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/console"
	"github.com/xxljob/xxljob/internal/test/pgtest"
	"github.com/xxljob/xxljob/store/storetest"
)

// faulty is a site whose console and scheduler have a store that fails on demand. What a test asks
// of the store itself does not fail.
func faulty(t *testing.T) (x *site, f *storetest.WholeFaults) {
	t.Helper()
	x = newSite(t, func(c *console.Config) {
		f = storetest.WrapWhole(c.Store.(Store))
		c.Store, c.Scheduler = f, must1(xxljob.New(f, xxljob.Config{App: "orders", Logger: slog.New(slog.DiscardHandler)}))
	})
	return x, f
}

// stocked is a site with some of everything, and the job and the run that its pages are of.
func (x *site) stocked(many int) (j xxljob.Job, r xxljob.Run) {
	x.Helper()
	ctx := xxljob.WithActor(x.Context(), "ann")
	for i := range many {
		x.run(x.job("billing", fmt.Sprintf("rates %02d", i)))
	}
	child := x.job("billing", "child")
	must1(x.s.AddJob(ctx, xxljob.Job{App: "billing", Name: "keyed", Key: "keyed", Handler: "work"}))
	j = must1(x.s.AddJob(ctx, xxljob.Job{App: "orders", Name: "nightly", Key: "nightly", Handler: "work", Schedule: xxljob.Cron("0 0 3 * * ?"), Children: []int64{child.ID}, ChildKeys: []string{"billing/keyed"}}))
	must1(x.s.AddJob(ctx, xxljob.Job{App: "billing", Name: "join", Handler: "work", AfterKeys: []string{"orders/nightly"}}))
	for i := range many {
		now := must1(x.store.Job(ctx, j.ID))
		now.Param = itoa(int64(i))
		must1(x.s.UpdateJob(ctx, now.Definition()))
		x.run(j)
	}
	r = must1(x.store.Run(ctx, must1(x.s.TriggerOne(ctx, j.ID, xxljob.Trigger{}))))
	x.run(j)
	return j, r
}

// pages are addresses of each page that somebody sees who is logged in, and of kinds that there
// are of it.
func pages(j xxljob.Job, r xxljob.Run) (list []string) {
	job, run := itoa(j.ID), itoa(r.ID)
	kinds := map[string][]string{
		"jobs":           {"?text=rates", "?app=orders&order=next", "?type=CRON", "?failing=yes", "?state=off"},
		"jobs/new":       {"?copy=" + job},
		"jobs/{id}/edit": {"?version=1"},
		"users/edit":     {"?name=root"},
		"users/remove":   {"?name=root"},
		"preview":        {"?type=CRON&conf=0+0+3+*+*+%3F"},
		"runs":           {"?state=waiting", "?state=bad", "?state=skipped", "?text=nothing", "?job=" + job, "?text=" + run},
		"runs/{id}/log":  {"?find=x", "?from=1"},
		"timetable":      {"?range=7d&order=name", "?app=orders&text=rates&tag=x"},
		"executors":      {"?tab=nodes", "?tab=shards", "?app=orders", "?text=o&from=1"},
		"changes":        {"?actor=ann", "?app=billing&verb=add"},
	}
	for _, rt := range console.Routes() {
		if rt.Method != http.MethodGet || slices.Contains([]string{"asset/{name}", "health", "setup", "login", ""}, rt.Pattern) {
			continue
		}
		id := job
		if strings.HasPrefix(rt.Pattern, "runs/") {
			id = run
		}
		for _, kind := range append([]string{""}, kinds[rt.Pattern]...) {
			list = append(list, variable.ReplaceAllString(rt.Pattern, id)+kind)
		}
	}
	return list
}

// The bounds of a page. A question is a call of the store, also one that the scheduler makes for
// the page, and those are among them that say who asks; one takes up to four statements.
const (
	mostQuestions  = 8
	mostStatements = 11
	moreOverview   = 9  // asks of nodes, executors, jobs, runs and changes, once for all who look, and of mutes
	moreWhy        = 8  // asks of nodes, executors and the job's runs why it is as it is, and of mutes
	moreCounts     = 22 // of a list: counts, which are read once in a while for all who see the same
	mostBytes      = 76 << 10
	mostZipped     = 8400
	mostAllocs     = 40_000
)

// TestQuestionsOfPages: no page asks its store more than so often, whoever looks at it, and a poll
// of a list asks who looks, and for the list.
func TestQuestionsOfPages(t *testing.T) { inMemory(t, testQuestionsOfPages) }

func testQuestionsOfPages(t *testing.T) {
	x, f := faulty(t)
	people := []*browser{x.admin(), x.user(console.User{Name: "all", Apps: map[string]console.Role{"*": console.Editor}})}
	j, r := x.stocked(2)
	for i, b := range append(people, x.user(console.User{Name: "some", Apps: map[string]console.Role{"*": console.Editor, "billing": console.None}})) {
		b.follows = false
		for _, page := range pages(j, r) {
			asked := x.questions(b, f, page)
			most := mostQuestions
			if page == "overview" {
				most += moreOverview
			}
			if counts(page) {
				most += moreCounts
			}
			if page == "jobs/"+itoa(j.ID) || page == "runs/"+itoa(r.ID) {
				most += moreWhy
			}
			if page == "jobs/"+itoa(j.ID) {
				most++ // for the app whose jobs its definition names by their keys
			}
			if len(asked) > most {
				t.Errorf("%s asks %d questions, at most %d: %q", page, len(asked), most, asked)
			}
			if page != "runs" && page != "runs?job="+itoa(j.ID) {
				continue
			}
			b.live()
			if asked := x.questions(b, f, page); i < len(people) && len(asked) > 2 {
				t.Errorf("a poll of %s asks %d questions: %q", page, len(asked), asked)
			}
			b.header = http.Header{}
		}
	}
}

// questions are those that a page asks the store.
func (x *site) questions(b *browser, f *storetest.WholeFaults, page string) (asked []string) {
	f.Observe(func(_ context.Context, method string) { asked = append(asked, method) })
	b.get(page)
	f.Observe(nil)
	return asked
}

// TestStatementsOfPages: nor does one take more than so many statements of a server.
func TestStatementsOfPages(t *testing.T) {
	inTurn(t) // before a server is started
	sent := &statements{}
	pool := pgtest.Pool(t, pgtest.With(func(c *pgxpool.Config) { c.ConnConfig.Tracer = sent }))
	x := newSiteOn(t, openPostgresOn(t, pool))
	root := x.admin()
	root.follows = false
	j, r := x.stocked(2)
	for _, page := range pages(j, r) {
		sent.take()
		root.get(page)
		most := mostStatements
		if page == "overview" {
			most += moreOverview
		}
		if counts(page) {
			most += moreCounts
		}
		if page == "jobs/"+itoa(j.ID) || page == "runs/"+itoa(r.ID) {
			most += moreWhy
		}
		if all := sent.take(); len(all) > most || len(all) == 0 {
			t.Errorf("%s takes %d statements, at most %d: %q", page, len(all), most, all)
		}
	}
}

// statements are those that are sent to the server, but for what begins and ends transactions, sets
// how they are carried out, and asks a connection once in a while whether it is of use.
type statements struct {
	mu  sync.Mutex
	all []string // guarded by mu
}

func (s *statements) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	s.add(data.SQL)
	return ctx
}

func (*statements) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func (*statements) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	return ctx
}

func (s *statements) TraceBatchQuery(_ context.Context, _ *pgx.Conn, data pgx.TraceBatchQueryData) {
	s.add(data.SQL)
}

func (*statements) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

func (s *statements) add(sql string) {
	sql = strings.TrimPrefix(sql, "/* xxljob */ ")
	if strings.HasPrefix(sql, "begin ") || sql == "commit" || sql == "rollback" || strings.HasPrefix(sql, "select pg_catalog.set_config(") ||
		strings.HasPrefix(sql, "select (case when pg_catalog.pg_is_in_recovery() ") {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, sql)
}

// take returns those that were sent since it was called last.
func (s *statements) take() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.all
	s.all = nil
	return all
}

// TestPagesAreSmall: in bytes, also on their way, and in what is allocated for one.
func TestPagesAreSmall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // or a change of the second would change the figures
		x := newSite(t)
		root := x.admin()
		root.follows = false
		for _, page := range pages(x.stocked(60)) {
			allocs := testing.AllocsPerRun(3, func() { root.get(page) })
			if n, zipped := len(root.body), len(gzipped(t, root.body)); n > mostBytes || zipped > mostZipped || allocs > mostAllocs {
				t.Errorf("%s has %d bytes, compressed %d, and costs %v allocations", page, n, zipped, allocs)
			}
		}
	})
}

// The bounds of what a browser gets that has nothing yet.
const (
	mostOfFirstView = 60 << 10 // compressed
	mostOfScripts   = 20 << 10 // of our own, as they are
)

// TestFirstView: the first page comes with all that it needs in few bytes.
func TestFirstView(t *testing.T) {
	x := newSite(t)
	x.stocked(60)
	root := x.admin()
	page := root.get("jobs").is(200).body
	all, scripts := len(gzipped(t, page)), 0
	for _, m := range regexp.MustCompile(`(?:src|href)="\./(asset/[^"]+)"`).FindAllStringSubmatch(page, -1) {
		file := root.get(m[1]).is(200).body
		all += len(gzipped(t, file))
		if strings.HasSuffix(m[1], ".js") && !strings.Contains(m[1], ".min.") {
			scripts += len(file)
		}
	}
	if all > mostOfFirstView || scripts > mostOfScripts || scripts == 0 {
		t.Errorf("%d bytes, at most %d, of which our scripts are %d, at most %d", all, mostOfFirstView, scripts, mostOfScripts)
	}
}

func gzipped(t *testing.T, body string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	must1(w.Write([]byte(body)))
	must(t, w.Close())
	return b.Bytes()
}

// TestEachPageWhileTheStoreFails: whichever question it is that fails, the page says so, and shows
// nothing that could be taken for what is stored.
func TestEachPageWhileTheStoreFails(t *testing.T) { inMemory(t, testEachPageWhileTheStoreFails) }

func testEachPageWhileTheStoreFails(t *testing.T) {
	inTurn(t)
	x, f := faulty(t)
	root := x.admin()
	root.follows = false
	for _, page := range pages(x.stocked(2)) {
		for _, method := range x.asked(root, f, page) {
			remove := f.Inject(method, storetest.Fault{Before: true})
			status, said := 503, "The store has reported an error."
			switch root.get(page); {
			case chooses(page) && (method == "JobValues" || method == "Groups"): // apps to choose from are a help
				status, said = 200, map[bool]string{true: "New token", false: "Role in an app"}[strings.HasSuffix(page, "tokens")]
			case page == "overview" && root.res.StatusCode == 200: // what is beside that which needs attention
				status, said = 200, "could not be read"
			case strings.HasPrefix(page, "runs/") && root.res.StatusCode == 200: // that of the log is said in its place
				status, said = 200, "does not answer"
			}
			if root.is(status); !strings.Contains(root.text(), said) {
				t.Errorf("%s while %s fails: %s", page, method, root.text())
			}
			remove()
		}
		if root.get(page); root.res.StatusCode >= 500 {
			t.Errorf("%s: status %d once it is mended", page, root.res.StatusCode)
		}
	}
}

// chooses reports whether a page has a form of somebody's apps, which offers those that there are.
func chooses(page string) bool {
	return page == "users/new" || strings.HasPrefix(page, "users/edit") || page == "tokens" || page == "account/tokens"
}

// counts reports whether a page is a list that says how many there are.
func counts(page string) bool {
	list, _, _ := strings.Cut(page, "?")
	return list == "jobs" || list == "runs"
}

// asked are the methods of the store that a page calls.
func (x *site) asked(b *browser, f *storetest.WholeFaults, page string) []string {
	b.get(page) // counts that a list has are there for a while
	return calling(f, func() { b.get(page) })
}

// calling are the methods of the store that something calls.
func calling(f *storetest.WholeFaults, do func()) (methods []string) {
	f.Observe(func(_ context.Context, method string) { methods = append(methods, method) })
	do()
	f.Observe(nil)
	slices.Sort(methods)
	return slices.Compact(methods)
}

// TestEachPageOfASlowStore: nobody waits for more than ten seconds, whichever question it is that
// has no answer.
func TestEachPageOfASlowStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, f := faulty(t)
		root := x.admin()
		root.follows = false
		for _, page := range pages(x.stocked(2)) {
			if strings.HasSuffix(page, "/log/file") || strings.Contains(page, "/export") {
				continue // they may take minutes
			}
			root.get(page)
			synctest.Wait() // what a list counts beside itself keeps nobody waiting
			for _, method := range calling(f, func() { root.get(page) }) {
				remove := f.Inject(method, storetest.Fault{Delay: time.Hour})
				begun := time.Now()
				root.get(page)
				if chooses(page) && (method == "JobValues" || method == "Groups") && root.res.StatusCode == 200 && time.Since(begun) <= time.Second {
					remove()
					continue
				}
				if took := time.Since(begun); took > 11*time.Second || root.res.StatusCode == 200 && !strings.Contains(root.text(), "does not answer") && !strings.Contains(root.text(), "could not be read") {
					t.Errorf("%s: status %d after %v, while %s has no answer", page, root.res.StatusCode, took, method)
				}
				remove()
			}
		}
	})
}

// TestStoreTellsAdminsAlone: whatever page or form it is that the store fails, an admin is told what it
// says, which names the host and the user of a database, and all others are told the number of the
// request, under which it is in the log.
func TestStoreTellsAdminsAlone(t *testing.T) { onBothStores(t, testStoreTellsAdminsAlone) }

func testStoreTellsAdminsAlone(t *testing.T) {
	const told = "failed to connect to host=db.internal user=xxl_owner"
	x, f := faulty(t)
	root, ed := x.admin(), x.user(console.User{Name: "ed", Scripts: true, Apps: map[string]console.Role{"*": console.Editor}})
	root.follows, ed.follows = false, false
	j, r := x.stocked(2)
	away := func(methods []string) (back func()) {
		var list []func()
		for _, method := range methods {
			list = append(list, f.Inject(method, storetest.Fault{Before: true, Err: errors.New(told)}))
		}
		return func() {
			for _, remove := range list {
				remove()
			}
		}
	}
	check := func(what string, failed bool) {
		t.Helper()
		if text := ed.body + ed.text(); strings.Contains(text, "db.internal") || strings.Contains(text, "xxl_owner") {
			t.Errorf("%s tells who is no admin: %s", what, ed.text())
		}
		if failed && !strings.Contains(root.text(), told) {
			t.Errorf("%s tells an admin nothing: %s", what, root.text())
		}
		id := regexp.MustCompile(`Request (\w+)`).FindStringSubmatch(ed.text())
		if failed && ed.res.StatusCode != http.StatusForbidden && (id == nil || !strings.Contains(x.log.String(), "request="+id[1])) {
			t.Errorf("%s has no number that is in the log: %s", what, ed.text())
		}
	}
	for _, page := range pages(j, r) {
		for _, method := range x.asked(root, f, page) {
			back := away([]string{method})
			root.get(page)
			ed.get(page)
			back()
			check(page+" while "+method+" fails", method != "Session" && root.res.StatusCode >= 500)
		}
	}
	without := func(list []string, names ...string) []string {
		return slices.DeleteFunc(slices.Clone(list), func(m string) bool { return slices.Contains(names, m) })
	}
	all := without(storeMethods(), "Session")
	verbs := without(all, "Job", "Jobs", "Run", "RunsByID", "Groups", "CountJobs")
	form := url.Values{"version": {itoa(j.Version)}, "name": {"nightly"}, "app": {"orders"}, "handler": {"work"}, "type": {"NONE"}, "id": {itoa(j.ID)}, "count": {"1"}, "sure": {"yes"}, "add": {"tag"}}
	for _, rt := range console.Routes() {
		if rt.Method != http.MethodPost || slices.Contains([]string{"login", "logout", "setup", "look"}, rt.Pattern) {
			continue
		}
		id, does := itoa(j.ID), []string{""}
		switch {
		case rt.Pattern == "jobs/bulk":
			does = []string{"start", "stop", "once", "tag", "remove"}
		case rt.Pattern == "runs/bulk":
			does = []string{"kill", "again"}
		}
		if strings.HasPrefix(rt.Pattern, "runs/") {
			id = itoa(r.ID)
		}
		for _, do := range does {
			for _, methods := range [][]string{all, verbs} {
				back := away(methods)
				to := variable.ReplaceAllString(rt.Pattern, id)
				root.post(to, with(form, "id", id, "do", do))
				ed.post(to, with(form, "id", id, "do", do))
				back()
				check("POST "+to+" "+do, root.res.StatusCode >= 500)
			}
		}
	}
}

// storeMethods are the methods by which a store is asked.
func storeMethods() (names []string) {
	whole := reflect.TypeFor[storetest.Whole]()
	for i := range whole.NumMethod() {
		m := whole.Method(i)
		if m.Type.NumIn() > 0 && m.Type.In(0) == reflect.TypeFor[context.Context]() && m.Type.NumOut() > 0 && m.Name != "Watch" {
			names = append(names, m.Name)
		}
	}
	return names
}
