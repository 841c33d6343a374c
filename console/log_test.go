package console_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/console"
	"github.com/xxljob/xxljob/internal/test/await"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store/storetest"
	"github.com/xxljob/xxljob/wire"
)

// ran starts the scheduler of the site, runs the handler once and returns the run; where it is
// not to be waited for, it may go on until the test ends.
func (x *site) ran(wait bool, handle func(context.Context, *xxljob.Task) error) xxljob.Run {
	x.Helper()
	x.s.Handle("work", handle)
	must(x.T, x.s.Start(x.Context()))
	x.Cleanup(func() { _ = x.s.Stop(context.Background()) })
	j := x.job("orders", "nightly")
	ctx, cancel := context.WithTimeout(xxljob.WithActor(x.Context(), "starter"), 30*time.Second)
	defer cancel()
	id := must1(x.s.TriggerOne(ctx, j.ID, xxljob.Trigger{}))
	if wait {
		return must1(x.s.Wait(ctx, id))
	}
	var run xxljob.Run
	await.Until(x.T, "the run to be taken", func() bool {
		run = must1(x.store.Run(ctx, id))
		return !run.Taken.IsZero()
	})
	return run
}

// numbers are those of the lines on the page: the first, the last, and how many.
func (b *browser) numbers() string {
	b.Helper()
	all := regexp.MustCompile(`id="L(\d+)"`).FindAllStringSubmatch(b.body, -1)
	if len(all) == 0 {
		return "none"
	}
	first, last := must1(strconv.Atoi(all[0][1])), must1(strconv.Atoi(all[len(all)-1][1]))
	if last-first+1 != len(all) {
		b.Errorf("%s: lines %d to %d are %d", b.at, first, last, len(all))
	}
	return fmt.Sprintf("%d-%d", first, last)
}

// zoned has executors whose clocks are ahead of UTC.
type zoned struct {
	xxljob.Scheduler
	ahead time.Duration
}

func (z *zoned) moved(res wire.LogResult, err error) (wire.LogResult, error) {
	res.LogContent = regexp.MustCompile(`(?m)^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d`).ReplaceAllStringFunc(res.LogContent, func(at string) string {
		return must1(time.Parse(time.DateTime, at)).Add(z.ahead).Format(time.DateTime)
	})
	return res, err
}

func (z *zoned) Log(ctx context.Context, run int64, from int) (wire.LogResult, error) {
	return z.moved(z.Scheduler.Log(ctx, run, from))
}

func (z *zoned) LogTail(ctx context.Context, run int64, n int) (wire.LogResult, error) {
	return z.moved(z.Scheduler.LogTail(ctx, run, n))
}

// TestZoneBetween: of a long run the end of its log leaves the zone open, and its beginning does not.
func TestZoneBetween(t *testing.T) {
	began := time.Date(2027, 3, 1, 10, 0, 0, 0, time.UTC)
	at := func(d time.Duration) time.Time { return began.Add(d) }
	for _, c := range []struct {
		first, last, took time.Duration // of the wall, and of the run
		want              time.Duration
		known             bool
	}{
		{0, time.Minute, 2 * time.Minute, 0, true},
		{8 * time.Hour, 8*time.Hour + time.Minute, 2 * time.Minute, 8 * time.Hour, true},
		{-3*time.Hour - 30*time.Minute, -3*time.Hour - 30*time.Minute, time.Second, -3*time.Hour - 30*time.Minute, true},
		{time.Hour + 50*time.Minute, 2 * time.Hour, 2 * time.Hour, 0, false},            // or UTC+1, and the last hour of silence
		{8*time.Hour + time.Second, 10 * time.Hour, 2 * time.Hour, 8 * time.Hour, true}, // from its beginning to its end
		{-time.Minute, 0, time.Minute, 0, true},                                         // a clock that goes behind
		{20 * time.Hour, 20 * time.Hour, time.Minute, 20 * time.Hour, false},            // no zone is so far ahead
		{7 * time.Minute, 7 * time.Minute, time.Second, 0, false},                       // no zone is that
		{48 * time.Hour, 49 * time.Hour, time.Minute, 48 * time.Hour, false},            // of another day
	} {
		got, known := console.ZoneBetween(at(c.first), at(c.last), began, at(c.took))
		if known != c.known || known && got != c.want {
			t.Errorf("%v to %v of %v: %v, known %v", c.first, c.last, c.took, got, known)
		}
	}
}

