package mail_test

import (
	"context"
	stdmail "net/mail"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/xxljob/xxljob/alarm"
	"github.com/xxljob/xxljob/alarm/mail"
)

func hostileTexts() []string {
	return []string{
		"", "a\r\nBcc: all@example.org\r\n\r\nbody", "a\n.\nQUIT\n", "\r\n.\r\nMAIL FROM:<evil@example.org>\r\n", "<script>alert(1)</script>",
		"=?utf-8?q?a=0d=0aBcc:_all@example.org?=", "all@example.org>\r\nRCPT TO:<all@example.org", "x@example.org, y@example.org",
		"\"\\\r\n\"@example.org", "\u202e排程任務", strings.Repeat("x", 1<<20), strings.Repeat("排", 100<<10), strings.Repeat(".\n", 100<<10),
		"\xff\xfe\x00", "--" + strings.Repeat("0", 60), "Content-Type: text/html", "ann@example.org\x00", "a b@example.org", "a@[127.0.0.1]", "@@", "<@>",
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

// checkHostile sends a message with one text everywhere, and looks at what a server hears and
// a reader sees.
func checkHostile(t *testing.T, s string) {
	event := alarm.Event{Cause: alarm.Cause(s), State: s, Text: s, RunID: 1, Instant: at}
	msg := alarm.Message{
		ID: s, Cause: alarm.Failed, App: s, JobKey: s, JobName: s, Node: s, Emails: []string{s, "ann@example.org", s},
		Count: 12, First: at, Last: at, Events: slices.Repeat([]alarm.Event{event}, 12),
	}
	server := newServer(t)
	server.plain = true
	synctest.Test(t, func(t *testing.T) {
		m := newMailer(t, server.pipes(mail.Config{Mode: mail.NoTLS, To: []string{"ops@example.org"}}))
		if err := m.Alarm(context.Background(), msg); err != nil {
			t.Fatal(err)
		}
	})
	for _, line := range server.lines {
		verb, _, _ := strings.Cut(line, " ")
		if !slices.Contains([]string{"EHLO", "MAIL", "RCPT", "DATA", "QUIT"}, verb) {
			t.Errorf("the server hears %.200q", line)
		}
	}
	got := server.taken()
	if len(got) != 1 || len(got[0].to) > 3 {
		t.Fatalf("%d mails", len(got))
	}
	p := parse(t, got[0].data)
	checkMailOf(t, p, msg)
	for name := range p.header {
		if !slices.Contains([]string{"Auto-Submitted", "Content-Type", "Date", "From", "Message-Id", "Mime-Version", "Subject", "To", "X-Auto-Response-Suppress"}, name) {
			t.Errorf("a header %s", name)
		}
	}
	list, err := p.header.AddressList("To")
	if err != nil || len(list) != len(got[0].to) || !slices.ContainsFunc(list, func(a *stdmail.Address) bool { return a.Address == "ann@example.org" }) {
		t.Errorf("To: %v, %v; to %q", list, err, got[0].to)
	}
}

func checkMailOf(t *testing.T, p parsed, msg alarm.Message) {
	t.Helper()
	text, err := new(alarm.Format).Render(msg)
	if err != nil {
		t.Fatal(err)
	}
	if want := strings.ReplaceAll(text.Subject, "=?", "= ?"); p.subject != want {
		t.Errorf("subject %q, want %q", p.subject, want)
	}
	if strings.TrimSpace(p.plain) != strings.TrimSpace(text.Plain) || strings.TrimSpace(p.html) != strings.TrimSpace(text.HTML) {
		t.Errorf("other texts: %.300q, want %.300q", p.plain, text.Plain)
	}
}
