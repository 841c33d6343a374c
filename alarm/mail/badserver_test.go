package mail_test

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob/alarm/mail"
)

// Servers that hang, close, or answer something else, at each step. Time is virtual, so that it
// passes at once.
func TestBadServers(t *testing.T) {
	for name, do := range map[string]func(net.Conn){
		"hangs":  func(net.Conn) { time.Sleep(time.Hour) },
		"closes": func(c net.Conn) { _ = c.Close() },
		"talks nonsense": func(c net.Conn) {
			_, _ = io.WriteString(c, "\x00\xff pass-of-ann\r\n")
			time.Sleep(time.Hour)
		},
		"sends an endless line":       func(c net.Conn) { repeat(c, "25") },
		"sends endless lines":         func(c net.Conn) { repeat(c, "250-x\r\n") },
		"sends endless empty lines":   func(c net.Conn) { repeat(c, "\r\n") },
		"sends a number out of range": func(c net.Conn) { repeat(c, "999 x\r\n") },
		"dribbles": func(c net.Conn) {
			for range 1000 {
				if _, err := io.WriteString(c, "2"); err != nil {
					return
				}
				time.Sleep(time.Second)
			}
		},
	} {
		for _, at := range []string{"greet", "EHLO", "STARTTLS", "AUTH", "MAIL", "RCPT", "DATA", "end"} {
			t.Run(name+" at "+at, func(t *testing.T) {
				badServer(t, mail.Config{Username: "ann", Password: "pass-of-ann"}, at, do)
			})
		}
		t.Run(name+" in place of TLS", func(t *testing.T) {
			badServer(t, mail.Config{Mode: mail.ImplicitTLS}, "greet", do)
		})
	}
}

func badServer(t *testing.T, cfg mail.Config, at string, do func(net.Conn)) {
	s := newServer(t)
	s.at, s.do = at, do
	cfg.To = []string{"ops@example.org"}
	synctest.Test(t, func(t *testing.T) {
		m := newMailer(t, s.pipes(cfg))
		began := time.Now()
		err := m.Alarm(context.Background(), message())
		checkError(t, err)
		if took := time.Since(began); took > 30*time.Second {
			t.Errorf("it took %v", took)
		}
		if len(s.taken()) != 0 {
			t.Errorf("%+v", s.taken())
		}
		time.Sleep(2 * time.Hour) // for servers that hang
	})
}

// repeat writes until nobody reads, or 64 MiB are through.
func repeat(c net.Conn, s string) {
	s = strings.Repeat(s, 1000)
	for range 64<<20/len(s) + 1 {
		if _, err := io.WriteString(c, s); err != nil {
			return
		}
	}
}

// A mail that was taken is told, however the connection ends.
func TestBadGoodbyes(t *testing.T) {
	for name, do := range map[string]func(net.Conn){
		"hangs":  func(net.Conn) { time.Sleep(time.Hour) },
		"closes": func(c net.Conn) { _ = c.Close() },
		"errs":   func(c net.Conn) { _, _ = io.WriteString(c, "500 what?\r\n") },
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t)
			s.at, s.do = "QUIT", do
			synctest.Test(t, func(t *testing.T) {
				m := newMailer(t, s.pipes(mail.Config{To: []string{"ops@example.org"}}))
				began := time.Now()
				if err := m.Alarm(context.Background(), message()); err != nil || len(s.taken()) != 1 {
					t.Errorf("%v, %d mails", err, len(s.taken()))
				}
				if took := time.Since(began); took > 5*time.Second {
					t.Errorf("it took %v", took)
				}
				time.Sleep(2 * time.Hour)
			})
		})
	}
}

