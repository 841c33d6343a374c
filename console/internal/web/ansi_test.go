package web

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestColors(t *testing.T) {
	for line, want := range map[string]string{
		"plain": "[{plain }]",
		"":      "[]",
		"\x1b[31mred\x1b[0m and \x1b[1;92mbold green\x1b[22m green": "[{red ansi-red} { and  } {bold green ansi-green ansi-bold} { green ansi-green}]",
		"\x1b[38;5;196mx\x1b[38;2;1;2;3my\x1b[48;5;1;34mz":          "[{x } {y } {z ansi-blue}]",
		"\x1b[2J\x1b[10;20Hx":                      "[{x }]",
		"\x1b]0;title\x07x\x1b]8;;http://e\x1b\\y": "[{xy }]",
		"\x1b[":               "[]",
		"\x1b":                "[]",
		"\x1b[31":             "[]",
		"a\x1b[3\x01b":        "[{a⟨U+0001⟩b }]",
		"a\u202eb\u200bc\x00": "[{a⟨U+202E⟩b⟨U+200B⟩c⟨U+0000⟩ }]",
		"\xff\xfe":            "[{�� }]",
		"中文 日志":               "[{中文 日志 }]",
	} {
		left := MostParts
		if got := fmt.Sprint(Colored(line, &left)); got != want {
			t.Errorf("%q: %s, want %s", line, got, want)
		}
	}
}

func FuzzColors(f *testing.F) {
	f.Add("\x1b[31mred\x1b[0m")
	f.Add("\x1b[38;2;1m\x1b]x\x07")
	f.Fuzz(func(t *testing.T, line string) {
		n, left := 0, MostParts
		for _, p := range Colored(line, &left) {
			n += len(p.Text)
			if !utf8.ValidString(p.Text) || strings.ContainsAny(p.Text, "\x1b\x00\u202e") || strings.ContainsAny(p.Class, `"<>`) {
				t.Errorf("%q has %+v", line, p)
			}
		}
		if n > 12*len(line) {
			t.Errorf("%q became %d bytes", line, n)
		}
	})
}
