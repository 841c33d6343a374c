// Command alarms is a shop's evening: what follows a success, and who is told of a failure.
//
// Each ten seconds stand for a day. The jobs "orders" and "stock" count what was sold and what
// is left; "report" runs behind both, once for each day that both have counted; its child
// "publish" is given the report as its parameter. Now and then "stock" fails: it is tried
// again, and if that fails too, somebody is told, as of the day without a report.
//
//	go run ./examples/alarms                                      # tells the log
//	go run ./examples/alarms -slack https://hooks.slack.com/services/…
//	go run ./examples/alarms -hook https://example.com/alarms     # HOOK_SECRET signs the body
//	go run ./examples/alarms -smtp mail.example.com -from shop@example.com -to ops@example.com -language zh-CN
//
// SMTP_USERNAME and SMTP_PASSWORD log in to the mail server.
package main

import (
	"context"
	"flag"
	"log"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/alarm"
	alarmlog "github.com/xxljob/xxljob/alarm/log"
	"github.com/xxljob/xxljob/alarm/mail"
	"github.com/xxljob/xxljob/alarm/webhook"
	"github.com/xxljob/xxljob/store/memory"
)

func main() {
	var to recipients
	flag.StringVar(&to.smtp, "smtp", "", "host of a mail server; empty sends no mail")
	flag.StringVar(&to.from, "from", "", "address that mails are from")
	flag.StringVar(&to.to, "to", "", "comma list of addresses that are always told")
	flag.StringVar(&to.hook, "hook", "", "URL that alarms are posted to as JSON")
	flag.StringVar(&to.slack, "slack", "", "URL of an incoming webhook of Slack")
	language := flag.String("language", "en", "of the texts: en, zh-CN or zh-TW")
	flag.Parse()
	rules, err := to.rules(alarm.Language(*language))
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the program at once
	shop := shop{breaks: everyThird()}
	if err := shop.run(ctx, xxljob.Config{App: "shop", Alarms: rules}, memory.New()); err != nil {
		log.Fatal(err)
	}
}

// recipients are what the flags say.
type recipients struct{ smtp, from, to, hook, slack string }

// rules has the log told of everything, and whoever else was named of what counts.
func (r *recipients) rules(language alarm.Language) ([]alarm.Rule, error) {
	format, err := alarm.NewFormat(alarm.FormatConfig{Language: language})
	if err != nil {
		return nil, err
	}
	all := []alarm.Cause{alarm.Failed, alarm.Lost, alarm.Skipped, alarm.Stopped, alarm.Late, alarm.Recovered}
	rules := []alarm.Rule{{Name: "log", To: alarmlog.New(slog.Default()), Causes: all, Window: -1}}
	if r.smtp != "" {
		mailer, err := mail.New(mail.Config{
			Host: r.smtp, Username: os.Getenv("SMTP_USERNAME"), Password: os.Getenv("SMTP_PASSWORD"),
			From: r.from, To: strings.FieldsFunc(r.to, func(c rune) bool { return c == ',' || c == ' ' }), Format: format,
		})
		if err != nil {
			return nil, err
		}
		rules = append(rules, alarm.Rule{Name: "mail", To: mailer, Causes: all})
	}
	for _, h := range []struct {
		name, url, secret string
		make              func(webhook.Config) (*webhook.Hook, error)
	}{{"hook", r.hook, os.Getenv("HOOK_SECRET"), webhook.New}, {"slack", r.slack, "", webhook.Slack}} {
		if h.url == "" {
			continue
		}
		hook, err := h.make(webhook.Config{URL: h.url, Secret: h.secret, Format: format})
		if err != nil {
			return nil, err
		}
		rules = append(rules, alarm.Rule{Name: h.name, To: hook, Causes: all})
	}
	return rules, nil
}
