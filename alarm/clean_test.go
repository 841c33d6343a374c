package alarm_test

import (
	"reflect"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/xxljob/xxljob/alarm"
)

func TestLine(t *testing.T) {
	for _, c := range []struct {
		in    string
		limit int
		want  string
	}{
		{"", 10, ""},
		{"plain", 10, "plain"},
		{"two\r\nlines\n\n\tof it ", 100, "two lines of it"},
		{"a\x00\x1b[31mred\u0085x", 100, "a [31mred x"},
		{"line\u2028para\u2029graph", 100, "line para graph"},
		{"evil\u202egpj.exe\u202c\u2066\u200e\u061c!", 100, "evilgpj.exe!"},
		{"zero\u200bwidth\ufeff\u00ad\U000e0041", 100, "zerowidth"},
		{"👩\u200d💻", 100, "👩\u200d💻"},
		{"not \xff\xfe utf-8", 100, "not \ufffd\ufffd utf-8"},
		{"排程任務", 12, "排程任務"},
		{"排程任務", 11, "排程…"},
		{"abcdef", 5, "ab…"},
		{"abcdef", 2, "ab"},
		{"abcdef", 0, ""},
		{"abcdef", -1, ""},
		{"\r\n\r\n", 10, ""},
	} {
		if got := alarm.Line(c.in, c.limit); got != c.want {
			t.Errorf("Line(%q, %d) = %q, want %q", c.in, c.limit, got, c.want)
		}
	}
}

func TestBlock(t *testing.T) {
	if got, want := alarm.Block("\nfirst\r\n\tsecond\r\n\n\x00third\u202e  \n", 100), "first\n second\n\n third"; got != want {
		t.Errorf("Block = %q, want %q", got, want)
	}
	if got, want := alarm.Block("10%\r20%\r\r\n100%\r", 100), "10% 20%\n100%"; got != want {
		t.Errorf("Block = %q, want %q", got, want)
	}
}

// Of a text of a megabyte that leaves nothing, only the beginning is read.
func TestLineOfMuch(t *testing.T) {
	for _, s := range []string{strings.Repeat("\u202e", 1<<20), strings.Repeat("\x00", 1<<20), strings.Repeat("\xff", 1<<20), strings.Repeat("好", 1<<20)} {
		if got := alarm.Line(s, 200); len(got) > 200 {
			t.Errorf("%q...: %d bytes", s[:6], len(got))
		}
	}
}

func TestCleanSharesNothing(t *testing.T) {
	m := message()
	m.Count = 0
	before := message()
	before.Count = 0
	got := alarm.Clean(m)
	if got.Count != len(m.Events) {
		t.Errorf("Count = %d, want that of the events", got.Count)
	}
	got.Emails[0], got.Events[0].Text = "changed", "changed"
	if !reflect.DeepEqual(m, before) {
		t.Errorf("Clean has changed what it was given: %+v", m)
	}
}

func FuzzClean(f *testing.F) {
	for _, s := range []string{"", "a\r\nBcc: x@example.org", "\u202e@all", "<!channel>", "排程\xff", strings.Repeat("x", 5000), "😀\u200d", "0 \u2028x"} {
		f.Add(s, 20)
	}
	f.Fuzz(func(t *testing.T, s string, limit int) {
		line := alarm.Line(s, limit)
		checkText(t, line, max(limit, 0))
		if strings.ContainsAny(line, "\r\n") {
			t.Errorf("Line(%q) has more than one line: %q", s, line)
		}
		checkText(t, strings.ReplaceAll(alarm.Block(s, limit), "\n", " "), max(limit, 0))
		if again := alarm.Line(line, limit); again != line {
			t.Errorf("a clean line is changed: %q, %q", line, again)
		}
	})
}

// checkText checks what holds for every text that is shown.
func checkText(t *testing.T, s string, limit int) {
	t.Helper()
	if len(s) > limit {
		t.Errorf("%d bytes, at most %d: %q", len(s), limit, s)
	}
	if !utf8.ValidString(s) {
		t.Errorf("not UTF-8: %q", s)
	}
	for _, r := range s {
		if unicode.IsControl(r) || r == '\u2028' || r == '\u2029' || unicode.Is(unicode.Bidi_Control, r) {
			t.Errorf("%U in %q", r, s)
		}
	}
}
