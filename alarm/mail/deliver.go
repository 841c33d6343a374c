package mail

import (
	"context"
	"errors"
	"fmt"
	"net/textproto"
	"time"

	gomail "github.com/wneessen/go-mail"
	"github.com/wneessen/go-mail/smtp"
)

// goodbye is how long a server has to answer the end of a connection, when it has taken the
// mail already.
const goodbye = 2 * time.Second

// answer is what a server says of a recipient.
type answer struct {
	to      string
	refusal *textproto.Error // nil where the mail was taken
}

// said is what a server has said. The error's own text has it in quotes, with escapes, in which
// a password that is repeated would not be found.
func said(reply *textproto.Error) string { return fmt.Sprintf("%d %s", reply.Code, reply.Msg) }

// at says at which step something has failed.
func at(step string, err error) error {
	var reply *textproto.Error
	if errors.As(err, &reply) {
		return errors.New(step + ": " + said(reply))
	}
	return fmt.Errorf("%s: %w", step, err)
}

// deliver sends a mail to some recipients over a connection of its own. It returns an answer
// about each of them, or an error if the mail was taken for none of them, or nobody knows.
//
// The library's own way of sending gives up a mail for all recipients when the server refuses
// one of them. Here it goes to the others.
func (m *Mailer) deliver(ctx context.Context, mail *gomail.Msg, to []string) ([]answer, error) {
	via := &link{mailer: m}
	defer via.end()
	defer context.AfterFunc(ctx, via.end)()
	client, err := m.connect(ctx, via)
	if err != nil {
		return nil, err
	}
	if err := client.Mail("<" + m.from.Address + ">"); err != nil {
		return nil, at("sender", err)
	}
	answers, taken := make([]answer, 0, len(to)), false
	for _, address := range to {
		err := client.Rcpt("<" + address + ">")
		var refusal *textproto.Error
		if err != nil && (!errors.As(err, &refusal) || refusal.Code < 400 || refusal.Code > 599 || refusal.Code == 421) {
			return nil, at("recipient", err)
		}
		taken = taken || err == nil
		answers = append(answers, answer{address, refusal})
	}
	if taken {
		if err := send(client, mail); err != nil {
			return nil, err
		}
	}
	_ = client.UpdateDeadline(goodbye)
	_ = client.Quit() // whatever it says: it has the mail
	return answers, nil
}

// send sends what is in a mail. Where that fails, its end is not sent: it would be taken for
// a whole one.
func send(client *smtp.Client, mail *gomail.Msg) error {
	w, err := client.Data()
	if err != nil {
		return at("data", err)
	}
	if _, err := mail.WriteTo(w); err != nil {
		return at("data", err)
	}
	if err := w.Close(); err != nil {
		return at("end of data", err)
	}
	return nil
}

// connect connects, encrypts and logs in.
func (m *Mailer) connect(ctx context.Context, via *link) (*smtp.Client, error) {
	options := []gomail.Option{
		gomail.WithPort(m.cfg.Port), gomail.WithDialContextFunc(via.dial),
		gomail.WithTimeout(m.cfg.Timeout + time.Minute), // behind the context, which says why
		gomail.WithoutSMTPUTF8(),                        // no address needs it, and servers that have it not refuse the mail
	}
	switch m.cfg.Mode {
	case StartTLS:
		options = append(options, gomail.WithTLSPolicy(gomail.TLSMandatory), gomail.WithTLSConfig(m.cfg.TLS.Clone()))
	case ImplicitTLS:
		options = append(options, gomail.WithSSL()) // by via.dial
	case NoTLS:
		options = append(options, gomail.WithTLSPolicy(gomail.NoTLS))
	}
	auth := &login{user: m.cfg.Username, password: m.cfg.Password}
	if m.cfg.Username != "" {
		options = append(options, gomail.WithSMTPAuthCustom(auth))
	}
	client, err := gomail.NewClient(m.cfg.Host, options...)
	if err != nil {
		return nil, err
	}
	session, err := client.DialToSMTPClientWithContext(ctx)
	switch {
	case err != nil && auth.begun:
		return nil, auth.failed(err)
	case err != nil:
		return nil, at("connecting", err)
	}
	return session, nil
}
