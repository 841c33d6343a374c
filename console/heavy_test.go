package console_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/console"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/wire"
)

// The bounds of a page of texts that somebody has made as costly as they can be: what is sent, and
// what is allocated for it in all.
const (
	mostSent      = 6 << 20
	mostAllocated = 64 << 20
)

// heavy are texts of up to n bytes, by what they cost a page that does not look out.
func heavy(n int) map[string]string {
	deep := min(9_000, n/3)
	return map[string]string{
		"nested JSON":       strings.Repeat("[", deep) + strings.Repeat("0,", (n-2*deep-1)/2) + "0" + strings.Repeat("]", deep),
		"an object":         "{" + strings.TrimSuffix(strings.Repeat(`"":[{}],`, (n-2)/8), ",") + "}",
		"quotes":            strings.Repeat(`"`, n),
		"what is not seen":  strings.Repeat("\u202e", n/3),
		"lines":             strings.Repeat("a\n", n/2),
		"colors":            strings.Repeat("\x1b[31mr\x1b[1mb", n/11),
		"escapes of colors": strings.Repeat("\x1b[", n/2),
	}
}

// heavyLog is a scheduler whose logs are of one text a line.
type heavyLog struct {
	xxljob.Scheduler
	line  string
	lines int
}

func (h *heavyLog) Log(_ context.Context, _ int64, from int) (wire.LogResult, error) {
	return wire.LogResult{FromLineNum: from, ToLineNum: from + h.lines - 1, LogContent: strings.Repeat(h.line+"\n", h.lines), IsEnd: true}, nil
}

func (h *heavyLog) LogTail(ctx context.Context, run int64, _ int) (wire.LogResult, error) {
	return h.Log(ctx, run, 1)
}

// TestPagesOfHeavyTexts: no text makes a page cost much more than it has itself: each page, with
// such texts in whatever field takes them.
// It is beside no other test, since what these allocate would count.
func TestPagesOfHeavyTexts(t *testing.T) {
	t.Run("memory", testPagesOfHeavyTexts)
	t.Run(inPostgres, testPagesOfHeavyTexts)
}

func testPagesOfHeavyTexts(t *testing.T) {
	for what, text := range heavy(64 << 10) {
		if strings.HasSuffix(t.Name(), inPostgres) && what != "nested JSON" && what != "lines" {
			continue // what a page makes of a text does not depend on where it was
		}
		log := &heavyLog{line: strings.ReplaceAll(text[:8<<10], "\n", "\r"), lines: 500}
		x := newSite(t, func(c *console.Config) { log.Scheduler = c.Scheduler; c.Scheduler = log })
		root := x.admin()
		root.follows = false
		j, planned, sent, ended := x.heavily(text)
		list := pages(j, ended)
		for _, r := range []xxljob.Run{planned, sent} {
			list = append(list, slices.DeleteFunc(pages(j, r), func(page string) bool { return !strings.HasPrefix(page, "runs/") })...)
		}
		for _, page := range list {
			x.weigh(what, root, page)
		}
	}
}

// TestLogsOfHeavyLines: what is found in a log, and one line of it, cost no more than a page of lines.
// It is beside no other test, as the one above.
func TestLogsOfHeavyLines(t *testing.T) { synctest.Test(t, testLogsOfHeavyLines) }

func testLogsOfHeavyLines(t *testing.T) {
	log := &heavyLog{}
	x := newSite(t, func(c *console.Config) { log.Scheduler = c.Scheduler; c.Scheduler = log })
	root := x.admin()
	page := "runs/" + itoa(x.run(x.job("orders", "nightly")).ID) + "/log"
	texts := heavy(1 << 20)
	texts["control characters"] = strings.Repeat("\x01", 1<<20)
	for what, text := range texts {
		text = strings.ReplaceAll(text, "\n", "\r")
		time.Sleep(time.Minute) // whole logs are paced
		log.line, log.lines = text, 1
		if x.weigh(what, root, page+"?line=1"); what == "control characters" {
			root.has("The rest is omitted.")
		}
		sought := []rune(strings.NewReplacer("\x1b", "", "31m", "").Replace(text[:100]))[0] // which is shown
		log.line, log.lines = text[:8<<10], 500
		x.weigh(what, root, page+"?find="+url.QueryEscape(string(sought)))
		root.has("200 matching lines.")
	}
}

