package console

// What a file of jobs has, of which docs/console.md tells who reads one. A change that a reader of
// the version has to know of is another version.

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf16"

	"github.com/xxljob/xxljob"
)

const (
	exportFormat  = "xxljob-jobs"
	exportVersion = 1
	exportTime    = "2006-01-02T15:04:05.000Z" // of UTC
)

// exportedJob is a definition in a file. What is absent has its zero value; names and words are
// those of the store. It has no ids, and nothing that is of one store only.
type exportedJob struct {
	App            string              `json:"app"`
	Key            string              `json:"key,omitempty"` // absent for a job that has none
	Name           string              `json:"name"`
	Author         string              `json:"author,omitempty"`
	AlarmEmail     string              `json:"alarmEmail,omitempty"`
	Tags           []string            `json:"tags,omitempty"`
	Schedule       exportedSchedule    `json:"schedule"`
	Misfire        xxljob.Misfire      `json:"misfire,omitempty"`
	CatchUp        xxljob.CatchUp      `json:"catchUp,omitempty"`
	CatchUpMost    int                 `json:"catchUpMost,omitempty"`
	CatchUpAgeMs   int64               `json:"catchUpAgeMs,omitempty"`
	OnNoExecutor   xxljob.OnNoExecutor `json:"onNoExecutor,omitempty"`
	NotBefore      string              `json:"notBefore,omitempty"`
	NotAfter       string              `json:"notAfter,omitempty"`
	MaxRuns        int                 `json:"maxRuns,omitempty"`
	Route          string              `json:"route,omitempty"`
	Handler        string              `json:"handler,omitempty"`
	Param          string              `json:"param,omitempty"`
	Block          string              `json:"block,omitempty"`
	MaxPerExecutor int                 `json:"maxPerExecutor,omitempty"`
	TimeoutMs      int64               `json:"timeoutMs,omitempty"`
	Retries        int                 `json:"retries,omitempty"`
	RetryBackoff   exportedBackoff     `json:"retryBackoff,omitzero"`
	RetryAside     bool                `json:"retryAside,omitempty"`
	OnLost         xxljob.OnLost       `json:"onLost,omitempty"`
	MaxReruns      int                 `json:"maxReruns,omitempty"`
	MaxSnoozes     int                 `json:"maxSnoozes,omitempty"`

	ChildKeys      []string          `json:"childKeys,omitempty"`
	ChildParam     xxljob.ChildParam `json:"childParam,omitempty"`
	AfterKeys      []string          `json:"afterKeys,omitempty"`
	AfterWindowMs  int64             `json:"afterWindowMs,omitempty"`
	AfterZone      string            `json:"afterZone,omitempty"`
	AfterTimeoutMs int64             `json:"afterTimeoutMs,omitempty"`

	LateAfterMs int64  `json:"lateAfterMs,omitempty"`
	KeepRunsMs  int64  `json:"keepRunsMs,omitempty"`
	GlueType    string `json:"glueType,omitempty"`
	GlueRemark  string `json:"glueRemark,omitempty"`
	Stopped     bool   `json:"stopped,omitempty"`

	// LeftOut names what the job has and the file has not, or not all of it: "param" where
	// Config.Redact hides something of it, "glueSource", and "childKeys" and "afterKeys" where
	// a job has no key by which another store would know it, or the user does not see it.
	LeftOut []string `json:"leftOut,omitempty"`
}

type exportedSchedule struct {
	Type xxljob.ScheduleType `json:"type"`
	Conf string              `json:"conf,omitempty"`
	Zone string              `json:"zone,omitempty"`
	DST  xxljob.DST          `json:"dst,omitempty"`
}

type exportedBackoff struct {
	FirstMs int64 `json:"firstMs,omitempty"`
	MaxMs   int64 `json:"maxMs,omitempty"`
	Jitter  int   `json:"jitter,omitempty"`
}

// exported is a job as the file has it. refs are how jobs are called that it names by their ids.
func (q *request) exported(j *xxljob.Job, refs map[int64]string) exportedJob {
	s := j.Schedule
	if s.IsManual() {
		s.Type = xxljob.ScheduleNone
	}
	e := exportedJob{App: j.App, Key: j.Key, Name: j.Name, Author: j.Author, AlarmEmail: j.AlarmEmail, Tags: j.Tags,
		Schedule: exportedSchedule{s.Type, s.Conf, s.Zone, s.DST}, Misfire: j.Misfire, CatchUp: j.CatchUp, CatchUpMost: j.CatchUpMost, CatchUpAgeMs: j.CatchUpAge.Milliseconds(), OnNoExecutor: j.OnNoExecutor,
		NotBefore: momentText(j.NotBefore), NotAfter: momentText(j.NotAfter), MaxRuns: j.MaxRuns,
		Route: j.Route, Handler: j.Handler, Param: j.Param, Block: j.Block, MaxPerExecutor: j.MaxPerExecutor, TimeoutMs: j.Timeout.Milliseconds(),
		Retries: j.Retries, RetryBackoff: exportedBackoff{j.RetryBackoff.First.Milliseconds(), j.RetryBackoff.Max.Milliseconds(), j.RetryBackoff.Jitter},
		RetryAside: j.RetryAside, OnLost: j.OnLost, MaxReruns: j.MaxReruns, MaxSnoozes: j.MaxSnoozes,
		ChildParam: j.ChildParam, AfterWindowMs: j.AfterWindow.Milliseconds(), AfterZone: j.AfterZone, AfterTimeoutMs: j.AfterTimeout.Milliseconds(),
		LateAfterMs: j.LateAfter.Milliseconds(), KeepRunsMs: j.KeepRuns.Milliseconds(), Stopped: j.Stopped}
	if q.hidesParam(j) {
		e.Param = ""
		e.LeftOut = append(e.LeftOut, "param")
	}
	if isScript(j) {
		e.GlueType, e.GlueRemark = j.GlueType, j.GlueRemark
		e.LeftOut = append(e.LeftOut, "glueSource")
	}
	var whole bool
	if e.ChildKeys, whole = withRefs(j.ChildKeys, j.Children, refs); !whole {
		e.LeftOut = append(e.LeftOut, "childKeys")
	}
	if e.AfterKeys, whole = withRefs(j.AfterKeys, j.After, refs); !whole {
		e.LeftOut = append(e.LeftOut, "afterKeys")
	}
	return e
}

// withRefs are the keys of jobs together with those of jobs that are named by their ids, each
// once, in order. Whole says that none of these is left out.
func withRefs(keys []string, ids []int64, refs map[int64]string) (list []string, whole bool) {
	list, whole = slices.Clone(keys), true
	for _, id := range ids {
		if ref := refs[id]; ref != "" {
			list = append(list, ref)
		} else {
			whole = false
		}
	}
	slices.Sort(list)
	return slices.Compact(list), whole
}

func momentText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(exportTime)
}

// exportText is a job as text, in which each character is seen: those that are not, or that change
// how others are, are escaped, as JSON allows for any.
func exportText(j exportedJob) ([]byte, error) {
	text, err := json.MarshalIndent(j, "    ", "  ")
	if err != nil || !strings.ContainsFunc(string(text), hides) {
		return text, err
	}
	var b strings.Builder
	for _, r := range string(text) {
		switch {
		case !hides(r):
			b.WriteRune(r)
		case r < 1<<16:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		}
	}
	return []byte(b.String()), nil
}
