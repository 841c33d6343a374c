package mail

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/xxljob/xxljob/alarm"
)

// Alarm sends one mail to all who are to be told: those in Config.To and in msg.Emails, at most
// 50, each once. What is no address is left out, and so is whom Config.Allow has not, who is beyond
// the fiftieth or beyond Config.MaxPerDay, with a line in the log. Where nobody is left there is nothing to do, which is no error: whether a
// job names people is its own affair.
//
// Recipients that the server refuses for good (5xx) are left out likewise, as long as it takes
// one of them; if it takes none, that is an error, as a server refuses so too whom it does not
// know. Those that it puts off (4xx) are an error, and when the message comes again, it goes
// only to them: whom the server has taken the mail for does not get it twice, unless the
// message comes by another node. It has the same Message-ID then, by which mail programs know
// a repetition.
//
// Else an error means that nothing was taken, or that the connection ended before the server
// said so. It has at most a short part of what the server said, and no password, and it wraps
// the cause of a context that has ended.
func (m *Mailer) Alarm(ctx context.Context, msg alarm.Message) error {
	all := m.recipients(msg)
	id := m.messageID(msg)
	rest := m.told.without(id, all)
	before := len(rest) < len(all)
	if over := m.overDay(msg, rest); len(over) > 0 {
		isOver := func(address string) bool { return slices.Contains(over, address) }
		all, rest = slices.DeleteFunc(all, isOver), slices.DeleteFunc(rest, isOver)
	}
	if len(rest) == 0 {
		return nil
	}
	text, err := m.cfg.Format.Render(msg)
	if err != nil {
		m.log().Warn("xxljob: an alarm is told in built-in words", "to", m.String(), "job", jobOf(msg), "error", err)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, m.cfg.Timeout, fmt.Errorf("no end within %v: %w", m.cfg.Timeout, context.DeadlineExceeded))
	defer cancel()
	answers, err := m.deliver(ctx, m.compose(id, all, text), rest)
	if err != nil {
		if ctx.Err() != nil {
			return fmt.Errorf("mail: %s: %w", m.address(), context.Cause(ctx))
		}
		return fmt.Errorf("mail: %s: %s", m.address(), m.conceal(err.Error()))
	}
	return m.settle(msg, id, before, answers)
}

// settle remembers whom the server took the mail for, and says what is to be done again.
func (m *Mailer) settle(msg alarm.Message, id string, before bool, answers []answer) error {
	var done []string
	var refused, deferred []answer
	for _, a := range answers {
		switch {
		case a.refusal == nil:
			done = append(done, a.to)
		case a.refusal.Code >= 500:
			refused = append(refused, a)
		default:
			deferred = append(deferred, a)
		}
	}
	if len(done) == 0 && !before && len(refused) > 0 && len(deferred) == 0 {
		return fmt.Errorf("mail: %s refuses all recipients: %s", m.address(), m.conceal(said(refused[0].refusal)))
	}
	if len(done) > 0 || before {
		for _, a := range refused {
			done = append(done, a.to)
			m.complain(a.to, "the server refuses it: "+m.conceal(said(a.refusal)), msg)
		}
	}
	if len(deferred) > 0 {
		m.told.add(id, done)
		return fmt.Errorf("mail: %s puts off %d of %d recipients: %s", m.address(), len(deferred), len(answers), m.conceal(said(deferred[0].refusal)))
	}
	m.told.forget(id)
	return nil
}

// complain logs what is wrong with an address, once.
func (m *Mailer) complain(address, why string, msg alarm.Message) {
	address = alarm.Line(address, 100)
	if m.once.first("address " + address) {
		m.log().Warn("xxljob: an address is not told of alarms; this is logged once per address", "address", address, "job", jobOf(msg), "error", errors.New(why))
	}
}

func jobOf(msg alarm.Message) string { return alarm.Line(msg.App+"/"+msg.JobKey, 200) }
