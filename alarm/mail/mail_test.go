package mail_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	stdmail "net/mail"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/xxljob/xxljob/alarm"
	"github.com/xxljob/xxljob/alarm/mail"
)

var at = time.Date(2026, 3, 1, 1, 30, 0, 0, time.UTC)

func message(emails ...string) alarm.Message {
	return alarm.Message{
		ID: "4711/ops", Cause: alarm.Failed, App: "billing", JobID: 17, JobKey: "nightly", JobName: "nightly <report>",
		Emails: emails, Count: 1, First: at, Last: at, Node: "node-1",
		Events: []alarm.Event{{Cause: alarm.Failed, At: at, RunID: 4711, State: "failed", Instant: at, Text: "exit code 1\n.\nstill of it"}},
	}
}

func newMailer(t *testing.T, cfg mail.Config) *mail.Mailer {
	t.Helper()
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	m, err := mail.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// parsed is a mail as its reader sees it.
type parsed struct {
	header      stdmail.Header
	subject     string
	plain, html string
}

func parse(t *testing.T, data string) parsed {
	t.Helper()
	m, err := stdmail.ReadMessage(strings.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	p := parsed{header: m.Header}
	if p.subject, err = new(mime.WordDecoder).DecodeHeader(m.Header.Get("Subject")); err != nil {
		t.Error(err)
	}
	kind, params, err := mime.ParseMediaType(m.Header.Get("Content-Type"))
	if err != nil || kind != "multipart/alternative" {
		t.Fatalf("%s, %v", kind, err)
	}
	parts := multipart.NewReader(m.Body, params["boundary"])
	for _, into := range []*string{&p.plain, &p.html} {
		part, err := parts.NextRawPart()
		if err != nil {
			t.Fatal(err)
		}
		want := "text/plain; charset=UTF-8"
		if into == &p.html {
			want = "text/html; charset=UTF-8"
		}
		if got := part.Header.Get("Content-Type"); got != want || part.Header.Get("Content-Transfer-Encoding") != "quoted-printable" {
			t.Errorf("a part of %s", got)
		}
		body, err := io.ReadAll(quotedprintable.NewReader(part))
		if err != nil {
			t.Fatal(err)
		}
		*into = strings.ReplaceAll(string(body), "\r\n", "\n")
	}
	if _, err := parts.NextRawPart(); err != io.EOF {
		t.Errorf("a third part: %v", err)
	}
	return p
}

func TestDelivery(t *testing.T) {
	for name, c := range map[string]struct {
		server func(*server)
		cfg    mail.Config
		user   string
		tls    bool
	}{
		"STARTTLS":          {cfg: mail.Config{Username: "ann", Password: "pass-of-ann"}, user: "ann", tls: true},
		"LOGIN":             {server: func(s *server) { s.auth = []string{"LOGIN"} }, cfg: mail.Config{Username: "ann", Password: "pass-of-ann"}, user: "ann", tls: true},
		"CRAM-MD5":          {server: func(s *server) { s.auth = []string{"CRAM-MD5"} }, cfg: mail.Config{Username: "ann", Password: "pass-of-ann"}, user: "ann", tls: true},
		"implicit TLS":      {server: func(s *server) { s.implicit = true }, cfg: mail.Config{Mode: mail.ImplicitTLS, Username: "ann", Password: "pass-of-ann"}, user: "ann", tls: true},
		"no login":          {tls: true},
		"no TLS":            {server: func(s *server) { s.plain = true }, cfg: mail.Config{Mode: mail.NoTLS}},
		"login on loopback": {server: func(s *server) { s.plain = true }, cfg: mail.Config{Mode: mail.NoTLS, Username: "ann", Password: "pass-of-ann"}, user: "ann"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t)
			if c.server != nil {
				c.server(s)
			}
			c.cfg.To = []string{"ops@example.org"}
			m := newMailer(t, s.listen(t, c.cfg))
			if err := m.Alarm(context.Background(), message("Ann <ann@example.org>", "OPS@example.org", "bob@example.org")); err != nil {
				t.Fatal(err)
			}
			got := s.taken()
			if len(got) != 1 {
				t.Fatalf("%d mails", len(got))
			}
			if got[0].tls != c.tls || got[0].user != c.user || !strings.HasPrefix(got[0].from, "FROM:<jobs@example.org>") || strings.Contains(got[0].from, "UTF8") {
				t.Errorf("%+v", got[0])
			}
			if want := []string{"ops@example.org", "ann@example.org", "bob@example.org"}; !slices.Equal(got[0].to, want) {
				t.Errorf("to %q, want %q", got[0].to, want)
			}
			checkMail(t, parse(t, got[0].data))
		})
	}
}

