package alarms_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/xxljob/xxljob/internal/engine/alarms"

	"github.com/xxljob/xxljob/alarm"
	"github.com/xxljob/xxljob/store"
)

// The longest AlarmEmail may have more addresses than a message.
func TestAddressesOfAMessage(t *testing.T) {
	var all []string
	for i := range 25 {
		all = append(all, fmt.Sprintf("p%d@x.io", i))
	}
	job := store.Job{App: "app", Name: "job", Handler: "h", AlarmEmail: " ," + strings.Join(all, ", ") + ","}
	if err := job.Validate(); err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	book := alarms.NewAlarmBook([]alarm.Rule{{Name: "all"}})
	book.Take([]store.Alarm{{ID: 1, JobID: 1, App: "app", Cause: "failed", Email: job.AlarmEmail, At: at}}, func([]int64) []store.JobTold { return nil })
	due, _ := book.Due(at, func(int) bool { return true }, nil)
	if len(due) != 1 || !slices.Equal(due[0].Emails, all[:20]) {
		t.Errorf("%+v", due)
	}
}