// weigh asks for a page, and says where that costs more than any page may.
func (x *site) weigh(what string, by *browser, page string) {
	x.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	by.get(page)
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; len(by.body) > mostSent || took > mostAllocated {
		x.Errorf("%s: %s has %d kB and takes %d MB", what, page, len(by.body)>>10, took>>20)
	}
	if by.res.StatusCode >= 500 {
		x.Errorf("%s: %s: status %d: %s", what, page, by.res.StatusCode, by.text())
	}
}

// heavily is a job, with the record of fifty edits, and runs of it, one that is planned, one that was sent and
// one that has ended, of which each text is as much of the given one as it may be.
func (x *site) heavily(text string) (j xxljob.Job, planned, sent, ended xxljob.Run) {
	x.Helper()
	ctx := xxljob.WithActor(x.Context(), "ann")
	other := strings.ReplaceAll(strings.ReplaceAll(text, "a", "c"), "0", "1")
	j = x.job("orders", "nightly")
	before, after := paramOf(text), paramOf(other)
	for i := range 50 {
		now := must1(x.store.Job(ctx, j.ID))
		now.Param = []string{text, other}[i%2]
		must1(x.s.UpdateJob(ctx, now.Definition()))
		must1(x.store.RecordChange(ctx, xxljob.Change{Verb: "edit", Object: store.ObjectJob, ObjectID: itoa(j.ID), JobID: j.ID, App: "orders", Before: before, After: after}))
	}
	j = must1(x.s.UpdateJob(ctx, heavyJob(must1(x.store.Job(ctx, j.ID)), text)))
	t := xxljob.Trigger{Param: &text, Addresses: slices.Repeat([]string{cut(text, 65)}, 1000)}
	var list []xxljob.Run
	for i := range 10 {
		t.Key = cut(itoa(int64(i))+text, 255)
		list = append(list, must1(x.store.AddRun(ctx, j.ID, must1(t.Encode()))))
	}
	sent, ended = x.partsOf(list[1], j, 1, text)[0], x.partsOf(list[2], j, 1, text)[0]
	must(x.T, x.store.SetProgress(ctx, []store.Progress{{RunID: sent.ID, Token: 1, Percent: 50, Text: cut(text, 2<<10)}}))
	result := store.Result{RunID: ended.ID, State: store.StateFailed, HandleMsg: cut(text, 15_000), TriggerMsg: cut(text, 15_000), Progress: 50, ProgressText: cut(text, 2<<10)}
	ended = must1(x.store.Finish(ctx, nil, []store.Result{result}))[0]
	return j, list[0], sent, ended
}

// heavyJob is the job with a script and whatever else of a definition is a text.
func heavyJob(j xxljob.Job, text string) xxljob.Job {
	seen := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return -1
		}
		return r
	}, text)
	j.Name, j.Author, j.Handler, j.GlueRemark = cut(text, 255), cut(text, 64), cut(text, 255), cut(text, 128)
	j.Key, j.AlarmEmail = cut(seen, 255), cut(text, 255)
	j.GlueType, j.GlueSource = "GLUE_SHELL", strings.Repeat(text, 16)
	for i := range 100 {
		ref := "orders/" + itoa(int64(i)) + cut(text, 240)
		j.ChildKeys, j.AfterKeys = append(j.ChildKeys, ref+"child"), append(j.AfterKeys, ref+"before")
	}
	for i := range 16 {
		j.Tags = append(j.Tags, itoa(int64(i))+strings.Repeat("\u53c2", 20))
	}
	return j.Definition()
}

// cut is a text in at most so many bytes.
func cut(text string, most int) string { return strings.ToValidUTF8(text[:min(len(text), most)], "") }

