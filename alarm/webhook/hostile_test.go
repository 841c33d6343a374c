package webhook_test

import (
	"context"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/xxljob/xxljob/alarm"
	"github.com/xxljob/xxljob/alarm/webhook"
)

func hostile(s string) alarm.Message {
	event := alarm.Event{Cause: alarm.Cause(s), State: s, Text: s, RunID: 1, Instant: at}
	return alarm.Message{
		ID: s, Cause: alarm.Failed, App: s, JobKey: s, JobName: s, Node: s, Emails: []string{s},
		Count: 12, Events: slices.Repeat([]alarm.Event{event}, 12),
	}
}

func hostileTexts() []string {
	return []string{
		"", "@all", "@所有人 @everyone", "<at user_id=\"all\">all</at>", "<AT id=all></AT>", "< at id=all>", "<!channel>", "<!subteam^S1>",
		"<@U123>", "<https://evil.example.org|click>", "a\r\nb", "\"},\"x\":{\"", `\u003c!channel>`, "&lt;!channel&gt;", "\u202e<!here>",
		"<\u200bat id=all>", "@\u200ball", strings.Repeat("<", 1<<20), strings.Repeat("\n", 1<<20), strings.Repeat("\"\\", 20<<10),
		strings.Repeat("排程", 20<<10), strings.Repeat("😀", 20<<10), "\xff\xfe\x00", "<<<at>@@all",
	}
}

func FuzzHostile(f *testing.F) {
	for _, s := range hostileTexts() {
		f.Add(s[:min(len(s), 3000)])
	}
	f.Fuzz(checkHostile)
}

func TestHostileTexts(t *testing.T) {
	if testing.Short() {
		t.Skip("long texts, one after the other; leave out -short")
	}
	for _, s := range hostileTexts() {
		checkHostile(t, s)
	}
}

func checkHostile(t *testing.T, s string) {
	synctest.Test(t, func(t *testing.T) {
		for _, p := range presets() {
			service := newMemory(t, p.answer)
			if err := service.hook(t, p).Alarm(context.Background(), hostile(s)); err != nil {
				t.Fatal(err)
			}
			checkBody(t, p.name, service.last(t).body)
		}
	})
}

var (
	// called is what chats take for calling somebody by name: no letter or digit before the @.
	called = regexp.MustCompile(`(^|[^\p{L}\p{Nd}])@`)
	atTag  = regexp.MustCompile(`(?i)<[ /]*at`)
	entity = regexp.MustCompile(`&(amp|lt|gt);`)
)

func checkBody(t *testing.T, name string, body []byte) {
	t.Helper()
	if !json.Valid(body) || !utf8.Valid(body) || strings.ContainsAny(string(body), "\r\n\x00") {
		t.Fatalf("%s: no JSON of one line: %.300q", name, body)
	}
	var shown []string
	switch name {
	case "dingtalk", "wecom":
		var m struct{ Text struct{ Content string } }
		decode(t, body, &m)
		shown = []string{m.Text.Content}
		if name == "dingtalk" && len(body) > 20000 || name == "wecom" && len(m.Text.Content) > 2048 {
			t.Errorf("%s: %d bytes, of text %d", name, len(body), len(m.Text.Content))
		}
	case "feishu":
		var m struct {
			Content struct {
				Post map[string]struct {
					Title   string
					Content [][]struct{ Tag, Text string }
				}
			}
		}
		decode(t, body, &m)
		post := m.Content.Post["zh_cn"]
		if len(post.Content) != 1 || len(post.Content[0]) != 1 || post.Content[0][0].Tag != "text" || len(body) > 20<<10 {
			t.Fatalf("%d bytes: %.300q", len(body), body)
		}
		shown = []string{post.Title, post.Content[0][0].Text}
	case "slack":
		checkSlack(t, body)
		return
	case "pagerduty":
		var m struct {
			Payload  struct{ Summary string }
			DedupKey string `json:"dedup_key"`
		}
		decode(t, body, &m)
		if len(m.Payload.Summary) > 1024 || m.Payload.Summary == "" || len(m.DedupKey) > 255 || len(body) > 512<<10 {
			t.Errorf("summary %q, key %q, %d bytes", m.Payload.Summary, m.DedupKey, len(body))
		}
		return
	default:
		var m webhook.Body
		decode(t, body, &m)
		if len(m.Events) != 10 || m.Version != 1 || len(body) > 512<<10 {
			t.Errorf("%d events, %d bytes", len(m.Events), len(body))
		}
		return
	}
	for _, s := range shown {
		if s == "" || called.MatchString(s) || atTag.MatchString(s) {
			t.Errorf("%s: somebody is called: %.300q", name, s)
		}
	}
}

func checkSlack(t *testing.T, body []byte) {
	t.Helper()
	var m struct {
		Text   string
		Blocks []struct {
			Text struct {
				Text     string
				Verbatim bool
			}
		}
	}
	decode(t, body, &m)
	if len(m.Blocks) != 1 || !m.Blocks[0].Text.Verbatim {
		t.Fatalf("%s", body)
	}
	for _, s := range []string{m.Text, m.Blocks[0].Text.Text} {
		if n := len(utf16.Encode([]rune(s))); n == 0 || n > 3000 {
			t.Errorf("%d characters", n)
		}
		if rest := entity.ReplaceAllString(s, ""); strings.ContainsAny(rest, "<>&") || called.MatchString(s) {
			t.Errorf("not escaped: %.300q", rest)
		}
	}
}

func decode(t *testing.T, body []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(body, into); err != nil {
		t.Fatal(err)
	}
}
