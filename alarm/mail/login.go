package mail

import (
	"errors"
	"fmt"
	"net"
	"net/textproto"
	"slices"

	"github.com/wneessen/go-mail/smtp"
)

// login logs in by the simplest way that a server has and that shows the password to nobody
// else. SCRAM is not among them: there a server says how much is to be computed.
type login struct {
	user, password string
	by             smtp.Auth // set by Start
	begun          bool
}

// Start chooses the way.
func (l *login) Start(server *smtp.ServerInfo) (string, []byte, error) {
	private := server.TLS || isLoopback(server.Name)
	switch has := func(way string) bool { return slices.Contains(server.Auth, way) }; {
	case private && has("PLAIN"):
		l.by = smtp.PlainAuth("", l.user, l.password, server.Name, true)
	case private && has("LOGIN"):
		l.by = smtp.LoginAuth(l.user, l.password, server.Name, true)
	case has("CRAM-MD5"):
		l.by = smtp.CRAMMD5Auth(l.user, l.password)
	case private:
		return "", nil, errors.New("the server has no login by PLAIN, LOGIN or CRAM-MD5")
	default:
		return "", nil, errors.New("without encryption, a password is sent by CRAM-MD5 only, which the server has not")
	}
	l.begun = true
	return l.by.Start(server)
}

// Next goes on in that way.
func (l *login) Next(from []byte, more bool) ([]byte, error) { return l.by.Next(from, more) }

// failed is the error of a login. What the server says is not in it: it might be what it was
// told.
func (l *login) failed(err error) error {
	var reply *textproto.Error
	if errors.As(err, &reply) {
		return fmt.Errorf("login: the server refuses user name and password: %d", reply.Code)
	}
	return errors.New("login: the server does not answer as it should")
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