// checkMail compares a mail with the texts of the message.
func checkMail(t *testing.T, p parsed) {
	t.Helper()
	text, err := new(alarm.Format).Render(message())
	if err != nil {
		t.Fatal(err)
	}
	if p.subject != text.Subject || strings.TrimSpace(p.plain) != text.Plain || strings.TrimSpace(p.html) != strings.TrimSpace(text.HTML) {
		t.Errorf("%q\n%s\n%s", p.subject, p.plain, p.html)
	}
	for key, want := range map[string]string{
		"From": `"Jobs" <jobs@example.org>`, "To": "<ops@example.org>, <ann@example.org>, <bob@example.org>",
		"Auto-Submitted": "auto-generated", "Mime-Version": "1.0",
	} {
		if got := p.header.Get(key); got != want {
			t.Errorf("%s: %s; want %s", key, got, want)
		}
	}
	if _, err := p.header.Date(); err != nil {
		t.Error(err)
	}
	if id := p.header.Get("Message-Id"); len(id) != len("<@example.org>")+32 || !strings.HasSuffix(id, "@example.org>") {
		t.Errorf("Message-ID: %s", id)
	}
}

func TestManyAtOnce(t *testing.T) {
	s := newServer(t)
	s.says = saysOf(map[string]string{"slow@example.org": "451 later"})
	m := newMailer(t, s.listen(t, mail.Config{To: []string{"ops@example.org"}, Username: "ann", Password: "pass-of-ann"}))
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			msg := message("slow@example.org", "nobody")
			msg.ID = fmt.Sprint(i)
			for range 3 {
				if err := m.Alarm(context.Background(), msg); err == nil {
					t.Error("slow@example.org is told")
				}
			}
		})
	}
	all.Wait()
	if got := len(s.taken()); got != 8 {
		t.Errorf("%d mails", got)
	}
}

// A message that comes again has the same Message-ID, and no other message has.
func TestMessageID(t *testing.T) {
	s := newServer(t)
	m := newMailer(t, s.listen(t, mail.Config{To: []string{"ops@example.org"}}))
	again, later, elsewhere := message(), message(), message()
	again.Node = "node-2"
	later.ID, later.Last = "4712/ops", at.Add(time.Minute)
	elsewhere.App = "billing-test"
	ids := map[string]int{}
	for _, msg := range []alarm.Message{message(), again, later, elsewhere} {
		if err := m.Alarm(context.Background(), msg); err != nil {
			t.Fatal(err)
		}
		all := s.taken()
		ids[parse(t, all[len(all)-1].data).header.Get("Message-Id")]++
	}
	if len(ids) != 3 {
		t.Errorf("%v", ids)
	}
}

func TestNobodyToTell(t *testing.T) {
	var out bytes.Buffer
	m := newMailer(t, mail.Config{Host: "127.0.0.1", Port: 1, From: "jobs@example.org", Logger: slog.New(slog.NewTextHandler(&out, nil))})
	if err := m.Alarm(context.Background(), message()); err != nil || out.Len() != 0 {
		t.Errorf("%v, %s", err, &out)
	}
	for range 3 {
		if err := m.Alarm(context.Background(), message("nobody", "a@b\r\nRCPT TO:<c@d>", "\"a b\"@example.org", "ünï@example.org", strings.Repeat("x", 1<<20)+"@example.org")); err != nil {
			t.Error(err)
		}
	}
	if n := strings.Count(out.String(), "\n"); n != 5 || !strings.Contains(out.String(), "address=nobody job=billing/nightly") {
		t.Errorf("%d lines: %.2000s", n, &out)
	}
}

