package mail_test

import (
	"fmt"
	"os"
	"time"

	"github.com/xxljob/xxljob/alarm"
	"github.com/xxljob/xxljob/alarm/mail"
)

func Example() {
	format, err := alarm.NewFormat(alarm.FormatConfig{Language: alarm.TraditionalChinese, Location: time.Local})
	if err != nil {
		fmt.Println(err)
		return
	}
	mailer, err := mail.New(mail.Config{
		Host:     "mail.example.org", // port 587, with STARTTLS
		Username: "jobs@example.org",
		Password: os.Getenv("MAIL_PASSWORD"),
		From:     "Jobs <jobs@example.org>",
		To:       []string{"ops@example.org"}, // beside those whom a job names
		Format:   format,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	rule := alarm.Rule{Name: "mail", To: mailer, Apps: []string{"billing"}}
	fmt.Println(rule.Name, rule.To)
	// Output: mail mail by mail.example.org:587
}
