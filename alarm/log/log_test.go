package log_test

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/xxljob/xxljob/alarm"
	"github.com/xxljob/xxljob/alarm/log"
)

var at = time.Date(2026, 3, 1, 1, 30, 0, 0, time.UTC)

func message() alarm.Message {
	return alarm.Message{
		ID: "4711/ops", Cause: alarm.Failed, App: "billing", JobID: 17, JobKey: "nightly", JobName: "nightly report",
		Count: 3, First: at, Last: at, Node: "node-1",
		Events: []alarm.Event{{Cause: alarm.Failed, At: at, RunID: 4711, State: "failed", Attempt: 1, Instant: at, Text: "exit code 1"}},
	}
}

// untimed writes lines without their time.
func untimed(out *bytes.Buffer) *slog.Logger {
	return slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
}

func TestLines(t *testing.T) {
	recovered := message()
	recovered.Cause, recovered.Count, recovered.Events = alarm.Recovered, 1, nil
	stopped := message()
	stopped.Cause, stopped.Events = alarm.Stopped, []alarm.Event{{Cause: alarm.Stopped, Text: "no next\r\ninstant"}}
	const job = " id=4711/ops app=billing job=nightly job_id=17 job_name=\"nightly report\""
	const when = " first=2026-03-01T01:30:00.000Z last=2026-03-01T01:30:00.000Z node=node-1"
	for _, c := range []struct {
		m    alarm.Message
		want string
	}{
		{message(), `level=ERROR msg="xxljob: alarm"` + job + " cause=failed count=3" + when + ` run=4711 state=failed attempt=2 instant=2026-03-01T01:30:00.000Z text="exit code 1"` + "\n"},
		{recovered, `level=INFO msg="xxljob: job has recovered"` + job + " cause=recovered count=1" + when + "\n"},
		{stopped, `level=ERROR msg="xxljob: alarm"` + job + " cause=stopped count=3" + when + ` text="no next\ninstant"` + "\n"},
	} {
		var out bytes.Buffer
		if err := log.New(untimed(&out)).Alarm(context.Background(), c.m); err != nil || out.String() != c.want {
			t.Errorf("%v\n%s\nwant\n%s", err, out.String(), c.want)
		}
	}
}

func TestHostileTexts(t *testing.T) {
	if testing.Short() {
		t.Skip("long texts, one after the other; leave out -short")
	}
	m := message()
	m.JobName, m.Events[0].Text = "a\r\nlevel=INFO msg=fine\u202e", strings.Repeat("x\n", 1<<20)
	var out bytes.Buffer
	if err := log.New(untimed(&out)).Alarm(context.Background(), m); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(out.String(), "\n"); n != 1 || out.Len() > 10<<10 {
		t.Errorf("%d lines, %d bytes", n, out.Len())
	}
}

func Example() {
	logger := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		switch a.Key {
		case slog.LevelKey, slog.MessageKey, "app", "job", "cause", "run", "text":
			return a
		}
		return slog.Attr{}
	}}))
	rule := alarm.Rule{Name: "log", To: log.New(logger)}
	_ = rule.To.Alarm(context.Background(), message())
	// Output:
	// level=ERROR msg="xxljob: alarm" app=billing job=nightly cause=failed run=4711 text="exit code 1"
}
