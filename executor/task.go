package executor

// What a handler knows of its run, and says of it: result and log.

import (
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"
)

// Task is what a handler knows about its run. The fields are the handler's own
// copy. The methods are safe for concurrent use in a handler.
//
// A Task made as a literal, in a test of a handler, works too: Log and Progress
// discard, and SetResult is not safe for concurrent use.
type Task struct {
	// RunID is the id of the run, the protocol's logId.
	RunID int64
	// JobID is the id of the job.
	JobID int64
	// Handler is the name the handler was registered under.
	Handler string
	// Param is the parameter, empty when there is none.
	Param string
	// ShardIndex is the number of this shard of a broadcast, from 0.
	ShardIndex int
	// ShardTotal is the number of shards, 1 when the run is not a broadcast.
	ShardTotal int
	// ScheduledAt is the instant that the run stands for, whenever it runs: that of its schedule,
	// a past one that it was triggered for, or the beginning of the window in which its job runs
	// behind others, also when it is asked for once more. It is in the zone of the job's schedule, or
	// of its windows (AfterZone); where it has none, or the admin tells none, in Config.Location. An admin that does not
	// tell the instant leaves the one at which it triggered the run.
	ScheduledAt time.Time
	// Zone is the name of that zone.
	Zone string
	// Attempt counts the attempts of one trigger as the admin counts them, 0 when it
	// does not tell.
	Attempt int
	// TriggerID is the first run of the same trigger, the same for all attempts and for all
	// parts of a broadcast; ParentID the run whose success has led to this one, or to the
	// one that it repeats, or 0.
	TriggerID, ParentID int64
	// Deadline is when the job's timeout ends the run, zero for none: the deadline that
	// the handler's context was made with, in the same zone.
	Deadline time.Time

	// BusinessTime is the time that the run is about, in the same zone: ScheduledAt, but for a
	// run that the success of others has led to that of the first of these. Window is the window
	// in which a job runs behind others (xxljob.Job.AfterWindow), in the same zone: of a run that
	// somebody has asked for, the one in which its BusinessTime lies. It is nil for other jobs.
	BusinessTime time.Time
	Window       *Window
	// First and Last are the ends of the instants that a run makes up for which were missed, in
	// the same zone, and Count is how many they are: zero for a run that stands for one instant.
	// Counting stops at 1,000: there may be more then. Instants has them one by one.
	First, Last time.Time
	Count       int

	// App is the app that the job belongs to; where the admin does not tell, Config.App.
	App string
	// JobName and JobKey are the job's, Route is the name of its strategy, and JobVersion
	// the version of the job that the run was started with. XXL-JOB's own admins tell none
	// of these.
	JobName, JobKey string
	Route           string
	JobVersion      int64
	// TriggerType says what made the run: MANUAL, CRON, API and so on. See
	// xxljob.TriggerType. Empty from XXL-JOB's own admins.
	TriggerType string
	// Trace is the trace that the handler is called in, in W3C Trace Context: the text of a
	// traceparent and, behind a blank, that of a tracestate, if there is one. At most 600 bytes.
	// It comes from whoever called the executor and may be anything. Empty where there is none.
	Trace string

	state *taskState // part of the run, nil in a literal
}

// Window is a span of time: from Start, up to and without End.
type Window struct{ Start, End time.Time }

// taskState is what the methods of a Task share with the executor.
type taskState struct {
	run  *run                     // nil in a literal
	used atomic.Pointer[taskUsed] // nil until there is any; set under mu

	mu       sync.Mutex
	result   string // guarded by mu
	returned bool   // guarded by mu: the handler has returned
	closed   bool   // guarded by mu: and its log is closed

	// Of the run, guarded by Executor.mu. They are here since a run takes less memory so.
	ended bool  // its result is recorded
	holds bool  // it counts in Executor.taken
	most  int32 // how many of its job run side by side, 1 for this one alone, 0 for as many as there are places; never changed
}

// taskUsed is what only some runs have. It is guarded by taskState.mu.
type taskUsed struct {
	logger   *slog.Logger // nil until used
	lines    lineWriter   // nil until used
	progress *progress    // nil until used
	more     adminLog     // set before the handler is called
	instants []time.Time  // set before the handler is called
	logDay   time.Time    // what decides the day of its log where that is not the run's date
}

// use returns what only some runs have. mu is held.
func (s *taskState) use() *taskUsed {
	u := s.used.Load()
	if u == nil {
		u = new(taskUsed)
		s.used.Store(u)
	}
	return u
}

// adminLog is where the lines of a run go as well: nil functions are nowhere.
type adminLog struct {
	write func(at time.Time, level slog.Level, lines string)
	end   func()
}

// Key names what the run is for in words, such as "billing/close 2027-01-31T22:30:00.000Z": app and
// job (its key, or # and its id), and ScheduledAt. All attempts of a trigger, and all parts of a
// broadcast, have the same: work that is to be done once an instant notes it where it commits.
func (t *Task) Key() string {
	job := t.JobKey
	if job == "" {
		job = "#" + strconv.FormatInt(t.JobID, 10)
	}
	return t.App + "/" + job + " " + t.ScheduledAt.UTC().Format("2006-01-02T15:04:05.000Z07:00")
}

