package mail

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	stdmail "net/mail"
	"strings"

	gomail "github.com/wneessen/go-mail"

	"github.com/xxljob/xxljob/alarm"
)

// compose writes a mail to all recipients: also to those who have it already, as it is the
// same one.
func (m *Mailer) compose(id string, all []string, text alarm.Text) *gomail.Msg {
	mail := gomail.NewMsg(gomail.WithNoDefaultUserAgent())
	from := m.from
	mail.FromMailAddress(&from)
	to := make([]*stdmail.Address, len(all))
	for i, address := range all {
		to[i] = &stdmail.Address{Address: address}
	}
	mail.ToMailAddress(to...)
	mail.SetMessageIDWithValue(id)
	mail.SetDate()
	mail.Subject(strings.ReplaceAll(text.Subject, "=?", "= ?")) // an encoded word of others would be decoded
	mail.SetGenHeader("Auto-Submitted", "auto-generated")       // RFC 3834: no answers of machines
	mail.SetGenHeader(gomail.HeaderXAutoResponseSuppress, "All")
	mail.SetBodyString(gomail.TypeTextPlain, text.Plain)
	mail.AddAlternativeString(gomail.TypeTextHTML, text.HTML)
	return mail
}

// messageID is the same for a message that comes again, and for no other: neither for one of
// another scheduler that counts its events alike.
func (m *Mailer) messageID(msg alarm.Message) string {
	hash := sha256.Sum256(fmt.Appendf(nil, "%q %q %q %q %q %d", m.from.Address, msg.ID, msg.App, msg.JobKey, msg.Cause, msg.Last.UnixMilli()))
	_, domain, _ := strings.Cut(m.from.Address, "@")
	return hex.EncodeToString(hash[:16]) + "@" + domain
}
