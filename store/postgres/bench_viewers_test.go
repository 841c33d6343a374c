package postgres

// What it costs that twenty people look at live pages while a thousand jobs run a second, and how
// soon they see the lines of a log. Two of the twenty follow a log beside their page.
//
// What the machine does beside it does not decide: CPU time is that of a process which has nothing
// but a console, and of its sessions in Postgres, not a difference of two measurements; and the
// lateness of runs is compared in many short intervals, with and without viewers in turns, of
// whose differences the median has to exceed the budget with a confidence of 97.5 %.

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/executor"
	"github.com/xxljob/xxljob/internal/test/await"
	"github.com/xxljob/xxljob/internal/test/pgtest"
	"github.com/xxljob/xxljob/schedule"
	"github.com/xxljob/xxljob/store"
)

// The budgets.
const (
	numViewers     = 20
	budgetOfCPU    = 5.0 // percent of a core
	budgetOfLate   = time.Millisecond
	budgetOfPoll   = 5 * time.Millisecond
	budgetOfSearch = 50 * time.Millisecond
	budgetOfHeap   = 30 << 20
	budgetOfFollow = 2 * time.Second
)

const (
	benchToken = "token of the benchmark"
	lineEvery  = 500 * time.Millisecond
	numTurns   = 15                     // of lateness: with viewers and without
	turnLasts  = 3 * time.Second        // of which each is that long
	turnBegins = 500 * time.Millisecond // behind so much that does not count
	costBegins = 5 * time.Second        // until all look, and have a session
	costLasts  = 30 * time.Second       // how long CPU time is counted
)

// loaded is the scheduler that runs jobs, and what it runs.
type loaded struct {
	place
	st   *Store
	s    xxljob.Scheduler
	logs []int64 // runs that write a line now and then: at this node, and at a remote executor

	mu   sync.Mutex
	late []time.Duration // guarded by mu: of runs, since it was last emptied
}

// load has a scheduler run a thousand jobs a second in another schema, until the benchmark ends.
func (d *planData) load(b *testing.B, dsn string) *loaded {
	b.Helper()
	at := pgtest.At(dsn)
	l := &loaded{place: place{dsn, pgtest.Schema(b, at)}}
	pool := pgtest.Pool(b, at)
	fatal(b, Migrate(b.Context(), pool, Config{Schema: l.Schema}))
	var err error
	l.st, err = New(b.Context(), pool, Config{Schema: l.Schema})
	fatal(b, err)
	l.s, err = xxljob.New(l.st, xxljob.Config{App: "load", Logger: slog.New(slog.DiscardHandler), HTTP: xxljob.HTTPConfig{Tokens: map[string][]string{"": {benchToken}}}})
	fatal(b, err)
	fatal(b, l.s.Handle("noop", func(_ context.Context, t *xxljob.Task) error {
		late := time.Since(t.ScheduledAt)
		l.mu.Lock()
		defer l.mu.Unlock()
		l.late = append(l.late, late)
		return nil
	}))
	fatal(b, l.s.Handle("speak", speak))
	jobs := make([]store.Job, loadJobs)
	for i := range jobs {
		jobs[i] = store.Job{Name: strconv.Itoa(i), Handler: "noop", Schedule: schedule.FixedRate(time.Second)}
	}
	_, err = l.s.EnsureJobs(b.Context(), "load", jobs, xxljob.EnsureOptions{})
	fatal(b, err)
	fatal(b, l.s.Start(b.Context()))
	b.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = l.s.Stop(ctx)
		l.st.Close()
	})
	l.far(b)
	for _, app := range []string{"load", "far"} {
		l.logs = append(l.logs, l.speaking(b, app))
	}
	time.Sleep(3 * time.Second) // until it runs evenly
	return l
}

