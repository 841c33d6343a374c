package postgres

// The pages of the console, measured: make bench-console. There are a million runs and ten
// thousand jobs in the store, and beside it a scheduler runs a thousand jobs a second in another
// schema of the same server.

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"runtime/metrics"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/console"
	"github.com/xxljob/xxljob/internal/test/measure"
	"github.com/xxljob/xxljob/internal/test/pgtest"
)

// The bounds of a page: the 99th percentile of what the server takes for it, and what its first
// view is, compressed. Of the overview the median is bound, too.
const (
	boundOfAPage   = 200 * time.Millisecond
	medianOfFirst  = 25 * time.Millisecond
	boundOfBytes   = 60 << 10
	boundOfScripts = 20 << 10 // of our own, as they are
	loadJobs       = 1000
)

// BenchmarkConsole asks for each page so many times as XXLJOB_BENCH_CONSOLE says, or a hundred
// times, polls, and has viewers look, and fails where a bound or a budget is exceeded.
func BenchmarkConsole(b *testing.B) {
	rounds, _ := strconv.Atoi(os.Getenv("XXLJOB_BENCH_CONSOLE"))
	if rounds < 1 {
		rounds = 100
	}
	c := pgtest.Start(b, pgtest.Options{Settings: map[string]string{"shared_buffers": "512MB", "max_wal_size": "4GB"}})
	dsn := c.DSN("postgres")
	d := &planData{Store: emptyPlanStore(b, pgtest.At(dsn)), jobs: benchJobs}
	d.fillRuns(b)
	d.fillReports(b)
	d.fillLogs(b)
	d.fillRecord(b)
	d.analyze(b)
	d.readBack(b)
	// Of a run whose page is asked for nobody has a log, and nobody is waited for who might.
	d.exec(b, "update {{schema}}.xxl_job_log set executor_address = null where id = $1", d.ended[0])
	d.sayWhere(b, "Console", rounds)
	if base := os.Getenv("XXLJOB_BENCH_BASE"); base != "" {
		d.load(b, dsn)
		d.compareConsoles(b, place{dsn, strings.Trim(d.schema, `"`)}, base, rounds)
		return
	}
	visitors := 0 // each asks once: more previews a second than are measured here no single one is answered
	visit := func(*http.Request) (console.User, error) {
		visitors++
		return console.User{Name: "visitor " + strconv.Itoa(visitors), Admin: true}, nil
	}
	h, err := console.New(console.Config{Store: d.Store, Auth: console.Func(visit, ""), ReadOnly: true, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	l := d.load(b, dsn)
	fmt.Printf("%-36s %9s %9s %9s %9s %9s\n", "page", "p50 ms", "p99 ms", "bound ms", "bytes", "gzipped")
	for _, page := range d.consolePages() {
		var took []time.Duration
		var body []byte
		for range rounds {
			began := time.Now()
			body = askPage(b, h, page)
			took = append(took, time.Since(began))
		}
		slices.Sort(took)
		p50, p99, note := took[len(took)/2], took[(len(took)*99-1)/100], ""
		if p99 > boundOfAPage {
			b.Errorf("%s takes %v, at most %v", page, p99, boundOfAPage)
			note = "  TOO SLOW"
		}
		if page == "overview" && p50 > medianOfFirst {
			b.Errorf("half of the answers with %s take more than %v, at most %v", page, p50, medianOfFirst)
			note = "  TOO SLOW"
		}
		fmt.Printf("%-36s %9.2f %9.2f %9.0f %9d %9d%s\n", page, ms(p50), ms(p99), ms(boundOfAPage), len(body), gzipped(b, body), note)
	}
	firstView(b, h)
	d.polls(b, h, rounds)
	l.viewersCost(b)
}

// consolePages are those that there are.
func (d *planData) consolePages() []string {
	run := strconv.FormatInt(d.ended[0], 10)
	return []string{"overview", "overview?range=30d", "jobs", "jobs?order=next", "jobs?text=Job+4242", "jobs?app=app-3", "jobs?state=off", "jobs/export?app=app-3", "jobs/42", "runs", "runs?state=bad", "runs?state=skipped", "runs?text=nothing+at+all", "runs?app=nowhere",
		"runs?job=42", "runs/" + run, "runs/" + run + "/log", "changes", "changes?actor=nobody", "preview?type=CRON&conf=0+0+3+*+*+%3F&zone=Europe/Berlin"}
}

// compareConsoles asks the console of a base, whose tests are compiled in a file, and that of this
// tree for each page in turns, so many times of both, and fails where a page has become slower for
// certain by more than the part of one that XXLJOB_BENCH_LOSS says, or 0.03. Both are processes of
// their own that have the same store. A page is asked for again when what was read for it is
// not kept any more, so that each time the store is asked as well.
func (d *planData) compareConsoles(b *testing.B, at place, base string, pairs int) {
	loss, err := strconv.ParseFloat(os.Getenv("XXLJOB_BENCH_LOSS"), 64)
	if err != nil {
		loss = 0.03
	}
	var pages []string
	for _, page := range d.consolePages() {
		if strings.Contains(page, os.Getenv("XXLJOB_BENCH_PAGES")) {
			pages = append(pages, page)
		}
	}
	var urls [2]string
	for i, program := range []string{base, os.Args[0]} {
		urls[i] = ask[place, usage](b, startChildOf(b, program, "console"), at).URL
	}
	pages = slices.DeleteFunc(pages, func(page string) bool {
		res, err := http.Get(urls[0] + page)
		if err != nil {
			b.Fatal(err)
		}
		_ = res.Body.Close()
		if res.StatusCode == http.StatusNotFound {
			fmt.Printf("%-36s is no page of the base\n", page)
		}
		return res.StatusCode == http.StatusNotFound
	})
	took := map[string]*[2][]float64{}
	for pair := range pairs + 1 {
		began := time.Now()
		for _, page := range pages {
			if took[page] == nil {
				took[page] = new([2][]float64)
			}
			for k := range urls {
				i := (pair + k) % 2
				if t := askOver(b, urls[i]+page); pair > 0 { // the first time is for what is made once
					took[page][i] = append(took[page][i], t.Seconds())
				}
			}
		}
		time.Sleep(1100*time.Millisecond - time.Since(began))
	}
	fmt.Printf("%-36s %9s %9s  %s\n", "page", "base ms", "new ms", "new to base, with a 95 % interval")
	for _, page := range pages {
		r, known := measure.RatioOf(took[page][0], took[page][1])
		if !known {
			b.Fatalf("%s: nothing was measured", page)
		}
		note := ""
		if r.Low > 1+loss {
			b.Errorf("%s takes longer than at the base: %v", page, r)
			note = "  LOST"
		}
		fmt.Printf("%-36s %9.2f %9.2f  %v%s\n", page, 1000*median(took[page][0]), 1000*median(took[page][1]), r, note)
	}
}

// median is that of the seconds that were measured.
func median(took []float64) float64 {
	took = slices.DeleteFunc(slices.Clone(took), func(s float64) bool { return s == 0 })
	slices.Sort(took)
	return took[len(took)/2]
}

// askOver asks another process for a page, and returns how long the whole of it takes; zero where that
// one has been asked too often.
func askOver(b *testing.B, url string) time.Duration {
	b.Helper()
	began := time.Now()
	res, err := http.Get(url)
	if err != nil {
		b.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	switch {
	case err != nil:
		b.Fatal(err)
	case res.StatusCode == http.StatusTooManyRequests:
		return 0
	case res.StatusCode != http.StatusOK:
		b.Fatalf("%s: status %d: %s", url, res.StatusCode, body)
	}
	return time.Since(began)
}

// askPage asks for a page.
func askPage(b *testing.B, h http.Handler, page string) []byte {
	b.Helper()
	r := httptest.NewRequest(http.MethodGet, "http://localhost/"+page, nil)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if w.Code != http.StatusOK {
		b.Fatalf("%s: status %d: %s", page, w.Code, w.Body)
	}
	return w.Body.Bytes()
}

func gzipped(b *testing.B, body []byte) int {
	b.Helper()
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	_, err := w.Write(body)
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		b.Fatal(err)
	}
	return z.Len()
}

// firstView measures what a browser gets that has nothing yet.
func firstView(b *testing.B, h http.Handler) {
	b.Helper()
	body := askPage(b, h, "jobs")
	all, scripts := gzipped(b, body), 0
	for _, m := range regexp.MustCompile(`(?:src|href)="\./(asset/[^"]+)"`).FindAllSubmatch(body, -1) {
		file := askPage(b, h, string(m[1]))
		all += gzipped(b, file)
		if bytes.HasSuffix(m[1], []byte(".js")) && !bytes.Contains(m[1], []byte(".min.")) {
			scripts += len(file)
		}
	}
	fmt.Printf("first view: %d bytes gzipped, at most %d; scripts of its own: %d bytes, at most %d\n", all, boundOfBytes, scripts, boundOfScripts)
	if all > boundOfBytes || scripts > boundOfScripts {
		b.Error("the first view is too large")
	}
}

// Processes beside BenchmarkConsole, so that what a console costs, and what those cost who look at
// it, is not mixed up with the scheduler. Each is this program again; it reads orders, a line of
// JSON each, and answers each with one.

// childVariable names in the environment what a child is for.
const childVariable = "XXLJOB_BENCH_CHILD"

// consoleName is how the sessions of a console's own process are called.
const consoleName = "bench console"

// child is such a process, as its parent sees it.
type child struct {
	in  *json.Encoder
	out *json.Decoder
}

// startChild starts one, which ends with the benchmark.
func startChild(b *testing.B, what string) *child { return startChildOf(b, os.Args[0], what) }

// startChildOf is startChild for a program that may be of another tree.
func startChildOf(b *testing.B, program, what string) *child {
	b.Helper()
	cmd := exec.Command(program)
	cmd.Env = append(os.Environ(), childVariable+"="+what)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { // it ends with its input
		_ = in.Close()
		_ = cmd.Wait()
	})
	return &child{json.NewEncoder(in), json.NewDecoder(out)}
}

// ask gives an order, and reads the answer.
func ask[Order, Answer any](b *testing.B, c *child, order Order) (a Answer) {
	b.Helper()
	if err := c.in.Encode(order); err != nil {
		b.Fatal(err)
	}
	if err := c.out.Decode(&a); err != nil {
		b.Fatal(err)
	}
	return a
}

// ChildOfBench does what a process of BenchmarkConsole is there for, and reports whether this is
// one.
func ChildOfBench() bool {
	what := os.Getenv(childVariable)
	var err error
	switch what {
	case "":
		return false
	case "console":
		err = serveConsole()
	case "viewers":
		err = view()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, what, err)
		os.Exit(1)
	}
	return true
}

