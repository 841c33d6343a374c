package console_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/console"
	"github.com/xxljob/xxljob/internal/test/bent"
	"github.com/xxljob/xxljob/jobfile"
)

// exported is the file that was answered.
type exported struct {
	Format        string
	FormatVersion int
	ExportedAt    string
	Missing       int
	Jobs          []map[string]any
}

// file checks that the answer is a file with jobs, and reads it.
func (b *browser) file() (f exported) {
	b.Helper()
	b.is(200)
	for name, want := range map[string]string{"Content-Type": "application/json", "X-Content-Type-Options": "nosniff", "Cache-Control": "no-store"} {
		if got := b.res.Header.Get(name); got != want {
			b.Errorf("%s: %s is %q, want %q", b.at, name, got, want)
		}
	}
	if got := b.res.Header.Get("Content-Disposition"); !regexp.MustCompile(`^attachment; filename="xxljob-jobs-\d{8}T\d{6}Z\.json"$`).MatchString(got) {
		b.Errorf("%s: Content-Disposition %q", b.at, got)
	}
	if err := json.Unmarshal([]byte(b.body), &f); err != nil {
		b.Fatalf("%s: %v: %s", b.at, err, b.body)
	}
	if f.Format != "xxljob-jobs" || f.FormatVersion != 2 || f.Jobs == nil {
		b.Errorf("%s: the file says it is %q, version %d: %s", b.at, f.Format, f.FormatVersion, b.body)
	}
	return f
}

// names are those of the jobs in the file.
func (f exported) names() string {
	var list []string
	for _, j := range f.Jobs {
		list = append(list, fmt.Sprint(j["name"]))
	}
	return strings.Join(list, " ")
}

// TestExport: every field of a definition, jobs by app and key, those that they lead to by key, and
// nothing of this store.
func TestExport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newSite(t)
		root := x.admin()
		child := x.job("billing", "child")
		keyless := must1(x.store.AddJob(t.Context(), xxljob.Job{App: "orders", Name: "without a key", Handler: "work", Schedule: xxljob.Manual(), Misfire: xxljob.MisfireDoNothing, Route: xxljob.RouteRound, Block: xxljob.BlockSerial, GlueType: xxljob.GlueBean}, nil))
		full := must1(x.s.AddJob(t.Context(), fullJob(child.ID, keyless.ID)))
		must1(x.s.AddJob(t.Context(), xxljob.Job{App: "audit", Key: "a", Name: "first", Handler: "work"}))
		must(t, x.s.StopJob(t.Context(), child.ID))

		root.post("jobs/export", url.Values{"id": {itoa(keyless.ID), itoa(child.ID), itoa(full.ID), itoa(full.ID)}})
		f := root.file()
		if f.Missing != 0 || f.ExportedAt != "2000-01-01T00:00:00.000Z" || f.names() != "child without a key full" {
			t.Errorf("the file has %+v", f)
		}
		for _, id := range []int64{child.ID, keyless.ID, full.ID} {
			root.lacks(itoa(id))
		}
		want := map[string]any{
			"app": "orders", "key": "full", "name": "full", "author": "ann", "alarmEmail": "a@example.com", "tags": []any{"one", "two, three"},
			"schedule": map[string]any{"type": "CRON", "conf": "0 0 3 * * ?", "zone": "Europe/Berlin", "dst": "QUARTZ"}, "misfire": "FIRE_ONCE_NOW", "catchUp": "EVERY_MISSED", "catchUpMost": 12.0, "catchUpAge": "1m30s", "onNoExecutor": "WAIT",
			"notBefore": "2000-02-01T00:00:00.250Z", "notAfter": "2030-01-31T17:30:00.000Z", "maxRuns": 7.0,
			"route": "FIRST", "handler": "work", "param": "a\n<b> & \u202e", "block": "CONCURRENT", "maxPerExecutor": 3.0, "timeout": "1m30s",
			"retries": 2.0, "retryBackoff": map[string]any{"first": "1.5s", "max": "1m", "jitter": 10.0}, "retryAside": true, "onLost": "RERUN", "maxReruns": 4.0, "maxSnoozes": 5.0,
			"childKeys": []any{"billing/child", "other/later"}, "childParam": "PARENT", "afterKeys": []any{"audit/a"}, "afterWindow": "1h", "afterZone": "Asia/Tokyo", "afterTimeout": "2h",
			"lateAfter": "5s", "keepRuns": "24h", "leftOut": []any{"afterKeys"},
		}
		if got := f.Jobs[2]; !reflect.DeepEqual(got, want) {
			for name := range want {
				if !reflect.DeepEqual(got[name], want[name]) {
					t.Errorf("%s is %v, want %v", name, got[name], want[name])
				}
			}
			t.Errorf("the job is %v", got)
		}
		if want := map[string]any{"app": "orders", "name": "without a key", "schedule": map[string]any{"type": "NONE"}, "misfire": "DO_NOTHING", "route": "ROUND", "handler": "work", "block": "SERIAL_EXECUTION"}; !reflect.DeepEqual(f.Jobs[1], want) {
			t.Errorf("the job without a key is %v, want %v", f.Jobs[1], want)
		}
		if f.Jobs[0]["stopped"] != true || f.Jobs[0]["stopReason"] != nil {
			t.Errorf("the stopped job is %v", f.Jobs[0])
		}
		if strings.Contains(root.body, "null") {
			t.Errorf("what is absent is there: %s", root.body)
		}
		changes := must1(x.store.SearchChanges(t.Context(), xxljob.ChangeSearch{Actor: "root"})).Changes
		if len(changes) != 0 {
			t.Errorf("the record has %v", changes)
		}
	})
}