func fatal(b *testing.B, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// speak writes when it is, until it is to end.
func speak(ctx context.Context, t *xxljob.Task) error {
	for pause(ctx, lineEvery) {
		t.Log().Info("a line", "at", time.Now().UnixNano())
	}
	return nil
}

// far starts a remote executor.
func (l *loaded) far(b *testing.B) {
	b.Helper()
	h, err := l.s.AdminHandler()
	fatal(b, err)
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	fatal(b, err)
	admin := &http.Server{Handler: h}
	go func() { _ = admin.Serve(lis) }()
	b.Cleanup(func() { _ = admin.Close() })
	e, err := executor.New(executor.Config{App: "far", Addr: "127.0.0.1:0", Logger: slog.New(slog.DiscardHandler),
		Admins: []executor.AdminCluster{{Addresses: []string{"http://" + lis.Addr().String()}, Token: benchToken}}})
	fatal(b, err)
	fatal(b, e.Handle("speak", speak))
	fatal(b, e.Start(b.Context()))
	b.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = e.Stop(ctx)
	})
	await.Until(b, "the executor to be registered", func() bool {
		regs, err := l.st.Registrations(b.Context(), store.RegistrationFilter{})
		return err == nil && len(regs) > 0
	})
}

// speaking starts a run that writes lines until the benchmark ends.
func (l *loaded) speaking(b *testing.B, app string) int64 {
	b.Helper()
	j, err := l.s.AddJob(b.Context(), store.Job{App: app, Name: "speaks", Handler: "speak"})
	fatal(b, err)
	id, err := l.s.TriggerOne(b.Context(), j.ID, store.Trigger{})
	fatal(b, err)
	await.Until(b, "the run to begin", func() bool {
		r, err := l.st.Run(b.Context(), id)
		return err == nil && !r.Started.IsZero()
	})
	return id
}

// watched is what the viewers of a console look at.
func (l *loaded) watched(url string) (o order) {
	job := strconv.FormatInt(l.someJob(), 10)
	pages := slices.Concat(slices.Repeat([]string{"runs"}, 10), slices.Repeat([]string{"runs?app=load"}, 4), slices.Repeat([]string{"runs?state=waiting"}, 2), []string{"runs?job=" + job, "runs?job=" + job})
	for _, run := range l.logs {
		pages = append(pages, "runs/"+strconv.FormatInt(run, 10))
		o.Logs = append(o.Logs, url+"runs/"+strconv.FormatInt(run, 10)+"/log")
	}
	for _, p := range pages {
		o.Pages = append(o.Pages, url+p)
	}
	return o
}

// someJob is one of those that run each second.
func (l *loaded) someJob() int64 {
	jobs, err := l.st.Jobs(context.Background(), store.JobFilter{App: "load", Limit: 1})
	if err != nil || len(jobs) == 0 {
		return 0
	}
	return jobs[0].ID
}

// report prints a figure with its budget, and fails where that is exceeded.
func report(b *testing.B, what string, over bool, measured, budget string) {
	b.Helper()
	note := ""
	if over {
		b.Errorf("%s: %s, at most %s", what, measured, budget)
		note = "  OVER ITS BUDGET"
	}
	fmt.Printf("%-62s %26s %10s%s\n", what, measured, budget, note)
}

func inMS(d time.Duration) string { return fmt.Sprintf("%.2f ms", ms(d)) }

// viewersCost measures what the viewers cost.
func (l *loaded) viewersCost(b *testing.B) {
	fmt.Printf("\n%d viewers, in a process of their own, over loopback: pages polled as often as they say, two logs followed every %v; %d runs/s beside them\n", numViewers, followEvery, loadJobs)
	fmt.Printf("%-62s %26s %10s\n", "figure", "measured", "budget")
	v := startChild(b, "viewers")
	l.lateness(b, v)
	c := startChild(b, "console")
	l.cost(b, v, c)
	l.costOfOverview(b, v, c)
}

