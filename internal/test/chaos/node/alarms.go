//go:build unix

package main

import (
	"time"

	"github.com/xxljob/xxljob/alarm"
	"github.com/xxljob/xxljob/alarm/mail"
	"github.com/xxljob/xxljob/alarm/webhook"
)

// patience is how long a sink may take to answer. Some never do.
const patience = time.Second

// rules tell both sinks of everything that a rule tells of by itself, an event a message; of a node
// of another app one of them of what is about that app.
func rules(o options) ([]alarm.Rule, error) {
	if o.hook == "" {
		return nil, nil
	}
	hook, err := webhook.New(webhook.Config{URL: o.hook, AllowHTTP: true, Timeout: patience})
	if err != nil {
		return nil, err
	}
	if o.app != first {
		return []alarm.Rule{{Name: "own", Apps: []string{o.app}, To: hook, Window: -1, Timeout: patience}}, nil
	}
	format, err := alarm.NewFormat(alarm.FormatConfig{Subject: o.subject})
	if err != nil {
		return nil, err
	}
	mailer, err := mail.New(mail.Config{
		Host: "127.0.0.1", Port: o.mail, Mode: mail.NoTLS, From: "chaos@example.org", To: []string{"ops@example.org"}, Format: format, Timeout: patience,
	})
	if err != nil {
		return nil, err
	}
	return []alarm.Rule{
		{Name: "http", To: hook, Window: -1, Timeout: patience},
		{Name: "smtp", To: mailer, Window: -1, Timeout: patience},
	}, nil
}