// fullJob is a job with something in each field that is exported.
func fullJob(child, after int64) xxljob.Job {
	return xxljob.Job{App: "orders", Key: "full", Name: "full", Author: "ann", AlarmEmail: "a@example.com", Tags: []string{"one", "two, three"},
		Schedule: xxljob.Cron("0 0 3 * * ?").In("Europe/Berlin").WithDST(xxljob.DSTQuartz), Misfire: xxljob.MisfireFireOnceNow, CatchUp: xxljob.CatchUpEveryMissed, CatchUpMost: 12, CatchUpAge: 90 * time.Second, OnNoExecutor: xxljob.OnNoExecutorWait,
		NotBefore: time.Date(2000, 2, 1, 0, 0, 0, 250e6, time.UTC), NotAfter: time.Date(2030, 1, 31, 18, 30, 0, 0, time.FixedZone("", 3600)), MaxRuns: 7,
		Route: xxljob.RouteFirst, Handler: "work", Param: "a\n<b> & \u202e", Block: xxljob.BlockConcurrent, MaxPerExecutor: 3, Timeout: 90 * time.Second,
		Retries: 2, RetryBackoff: xxljob.Backoff{First: 1500 * time.Millisecond, Max: time.Minute, Jitter: 10}, RetryAside: true, OnLost: xxljob.OnLostRerun, MaxReruns: 4, MaxSnoozes: 5,
		Children: []int64{child}, ChildKeys: []string{"other/later", "billing/child"}, ChildParam: xxljob.ChildParamParent, After: []int64{after}, AfterKeys: []string{"audit/a"}, AfterWindow: time.Hour, AfterZone: "Asia/Tokyo", AfterTimeout: 2 * time.Hour,
		LateAfter: 5 * time.Second, KeepRuns: 24 * time.Hour}
}