// look has the viewers look at something, or at nothing.
func look(b *testing.B, v *child, o order) seen {
	b.Helper()
	got := ask[order, seen](b, v, o)
	if got.Failed != "" {
		b.Fatal("a viewer: ", got.Failed)
	}
	return got
}

// p99OfLate is the 99th percentile of the lateness of runs in the next while.
func (l *loaded) p99OfLate() time.Duration {
	time.Sleep(turnBegins)
	l.taken()
	time.Sleep(turnLasts)
	all := l.taken()
	slices.Sort(all)
	if len(all) == 0 {
		return 0
	}
	return all[(len(all)*99-1)/100]
}

func (l *loaded) taken() []time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := l.late
	l.late = nil
	return all
}

// lateness compares how late runs are with and without viewers, where the console is in the
// scheduler's process.
func (l *loaded) lateness(b *testing.B, v *child) {
	url, err := serveOn(l.st, l.s)
	fatal(b, err)
	var without, with, more []time.Duration
	var got seen
	for range numTurns {
		without = append(without, l.p99OfLate())
		look(b, v, l.watched(url))
		with = append(with, l.p99OfLate())
		got = got.and(look(b, v, order{}))
		more = append(more, with[len(with)-1]-without[len(without)-1])
	}
	for _, list := range [][]time.Duration{without, with, more} {
		slices.Sort(list)
	}
	// Of 15 differences, the median is between the 4th and the 12th with 96.5 %.
	low, high := more[numTurns/5], more[numTurns-1-numTurns/5]
	fmt.Printf("%-62s %26s\n", "lateness of runs, p99, without viewers (median of intervals)", inMS(without[numTurns/2]))
	fmt.Printf("%-62s %26s\n", "lateness of runs, p99, with viewers", inMS(with[numTurns/2]))
	report(b, "what viewers add to it (median; between)", low > budgetOfLate, fmt.Sprintf("%s (%.2f, %.2f)", inMS(more[numTurns/2]), ms(low), ms(high)), inMS(budgetOfLate))
	l.followed(b, got, "in the scheduler's process", "a run of this node", "a remote run")
}

// and adds what was seen later.
func (s seen) and(more seen) seen {
	s.Polls, s.News = s.Polls+more.Polls, s.News+more.News
	s.Took = slices.Sorted(slices.Values(append(s.Took, more.Took...)))
	for i, list := range more.Lines {
		if i == len(s.Lines) {
			s.Lines = append(s.Lines, nil)
		}
		s.Lines[i] = slices.Sorted(slices.Values(append(s.Lines[i], list...)))
	}
	return s
}

// followed reports how soon lines of logs were seen.
func (l *loaded) followed(b *testing.B, got seen, console string, logs ...string) {
	fmt.Printf("%-62s %26s\n", "a poll, as a viewer waits for it, p50 and p99: console "+console, fmt.Sprintf("%s, %.2f", inMS(got.Took[len(got.Took)/2]), ms(got.Took[(len(got.Took)*99-1)/100])))
	for i, what := range logs {
		if i >= len(got.Lines) || len(got.Lines[i]) == 0 {
			b.Errorf("no line of %s was seen", what)
			continue
		}
		last := got.Lines[i][len(got.Lines[i])-1]
		report(b, fmt.Sprintf("a line of %s is there after, at most of %d", what, len(got.Lines[i])), last > budgetOfFollow, inMS(last), inMS(budgetOfFollow))
	}
}

