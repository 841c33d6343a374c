package alarm_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/xxljob/xxljob/alarm"
)

var update = flag.Bool("update", false, "write the golden files anew")

var at = time.Date(2026, 3, 1, 1, 30, 0, 0, time.UTC)

// message is an alarm with two events.
func message() alarm.Message {
	return alarm.Message{
		ID: "4711/ops", Cause: alarm.Failed, App: "billing", JobID: 17, JobKey: "nightly", JobName: "nightly report",
		Emails: []string{"ann@example.org"}, Count: 2, First: at, Last: at.Add(5 * time.Minute), Node: "node-1",
		Events: []alarm.Event{
			{Cause: alarm.Failed, At: at.Add(5 * time.Minute), RunID: 4711, State: "timed out", Attempt: 1, Instant: at, Text: "no end within 60 s\nkilled"},
			{Cause: alarm.Failed, At: at, RunID: 4700, State: "failed", Instant: at.Add(-time.Hour), Text: "exit code 1"},
		},
	}
}

// storm is an alarm for more than is listed, of several causes.
func storm() alarm.Message {
	m := message()
	m.Count, m.Events[1].Cause, m.Events[1].State = 300, alarm.Lost, "lost"
	return m
}

// recovered is good news.
func recovered() alarm.Message {
	m := message()
	m.Cause, m.Count, m.Events = alarm.Recovered, 1, []alarm.Event{{Cause: alarm.Recovered, At: m.Last, RunID: 4720, State: "succeeded", Instant: at}}
	return m
}