// TestExportIsRead: what the file has is read as the job that is stored, in each field that another
// store may have.
func TestExportIsRead(t *testing.T) {
	x := newSite(t)
	root := x.admin()
	child, before := x.job("billing", "child"), x.job("billing", "before")
	job := fullJob(child.ID, before.ID)
	job.NotAfter = time.Date(2999, 1, 31, 17, 30, 0, 0, time.UTC)
	full := must1(x.s.AddJob(t.Context(), job))
	root.post("jobs/export", url.Values{"id": {itoa(full.ID)}})
	root.file()
	read := must1(jobfile.Read(strings.NewReader(root.body)))
	want := full.Clone()
	want.ChildKeys, want.AfterKeys = []string{"billing/child", "other/later"}, []string{"audit/a", "billing/before"}
	own := strings.Fields("ID Children After GlueType GlueSource GlueRemark GlueUpdated StopReason Version Ensured Shard Next Last WaitRun Runs Added Updated")
	for i := range reflect.TypeFor[xxljob.Job]().NumField() {
		name, got := reflect.TypeFor[xxljob.Job]().Field(i).Name, reflect.ValueOf(read[0]).Field(i)
		switch stored := reflect.ValueOf(want).Field(i); {
		case slices.Contains(own, name):
			if !got.IsZero() {
				t.Errorf("%s is in the file", name)
			}
		case !reflect.DeepEqual(got.Interface(), stored.Interface()):
			t.Errorf("%s is %v, want %v", name, got, stored)
		case stored.IsZero() && name != "Stopped" && name != "Secret": // of which the file has no parameter: TestSecret
			t.Errorf("the test has no %s", name)
		}
	}
}

// TestExportRights: each job by the user's right to see it; what is not seen is missing as what is
// not there, and is not named by the others.
func TestExportRights(t *testing.T) { onBothStores(t, testExportRights) }

func testExportRights(t *testing.T) {
	x := newSite(t)
	x.admin()
	hidden := x.job("billing", "hidden one")
	mine := must1(x.s.AddJob(t.Context(), xxljob.Job{App: "orders", Name: "mine", Handler: "work", Children: []int64{hidden.ID}}))
	ann := x.user(console.User{Name: "ann", Apps: map[string]console.Role{"orders": console.Viewer}})
	ann.post("jobs/export", url.Values{"id": {itoa(mine.ID), itoa(hidden.ID), "4711"}})
	f := ann.file()
	ann.lacks("hidden")
	if f.Missing != 2 || len(f.Jobs) != 1 || fmt.Sprint(f.Jobs[0]["leftOut"]) != "[childKeys]" || f.Jobs[0]["childKeys"] != nil {
		t.Errorf("the file has %+v", f)
	}
	ann.post("jobs/export", url.Values{"id": {itoa(hidden.ID)}}).is(404).lacks("hidden one")
	ann.get("jobs/" + itoa(hidden.ID) + "/export").is(404).lacks("hidden one")
	ann.get("jobs/" + itoa(mine.ID)).has("Export")
	ann.get("jobs/" + itoa(mine.ID) + "/export")
	if f := ann.file(); f.names() != "mine" || f.Missing != 0 {
		t.Errorf("the file has %+v", f)
	}
	for page, want := range map[string]string{"jobs/export": "mine", "jobs/export?app=billing": "", "jobs/export?app=orders": "mine", "jobs/export?text=hidden": ""} {
		ann.get(page)
		if f := ann.file(); f.names() != want {
			t.Errorf("%s has %q, want %q", page, f.names(), want)
		}
	}
	none := x.user(console.User{Name: "none"})
	none.get("jobs/export")
	if f := none.file(); len(f.Jobs) != 0 {
		t.Errorf("who sees nothing gets %v", f)
	}
	out := x.browser()
	out.follows = false
	out.post("jobs/export", url.Values{"id": {itoa(mine.ID)}}).is(401)
}

// TestExportIsRedacted: what a host hides of a parameter does not leave by a file, neither what is
// hidden nor what is shown in its place; nor does a script.
func TestExportIsRedacted(t *testing.T) { onBothStores(t, testExportIsRedacted) }

