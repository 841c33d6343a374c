//go:build unix

package siege

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/xxljob/xxljob/internal/test/siege/judge"
)

func (r *runner) say(format string, args ...any) { fmt.Fprintf(r.Out, format+"\n", args...) }

// printSettings says what is run, where, and how it can be run again.
func (r *runner) printSettings(ctx context.Context) {
	version, err := r.pg.Exec(ctx, "postgres", "select current_setting('server_version') || ', fsync ' || current_setting('fsync') || ', synchronous_commit ' || current_setting('synchronous_commit') || ', shared_buffers ' || current_setting('shared_buffers')")
	if err != nil {
		version = err.Error()
	}
	r.say("command:  %s", strings.Join(os.Args, " "))
	r.say("settings: seed %d, for %v, attacks %s; GOGC=%s GOMAXPROCS=%d; store stalls: %t", r.Seed, r.For, cmp.Or(strings.Join(r.Attacks, ","), "none"), cmp.Or(os.Getenv("GOGC"), "default"), runtime.GOMAXPROCS(0), r.StoreStall)
	r.say("honest:   %d executors with a beat each %v, %d runs/s; a client waits %v and sends a page again after %v", r.Executors, r.Beat, r.Runs, javaPatience, retryAfter)
	a := r.Rates
	r.say("hostile:  repeats %d connections %g/s; flood %d connections %g/s; registrations %g/s; dribble %d connections, a byte each %v", a.Repeats, a.RepeatsRate, a.Flood, a.FloodRate, a.Registrations, a.Dribbles, a.DribbleEvery)
	r.say("console:  an admin asks for %d pages/s; hostile: forms %d connections, a byte each %v; pages %g/s, searches %g/s, logins %g/s, tokens %g/s", lookRate, a.ConsoleForms, a.DribbleEvery, a.ConsolePages, a.ConsoleSearches, a.ConsoleLogins, a.ConsoleTokens)
	r.say("machine:  %s, %d cores, %s/%s, %s; Postgres %s", processor(), runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, runtime.Version(), version)
	r.say("commit:   %s", commit(ctx))
}

// processor is the model of the machine's processor, where the system tells.
func processor() string {
	text, _ := os.ReadFile("/proc/cpuinfo") // elsewhere it is not told
	for line := range strings.Lines(string(text)) {
		if name, model, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(model)
		}
	}
	return "processor unknown"
}

// commit is what is checked out, and whether it was changed.
func commit(ctx context.Context) string {
	out, err := exec.CommandContext(ctx, "git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}

// The columns of the lines that are printed as time goes by.
const (
	headFormat = "%-6s %6s | %21s | %21s | %21s | %21s | %21s | %23s | %s"
	cellFormat = "%6.1f %6.0f %6.0f"
)

func (r *runner) printHead() {
	r.say("\nms: p50, p99, max, and + how many were not answered with 200; CPU in percent of one core")
	r.say(headFormat, "phase", "until", "heartbeats", "registrations", "pages of results", "results until 200", "console", "heap, system, gorout.", "CPU scheduler, Postgres, hostile, honest, machine")
}

// printRow sums up a part of a phase.
func (r *runner) printRow(phase string, before, after usage) {
	in, span := judge.Span{From: before.at, To: after.at}, after.at-before.at
	h := r.honest
	heap, total, goroutines := r.levels.most(in)
	r.say(headFormat, phase, after.at.Round(time.Second),
		cell(h.beats.Summary(in)), cell(h.guests.Summary(in)), cell(h.attempts.Summary(in)), cell(h.results.Summary(in)), cell(h.seen.Summary(in)),
		fmt.Sprintf("%6.1f %6.0f %6d", float64(heap)/(1<<20), float64(total)/(1<<20), goroutines),
		strings.Join([]string{
			percent(before.node, after.node, span), percent(before.postgres, after.postgres, span), percent(before.hostile, after.hostile, span),
			percent(before.honest, after.honest, span), percent(before.machine, after.machine, span),
		}, " "))
}

func cell(s judge.Summary) string {
	text := fmt.Sprintf(cellFormat, millis(s.P50), millis(s.P99), millis(s.Max))
	if s.Bad() > 0 {
		text += fmt.Sprintf(" +%d", s.Bad())
	}
	return text
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// printCounts says what the hostile app has done.
func (r *runner) printCounts() {
	r.levels.mu.Lock()
	defer r.levels.mu.Unlock()
	if len(r.levels.counts) == 0 {
		return
	}
	r.say("\nwhat the hostile app has done:")
	for _, name := range slices.Sorted(maps.Keys(r.levels.counts)) {
		r.say("  %8d  %s", r.levels.counts[name], name)
	}
	r.say("")
}

// printStates says what became of the runs.
func (r *runner) printStates(ctx context.Context, db *pgx.Conn) error {
	for _, app := range []string{honestApp, hostileApp} {
		text, err := states(ctx, db, app)
		if err != nil {
			return err
		}
		r.say("runs of the %s app: %s", app, text)
	}
	return nil
}

// printFindings sums up the siege.
func (r *runner) printFindings(f judge.Findings) {
	r.say("\nthe siege, %v to %v, outside of stalls of the store:", f.Siege.From.Round(time.Second), f.Siege.To.Round(time.Second))
	for _, k := range f.Kinds {
		r.printKind(k)
	}
	late := r.honest.starts.Summary(f.Siege, r.stalls.all()...)
	r.say("  runs, late at their executor (not judged): p50 %.1f, p99 %.1f, max %.1f ms", millis(late.P50), millis(late.P99), millis(late.Max))
	if spans := r.stalls.all(); len(spans) > 0 {
		r.say("%d stalls of the store, %v each, and %v behind each:", len(spans), stallFor, stallAfter)
		h := r.honest
		for _, k := range []judge.Kind{
			{Name: "heartbeats", Summary: h.beats.Within(spans...)}, {Name: "registrations", Summary: h.guests.Within(spans...)},
			{Name: "pages of results", Summary: h.attempts.Within(spans...)}, {Name: "results", Summary: h.results.Within(spans...)}, {Name: "console", Summary: h.seen.Within(spans...)},
		} {
			r.printKind(k)
		}
	}
	b := r.bounds()
	heap, _, goroutines := r.levels.most(f.Siege)
	r.say("live heap: at most %.1f MiB, bound %d MiB; goroutines: at most %d", float64(heap)/(1<<20), b.Heap>>20, goroutines)
	u := f.Runs
	r.say("honest runs: %d accepted, %d succeeded, %d cancelled at the end, %d unended, %d otherwise, %d forgotten, %d twice, %d results unacknowledged",
		u.Accepted, u.Succeeded, u.Cancelled, u.Unended, u.Other, u.Forgotten, u.Twice, u.Unacknowledged)
}

func (r *runner) printKind(k judge.Kind) {
	r.say("  %-17s %7d: p50 %.1f, p99 %.1f, max %.1f ms; %d refused, %d timed out, %d broken", k.Name, k.N, millis(k.P50), millis(k.P99), millis(k.Max), k.Refused, k.TimedOut, k.Broken)
}

// printVerdict says what was broken.
func (r *runner) printVerdict(faults []string) {
	for _, f := range faults {
		r.say("VIOLATED: %s", f)
	}
	if len(faults) == 0 {
		r.say("ok: the honest app was served as promised")
	}
}