func TestContextEnds(t *testing.T) {
	for _, at := range []string{"greet", "AUTH", "end"} {
		s := newServer(t)
		s.at, s.do = at, func(net.Conn) { time.Sleep(time.Hour) }
		synctest.Test(t, func(t *testing.T) {
			m := newMailer(t, s.pipes(mail.Config{To: []string{"ops@example.org"}, Username: "ann", Password: "pass-of-ann"}))
			why := errors.New("the host stops")
			ctx, cancel := context.WithCancelCause(context.Background())
			time.AfterFunc(3*time.Second, func() { cancel(why) })
			if err := m.Alarm(ctx, message()); !errors.Is(err, why) {
				t.Errorf("%v", err)
			}
			if err := m.Alarm(context.Background(), message()); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%v", err)
			}
			time.Sleep(2 * time.Hour)
		})
	}
}

// Without encryption, a server that is elsewhere gets no password.
func TestNoPasswordInTheClear(t *testing.T) {
	s := newServer(t)
	s.plain, s.auth = true, []string{"PLAIN", "LOGIN"}
	synctest.Test(t, func(t *testing.T) {
		m := newMailer(t, s.pipes(mail.Config{Mode: mail.NoTLS, To: []string{"ops@example.org"}, Username: "ann", Password: "pass-of-ann"}))
		err := m.Alarm(context.Background(), message())
		checkError(t, err)
		if err != nil && !strings.Contains(err.Error(), "CRAM-MD5 only") {
			t.Error(err)
		}
		for _, line := range s.lines {
			if strings.HasPrefix(line, "AUTH") {
				t.Errorf("sent %q", line)
			}
		}
	})
}

// A certificate of another name, or of nobody, ends it before anything is said.
func TestCertificates(t *testing.T) {
	for _, mode := range []mail.TLSMode{mail.StartTLS, mail.ImplicitTLS} {
		s := newServer(t)
		s.implicit = mode == mail.ImplicitTLS
		cfg := s.listen(t, mail.Config{Mode: mode, To: []string{"ops@example.org"}, Username: "ann", Password: "pass-of-ann"})
		cfg.TLS = nil
		checkError(t, newMailer(t, cfg).Alarm(context.Background(), message()))
		cfg = s.complete(cfg)
		cfg.TLS.ServerName = "other.example.org"
		err := newMailer(t, cfg).Alarm(context.Background(), message())
		checkError(t, err)
		if err != nil && !strings.Contains(err.Error(), "certificate") || len(s.taken()) != 0 {
			t.Errorf("%v", err)
		}
		for _, line := range s.lines {
			if strings.HasPrefix(line, "AUTH") {
				t.Errorf("sent %q", line)
			}
		}
	}
}

// A connection that comes when the mail is given up is closed.
func TestConnectionComesLate(t *testing.T) {
	s := newServer(t)
	synctest.Test(t, func(t *testing.T) {
		client, conn := net.Pipe()
		cfg := s.complete(mail.Config{Host: "mail.example.org", To: []string{"ops@example.org"}, Timeout: 3 * time.Second})
		cfg.DialContext = func(context.Context, string, string) (net.Conn, error) {
			time.Sleep(time.Minute) // whatever its context says
			return client, nil
		}
		if err := newMailer(t, cfg).Alarm(context.Background(), message()); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
		if _, err := io.Copy(io.Discard, conn); err != nil { // to its end, or for ever
			t.Error(err)
		}
	})
}

func TestNoConnection(t *testing.T) {
	for name, dial := range map[string]func(context.Context, string, string) (net.Conn, error){
		"refused": func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("refused") },
		"nothing": func(context.Context, string, string) (net.Conn, error) { return nil, nil },
		"address": func(_ context.Context, network, addr string) (net.Conn, error) {
			if network != "tcp" || addr != "[::1]:587" {
				t.Errorf("%s %s", network, addr)
			}
			return nil, errors.New("refused")
		},
	} {
		m := newMailer(t, mail.Config{Host: "::1", From: "jobs@example.org", To: []string{"ops@example.org"}, DialContext: dial})
		if err := m.Alarm(context.Background(), message()); err == nil || !strings.HasPrefix(err.Error(), "mail: [::1]:587: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