func testExportIsRedacted(t *testing.T) {
	x := newSite(t, func(c *console.Config) {
		c.Redact = func(app string, field console.Field, text string) string {
			if strings.Contains(text, "panic") {
				panic("no")
			}
			return strings.ReplaceAll(text, "hunter2", "●●●")
		}
	})
	root := x.admin()
	add := func(name, param string) xxljob.Job {
		return must1(x.s.AddJob(t.Context(), xxljob.Job{App: "orders", Name: name, Handler: "work", Param: param}))
	}
	script := must1(x.s.AddJob(t.Context(), xxljob.Job{App: "orders", Name: "d", GlueType: "GLUE_SHELL", GlueSource: "export KEY=hunter3\n", GlueRemark: "first", Schedule: xxljob.Manual()}))
	ids := []string{itoa(add("a", "password=hunter2").ID), itoa(add("b", "plain").ID), itoa(add("c", "panic hunter4").ID), itoa(script.ID), itoa(add("e", "").ID)}
	root.post("jobs/export", url.Values{"id": ids})
	f := root.file()
	root.lacks("hunter", "password", "●")
	for i, want := range []string{"[param] <nil>", "<nil> plain", "[param] <nil>", "[glueSource] <nil>", "<nil> <nil>"} {
		if got := fmt.Sprint(f.Jobs[i]["leftOut"], " ", f.Jobs[i]["param"]); got != want {
			t.Errorf("%v: %s, want %s", f.Jobs[i]["name"], got, want)
		}
	}
	if f.Jobs[3]["glueType"] != "GLUE_SHELL" || f.Jobs[3]["glueRemark"] != "first" {
		t.Errorf("the script is %v", f.Jobs[3])
	}
}

// TestExportOfHostileTexts: whatever a job says, it is a text of the file, which it comes out of as
// it was, and none that a browser or a terminal would follow.
func TestExportOfHostileTexts(t *testing.T) { onBothStores(t, testExportOfHostileTexts) }

func testExportOfHostileTexts(t *testing.T) {
	x := newSite(t)
	root := x.admin()
	var ids []string
	texts := append([]string{"\u202e\u2066bidi\u2069", "\x1b[31mred\x1b[0m", "\u2028line\u2029", "a\"}],\"jobs\":[", "\u200bzero\ufeff", "\U000e0041tag", "name\r\nContent-Type: text/html", `\u0000`, "汇率同步 é"}, hostile...)
	for i, evil := range texts {
		j := must1(x.s.AddJob(t.Context(), xxljob.Job{App: "orders", Key: keyLike(fmt.Sprintf("%03d%s", i, evil)), Name: "n" + evil, Handler: "work", Author: evil, Param: evil}))
		ids = append(ids, itoa(j.ID))
	}
	root.post("jobs/export", url.Values{"id": ids})
	f := root.file()
	root.lacks("<", ">", "\x1b", "\u202e", "\u2066", "\u2028", "\u200b", "\ufeff", "\U000e0041")
	root.has("汇率同步 é")
	if len(f.Jobs) != len(texts) {
		t.Fatalf("%d jobs", len(f.Jobs))
	}
	for i, evil := range texts {
		if j := f.Jobs[i]; j["param"] != evil || j["name"] != "n"+evil || j["author"] != evil {
			t.Errorf("%q has become %v", evil, j)
		}
	}
}

