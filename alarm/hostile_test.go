package alarm_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/xxljob/xxljob/alarm"
)

// hostile is a message with one text everywhere.
func hostile(s string, cause alarm.Cause) alarm.Message {
	event := alarm.Event{Cause: alarm.Cause(s), State: s, Text: s, RunID: 1, Instant: time.Unix(1, 0)}
	return alarm.Message{
		ID: s, Cause: cause, App: s, JobKey: s, JobName: s, Node: s, Emails: slices.Repeat([]string{s}, 30),
		Count: -1, Events: slices.Repeat([]alarm.Event{event}, 12),
	}
}

func hostileTexts() []string {
	return []string{
		"", "<script>alert(1)</script>", `"><img src=x onerror=alert(1)>`, "a\r\nBcc: all@example.org\r\n\r\nbody",
		"{{.JobName}}", "\u202etxt.exe", "@all <!channel> <at id=all></at>", strings.Repeat("x", 1<<20),
		strings.Repeat("\n", 1<<20), strings.Repeat("<", 4<<10), strings.Repeat("排", 100<<10), "\xff\xfe\x00\x1b[2J",
		"%d%s%!", "</pre></body></html>", "javascript:alert(1)",
	}
}

func FuzzRender(f *testing.F) {
	for _, s := range hostileTexts() {
		f.Add(s[:min(len(s), 5000)])
	}
	formats := formats(f)
	f.Fuzz(func(t *testing.T, s string) { checkRender(t, formats, s) })
}

func TestRenderOfHostileTexts(t *testing.T) {
	formats := formats(t)
	for _, s := range hostileTexts() {
		checkRender(t, formats, s)
	}
}

func formats(t testing.TB) (all []*alarm.Format) {
	for _, l := range alarm.Languages() {
		f, err := alarm.NewFormat(alarm.FormatConfig{Language: l, Link: func(m alarm.Message) string { return fmt.Sprintf("https://example.org/%d", m.JobID) }})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, f)
	}
	return all
}

// tags are what the built-in HTML consists of. Nothing else may look like a tag.
var tags = regexp.MustCompile(`</?(!DOCTYPE html|html|head|meta charset="utf-8"|body[^<>]*|h2 style="[^"<>]*"|h2|table[^<>]*|tr|th align="left" style="[^"<>]*"|th|td dir="auto"|td|a href="https://example.org/0"|a|p|b|ul|li|pre dir="auto" style="[^"<>]*"|pre)>`)

func checkRender(t *testing.T, formats []*alarm.Format, s string) {
	t.Helper()
	for _, f := range formats {
		for _, cause := range []alarm.Cause{alarm.Failed, alarm.Recovered, alarm.Cause(s)} {
			text, err := f.Render(hostile(s, cause))
			if err != nil {
				t.Fatalf("%v: %.80q", err, s)
			}
			checkText(t, text.Subject, 200)
			checkText(t, strings.ReplaceAll(text.Plain, "\n", " "), 64<<10)
			checkText(t, strings.ReplaceAll(text.HTML, "\n", " "), 256<<10)
			if rest := tags.ReplaceAllString(text.HTML, ""); strings.ContainsAny(rest, "<>") {
				t.Errorf("HTML of %.80q has other tags: %.300q", s, rest)
			}
			if text.Subject == "" || text.Plain == "" {
				t.Errorf("nothing is said of %.80q", s)
			}
		}
	}
}