// cost measures CPU time and memory of a console in a process of its own, which knows the logs of
// the scheduler's node by way of the store.
func (l *loaded) cost(b *testing.B, v, c *child) {
	used := func() usage { return ask[place, usage](b, c, l.place) }
	got, own, sessions, after := l.costOf(b, v, c, l.watched(used().URL))
	fmt.Printf("%-62s %26s\n", "CPU time of the console's sessions in Postgres", fmt.Sprintf("%.1f %% of a core", sessions))
	report(b, "CPU time of the console's process", own > budgetOfCPU, fmt.Sprintf("%.1f %% of a core", own), fmt.Sprintf("%.0f %%", budgetOfCPU))
	mib := func(n uint64) float64 { return float64(n) / (1 << 20) }
	more := mib(after.Most) - mib(after.Before)
	report(b, "heap of the console with its viewers, at most", more > budgetOfHeap>>20, fmt.Sprintf("%.1f MiB (process %.1f)", more, mib(after.Most)), fmt.Sprintf("%d MiB", budgetOfHeap>>20))
	l.followed(b, got, "in its own", "a run of another node", "a remote run of another node")
}

// costOf is what it costs, in percent of a core, that the viewers look at something: the console's
// process, and its sessions in Postgres.
func (l *loaded) costOf(b *testing.B, v, c *child, o order) (got seen, own, sessions float64, after usage) {
	b.Helper()
	used := func() usage { return ask[place, usage](b, c, l.place) }
	look(b, v, o)
	time.Sleep(costBegins)
	cpu, inPostgres := used().CPU, l.cpuOfSessions(b)
	time.Sleep(costLasts)
	after = used()
	percent := func(d time.Duration) float64 { return 100 * d.Seconds() / costLasts.Seconds() }
	own, sessions = percent(after.CPU-cpu), percent(l.cpuOfSessions(b)-inPostgres)
	got = look(b, v, order{})
	fmt.Printf("%-62s %26s\n", "polls a second, and how many of them had news", fmt.Sprintf("%.1f, %d %%", float64(got.Polls)/(costLasts+costBegins).Seconds(), 100*got.News/max(got.Polls, 1)))
	return got, own, sessions, after
}

// costOfOverview measures what it costs that all viewers look at the overview, with what that costs
// Postgres.
func (l *loaded) costOfOverview(b *testing.B, v, c *child) {
	url := ask[place, usage](b, c, l.place).URL
	fmt.Printf("%d viewers of the overview:\n", numViewers)
	_, own, sessions, _ := l.costOf(b, v, c, order{Pages: slices.Repeat([]string{url + "overview"}, numViewers)})
	report(b, "CPU time of the console's process and of its sessions", own+sessions > budgetOfCPU, fmt.Sprintf("%.1f + %.1f %% of a core", own, sessions), fmt.Sprintf("%.0f %%", budgetOfCPU))
}

// cpuOfSessions is the CPU time that the console's sessions have used, where the system tells it.
func (l *loaded) cpuOfSessions(b *testing.B) (all time.Duration) {
	b.Helper()
	rows, err := l.st.pool.Query(b.Context(), "select pid from pg_stat_activity where application_name = $1", consoleName)
	fatal(b, err)
	defer rows.Close()
	for rows.Next() {
		var pid int
		fatal(b, rows.Scan(&pid))
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			continue
		}
		_, rest, _ := strings.Cut(string(stat), ") ")
		if fields := strings.Fields(rest); len(fields) > 12 { // the state is the first of them
			for _, ticks := range fields[11:13] {
				n, _ := strconv.Atoi(ticks)
				all += time.Duration(n) * 10 * time.Millisecond
			}
		}
	}
	fatal(b, rows.Err())
	return all
}

