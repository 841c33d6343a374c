// Command go is an executor made of the Go client xxl-job-executor-go, with the
// handlers that the peers of other languages have too (see ../java). That client
// lets a handler fail by a panic only.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	xxl "github.com/xxl-job/xxl-job-executor-go"
)

func main() {
	admin := flag.String("admin", "", "base `address` of the admin")
	token := flag.String("token", "", "access token")
	app := flag.String("app", "", "name of the executor app")
	ip := flag.String("ip", "127.0.0.1", "address to register")
	port := flag.String("port", "", "port to listen on")
	_ = flag.String("logs", "", "not used: this client keeps no logs")
	journal := flag.String("journal", "", "`file` that tells how often each handler ran")
	flag.Parse()

	logs := &runLogs{lines: map[int64][]string{}}
	s := scenarios{journal: *journal, logs: logs}
	e := xxl.NewExecutor(
		xxl.ServerAddr(strings.TrimSuffix(*admin, "/")),
		xxl.AccessToken(*token),
		xxl.ExecutorIp(*ip),
		xxl.ExecutorPort(*port),
		xxl.RegistryKey(*app),
	)
	e.Init()
	e.LogHandler(logs.read)
	for name, f := range map[string]func(context.Context, *xxl.RunReq) string{
		"echo": s.echo, "quote": s.quote, "shard": s.shard, "sleep": s.sleep, "sleep2": s.sleep,
		"fail": s.fail, "lines": s.lines, "count": s.count,
	} {
		e.RegTask(name, s.recorded(name, f))
	}
	if err := e.Run(); err != nil { // returns after SIGTERM
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// scenarios are the handlers.
type scenarios struct {
	journal string
	logs    *runLogs
}

// recorded leaves a trace of each begin and end of a handler in the journal.
func (s scenarios) recorded(name string, f xxl.TaskFunc) xxl.TaskFunc {
	return func(ctx context.Context, run *xxl.RunReq) string {
		s.record(run, name, "start")
		phase := "broken"
		defer func() {
			if ctx.Err() != nil {
				phase = "interrupted"
			}
			s.record(run, name, phase)
		}()
		result := f(ctx, run)
		phase = "end"
		return result
	}
}

func (s scenarios) record(run *xxl.RunReq, name, phase string) {
	f, err := os.OpenFile(s.journal, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	defer f.Close()
	fmt.Fprintf(f, "%d %d %s %s %d\n", run.LogID, run.JobID, name, phase, time.Now().UnixMilli())
}

func (s scenarios) echo(_ context.Context, run *xxl.RunReq) string {
	s.logs.add(run.LogID, run.ExecutorParams)
	return run.ExecutorParams
}

func (s scenarios) quote(_ context.Context, run *xxl.RunReq) string {
	return `"` + run.ExecutorParams + `"`
}

func (s scenarios) shard(_ context.Context, run *xxl.RunReq) string {
	return fmt.Sprintf("%d/%d", run.BroadcastIndex, run.BroadcastTotal)
}

func (s scenarios) sleep(ctx context.Context, run *xxl.RunReq) string {
	pause(ctx, run.ExecutorParams)
	return "slept " + run.ExecutorParams
}

func (s scenarios) fail(_ context.Context, run *xxl.RunReq) string {
	_, text, _ := strings.Cut(run.ExecutorParams, " ")
	panic(text)
}

func (s scenarios) lines(ctx context.Context, run *xxl.RunReq) string {
	n, ms := 0, ""
	if _, err := fmt.Sscan(run.ExecutorParams, &n, &ms); err != nil {
		panic(err)
	}
	for i := 1; i <= n; i++ {
		s.logs.add(run.LogID, fmt.Sprintf("line %d of %d", i, n))
		pause(ctx, ms)
	}
	return ""
}

func (s scenarios) count(context.Context, *xxl.RunReq) string { return "" }

// pause waits for so many ms, and panics when it is cancelled.
func pause(ctx context.Context, ms string) {
	d, err := time.ParseDuration(ms + "ms")
	if err != nil {
		panic(err)
	}
	select {
	case <-time.After(d):
	case <-ctx.Done():
		panic(context.Cause(ctx))
	}
}
