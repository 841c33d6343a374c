package mail_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/xxljob/xxljob/alarm/mail"
)

// saysOf answers some recipients with something else.
func saysOf(replies map[string]string) func(string) string {
	return func(step string) string { return replies[strings.Trim(strings.TrimPrefix(step, "TO:"), "<>")] }
}

// One recipient that is refused for good keeps nobody else from being told, and is not tried
// again.
func TestRefusedRecipient(t *testing.T) {
	s := newServer(t)
	s.says = saysOf(map[string]string{"gone@example.org": "550-5.1.1 no such\r\n550 5.1.1 user"})
	var out bytes.Buffer
	cfg := s.listen(t, mail.Config{To: []string{"gone@example.org", "ops@example.org"}, Logger: slog.New(slog.NewTextHandler(&out, nil))})
	m := newMailer(t, cfg)
	for range 2 {
		if err := m.Alarm(context.Background(), message("ann@example.org")); err != nil {
			t.Fatal(err)
		}
	}
	got := s.taken()
	if len(got) != 2 || !slices.Equal(got[0].to, []string{"ops@example.org", "ann@example.org"}) {
		t.Errorf("%+v", got)
	}
	if n := strings.Count(out.String(), "\n"); n != 1 || !strings.Contains(out.String(), "address=gone@example.org") || !strings.Contains(out.String(), "550 5.1.1 no such 5.1.1 user") {
		t.Errorf("%d lines: %s", n, &out)
	}
}

// Where nobody is taken the message is tried again: a server that knows the sender no more
// refuses so too.
func TestAllRefused(t *testing.T) {
	s := newServer(t)
	s.says = saysOf(map[string]string{"ops@example.org": "554 relay access denied"})
	m := newMailer(t, s.listen(t, mail.Config{To: []string{"ops@example.org"}}))
	for range 2 {
		if err := m.Alarm(context.Background(), message()); err == nil || !strings.Contains(err.Error(), "refuses all recipients: 554 relay access denied") {
			t.Errorf("%v", err)
		}
	}
	if got := s.taken(); len(got) != 0 {
		t.Errorf("%+v", got)
	}
}

// A recipient that is put off gets the mail when it comes again, and the others get it once.
func TestRecipientPutOff(t *testing.T) {
	s := newServer(t)
	replies := map[string]string{"slow@example.org": "451 4.7.1 greylisted, later", "gone@example.org": "550 no such user"}
	s.says = saysOf(replies)
	m := newMailer(t, s.listen(t, mail.Config{To: []string{"Ops@example.org", "slow@example.org", "gone@example.org"}}))
	for range 2 {
		if err := m.Alarm(context.Background(), message()); err == nil || !strings.Contains(err.Error(), "puts off 1 of") || !strings.Contains(err.Error(), "greylisted") {
			t.Errorf("%v", err)
		}
	}
	delete(replies, "slow@example.org")
	if err := m.Alarm(context.Background(), message()); err != nil {
		t.Error(err)
	}
	var to [][]string
	ids := map[string]bool{}
	for _, got := range s.taken() {
		to = append(to, got.to)
		ids[parse(t, got.data).header.Get("Message-Id")] = true
	}
	if fmt.Sprint(to) != "[[Ops@example.org] [slow@example.org]]" || len(ids) != 1 {
		t.Errorf("%v, %d IDs", to, len(ids))
	}
	// What was done is forgotten: the next message is for all.
	if err := m.Alarm(context.Background(), message()); err != nil {
		t.Error(err)
	}
	if got := s.taken(); len(got) != 3 || len(got[2].to) != 2 {
		t.Errorf("%+v", got)
	}
}

// The last one who was put off is refused in the end, which is no error: others have it.
func TestPutOffAndThenRefused(t *testing.T) {
	s := newServer(t)
	replies := map[string]string{"slow@example.org": "452 full"}
	s.says = saysOf(replies)
	m := newMailer(t, s.listen(t, mail.Config{To: []string{"ops@example.org", "slow@example.org"}}))
	if err := m.Alarm(context.Background(), message()); err == nil {
		t.Error("no error")
	}
	replies["slow@example.org"] = "552 full"
	if err := m.Alarm(context.Background(), message()); err != nil || len(s.taken()) != 1 {
		t.Errorf("%v, %d mails", err, len(s.taken()))
	}
}

