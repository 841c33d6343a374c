package executor

// How far runs are. Comes in: calls of Task.Progress, as many as a handler likes. Goes out:
// lines of the run's log and, for the scheduler in this process, the same as it stands, once
// a second at most; and what was said last, with the run's result.

import (
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/xxljob/xxljob/wire"
)

const (
	// progressEvery is the time between two lines about one run's progress.
	progressEvery = time.Second
	// maxProgress is how many characters of its text are kept.
	maxProgress = 500
)

// Progress says how far the run is: a percentage, which is taken for 0 below that and for 100
// above, and a text of up to 500 characters, of which the rest is cut and control characters
// become blanks. It shows in the run's row, in Run.Progress and Run.ProgressText, and as a
// line of its log, of level INFO:
//
//	2006-01-02 15:04:05 INFO progress percent=40 text="2 of 5 files"
//
// It costs little and never waits for the store, so a handler may call it in a loop: both are
// written once a second at most, and what was said last is written when the handler returns
// at the latest. Saying the same again changes nothing, and neither does 0 without a text
// where nothing was said before. In the row it is best effort while the run goes on; that of
// an executor elsewhere is told with its log (Scheduler.Log), and with its result. XXL-JOB's
// own admins see the lines.
func (t *Task) Progress(percent int, text string) {
	if t.state == nil {
		return
	}
	if p := t.state.progressOf(); p != nil {
		p.say(wire.Progress{Percent: min(max(percent, 0), 100), Text: oneLine(text)})
	}
}

// oneLine is a text as it is kept.
func oneLine(text string) string {
	text = strings.ToValidUTF8(cutAt(text, maxProgress), "\uFFFD")
	if !strings.ContainsFunc(text, unicode.IsControl) {
		return text
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
}

// progress is how far one run is. It is made by the first call of its handler.
type progress struct {
	run *run
	out sync.Mutex // held while a line is written: they come in order

	mu    sync.Mutex
	last  wire.Progress // guarded by mu: what was said last
	news  bool          // guarded by mu: it is not written yet
	due   time.Time     // guarded by mu: no line before that
	timer *time.Timer   // guarded by mu: calls late, nil while nothing waits for that
	over  bool          // guarded by mu: the handler has returned
}

// progressOf returns the run's, nil where the handler has returned or there is no run.
func (s *taskState) progressOf() *progress {
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.used.Load()
	if s.run != nil && !s.returned && (u == nil || u.progress == nil) {
		u = s.use()
		u.progress = &progress{run: s.run}
	}
	if u == nil {
		return nil
	}
	return u.progress
}

// said returns what the handler has said last.
func (s *taskState) said() wire.Progress {
	u := s.used.Load()
	if u == nil {
		return wire.Progress{}
	}
	s.mu.Lock()
	p := u.progress
	s.mu.Unlock()
	if p == nil {
		return wire.Progress{}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.last
}

func (p *progress) say(last wire.Progress) {
	if p.note(last) {
		p.write()
	}
}

// note takes in what was said, and reports whether it may be written now. Otherwise the timer
// will have it written, or finish.
func (p *progress) note(last wire.Progress) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over || last == p.last {
		return false
	}
	p.last, p.news = last, true
	if p.timer != nil {
		return false
	}
	now := time.Now()
	if wait := p.due.Sub(now); wait > 0 {
		p.timer = time.AfterFunc(wait, p.late)
		return false
	}
	p.due = now.Add(progressEvery)
	return true
}

// late writes what had to wait for its second. Its goroutine is over when finish is.
func (p *progress) late() {
	p.mu.Lock()
	p.timer = nil
	p.due = time.Now().Add(progressEvery)
	p.mu.Unlock()
	p.write()
}

func (p *progress) write() {
	p.out.Lock()
	defer p.out.Unlock()
	if last, news := p.take(); news {
		p.log(last)
		p.run.job.origin.out.tell(p.run.id, last)
	}
}

// take returns what is to be written.
func (p *progress) take() (wire.Progress, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	news := p.news
	p.news = false
	return p.last, news
}

func (p *progress) log(last wire.Progress) {
	attrs := []any{"percent", last.Percent}
	if last.Text != "" {
		attrs = append(attrs, "text", last.Text)
	}
	p.run.taskState.log().Info("progress", attrs...)
}

// finish writes what is left, when the handler has returned. The scheduler gets it with the
// result.
func (p *progress) finish() {
	p.mu.Lock()
	p.over = true
	if p.timer != nil {
		p.timer.Stop()
		p.timer = nil
	}
	p.mu.Unlock()
	p.out.Lock()
	defer p.out.Unlock()
	if last, news := p.take(); news {
		p.log(last)
	}
}

// tell passes on how far a run is, where the admin wants to hear of that.
func (o *outbox) tell(k runID, p wire.Progress) {
	o.mu.Lock()
	admin := o.admin
	o.mu.Unlock()
	if a, wants := admin.(interface {
		Progress(logID, logDateTim int64, p wire.Progress)
	}); wants {
		a.Progress(k.id, k.date, p)
	}
}
