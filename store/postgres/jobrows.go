package postgres

import (
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/xxljob/xxljob/schedule"
	"github.com/xxljob/xxljob/store"
)

// jobRow is a job as it is read.
type jobRow struct {
	job                  store.Job
	key                  pgtype.Text
	kind, misfire, catch string
	onLost               string
	pause, pauseMax      int64
	dst, children        string
	childKeys, after     string
	afterKeys, tags      string
	childParam           string
	afterWindow          int64
	afterTimeout         int64
	lateAfter, keepRuns  int64
	timeout              int64
	status               int16
	glue, added, updated pgtype.Timestamptz
	next, last           int64
	notBefore, notAfter  int64
}

func (r *jobRow) value() store.Job {
	j := r.job
	j.Key = r.key.String
	j.Schedule.Type, j.Schedule.DST = schedule.Type(r.kind), schedule.DST(r.dst)
	j.OnLost = store.OnLost(r.onLost)
	j.RetryBackoff.First = time.Duration(r.pause) * time.Millisecond
	j.RetryBackoff.Max = time.Duration(r.pauseMax) * time.Millisecond
	j.Misfire, j.CatchUp = store.Misfire(r.misfire), store.CatchUp(r.catch)
	j.Timeout = time.Duration(r.timeout) * time.Second
	j.Children, j.ChildKeys = parseIDs(r.children), parseKeys(r.childKeys)
	j.After, j.AfterKeys = parseIDs(r.after), parseKeys(r.afterKeys)
	j.Tags = parseKeys(r.tags)
	j.ChildParam = store.ChildParam(r.childParam)
	j.AfterWindow, j.AfterTimeout = time.Duration(r.afterWindow)*time.Millisecond, time.Duration(r.afterTimeout)*time.Millisecond
	j.KeepRuns = time.Duration(r.keepRuns) * time.Millisecond
	j.LateAfter = time.Duration(r.lateAfter) * time.Millisecond
	j.Stopped = r.status == statusStopped && j.StopReason != reasonManual
	if !j.Stopped {
		j.StopReason = ""
	}
	j.GlueUpdated, j.Added, j.Updated = stamp(r.glue), stamp(r.added), stamp(r.updated)
	j.Next, j.Last = fromMilli(r.next), fromMilli(r.last)
	j.NotBefore, j.NotAfter = fromMilli(r.notBefore), fromMilli(r.notAfter)
	return j
}

// readJobs appends each row of jobColumns to the list.
func readJobs(list *[]store.Job) result {
	return func(rows pgx.Rows) error {
		var row jobRow
		if err := rows.Scan(append(infoColumns.dests(&row), nextColumns.dests(&row)...)...); err != nil {
			return err
		}
		*list = append(*list, row.value())
		return nil
	}
}

// reasonManual is the stop_reason of a job that has no schedule and is not stopped. Its
// trigger_status is that of a stopped job, as XXL-JOB has it.
const reasonManual = "manual"

func status(j *store.Job) int {
	if j.Stopped || j.Schedule.IsManual() {
		return statusStopped
	}
	return statusEnabled
}

func stopReason(j *store.Job) string {
	if !j.Stopped && j.Schedule.IsManual() {
		return reasonManual
	}
	return j.StopReason
}

func nullTime(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// joinIDs is XXL-JOB's child_jobid.
func joinIDs(ids []int64) string {
	var b strings.Builder
	for i, id := range ids {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.FormatInt(id, 10))
	}
	return b.String()
}

// parseIDs reads it; what cannot be the id of a job is left out.
func parseIDs(list string) (ids []int64) {
	for part := range strings.SplitSeq(list, ",") {
		if id, err := strconv.ParseInt(strings.TrimSpace(part), 10, 32); err == nil && id > 0 {
			ids = append(ids, id)
		}
	}
	return ids
}

// delayOf is the delay of a FixedDelay schedule in milliseconds, else 0.
func delayOf(s schedule.Schedule) int64 {
	if s.Type != schedule.TypeFixDelay {
		return 0
	}
	d, _ := s.Every() // an invalid one re-arms nothing
	return d.Milliseconds()
}
