// Package mail tells people of alarms by mail.
package mail

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net"
	stdmail "net/mail"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/xxljob/xxljob/alarm"
)

// TLSMode says how a connection to a server is encrypted.
type TLSMode int

// The modes of encryption.
const (
	// StartTLS asks for encryption on a connection that begins without, and sends nothing to
	// a server that has none.
	StartTLS TLSMode = iota
	// ImplicitTLS encrypts from the first byte on.
	ImplicitTLS
	// NoTLS never encrypts: anybody on the way reads along. To a server that is not on
	// loopback, a password is then sent as a hash only (CRAM-MD5), or not at all.
	NoTLS
)

// Config says by which server mails go and to whom. Host and From are needed.
type Config struct {
	// Host is the name or address of the server, without a port.
	Host string
	// Port is the server's. 0 means 587, and 465 with ImplicitTLS.
	Port int
	// Username and Password log in, by PLAIN, LOGIN or CRAM-MD5, whatever of these the server
	// has. An empty Username means that there is no login. The password is in no error and in
	// no log.
	Username, Password string
	// Mode is how the connection is encrypted.
	Mode TLSMode
	// TLS is for encryption. Nil means the system's roots, the name in Host, and TLS 1.2 at
	// least.
	TLS *tls.Config
	// From is who sends: an address, with a name if it is to have one, as in
	// "Jobs <jobs@example.org>".
	From string
	// To are told of every message, and before those in alarm.Message.Emails: at most 50
	// addresses. A mail goes to no more than 50 either. Addresses are of ASCII.
	To []string
	// Allow are those whom a message may name (alarm.Message.Emails): addresses, and domains, each
	// without those below it. So whoever may write into Job.AlarmEmail, a program with the token of
	// an app or an editor of the console, has this account write to them and to nobody else: others
	// are left out. Nil means the domains of From and To; where one of these is a provider's that
	// anybody has an address of, list addresses. "*" means anybody. At most 1000, of ASCII.
	Allow []string
	// MaxPerDay bounds how many copies of mails the jobs of one app have sent to addresses that
	// they name, within the 24 hours that begin with the first; those of all apps have ten times as
	// many together. Each Mailer counts by itself. Over it these addresses are left out, and those
	// in To are told all the same. 0 means 500; at most 1,000,000.
	MaxPerDay int
	// Format says how messages read. Nil means English, with times in UTC.
	Format *alarm.Format
	// Timeout bounds one mail, from resolving the server's name on. 0 means 30 s; at most
	// 10 min.
	Timeout time.Duration
	// DialContext makes the connections in place of a net.Dialer. It is given "tcp" and host
	// and port, and called concurrently.
	DialContext func(ctx context.Context, network, addr string) (net.Conn, error)
	// Logger gets a line about each address that is none, that Allow has not or that the server
	// refuses, once each, about each job that has more addresses than a mail goes to, about each app
	// that has had its mails of the day, and where a template of Format has failed and a message was
	// told in the built-in words. Nil means slog.Default.
	Logger *slog.Logger
}

// maxRecipients is how many people one mail goes to.
const maxRecipients = 50

// Mailer sends mails. It is safe for concurrent use.
type Mailer struct {
	cfg       Config // complete
	from      stdmail.Address
	to        []string
	allowed   allowed
	day       day
	concealed []string // what no error may say
	told      told
	once      once
}

var _ alarm.Alarmer = (*Mailer)(nil)