// TestZoneOfALog: the page says by which zone the times in a log are, and how far that is from the times
// beside it; where that cannot be told it says nothing.
func TestZoneOfALog(t *testing.T) { onBothStores(t, testZoneOfALog) }

func testZoneOfALog(t *testing.T) {
	for _, c := range []struct {
		zone       string
		ahead      time.Duration // of UTC
		has, lacks string
	}{
		{"UTC", 0, "Times in the log: UTC", "The times in the log"},
		{"Asia/Shanghai", 0, "The times in the log are UTC: 8 h behind this page", "Times in the log"},
		{"Asia/Shanghai", 8 * time.Hour, "Times in the log: UTC+8", "The times in the log"},
		{"America/New_York", 5*time.Hour + 30*time.Minute, "The times in the log are UTC+5:30: ", "behind this page"},
		{"UTC", 20 * time.Hour, "", "imes in the log"}, // no zone is so far ahead
	} {
		x := newSite(t, func(cfg *console.Config) { cfg.Scheduler = &zoned{cfg.Scheduler, c.ahead} })
		root := x.admin()
		run := x.ran(true, func(_ context.Context, task *xxljob.Task) error {
			for i := range 500 {
				task.Log().Info("entry", "n", i+1)
			}
			return nil
		})
		root.post("look", url.Values{"zone": {c.zone}, "next": {"jobs"}})
		for _, page := range []string{"runs/" + itoa(run.ID), "runs/" + itoa(run.ID) + "/log", "runs/" + itoa(run.ID) + "/log?from=1"} {
			root.get(page).is(200).has(c.has).lacks(c.lacks)
		}
	}
}

func TestLogOfARun(t *testing.T) { onBothStores(t, testLogOfARun) }