// polls measures polls that have no news, where there are a million runs: those that read, and
// those that find what another one has read. One whose page is not among the newest runs, because
// its app has none there, or it is of a job that runs seldom, may take what a search may: it is a
// search, once a second for all who look. The bound is on the median, as those of the store are:
// what one takes as a rule, whatever else the machine does.
func (d *planData) polls(b *testing.B, h http.Handler, rounds int) {
	b.Helper()
	fmt.Printf("\n%-36s %9s %9s %9s %9s %9s\n", "poll without news, that reads", "p50 ms", "p99 ms", "bound ms", "shared", "p99 ms")
	// Nothing of them goes on. The page of the first four is among the newest runs.
	const near = 4
	pages := []string{"runs", "runs?app=app-1", "runs?state=bad", "runs?state=skipped", "runs?app=app-3", "runs?job=44"}
	seen := make([]string, len(pages))
	for i, p := range pages {
		seen[i] = tagOf(b, askPage(b, h, p))
	}
	reads, shared := make([][]time.Duration, len(pages)), make([][]time.Duration, len(pages))
	for round := range min(rounds, 30) {
		time.Sleep(1100 * time.Millisecond) // what was read is kept for a second
		for n := range pages {
			i := (round + n) % len(pages) // the first behind the pause finds nothing warm, and its session is pinged
			p := pages[i]
			reads[i] = append(reads[i], askPoll(b, h, p, seen[i]))
			shared[i] = append(shared[i], askPoll(b, h, p, seen[i]))
		}
	}
	for i, p := range pages {
		slices.Sort(reads[i])
		slices.Sort(shared[i])
		n, note, budget := len(reads[i]), "", budgetOfPoll
		if i >= near {
			budget = budgetOfSearch
		}
		if reads[i][n/2] > budget {
			b.Errorf("a poll of %s takes %v, at most %v", p, reads[i][n/2], budget)
			note = "  TOO SLOW"
		}
		fmt.Printf("%-36s %9.2f %9.2f %9.0f %9.2f %9.2f%s\n", p, ms(reads[i][n/2]), ms(reads[i][(n*99-1)/100]), ms(budget), ms(shared[i][n/2]), ms(shared[i][(n*99-1)/100]), note)
	}
}

// tagOf is what a page says that was seen by who has it.
func tagOf(b *testing.B, body []byte) string {
	b.Helper()
	m := polled.FindSubmatch(body)
	if m == nil {
		b.Fatal("a page is not live")
	}
	_, tag, _ := strings.Cut(string(m[1]), "seen=")
	return tag
}

// askPoll asks for a part of a page of which nothing is new.
func askPoll(b *testing.B, h http.Handler, page, tag string) time.Duration {
	b.Helper()
	sep := "?"
	if strings.Contains(page, "?") {
		sep = "&"
	}
	r := httptest.NewRequest(http.MethodGet, "http://localhost/"+page+sep+"seen="+tag, nil)
	r.RemoteAddr = "127.0.0.1:1"
	r.Header.Set("HX-Request", "true")
	r.Header.Set("HX-Request-Type", "partial")
	w := httptest.NewRecorder()
	began := time.Now()
	h.ServeHTTP(w, r)
	took := time.Since(began)
	if w.Code != http.StatusNoContent {
		b.Fatalf("a poll of %s: status %d: %s", page, w.Code, w.Body)
	}
	return took
}

// Those who look at live pages: what a browser does that has one open.

// followEvery is the pace of the script of a log.
const followEvery = time.Second

// order says what is looked at from now on: pages by their addresses, one viewer each, and logs
// that are followed, each by a viewer more. Nothing ends the looking.
type order struct{ Pages, Logs []string }

// seen is what was seen since the last order.
type seen struct {
	Polls, News int
	Failed      string          // what went wrong, if anything did
	Took        []time.Duration // each poll, sorted
	Lines       []lines         // of each log
}

// lines are those that were followed: how long after it was written each was there, sorted.
type lines []time.Duration

// viewers are all who look.
type viewers struct {
	stop context.CancelFunc // of those of the last order
	all  sync.WaitGroup
	mu   sync.Mutex
	seen seen // guarded by mu
}

// view looks at what it is told to.
func view() error {
	v := &viewers{stop: func() {}}
	return obey(v.do)
}

