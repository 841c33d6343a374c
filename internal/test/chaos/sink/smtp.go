package sink

import (
	"fmt"
	"io"
	"mime"
	"net"
	"net/mail"
	"net/textproto"
	"strconv"
	"strings"
	"sync"

	"github.com/xxljob/xxljob/internal/test/chaos/audit"
)

// Subject is the template of a mail's subject, from which SMTP knows what the mail is about.
const Subject = `{{.ID}} {{.JobID}} {{.Count}}{{if .Trouble}} {{.Cause}} {{.Trouble}} {{printf "%q" .App}}{{else}}{{range .Events}} {{.RunID}} {{.Cause}} {{.Instant.UnixMilli}}{{end}}{{end}}`

// SMTP is a mail server.
type SMTP struct {
	*book
	listener net.Listener

	mu    sync.Mutex
	conns map[net.Conn]bool // guarded by mu
}

// ListenSMTP starts one on a port of its own.
func ListenSMTP(name string, seed uint64) (*SMTP, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &SMTP{book: newBook(name, seed), listener: ln, conns: map[net.Conn]bool{}}
	go s.listen()
	return s, nil
}

// Port is the server's.
func (s *SMTP) Port() int { return s.listener.Addr().(*net.TCPAddr).Port }

// Close ends the server and all connections.
func (s *SMTP) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for conn := range s.conns {
		_ = conn.Close()
	}
	return s.listener.Close()
}

func (s *SMTP) listen() {
	for {
		conn, err := s.listener.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		s.conns[conn] = true
		s.mu.Unlock()
		go func() {
			s.serve(textproto.NewConn(conn))
			s.mu.Lock()
			delete(s.conns, conn)
			s.mu.Unlock()
			_ = conn.Close()
		}()
	}
}

// serve is a session. It ends when the other side does, or leaves it waiting.
func (s *SMTP) serve(c *textproto.Conn) {
	if s.surly() {
		_ = c.PrintfLine("421 not now")
		return
	}
	reply := "220 chaos"
	for {
		if c.PrintfLine("%s", reply) != nil {
			return
		}
		line, err := c.ReadLine()
		if err != nil {
			return
		}
		switch verb, _, _ := strings.Cut(strings.ToUpper(line), " "); verb {
		case "RCPT":
			reply = "250 well"
			if s.surly() {
				reply = "451 not now"
			}
		case "DATA":
			if c.PrintfLine("354 go on") != nil {
				return
			}
			text, err := c.ReadDotBytes()
			if err != nil {
				return // what has no end is no mail
			}
			var waits bool
			if reply, waits = s.receive(text); waits {
				_, _ = io.Copy(io.Discard, c.R) // until the other side gives up
				return
			}
		case "QUIT":
			_ = c.PrintfLine("221 farewell")
			return
		case "EHLO", "HELO", "MAIL", "RSET", "NOOP":
			reply = "250 well"
		default:
			reply = "502 not here"
		}
	}
}

// receive takes a mail, or does not.
func (s *SMTP) receive(text []byte) (reply string, waits bool) {
	t, job, err := read(string(text))
	if err == nil && t.Message != "" {
		s.accept(t)
		return "250 well", false
	}
	if err != nil {
		s.accept(audit.Told{Cause: "no mail of one event: " + strconv.Quote(string(text)) + ": " + err.Error()})
		return "250 well", false
	}
	switch s.mood(job) {
	case refuses:
		return "452 not now", false
	case hangs:
		return "", true
	}
	s.accept(t)
	return "250 well", false
}

// read reads the subject of a mail.
func read(text string) (t audit.Told, job int64, err error) {
	m, err := mail.ReadMessage(strings.NewReader(text))
	if err != nil {
		return t, 0, err
	}
	var id string
	var count int
	subject, err := new(mime.WordDecoder).DecodeHeader(m.Header.Get("Subject"))
	if err != nil {
		return t, 0, fmt.Errorf("subject: %w", err)
	}
	if ofTrouble(subject) {
		t.Message, t.Alarm = troubleOf(subject)
		if _, err := fmt.Sscanf(subject, "%s %d %d %s %s %q", &id, &job, &count, &t.Cause, &t.Trouble, &t.App); err != nil {
			return t, 0, fmt.Errorf("subject %q: %w", subject, err)
		}
		return t, job, nil
	}
	if _, err := fmt.Sscan(subject, &id, &job, &count, &t.Run, &t.Cause, &t.Instant); err != nil || count != 1 {
		return t, 0, fmt.Errorf("subject %q: %w", subject, err)
	}
	t.Alarm, err = alarmOf(id)
	return t, job, err
}