func testLogOfARun(t *testing.T) {
	x := newSite(t)
	root := x.admin()
	run := x.ran(true, func(_ context.Context, task *xxljob.Task) error {
		for i := range 998 {
			task.Log().Info("entry", "n", i+1)
		}
		task.Log().Info("long " + strings.Repeat("y", 9<<10) + "END")
		task.Log().Info("the last \x1b[31mred\x1b[0m <script>alert(1)</script>")
		return nil
	})
	page := "runs/" + itoa(run.ID)
	root.get(page).is(200).has("succeeded", "ran once: starter,")
	last := root.numbers()
	if m := regexp.MustCompile(`^(\d+)-(\d+)$`).FindStringSubmatch(last); m == nil || must1(strconv.Atoi(m[2]))-must1(strconv.Atoi(m[1])) != 399 {
		t.Fatalf("lines %s, want the last 400", last)
	}
	total := must1(strconv.Atoi(strings.SplitN(last, "-", 2)[1]))
	root.has("the last red <script>alert(1)</script>").lacks("<script>alert")
	if !strings.Contains(root.body, `class="ansi-red"`) || strings.Contains(root.body, "data-follow") {
		t.Error("no color, or a log that has ended is followed")
	}
	log := page + "/log"
	from := total - 399
	root.get(root.link("Earlier lines"))
	if want := fmt.Sprintf("%d-%d", from-400, from-1); root.numbers() != want {
		t.Errorf("earlier lines are %s, want %s", root.numbers(), want)
	}
	root.get(root.link("Later lines"))
	if root.numbers() != last {
		t.Errorf("later lines are %s, want %s", root.numbers(), last)
	}
	for query, want := range map[string]string{"": last, "?from=1": "1-400", "?from=100&to=120": "100-120", "?from=" + strconv.Itoa(total): fmt.Sprintf("%d-%d", total, total), "?from=" + strconv.Itoa(total+1): "none", "?from=9&to=3": "none"} {
		if root.get(log + query).is(200); root.numbers() != want {
			t.Errorf("%q: lines %s, want %s", query, root.numbers(), want)
		}
	}
	for _, bad := range []string{"?from=0", "?from=-1", "?from=x", "?to=x", "?line=0", "?line=99999999999999999999"} {
		root.get(log + bad).is(400)
	}
	root.get(log).has(fmt.Sprintf("Lines %d to %d of %d ", from, total, total)).lacks("so far ")
	root.get(log + "?from=1").has("Lines 1 to 400 ").lacks("Lines 1 to 400 of") // the store does not have them
	root.get(log + "?from=100")
	line := regexp.MustCompile(`href="[./]*(runs/\d+/log\?from=\d+#L120)"`).FindStringSubmatch(root.body)
	if line == nil {
		t.Fatal("no link to a line")
	}
	root.get(strings.TrimSuffix(line[1], "#L120"))
	if !strings.Contains(root.body, `id="L120"`) {
		t.Errorf("%s does not have line 120", line[1])
	}
	root.get(log).lacks("END")
	root.get(root.link("truncated: show all")).is(200).has("yyyEND")
	root.get(log + "/file").is(200)
	if n := strings.Count(root.body, "\n"); n != total || !strings.Contains(root.res.Header.Get("Content-Disposition"), "run-"+itoa(run.ID)+".log") || root.res.Header.Get("Content-Type") != "text/plain; charset=utf-8" {
		t.Errorf("a file of %d lines, want %d: %v", n, total, root.res.Header)
	}
}

// TestHowManyLines: it is said how many there are, so far where there may be more of them, and not
// where nobody knows; for that the store is asked once, and by no page that follows a log.
func TestHowManyLines(t *testing.T) { onBothStores(t, testHowManyLines) }

func testHowManyLines(t *testing.T) {
	var f *storetest.WholeFaults
	x := newSite(t, func(c *console.Config) {
		f = storetest.WrapWhole(c.Store.(Store))
		c.Store, c.Scheduler = f, must1(xxljob.New(f, xxljob.Config{App: "orders", Logger: slog.New(slog.DiscardHandler), Logs: xxljob.LogConfig{InStore: true}}))
	})
	x.s = must1(xxljob.New(x.store, xxljob.Config{App: "orders", Logger: slog.New(slog.DiscardHandler), Logs: xxljob.LogConfig{InStore: true}}))
	root := x.admin()
	wrote, goOn := make(chan struct{}), make(chan struct{})
	defer close(goOn)
	run := x.ran(false, func(_ context.Context, task *xxljob.Task) error {
		for i := range 1000 {
			task.Log().Info("entry", "n", i+1)
		}
		close(wrote)
		<-goOn
		return nil
	})
	<-wrote
	log := "runs/" + itoa(run.ID) + "/log"
	await.Until(t, "the lines", func() bool { return strings.Contains(root.get(log).body, "n=1000<") })
	total := must1(strconv.Atoi(strings.SplitN(root.numbers(), "-", 2)[1]))
	root.has(fmt.Sprintf("Lines %d to %d of %d so far ", total-399, total, total))

	await.Until(t, "the store to have the lines", func() bool {
		_, last, err := x.store.LogPages(t.Context(), run.ID, 1, 0)
		return err == nil && last == total
	})
	calls := func(has string) int {
		t.Helper()
		before := f.Calls("LogPages")
		root.get(log + "?from=1").is(200).has(has)
		return f.Calls("LogPages") - before
	}
	page := calls(fmt.Sprintf("Lines 1 to 400 of %d so far ", total))
	root.header.Set("HX-Request", "true")
	root.header.Set("HX-Request-Type", "partial")
	if part := calls("n=1"); page != part+1 {
		t.Errorf("the store is asked for pages of the log %d times for a page, and %d times for lines that follow", page, part)
	}
}