// New makes a Mailer. It connects to nothing.
func New(cfg Config) (*Mailer, error) {
	if cfg.Port == 0 && cfg.Mode == ImplicitTLS {
		cfg.Port = 465
	}
	cfg.Port, cfg.Timeout = cmp.Or(cfg.Port, 587), cmp.Or(cfg.Timeout, 30*time.Second)
	cfg.Format = cmp.Or(cfg.Format, new(alarm.Format))
	cfg.TLS = cfg.TLS.Clone()
	if cfg.TLS == nil {
		cfg.TLS = &tls.Config{}
	}
	cfg.TLS.ServerName = cmp.Or(cfg.TLS.ServerName, cfg.Host)
	if cfg.DialContext == nil {
		cfg.DialContext = new(net.Dialer).DialContext
	}
	if err := check(cfg); err != nil {
		return nil, fmt.Errorf("mail: %w", err)
	}
	m := &Mailer{cfg: cfg}
	from, err := stdmail.ParseAddress(cfg.From)
	if err != nil || !plainAddress(from.Address) || alarm.Line(from.Name, 200) != from.Name {
		return nil, errors.New("mail: Config.From is no address of ASCII with a name of at most 200 bytes")
	}
	m.from = *from
	for _, s := range cfg.To {
		address, ok := addressOf(s)
		if !ok {
			return nil, fmt.Errorf("mail: Config.To has %q, which is no address of ASCII", alarm.Line(s, 100))
		}
		m.to = append(m.to, address)
	}
	if m.allowed, err = newAllowed(cfg.Allow, append([]string{m.from.Address}, m.to...)); err != nil {
		return nil, err
	}
	m.day.most = cmp.Or(cfg.MaxPerDay, usualPerDay)
	m.concealed = concealed(cfg.Username, cfg.Password)
	return m, nil
}

func check(cfg Config) error {
	switch {
	case cfg.Host == "" || strings.ContainsAny(cfg.Host, "\r\n\t /[]"):
		return errors.New("Config.Host is no name or address")
	case cfg.Port < 1 || cfg.Port > 65535:
		return fmt.Errorf("Config.Port is %d, and must be from 1 to 65535", cfg.Port)
	case cfg.Mode < StartTLS || cfg.Mode > NoTLS:
		return fmt.Errorf("Config.Mode is %d, which is none", cfg.Mode)
	case cfg.Timeout < 0 || cfg.Timeout > 10*time.Minute:
		return fmt.Errorf("Config.Timeout is %v, and must be from 0 to 10 min", cfg.Timeout)
	case len(cfg.To) > maxRecipients:
		return fmt.Errorf("Config.To has %d addresses, at most %d", len(cfg.To), maxRecipients)
	case cfg.MaxPerDay < 0 || cfg.MaxPerDay > mostPerDay:
		return fmt.Errorf("Config.MaxPerDay is %d, and must be from 0 to %d", cfg.MaxPerDay, mostPerDay)
	case strings.ContainsAny(cfg.Username+cfg.Password, "\r\n\x00"):
		return errors.New("Config.Username or Password has a line break or a zero byte")
	case cfg.Username == "" && cfg.Password != "":
		return errors.New("Config.Password is of no Username")
	}
	return nil
}

// concealed lists the password as a server might repeat it, the longest first.
func concealed(username, password string) []string {
	if password == "" {
		return nil
	}
	encode := base64.StdEncoding.EncodeToString
	quoted := strconv.Quote(password)
	list := []string{
		encode([]byte("\x00" + username + "\x00" + password)), encode([]byte(password)), password, quoted[1 : len(quoted)-1],
		alarm.Line(password, maxHeard), // what conceal has made of it by then
	}
	list = slices.DeleteFunc(list, func(s string) bool { return s == "" })
	slices.SortStableFunc(list, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	return list
}

// conceal makes a text fit for an error: a short line without the password.
func (m *Mailer) conceal(s string) string {
	s = alarm.Line(s, maxHeard)
	for _, secret := range m.concealed {
		s = strings.ReplaceAll(s, secret, "[hidden]")
	}
	return alarm.Line(s, 300)
}

func (m *Mailer) log() *slog.Logger {
	if m.cfg.Logger != nil {
		return m.cfg.Logger
	}
	return slog.Default()
}

// address is the server's.
func (m *Mailer) address() string { return net.JoinHostPort(m.cfg.Host, strconv.Itoa(m.cfg.Port)) }

// String names the server, and nothing that is secret.
func (m *Mailer) String() string { return "mail by " + m.address() }

// GoString is String, so that no verb prints a secret.
func (m *Mailer) GoString() string { return m.String() }