func TestManyRecipients(t *testing.T) {
	s := newServer(t)
	cfg := s.listen(t, mail.Config{})
	for i := range 45 {
		cfg.To = append(cfg.To, fmt.Sprintf("someone.with.a.long.name.%d@department.example.org", i))
	}
	emails := []string{"job billing/nightly"} // no address, and no other line's either
	for i := range 20 {
		emails = append(emails, "not an address", fmt.Sprintf("owner%d@example.org", i))
	}
	var out bytes.Buffer
	cfg.Logger = slog.New(slog.NewTextHandler(&out, nil))
	m := newMailer(t, cfg)
	for range 2 {
		if err := m.Alarm(context.Background(), message(emails...)); err != nil {
			t.Fatal(err)
		}
	}
	if n := strings.Count(out.String(), "others=15"); n != 1 {
		t.Errorf("%d lines say that 15 are not told: %s", n, &out)
	}
	got := s.taken()[0]
	if len(got.to) != 50 || got.to[49] != "owner4@example.org" {
		t.Errorf("%d recipients: %q", len(got.to), got.to)
	}
	list, err := parse(t, got.data).header.AddressList("To")
	if err != nil || len(list) != 50 {
		t.Errorf("%d in To, %v", len(list), err)
	}
	for line := range strings.SplitSeq(got.data, "\n") {
		if len(line) > 998 {
			t.Errorf("a line of %d bytes", len(line))
		}
	}
}

func TestBadConfigs(t *testing.T) {
	good := mail.Config{Host: "mail.example.org", From: "jobs@example.org"}
	for name, change := range map[string]func(*mail.Config){
		"no host":       func(c *mail.Config) { c.Host = "" },
		"host and port": func(c *mail.Config) { c.Host = "[::1]:25" },
		"port":          func(c *mail.Config) { c.Port = 70000 },
		"mode":          func(c *mail.Config) { c.Mode = 7 },
		"timeout":       func(c *mail.Config) { c.Timeout = time.Hour },
		"no sender":     func(c *mail.Config) { c.From = "" },
		"two senders":   func(c *mail.Config) { c.From = "a@example.org, b@example.org" },
		"sender":        func(c *mail.Config) { c.From = "jobs@example.org\r\nBcc: all@example.org" },
		"sender's name": func(c *mail.Config) { c.From = "=?utf-8?q?a=0d=0aBcc:_x?= <jobs@example.org>" },
		"recipient":     func(c *mail.Config) { c.To = []string{"ops"} },
		"recipients":    func(c *mail.Config) { c.To = slices.Repeat([]string{"ops@example.org"}, 51) },
		"password":      func(c *mail.Config) { c.Username, c.Password = "ann", "s3cret\r\n" },
		"no user":       func(c *mail.Config) { c.Password = "s3cret" },
	} {
		cfg := good
		change(&cfg)
		if _, err := mail.New(cfg); err == nil || !strings.HasPrefix(err.Error(), "mail: Config.") || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: %v", name, err)
		}
	}
	good.Username, good.Password = "ann", "s3cret"
	for mode, want := range map[mail.TLSMode]string{mail.StartTLS: "mail by mail.example.org:587", mail.ImplicitTLS: "mail by mail.example.org:465"} {
		good.Mode = mode
		m := newMailer(t, good)
		for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
			if got := fmt.Sprintf(verb, m); got != want {
				t.Errorf("%s: %s", verb, got)
			}
		}
	}
}

// The configuration stays the caller's.
func TestConfigIsCopied(t *testing.T) {
	cfg := mail.Config{Host: "mail.example.org", From: "jobs@example.org", TLS: &tls.Config{}}
	newMailer(t, cfg)
	if cfg.TLS.ServerName != "" {
		t.Errorf("the name is set to %s", cfg.TLS.ServerName)
	}
}
