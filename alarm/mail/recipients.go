package mail

import (
	stdmail "net/mail"
	"slices"
	"strings"
	"time"

	"github.com/xxljob/xxljob/alarm"
)

// recipients are the addresses to be told, each once, whatever its case. Who is beyond the
// most is not told, and the log says so once for each job.
func (m *Mailer) recipients(msg alarm.Message) []string {
	var all []string
	seen, more := map[string]bool{}, 0
	add := func(address string) {
		key := strings.ToLower(address)
		switch {
		case seen[key]:
		case len(all) == maxRecipients:
			more++
		default:
			all = append(all, address)
		}
		seen[key] = true
	}
	for _, address := range m.to {
		add(address)
	}
	for _, s := range msg.Emails[:min(len(msg.Emails), 2*maxRecipients)] {
		address, ok := addressOf(s)
		switch {
		case !ok:
			m.complain(s, "it is no address of ASCII", msg)
		case seen[strings.ToLower(address)]: // the host's own too, which Allow need not have
		case !m.allowed.has(address):
			m.complain(address, "Config.Allow has neither it nor its domain", msg)
		default:
			add(address)
		}
	}
	if more += max(len(msg.Emails)-2*maxRecipients, 0); more > 0 && m.once.first("job "+jobOf(msg)) {
		m.log().Warn("xxljob: a mail goes to no more addresses; the others are not told", "job", jobOf(msg), "addresses", maxRecipients, "others", more)
	}
	return all
}

// overDay are those whom the job names and its app has had its mails of the day for.
func (m *Mailer) overDay(msg alarm.Message, rest []string) []string {
	var named []string
	for _, address := range rest {
		if !slices.ContainsFunc(m.to, func(to string) bool { return strings.EqualFold(to, address) }) {
			named = append(named, address)
		}
	}
	if len(named) == 0 {
		return nil
	}
	n, first := m.day.take(msg.App, len(named), time.Now())
	if first {
		m.log().Warn("xxljob: an app has had its mails of the day; whom else its jobs name is not told until it is over", "app", alarm.Line(msg.App, 100), "addresses", m.day.most)
	}
	return named[n:]
}

// addressOf returns the address in a text, without a name that comes with it.
func addressOf(s string) (address string, ok bool) {
	if len(s) > 400 {
		return "", false
	}
	parsed, err := stdmail.ParseAddress(s)
	if err != nil || !plainAddress(parsed.Address) {
		return "", false
	}
	return parsed.Address, true
}

// plainAddress reports whether an address is one that needs no quotes and no extension of a
// server's: printable ASCII, with nothing in it that means something in a header or a command.
func plainAddress(s string) bool {
	if len(s) > 254 || strings.Count(s, "@") != 1 || strings.HasPrefix(s, "@") || strings.HasSuffix(s, "@") {
		return false
	}
	for _, r := range s {
		if r <= ' ' || r > '~' || strings.ContainsRune("<>()[]\\,;:\"", r) {
			return false
		}
	}
	return true
}
