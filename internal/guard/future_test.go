package guard_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob/internal/guard"
)

// TestFuture: who waits gives up when its context ends, and others have the answer once it is
// there, after what is to be done with it was done.
func TestFuture(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var text bytes.Buffer
		log := guard.NewLog(func() *slog.Logger { return slog.New(slog.NewTextHandler(&text, nil)) })
		for _, c := range []struct {
			name  string
			f     func() (int, error)
			want  int
			err   error
			panic bool
		}{
			{name: "an answer", f: func() (int, error) { return 7, nil }, want: 7},
			{name: "an error", f: func() (int, error) { return 7, errPlain }, want: 7, err: errPlain},
			{name: "a panic", f: func() (int, error) { panic("boom") }, panic: true},
		} {
			release, noted := make(chan struct{}), false
			call := guard.Start(log, "here", func() (int, error) { <-release; return c.f() }, func(int, error) { noted = true })
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			began := time.Now()
			if call.Wait(ctx) || time.Since(began) != time.Second {
				t.Errorf("%s: waited %v for what hangs, want a second", c.name, time.Since(began))
			}
			close(release)
			if !call.Wait(t.Context()) || !call.Wait(ctx) || !noted {
				t.Errorf("%s: it has not returned, or that was not noted", c.name)
			}
			cancel()
			var p *guard.Panic
			if got, err := call.Answer(); got != c.want || c.err != nil && !errors.Is(err, c.err) || errors.As(err, &p) != c.panic {
				t.Errorf("%s: %d, %v", c.name, got, err)
			}
		}
		if n := strings.Count(text.String(), "place=here"); n != 1 {
			t.Errorf("%d lines about a panic, want one", n)
		}
	})
}
