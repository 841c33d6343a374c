package xxljobtest

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/xxljob/xxljob/wire"
)

// idleBeat answers whether a job is idle: none of its runs is open.
func (e *Executor) idleBeat(req wire.IdleBeatRequest) reply {
	if e.isBusy(req.JobID) {
		return refusal(wire.MsgBusy)
	}
	return e.o.Generation.success(nil)
}

// kill ends the open runs of a job and reports them: the oldest as running, the others as
// queued behind it.
func (e *Executor) kill(req wire.KillRequest) reply {
	e.mu.Lock()
	e.kills = append(e.kills, req)
	e.mu.Unlock()
	killed := e.end(func(o *openRun) bool { return o.JobID == req.JobID })
	if len(killed) == 0 {
		return e.o.Generation.noted(wire.MsgAlreadyKilled)
	}
	for i, o := range killed {
		text := wire.MsgKilledRunning
		if i > 0 {
			text = wire.MsgKilledQueued
		}
		e.deliver(o.ExecutorRun, result{wire.CodeFail, fmt.Sprintf(text, wire.StopKill)})
	}
	return e.o.Generation.success(nil)
}

// executorLog is the log of a run.
type executorLog struct {
	day   string // names the directory of the log
	lines []string
}

func dayOf(ms int64) string { return time.UnixMilli(ms).UTC().Format(time.DateOnly) }

// AppendLog appends lines to the log of a run, for xxljob.Scheduler.Log to read. Without it
// the run has no log. The test fails if the executor was never asked for the run.
func (e *Executor) AppendLog(runID int64, lines ...string) {
	e.t.Helper()
	run := e.asked("AppendLog", runID)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.logs[runID] == nil {
		e.logs[runID] = &executorLog{day: dayOf(run.LogDateTime)}
	}
	for _, line := range lines {
		e.logs[runID].lines = append(e.logs[runID].lines, strings.Split(line, "\n")...)
	}
}

// logRequest is a wire.LogRequest with the two spellings of the date apart, of which a
// generation reads one.
type logRequest struct {
	LogDateTim  int64 `json:"logDateTim"`
	LogDateTime int64 `json:"logDateTime"`
	LogID       int64 `json:"logId"`
	FromLineNum int   `json:"fromLineNum"`
}

// Decode reads a request.
func (r *logRequest) Decode(src []byte) error { return json.Unmarshal(src, r) }

// readLog answers with the rest of a log. A log is found by its date, and never says that it
// has ended: only the scheduler knows whether the run has.
func (e *Executor) readLog(req logRequest) reply {
	g, day := e.o.Generation, dayOf(req.LogDateTim)
	if g == G4 {
		day = dayOf(req.LogDateTime)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	log := e.logs[req.LogID]
	if log == nil || log.day != day {
		return g.success(wire.LogResult{FromLineNum: req.FromLineNum, LogContent: wire.MsgNoLog, IsEnd: true})
	}
	res := wire.LogResult{FromLineNum: req.FromLineNum, ToLineNum: len(log.lines)}
	from := max(req.FromLineNum, 1) - 1
	switch {
	case from < len(log.lines):
		res.LogContent = strings.Join(log.lines[from:], "\n") + "\n"
	case g >= G3:
		res.ToLineNum = 0
	}
	return g.success(res)
}