// obey carries out orders until there are no more.
func obey[Order, Answer any](do func(Order) (Answer, error)) error {
	in, out := json.NewDecoder(bufio.NewReader(os.Stdin)), json.NewEncoder(os.Stdout)
	for {
		var order Order
		if err := in.Decode(&order); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		a, err := do(order)
		if err == nil {
			err = out.Encode(a)
		}
		if err != nil {
			return err
		}
	}
}

// usage is what a process with nothing but a console has used. Heaps are in bytes.
type usage struct {
	URL               string
	CPU               time.Duration
	Before, Now, Most uint64 // of the heap: before the console was made, now, and at most
}

// place is where a store is.
type place struct{ DSN, Schema string }

// serveConsole has a console of its own for a store that others work with.
func serveConsole() error {
	var c consoleProcess
	return obey(c.do)
}

type consoleProcess struct {
	url    string
	before uint64
	mu     sync.Mutex
	most   uint64 // guarded by mu
}

// do makes the console of the place that the first order names, and tells what was used.
func (c *consoleProcess) do(at place) (usage, error) {
	if c.url == "" {
		if err := c.serve(at); err != nil {
			return usage{}, err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return usage{c.url, cpuUsed(), c.before, heapInUse(), c.most}, nil
}

func (c *consoleProcess) serve(at place) error {
	cfg, err := pgxpool.ParseConfig(at.DSN)
	if err != nil {
		return err
	}
	cfg.ConnConfig.RuntimeParams["application_name"] = consoleName
	pool, err := pgxpool.NewWithConfig(context.Background(), cfg)
	if err != nil {
		return err
	}
	st, err := New(context.Background(), pool, Config{Schema: at.Schema})
	if err != nil {
		return err
	}
	s, err := xxljob.New(st, xxljob.Config{App: "console", Logger: slog.New(slog.DiscardHandler), HTTP: xxljob.HTTPConfig{Tokens: map[string][]string{"": {benchToken}}}})
	if err != nil {
		return err
	}
	runtime.GC()
	c.before = heapInUse()
	c.url, err = serveOn(st, s)
	go func() {
		for range time.Tick(100 * time.Millisecond) {
			c.mu.Lock()
			c.most = max(c.most, heapInUse())
			c.mu.Unlock()
		}
	}()
	return err
}

// serveOn serves a console for whoever is on this machine, and returns where.
func serveOn(st *Store, s xxljob.Scheduler) (url string, err error) {
	h, err := console.New(console.Config{Store: st, Scheduler: s, Auth: console.Loopback(console.Editor), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return "", err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	go func() { _ = http.Serve(l, h) }() // until the process ends
	return "http://" + l.Addr().String() + "/", nil
}

// heapInUse is how many bytes of memory the heap has, of which objects are made.
func heapInUse() uint64 {
	all := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/unused:bytes"}}
	metrics.Read(all)
	return all[0].Value.Uint64() + all[1].Value.Uint64()
}