// TestExportOfMany: 500 that are ticked, and no more; a list as long as it is, in the order of apps
// and keys whatever that of the page.
func TestExportOfMany(t *testing.T) {
	x := newSite(t)
	root := x.admin()
	var ids []string
	for i := range 1201 {
		j := must1(x.s.AddJob(t.Context(), xxljob.Job{App: fmt.Sprint("app", i%3), Key: fmt.Sprintf("k%04d", 1201-i), Name: fmt.Sprintf("n%04d", i), Handler: "work", Schedule: []xxljob.Schedule{xxljob.Manual(), xxljob.FixedRate(time.Minute)}[i%2]}))
		ids = append(ids, itoa(j.ID))
	}
	root.post("jobs/export", url.Values{"id": ids[:501]}).is(413).has("At most 500 jobs at once.")
	root.post("jobs/export", url.Values{"id": append(ids[:500:500], ids[0])})
	if f := root.file(); len(f.Jobs) != 500 || f.Missing != 0 {
		t.Errorf("%d jobs, %d missing", len(f.Jobs), f.Missing)
	}
	root.post("jobs/export", nil).is(422).has("No job is selected.")
	root.post("jobs/export", url.Values{"id": {"x"}}).is(400)
	for page, want := range map[string]int{"": 1201, "?order=next": 600, "?order=id&rows=500": 1201, "?type=FIX_RATE": 600, "?app=app1": 400, "?text=n00": 100, "?state=off": 0, "?failing=yes": 0, "?tag=none": 0, "?handler=work&author=": 1201} {
		root.get("jobs/export" + page)
		f := root.file()
		if len(f.Jobs) != want {
			t.Errorf("%q: %d jobs, want %d", page, len(f.Jobs), want)
		}
		if !slices.IsSortedFunc(f.Jobs, func(a, b map[string]any) int {
			return strings.Compare(fmt.Sprint(a["app"], " ", a["key"]), fmt.Sprint(b["app"], " ", b["key"]))
		}) {
			t.Errorf("%q: the jobs are not in order", page)
		}
	}
	root.get("jobs?app=app1&type=FIX_RATE&order=next&said=removed")
	link := strings.ReplaceAll(hrefOf(root.body, ">Export all<"), "&amp;", "&")
	if link != "./jobs/export?app=app1&order=next&type=FIX_RATE" {
		t.Errorf("the list leads to %s", link)
	}
}

// TestExportThatIsTooLarge: more than what an import takes is no file at all.
func TestExportThatIsTooLarge(t *testing.T) {
	x := newSite(t)
	root := x.admin()
	param := strings.Repeat("0123456789abcdef", 4096) // 64 KiB
	for i := range 520 {
		must1(x.s.AddJob(t.Context(), xxljob.Job{App: "orders", Name: fmt.Sprintf("n%03d", i), Handler: "work", Param: param}))
	}
	root.get("jobs/export").is(413).has("These jobs come to more than 32 MiB.")
	if h := root.res.Header.Get("Content-Disposition"); h != "" {
		t.Errorf("it is offered as a file: %s", h)
	}
	root.get("jobs/export?text=n1")
	if f := root.file(); len(f.Jobs) != 100 {
		t.Errorf("%d jobs", len(f.Jobs))
	}
}

// TestExportsOneByOne: of a file of many jobs there is much in memory until it is sent, so each who asks has one
// at a time; others have theirs.
func TestExportsOneByOne(t *testing.T) {
	atOnce(t)
	synctest.Test(t, func(t *testing.T) {
		w := &watched{}
		x := newSite(t, watch(w))
		root := x.admin()
		ann := x.user(console.User{Name: "ann", Apps: map[string]console.Role{"orders": console.Viewer}})
		j := x.job("orders", "nightly")
		again := x.session("root", "another browser")
		w.late.Store(int64(5 * time.Second)) // longer than two of them wait
		var wg sync.WaitGroup
		wg.Go(func() { root.get("jobs/export?failing=yes").is(http.StatusOK) })
		synctest.Wait()
		again.get("jobs/export?failing=yes").is(http.StatusTooManyRequests)
		if after := again.res.Header.Get("Retry-After"); after != "2" {
			t.Errorf("Retry-After: %q", after)
		}
		again.post("jobs/export", url.Values{"id": {itoa(j.ID)}}).is(http.StatusTooManyRequests)
		again.get("jobs/" + itoa(j.ID) + "/export").is(http.StatusOK)
		ann.get("jobs/export?failing=yes").is(http.StatusOK)
		wg.Wait()
		root.get("jobs/export?failing=yes").is(http.StatusOK)
	})
}

// pooled is a store that has so many connections for people.
type pooled struct {
	Store
	conns int
}

func (p pooled) ConnsOfPeople() int { return p.conns }

