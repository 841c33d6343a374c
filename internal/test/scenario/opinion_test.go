package scenario_test

// The second opinion on crontab expressions that are saved.

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store/memory"
	"github.com/xxljob/xxljob/store/storetest"
)

// disputed is an expression that gronx reads differently: it refuses a step over a range
// from 7, the Sunday. As this module reads it, it fires on Sunday and Tuesday.
const disputed = "30 9 * * 7-2/2"

// opinions are the lines about expressions that are read differently, each of which has to
// show both readings.
func opinions(t *testing.T, log *stage.LogLines) []string {
	t.Helper()
	lines := log.With("gronx reads the crontab expression differently")
	for _, line := range lines {
		for _, want := range []string{"level=WARN", "app=app", "7-2/2", `here="2000-01-02 09:`, `gronx="never within 366 days (step '7-2' out of bounds(0, 7))"`} {
			if !strings.Contains(line, want) {
				t.Errorf("no %s in: %s", want, line)
			}
		}
	}
	return lines
}

// TestSecondOpinionOnSaving: whoever saves a job with an expression that gronx reads
// differently finds both readings in the log, and the job is saved. Others find nothing.
func TestSecondOpinionOnSaving(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { // from 1 January 2000, a Saturday
		log := &stage.LogLines{}
		n := stage.StartNode(t, memory.New(), "a", &stage.Journal{}, log.LogTo)
		said := 0
		expect := func(what string, more int) {
			t.Helper()
			if said += more; len(opinions(t, log)) != said {
				t.Errorf("%s: %d lines in all, want %d: %q", what, len(opinions(t, log)), said, opinions(t, log))
			}
		}
		plain := xxljob.Job{Name: "plain", Key: "plain", Handler: "work", Schedule: xxljob.Crontab("0 9 13 * 5").In("Europe/Berlin")}
		odd := xxljob.Job{Name: "odd", Key: "odd", Handler: "work", Schedule: xxljob.Crontab(disputed).In("Europe/Berlin")}

		job, err := n.AddJob(t.Context(), plain)
		stage.Must(t, err)
		expect("a job that both read alike", 0)
		job.Schedule = odd.Schedule
		job, err = n.UpdateJob(t.Context(), job)
		stage.Must(t, err)
		expect("UpdateJob", 1)
		if want := time.Date(2000, 1, 2, 8, 30, 0, 0, time.UTC); !job.Next.Equal(want) {
			t.Errorf("the job is due at %v, want %v", job.Next, want)
		}
		stage.Must(t, n.StopJob(t.Context(), job.ID))
		stage.Must(t, n.StartJob(t.Context(), job.ID))
		expect("StopJob and StartJob", 0)
		_, err = n.AddJob(t.Context(), odd)
		stage.Must(t, err)
		expect("AddJob", 1)

		odd.Key = "ensured"
		for i, more := range []int{1, 0} {
			e, err := n.EnsureJob(t.Context(), odd)
			stage.Must(t, err)
			if want := []xxljob.Outcome{xxljob.Created, xxljob.Unchanged}[i]; e.Outcome != want {
				t.Errorf("EnsureJob: %s, want %s", e.Outcome, want)
			}
			expect("EnsureJob: "+string(e.Outcome), more)
		}
		odd.Schedule.Conf = strings.Replace(disputed, "30", "15", 1)
		_, err = n.EnsureJob(t.Context(), odd)
		stage.Must(t, err)
		expect("EnsureJob of another schedule", 1)
		stage.Stop(t, n)
	})
}

// TestSecondOpinionOnLists: of a list there is one line for each expression that is read
// differently, where its jobs are created or changed, also by the node itself after an error.
func TestSecondOpinionOnLists(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log := &stage.LogLines{}
		n := stage.StartNode(t, memory.New(), "a", &stage.Journal{}, log.LogTo)
		var jobs []xxljob.Job
		for i, conf := range []string{disputed, disputed, "31" + disputed[2:], "0 9 * * 1"} {
			jobs = append(jobs, xxljob.Job{Name: "job " + string(rune('a'+i)), Handler: "work", Schedule: xxljob.Crontab(conf)})
		}
		for _, call := range []string{"created", "unchanged"} {
			_, err := n.EnsureJobs(t.Context(), "", jobs, xxljob.EnsureOptions{})
			stage.Must(t, err)
			if lines := opinions(t, log); len(lines) != 2 || !strings.Contains(lines[0], `"job a"`) || !strings.Contains(lines[1], `"job c"`) {
				t.Errorf("%s: %q", call, lines)
			}
		}
		n.Faults.Inject("AddJobs", storetest.Fault{Before: true, Calls: 1})
		jobs = append(jobs, xxljob.Job{Name: "job e", Handler: "work", Schedule: xxljob.Crontab("32" + disputed[2:])})
		if _, err := n.EnsureJobs(t.Context(), "", jobs, xxljob.EnsureOptions{}); err == nil {
			t.Error("EnsureJobs has no error")
		}
		time.Sleep(time.Minute)
		if lines := opinions(t, log); len(lines) != 3 || !strings.Contains(lines[2], `"job e"`) {
			t.Errorf("finished by the node itself: %q", lines)
		}
		stage.Stop(t, n)
	})
}

// TestSpringReadsBothDaysOtherwise: whoever saves six fields with both fields of days set finds a line that
// Spring reads them otherwise, once for a list; fields of which one is open are the same to both.
func TestSpringReadsBothDaysOtherwise(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log := &stage.LogLines{}
		n := stage.StartNode(t, memory.New(), "a", &stage.Journal{}, log.LogTo)
		var jobs []xxljob.Job
		for _, conf := range []string{"0 0 12 13 * 5", "0 0 12 13 * 5", "0 0 18 * * 1-5", "0 0 12 13 * ?", "0 30 4 */2 * 1"} {
			jobs = append(jobs, xxljob.Job{Name: "job " + string(rune('a'+len(jobs))), Handler: "work", Schedule: xxljob.CronSeconds(conf)})
		}
		for _, call := range []string{"created", "unchanged"} {
			_, err := n.EnsureJobs(t.Context(), "", jobs, xxljob.EnsureOptions{})
			stage.Must(t, err)
			lines := log.With("in Spring both must")
			if len(lines) != 2 || !strings.Contains(lines[0], `level=INFO`) || !strings.Contains(lines[0], `"job a"`) || !strings.Contains(lines[1], `"job e"`) {
				t.Errorf("%s: %q", call, lines)
			}
		}
		stage.Stop(t, n)
	})
}
