package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/xxljob/xxljob"
)

// attacks are texts that do something to a terminal, and what is to be seen instead.
var attacks = []struct{ text, shown string }{
	{"\x1b[2J\x1b[H\x1b[31m", `\x1b[2J\x1b[H\x1b[31m`},                                                  // clears the screen
	{"\x1b]52;c;cm0gLXJmIC8K\x07", `\x1b]52;c;cm0gLXJmIC8K\a`},                                          // fills the clipboard
	{"\x1b]8;;http://evil.example\x1b\\ok\x1b]8;;\x1b\\", `\x1b]8;;http://evil.example\x1b\ok\x1b]8;;`}, // a link under other words
	{"\x1b]0;title\x07\x1b[21t\x1b[c", `\x1b]0;title\a\x1b[21t\x1b[c`},                                  // has the terminal type
	{"\u009b31m\u009d52;c;x\u009c\u0080\u0085", `\u009b31m\u009d52;c;x\u009c\u0080\u0085`},              // the same in C1
	{"\x9b31m", `\x9b31m`},                     // of a terminal of eight bits
	{"failed\rsucceeded", `failed\rsucceeded`}, // over what was there
	{"failed\b\b\b\b\b\bfine", `failed\b\b\b\b\b\bfine`},
	{"\v\f\x00\x7f\t", `\v\f\x00\x7f\t`},
	{"\u202egnp.exe\u202c\u2066x\u2069\u200f\u061c", `\u202egnp.exe\u202c\u2066x\u2069\u200f\u061c`}, // read backwards
	{"\u2028\u2029\ufeff\u200b\U000e0041", `\u2028\u2029\ufeff\u200b\U000e0041`},                     // lines and letters that are not seen
	{"订单 größer “x” 😀\u3000\u00a0é", "订单 größer “x” 😀\u3000\u00a0é"},                                 // to be read
}

// wantText fails where something on the screen is neither a sign nor the end of a line.
func wantText(t *testing.T, what, text string) {
	t.Helper()
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		if r != '\n' && (!unicode.IsGraphic(r) || r == utf8.RuneError && size == 1) {
			t.Errorf("%s: %+q reaches the screen at %d of %+q", what, text[i:i+size], i, text)
			return
		}
		i += size
	}
}

// Whatever a job is called, and a handler, an executor or the database says, a terminal
// that shows it does nothing of its own, and each line is one of ours.
func TestScreenShowsText(t *testing.T) {
	for _, a := range attacks {
		var out strings.Builder
		p := &printer{out: &out, zone: time.UTC}
		at := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
		job := xxljob.Job{ID: 1, Key: a.text + "\n# forged", Next: at}
		said := func(what string, lines int) {
			t.Helper()
			wantText(t, what, out.String())
			if !strings.Contains(out.String(), a.shown) {
				t.Errorf("%s: %q does not show %q", what, out.String(), a.shown)
			}
			if n := strings.Count(out.String(), "\n"); n != lines || strings.Contains(out.String(), "\n# forged") {
				t.Errorf("%s: %d lines, want %d, all of them ours: %q", what, n, lines, out.String())
			}
			out.Reset()
		}
		p.begin([]xxljob.Ensured{{Job: job}})
		said("a job's name at the start", 3)
		for _, r := range []xxljob.Run{
			{JobID: 1, State: xxljob.StateFailed, Scheduled: at, HandleMsg: "x"},
			{JobID: 1, State: xxljob.StateFailed, Scheduled: at, HandleMsg: a.text + "\nsecond line"},
			{JobID: 1, State: xxljob.StateCancelled, Scheduled: at, Reason: a.text},
			{JobID: 1, State: xxljob.StateSkipped, Scheduled: at, Reason: a.text + "\n# forged", First: at, Last: at},
		} {
			p.runEnded(r)
			said("a run that is "+r.State.String(), 1)
		}
		p.reloaded(nil, 0, errors.Join(errors.New("jobs.json:1: "+a.text+" is wrong"), errors.New("jobs.json:2: x")))
		said("a fault of the file", 3)
		out.WriteString(faultText(errors.Join(errors.New(a.text), errors.New("another"))))
		said("an error that ends the program", 2)
	}
}

// The same through the whole program, from the file of jobs and the parameter that a
// handler repeats.
func TestScreenOfAProgram(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type entry struct {
			Key      string            `json:"key"` // which can have none of it
			Name     string            `json:"name"`
			Handler  string            `json:"handler"`
			Param    string            `json:"param"`
			Schedule map[string]string `json:"schedule"`
		}
		var jobs []entry
		for _, a := range attacks {
			if !utf8.ValidString(a.text) || strings.Contains(a.text, "\x00") {
				continue // no file of jobs can have it
			}
			jobs = append(jobs, entry{fmt.Sprint("job ", len(jobs)), "job " + a.text, "demoJobHandler", a.text + "!", map[string]string{"type": "CRON", "conf": "* * * * * ?"}})
		}
		text, err := json.Marshal(jobs)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "jobs.json")
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		out := &screen{}
		if err := run(context.Background(), options{jobs: file, zone: time.UTC, runFor: 2500 * time.Millisecond}, out, nil); err != nil {
			t.Fatal(err)
		}
		shown := out.take()
		wantText(t, "the program", shown)
		for _, j := range jobs {
			if n := strings.Count(shown, "succeeded: hello "+strings.Map(visible, j.Param)); strings.Map(visible, j.Param) == j.Param && n == 0 {
				t.Errorf("no run says %q", j.Param)
			}
		}
		if n := strings.Count(shown, "succeeded: hello "); n != 2*len(jobs) {
			t.Errorf("%d runs are shown, want %d:\n%s", n, 2*len(jobs), shown)
		}
	})
}

// visible drops what is no sign.
func visible(r rune) rune {
	if unicode.IsGraphic(r) {
		return r
	}
	return -1
}
