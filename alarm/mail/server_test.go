package mail_test

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/md5"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/textproto"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/xxljob/xxljob/alarm/mail"
)

// mailbox is a mail that a server took.
type mailbox struct {
	from, user string
	to         []string
	tls        bool
	data       string
}

// server speaks as much SMTP as there is to be tested, over loopback or over pipes.
type server struct {
	cert     tls.Certificate
	roots    *x509.CertPool
	implicit bool     // TLS from the first byte on
	plain    bool     // no STARTTLS
	auth     []string // what it offers
	password string
	extra    string // one more line of EHLO

	// at is the step ("greet", a command, or "end" of the data) at which do takes over.
	at string
	do func(net.Conn)
	// says answers a recipient or a step in place of "250 ok"; "" for that.
	says func(step string) string

	mu    sync.Mutex
	mails []mailbox
	steps []string
	lines []string
}

func newServer(t *testing.T) *server {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "a test"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC), NotAfter: time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC),
		DNSNames: []string{"localhost", "mail.example.org"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	s := &server{cert: tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, roots: x509.NewCertPool(), auth: []string{"PLAIN"}, password: "pass-of-ann"}
	s.roots.AddCert(leaf)
	return s
}

// listen serves on loopback, and completes a configuration.
func (s *server) listen(t *testing.T, cfg mail.Config) mail.Config {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var served sync.WaitGroup
	served.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			served.Go(func() { s.serve(c) })
		}
	})
	t.Cleanup(func() { _ = l.Close(); served.Wait() })
	cfg.Host, cfg.Port = "127.0.0.1", l.Addr().(*net.TCPAddr).Port
	return s.complete(cfg)
}

// pipes serves in memory, for virtual time.
func (s *server) pipes(cfg mail.Config) mail.Config {
	cfg.Host = "mail.example.org"
	cfg.DialContext = func(context.Context, string, string) (net.Conn, error) {
		client, conn := net.Pipe()
		go s.serve(conn)
		return client, nil
	}
	return s.complete(cfg)
}

func (s *server) complete(cfg mail.Config) mail.Config {
	if cfg.From == "" {
		cfg.From = "Jobs <jobs@example.org>"
	}
	cfg.TLS = &tls.Config{RootCAs: s.roots}
	return cfg
}

func (s *server) taken() []mailbox {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mails
}

// serve is one connection.
func (s *server) serve(raw net.Conn) {
	defer raw.Close()
	c := raw
	if s.implicit {
		c = tls.Server(raw, &tls.Config{Certificates: []tls.Certificate{s.cert}})
	}
	session := &session{server: s, conn: c, in: bufio.NewReader(c)}
	if !session.begins("greet") || !session.say("220 mail.example.org") {
		return
	}
	for {
		line, err := session.in.ReadString('\n')
		if err != nil {
			return
		}
		if !session.command(strings.TrimRight(line, "\r\n")) {
			return
		}
	}
}

type session struct {
	server *server
	conn   net.Conn
	in     *bufio.Reader
	tls    bool
	mail   mailbox
	user   string
}

func (s *session) say(line string) bool {
	_, err := io.WriteString(s.conn, line+"\r\n")
	return err == nil
}

// begins notes a step, and lets the test take over.
func (s *session) begins(step string) bool {
	s.server.mu.Lock()
	s.server.steps = append(s.server.steps, step)
	s.server.mu.Unlock()
	if s.server.at == step {
		s.server.do(s.conn)
		return false
	}
	return true
}

// answer is what a test wants, or what is usual.
func (s *session) answer(step, usual string) string {
	if s.server.says != nil {
		if said := s.server.says(step); said != "" {
			return said
		}
	}
	return usual
}

func (s *session) command(line string) bool {
	s.server.mu.Lock()
	s.server.lines = append(s.server.lines, line)
	s.server.mu.Unlock()
	verb, rest, _ := strings.Cut(line, " ")
	if !s.begins(verb) {
		return false
	}
	switch verb {
	case "EHLO":
		return s.say(s.hello())
	case "STARTTLS":
		if !s.say("220 go ahead") {
			return false
		}
		s.conn = tls.Server(s.conn, &tls.Config{Certificates: []tls.Certificate{s.server.cert}})
		s.in, s.tls = bufio.NewReader(s.conn), true
		return true
	case "AUTH":
		return s.login(rest)
	case "MAIL":
		s.mail = mailbox{from: rest, user: s.user, tls: s.tls || s.server.implicit}
		return s.say(s.answer("MAIL", "250 ok"))
	case "RCPT":
		said := s.answer(rest, "250 ok")
		if strings.HasPrefix(said, "250") {
			s.mail.to = append(s.mail.to, strings.Trim(strings.TrimPrefix(rest, "TO:"), "<>"))
		}
		return s.say(said)
	case "DATA":
		return s.data()
	case "QUIT":
		s.say("221 bye")
		return false
	}
	return s.say(s.answer(verb, "250 ok"))
}

func (s *session) hello() string {
	lines := []string{"mail.example.org", "8BITMIME", "SMTPUTF8", "ENHANCEDSTATUSCODES"}
	if !s.server.plain && !s.server.implicit && !s.tls {
		lines = append(lines, "STARTTLS")
	}
	if len(s.server.auth) > 0 {
		lines = append(lines, "AUTH "+strings.Join(s.server.auth, " "))
	}
	if s.server.extra != "" {
		lines = append(lines, s.server.extra)
	}
	return "250-" + strings.Join(lines[:len(lines)-1], "\r\n250-") + "\r\n250 " + lines[len(lines)-1]
}

func (s *session) login(rest string) bool {
	way, initial, _ := strings.Cut(rest, " ")
	var user, password string
	switch way {
	case "PLAIN":
		decoded, _ := base64.StdEncoding.DecodeString(initial)
		parts := strings.Split(string(decoded)+"\x00\x00", "\x00")
		user, password = parts[1], parts[2]
	case "LOGIN":
		for _, to := range []*string{&user, &password} {
			s.say("334 VXNlcm5hbWU6")
			line, _ := s.in.ReadString('\n')
			decoded, _ := base64.StdEncoding.DecodeString(strings.TrimSpace(line))
			*to = string(decoded)
		}
	}
	if way == "CRAM-MD5" {
		const challenge = "<1@mail.example.org>"
		s.say("334 " + base64.StdEncoding.EncodeToString([]byte(challenge)))
		line, _ := s.in.ReadString('\n')
		decoded, _ := base64.StdEncoding.DecodeString(strings.TrimSpace(line))
		mac := hmac.New(md5.New, []byte(s.server.password))
		mac.Write([]byte(challenge))
		var hash string
		user, hash, _ = strings.Cut(string(decoded), " ")
		if hash == hex.EncodeToString(mac.Sum(nil)) {
			password = s.server.password
		}
	}
	if password != s.server.password {
		return s.say(fmt.Sprintf("535 5.7.8 no such user and password: %q %s", password, initial))
	}
	s.user = user
	return s.say("235 ok")
}

func (s *session) data() bool {
	if !s.say(s.answer("DATA", "354 go ahead")) {
		return false
	}
	body, err := io.ReadAll(textproto.NewReader(s.in).DotReader())
	if err != nil || !s.begins("end") {
		return false
	}
	said := s.answer("end", "250 taken")
	if strings.HasPrefix(said, "250") {
		s.mail.data = string(body)
		s.server.mu.Lock()
		s.server.mails = append(s.server.mails, s.mail)
		s.server.mu.Unlock()
	}
	return s.say(said)
}
