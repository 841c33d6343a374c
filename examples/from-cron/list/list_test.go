package list_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/examples/from-cron/list"
	"github.com/xxljob/xxljob/jobfile"
)

const crons = `# what the service had
poll	*/5 * * * * *
office	0 */15 9-17 * * 1-5
weekend	30 0 8 ? * 0,6
payday	0 0 6 1,15 * *
odd months	0 30 4 */2 1-12/2 *
thirteenth	0 0 12 13 * 5
report	30 4 * * 1-5
backup	@daily
`

// TestList: the jobs of a list are due when robfig/cron has them due, and go through a file unchanged.
func TestList(t *testing.T) {
	jobs, hints, err := list.Jobs(crons, "work")
	if err != nil || len(jobs) != 8 {
		t.Fatalf("%d jobs, %v", len(jobs), err)
	}
	if want := []string{"line 7: thirteenth: due at 12:00:00 on the 13th of every month or on Friday (UTC); in Spring both fields of days must match"}; fmt.Sprint(hints) != fmt.Sprint(want) {
		t.Errorf("hints %q, want %q", hints, want)
	}
	parser := cron.NewParser(cron.SecondOptional | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor)
	for i, line := range strings.Split(strings.TrimSpace(crons), "\n")[1:] {
		name, expr, _ := strings.Cut(line, "\t")
		theirs, err := parser.Parse(expr)
		if err != nil {
			t.Fatal(err)
		}
		at := time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
		for range 100 {
			next, err := jobs[i].Schedule.Next(at)
			if want := theirs.Next(at); err != nil || !next.Equal(want) {
				t.Fatalf("%s: %v, %v, want %v", name, next, err, want)
			}
			at = next
		}
	}
	var file []string
	for _, j := range jobs {
		text, err := jobfile.Marshal(j)
		if err != nil {
			t.Fatal(err)
		}
		file = append(file, string(text))
	}
	read, err := jobfile.Read(strings.NewReader("[" + strings.Join(file, ",\n") + "]"))
	if err != nil || fmt.Sprint(read) != fmt.Sprint(jobs) {
		t.Errorf("from the file: %v, %v", read, err)
	}
}

// TestListFaults: what is wrong is said of each line, and what is right is there.
func TestListFaults(t *testing.T) {
	jobs, _, err := list.Jobs("a\t0 0 18 * * 1-5\nno tab\nb\t61 * * * *\n", "work")
	if len(jobs) != 1 || jobs[0].Schedule != xxljob.CronSeconds("0 0 18 * * 1-5") {
		t.Errorf("jobs %v", jobs)
	}
	for _, want := range []string{"line 2: want a name", "line 3: xxljob: job \"b\": Schedule", "minute from 0 to 59"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