func TestLogIsSearched(t *testing.T) { onBothStores(t, testLogIsSearched) }

func testLogIsSearched(t *testing.T) {
	x := newSite(t)
	root := x.admin()
	run := x.ran(true, func(_ context.Context, task *xxljob.Task) error {
		for i := range 1000 {
			task.Log().Info("entry", "n", i+1)
		}
		return nil
	})
	log := "runs/" + itoa(run.ID) + "/log?find="
	root.get(log+"N%3D777").is(200).has("1 matching line.", "n=777").lacks("n=778")
	root.get(log + "nowhere").is(200).has("No matching lines.")
	root.get(log+"entry").is(200).has("200 matching lines.", "Searched up to line")
	seen := map[string]bool{}
	for range 10 {
		for _, m := range regexp.MustCompile(`id="L(\d+)"`).FindAllStringSubmatch(root.body, -1) {
			if seen[m[1]] {
				t.Errorf("line %s is found twice", m[1])
			}
			seen[m[1]] = true
		}
		if !strings.Contains(root.body, ">Continue</a>") {
			break
		}
		root.get(root.link("Continue")).is(200)
	}
	if len(seen) != 1000 {
		t.Errorf("%d lines are found, want 1000", len(seen))
	}
	root.get(log + strings.Repeat("x", 300)).is(400)
	for _, evil := range hostile {
		root.get(log + url.QueryEscape(evil))
		inert(t, "log search", evil, root.body)
	}
}

// TestLogIsFollowed: whoever asks for what is behind a line gets just that, and is told when
// nothing more will come.
func TestLogIsFollowed(t *testing.T) { onBothStores(t, testLogIsFollowed) }

func testLogIsFollowed(t *testing.T) {
	x := newSite(t)
	root := x.admin()
	more, done := make(chan bool), make(chan bool, 2)
	run := x.ran(false, func(ctx context.Context, task *xxljob.Task) error {
		for _, line := range []string{"the first", "the second"} {
			task.Log().Info(line)
			done <- true
			select {
			case <-more:
			case <-ctx.Done(): // the test has failed
			}
		}
		return nil
	})
	<-done
	root.get("runs/"+itoa(run.ID)).is(200).has("the first", "Kill", "running")
	m := regexp.MustCompile(`data-follow="[./]*(runs/\d+/log)" data-next="(\d+)"`).FindStringSubmatch(root.body)
	if m == nil {
		t.Fatal("the log is not followed")
	}
	root.live()
	ask := func() *browser { return root.get(m[1] + "?from=" + m[2]) }
	ask().is(204)
	more <- true
	<-done
	ask().is(200).has("the second").lacks("the first", "<html", "<h1")
	m[2] = root.res.Header.Get("X-Log-Next")
	if root.res.Header.Get("X-Log-End") != "" {
		t.Error("the log of a run that goes on has ended")
	}
	ask().is(204)
	more <- true
	must1(x.s.Wait(t.Context(), run.ID))
	for ask(); root.res.StatusCode == 200; ask() { // the lines that say how it has ended
		m[2] = root.res.Header.Get("X-Log-Next")
		if root.res.Header.Get("X-Log-End") != "" {
			break
		}
	}
	if root.res.Header.Get("X-Log-End") != "true" {
		t.Errorf("status %d, %v", root.res.StatusCode, root.res.Header)
	}
}

// silent is a scheduler whose nodes do not answer, once there is a reason.
type silent struct {
	xxljob.Scheduler
	why error
}

func (s *silent) Log(ctx context.Context, run int64, from int) (wire.LogResult, error) {
	if s.why != nil {
		return wire.LogResult{}, s.why
	}
	return s.Scheduler.Log(ctx, run, from)
}