// TestCostlyLeavesAConnection: what takes long has one connection of those that people have at a time less than
// there are.
func TestCostlyLeavesAConnection(t *testing.T) {
	atOnce(t)
	synctest.Test(t, func(t *testing.T) {
		w := &watched{}
		x := newSite(t, watch(w), func(c *console.Config) { c.Store = pooled{c.Store.(Store), 3} })
		var users []*browser
		for _, name := range []string{"ann", "bob", "eve"} {
			users = append(users, x.user(console.User{Name: name, Apps: map[string]console.Role{"orders": console.Viewer}}))
		}
		x.job("orders", "nightly")
		w.late.Store(int64(5 * time.Second)) // longer than one waits
		var wg sync.WaitGroup
		for _, u := range users[:2] {
			wg.Go(func() { u.get("jobs/export?failing=yes").is(http.StatusOK) })
		}
		synctest.Wait()
		users[2].get("jobs/export?failing=yes").is(http.StatusTooManyRequests)
		wg.Wait()
		users[2].get("jobs/export?failing=yes").is(http.StatusOK)
	})
}

// take takes a file at so many bytes a second, and returns how many it got of how many, and how long that took.
func (x *site) take(wires pipes, by *browser, page string, rate int) (got, of int64, took time.Duration) {
	x.Helper()
	c := wires.dial("192.0.2.1", new(atomic.Int64))
	defer c.Close()
	go func() {
		_, _ = fmt.Fprintf(c, "GET /console/%s HTTP/1.1\r\nHost: host.example\r\nCookie: %s\r\nConnection: close\r\n\r\n", page, by.cookies["xxljob_session"])
	}()
	began := time.Now()
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	must(x.T, err)
	for piece := make([]byte, rate/10); err == nil; time.Sleep(time.Second / 10) {
		var n int
		n, err = io.ReadFull(res.Body, piece)
		got += int64(n)
	}
	return got, res.ContentLength, time.Since(began)
}

// TestExportIsTakenInTime: who takes a file slower than it has to be taken loses the connection, and with
// it the place that the file has in memory; who takes it faster has all of it.
func TestExportIsTakenInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newSite(t)
		root := x.admin()
		for i := range 40 {
			must1(x.s.AddJob(t.Context(), xxljob.Job{App: "orders", Name: "n" + itoa(int64(i)), Handler: "work", Param: strings.Repeat("x", 60<<10)}))
		}
		wires := x.serving()
		take := func(rate int) (int64, int64, time.Duration) { return x.take(wires, root, "jobs/export", rate) }
		if got, of, took := take(64 << 10); of < 2<<20 || got >= of || took < 10*time.Second || took > 25*time.Second {
			t.Errorf("at 64 kB a second %d of %d bytes were sent within %v", got, of, took)
		}
		root.get("jobs/export?failing=yes").is(http.StatusOK) // there is a place
		if got, of, took := take(256 << 10); got != of {
			t.Errorf("at 256 kB a second %d of %d bytes were sent within %v", got, of, took)
		}
		time.Sleep(10 * time.Second)
	})
}

// TestExportInPages: of a file that is large so much is in memory as somebody is about to take: jobs are read
// while it is taken, and where that fails it is broken off, so that nobody has a part for the whole.
func TestExportInPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &failing{}
		x := newSite(t, func(c *console.Config) { f.st = c.Store.(Store); c.Store = bent.WholeOf(f.st, f) })
		root := x.admin()
		for i := range 200 {
			must1(x.s.AddJob(t.Context(), xxljob.Job{App: "orders", Name: fmt.Sprintf("n%03d", i), Handler: "work", Param: strings.Repeat("x", 60<<10)}))
		}
		wires := x.serving()
		for _, fails := range []bool{false, true} {
			if f.n = 0; fails {
				f.n = 5 // the last
			}
			c := wires.dial("192.0.2.1", new(atomic.Int64))
			go func() {
				_, _ = fmt.Fprintf(c, "GET /console/jobs/export HTTP/1.1\r\nHost: host.example\r\nCookie: %s\r\nConnection: close\r\n\r\n", root.cookies["xxljob_session"])
			}()
			res := must1(http.ReadResponse(bufio.NewReader(c), nil))
			var file strings.Builder
			must1(io.CopyN(&file, res.Body, 1<<20))
			synctest.Wait()
			if n := f.n; !fails && n != -4 {
				t.Errorf("%d readings for the first MiB, want one of the list, two of all jobs and one of the first hundred", -n)
			}
			_, err := io.Copy(&file, res.Body)
			if fails != (err != nil) {
				t.Errorf("the store fails: %t; the file has the error %v behind %d bytes", fails, err, file.Len())
			}
			if !fails {
				if list, err := jobfile.Read(strings.NewReader(file.String())); err != nil || len(list) != 200 || f.n != -5 {
					t.Errorf("the file has %d jobs after %d readings: %v", len(list), -f.n, err)
				}
			}
			c.Close()
		}
		time.Sleep(10 * time.Second)
	})
}

