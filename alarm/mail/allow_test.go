package mail_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob/alarm/mail"
)

// TestWhomJobsMayName: who writes into a job's addresses has the account write to whom the host
// allows, however an address is written.
func TestWhomJobsMayName(t *testing.T) {
	tests := map[string]struct {
		allow, to []string
		named     []string
		want      []string // beside To
	}{
		"the domains of From and To": {nil, []string{"ops@ops.example"}, []string{"ann@example.org", "bob@ops.example", "x@elsewhere.example"}, []string{"ann@example.org", "bob@ops.example"}},
		"whatever case":              {[]string{"Team.Example", "Ann@one.example"}, nil, []string{"BOB@TEAM.EXAMPLE", "ann@One.Example", "bob@one.example"}, []string{"BOB@TEAM.EXAMPLE", "ann@One.Example"}},
		"a name beside it":           {[]string{"team.example"}, nil, []string{"Bob at team.example <x@elsewhere.example>", "\"bob@team.example\" <y@elsewhere.example>", "Bob <bob@team.example>"}, []string{"bob@team.example"}},
		"no domain below or above":   {[]string{"team.example"}, nil, []string{"x@a.team.example", "x@ateam.example", "x@example", "x@team.example.", "x@team.example.evil.example", "x@team.example@evil.example"}, nil},
		"ways to other domains":      {[]string{"team.example"}, nil, []string{"x%elsewhere.example@team.example", "elsewhere.example!x@team.example", "@team.example:x@elsewhere.example"}, nil},
		"one that is listed whole":   {[]string{"a%b@team.example"}, nil, []string{"a%b@team.example", "c%b@team.example"}, []string{"a%b@team.example"}},
		"letters that look alike":    {[]string{"team.example"}, nil, []string{"x@te\u0430m.example", "x@\uff54eam.example", "x@xn--tem-8cd.example"}, nil},
		"quotes and brackets":        {[]string{"team.example"}, nil, []string{"\"x@elsewhere.example\"@team.example", "\"x\r\nRCPT TO:<y@z>\"@team.example", "x@[127.0.0.1]"}, nil},
		"several in one":             {[]string{"team.example"}, nil, []string{"x@elsewhere.example, bob@team.example", "all: x@elsewhere.example;", "bob@team.example\r\nBcc: x@elsewhere.example", "bob@team.example x@elsewhere.example"}, nil},
		"nobody":                     {[]string{}, []string{"ops@example.org"}, []string{"ann@example.org", "OPS@example.org"}, nil},
		"anybody":                    {[]string{"*"}, nil, []string{"x@elsewhere.example"}, []string{"x@elsewhere.example"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := newServer(t)
			s.plain = true
			var out bytes.Buffer
			synctest.Test(t, func(t *testing.T) {
				m := newMailer(t, s.pipes(mail.Config{Mode: mail.NoTLS, To: tt.to, Allow: tt.allow, Logger: slog.New(slog.NewTextHandler(&out, nil))}))
				for range 2 {
					if err := m.Alarm(t.Context(), message(tt.named...)); err != nil {
						t.Fatal(err)
					}
				}
				synctest.Wait()
			})
			want := append(slices.Clone(tt.to), tt.want...)
			got := s.taken()
			if len(want) == 0 && len(got) == 0 {
				return
			}
			if len(got) != 2 || !slices.Equal(got[0].to, want) {
				t.Fatalf("%v, want two mails to %q", got, want)
			}
			if left := len(tt.named) - len(tt.want); name != "nobody" && strings.Count(out.String(), "\n") != left {
				t.Errorf("want a line each for %d: %s", left, &out)
			}
			for _, line := range s.lines {
				if strings.Contains(line, "elsewhere") && !strings.Contains(strings.Join(want, " "), "elsewhere") {
					t.Errorf("the server hears %q", line)
				}
			}
		})
	}
	for _, entry := range []string{"", "@team.example", "*.team.example", "team .example", "te\u0430m.example", "a@b@c", "team.example\r\n", "Team <ann@team.example", "a,b"} {
		if _, err := mail.New(mail.Config{Host: "mail.example.org", From: "jobs@example.org", Allow: []string{entry}}); err == nil || !strings.Contains(err.Error(), "Config.Allow") {
			t.Errorf("Allow %q: %v", entry, err)
		}
	}
}

// TestMailsOfADay: whoever names addresses has so many mails a day written to them, and the host's
// own are told all the same, and so are those whom other apps name.
func TestMailsOfADay(t *testing.T) {
	s := newServer(t)
	s.plain = true
	var out bytes.Buffer
	synctest.Test(t, func(t *testing.T) {
		m := newMailer(t, s.pipes(mail.Config{Mode: mail.NoTLS, To: []string{"ops@example.org"}, MaxPerDay: 5, Logger: slog.New(slog.NewTextHandler(&out, nil))}))
		tell := func(app string, want int) {
			t.Helper()
			msg := message("ann@example.org", "bob@example.org", "Ops@example.org")
			msg.App = app
			msg.ID = fmt.Sprint("m", len(s.taken()))
			if err := m.Alarm(t.Context(), msg); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			all := s.taken()
			last := all[len(all)-1]
			list, err := parse(t, last.data).header.AddressList("To")
			if len(last.to) != want || last.to[0] != "ops@example.org" || err != nil || len(list) != want {
				t.Errorf("of %s: to %q, header %v, want %d", app, last.to, list, want)
			}
		}
		for _, want := range []int{3, 3, 2, 1, 1} {
			tell("evil", want)
		}
		tell("honest", 3)
		time.Sleep(24*time.Hour - time.Second)
		tell("evil", 1)
		time.Sleep(time.Second)
		tell("evil", 3)
		for i := range 50 { // all together have ten times as many
			tell(fmt.Sprint("app", i), map[bool]int{true: 3, false: 1}[i < 24])
		}
	})
	if n := strings.Count(out.String(), "mails of the day"); n != 1+26 {
		t.Errorf("%d lines: %s", n, &out)
	}
}