// Instants returns the instants that the run stands for, in order and in the zone of ScheduledAt: the
// missed ones, from First to Last, of a run that makes up for several, at most 1,000 of them (there
// may be more where Count is 1,000), and ScheduledAt alone for any other run. They are those of the
// schedule that the run was planned with. Where that is not known any more, because the schedule was
// edited before a retry, or before the run was asked for again, and where the admin does not tell,
// they are First and Last: fewer than Count. An edit by which as many instants lie between the same
// ends is not noticed: they are those of the new schedule then. The list is the caller's own.
func (t *Task) Instants() []time.Time {
	if t.Count == 0 || t.First.IsZero() {
		return []time.Time{t.ScheduledAt}
	}
	if t.state != nil {
		if u := t.state.used.Load(); u != nil && len(u.instants) > 0 {
			return slices.Clone(u.instants)
		}
	}
	if t.Count == 1 || t.Count >= mostInstants || t.First.Equal(t.Last) { // Last may be the end of the span, and no instant
		return []time.Time{t.First}
	}
	return []time.Time{t.First, t.Last}
}

// Previous returns the instant of the job's schedule before the first of Instants, in the zone of
// ScheduledAt, whether or not the job was there, or ran, at that time: so work can be about what has
// happened since. It is zero where the schedule has none, within its bounds and since 1970; for jobs
// without a schedule, and with a FixedDelay; in a literal; and where the admin does not tell. It is
// worked out when it is asked for, while the handler runs: afterwards it may be zero.
func (t *Task) Previous() time.Time {
	if t.state == nil || t.state.run == nil {
		return time.Time{}
	}
	r := t.state.run
	at, ok := instant(r.previous)
	if !ok {
		at = r.job.origin.out.previous(r.id)
	}
	if at.IsZero() {
		return at
	}
	return at.In(t.ScheduledAt.Location())
}

// SetResult sets the text that is reported if the run succeeds, cut to 50,000
// characters and "..." as the protocol's peers do. The last call counts.
func (t *Task) SetResult(s string) {
	if t.state == nil {
		t.state = new(taskState)
	}
	t.state.mu.Lock()
	defer t.state.mu.Unlock()
	t.state.result = cut(s)
}

// Result returns what SetResult has set.
func (t *Task) Result() string {
	if t.state == nil {
		return ""
	}
	t.state.mu.Lock()
	defer t.state.mu.Unlock()
	return t.state.result
}

// Log returns the logger of the run, whose lines wire.Executor.Log reads:
//
//	2006-01-02 15:04:05 INFO message key=value group.key="two words"
//
// The time is in Config.Location and to the second; an xxljob.LogSink gets that of the
// record as well. A record whose message has line feeds is several lines, of which the first has
// the time and the level. The logger is made by the first call. Lines written after the handler
// has returned may be lost.
func (t *Task) Log() *slog.Logger {
	if t.state == nil || t.state.run == nil {
		return slog.New(slog.DiscardHandler)
	}
	return t.state.log()
}

// openLog asks the admin where the lines of the run go as well. It is called before the handler
// is: once the result of the run is recorded the admin may not know it any more, even if its
// handler goes on.
func (s *taskState) openLog() {
	if more := s.run.job.origin.out.openLog(s.run.id); more.write != nil {
		s.mu.Lock()
		s.use().more = more
		s.mu.Unlock()
	}
}

// keepDay notes the day of the run's log where the date does not tell it: the run was
// accepted now.
func (s *taskState) keepDay(now time.Time) {
	k := s.run.id
	key := newLog(k, now)
	if at, ok := instant(k.date); !ok || !key.at.Equal(at) {
		s.mu.Lock()
		s.use().logDay = key.at
		s.mu.Unlock()
	}
}

// logKey is the name of the run's log. mu is held.
func (s *taskState) logKey() logKey {
	k := s.run.id
	if at := s.use().logDay; !at.IsZero() {
		return logKey{k, at}
	}
	at, _ := instant(k.date)
	return logKey{k, at}
}

func (s *taskState) log() *slog.Logger {
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.use()
	if u.logger == nil {
		logs := s.run.job.origin.logs
		u.lines = logs.writer(s.logKey())
		if s.closed {
			u.lines.close() // nobody else would
		} else if u.more.write != nil {
			u.lines = &twoWriters{u.lines, u.more.write}
		}
		u.logger = slog.New(logs.handler(u.lines))
	}
	return u.logger
}

// closeLog is called when the handler has returned.
func (s *taskState) closeLog() {
	s.mu.Lock()
	s.returned = true
	u := s.used.Load()
	if u == nil {
		s.closed = true
		s.mu.Unlock()
		return
	}
	p := u.progress
	s.mu.Unlock()
	if p != nil {
		p.finish()
	}
	s.mu.Lock()
	s.closed = true
	lines, end := u.lines, u.more.end
	s.mu.Unlock()
	if lines != nil {
		lines.close()
	}
	if end != nil {
		end()
	}
}

// maxText is how many characters of a result's text are reported.
const maxText = 50_000

// cut shortens a text to maxText characters and "...".
func cut(s string) string { return cutAt(s, maxText) }

// cutAt shortens a text to so many characters and "...".
func cutAt(s string, most int) string {
	if len(s) <= most {
		return s
	}
	n := 0
	for i := 0; i < len(s); n++ {
		if n == most {
			return s[:i] + "..."
		}
		_, size := utf8.DecodeRuneInString(s[i:])
		i += size
	}
	return s
}