// What a Mailer remembers is bounded.
func TestManyPutOff(t *testing.T) {
	s := newServer(t)
	s.says = saysOf(map[string]string{"slow@example.org": "451 later"})
	m := newMailer(t, s.listen(t, mail.Config{To: []string{"ops@example.org", "slow@example.org"}}))
	for i := range 258 {
		msg := message()
		msg.ID = fmt.Sprint(i)
		if err := m.Alarm(context.Background(), msg); err == nil {
			t.Fatal("no error")
		}
	}
	for _, c := range []struct {
		id    string
		mails int
	}{{"257", 258}, {"0", 259}} { // the last one is remembered, the first one is not any more
		msg := message()
		msg.ID = c.id
		if err := m.Alarm(context.Background(), msg); err == nil || len(s.taken()) != c.mails {
			t.Errorf("%s: %v, %d mails, want %d", c.id, err, len(s.taken()), c.mails)
		}
	}
}

func TestServerRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		server func(*server)
		want   string
	}{
		"no STARTTLS":     {func(s *server) { s.plain = true }, "STARTTLS"},
		"the password":    {func(s *server) { s.password = "another" }, "refuses user name and password: 535"},
		"any login":       {func(s *server) { s.auth = nil }, "no login by PLAIN"},
		"our logins":      {func(s *server) { s.auth = []string{"SCRAM-SHA-256", "NTLM"} }, "no login by PLAIN"},
		"the sender":      {func(s *server) { s.says = step("MAIL", "550 5.7.1 not you") }, "sender: 550 5.7.1 not you"},
		"the data":        {func(s *server) { s.says = step("DATA", "554 no data, pass-of-ann") }, "data: 554 no data, [hidden]"},
		"the mail":        {func(s *server) { s.says = step("end", "554 spam AGFubgBwYXNzLW9mLWFubg==") }, "end of data: 554 spam [hidden]"},
		"and shuts down":  {func(s *server) { s.says = step("TO:<ops@example.org>", "421 shutting down") }, "421 shutting down"},
		"with a megabyte": {func(s *server) { s.says = step("end", "554 "+strings.Repeat("x", 1<<20)) }, "end of data"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t)
			c.server(s)
			m := newMailer(t, s.listen(t, mail.Config{To: []string{"ops@example.org"}, Username: "ann", Password: "pass-of-ann"}))
			err := m.Alarm(context.Background(), message())
			checkError(t, err)
			if err != nil && !strings.Contains(err.Error(), c.want) || len(s.taken()) != 0 {
				t.Errorf("%v, %d mails; want %q", err, len(s.taken()), c.want)
			}
		})
	}
}

// A password with characters that an error has not is not in it as what is left of them.
func TestPasswordOfOddCharacters(t *testing.T) {
	for _, password := range []string{"pass\tof-ann", "pass\u200bof-ann", "pass\x7fof\u202e-ann"} {
		s := newServer(t)
		s.password = password
		s.says = step("end", "554 spam: "+password)
		m := newMailer(t, s.listen(t, mail.Config{To: []string{"ops@example.org"}, Username: "ann", Password: password}))
		if err := m.Alarm(context.Background(), message()); err == nil || strings.Contains(err.Error(), "ann") {
			t.Errorf("%q: %v", password, err)
		}
	}
}

// step answers one step with something else.
func step(name, said string) func(string) string {
	return func(step string) string {
		if step == name {
			return said
		}
		return ""
	}
}

// checkError checks that an error is short and has no password in it.
func checkError(t *testing.T, err error) {
	t.Helper()
	if err == nil {
		t.Error("no error")
		return
	}
	for _, secret := range []string{"pass-of-ann", "AGFubgBwYXNzLW9mLWFubg", "cGFzcy1vZi1hbm4"} {
		if strings.Contains(err.Error(), secret) {
			t.Errorf("the password is in %q", err)
		}
	}
	if len(err.Error()) > 500 || strings.ContainsAny(err.Error(), "\r\n") {
		t.Errorf("%d bytes or more than a line: %.600q", len(err.Error()), err)
	}
}
