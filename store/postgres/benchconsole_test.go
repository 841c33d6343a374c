package postgres

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/xxljob/xxljob/console"
	"github.com/xxljob/xxljob/internal/pgtest"
)

// The pages of the console, measured: make bench-console. There are a million runs and ten
// thousand jobs in the store, and beside it a scheduler runs a thousand jobs a second in another
// schema of the same server.

// The bounds of a page: the 99th percentile of what the server takes for it, and what its first
// view is, compressed.
const (
	boundOfAPage   = 200 * time.Millisecond
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
	d.sayWhere(b, "Console", rounds)
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
		fmt.Printf("%-36s %9.2f %9.2f %9.0f %9d %9d%s\n", page, ms(p50), ms(p99), ms(boundOfAPage), len(body), gzipped(b, body), note)
	}
	firstView(b, h)
	d.polls(b, h, rounds)
	l.viewersCost(b)
}

// consolePages are those that there are.
func (d *planData) consolePages() []string {
	run := strconv.FormatInt(d.ended[0], 10)
	return []string{"jobs", "jobs?order=next", "jobs?text=Job+4242", "jobs?app=app-3", "jobs?state=off", "jobs/export?app=app-3", "jobs/42", "runs", "runs?state=bad", "runs?state=skipped", "runs?text=nothing+at+all", "runs?app=nowhere",
		"runs?job=42", "runs/" + run, "runs/" + run + "/log", "changes", "changes?actor=nobody", "preview?type=CRON&conf=0+0+3+*+*+%3F&zone=Europe/Berlin"}
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
