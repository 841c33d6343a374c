package guard_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"testing"

	"github.com/xxljob/xxljob/internal/guard"
)

var errPlain = errors.New("plain")

// rude is an error, and a value, whose text cannot be had.
type rude struct{ text *string }

func (r *rude) Error() string  { return *r.text }
func (r *rude) String() string { return *r.text }

// hollow is an error whose text can be had, and whose cause cannot.
type hollow struct{ cause error }

func (*hollow) Error() string   { return "hollow" }
func (h *hollow) Unwrap() error { return h.cause }

// picky is an error that compares itself with what it is not.
type picky struct{}

func (picky) Error() string        { return "picky" }
func (picky) Is(target error) bool { return *target.(*rude).text == "" }

func noMap() map[string]int { return nil }

// TestEveryEnd: whatever a function does, there is an error to go on with, and its text
// can be read.
func TestEveryEnd(t *testing.T) {
	for name, tt := range map[string]struct {
		f     func() error
		text  string
		panic bool
		goes  bool // it ends its goroutine, so that Call is not for it
	}{
		"nothing":            {f: func() error { return nil }},
		"an error":           {f: func() error { return errPlain }, text: "plain"},
		"a panic":            {f: func() error { panic("boom") }, text: "panic: boom", panic: true},
		"a panic with nil":   {f: func() error { panic(nil) }, text: "panic: panic called with nil", panic: true},
		"a rude panic":       {f: func() error { panic(fmt.Stringer(&rude{})) }, text: "panic: ", panic: true},
		"a nil map":          {f: func() error { noMap()["a"]++; return nil }, text: "panic: assignment to entry in nil map", panic: true},
		"a rude error":       {f: func() error { var r *rude; return r }, text: "panic: runtime error: invalid memory address", panic: true},
		"a hollow error":     {f: func() error { var h *hollow; return h }, text: "panic: runtime error: invalid memory address", panic: true},
		"one within another": {f: func() error { var h *hollow; return fmt.Errorf("%w and %w", errPlain, h) }, text: "panic: runtime error: invalid memory address", panic: true},
		"a picky error":      {f: func() error { return picky{} }, text: "panic: interface conversion: ", panic: true},
		"the end of it all":  {f: func() error { runtime.Goexit(); return nil }, text: "the function has ended its goroutine", panic: true, goes: true},
	} {
		t.Run(name, func(t *testing.T) {
			check := func(how string, err error) {
				t.Helper()
				got := ""
				if err != nil {
					got = err.Error()
				}
				var p *guard.Panic
				is := errors.As(err, &p)
				if !strings.HasPrefix(got, tt.text) || tt.text == "" && got != "" || is != tt.panic || strings.Contains(got, "\n") {
					t.Errorf("%s: %q, a panic: %t", how, got, is)
				}
				if is && !strings.Contains(string(p.Stack), "guard_test.go") {
					t.Errorf("%s: the stack does not lead to the function:\n%s", how, p.Stack)
				}
			}
			check("Apart", guard.Apart(tt.f))
			if !tt.goes {
				check("Call", guard.Call(tt.f))
			}
			ended := make(chan error)
			guard.Go(tt.f, func(err error) { ended <- err })
			check("Go", <-ended)
		})
	}
}

// TestOneLineForAPlace: panics are logged once for each place, with the stack, and
// errors are not.
func TestOneLineForAPlace(t *testing.T) {
	var text bytes.Buffer
	l := guard.NewLog(func() *slog.Logger { return slog.New(slog.NewTextHandler(&text, nil)) })
	for range 3 {
		for _, place := range []string{"here", "there"} {
			var p *guard.Panic
			if err := l.Call(place, func() error { panic("boom") }); !errors.As(err, &p) {
				t.Errorf("%v is no panic", err)
			}
			if err := l.Call("elsewhere", func() error { return errPlain }); !errors.Is(err, errPlain) {
				t.Errorf("%v, want the function's own error", err)
			}
		}
	}
	lines := strings.Split(strings.TrimSpace(text.String()), "\n")
	if len(lines) != 2 || !strings.Contains(lines[0], "place=here") || !strings.Contains(lines[1], "place=there") {
		t.Fatalf("the log:\n%s", text.String())
	}
	for _, line := range lines {
		if !strings.Contains(line, "panic: boom") || !strings.Contains(line, "guard_test.go") {
			t.Errorf("no cause or no stack in %s", line)
		}
	}
}