// TestExportOfWhatGoes: jobs that are removed while a file is made are missing in it, and a file without any is
// none.
func TestExportOfWhatGoes(t *testing.T) {
	inMemory(t, func(t *testing.T) {
		f := &failing{}
		x := newSite(t, func(c *console.Config) { f.st = c.Store.(Store); c.Store = bent.WholeOf(f.st, f) })
		root := x.admin()
		one, two := x.job("orders", "one"), x.job("orders", "two")
		goes := func(reading int, j xxljob.Job) {
			f.n, f.before = 0, func(n int) {
				if n == reading {
					must(t, f.st.RemoveJob(t.Context(), j.ID))
				}
			}
		}
		goes(2, one) // the first reading is that of which jobs there are
		root.post("jobs/export", url.Values{"id": {itoa(one.ID), itoa(two.ID)}}).is(200).has(`"missing": 1`)
		if file := root.file(); len(file.Jobs) != 1 {
			t.Errorf("the file has %+v", file.Jobs)
		}
		goes(1, two)
		root.get("jobs/" + itoa(two.ID) + "/export").is(404)
		last := x.job("orders", "last")
		goes(2, last)
		root.post("jobs/export", url.Values{"id": {itoa(last.ID)}}).is(404)
	})
}

// TestExportThatChanges: a file that is read once more while it is taken is broken off where a job is called
// otherwise than others in it say, and where it would become too large. That is in the log, unless who takes it
// has gone.
func TestExportThatChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, logged := &failing{}, &strings.Builder{}
		x := newSite(t, func(c *console.Config) {
			f.st = c.Store.(Store)
			c.Store, c.Logger = bent.WholeOf(f.st, f), slog.New(slog.NewTextHandler(logged, &slog.HandlerOptions{Level: slog.LevelWarn}))
		})
		root := x.admin()
		for i := range 200 {
			name := fmt.Sprintf("n%03d", i)
			must1(x.s.AddJob(t.Context(), xxljob.Job{App: "orders", Key: name, Name: name, Handler: "work", Param: strings.Repeat("x", 60<<10)}))
		}
		wires := x.serving()
		for what, change := range map[string]func(*xxljob.Job){
			"nothing":      func(*xxljob.Job) {},
			"called other": func(j *xxljob.Job) { j.Key = strings.Replace(j.Key, "n19", "m19", 1) },
			"larger":       func(j *xxljob.Job) { j.Param = strings.Repeat("x", 300<<10) },
			"gone":         nil,
		} {
			logged.Reset()
			c := wires.dial("192.0.2.1", new(atomic.Int64))
			f.n, f.before, f.after = 0, nil, nil
			if change == nil {
				f.before = func(n int) {
					if n == 4 {
						c.Close()
						time.Sleep(time.Second) // for the server to see it
					}
				}
			} else {
				f.after = func(n int, list []xxljob.Job) {
					for i := range list {
						if n > 3 { // one of the list, and two of all jobs
							change(&list[i])
						}
					}
				}
			}
			go func() {
				_, _ = fmt.Fprintf(c, "GET /console/jobs/export HTTP/1.1\r\nHost: host.example\r\nCookie: %s\r\nConnection: close\r\n\r\n", root.cookies["xxljob_session"])
			}()
			res, err := http.ReadResponse(bufio.NewReader(c), nil)
			if err == nil { // else it was broken off before any of it had come
				_, err = io.Copy(io.Discard, res.Body)
			}
			if whole := err == nil; whole != (what == "nothing") {
				t.Errorf("%s: the file is whole: %t", what, whole)
			}
			c.Close()
			time.Sleep(10 * time.Second)
			if said := strings.Contains(logged.String(), "broken off"); said != (what == "called other" || what == "larger") {
				t.Errorf("%s: the log has %q", what, logged)
			}
		}
	})
}