// paramOf is a JSON object with as much of a text as an entry of the record may have.
func paramOf(text string) string {
	for n := 64 << 10; ; n = n * 7 / 8 {
		object, err := json.Marshal(map[string]string{"Param": strings.ToValidUTF8(text[:min(n, len(text))], "")})
		if err == nil && len(object) <= 64<<10 {
			return string(object)
		}
	}
}

// mostListed is what is allocated for a page of many runs and jobs with texts that it does not show,
// and mostWhole for a page of runs for which the whole of fifty texts is read.
const (
	mostListed = 24 << 20
	mostWhole  = 6 << 20
)

// TestListsOfHeavyTexts: what a page costs that lists jobs and runs does not depend on how long those
// of their texts are that it does not show.
// It is beside no other test, as the one above.
func TestListsOfHeavyTexts(t *testing.T) {
	t.Run("memory", testListsOfHeavyTexts)
	t.Run(inPostgres, testListsOfHeavyTexts)
}

func testListsOfHeavyTexts(t *testing.T) {
	const jobs, runs, parts = 60, 10, 300
	x := newSite(t)
	root := x.admin()
	root.follows = false
	ctx := xxljob.WithActor(t.Context(), "ann")
	heavy := func(i int) *string {
		text := itoa(int64(i)) + strings.Repeat(" 参数", 9_000)
		return &text
	}
	var addresses []string
	for i := range 1000 {
		addresses = append(addresses, fmt.Sprintf("http://executor-%04d%s:8080/", i, strings.Repeat(".example", 4)))
	}
	var j xxljob.Job
	for i := range jobs {
		j = must1(x.s.AddJob(ctx, xxljob.Job{App: "orders", Name: "nightly " + itoa(int64(i)), Handler: "work", Param: *heavy(i)}))
		for k := range runs {
			r := must1(x.store.AddRun(ctx, j.ID, xxljob.Trigger{Param: heavy(k), Addresses: addresses}))
			if k > 0 {
				must1(x.store.Kill(ctx, r.ID, "enough"))
			}
		}
	}
	for i := range 100 { // of which each page of a job looks for those that lead to it, and the overview for those that have stopped by an error
		script := xxljob.Job{App: "orders", Name: "leads " + itoa(int64(i)), GlueType: "GLUE_SHELL", GlueSource: strings.Repeat("#", 260<<10), Children: []int64{j.ID}, Stopped: true}
		must1(x.s.AddJob(ctx, script))
	}
	r := x.broadcast(j, parts, *heavy(0))
	all := append(pages(j, r), "jobs?rows=500", "jobs?rows=500&type=NONE")
	for _, page := range all {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		root.get(page)
		runtime.ReadMemStats(&after)
		most := uint64(mostListed)
		if strings.Contains(page, "export") { // which has them
			most = mostAllocated
		}
		if took := after.TotalAlloc - before.TotalAlloc; root.res.StatusCode >= 500 || len(root.body) > mostSent || took > most {
			t.Errorf("%s: status %d, %d kB, takes %d MB", page, root.res.StatusCode, len(root.body)>>10, took>>20)
		}
	}
	root.get("runs/" + itoa(r.ID)).has(itoa(parts-201) + " more are not shown")
	y := newSiteOn(t, x.store, func(c *console.Config) {
		c.Redact = func(_ string, _ console.Field, text string) string { return text }
	})
	hiding := y.session("root", "another session")
	for _, page := range []string{"runs", "runs?state=bad"} { // for which the whole of each text is read
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		hiding.get(page).is(200).has("50 of " + itoa(parts) + " parts in this list")
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; len(hiding.body) > mostSent || took > mostWhole {
			t.Errorf("%s, where texts may be hidden: %d kB, takes %d MB", page, len(hiding.body)>>10, took>>20)
		}
	}
}

// mostUnlisted is what is allocated for a page that lists none of many jobs.
const mostUnlisted = 8 << 20