func (s *silent) LogTail(ctx context.Context, run int64, n int) (wire.LogResult, error) {
	if s.why != nil {
		return wire.LogResult{}, s.why
	}
	return s.Scheduler.LogTail(ctx, run, n)
}

// TestNoLog says why there is none.
func TestNoLog(t *testing.T) { onBothStores(t, testNoLog) }

func testNoLog(t *testing.T) {
	quiet := &silent{}
	x := newSite(t, func(c *console.Config) { quiet.Scheduler = c.Scheduler; c.Scheduler = quiet })
	root := x.admin()
	run := x.run(x.job("orders", "nightly"))
	page := "runs/" + itoa(run.ID)
	root.get(page).is(200).has("Nothing has been logged yet.")
	if !strings.Contains(root.body, `data-next="1"`) {
		t.Error("a log that has not begun is not followed")
	}
	root.get(page + "/log?find=x").is(200).has("No matching lines.")
	root.get(page + "/log/file").is(404).has("is not available")
	quiet.why = fmt.Errorf("node <b>n1</b>: %w", context.DeadlineExceeded)
	for _, p := range []string{page, page + "/log", page + "/log?from=3", page + "/log?find=x"} {
		root.get(p).is(200).has("does not answer: node <b>n1</b>", "Retry").lacks("<b>n1")
	}
	root.get(page + "/log/file").is(503)
	quiet.why = nil
	must(t, x.s.Kill(t.Context(), run.ID))
	root.get(page).is(200).has("The log of this run is not available: the run was not started").lacks("Retry")
}

// closed is an executor that refuses to show its logs.
type closed struct{ *stage.SlowExecutor }

func (closed) Log(context.Context, wire.LogRequest) (wire.LogReturn, error) {
	return wire.LogReturn{Code: wire.CodeFail, Msg: "the disk is away"}, nil
}

// TestWhyNoLogInChinese: what the scheduler says of a log that an executor does not give is in the viewer's
// language, and what the executor says stays as it is.
func TestWhyNoLogInChinese(t *testing.T) {
	onBothStores(t, func(t *testing.T) {
		x := newSite(t)
		root := x.admin()
		must(t, x.s.Attach(closed{&stage.SlowExecutor{Of: "billing", Delay: func(wire.TriggerRequest) time.Duration { return 0 }}}))
		must(t, x.s.Start(t.Context()))
		t.Cleanup(func() { _ = x.s.Stop(context.Background()) })
		id := must1(x.s.TriggerOne(t.Context(), x.job("billing", "nightly").ID, xxljob.Trigger{}))
		await.Until(t, "the run to be sent", func() bool { return must1(x.store.Run(t.Context(), id)).Address != "" })
		page := "runs/" + itoa(id)
		root.get(page).is(200).has("The log of this run is not available: its executor refused: the disk is away")
		for tag, want := range map[string]string{"zh-CN": "无法获取该运行的日志：其执行器拒绝了请求：the disk is away", "zh-TW": "其執行器拒絕了請求：the disk is away"} {
			root.post("look", url.Values{"language": {tag}, "next": {page}}).is(200).has(want).lacks("executor refused")
		}
	})
}

// endless is a scheduler with a log that never ends, of which each part takes its time.
type endless struct {
	xxljob.Scheduler
	takes time.Duration
	lines int // of 1 KiB, at a time
}

func (e *endless) Log(ctx context.Context, _ int64, from int) (wire.LogResult, error) {
	select {
	case <-time.After(e.takes):
	case <-ctx.Done():
		return wire.LogResult{}, ctx.Err()
	}
	return wire.LogResult{FromLineNum: from, ToLineNum: from + e.lines - 1, LogContent: strings.Repeat(strings.Repeat("x", 1023)+"\n", e.lines)}, nil
}

// TestLogsOfAnySize: a file and a search have their bounds, and say where they have stopped.
func TestLogsOfAnySize(t *testing.T) { inMemory(t, testLogsOfAnySize) }