// TestExportReadOnly: it changes nothing, so that a console lets one that is there to be read.
func TestExportReadOnly(t *testing.T) { inMemory(t, testExportReadOnly) }

func testExportReadOnly(t *testing.T) {
	x := newSite(t, func(c *console.Config) { c.ReadOnly = true })
	root := x.admin()
	j := x.job("orders", "nightly")
	root.get("jobs").is(200).has("Export")
	root.post("jobs/export", url.Values{"id": {itoa(j.ID)}})
	root.file()
	root.get("jobs/" + itoa(j.ID)).has("Export")
	root.get("jobs/" + itoa(j.ID) + "/export")
	root.file()
	root.get("jobs/export")
	root.file()
	root.send("HEAD", "/console/jobs/export", nil).is(200)
	if root.body != "" {
		t.Errorf("HEAD has a body: %s", root.body)
	}
	root.header.Set("Sec-Fetch-Site", "cross-site")
	root.post("jobs/export", url.Values{"id": {itoa(j.ID)}}).is(403)
}

// failing is a store that fails at the nth reading of jobs.
type failing struct {
	st     Store
	n      int
	before func(reading int)                    // called before each, where it is set
	after  func(reading int, list []xxljob.Job) // called with what each of jobs by their ids has found
}

func (f *failing) count() error {
	if f.n--; f.n == 0 {
		return errors.New("the cable is out")
	}
	if f.before != nil {
		f.before(-f.n)
	}
	return nil
}

func (f *failing) Jobs(ctx context.Context, q xxljob.JobFilter) ([]xxljob.Job, error) {
	if err := f.count(); err != nil {
		return nil, err
	}
	list, err := f.st.Jobs(ctx, q)
	if f.after != nil {
		f.after(-f.n, list)
	}
	return list, err
}

func (f *failing) SearchJobs(ctx context.Context, q xxljob.JobSearch) ([]xxljob.Job, error) {
	if err := f.count(); err != nil {
		return nil, err
	}
	return f.st.SearchJobs(ctx, q)
}

// TestExportWhileTheStoreFails: at whichever reading it fails, there is no file, and none of which
// a part is missing.
func TestExportWhileTheStoreFails(t *testing.T) {
	f := &failing{}
	x := newSite(t, func(c *console.Config) { f.st = c.Store.(Store); c.Store = bent.WholeOf(f.st, f) })
	root := x.admin()
	child := x.job("billing", "child")
	var ids []string
	for i := range 600 {
		j := must1(x.s.AddJob(t.Context(), xxljob.Job{App: "orders", Name: fmt.Sprintf("n%03d", i), Handler: "work", Children: []int64{child.ID}}))
		ids = append(ids, itoa(j.ID))
	}
	for what, ask := range map[string]func(){
		"a list":  func() { root.get("jobs/export?app=orders") },
		"ticked":  func() { root.post("jobs/export", url.Values{"id": ids[:400]}) },
		"one job": func() { root.get("jobs/" + ids[0] + "/export") },
	} {
		least := map[string]int{"a list": 9, "ticked": 6, "one job": 2}[what] // a hundred jobs at a time
		n := 0
		for {
			n++
			f.n = n
			if ask(); f.n > 0 { // it has not come to that
				break
			}
			root.is(503).has("the cable is out")
			if h := root.res.Header.Get("Content-Disposition"); h != "" {
				t.Errorf("%s: it is offered as a file: %s", what, h)
			}
		}
		f.n = 0
		root.file()
		if n-1 != least {
			t.Errorf("%s takes %d readings, want %d", what, n-1, least)
		}
	}
}