func (v *viewers) do(o order) (seen, error) {
	v.stop()
	v.all.Wait()
	got := v.seen
	slices.Sort(got.Took)
	for _, l := range got.Lines {
		slices.Sort(l)
	}
	v.seen = seen{Lines: make([]lines, len(o.Logs))}
	ctx, cancel := context.WithCancel(context.Background())
	v.stop = cancel
	for i, page := range o.Pages {
		v.all.Go(func() { v.watch(ctx, page, 2*time.Second*time.Duration(i)/time.Duration(len(o.Pages))) })
	}
	for i, log := range o.Logs {
		v.all.Go(func() { v.follow(ctx, log, i) })
	}
	return got, nil
}

// polled is where a page is asked for what is new, and after how many seconds.
var polled = regexp.MustCompile(`data-hx-get="([^"]*)" data-hx-trigger="every (\d+)s`)

// watch opens a page after a while, and polls it.
func (v *viewers) watch(ctx context.Context, page string, after time.Duration) {
	if !pause(ctx, after) {
		return
	}
	body, _, err := fetch(ctx, page, false)
	for v.noted(ctx, err) {
		m := polled.FindStringSubmatch(body)
		if m == nil {
			v.noted(ctx, fmt.Errorf("%s is not live", page))
			return
		}
		to, err := resolve(page, strings.ReplaceAll(m[1], "&amp;", "&"))
		if !v.noted(ctx, err) {
			return
		}
		seconds, err := strconv.Atoi(m[2])
		if !v.noted(ctx, err) {
			return
		}
		for nothing := true; nothing; {
			if !pause(ctx, time.Duration(seconds)*time.Second) {
				return
			}
			began := time.Now()
			news, res, err := fetch(ctx, to, true)
			if !v.noted(ctx, err) {
				return
			}
			if nothing = res.StatusCode == http.StatusNoContent; !nothing {
				body = news
			}
			v.mu.Lock()
			v.seen.Polls++
			v.seen.Took = append(v.seen.Took, time.Since(began))
			if !nothing {
				v.seen.News++
			}
			v.mu.Unlock()
		}
	}
}

// written is when a line was written, as it says itself.
var written = regexp.MustCompile(`\bat=(\d+)`)

// follow follows a log from its end.
func (v *viewers) follow(ctx context.Context, log string, n int) {
	next, begun := "1", false
	for pause(ctx, followEvery) {
		body, res, err := fetch(ctx, log+"?from="+next, true)
		if !v.noted(ctx, err) {
			return
		}
		now := time.Now().UnixNano()
		if to := res.Header.Get("X-Log-Next"); to != "" {
			next = to
		}
		v.mu.Lock()
		for _, m := range written.FindAllStringSubmatch(body, -1) {
			if at, err := strconv.ParseInt(m[1], 10, 64); err == nil && begun {
				v.seen.Lines[n] = append(v.seen.Lines[n], time.Duration(now-at))
			}
		}
		v.mu.Unlock()
		if res.StatusCode == http.StatusNoContent || len(body) < 10_000 { // it has caught up
			begun = true
		}
	}
}

// noted notes what went wrong, unless it is the end, and reports whether to go on.
func (v *viewers) noted(ctx context.Context, err error) bool {
	if err == nil || ctx.Err() != nil {
		return ctx.Err() == nil
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.seen.Failed = err.Error()
	return false
}

func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

// fetch asks for a page, or as a script for a part of one.
func fetch(ctx context.Context, url string, part bool) (body string, res *http.Response, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", nil, err
	}
	if part {
		r.Header.Set("HX-Request", "true")
		r.Header.Set("HX-Request-Type", "partial")
	}
	if res, err = http.DefaultClient.Do(r); err != nil {
		return "", nil, err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode >= 300 {
		err = fmt.Errorf("%s: status %d", url, res.StatusCode)
	}
	return string(b), res, err
}

func resolve(page, to string) (string, error) {
	r, err := http.NewRequest(http.MethodGet, page, nil)
	if err != nil {
		return "", err
	}
	u, err := r.URL.Parse(to)
	if err != nil {
		return "", err
	}
	return u.String(), nil
}
