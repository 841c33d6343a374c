package interop_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/xxljob/xxljob/executor"
)

// oursFlag makes a process out of the test binary that is an executor of this
// module and nothing else, with the handlers that the other peers have too.
const oursFlag = "executor-of-ours"

func oursArgv(t *testing.T) []string {
	t.Helper()
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return []string{binary, oursFlag}
}

// ours is the main function of that process. It ends the process after an error.
func ours(args []string) {
	flags := flag.NewFlagSet(oursFlag, flag.ExitOnError)
	admin := flags.String("admin", "", "base `address` of the admin")
	token := flags.String("token", "", "access token")
	app := flags.String("app", "", "name of the executor app")
	ip := flags.String("ip", "127.0.0.1", "address to listen on and to register")
	port := flags.String("port", "", "port to listen on")
	logs := flags.String("logs", "", "`directory` of the logs of runs")
	journal := flags.String("journal", "", "`file` that tells how often each handler ran")
	_ = flags.Parse(args) // ends the process after an error
	if err := serveOurs(executor.Config{
		App: *app, Addr: net.JoinHostPort(*ip, *port), SpoolDir: filepath.Join(filepath.Dir(*journal), "spool"),
		Log: executor.LogConfig{Dir: *logs}, StopGrace: 5 * time.Second,
		Admins: []executor.AdminCluster{{Addresses: []string{*admin}, Token: *token}},
	}, &ourJournal{name: *journal}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serveOurs(cfg executor.Config, journal *ourJournal) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	e, err := executor.New(cfg)
	if err != nil {
		return err
	}
	for name, h := range map[string]executor.Handler{
		"echo": ourEcho, "quote": ourQuote, "shard": ourShard, "sleep": ourSleep, "sleep2": ourSleep, "fail": ourFail, "lines": ourLines, "count": ourCount,
	} {
		if err := e.Handle(name, journal.recorded(h)); err != nil {
			return err
		}
	}
	return e.Serve(ctx)
}

// ourJournal is a file with one line for each begin and end of a handler.
type ourJournal struct {
	name string
	mu   sync.Mutex // held for a write
}

func (j *ourJournal) recorded(h executor.Handler) executor.Handler {
	return func(ctx context.Context, task *executor.Task) (err error) {
		j.add(task, "start")
		phase := "broken"
		defer func() {
			if ctx.Err() != nil {
				phase = "interrupted"
			}
			j.add(task, phase)
		}()
		if err = h(ctx, task); err == nil {
			phase = "end"
		}
		return err
	}
}

func (j *ourJournal) add(task *executor.Task, phase string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	f, err := os.OpenFile(j.name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	defer f.Close()
	fmt.Fprintf(f, "%d %d %s %s %d\n", task.RunID, task.JobID, task.Handler, phase, time.Now().UnixMilli())
}

func ourEcho(_ context.Context, task *executor.Task) error {
	task.Log().Info(task.Param)
	task.SetResult(task.Param)
	return nil
}

func ourQuote(_ context.Context, task *executor.Task) error {
	task.SetResult(`"` + task.Param + `"`)
	return nil
}

func ourShard(_ context.Context, task *executor.Task) error {
	task.SetResult(fmt.Sprintf("%d/%d", task.ShardIndex, task.ShardTotal))
	return nil
}

func ourSleep(ctx context.Context, task *executor.Task) error {
	if err := ourPause(ctx, task.Param); err != nil {
		return err
	}
	task.SetResult("slept " + task.Param)
	return nil
}

func ourFail(_ context.Context, task *executor.Task) error {
	how, text, _ := strings.Cut(task.Param, " ")
	if how == "throw" {
		panic(text)
	}
	return errors.New(text)
}

func ourLines(ctx context.Context, task *executor.Task) error {
	n, ms := 0, ""
	if _, err := fmt.Sscan(task.Param, &n, &ms); err != nil {
		return err
	}
	for i := 1; i <= n; i++ {
		task.Log().Info(fmt.Sprintf("line %d of %d", i, n))
		if err := ourPause(ctx, ms); err != nil {
			return err
		}
	}
	return nil
}

func ourCount(context.Context, *executor.Task) error { return nil }

// ourPause waits for so many ms, unless it is cancelled.
func ourPause(ctx context.Context, ms string) error {
	d, err := time.ParseDuration(ms + "ms")
	if err != nil {
		return err
	}
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