func newFormat(t *testing.T, cfg alarm.FormatConfig) *alarm.Format {
	t.Helper()
	f, err := alarm.NewFormat(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestGoldenTexts(t *testing.T) {
	for _, l := range alarm.Languages() {
		f := newFormat(t, alarm.FormatConfig{
			Language: l, Location: time.FixedZone("", 8*3600),
			Link: func(m alarm.Message) string {
				return fmt.Sprintf("https://console.example.org/jobs/%d?a=1&b=2", m.JobID)
			},
		})
		var all strings.Builder
		for _, c := range []struct {
			name string
			m    alarm.Message
		}{{"alarm", message()}, {"storm", storm()}, {"recovered", recovered()}} {
			text, err := f.Render(c.m)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&all, "== %s\n%s\n== plain\n%s\n== html\n%s\n", c.name, text.Subject, text.Plain, text.HTML)
		}
		golden(t, "texts."+string(l)+".txt", all.String())
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	name = filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(name, []byte(got), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if want := strings.ReplaceAll(string(want), "\r\n", "\n"); got != want {
		t.Errorf("%s is not what is written now (-update):\n%s", name, got)
	}
}

func TestCataloguesHaveTheSameWords(t *testing.T) {
	english, err := alarm.Catalogue(alarm.English)
	if err != nil {
		t.Fatal(err)
	}
	keys := slices.Sorted(maps.Keys(english))
	for _, l := range alarm.Languages() {
		words, err := alarm.Catalogue(l)
		if err != nil {
			t.Fatal(err)
		}
		if got := slices.Sorted(maps.Keys(words)); !slices.Equal(got, keys) {
			t.Errorf("%s has the words %v, English %v", l, got, keys)
		}
		for key, word := range words {
			verbs := strings.Count(word, "%d")*10 + strings.Count(word, "%s")
			if want := strings.Count(english[key], "%d")*10 + strings.Count(english[key], "%s"); word == "" || verbs != want {
				t.Errorf("%s %s: %q, in English %q", l, key, word, english[key])
			}
		}
		for _, c := range []alarm.Cause{alarm.Failed, alarm.Lost, alarm.Attempt, alarm.Skipped, alarm.Stopped, alarm.Late, alarm.Recovered, alarm.Trouble, alarm.TroubleOver} {
			for _, kind := range []string{"cause.", "one.", "many."} {
				if words[kind+string(c)] == "" {
					t.Errorf("%s has no word %s", l, kind+string(c))
				}
			}
		}
	}
}

func TestPlurals(t *testing.T) {
	var f alarm.Format
	for _, c := range []struct {
		cause  alarm.Cause
		count  int
		events int
		want   string
	}{
		{alarm.Failed, 0, 0, "1 run failed"},
		{alarm.Failed, 1, 1, "1 run failed"},
		{alarm.Failed, 3, 3, "3 runs failed"},
		{alarm.Lost, 1, 1, "1 run was lost"},
		{alarm.Lost, 2, 2, "2 runs were lost"},
		{alarm.Attempt, 2, 2, "2 attempts did not succeed"},
		{alarm.Skipped, 2, 2, "runs were skipped 2 times"},
		{alarm.Stopped, 1, 1, "the job has stopped by itself"},
		{alarm.Late, 1, 1, "1 run is late"},
		{alarm.Late, 2, 2, "2 runs are late"},
		{alarm.Failed, 300, 10, "300 alarms, the latest: run failed"},
		{alarm.Recovered, 1, 1, "recovered, runs succeed again"},
		{alarm.Recovered, 7, 3, "recovered, runs succeed again"},
		{"new", 1, 1, "new"},
		{"new", 2, 2, "2 alarms, the latest: new"},
	} {
		m := alarm.Message{App: "a", JobName: "j", Cause: c.cause, Count: c.count, Events: slices.Repeat([]alarm.Event{{Cause: c.cause}}, c.events)}
		text, err := f.Render(m)
		if want := "[a] j: " + c.want; err != nil || text.Subject != want {
			t.Errorf("%s, %d: %q, %v; want %q", c.cause, c.count, text.Subject, err, want)
		}
	}
}

func TestTemplates(t *testing.T) {
	f := newFormat(t, alarm.FormatConfig{
		Subject: "{{.Node}}:\r\nBcc: {{.Job}}", Plain: "{{range .Events}}{{.Text}};{{end}}", HTML: "<b>{{.JobName}}</b>",
	})
	m := message()
	m.JobName = "<script>"
	text, err := f.Render(m)
	if err != nil {
		t.Fatal(err)
	}
	want := alarm.Text{Subject: "node-1: Bcc: <script> (billing/nightly)", Plain: "no end within 60 s\nkilled;exit code 1;", HTML: "<b>&lt;script&gt;</b>"}
	if text != want {
		t.Errorf("%+v\nwant %+v", text, want)
	}
}

func TestBadFormats(t *testing.T) {
	for name, cfg := range map[string]alarm.FormatConfig{
		"language":        {Language: "tlh"},
		"subject":         {Subject: "{{"},
		"plain":           {Plain: "{{if}}"},
		"html":            {HTML: "{{end}}"},
		"no such field":   {Plain: "{{.Nothing}}"},
		"no such method":  {HTML: "{{.Render}}"},
		"panics":          {Plain: "{{index .Events 5}}"},
		"writes too much": {Plain: "{{range 1000000}}much{{end}}"},
		"calls itself":    {HTML: "{{define `html`}}x{{template `html`}}{{end}}"},
	} {
		if _, err := alarm.NewFormat(cfg); err == nil || !strings.HasPrefix(err.Error(), "alarm: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What fails for one message only is told in the built-in words.
func TestTemplatesThatFail(t *testing.T) {
	f := newFormat(t, alarm.FormatConfig{
		Subject: "{{(index .Events 1).Text}}",
		Plain:   "{{(index .Events 1).Text}}",
		HTML:    "{{(index .Events 1).Text}}",
		Link: func(m alarm.Message) string {
			if m.Cause == alarm.Recovered {
				panic("no link for it")
			}
			return "https://console.example.org/"
		},
	})
	want, err := new(alarm.Format).Render(recovered())
	if err != nil {
		t.Fatal(err)
	}
	got, err := f.Render(recovered())
	if got != want {
		t.Errorf("%+v\nwant %+v", got, want)
	}
	for _, part := range []string{"template subject", "template plain", "template html", "Link: panic: no link for it"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%q is not in %v", part, err)
		}
	}
}

func TestLinks(t *testing.T) {
	for link, good := range map[string]bool{
		"": true, "https://example.org/a?b=c": true, "http://[::1]:8080/": true,
		"javascript:alert(1)": false, "/relative": false, "https:///x": false, "https://example.org/\r\nx": false,
		"https://example.org/" + strings.Repeat("x", 3000): false, "https://example.org/\u202e": false,
	} {
		f := newFormat(t, alarm.FormatConfig{Link: func(alarm.Message) string { return link }})
		text, err := f.Render(message())
		if (err == nil) != good || good && !strings.Contains(text.Plain, link) {
			t.Errorf("%q: %v", link, err)
		}
		if got := f.Link(message()); good && got != link || !good && got != "" {
			t.Errorf("Link = %q, of %q", got, link)
		}
	}
}

func TestZeroFormatAtOnce(t *testing.T) {
	var f alarm.Format
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if text, err := f.Render(storm()); err != nil || text.Plain == "" || text.HTML == "" {
				t.Errorf("%+v, %v", text, err)
			}
		})
	}
	all.Wait()
}

// TestTroubleReadsAsOne: a message about a trouble names what kind it is, its app where there is
// one, and no job where there is none; its end is good news.
func TestTroubleReadsAsOne(t *testing.T) {
	at := time.Date(2026, 3, 1, 3, 0, 0, 0, time.UTC)
	m := alarm.Message{ID: "1", Cause: alarm.Trouble, Trouble: "no-executor", App: "shop", Count: 1, First: at, Last: at, Node: "n1",
		Events: []alarm.Event{{Cause: alarm.Trouble, At: at, Text: "no-executor: nobody"}}}
	f, err := alarm.NewFormat(alarm.FormatConfig{})
	if err != nil {
		t.Fatal(err)
	}
	text, err := f.Render(m)
	if want := "[shop] no-executor: 1 trouble keeps runs from being run in time"; err != nil || text.Subject != want {
		t.Errorf("%q, %v; want %q", text.Subject, err, want)
	}
	if !strings.Contains(text.Plain, "Trouble: no-executor\nApp: shop\nHappened: 2026-03-01 03:00:00 +00:00\nSent by: n1\n") || strings.Contains(text.Plain, "Job") {
		t.Errorf("%s", text.Plain)
	}
	m.App, m.Cause, m.Events[0].Cause = "", alarm.TroubleOver, alarm.TroubleOver
	if text, err = f.Render(m); err != nil || text.Subject != "no-executor: a trouble is over" || strings.Contains(text.Plain, "App") {
		t.Errorf("%q, %v: %s", text.Subject, err, text.Plain)
	}
}
