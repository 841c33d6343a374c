package alarm_test

import (
	"context"
	"fmt"
	"time"

	"github.com/xxljob/xxljob/alarm"
)

// pager is an alarmer of one's own.
type pager struct{ format *alarm.Format }

func (p pager) Alarm(_ context.Context, m alarm.Message) error {
	text, err := p.format.Render(m)
	if err != nil {
		return err
	}
	fmt.Println(text.Subject)
	return nil
}

func Example() {
	rule := alarm.Rule{Name: "pager", To: pager{new(alarm.Format)}, Causes: []alarm.Cause{alarm.Failed, alarm.Recovered}}
	at := time.Date(2026, 3, 1, 9, 30, 0, 0, time.UTC)
	_ = rule.To.Alarm(context.Background(), alarm.Message{Cause: alarm.Failed, App: "billing", JobName: "nightly", Count: 1, First: at, Last: at})
	_ = rule.To.Alarm(context.Background(), alarm.Message{Cause: alarm.Recovered, App: "billing", JobName: "nightly", Count: 1, First: at, Last: at})
	// Output:
	// [billing] nightly: 1 run failed
	// [billing] nightly: recovered, runs succeed again
}

func ExampleNewFormat() {
	format, err := alarm.NewFormat(alarm.FormatConfig{
		Language: alarm.SimplifiedChinese,
		Location: time.FixedZone("CST", 8*60*60),
		Link:     func(m alarm.Message) string { return fmt.Sprintf("https://console.example.org/jobs/%d", m.JobID) },
		Plain:    "{{.Job}}{{.Word `colon`}}{{.Headline}}\n{{range .Events}}{{$.Time .At}} {{$.StateName .State}} {{.Text}}\n{{end}}{{.Link}}",
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	at := time.Date(2026, 3, 1, 1, 30, 0, 0, time.UTC)
	text, err := format.Render(alarm.Message{
		Cause: alarm.Failed, App: "billing", JobID: 17, JobKey: "nightly", JobName: "夜间报表", Count: 1, First: at, Last: at,
		Events: []alarm.Event{{Cause: alarm.Failed, At: at, RunID: 4711, State: "timed out", Text: "60 s"}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(text.Plain)
	// Output:
	// 夜间报表 (billing/nightly)：任务执行失败
	// 2026-03-01 09:30:00 +08:00 执行超时 60 s
	// https://console.example.org/jobs/17
}
