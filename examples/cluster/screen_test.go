package main

import (
	"errors"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/xxljob/xxljob"
)

// What the rows of the database say does nothing to the terminal, and makes no lines.
func TestScreenShowsText(t *testing.T) {
	const hostile = "\x1b]52;c;eA==\a\r\b\u009b2J\u202e\u2066\n# forged"
	var out strings.Builder
	p := &printer{node: "a", out: &out}
	p.started(&xxljob.Task{Param: hostile + "订单"})
	p.ended(xxljob.Run{State: xxljob.StateFailed, HandleMsg: hostile})
	p.say("%v", errors.New(hostile))
	out.WriteString(describe(kill{node: "a"}, time.Second, map[string]*routeLateness{hostile: {waits: 1}}))
	if strings.ContainsFunc(out.String(), func(r rune) bool { return r != '\n' && !unicode.IsGraphic(r) }) {
		t.Errorf("%q reaches the screen", out.String())
	}
	if n := strings.Count(out.String(), "\n"); n != 5 || strings.Contains(out.String(), "\n# forged") {
		t.Errorf("%d lines, want 5, all of them ours: %q", n, out.String())
	}
	if !strings.Contains(out.String(), "订单") {
		t.Errorf("%q shows no signs of other languages", out.String())
	}
}