func testLogsOfAnySize(t *testing.T) {
	log := &endless{lines: 1024}
	x := newSite(t, func(c *console.Config) { log.Scheduler = c.Scheduler; c.Scheduler = log })
	root := x.admin()
	page := "runs/" + itoa(x.run(x.job("orders", "nightly")).ID) + "/log"
	root.get(page + "/file").is(200)
	if n := len(root.body); n < 63<<20 || n > 64<<20+100 || !strings.HasSuffix(root.body, "… The rest is omitted.\n") {
		t.Errorf("a file of %d bytes", n)
	}
	root.get(page+"?find=needle").is(200).has("No matching lines.", "Searched up to line 65536.")
	if to := root.link("Continue"); !strings.HasSuffix(to, "?find=needle&from=65537") {
		t.Errorf("it goes on at %s", to)
	}
	root.get(page + "?from=1")
	if n := len(root.body); n > 600<<10 {
		t.Errorf("a page of %d bytes", n)
	}
}

// TestALogFileIsTakenInTime: who takes a file slower than the least rate gives its place back. The time in which
// the executor is waited for does not count.
func TestALogFileIsTakenInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &endless{lines: 1024}
		x := newSite(t, func(c *console.Config) { log.Scheduler = c.Scheduler; c.Scheduler = log })
		root := x.admin()
		page := "runs/" + itoa(x.run(x.job("orders", "nightly")).ID) + "/log/file"
		wires := x.serving()
		if got, _, took := x.take(wires, root, page, 64<<10); got >= 63<<20 || took < 10*time.Second || took > 30*time.Second {
			t.Errorf("at 64 kB a second %d bytes were sent within %v", got, took)
		}
		if got, _, took := x.take(wires, root, page, 4<<20); got < 63<<20 {
			t.Errorf("at 4 MB a second %d bytes were sent within %v", got, took)
		}
		log.takes = 2 * time.Second // 0.5 MB a second, less than is taken
		if got, _, took := x.take(wires, root, page, 1<<20); got < 63<<20 || took < 2*time.Minute {
			t.Errorf("of an executor that takes its time %d bytes were sent within %v", got, took)
		}
		time.Sleep(10 * time.Second)
	})
}

// hanging has logs that do not come.
type hanging struct{ xxljob.Scheduler }

func (hanging) LogTail(ctx context.Context, _ int64, _ int) (wire.LogResult, error) {
	<-ctx.Done()
	return wire.LogResult{}, ctx.Err()
}

// TestARunIsShownWithoutItsLog: why a run has failed is not kept from anybody by an executor that does not
// answer. Who asks for the log itself waits for it longer.
func TestARunIsShownWithoutItsLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newSite(t, func(c *console.Config) { c.Scheduler = hanging{c.Scheduler} })
		root := x.admin()
		page := "runs/" + itoa(x.run(x.job("orders", "nightly")).ID)
		for _, c := range []struct {
			page string
			most time.Duration
		}{{page, time.Second}, {page + "/log", 5 * time.Second}} {
			begun := time.Now()
			root.get(c.page).is(200).has("does not answer", "Retry")
			if took := time.Since(begun); took > c.most {
				t.Errorf("%s took %v", c.page, took)
			}
		}
	})
}

// TestASearchThatIsSlow ends in time, and goes on from where it was.
func TestASearchThatIsSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &endless{lines: 10, takes: 1500 * time.Millisecond}
		x := newSite(t, func(c *console.Config) { log.Scheduler = c.Scheduler; c.Scheduler = log })
		root := x.admin()
		page := "runs/" + itoa(x.run(x.job("orders", "nightly")).ID) + "/log?find=needle"
		begun := time.Now()
		root.get(page).is(200).has("Searched up to line 40.")
		if took := time.Since(begun); took > 8*time.Second {
			t.Errorf("it took %v", took)
		}
		log.takes = time.Minute
		root.get(page).is(200).has("does not answer", "Retry")
	})
}
