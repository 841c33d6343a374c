package main

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/alarm"
	"github.com/xxljob/xxljob/store/memory"
)

// told notes what it is told.
type told struct {
	mu   sync.Mutex
	list []string
}

func (t *told) Alarm(_ context.Context, m alarm.Message) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.list = append(t.list, fmt.Sprintf("%s %s", m.JobKey, m.Cause))
	return nil
}

// TestAMinuteOfTheShop: of six days the third is counted at the second try, and the sixth not
// at all, of which somebody is told; each day that was counted has its report, published once.
func TestAMinuteOfTheShop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var published []string
		sink := &told{}
		s := shop{breaks: everyThird(), says: func(format string, args ...any) {
			mu.Lock()
			defer mu.Unlock()
			published = append(published, fmt.Sprintf(format, args...))
		}}
		ctx, cancel := context.WithTimeout(t.Context(), 6*day+day/2)
		defer cancel()
		quiet := slog.New(slog.DiscardHandler)
		rule := alarm.Rule{Name: "test", To: sink, Window: -1}
		if err := s.run(ctx, xxljob.Config{App: "shop", Logger: quiet, Alarms: []alarm.Rule{rule}}, memory.New()); err != nil {
			t.Fatal(err)
		}
		if len(published) != 5 || !strings.HasPrefix(published[0], "published: all is counted") {
			t.Errorf("published %q", published)
		}
		if !slices.Equal(sink.list, []string{"stock failed"}) {
			t.Errorf("told %q", sink.list)
		}
	})
}

// TestTheDayWithoutAReport: once its window is over, somebody is told who is missing.
func TestTheDayWithoutAReport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := &told{}
		s := shop{breaks: func(*xxljob.Task) bool { return true }, says: t.Logf}
		ctx, cancel := context.WithTimeout(t.Context(), 2*day+time.Second)
		defer cancel()
		rule := alarm.Rule{Name: "test", To: sink, Window: -1, Causes: []alarm.Cause{alarm.Skipped}}
		if err := s.run(ctx, xxljob.Config{App: "shop", Logger: slog.New(slog.DiscardHandler), Alarms: []alarm.Rule{rule}}, memory.New()); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(sink.list, []string{"report skipped"}) {
			t.Errorf("told %q", sink.list)
		}
	})
}

// TestRules: each recipient that is named has a rule, and what is wrong with one is an error.
func TestRules(t *testing.T) {
	r := recipients{smtp: "mail.example.com", from: "shop@example.com", to: "ops@example.com, more@example.com", hook: "https://example.com/alarms", slack: "https://hooks.slack.com/services/x"}
	for _, language := range alarm.Languages() {
		rules, err := r.rules(language)
		if err != nil || len(rules) != 4 {
			t.Errorf("%s: %d rules: %v", language, len(rules), err)
		}
	}
	r.hook = "http://user:secret@example.com"
	if _, err := r.rules(alarm.English); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("a URL with a password in it: %v", err)
	}
	if _, err := r.rules("tlh"); err == nil {
		t.Error("a language that nobody here speaks is accepted")
	}
}