// TestListsOfHeavyKeys: nor does it depend on how many other jobs they name by their keys. In memory it would not
// in any case, since a job that is read shares its texts with the one that is kept.
// It is beside no other test, as those above.
func TestListsOfHeavyKeys(t *testing.T) { t.Run(inPostgres, testListsOfHeavyKeys) }

func testListsOfHeavyKeys(t *testing.T) {
	x := newSite(t)
	root := x.admin()
	var keys [2][]string
	for i := range keys {
		for k := range 100 {
			keys[i] = append(keys[i], fmt.Sprintf("orders/%d-%03d-%s", i, k, strings.Repeat("k", 240)))
		}
	}
	x.job("orders", "nightly")
	nothing := func(store.Job, time.Time) (time.Time, error) { return time.Time{}, nil }
	for i := range 300 {
		must1(x.store.AddJob(t.Context(), xxljob.Job{App: "orders", Name: "names many " + itoa(int64(i)), Handler: "work", Schedule: xxljob.Manual(), Stopped: true, ChildKeys: keys[0], AfterKeys: keys[1]}, nothing))
	}
	for page, most := range map[string]uint64{"jobs?rows=500": mostListed, "jobs?rows=500&state=off": mostListed,
		"overview": mostUnlisted, "timetable": mostUnlisted, "changes": 2 * mostUnlisted, "executors": mostUnlisted} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		root.get(page).is(200)
		runtime.ReadMemStats(&after)
		took := after.TotalAlloc - before.TotalAlloc
		t.Logf("%s: %d kB, takes %d kB", page, len(root.body)>>10, took>>10)
		if len(root.body) > mostSent || took > most {
			t.Errorf("%s: %d kB, takes %d MB", page, len(root.body)>>10, took>>20)
		}
	}
}

// broadcast is the last of the parts of a broadcast of the job: each has the parameter, and a result
// of its own.
func (x *site) broadcast(j xxljob.Job, parts int, param string) (last xxljob.Run) {
	x.Helper()
	ctx := x.Context()
	var results []store.Result
	for i, part := range x.parts(j, parts, param) {
		results = append(results, store.Result{RunID: part.ID, State: store.StateFailed, HandleMsg: itoa(int64(i)) + strings.Repeat(" failed", 2000)})
	}
	ended := must1(x.store.Finish(ctx, nil, results))
	for _, part := range ended {
		if part.ID > last.ID {
			last = part
		}
	}
	if len(ended) != parts {
		x.Fatalf("%d results of %d were taken", len(ended), parts)
	}
	return last
}

// parts are those of a broadcast that has been sent, the first of them last.
func (x *site) parts(j xxljob.Job, parts int, param string) []xxljob.Run {
	x.Helper()
	return x.partsOf(x.run(j), j, parts, param)
}

// partsOf are the parts of a broadcast that a planned run of the job becomes.
func (x *site) partsOf(r xxljob.Run, j xxljob.Job, parts int, param string) []xxljob.Run {
	x.Helper()
	ctx, me := x.Context(), "node-1"
	if x.taken == nil {
		view := must1(x.store.Join(ctx, store.Node{ID: "node", Incarnation: me}))
		x.taken = must1(x.store.TakeShards(ctx, me, view.Shards))
	}
	var shard store.Shard
	for _, s := range x.taken {
		if s.ID == j.Shard {
			shard = s
		}
	}
	var targets []string
	for i := range parts {
		targets = append(targets, "http://10.0.0.1:"+itoa(int64(1000+i))+"/")
	}
	started := must1(x.store.Start(ctx, nil, []store.Start{{RunID: r.ID, JobID: j.ID, Shard: shard.ID, Epoch: shard.Epoch, JobVersion: j.Version,
		State: store.StateDispatched, Owner: me, Token: 1, Address: targets[0], Targets: targets, Handler: "work", Param: param}}))[0]
	if started.Status != store.StartOK || len(started.Siblings) != parts-1 {
		x.Fatalf("a broadcast of %d parts: status %d, %d beside the first", parts, started.Status, len(started.Siblings))
	}
	return append(started.Siblings, started.Run)
}
