package xxljob_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/memory"
)

// TestDoubtfulLinks: a minute after a start the log names those links to scripts and to other apps whose
// last editor might not make them, and no others, also where there are a thousand before them; they go on.
func TestDoubtfulLinks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		for _, u := range []store.User{
			{Name: "admin", Grants: store.Grants{Admin: true}},
			{Name: "orders", Grants: store.Grants{Apps: map[string]string{"orders": "editor"}}},
			{Name: "both", Grants: store.Grants{Apps: map[string]string{"*": "editor"}}},
			{Name: "scripted", Grants: store.Grants{Apps: map[string]string{"orders": "editor"}, Scripts: true}},
		} {
			_, err := st.AddUser(t.Context(), u)
			stage.Must(t, err)
		}
		var log lockedText
		s, err := xxljob.New(st, xxljob.Config{App: "orders", Logger: slog.New(slog.NewTextHandler(&log, nil))})
		stage.Must(t, err)
		add := func(by string, j xxljob.Job) xxljob.Job {
			ctx := t.Context()
			if by != "" {
				ctx = xxljob.WithActor(ctx, by)
			}
			if j.Name = j.Key; j.GlueType == "" {
				j.Handler = "work"
			}
			added, err := s.AddJob(ctx, j)
			stage.Must(t, err)
			return added
		}
		stage.Must(t, s.Handle("work", stage.NothingToDo))
		add("", xxljob.Job{App: "orders", Key: "plain"})
		add("", xxljob.Job{App: "billing", Key: "other"})
		add("", xxljob.Job{App: "orders", Key: "script", GlueType: "GLUE_SHELL", GlueSource: "echo"})
		var many []xxljob.Job
		for i := range 1100 {
			key := fmt.Sprint("host-plain-", i)
			many = append(many, xxljob.Job{App: "orders", Key: key, Name: key, Handler: "work", ChildKeys: []string{"orders/plain"}, ChildParam: xxljob.ChildParamParent})
		}
		_, err = s.EnsureJobs(t.Context(), "orders", many, xxljob.EnsureOptions{})
		stage.Must(t, err)
		for _, by := range []string{"", "admin", "orders", "both", "scripted", "gone", "app:orders", "token ci of scripted"} {
			for _, child := range []string{"orders/plain", "orders/script", "billing/other"} {
				name := by + "-" + strings.ReplaceAll(child, "/", ".")
				add(by, xxljob.Job{App: "orders", Key: name, ChildKeys: []string{child}, ChildParam: xxljob.ChildParamParent})
				add(by, xxljob.Job{App: "orders", Key: "own-" + name, ChildKeys: []string{child}})
			}
		}
		stage.Must(t, s.Start(t.Context()))
		time.Sleep(3 * time.Minute)
		stage.Must(t, s.Stop(t.Context()))
		line := ""
		for l := range strings.Lines(log.String()) {
			if strings.Contains(l, "hand a parameter or a result on") {
				line += l
			}
		}
		if !strings.Contains(line, " links=9 ") || strings.Contains(line, "own-") || strings.Contains(line, "plain") {
			t.Errorf("the log has %q", line)
		}
		for _, want := range []string{"orders-orders.script to orders/script by orders", "orders-billing.other to billing/other by orders", "both-orders.script", "scripted-billing.other",
			"gone-orders.script", "gone-billing.other", "app:orders-orders.script", "app:orders-billing.other", "token ci of scripted-billing.other"} {
			if !strings.Contains(line, want) {
				t.Errorf("the line lacks %s: %s", want, line)
			}
		}
	})
}

// lockedText is what was written, by whomever.
type lockedText struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lockedText) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

func (l *lockedText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}
